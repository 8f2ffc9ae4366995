"""Control of a live run: commands from any thread between two steps, Ctrl-C and SIGTERM."""

from __future__ import annotations

import itertools
import queue
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from flexure.diagrams.checks.errors import ContextError
from flexure.diagrams.concurrency.threads import Lock

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_WAITING, _AT_ONCE = 256, 16  # that wait, and that are carried out before a step


class Commands:
    """Commands to one run."""

    def __init__(self, attempt: str) -> None:
        self.lock = Lock()  # held while a command or a step changes values
        self.runner: int | None = None  # the thread that runs
        self._attempt = attempt
        self._waiting: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = queue.Queue(_WAITING)

    def begin(self) -> None:
        """Let this thread run, and no other."""
        with self.lock:
            if self.runner is not None:
                raise ContextError(
                    self._attempt, expected="one run at a time", found="a run that goes on"
                )
            self.runner = threading.get_ident()

    def end(self) -> None:
        """Let other threads run."""
        self.runner = None
        self.obey(every=True)

    def do(self, command: Callable[[], Any]) -> Any:
        """Carry a command out: at once, or before the next step of a run in another thread."""
        answer = self.order(command)
        while not answer.done():
            wait([answer], timeout=0.1)
            if self.runner is None:  # the run has ended meanwhile
                self.obey(every=True)
        return answer.result()

    def order(self, command: Callable[[], Any]) -> Future[Any]:
        """Let a command be carried out, without waiting for it."""
        answer: Future[Any] = Future()
        if self.runner in (None, threading.get_ident()):
            self._carry_out(command, answer)
            return answer
        try:
            self._waiting.put_nowait((command, answer))
        except queue.Full:
            expected = f"at most {_WAITING} commands that wait"
            answer.set_exception(ContextError(self._attempt, expected=expected, found="more"))
        return answer

    def obey(self, *, every: bool = False) -> None:
        """Carry out commands that wait, a few at a time."""
        for _ in itertools.count() if every else range(_AT_ONCE):
            try:
                command, answer = self._waiting.get_nowait()
            except queue.Empty:
                return
            self._carry_out(command, answer)

    def _carry_out(self, command: Callable[[], Any], answer: Future[Any]) -> None:
        try:
            with self.lock:
                found = command()
        except Exception as error:
            answer.set_exception(error)
        else:
            answer.set_result(found)


class Interruption:
    """Takes note of the first signal inside of a ``with`` block; a second one interrupts at once.

    Outside of the main thread, which alone is interrupted, it does nothing.
    """

    def __init__(self) -> None:
        self.name = ""  # of the signal; empty when none has come
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
