"""How many random cases one run of the tests tries: some of them, or all.

``FLEXURE_ODD=all`` is for whoever changes what such tests are about.
"""

from __future__ import annotations

import os

EVERYTHING = os.environ.get("FLEXURE_ODD") == "all"


def draws(some: int, *, of: int) -> int:
    """Return how many cases are tried in this run."""
    return of if EVERYTHING else some


__all__ = ["EVERYTHING", "draws"]
