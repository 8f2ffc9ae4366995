"""Base of result classes: calling the class itself raises an error that names its function."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, Self, TypeVar

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.interface.html import Shown

_Entry = TypeVar("_Entry")


class Answer(Shown):
    """Base of classes whose objects are what the function of the same name returns.

    The function has the name in lower case: `fx.step_response` returns a `StepResponse`, unless the
    class says another one. It gives all arguments of the constructor, so other ones are meant for
    the function.
    """

    _function: ClassVar[str | None] = None

    def __new__(cls, *args: Any, **named: Any) -> Self:
        """Refuse the arguments of the function."""
        code = cls.__init__.__code__
        names = code.co_varnames[1 : code.co_argcount]
        whole = len(args) + len(named) == len(names) and named.keys() <= set(names)
        if (args or named) and not whole:  # copies begin without any
            same = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
            function = cls._function or same
            raise ValueRefusedError(
                f"Cannot call the class {cls.__name__}",
                expected=f"a call of fx.{function}, the function that returns its objects",
                found="arguments that are not those of the class",
                remedy=f"Write fx.{function}(...)",
            )
        return super().__new__(cls)


class Entries(Generic[_Entry]):
    """Base of results that consist of entries, which they count and go through."""

    _entries: tuple[_Entry, ...]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[_Entry]:
        return iter(self._entries)


class Report(Entries[_Entry], Shown):
    """Base of reports about what is wrong, which are true without entries."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self._entries

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return str(self)
