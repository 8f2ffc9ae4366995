"""The language of kernels: a small part of Python, and its translation to text for LLVM."""
