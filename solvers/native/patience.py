"""Letting the interrupt key wait while something must not be left half done."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Patience:
    """Holds an interruption from the keyboard back inside of ``with`` blocks, until `deliver`.

    Outside of the main thread, which alone is interrupted, it does nothing.
    """

    def __init__(self) -> None:
        self.is_wanted = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is not None
        )
        self._previous: Any = None
        self._missed: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> None:
        if self.is_wanted:
            self._previous = signal.signal(signal.SIGINT, self._note)

    def __exit__(self, *_: object) -> None:
        if self.is_wanted:
            signal.signal(signal.SIGINT, self._previous)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._missed = number, frame

    @property
    def interrupted(self) -> bool:
        """Whether an interruption waits."""
        return self._missed is not None

    def deliver(self) -> None:
        """Do what the interruption would have done, if there was one."""
        if self._missed is not None:
            missed, self._missed = self._missed, None
            if callable(self._previous):
                self._previous(*missed)


__all__ = ["Patience"]
