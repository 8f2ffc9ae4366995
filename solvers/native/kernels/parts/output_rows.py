"""The rows in which a loop writes down what Python is to know.

The columns of a row are time, start, end and clip of the step, the state, the discrete values and,
where signals are logged, these. `RowLayout` has the places of all of them.
"""

from __future__ import annotations

from typing import NamedTuple

from flexure.solvers.native.language.language import Floats, Ints, Structure

# Kinds of rows
STEP = 0  # the end of a step
CHANGE = 1  # values after an update that changed something
SAMPLE = 2  # a publish; the mask tells which clocks are due
CROSSING = 3  # a witness event; the mask tells which functions triggered

MOST_ROWS = 4  # that are written at once

# The first columns
TIME = 0
BEGIN = 1  # of the last step
END = 2
CLIP = 3  # the equations were evaluated no later than this; before END where they jump there
STATE = 4


class RowLayout(NamedTuple):
    """The columns behind `CLIP`."""

    x: slice
    discrete: slice
    signals: slice

    @classmethod
    def of(cls, states: int, discrete: int, signals: int = 0) -> RowLayout:
        """Return the layout for numbers of states, discrete values and components of signals."""
        behind_x = STATE + states
        behind = behind_x + discrete
        return cls(slice(STATE, behind_x), slice(behind_x, behind), slice(behind, behind + signals))

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.signals.stop)


class RowData(Structure):
    """The rows of a run, and which of them are wanted."""

    recording: int  # whether those of steps and changes are
    stepwise: int  # whether something is published at every step
    logging: int  # whether there are signals to log
    used: int
    room: int
    kinds: Ints  # kind and mask of each row
    table: Floats
    width: int  # of a row
    discrete: int  # column of the first discrete value
    held: int  # how many discrete values a row has
    places: Ints  # which these are
    signals: int  # column of the first signal


def has_room(rows: RowData) -> bool:
    """Return whether the rows that are written at once fit."""
    return rows.used + MOST_ROWS <= rows.room
