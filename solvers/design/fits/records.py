"""Records of measurements: from arrays, data frames and files to checked columns of numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.blocks.signals.table_files import FORMATS, read_table
from flexure.diagrams.checks.arguments import file_path, items_of, require_known, shown
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place, Way, find_place, path_of, several
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, as_numbers, freeze
from flexure.diagrams.values.state import ContinuousState
from flexure.solvers.analysis.equations.equations import carries_vector, slot_of
from flexure.solvers.analysis.linear_models.prescribed_inputs import Drive
from flexure.solvers.results.records.result import SimulationResult

_TIME = "time"
_FORM = (
    "a mapping with 'time' and a column for each signal, a DataFrame, the name of a file "
    f"({FORMATS}), or a SimulationResult"
)


@dataclass(frozen=True, eq=False)
class Record:
    """One measured time series."""

    times: FloatArray  # ascending times in seconds, shape (k,)
    outputs: dict[str, FloatArray]  # measured signals, of shape (k, size), by path
    inputs: dict[str, FloatArray]  # what drove free input ports, likewise
    places: dict[str, Place]  # where these signals are, by path

    def drives(self, context: Context) -> list[Drive]:
        """Return what the measured inputs do to the ports of a context."""
        points: dict[int, FloatArray] = {}
        for path, values in self.inputs.items():
            place = self.places[path]
            slot = slot_of(context, place.handle)
            if slot not in points:
                held = context.store.value(slot) if place.part is not None else 0.0
                points[slot] = np.tile(held, (len(self.times), 1)) + np.zeros(place.handle.size)
            points[slot][:, place.components] = values
        return [Drive(slot, self.times, freeze(values)) for slot, values in points.items()]


def smallest_signal(records: Iterable[Record]) -> float:
    """Return the largest value of the measured signal that has the smallest one, but for zero."""
    sizes = [np.max(np.abs(values)) for record in records for values in record.outputs.values()]
    return float(min((size for size in sizes if size > 0.0), default=1.0))


def read_records(
    system: System, records: Any, signals: Way | Iterable[Way] | None, attempt: str
) -> list[Record]:
    """Read one record or several; refuse gaps, NaN, times that do not ascend, and other columns."""
    kinds = Mapping, str, os.PathLike, SimulationResult
    one = isinstance(records, kinds) or hasattr(records, "columns")
    given = (records,) if one else items_of(records, f"records, each {_FORM}", attempt)
    if not given:
        raise ValueRefusedError(attempt, expected="at least one record", found="none")
    chosen = None if signals is None else [path_of(way) for way in several(signals)]
    found = []
    for number, each in enumerate(given):
        where = attempt if len(given) == 1 else f"{attempt} to record {number}"
        found.append(_checked(system, _columns(each, chosen, where), chosen, where))
    return found


def names_of(place: Place) -> list[str]:
    """Return what the components are called: by the path that led there, if it is a single one."""
    return [place.path] if place.components.size == 1 else place.names


def unit_of(place: Place) -> str:
    """Return the unit of a signal, if it is known: states have none."""
    return str(getattr(place.handle, "unit", ""))


def _columns(record: Any, chosen: Sequence[str] | None, attempt: str) -> dict[str, Any]:
    """Return the columns of a record by path."""
    if isinstance(record, SimulationResult):
        columns = _simulated(record, chosen, attempt)
    elif isinstance(record, Mapping):
        columns = {path_of(key): values for key, values in record.items()}
    elif isinstance(record, (str, os.PathLike)):
        columns = read_table(file_path(record, attempt), attempt).values
    elif hasattr(record, "columns") and hasattr(record, "index"):  # a DataFrame
        names = [path_of(name) for name in record.columns]
        columns = {name: record.iloc[:, k].to_numpy() for k, name in enumerate(names)}
        if len(columns) < len(names):
            raise ValueRefusedError(attempt, expected="every column once", found=quoted(names))
        if not {_TIME, f"{_TIME} [s]"} & columns.keys():
            columns = {_TIME: record.index.to_numpy(), **columns}
    else:
        raise ValueRefusedError(attempt, expected=_FORM, found=shown(record))
    if f"{_TIME} [s]" in columns:
        columns[_TIME] = columns.pop(f"{_TIME} [s]")
    if _TIME not in columns:
        raise ValueRefusedError(
            attempt, expected="a column 'time' with times in seconds", found=quoted(columns)
        )
    return columns


def _simulated(
    result: SimulationResult, chosen: Sequence[str] | None, attempt: str
) -> dict[str, Any]:
    """Return chosen signals of a simulation at its steps; after a jump where there is one."""
    if not chosen:
        raise ValueRefusedError(
            attempt,
            expected="signals=, the measured signals of a SimulationResult",
            found="none",
            remedy=f"Name some, as signals={list(result.foremost[:1])!r}",
        )
    times = np.unique(result.time)
    samples = result.sample_all(chosen, times)
    return {_TIME: times, **dict(zip(chosen, samples, strict=True))}


def _checked(
    system: System, columns: Mapping[str, Any], chosen: Sequence[str] | None, attempt: str
) -> Record:
    """Check the columns of a record and find out what they are."""
    times = as_numbers(columns[_TIME], f"{attempt} with these times")
    fine = times.ndim == 1 and len(times) >= 2 and np.isfinite(times).all()
    steps = np.diff(times) if fine else np.zeros(0)
    if not fine or not np.all(steps > 0.0):
        bad = np.flatnonzero(~(steps > 0.0))
        detail = f"{times[bad[0] + 1]:g} s after {times[bad[0]]:g} s" if bad.size else None
        raise ValueRefusedError(
            attempt,
            expected="at least two finite times in one row, each later than the one before",
            found=detail or shown(columns[_TIME]),
            remedy="Sort the rows by time, and leave out repetitions" if detail else None,
        )
    known = {name.partition(" [")[0]: name for name in columns if name != _TIME}
    for name in chosen or ():
        require_known(name, known, f"{attempt} with the signal '{name}'")
    outputs: dict[str, FloatArray] = {}
    inputs: dict[str, FloatArray] = {}
    places: dict[str, Place] = {}
    for name in known if chosen is None else chosen:
        place = find_place(system, name, _can_be_measured)
        handle = place.handle
        if not _can_be_measured(handle):
            raise UnknownNameError(
                f"{attempt} with the column '{name}'",
                expected="a port that carries a vector, or a continuous state",
                found=f"the {handle.what} '{handle.full_name}'",
            )
        _check_unit(known[name], unit_of(place), attempt)
        values = _samples(columns[known[name]], times, place, f"{attempt} with the column '{name}'")
        places[place.path] = place
        (inputs if _is_free(system, handle) else outputs)[place.path] = values
    if not outputs:
        raise UnknownNameError(
            attempt, expected="a measured output", found=f"columns {quoted(known) or 'none'}"
        )
    return Record(times, outputs, inputs, places)


def _can_be_measured(handle: Any) -> bool:
    """Return whether a handle is that of a vector port or a continuous state."""
    return carries_vector(handle) or isinstance(handle, ContinuousState)


def _check_unit(name: str, unit: str, attempt: str) -> None:
    """Refuse a column whose name ends in another unit than that of the port."""
    _, bracket, told = name.partition(" [")
    if bracket and unit and told.rstrip("]") != unit:
        raise ValueRefusedError(
            f"{attempt} with the column '{name}'",
            expected=f"values in {unit}",
            found=f"values in {told.rstrip(']')}",
            remedy="Convert the column, and rename it",
        )


def _is_free(system: System, handle: Any) -> bool:
    """Return whether a port is fed from outside of the root diagram."""
    if not isinstance(handle, InputPort):
        return False
    context = system.create_default_context()
    return context.find(handle.system, handle).input_is_free(handle.index)


def _samples(values: Any, times: FloatArray, place: Place, attempt: str) -> FloatArray:
    """Return finite numbers, one row per time and one column per component."""
    numbers = as_numbers(values, attempt)
    size = place.components.size
    rows = numbers[:, np.newaxis] if numbers.ndim == 1 and size == 1 else numbers
    if rows.shape != (len(times), size):
        expected = f"{len(times)} samples" + f" of {size} components" * (size > 1)
        raise ValueRefusedError(attempt, expected=expected, found=f"the shape {numbers.shape}")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise ValueRefusedError(
            attempt,
            expected="finite numbers without gaps",
            found=f"{rows[bad[0]].tolist()} at {times[bad[0]]:g} s, in {bad.size} rows altogether",
            remedy="Leave out these rows, or split the record there",
        )
    return rows
