"""LLVM: text compiled to functions of this process, and kept on disk."""
