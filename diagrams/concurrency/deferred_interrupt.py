"""Defers keyboard interrupts while an operation must be completed."""

from __future__ import annotations

import signal
import threading
from typing import Any


class DeferredInterrupt:
    """Holds an interruption from the keyboard back inside of ``with`` blocks, until `deliver`.

    Outside of the main thread, which alone is interrupted, it does nothing.
    """

    def __init__(self) -> None:
        self.interrupted = False  # whether an interruption waits
        self._previous: Any = None
        self._is_wanted = False

    def __enter__(self) -> None:
        self._is_wanted = _can_be_interrupted()
        if self._is_wanted:
            self._previous = signal.signal(signal.SIGINT, self._note)

    def __exit__(self, *_: object) -> None:
        if self._is_wanted:
            signal.signal(signal.SIGINT, self._previous)

    def _note(self, *_: object) -> None:
        self.interrupted = True

    def deliver(self) -> None:
        """Interrupt now, if an interrupt is pending."""
        if self.interrupted:
            self.interrupted = False
            signal.raise_signal(signal.SIGINT)


def _can_be_interrupted() -> bool:
    """Return whether this thread can be interrupted, by a handler that can be put back."""
    return (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is not None
    )
