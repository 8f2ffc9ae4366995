"""Object code on disk, so that a diagram is compiled once per machine and not once per process.

Every entry is a file named by the hash of everything that the code depends on, its *key*: the text,
the processor, the versions. It begins with a hash of the key and the content together; what does
not match (a file that was cut short, changed, or written for another key) is not used, and made
anew. Files are written under another name and then renamed, so that a reader sees a whole file or
none, whichever processes write at once. When the entries outgrow their bound, those that were not
used for the longest time are deleted.

As what is found here is executed, the cache uses a folder of its own that only this user can write
to, in it regular files of this user only, and touches nothing whose name is not that of an entry.
The folder is made in the cache folder of the user (``XDG_CACHE_HOME``, ``~/.cache``,
``~/Library/Caches``, ``%LOCALAPPDATA%``); the environment variable ``FLEXURE_CACHE`` names another
place for it, or switches the cache off with the value ``off``.

The cache is only ever a shortcut: where the folder cannot be used, a warning says so once, and code
is compiled anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from flexure.diagrams.checks.errors import warn

_MAGIC = b"flexure object 2\n"
_DIGEST = 32  # bytes
_HEAD = len(_MAGIC) + _DIGEST
_BOUND = 256 * 2**20  # bytes that the entries may take together
_SUFFIX = ".flexure-code"
_OWN = re.compile(r"[0-9a-f]{32}\.(\w+\.tmp|flexure-code)")
_ABANDONED = 3600.0  # seconds after which no writer is at work on a file any more
# Links are not followed, and a pipe that nobody writes to does not block; Windows knows neither.
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

_SHARE = 1 / 64  # of the bound, which this process may write before it counts all entries again

_told: set[str] = set()
_uncounted: dict[Path, int] = {}


def folder() -> Path | None:
    """Return the folder of the cache, or None when it is switched off."""
    chosen = os.environ.get("FLEXURE_CACHE", "")
    if chosen == "off":
        return None
    user = _user()
    name = "flexure-code" if user is None else f"flexure-code-{user}"
    with suppress(RuntimeError):
        return (Path(chosen) if chosen else _user_folder()) / name
    return None  # a user without a home


def _user() -> int | None:
    """Return the number of the user whose rights this process has; None where there is none."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def _user_folder() -> Path:
    """Return where programs of this user keep what they can make again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def cached(key: str, make: Callable[[], bytes], *, bound: int = _BOUND) -> bytes:
    """Return the content of an entry, made when there is no good one.

    ``key`` is everything that the content depends on; all entries together take no more than
    ``bound`` bytes. Warns once when the folder is not safe or cannot be written to.
    """
    place = folder()
    if place is None:
        return make()
    try:
        _prepare(place)
    except OSError as error:
        _tell(place, error)
        return make()
    identity = hashlib.blake2b(key.encode(), digest_size=_DIGEST)
    file = place / f"{identity.hexdigest()[:32]}{_SUFFIX}"
    content = _read(file, identity.digest())
    if content is None:
        content = make()
        try:
            _write(file, identity.digest(), content)
            _uncounted[place] = _uncounted.get(place, bound) + len(content)
            if _uncounted[place] > _SHARE * bound:
                _shrink(place, bound)
                _uncounted[place] = 0
        except OSError as error:
            if _read(file, identity.digest()) is None:  # nor did another process write it
                _tell(place, error)
    return content


def _prepare(place: Path) -> None:
    """Make the folder, or refuse one in which others may have left something."""
    try:
        found = place.lstat()
    except FileNotFoundError:
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # which another process has just made
            place.mkdir(mode=0o700)
        found = place.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError("it is a link or a file, and no folder")
    if not _is_private(found):
        rights = stat.filemode(found.st_mode)
        raise PermissionError(
            f"it belongs to user {found.st_uid} with the rights {rights}, so that others could "
            "leave code in it"
        )


def _is_private(status: os.stat_result) -> bool:
    """Return whether something belongs to this user, who alone may write to it."""
    user = _user()
    return user is None or (status.st_uid == user and not status.st_mode & _OTHERS_WRITE)


def _tell(place: Path, error: OSError) -> None:
    """Warn of a folder that is of no use, once for each reason."""
    reason = error.strerror or str(error)
    if reason not in _told:
        _told.add(reason)
        warn(
            f"Cannot keep native code in '{place}': {reason}. Every process will compile anew. "
            "Set the environment variable FLEXURE_CACHE to a folder that only you can write to, "
            "or to 'off'."
        )


def _read(file: Path, identity: bytes) -> bytes | None:
    """Return the content of an entry, None when there is none or it is not what was written."""
    try:
        with open(file, "rb", opener=_open) as stream:
            head = stream.read(_HEAD)
            content = stream.read() if head.startswith(_MAGIC) else b""
    except OSError:
        return None
    if head != _head(identity, content):
        return None
    with suppress(OSError):
        os.utime(file)  # it was used
    return content


def _open(path: str, flags: int) -> int:
    """Open a file of this user, not what only has its name."""
    handle = os.open(path, flags | _FLAGS)
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode) and status.st_size <= _BOUND and _is_private(status):
        return handle
    os.close(handle)
    raise PermissionError(path)


def _write(file: Path, identity: bytes, content: bytes) -> None:
    """Write an entry in one stroke."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f"{file.stem}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(_head(identity, content))
            stream.write(content)
        os.replace(name, file)  # noqa: PTH105, a Path would only be converted
    except BaseException:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise


def _head(identity: bytes, content: bytes) -> bytes:
    """Return what an entry begins with."""
    return _MAGIC + hashlib.blake2b(content, digest_size=_DIGEST, key=identity).digest()


def _shrink(place: Path, bound: int) -> None:
    """Delete the entries that were not used for the longest time, until the rest fits."""
    found = []
    total = 0
    abandoned = time.time() - _ABANDONED
    with os.scandir(place) as files:
        for file in files:
            with suppress(OSError):  # of files that others delete meanwhile
                status = file.stat(follow_symlinks=False)
                if _OWN.fullmatch(file.name) and stat.S_ISREG(status.st_mode):
                    total += status.st_size
                    if file.name.endswith(_SUFFIX) or status.st_mtime < abandoned:
                        found.append((status.st_mtime, status.st_size, file.path))
    for _, size, path in sorted(found):
        if total <= bound:
            break
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108
        total -= size
