"""Channels of a live run: values from partners into a context, and from it to partners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import FlexureError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray, as_number, check_bounds
from flexure.solvers.live_runs.connections.partners import Partner

#: Where components are among all that are read.
Indices = npt.NDArray[np.intp]


@dataclass
class Entry:
    """Where a value of a live run goes: a place of a context, or a wire that was cut."""

    path: str  # what the user calls it
    place: Place  # the port, parameter or state
    slot: int | None = None  # of the value that is read in place of the wire

    @property
    def size(self) -> int:
        """Number of components."""
        return len(self.place.components)

    @property
    def unit(self) -> str:
        """The unit, if one was declared."""
        return getattr(self.place.handle, "unit", "") or ""

    def checked(self, value: Any) -> FloatArray:
        """Return a value as numbers that fit."""
        shape = self.place.shape or ()
        with suppress(TypeError, ValueError):  # of what is refused below
            value = np.asarray(value, dtype=float).reshape(shape)
        number: FloatArray = as_number(value, shape, f"Cannot set '{self.path}'")
        return number

    def write(self, context: Context, value: Any) -> None:
        """Put a value into a context, with all checks."""
        if self.slot is None:
            self.place.write(context, self.checked(value))
            return
        number = self.checked(value)
        check_bounds(number, f"Cannot set '{self.path}'")
        context.store.fix(self.slot, number)

    def read(self, context: Context) -> FloatArray:
        """Return the present value, flat."""
        held = context.store.cache[self.slot] if self.slot is not None else None
        value = self.place.read(context) if held is None else held
        return np.reshape(np.asarray(value, dtype=float), -1)


class Channel:
    """One partner of a run, the paths it sends or takes, its state and its counts."""

    role = ""

    def __init__(self, paths: Sequence[str], partner: Partner) -> None:
        self.paths, self.partner = tuple(paths), partner
        self.count = self.refused = 0  # of values that were taken or sent, and that were not
        self.reason = ""  # why the last of them was not
        self.state = "no value yet"

    @property
    def name(self) -> str:
        """All paths as one text."""
        return ", ".join(self.paths)

    def open(self, size: int) -> None:
        """Begin a run."""
        self.partner.refused, self.partner.reason = 0, ""
        self.count = self.refused = 0
        self.reason, self.state = "", "no value yet"
        self.partner._open(self.role, size)  # type: ignore[arg-type]

    def refuse(self, reason: str) -> None:
        """Count a value that was not taken."""
        self.refused, self.reason = self.refused + 1, reason


class InputChannel(Channel):
    """Values from a partner: the last valid one holds, or a safe one once the partner is lost."""

    role = "input"

    def __init__(
        self,
        entries: Sequence[Entry],
        partner: Partner,
        timeout: float,
        safe: FloatArray | None,
        tell: Callable[[str], None],
    ) -> None:
        super().__init__([entry.path for entry in entries], partner)
        self.entries = entries
        self._timeout, self._safe, self._tell = timeout, safe, tell
        self.size = sum(entry.size for entry in entries)
        self.values: FloatArray = np.zeros(self.size)
        self._heard = 0.0

    def begin(self, context: Context, now: float) -> None:
        """Begin a run with the values of the context."""
        self.open(self.size)
        self.wait_again(now)
        self.take(context)

    def take(self, context: Context) -> None:
        """Read what is in the context."""
        self.values = np.concatenate([entry.read(context) for entry in self.entries])

    def wait_again(self, now: float) -> None:
        """Begin to wait for the next value now."""
        self._heard = now

    def poll(self, context: Context, time: float, now: float) -> None:
        """Take over what the partner has sent, and see whether it is still there."""
        before = self.partner.refused
        try:
            found = self.partner._read(time)
        except Exception as error:  # whatever a partner does, the run goes on
            found = None
            self.refuse(f"{type(error).__name__}: {error}"[:200])
        if self.partner.refused > before:
            self.refused += self.partner.refused - before
            self.reason = self.partner.reason
        if found is not None and self._put(context, found):
            self.count += 1
            self._heard = now
            if self.state == "lost":
                self._tell(f"{self.name} is back")
            self.state = "alive"
        elif self.state != "lost" and now - self._heard > self._timeout:
            self.state = "lost"
            held = "its last value holds" if self._safe is None else "its safe value holds"
            self._tell(f"{self.name} is lost, {held}")
            if self._safe is not None:
                self._put(context, self._safe)
        elif now < self._heard:  # a clock that has gone back
            self.wait_again(now)

    def _put(self, context: Context, value: Any) -> bool:
        """Put a value into the context; return whether it fits."""
        try:
            number = np.asarray(value, dtype=float).reshape(-1)
            if number.size != self.size:
                raise ValueError(f"{number.size} numbers in place of {self.size}")
            if not np.isfinite(number).all():
                raise ValueError("a number that is not finite")
            self.restore(context, number)
        except (FlexureError, TypeError, ValueError, OverflowError) as error:
            self.refuse(str(error)[:200])
            return False
        return True

    def restore(self, context: Context, number: FloatArray) -> None:
        """Put checked numbers into the context, where they differ from what is there."""
        if np.array_equal(number, self.values):
            return
        try:
            self._write(context, number)
        except FlexureError:  # the values before it hold, all of them
            self._write(context, self.values)
            raise
        self.values = number.copy()

    def _write(self, context: Context, number: FloatArray) -> None:
        start = 0
        for entry in self.entries:
            entry.write(context, number[start : start + entry.size])
            start += entry.size


class OutputChannel(Channel):
    """Values to a partner: those that are not finite are not sent."""

    role = "output"

    def __init__(
        self, paths: Sequence[str], partner: Partner, places: Indices, safe: FloatArray | None
    ) -> None:
        super().__init__(paths, partner)
        self.places, self._safe = places, safe

    def send(self, time: float, values: FloatArray) -> None:
        """Send values."""
        if not np.isfinite(values).all():
            self.refuse("a number that is not finite")
            return
        try:
            self.partner._write(time, values.tolist())
        except Exception as error:  # whatever a partner does, the run goes on
            self.refuse(f"{type(error).__name__}: {error}"[:200])
            self.state = "failing"
            return
        self.count += 1
        self.state = "alive"

    def end(self, time: float) -> None:
        """Leave the partner at a safe value, if there is one."""
        if self._safe is not None:
            self.send(time, self._safe)
