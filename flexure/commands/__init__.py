"""The command line: words in, tables and files out; what is computed is called from below.

`parser` has all words, `main` runs one command and returns its exit code. Each command is the
function ``run`` of the file of its name, imported when it is called for, so that ``--help`` loads
no mathematics.
"""
