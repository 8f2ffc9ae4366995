"""What every test runs under."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Figures go to files, also on a machine that has a screen.
os.environ["MPLBACKEND"] = "Agg"

# The same draws in every run, and no verdict that depends on how busy the machine is.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def cache_of_native_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile into a folder of this run, neither reading nor filling the one of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEXURE_CACHE", str(tmp_path_factory.mktemp("native_code")))
        yield


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let the interrupt key interrupt, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
