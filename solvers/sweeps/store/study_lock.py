"""The lock of a study: one process at a time writes to its file, and others may read it.

A lock of SQLite itself ends with each transaction, while a study has many. So it is a file of its
own beside that of the study, which the operating system locks, and unlocks when the process ends,
in whatever way. It says who holds it.
"""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

from flexure.diagrams.checks.errors import RecordFileError
from flexure.diagrams.concurrency.threads import Lock

_FAR = 1 << 20  # the byte that is locked, where Windows lets others read the rest
_held: set[str] = set()  # by this process, in which the operating system sees no conflict
_guard = Lock()


class StudyLock:
    """The right to write to a file, from when it is made until `release`."""

    def __init__(self, path: Path) -> None:
        self._key = os.path.realpath(path)
        self._file = Path(f"{self._key}-lock")
        attempt = f"Cannot write to the study '{path}'"
        with _guard:
            if self._key in _held:
                self._refuse(attempt, f"process {os.getpid()}, this one, at work on it")
            try:
                self._descriptor = self._locked(attempt)
            except OSError as error:
                raise RecordFileError(
                    attempt,
                    expected="a folder in which files can be written",
                    found=error.strerror or str(error),
                ) from error
            _held.add(self._key)
        holder = f"process {os.getpid()} on {platform.node()}".encode()
        with suppress(OSError):  # a full disk, of which the study itself will tell
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, holder)

    def _locked(self, attempt: str) -> int:
        """Open the file that is beside the study, and lock it."""
        while True:
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o666)
            if not _take(descriptor):
                holder = os.read(descriptor, 200).decode(errors="replace")
                os.close(descriptor)
                self._refuse(attempt, f"{holder or 'another process'} at work on it")
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), self._file.stat()):
                    return descriptor
            os.close(descriptor)  # its last holder has just removed it

    def _refuse(self, attempt: str, found: str) -> None:
        raise RecordFileError(
            attempt,
            expected="no other process that writes to it",
            found=found,
            remedy="Wait for its end, or read what is done with fx.load_study",
        )

    def release(self) -> None:
        """Let others write."""
        with _guard:
            if sys.platform == "win32":  # where open files cannot be removed
                os.close(self._descriptor)
                with suppress(OSError):
                    self._file.unlink()
            else:
                with suppress(OSError):
                    self._file.unlink()
                os.close(self._descriptor)
            _held.discard(self._key)


def _take(descriptor: int) -> bool:
    """Lock an open file, unless another process has."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            import fcntl  # of a kind that forked processes do not inherit

            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.lseek(descriptor, 0, os.SEEK_SET)
        return False
    return True
