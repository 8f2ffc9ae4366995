"""Copies of systems: everything below one root is copied or pickled together, as a flat list.

Whatever is reached first (a block, a port, a context), the whole of its diagram goes with it, as a
block without its wires would be another thing. Diagrams may be nested so deeply that following
them from parent to child would exhaust the stack of Python. So a system is saved as its number in
its `Household`, and the household as a list in which the innermost systems come first.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol, cast

from flexure.diagrams.checks.errors import DeclarationError


class Member(Protocol):
    """A system as far as copies are concerned."""

    @property
    def parent(self) -> Member | None:
        """The diagram around it."""

    @property
    def children(self) -> Sequence[Member] | None:
        """The systems in it."""


class Household:
    """A root system and all systems below it, the innermost ones first."""

    def __init__(self) -> None:
        self._members: dict[int, Member] = {}
        self._numbers: dict[Member, int] = {}

    @classmethod
    def of(cls, system: Member) -> Household:
        """Return the household of a system, always the same one for the same root."""
        root = system
        while root.parent is not None:
            root = root.parent
        found: Household | None = root.__dict__.get("_household")
        if found is None:  # of two threads that make it at once, both get the first one
            found = cast("Household", root.__dict__.setdefault("_household", cls._below(root)))
        return found

    @classmethod
    def _below(cls, root: Member) -> Household:
        order, stack = [], [root]
        while stack:
            order.append(stack.pop())
            stack.extend(order[-1].children or ())
        household = cls()
        household._members = dict(enumerate(reversed(order)))
        household._numbers = {system: number for number, system in household._members.items()}
        return household

    @property
    def members(self) -> list[Member]:
        """Its systems, the innermost ones first."""
        return list(self._members.values())

    def number_of(self, system: Member) -> int:
        """Return the number of a member."""
        return self._numbers[system]

    def member(self, number: int, kind: type[Member]) -> Member:
        """Return a member, which may still have to be filled."""
        if number not in self._members:
            self._members[number] = kind.__new__(kind)
        return self._members[number]

    def counterpart(self, system: Member) -> Any:
        """Return the member that a member of the original of this household was copied to."""
        return self._members[Household.of(system).number_of(system)]

    def when_copied(self, memo: dict[Any, Any], then: Callable[[Household], None]) -> None:
        """Call ``then(copy)`` if this household is copied later with this memory of `deepcopy`."""
        memo.setdefault((id(self), "then"), []).append(then)

    def __deepcopy__(self, memo: dict[Any, Any]) -> Household:
        twin = memo[id(self)] = Household()
        _, _, members = self.__reduce__()
        twin.__setstate__(copy.deepcopy(members, memo))
        for then in memo.get((id(self), "then"), ()):
            then(twin)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        members = [(type(system), system.__getstate__()) for system in self._members.values()]
        return Household, (), members

    def __setstate__(self, members: list[tuple[type[Member], Any]]) -> None:
        for number, (kind, state) in enumerate(members):
            _fill(self.member(number, kind), state)
        self._numbers = {system: number for number, system in self._members.items()}


def reduced(system: Member) -> tuple[Any, ...]:
    """Return what a system is pickled and copied as."""
    household = Household.of(system)
    return Household.member, (household, household.number_of(system), type(system))


def detached(leaf: Any) -> Any:
    """Return a copy of a block that is in no diagram, and takes further declarations.

    Blocks beside it in its diagram are not copied with it: what it knows of them is theirs.
    """
    kind: Any = type(leaf)
    twin = kind.__new__(kind)
    memo = {id(each): each for each in Household.of(leaf).members} | {id(leaf): twin}
    _fill(twin, copy.deepcopy(leaf.__getstate__(), memo))
    free = {"parent": None, "claimed_by": None, "_layout": None, "_frozen": False}
    twin.__dict__.update(free)
    return twin


def _fill(thing: Any, state: Any) -> None:
    """Give an object the state that ``__getstate__`` returned."""
    if hasattr(thing, "__setstate__"):
        thing.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    thing.__dict__.update(attributes or {})
    for name, value in (slots or {}).items():
        setattr(thing, name, value)


def refuse_copy(subject: str, whole: str, remedy: str = "Make another one") -> NoReturn:
    """Refuse a copy of something without what it belongs to."""
    raise DeclarationError(
        f"Cannot copy {subject}",
        expected=f"one of it in {whole}",
        found="a copy of it alone",
        remedy=f"{remedy}, or copy {whole} with copy.deepcopy",
    )
