"""From the texts of equations to libraries: in what pieces, and how hard LLVM tries.

Equations are straight-line code, often of tens of thousands of operations. Measurements:

- LLVM's passes find nothing in such code, and take as long as what follows them.
- A careful choice of instructions and registers takes 30 microseconds for each operation, the
  fastest one 4. Equations then run 1.1 times as long, Jacobians in vectors twice as long.
- Python hears an interruption when LLVM returns. So long texts are cut into modules, each of which
  is compiled, and put into the cache, by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from flexure.solvers.native.llvm.library import Library

#: Characters of text, about 70 for each operation.
_SHORT = 200_000  # up to which LLVM takes all the care it can
_LONG = 2_000_000  # from which on it takes none: the other way would take about a second
_PIECE = 1_000_000  # in a module
_CARE = ("with the fastest choice of instructions", "with less care", "with all care")

_DEFINITION = re.compile(r"^define (?:internal )?void @([\w.]+)\((.*)\) #0 \{$", re.MULTILINE)
_TYPE = re.compile(r"(?:^|, )(<[^>]*>|\S+)")  # of each parameter
_CALL = re.compile(r"call void @([\w.]+)\(")


class ModuleTexts(NamedTuple):
    """Texts on their way to a library."""

    modules: list[str]  # the texts; each is compiled, and kept, by itself
    level: int  # how hard LLVM tries, 0 to 2
    has_loops: bool = False  # whether LLVM's passes have anything to do

    def compile(self) -> Library:
        """Return the library."""
        text, *others = self.modules
        straight = not self.has_loops
        return Library(text, lambda: text, level=self.level, straight=straight, others=others)

    def __str__(self) -> str:
        size = sum(map(len, self.modules))
        modules = f"{len(self.modules)} module{'s' * (len(self.modules) > 1)}"
        return f"{size} characters in {modules}, {_CARE[self.level]}"


def cut(texts: Iterable[tuple[str, set[str]]]) -> ModuleTexts:
    """Distribute functions that `flexure.solvers.native.emission.emission` has written."""
    parts, declarations = zip(*texts, strict=True)
    head = "\n".join(sorted(set().union(*declarations)))
    size = sum(map(len, parts))
    modules = ["\n".join([head, *parts])] if size < _PIECE else _modules(head, parts)
    return ModuleTexts(modules, care(size))


def care(size: int) -> int:
    """Return how hard LLVM tries with so many characters of straight-line code."""
    return 2 if size < _SHORT else 1 if size < _LONG else 0


def _modules(head: str, parts: Iterable[str]) -> list[str]:
    """Distribute functions over modules that can call those of each other."""
    functions = [function for part in parts for function in _functions(part)]
    signatures: dict[str, str] = {}
    for function in functions:
        for name, parameters in _DEFINITION.findall(function):
            kinds = ", ".join(_TYPE.findall(parameters))
            signatures[name] = f"declare void @{name}({kinds})"
    modules = []
    for group in _groups(functions):
        text = "\n".join(group).replace("define internal void @", "define void @")
        own = set(_DEFINITION.findall(text))
        called = set(_CALL.findall(text)) & signatures.keys() - {name for name, _ in own}
        modules.append("\n".join([head, *(signatures[name] for name in sorted(called)), text]))
    return modules


def _functions(text: str) -> Iterator[str]:
    """Take a text apart behind each of its functions, which end with a brace in its own line."""
    start = 0
    for end in re.finditer(r"^\}$", text, re.MULTILINE):
        yield text[start : end.end() + 1]
        start = end.end() + 1


def _groups(functions: Sequence[str]) -> Iterator[list[str]]:
    """Put functions together until they fill a module."""
    group: list[str] = []
    for function in functions:
        if group and sum(map(len, group)) + len(function) > _PIECE:
            yield group
            group = []
        group.append(function)
    yield group
