"""The command line: words in, tables and files out; what is computed is called from below.

`parser` has all words, `main` carries one command out and tells how it ended. Each command is the
function ``run`` of the file of its name, imported when it is called for, so that ``--help`` loads
no mathematics.
"""
