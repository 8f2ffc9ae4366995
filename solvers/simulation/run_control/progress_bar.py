"""The progress of long work: shown where a person looks, stopped where one wants to."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from sys import modules
from types import TracebackType
from typing import Any, Self

from flexure.diagrams.concurrency.warnings_and_garbage import quietly


def in_notebook() -> bool:
    """Return whether this process runs the cells of a notebook, whose stderr is no terminal."""
    if (type(sys.stderr).__module__ or "").startswith("ipykernel"):
        return True
    shell = getattr(modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in (getattr(shell, "config", None) or ())


_PAUSE = 0.1  # s between two updates of what a person watches
_LINES = 10.0  # s between two lines of what leads to a file or pipe


def in_minutes(seconds: float) -> str:
    """Write a duration as a clock does."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class ProgressBar:
    """Shows how far something is, how fast it goes, what has failed, and the time that is left.

    On a terminal that is one line, which tqdm writes where it is installed, and in a notebook the
    bar that tqdm has for notebooks. A file or pipe receives a line every ten seconds, so that short
    work writes nothing there.

    ``start`` and ``end`` are simulation times in seconds, or what is counted. When ``stopping`` is
    set, the simulation is interrupted like one in the main thread by the keyboard. ``doing`` is
    what goes on, and ``unit`` in what it is counted if that is no time.
    """

    def __init__(
        self,
        start: float,
        end: float,
        show: bool,
        stopping: threading.Event | None = None,
        *,
        doing: str = "simulating",
        unit: str = "s",
    ) -> None:
        self.start = start
        self.end = end
        self._stopping = stopping
        self._doing, self._unit = doing, unit
        is_terminal = getattr(sys.stderr, "isatty", bool)  # a process may have no stderr
        self._notebook = show and in_notebook()
        self._watched = self._notebook or bool(is_terminal())
        self.active = show and end > start and callable(getattr(sys.stderr, "write", None))
        self._bar: Any = None
        self._began = self._shown_at = 0.0
        self._before = start
        self._shown: str | None = None

    def __enter__(self) -> Self:
        if self.active:
            self._began = time.monotonic()
            self._shown_at = 0.0 if self._watched else self._began
        if self.active and self._watched:
            try:
                tqdm = importlib.import_module("tqdm")
                if self._notebook:
                    with quietly():  # without ipywidgets it warns, and makes a bar of text
                        tqdm = importlib.import_module("tqdm.auto")
            except ImportError:
                return self
            self._bar = tqdm.tqdm(
                total=round(self.end - self.start, 9),
                unit=self._unit,
                desc=self._doing,
                file=sys.stderr,
            )
        return self

    def begin_at(self, now: float) -> None:
        """Note what was done before, which took none of this time."""
        self._before = now
        if self._bar is not None:
            self._bar.initial = self._bar.n = round(now - self.start, 9)

    @property
    def due(self) -> bool:
        """Whether it is time to show something again."""
        pause = _PAUSE if self._watched else _LINES
        return self.active and time.monotonic() - self._shown_at >= pause

    def update(self, now: float, failed: int = 0) -> None:
        """Show a simulation time or count, at most ten times per second of real time."""
        if self._stopping is not None and self._stopping.is_set():
            raise KeyboardInterrupt
        if not self.active:
            return
        ended = now >= self.end and (self._watched or self._shown is not None)
        if not ended and not self.due:
            return
        self._shown_at = time.monotonic()
        if self._bar is not None:
            self._bar.n = round(now - self.start, 9)
            if failed:
                self._bar.set_postfix_str(f"{failed} failed", refresh=False)
            self._bar.refresh()
        else:
            self._write(self._line(now, failed))

    def _line(self, now: float, failed: int) -> str:
        """Return all that is known in a line."""
        share = (now - self.start) / (self.end - self.start)
        amount = f"{'t = ' if self._unit == 's' else ''}{now:.4g} of {self.end:.4g} {self._unit}"
        if self._unit != "s":
            amount = f"{now:.0f} of {self.end:.0f} {self._unit}"
        parts = [f"{self._doing} {share:4.0%}  {amount}"]
        elapsed, done = self._shown_at - self._began, now - self._before
        if elapsed > 0.0 and done > 0.0:
            parts.append(f"{done / elapsed:.3g} {self._unit}/s")
            left = (self.end - now) * elapsed / done
            parts.append(f"{in_minutes(left)} left" if left else f"in {in_minutes(elapsed)}")
        if failed:
            parts.append(f"{failed} failed")
        return ", ".join(parts)

    def _write(self, line: str) -> None:
        """Write a line, over the last one on a terminal."""
        if line == self._shown:
            return
        room = " " * (len(self._shown or "") - len(line))
        text = f"\r{line}{room}" if self._watched else f"{line}\n"
        self._shown = line
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):  # nobody reads it any more
            self.active = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self.active and self._watched:
            sys.stderr.write("\n")
