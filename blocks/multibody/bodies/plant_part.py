"""What plants, bodies and joints have in common as objects: attributes are not made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexure.diagrams.checks.errors import DeclarationError, closest, suggestion
from flexure.diagrams.values.handles import HandleOwner, put_first


class Part(HandleOwner):
    """Base of what a mechanism is made of: once complete, it refuses attributes it does not have.

    Values live in contexts. So one that is assigned to a new name, or in place of a method, would
    be kept and do nothing.
    """

    name: str
    _is_complete = False

    def complete(self) -> None:
        """Refuse new attributes from now on; called by the plant and by its builder."""
        put_first(self, "_is_complete", True)

    if not TYPE_CHECKING:  # where it would hide misspelled names

        def __setattr__(self, name: str, value: Any) -> None:
            if self._is_complete and not name.startswith("_") and name not in self.__dict__:
                _refuse_made_up(self, name, value)
            super().__setattr__(name, value)

        def __getattr__(self, name: str) -> Any:
            """Refuse what is no attribute, with the name of a similar one."""
            if name.startswith("_") or hasattr(type(self), name):
                return super().__getattribute__(name)  # raises what a property has raised
            meant = closest(name, _public(self))
            guess = "" if meant is None else f". Did you mean '{meant}'?"
            text = f"'{type(self).__name__}' object has no attribute '{name}'{guess}"
            raise AttributeError(text, name=name)  # told the name, Python adds no guess of its own


def _public(part: Part) -> list[str]:
    """Return the names of the attributes and methods that a part has for all."""
    return [each for each in (*vars(part), *dir(type(part))) if not each.startswith("_")]


def _refuse_made_up(part: Part, name: str, value: Any) -> None:
    """Refuse to assign a value to what is neither an attribute nor a property."""
    held = getattr(type(part), name, None)
    if held is not None and not callable(held):
        return
    kind = type(part)
    valid = [each for each in _public(part) if not callable(getattr(kind, each, None))]
    raise DeclarationError(
        f"Cannot assign {value!r:.80} to '{name}' of '{part.name}'",
        expected="an attribute that it has, or a context to set a value in",
        found="no attribute of that name" if held is None else "a method",
        remedy=suggestion(name, valid) if held is None else f"Call {part.name}.{name}(...)",
    )
