"""Shared libraries of C sources, for this platform and for others."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from flexure.diagrams.checks.errors import MissingExtraError, NativeCodeError

#: Options of all compilers: results are those of the equations, operation by operation.
OPTIONS = ("-std=c99", "-O2", "-ffp-contract=off", "-fvisibility=hidden")


class Platform(NamedTuple):
    """A platform: its folders by version of the standard, and how to compile for it."""

    folders: Mapping[str, str]
    ending: str
    target: str
    host: tuple[str, str]


#: For each name that users give the folders of both versions of the standard, the ending of a
#: library, the target of Zig, and what Python calls the platform.
_TABLE = """
linux     linux64       x86_64-linux   .so    x86_64-linux-gnu.2.17  Linux   x86_64
windows   win64         x86_64-windows .dll   x86_64-windows-gnu     Windows AMD64
macos     darwin64      x86_64-darwin  .dylib x86_64-macos           Darwin  x86_64
linux-arm aarch64-linux aarch64-linux  .so    aarch64-linux-gnu.2.17 Linux   aarch64
macos-arm darwin64      aarch64-darwin .dylib aarch64-macos          Darwin  arm64
"""
#: All platforms, by the names that users give.
PLATFORMS = {
    name: Platform({"2.0": old, "3.0": new}, ending, target, (system, machine))
    for name, old, new, ending, target, system, machine in map(
        str.split, _TABLE.strip().splitlines()
    )
}


def shared_library(texts: Mapping[str, str], name: str, attempt: str) -> bytes:
    """Compile sources, by the names of their files, for one of `PLATFORMS`.

    Messages begin with ``attempt``. Raises `MissingExtraError` where no compiler for the platform
    is installed, `NativeCodeError` where it refuses the sources or does not finish.
    """
    wanted = PLATFORMS[name]
    command = [*_compiler(name, attempt), *OPTIONS, "-shared"]
    library = f"library{wanted.ending}"
    command += [each for each in texts if each.endswith(".c")] + ["-o", library, "-lm"]
    command += [] if wanted.ending == ".dll" else ["-fPIC"]
    command += ["-Wl,-z,defs"] if wanted.ending == ".so" else []  # as others do by themselves
    try:
        with tempfile.TemporaryDirectory() as folder:
            for each, text in texts.items():
                Path(folder, each).write_text(text, encoding="utf-8")
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return Path(folder, library).read_bytes()
        found = done.stderr.strip()[:500] or f"exit code {done.returncode}"
    except OSError as error:
        found = str(error)
    raise NativeCodeError(
        f"{attempt} for '{name}'",
        expected=f"'{command[0]}' to compile the sources in a temporary folder",
        found=found,
        remedy="Write sources alone: platforms=()",
    )


def universal(one: bytes, other: bytes) -> bytes:
    """Return a library of macOS for the processors of two libraries."""
    page = 2**14
    head, body = struct.pack(">2I", 0xCAFEBABE, 2), b""
    for each in (one, other):
        processor = struct.unpack_from("<2I", each, 4)
        head += struct.pack(">5I", *processor, page + len(body), len(each), 14)
        body += each + bytes(-len(each) % page)
    return head.ljust(page, b"\0") + body


def _compiler(name: str, attempt: str) -> list[str]:
    """Return the command of a compiler: of this machine, first what ``CC`` names, or Zig."""
    wanted = PLATFORMS[name]
    if wanted.host == (platform.system(), platform.machine()):
        programs = (os.environ.get("CC", ""), "gcc", "cc", "clang")
        found = next(filter(None, map(shutil.which, programs)), None)
        if found is not None:
            return [found]
    if importlib.util.find_spec("ziglang") is None:
        raise MissingExtraError(
            f"{attempt} for '{name}'",
            expected="a compiler for this platform: gcc, cc or clang for that of this machine, "
            "or the package ziglang",
            found="none installed",
            remedy="Install it with: pip install 'flexure[compiler]', or write sources alone: "
            "platforms=()",
        )
    return [sys.executable, "-m", "ziglang", "cc", "-target", wanted.target]
