"""The progress of long simulations: shown where a person watches, stopped where one wants to."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from sys import modules
from types import TracebackType
from typing import Any, Self


def in_notebook() -> bool:
    """Tell whether this process runs the cells of a notebook, whose stderr is no terminal."""
    if (type(sys.stderr).__module__ or "").startswith("ipykernel"):
        return True
    shell = getattr(modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in (getattr(shell, "config", None) or ())


class ProgressBar:
    """Shows simulation time on a terminal or in a notebook: with tqdm if installed, else on a line.

    Parameters
    ----------
    start, end : float
        Simulation time in seconds.
    show : bool
        Whether to show anything; nothing is shown either when stderr leads to a file or pipe.
    stopping : threading.Event, optional
        When it is set, the simulation is interrupted like one in the main thread by the keyboard.
    doing, unit : str
        What goes on, and in what it is counted if that is no time.
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
        self.active = show and end > start and (self._notebook or is_terminal())
        self._bar: Any = None
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        if self.active:
            try:
                tqdm = importlib.import_module("tqdm")
                if self._notebook:
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

    def update(self, now: float) -> None:
        """Show a simulation time, at most ten times per second of real time.

        Raises
        ------
        KeyboardInterrupt
            When the simulation is to stop.
        """
        if self._stopping is not None and self._stopping.is_set():
            raise KeyboardInterrupt
        if not self.active or (now < self.end and time.monotonic() - self._shown_at < 0.1):
            return
        self._shown_at = time.monotonic()
        if self._bar is not None:
            self._bar.n = round(now - self.start, 9)
            self._bar.refresh()
        else:
            share = (now - self.start) / (self.end - self.start)
            what = "t = " if self._unit == "s" else ""
            amount = f"{what}{now:.4g} of {self.end:.4g} {self._unit}"
            sys.stderr.write(f"\r{self._doing} {share:4.0%}  {amount}")
            sys.stderr.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self.active:
            sys.stderr.write("\n")
