"""Base of result classes: calling the class itself raises an error that names its function."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.interface.html import Shown


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
