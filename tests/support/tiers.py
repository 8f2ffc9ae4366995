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


def for_each(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test with all cases, one after the other; if it fails, the error lists which fail.

    It replaces ``pytest.mark.parametrize``, with the same arguments, for hundreds of cases that
    take milliseconds. Cases share the fixtures of the test.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    values = [case if len(keys) > 1 else (case,) for case in cases]
    assert values, f"there are no cases of {names}"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failed: list[tuple[Any, BaseException]] = []
            for case in values:
                try:
                    test(**fixtures, **dict(zip(keys, case, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    failed.append((case, error))
            if failed:
                listed = "; ".join(", ".join(map(str, case)) for case, _ in failed)
                count = f"{len(failed)} of {len(values)} cases of {', '.join(keys)} fail"
                failed[0][1].add_note(f"{count}: {listed}")
                raise failed[0][1]

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return decorate


__all__ = ["FULL", "by_tier", "by_turn", "for_each", "thinned"]
