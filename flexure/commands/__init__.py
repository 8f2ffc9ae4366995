"""The command line: words in, tables and files out; what is computed is called from below.

`parser` has all words, and names the function of each command. `main` imports that when it is
called for, so that ``--help`` loads no mathematics, and returns its exit code.
"""

from __future__ import annotations

#: Exit codes: how a command ended.
DONE = 0
FAILED = 1  # an error of the model or the library
MISUSED = 2  # words that are not understood
FINDINGS = 3  # done, but the doctor found something, or runs of a sweep failed
INTERRUPTED = 130  # as shells have it, 128 and the number of the signal
CUT_OFF = 141  # nobody reads the output any more
TERMINATED = 143  # by SIGTERM, as from a batch system; unlike INTERRUPTED, nothing more is saved

__all__ = ["CUT_OFF", "DONE", "FAILED", "FINDINGS", "INTERRUPTED", "MISUSED", "TERMINATED"]
