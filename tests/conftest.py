"""What the tests in this folder run under, beside what `conftest.py` above it says."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from _pytest.doctest import DoctestModule

from tests.support.pages.browser import running_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Leave out doctests: files of tests have none, and looking for them takes seconds."""
    collectors = yield
    return [each for each in collectors if not isinstance(each, DoctestModule)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave all that opens a browser to the full tier."""
    for item in items:
        if isinstance(item, pytest.Function) and "browser" in item.fixturenames:
            item.add_marker(pytest.mark.full)


@pytest.fixture(autouse=True)
def no_figures_stay() -> Iterator[None]:
    """Close the figures that a test leaves open."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let the interrupt key interrupt, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Run a Chromium without a window, as long as the tests of one file need it."""
    with running_chromium() as chromium:
        yield chromium
