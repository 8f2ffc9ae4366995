"""What functions return: whoever calls the class in the place of its function is told so."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any, Self

from flexure.diagrams.errors import ValueRefusedError


class Answer:
    """Base of classes whose objects are what the function of the same name returns.

    The function has the name in lower case: `fx.step_response` returns a `StepResponse`. Nobody
    else makes one, so arguments that do not fit the constructor are those of the function.
    """

    def __new__(cls, *args: Any, **named: Any) -> Self:
        """Refuse the arguments of the function."""
        if args or named:  # copies are made without
            try:
                signature(cls.__init__).bind(None, *args, **named)
            except TypeError:
                function = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
                raise ValueRefusedError(
                    f"Cannot make a {cls.__name__}",
                    expected=f"a call of fx.{function}, the function that returns one",
                    found=f"a call of the class fx.{cls.__name__}",
                    remedy=f"Write fx.{function}(...)",
                ) from None
        return super().__new__(cls)


__all__ = ["Answer"]
