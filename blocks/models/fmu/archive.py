"""FMUs as files: archives that are checked before anything of them is unpacked or read."""

from __future__ import annotations

import hashlib
import shutil
import stat
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.checks.extras import import_extra

_LARGEST = 2**31  # bytes of an unpacked FMU
DESCRIPTION = "modelDescription.xml"


def hash_of(path: str, attempt: str) -> str:
    """Return the hash of a file, by which a changed FMU is noticed."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DeclarationError(
            attempt,
            expected="an FMU, a file that can be read",
            found=f"{path!r}: {error.strerror or error}",
        ) from error


def unpack(path: str, attempt: str) -> Path:
    """Unpack an FMU into a new temporary folder, or refuse it and leave nothing behind."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="flexure-fmu-"))
    except OSError as error:
        raise DeclarationError(
            attempt, expected="a temporary folder that can be written", found=str(error)
        ) from error
    try:
        with zipfile.ZipFile(path) as archive:
            _check(archive.infolist(), attempt)
            archive.extractall(folder)
        _check_xml((folder / DESCRIPTION).read_bytes(), attempt)
    except Exception as error:  # of whatever a damaged archive makes zipfile stumble over
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, DeclarationError):
            raise
        raise DeclarationError(
            attempt,
            expected=f"an FMU, a zip archive with {DESCRIPTION}",
            found=f"{path!r}: {type(error).__name__}: {error!s:.200}",
        ) from error
    return folder


def _check(entries: list[zipfile.ZipInfo], attempt: str) -> None:
    """Refuse entries that are not what they should be."""
    for entry in entries:
        name = entry.filename
        parts = PurePosixPath(name).parts
        climbs = name.startswith("/") or ".." in parts or "\\" in name or ":" in name
        if climbs or stat.S_ISLNK(entry.external_attr >> 16):
            raise DeclarationError(
                attempt,
                expected="files inside of the archive",
                found=f"{name!r:.200}, " + ("which leads out of it" if climbs else "a link"),
                remedy="Do not use this file: it may be meant to harm",
            )
    size = sum(entry.file_size for entry in entries)
    if size > _LARGEST:
        raise DeclarationError(
            attempt, expected=f"at most {_LARGEST} bytes when unpacked", found=f"{size}"
        )
    if DESCRIPTION not in {entry.filename for entry in entries}:
        raise DeclarationError(
            attempt, expected=f"an FMU, a zip archive with {DESCRIPTION}", found="none in it"
        )


def _check_xml(text: bytes, attempt: str) -> None:
    """Refuse a description with a document type, the only place where entities are declared."""
    etree = import_extra("lxml.etree", "fmi", attempt)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    root = etree.fromstring(text, parser)
    if root.getroottree().docinfo.internalDTD is not None:
        raise DeclarationError(
            attempt,
            expected=f"{DESCRIPTION} without a document type",
            found="<!DOCTYPE ...>, which can declare entities",
            remedy="Do not use this file: it may be meant to harm",
        )
