"""Ctrl-C and SIGTERM during a live run: it ends in order, and then the signal has its effect."""

from __future__ import annotations

import signal
import threading
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Takes note of the first signal inside of a ``with`` block; a second one interrupts at once.

    Outside of the main thread, which alone is interrupted, it does nothing.

    Attributes
    ----------
    name : str
        Of the signal; empty when none has come.
    """

    def __init__(self) -> None:
        self.name = ""
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                if before not in (None, signal.SIG_IGN):
                    self._previous[number] = before
                    signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._previous.items():
            signal.signal(number, before)

    def _note(self, number: int, _: object) -> None:
        if self.name:
            raise KeyboardInterrupt
        self.name = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"

    def deliver(self) -> None:
        """End the program, or call its own handler, when it was SIGTERM."""
        if self.name == "SIGTERM":
            if self._previous[signal.SIGTERM] is signal.SIG_DFL:
                raise SystemExit(128 + signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
