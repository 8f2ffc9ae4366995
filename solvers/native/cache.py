"""Object code on disk, so that a diagram is compiled once per machine and not once per process.

Every entry is a file named by the hash of everything that the code depends on: the text, the
processor, the versions. It begins with a hash of its own content; what does not match (a file that
was cut short, or changed) is deleted and made anew. Files are written under another name and then
renamed, so that a reader sees a whole file or none, whichever processes write at once. When the
folder outgrows its bound, the entries that were not used for the longest time are deleted. The
cache is only ever a shortcut: where the folder cannot be used, code is compiled anew.

The folder is ``flexure`` in the cache folder of the user (``XDG_CACHE_HOME``, ``~/.cache``,
``~/Library/Caches``, ``%LOCALAPPDATA%``); the environment variable ``FLEXURE_CACHE`` names
another one, or switches the cache off with the value ``off``.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_MAGIC = b"flexure object 1\n"
_DIGEST = 32  # bytes
_BOUND = 256 * 2**20  # bytes that the entries may take together
_SUFFIX = ".o"


def folder() -> Path | None:
    """Return the folder of the cache, or None when it is switched off."""
    chosen = os.environ.get("FLEXURE_CACHE", "")
    if chosen:
        return None if chosen == "off" else Path(chosen)
    with suppress(RuntimeError):
        return _user_folder() / "flexure"
    return None  # a user without a home


def _user_folder() -> Path:
    """Return where programs of this user keep what they can make again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def cached(key: str, make: Callable[[], bytes], *, bound: int = _BOUND) -> bytes:
    """Return the content of an entry, made when there is no good one.

    Parameters
    ----------
    key : str
        Everything that the content depends on.
    make : callable
        Makes the content.
    bound : int
        Bytes that all entries may take together.
    """
    place = folder()
    if place is None:
        return make()
    file = place / (hashlib.blake2b(key.encode(), digest_size=16).hexdigest() + _SUFFIX)
    content = _read(file)
    if content is None:
        content = make()
        with suppress(OSError):
            _write(file, content)
            _shrink(place, bound)
    return content


def _read(file: Path) -> bytes | None:
    """Return the content of a good entry; delete a bad one."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    head, digest, content = _split(data)
    if head == _MAGIC and digest == _hash(content):
        with suppress(OSError):
            os.utime(file)  # it was used
        return content
    with suppress(OSError):
        file.unlink()
    return None


def _write(file: Path, content: bytes) -> None:
    """Write an entry in one stroke."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(_MAGIC + _hash(content) + content)
        os.replace(name, file)  # noqa: PTH105, a Path would only be converted
    except BaseException:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise


def _shrink(place: Path, bound: int) -> None:
    """Delete the entries that were not used for the longest time, until the rest fits."""
    found = []
    for file in place.iterdir():
        if file.suffix in (_SUFFIX, ".tmp"):
            with suppress(OSError):
                status = file.stat()
                found.append((status.st_mtime, status.st_size, file))
    total = sum(size for _, size, _ in found)
    for _, size, file in sorted(found):
        if total <= bound:
            break
        with suppress(OSError):
            file.unlink()
        total -= size


def _split(data: bytes) -> tuple[bytes, bytes, bytes]:
    start = len(_MAGIC)
    return data[:start], data[start : start + _DIGEST], data[start + _DIGEST :]


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


__all__ = ["cached", "folder"]
