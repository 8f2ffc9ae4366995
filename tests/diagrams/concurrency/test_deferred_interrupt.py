"""Patience: the interrupt key waits while something must not be left half done."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from flexure.diagrams.concurrency.deferred_interrupt import DeferredInterrupt


@pytest.fixture
def presses() -> Iterator[list[int]]:
    """Note when the interrupt key has its effect."""
    found: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: found.append(number))
    yield found
    signal.signal(signal.SIGINT, before)


def test_the_key_has_its_effect_once_and_not_before_it_is_delivered(presses: list[int]) -> None:
    patience = DeferredInterrupt()
    handler = signal.getsignal(signal.SIGINT)
    with patience:
        signal.raise_signal(signal.SIGINT)
    assert patience.interrupted
    assert presses == []
    assert signal.getsignal(signal.SIGINT) is handler
    patience.deliver()
    patience.deliver()
    assert presses == [signal.SIGINT]
    assert not patience.interrupted


def test_without_a_press_nothing_is_delivered(presses: list[int]) -> None:
    patience = DeferredInterrupt()
    for _ in range(2):
        with patience:
            pass
        patience.deliver()
    assert presses == []


@pytest.mark.usefixtures("interruptible")
def test_the_usual_effect_is_an_exception_where_it_is_delivered() -> None:
    patience = DeferredInterrupt()
    with patience:
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        patience.deliver()


def test_a_press_is_ignored_where_it_was_ignored_before(presses: list[int]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    patience = DeferredInterrupt()
    with patience:
        signal.raise_signal(signal.SIGINT)
    patience.deliver()
    assert presses == []


def test_in_another_thread_it_does_nothing(presses: list[int]) -> None:
    handler = signal.getsignal(signal.SIGINT)

    def inside() -> object:
        with DeferredInterrupt():
            return signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(inside).result() is handler
