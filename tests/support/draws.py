"""How many cases one run of the tests tries: some of those that there are, or all.

``FLEXURE_ODD=all`` is for whoever changes what such tests are about.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import product
from typing import Any

EVERYTHING = os.environ.get("FLEXURE_ODD") == "all"


def draws(some: int, *, of: int) -> int:
    """Return how many cases are tried in this run."""
    return of if EVERYTHING else some


def by_turn(*several: Iterable[Any], last: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return all combinations of several things, each with one of the last that have their turns.

    So each of the last comes to each of the others where these are combined with enough.
    """
    kept, turns = [list(each) for each in several], list(last)
    if EVERYTHING:
        return list(product(*kept, turns))
    places = product(*(range(len(each)) for each in kept))
    return [
        (*(each[k] for each, k in zip(kept, place, strict=True)), turns[sum(place) % len(turns)])
        for place in places
    ]


__all__ = ["EVERYTHING", "by_turn", "draws"]
