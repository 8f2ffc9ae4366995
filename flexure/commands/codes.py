"""Exit codes: how a command ended."""

from __future__ import annotations

DONE = 0
FAILED = 1  # an error of the model or the library
MISUSED = 2  # words that are not understood
FINDINGS = 3  # done, but the doctor found something, or runs of a sweep failed
INTERRUPTED = 130  # as shells have it, 128 and the number of the signal
CUT_OFF = 141  # nobody reads the output any more
TERMINATED = 143  # by SIGTERM, as from a batch system; unlike INTERRUPTED, nothing more is saved
