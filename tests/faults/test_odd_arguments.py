"""Whatever is passed to a public function is taken or refused: by our own errors, soon, in full.

Every argument of every call of ``public_calls.py`` and ``public_methods.py`` in `tests/support` is
replaced by odd ones in turn. One run tries an eighth of them; ``FLEXURE_ODD=all`` tries each.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import FlexureError
from tests.support.calls.odd_arguments import ODD, Call, Hung, alarm
from tests.support.calls.public_methods import CALLS, NOT_CALLED

PUBLIC = {
    *vars(fx)["__all__"],
    *(name for place in (fx.compliance, fx.constraints) for name in vars(place)["__all__"]),
    *(name for place in (fx.diagrams, fx.fitting, fx.multibody) for name in vars(place)["__all__"]),
    *(name for place in (fx.laws, fx.plans, fx.results) for name in vars(place)["__all__"]),
    *vars(fx.sections)["__all__"],
}
PUBLIC |= {f"metrics.{name}" for name in vars(fx.metrics)["__all__"]}
#: Arguments that are called: what a wrong function raises is its own affair.
FUNCTIONS = {"calc", "distribution", "handler", "law", "monitor", "objective", "problem", "record"}
FUNCTIONS |= {"sampler"}
pytestmark = pytest.mark.full

#: In seconds of computing.
PATIENCE = 5.0
PARTS = 1 if os.environ.get("FLEXURE_ODD") == "all" else 8


@pytest.fixture(scope="module", autouse=True)
def _large_packages() -> None:
    """Import what takes as long the first time as a call may."""
    for name in ("pandas", "pyarrow", "xarray"):
        with suppress(ImportError):
            import_module(name)


@pytest.fixture(autouse=True)
def _quiet_workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let calls write files and draw figures that nobody keeps, and warn of odd values."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    plt.close("all")


def verdict(call: Call, argument: str, value: Any) -> str | None:
    """Say what is wrong with how a call takes a value; None where it is refused as it ought to."""
    before = repr(call.snapshot())
    try:
        with alarm(PATIENCE):
            call.function(**{**call.arguments, argument: value})
        return ""
    except FlexureError as error:
        str(error)  # whatever was passed can be shown
        if error.attempt.count("Cannot ") > 1:
            return f"one message in another: {error.attempt}"
    except OSError:
        return "" if argument == "path" else "an OSError"
    except Hung:
        return f"no answer within {PATIENCE:g} s"
    except BaseException as error:
        return f"{type(error).__name__}: {error!s:.100}"
    return None if repr(call.snapshot()) == before else "refused, and half changed"


@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments_are_taken_or_refused(name: str) -> None:
    call = CALLS[name]()
    wrong = []
    for row, argument in enumerate(call.arguments):
        for column, (odd, make) in enumerate(ODD.items()):
            value = make()
            if (row + column) % PARTS or (argument in FUNCTIONS and callable(value)):
                continue
            found = verdict(call, argument, value)
            if found:
                wrong.append(f"{argument}={odd}: {found}")
            if found is not None:  # what was refused has left all as it was
                call = CALLS[name]()
    if "anim" in name:
        del call
        gc.collect(1)  # films that nobody saves warn when they go
    assert wrong == []


def test_no_public_callable_is_left_out() -> None:
    called = [f"{call}." for call in CALLS]
    assert [n for n in PUBLIC - NOT_CALLED if not any(c.startswith(f"{n}.") for c in called)] == []
