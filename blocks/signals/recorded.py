"""Recorded signals: measurements and earlier runs that are played into a diagram."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from flexure.blocks.signals.argument_shapes import refusal
from flexure.blocks.signals.sources import Trajectory
from flexure.blocks.signals.table_files import FORMATS, Columns, bare, read_table, spread
from flexure.diagrams.checks.arguments import file_path, items_of, require, shown
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError, quoted, warn
from flexure.diagrams.values.arrays import Array, FloatArray, as_numbers, bounded

#: Columns that are chosen: all, one, several, or several by port.
_Signals: TypeAlias = str | Iterable[str] | Mapping[str, str] | None

_LONG = 10.0  # typical intervals from which on an interval counts as a gap
_MOST_NAMES = 5


class Recorded(Trajectory):
    """Recorded signals from a file, arrays or a result, played at their times.

    ``y(times[k]) = rows[k]``. Each column is an output port with its name and its unit, and ``y``
    holds all of them as one vector. Between the rows the signals are interpolated as by
    `Trajectory`; before the first and after the last row, they are held.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    source : str, Path, mapping, DataFrame, SimulationResult or StoredResult
        The name of a file: CSV (a row of names, rows of numbers below), a NumPy archive (.npz), a
        MAT file, also with the result of a Modelica tool, Parquet or Arrow; or columns by name.
        Where a result jumps, the value after the jump is played.
    signals : str, iterable of str, or mapping, optional
        Columns; all but the time when omitted. A mapping gives ports other names:
        ``{"current": "Motor Current [A]"}``.
    time : str
        Column of the times in seconds, strictly increasing.
    kind : {"linear", "hold", "cubic"}
        What happens between two rows.
    units : mapping, optional
        Units by port. By default those of the source, such as V of a column ``"u [V]"``.
    gap : float, optional
        Longest interval between two rows, in s, that is played without a warning; ten median
        intervals when omitted.

    Attributes
    ----------
    columns : tuple of str
        Names of the ports of the columns, in the order of ``y``.

    Raises
    ------
    ValueRefusedError
        When a file cannot be read, a column is missing, times do not increase, or a number is not
        finite; the text names the line.
    DeclarationError
        When a column has a name that no port can have, or ``kind`` is unknown.

    Warns
    -----
    UserWarning
        When there are gaps.

    See Also
    --------
    Trajectory : Points that are known as arrays.
    load_result : Read a stored run.

    Notes
    -----
    The rows are the parameter ``values``. The work for one value is proportional to the number of
    rows, and integrators stop at each of them, but for cubic splines.

    Examples
    --------
    >>> import flexure as fx
    >>> bench = {"t [s]": [0.0, 1.0, 2.0], "u [V]": [0.0, 3.0, 4.0], "i [A]": [0.0, 0.5, 0.1]}
    >>> drive = fx.Recorded("drive", bench, time="t")
    >>> drive.columns, drive.named_port("u").unit
    (('u', 'i'), 'V')
    >>> print(fx.simulate(drive, 1.5)["u"][-1])
    3.5
    """

    def __init__(
        self,
        name: str,
        source: Any,
        signals: _Signals = None,
        *,
        time: str = "time",
        kind: Literal["linear", "hold", "cubic"] = "linear",
        units: Mapping[str, str] | None = None,
        gap: float | None = None,
    ) -> None:
        attempt = f"Cannot make the {type(self).__name__} '{name}'"
        require(isinstance(time, str), time, attempt, "the name of a column as time")
        table = _table(source, signals, time, attempt)
        clock = table.find(time, attempt)
        if table.unit(clock) not in ("", "s"):
            raise ValueRefusedError(
                attempt, expected="times in s", found=f"the column '{clock}'", remedy="Convert it"
            )
        chosen = _chosen(table, clock, signals, attempt)
        times = _numbers(table, clock, attempt)
        rows = np.column_stack([_numbers(table, each, attempt) for each in chosen.values()])
        _check_times(table, times, attempt)
        super().__init__(name, times, rows, kind)
        fits = units is None or isinstance(units, Mapping)
        require(fits, units, attempt, "a mapping as units", error=DeclarationError)
        for port in set(units or ()) - set(chosen):
            raise refusal(self, f"units by port, of {quoted(chosen)}", f"'{port}'")
        self.columns = tuple(chosen)
        self.row = self.declare_cache_entry("row", self._calculation, prerequisites=self._needs)
        self.y.element_names = self.columns
        for k, (port, column) in enumerate(chosen.items()):
            unit = (units or {}).get(port, table.unit(column))
            if port != "y":
                self.declare_vector_output(
                    port, 1, partial(self._calc_column, k), prerequisites=[self.row], unit=unit
                )
            elif len(chosen) > 1:
                remedy = "Pass signals={'other_name': 'y', ...}"
                raise refusal(self, "'y' to be the output of all columns", "a column 'y'", remedy)
        self._warn_of_gaps(gap, attempt)

    def _calc_column(self, k: int, context: Any) -> Array:
        return self.row(context)[k : k + 1]

    def _warn_of_gaps(self, gap: float | None, attempt: str) -> None:
        """Name the intervals that are longer than others."""
        longest = _LONG * float(np.median(self._lengths))
        if gap is not None:
            longest = bounded(gap, f"{attempt} with this gap", lower=0.0, unit="s")
        at = np.flatnonzero(self._lengths > longest)
        if at.size:
            named = [f"{self.times[k]:g} to {self.times[k + 1]:g} s" for k in at[:_MOST_NAMES]]
            more = f" and {at.size - len(named)} more" if at.size > len(named) else ""
            what = "the last value is held" if self.kind == "hold" else "values are interpolated"
            warn(
                f"'{self.name}' has gaps, in which {what}: {', '.join(named)}{more}. "
                "Pass gap=, the longest interval in s that is none"
            )


def _table(source: Any, signals: _Signals, time: str, attempt: str) -> Columns:
    """Return the columns of whatever holds some."""
    if isinstance(source, (str, os.PathLike)):
        return read_table(file_path(source, attempt), attempt)
    if isinstance(source, Mapping):
        what = f"{attempt} with these values"
        return spread({str(name): as_numbers(each, what) for name, each in source.items()})
    if hasattr(source, "columns") and hasattr(source, "iloc"):  # a DataFrame
        values = {str(name): source.iloc[:, k].to_numpy() for k, name in enumerate(source.columns)}
        index = {str(source.index.name): source.index.to_numpy()} if source.index.name else {}
        return Columns({**index, **values}, dict(source.attrs.get("units", {})), [])
    if hasattr(source, "outcome") and hasattr(source, "unit_of"):  # a result
        names = source.signals if signals is None else _by_port(signals, attempt).values()
        both = {name: np.asarray(source[name]) for name in names}
        times, last = np.unique(np.asarray(source.time)[::-1], return_index=True)
        after = {name: values[len(values) - 1 - last] for name, values in both.items()}
        return spread({**after, time: times}, {name: source.unit_of(name) for name in names})
    raise ValueRefusedError(
        attempt,
        expected=f"the name of a file ({FORMATS}), columns by name, a DataFrame or a result",
        found=shown(source),
    )


def _by_port(signals: _Signals, attempt: str) -> dict[str, str]:
    """Return the chosen columns by port, as they were named."""
    if isinstance(signals, Mapping):
        return {str(port): str(column) for port, column in signals.items()}
    given = [signals] if isinstance(signals, str) else items_of(signals, "names", attempt)
    return {_plain(str(each)): str(each) for each in given}


def _plain(name: str) -> str:
    """Return what a port of a column is called."""
    return re.sub(r"\W+", "_", bare(name)).strip("_")


def _chosen(table: Columns, clock: str, signals: _Signals, attempt: str) -> dict[str, str]:
    """Return columns by port."""
    if signals is None:
        names = [each for each in table.values if each != clock]
        by_port = dict(zip(map(_plain, names), names, strict=True))
        if len(by_port) < len(names):
            raise ValueRefusedError(
                attempt,
                expected="columns whose names differ in letters and digits",
                found=quoted(names),
                remedy="Pass signals={'port': 'column', ...}",
            )
    else:
        by_port = _by_port(signals, attempt)
    if not by_port:
        raise ValueRefusedError(attempt, expected="a column beside the time", found="none")
    found: dict[str, str] = {}
    for port, column in by_port.items():
        parts = [each for each in table.values if each.startswith(f"{column}[")]
        if column in table.values or len(parts) < 2:
            found[port] = table.find(column, attempt)
        else:
            found |= {_plain(port + part[len(column) :]): part for part in parts}
    return found


def _numbers(table: Columns, name: str, attempt: str) -> FloatArray:
    """Return a column of finite numbers, or name the line of the first that is not."""
    numbers = as_numbers(table.values[name], f"{attempt} with the column '{name}'")
    if numbers.ndim != 1:
        found = f"the shape {numbers.shape}"
        raise ValueRefusedError(attempt, expected=f"one row of numbers for '{name}'", found=found)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise ValueRefusedError(
            f"{attempt} with the column '{name}'",
            expected="finite numbers",
            found=f"{numbers[bad[0]]} in {table.row(int(bad[0]))}, in {bad.size} rows altogether",
            remedy="Leave out these rows, or choose other columns with signals=",
        )
    return numbers


def _check_times(table: Columns, times: FloatArray, attempt: str) -> None:
    """Refuse times that do not increase, and columns of other lengths."""
    bad = np.flatnonzero(~(np.diff(times) > 0.0))
    if bad.size:
        k = int(bad[0])
        raise ValueRefusedError(
            attempt,
            expected="times that increase strictly",
            found=f"{times[k + 1]:g} s in {table.row(k + 1)} after {times[k]:g} s",
            remedy="Sort the rows by time, and leave out repetitions; exports of results have none "
            "with jumps='after'",
        )
