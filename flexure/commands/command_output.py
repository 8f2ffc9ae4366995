"""The output of a command: lines and tables for people, or one JSON object, and files."""

from __future__ import annotations

import contextlib
import json
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO


class Report:
    """Collects the findings of a command, prints them, and writes files.

    With ``json``, it prints one JSON object instead of lines. Files go to the folder ``out``, if
    there is one.
    """

    def __init__(self, arguments: Namespace) -> None:
        self._stream: TextIO = sys.stdout
        self._json = bool(arguments.json)
        self._folder = None if arguments.out is None else Path(arguments.out)
        self._facts: dict[str, Any] = {}
        self._files: list[str] = []

    @property
    def keeps(self) -> bool:
        """Whether a folder for files was named."""
        return self._folder is not None

    def prepare(self) -> None:
        """Make the folder for files; what takes long does so before, so as not to fail behind."""
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)

    def say(self, text: object = "") -> None:
        """Print a line, or a table, unless JSON is asked for."""
        if not self._json:
            print(text, file=self._stream)

    def add(self, **facts: Any) -> None:
        """Add values to the JSON output."""
        self._facts |= facts

    def save(self, name: str, write: Callable[[Path], object]) -> None:
        """Let a function write a file of this name, in the folder or where the command runs."""
        self.prepare()
        folder = self._folder or Path()
        write(folder / name)
        self._files.append(str(folder / name))
        self.say(f"saved {folder / name}")

    def quiet(self) -> contextlib.AbstractContextManager[object]:
        """Send what models print elsewhere, where JSON is all that is to be printed."""
        return contextlib.redirect_stdout(sys.stderr) if self._json else contextlib.nullcontext()

    def end(self) -> None:
        """Print the JSON object."""
        if self._json:
            facts = self._facts | ({"files": self._files} if self._files else {})
            text = json.dumps(plain(facts), ensure_ascii=False, indent=1, allow_nan=False)
            print(text, file=self._stream)


def plain(value: Any) -> Any:
    """Return a value as JSON has it: what is not finite is null, complex numbers are pairs."""
    import numpy as np

    from flexure.diagrams.values.tables import Table

    if isinstance(value, Table):
        return [plain(row) for row in value]
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and np.isfinite(value).all():
        return value.tolist()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(each) for each in value]
    if isinstance(value, (complex, np.complexfloating)):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
