"""Atomic writing of files: a file is written completely or stays unchanged."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from flexure.diagrams.checks.arguments import file_path


@contextmanager
def replacing(
    path: str | Path, newline: str | None = None, *, binary: bool = False
) -> Iterator[IO[Any]]:
    """Open a file that takes the place of another one once all of it is on the disk.

    When anything goes wrong before, the other one is as it was, and nothing is left beside it. What
    is no file, such as a pipe, is written to.
    """
    target = Path(file_path(path, "Cannot write a file")).resolve()
    kind, encoding = ("b", None) if binary else ("", "utf-8")
    if target.exists() and not target.is_file():
        with target.open(f"w{kind}", encoding=encoding, newline=newline) as stream:
            yield stream
        return
    beside = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with beside.open(f"x{kind}", encoding=encoding, newline=newline) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError) and error.filename == str(beside):
            error.filename = str(target)  # which is the one that was asked for
        raise
