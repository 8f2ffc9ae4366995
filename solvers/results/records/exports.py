"""Tables of the signals of a simulation, as arrays, files, data frames and data sets."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.checks.errors import RecordFileError
from flexure.diagrams.checks.extras import import_extra
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.records.stored_signals import StoredSignal
from flexure.solvers.tracing.signals import Reader

#: Which values a table has at an instant at which something jumps.
Jumps: TypeAlias = Literal["both", "before", "after"]
_ROWS = 10_000  # of a table that are written at once


class Series(NamedTuple):
    """A signal at the times of a table.

    Attributes
    ----------
    name : str
        Its path.
    reader : Reader or StoredSignal
        What was read.
    values : ndarray, shape (k,) or (k, n)
        One row per time.
    """

    name: str
    reader: Reader | StoredSignal
    values: FloatArray

    def columns(self) -> dict[str, FloatArray]:
        """Return one entry per component."""
        if self.values.ndim == 1:
            return {self.name: self.values}
        labels = self.reader.labels
        return {f"{self.name}[{label}]": self.values[:, k] for k, label in enumerate(labels)}


class SignalTable(NamedTuple):
    """Signals at common times.

    Attributes
    ----------
    time : ndarray, shape (k,)
        The times in seconds.
    series : list of Series
        The signals.
    """

    time: FloatArray
    series: list[Series]

    @property
    def units(self) -> dict[str, str]:
        """Units by column; empty where they are unknown."""
        pairs = [(name, each.reader.unit) for each in self.series for name in each.columns()]
        return {"time": "s"} | dict(pairs)

    def columns(self) -> dict[str, FloatArray]:
        """Return one entry per component, the times first."""
        table = {"time": self.time}
        for each in self.series:
            table |= each.columns()
        return table

    def arrays(self) -> dict[str, FloatArray]:
        """Return one entry per signal, the times first."""
        return {"time": self.time} | {each.name: each.values for each in self.series}

    def to_csv(self, path: str | Path, units: bool) -> None:
        """Write a file with one column per component."""
        columns, known = self.columns(), self.units if units else {}
        with writing(path, newline="") as file:
            writer = csv.writer(file)
            writer.writerow(f"{c} [{known[c]}]" if known.get(c) else c for c in columns)
            for first in range(0, len(self.time), _ROWS):  # numbers as objects take much memory
                some = (column[first : first + _ROWS].tolist() for column in columns.values())
                writer.writerows(
                    [repr(number) for number in row] for row in zip(*some, strict=True)
                )

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with time as its index."""
        pandas = import_extra("pandas")
        columns = self.columns()
        time = columns.pop("time")
        frame = pandas.DataFrame(columns, index=pandas.Index(time, name="time"))
        frame.attrs["units"] = self.units
        return frame

    def to_xarray(self) -> Any:
        """Return an xarray Dataset with the dimension time."""
        xarray = import_extra("xarray")
        variables: dict[str, Any] = {}
        coordinates: dict[str, Any] = {"time": ("time", self.time, {"units": "s"})}
        for name, reader, values in self.series:
            known = {"units": reader.unit, "long_name": reader.doc}
            notes = {key: text for key, text in known.items() if text}
            dims = ["time", f"{name}_component"][: values.ndim]
            variables[name] = (dims, values, notes)
            coordinates |= dict.fromkeys(dims[1:], reader.labels)
        return xarray.Dataset(variables, coords=coordinates)


@contextmanager
def writing(
    path: str | Path, newline: str | None = None, *, binary: bool = False
) -> Iterator[IO[Any]]:
    """Open a file that takes the place of another one once all of it is written.

    Raises
    ------
    RecordFileError
        When it cannot be written; what was there before is unchanged.
    """
    try:
        with replacing(path, newline, binary=binary) as file:
            yield file
    except OSError as error:
        raise RecordFileError(
            f"Cannot write signals to '{path}'",
            expected="the name of a file that can be written, and room for it",
            found=error.strerror or str(error),
            remedy="A file of this name is unchanged",
        ) from error


def make_table(
    names: Sequence[str],
    readers: Sequence[Reader],
    sample: Callable[[FloatArray], list[FloatArray]],
    grid: FloatArray,
    jumps: Jumps,
) -> SignalTable:
    """Sample signals at times, of which those with jumps may be there twice.

    Parameters
    ----------
    names : sequence of str
        Paths of the signals.
    readers : sequence of Reader
        What they read.
    sample : callable
        ``sample(times) -> list of arrays``, of which the first of two equal times means before a
        jump, and a single one or the second after it.
    grid : ndarray
        Ascending times.
    jumps : {"both", "before", "after"}
        What to keep of two equal times.
    """
    one_of(jumps, get_args(Jumps), "jumps", "Cannot make a table of signals")
    step = 1
    if jumps != "both":
        grid = np.unique(grid)
    if jumps == "before":
        grid, step = np.repeat(grid, 2), 2
    values = [array[::step] for array in sample(grid)]
    series = [Series(*each) for each in zip(names, readers, values, strict=True)]
    return SignalTable(np.array(grid[::step]), series)
