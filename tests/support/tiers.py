"""The two tiers of the tests: what a battery tries in each, and loops over cases that cost little.

`pytest` runs the fast tier; `pytest -m ""` runs everything. Tests and files that only the full tier
runs have the mark ``full``; batteries choose how much they try with `by_tier`.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
Test = TypeVar("Test", bound=Callable[..., None])

#: The class of what `pytest.param` returns.
_PARAM = type(pytest.param())
#: Whether this run includes the full tier; `conftest.py` of the root sets the variable.
FULL = os.environ.get("FLEXURE_TIER") == "full"


def by_tier(*, fast: T, full: T) -> T:
    """Return what the tier of this run takes, such as a number of draws or a list of cases."""
    return full if FULL else fast


def thinned(cases: Iterable[T], *, fast: int) -> list[T]:
    """Return all cases in the full tier, and some in the fast one, spread over all of them."""
    every = list(cases)
    few = [every[k * len(every) // fast] for k in range(min(fast, len(every)))]
    return by_tier(fast=few, full=every)


def by_turn(*several: Iterable[Any], last: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return all combinations of several things, each with one of the last that have their turns.

    So each of the last comes to each of the others where these are combined with enough.
    """
    kept, turns = [list(each) for each in several], list(last)
    places = product(*(range(len(each)) for each in kept))
    return [
        (*(each[k] for each, k in zip(kept, place, strict=True)), turns[sum(place) % len(turns)])
        for place in places
    ]


def crossed(several: Iterable[Any], last: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return all combinations of two things in the full tier, and `by_turn` in the fast one."""
    kept, turns = [*several], [*last]
    return by_tier(fast=by_turn(kept, last=turns), full=[*product(kept, turns)])


def for_each(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test with all cases, one after the other; if it fails, the error lists which fail.

    It replaces ``pytest.mark.parametrize``, with the same arguments, for hundreds of cases that
    take milliseconds. Cases share the fixtures of the test, and have no marks of their own.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    tried: list[tuple[str, Sequence[Any]]] = []
    for case in cases:
        values = case if len(keys) > 1 else (case,)
        if isinstance(case, _PARAM):
            assert not case.marks
            values = case.values
        tried.append((getattr(case, "id", None) or ", ".join(map(str, values)), values))
    assert tried, f"there are no cases of {names}"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failed: dict[str, BaseException] = {}
            for label, values in tried:
                try:
                    test(**fixtures, **dict(zip(keys, values, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    failed[label] = error
            if failed:
                first = next(iter(failed.values()))
                count = f"{len(failed)} of {len(tried)} cases of {', '.join(keys)} fail"
                first.add_note(f"{count}: {'; '.join(failed)}")
                raise first

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return decorate
