"""A fit as a problem of least squares, and the records of measurements that it is fitted to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.blocks.forces.fits.least_squares import LeastSquares, Unknown, bounds_of
from flexure.blocks.signals.table_files import FORMATS, read_table
from flexure.diagrams.checks.arguments import file_path, items_of, mapping, require_known, shown
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place, Way, find_place, path_of, several
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, as_numbers, freeze
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import ContinuousState
from flexure.solvers.analysis.equations.equations import (
    Variable,
    carries_vector,
    find_variables,
    slot_of,
)
from flexure.solvers.analysis.linear_models.linear_inputs import Drive
from flexure.solvers.analysis.sensitivities.interpreted_motion import LongMotions
from flexure.solvers.analysis.sensitivities.motion_derivatives import (
    MotionDerivatives,
    refuse_events,
)
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.simulation.run_control.method_selection import Method

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


@dataclass(frozen=True)
class Wanted(Unknown):
    """An unknown of a motion: a parameter, an initial state or an offset."""

    record: int | None = None  # the record that it belongs to; None for all
    # variable, component: of what it is a component: of which variable, counted over all; None for
    # an offset.
    variable: int | None = None
    component: int = 0
    signal: str | None = None  # what it is the offset of


class FitProblem(LeastSquares):
    """Residuals of all records, which begin at ``contexts``, as a function of the unknowns.

    Unknowns are parameters, inputs and initial states (`variables`), and constant ``offsets`` of
    signals. ``options`` are the method and the tolerances of the integration.
    """

    unknowns: list[Wanted]
    tolerances: Mapping[str, Any] = {"ftol": 1e-10, "xtol": 1e-9, "gtol": 1e-10}
    # The derivatives are known up to the tolerance of the integration.
    noise = 1e-5
    no_effect = 1e-9

    def __init__(
        self,
        contexts: Sequence[Context],
        records: Sequence[Record],
        parameters: Any,
        offsets: Way | Iterable[Way],
        logarithmic: Way | Iterable[Way],
        bounds: Any,
        options: tuple[Method, float, float],
        attempt: str,
    ) -> None:
        self.begins = contexts
        self.records = records
        self._options = options
        self.attempt = attempt
        self.units = {
            path: getattr(r.places[path].handle, "unit", "") for r in records for path in r.outputs
        }
        signals = list(self.units)
        self.variables, limits = _found(contexts[0], parameters, bounds, attempt)
        for record in records:
            for variable in self.variables:
                if any(record.places[p].handle is variable.place.handle for p in record.inputs):
                    raise UnknownNameError(
                        f"{attempt} with '{variable.place.path}'",
                        expected="a parameter or an input that was not measured",
                        found="a measured input",
                    )
        self.unknowns = self._list(limits, logarithmic, offsets)
        self._contexts = [context.clone() for context in contexts]
        self._motions = []
        watch = LongMotions(attempt)
        for context, record in zip(self._contexts, records, strict=True):
            _check_span(context, record, attempt)
            refuse_events(context, attempt)
            places = [record.places[path] for path in record.outputs]
            drives = record.drives(context)
            motion = MotionDerivatives(context, self.variables, places, attempt, drives, watch)
            self._motions.append(motion)
        blocks = [np.hstack(list(record.outputs.values())) for record in records]
        self.measured = np.concatenate([block.ravel() for block in blocks])
        rows = []
        for record in records:
            order = [
                signals.index(path)
                for path, values in record.outputs.items()
                for _ in range(values.shape[1])
            ]
            rows.append(np.tile(order, len(record.times)))
        self.which = np.concatenate(rows)
        self._last: tuple[bytes, FloatArray, FloatArray] | None = None

    def _list(
        self, limits: list[Any], logarithmic: Way | Iterable[Way], offsets: Way | Iterable[Way]
    ) -> list[Wanted]:
        """List the numbers to look for: common parameters, then what each record has of its own."""
        context, attempt, several_records = self.begins[0], self.attempt, len(self.records) > 1
        logs = [find_place(context.system, way).path for way in several(logarithmic)]
        paths = [variable.place.path for variable in self.variables]
        for path in logs:
            require_known(path, paths, f"{attempt} with logarithmic='{path}'")
        unknowns: list[Wanted] = []
        for number, (variable, given) in enumerate(zip(self.variables, limits, strict=True)):
            lower, upper = _bounds(variable, given, attempt)
            logarithm = variable.place.path in logs
            owners: Sequence[int | None] = [None]
            if variable.is_state and several_records:
                owners = range(len(self.records))
            for owner in owners:
                numbers = variable.read(self.begins[owner or 0].store)
                for k, name in enumerate(names_of(variable.place)):
                    title = name if owner is None else f"{name} of record {owner}"
                    ends = float(lower[k]), float(upper[k])
                    unknown = Wanted(title, float(numbers[k]), *ends, logarithm, owner, number, k)
                    unknown.check(attempt, "Set another value in the context")
                    unknowns.append(unknown)
        for way in several(offsets):
            path = find_place(context.system, way).path
            require_known(path, self.units, f"{attempt} with an offset of '{path}'")
            for number, record in enumerate(self.records):
                size = record.outputs[path].shape[1] if path in record.outputs else 0
                for k in range(size):
                    name = f"offset of {names_of(record.places[path])[k]}"
                    title = f"{name} of record {number}" if several_records else name
                    unknowns.append(Wanted(title, 0.0, record=number, component=k, signal=path))
        if not unknowns:
            raise ValueRefusedError(attempt, expected="parameters to fit", found="none")
        return unknowns

    def computed(self, values: FloatArray) -> FloatArray:
        """Return the values that should have been measured, by record, time and component."""
        return self._moved(values)[0]

    def derivatives(self, values: FloatArray) -> FloatArray:
        """Return their derivatives, which are integrated together with the motion."""
        return self._moved(values)[1]

    def _moved(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both; they are kept until the next call."""
        key = values.tobytes()
        if self._last is None or self._last[0] != key:
            parts = [self._run(k, values) for k in range(len(self.records))]
            outputs, slopes = zip(*parts, strict=True)
            self._last = key, np.concatenate(outputs), np.vstack(slopes)
        return self._last[1], self._last[2]

    def put(self, context: Context, values: FloatArray, record: int) -> None:
        """Set the parameters and the initial states of a record in a context, with all checks."""
        for number, variable in enumerate(self.variables):
            chosen = [
                value
                for unknown, value in zip(self.unknowns, values, strict=True)
                if unknown.variable == number and unknown.record in (None, record)
            ]
            variable.set(context, np.array(chosen))

    @property
    def may_step(self) -> bool:
        """Whether what is computed may jump with the parameters."""
        return any(motion.may_step for motion in self._motions)

    def _run(self, k: int, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what one record should show, and its derivatives."""
        record, context = self.records[k], self._contexts[k]
        context.copy_from(self.begins[k])
        self.put(context, values, k)
        found = self._motions[k].run(float(record.times[-1]), record.times, *self._options)
        rows = found.outputs.shape[1]
        outputs, slopes = found.outputs.copy(), np.zeros((*found.outputs.shape, len(self.unknowns)))
        firsts = np.cumsum([0, *(len(variable.keys) for variable in self.variables)])
        ends = np.cumsum([0, *(v.shape[1] for v in record.outputs.values())])
        begins = dict(zip(record.outputs, ends, strict=False))
        for column, unknown in enumerate(self.unknowns):
            if unknown.record not in (None, k):
                continue
            if unknown.variable is not None:
                position = firsts[unknown.variable] + unknown.component
                slopes[:, :, column] = found.output_slopes[:, :, position]
            elif unknown.signal is not None:
                row = begins[unknown.signal] + unknown.component
                outputs[:, row] += values[column]
                slopes[:, row, column] = 1.0
        return outputs.ravel(), slopes.reshape(len(record.times) * rows, -1)

    def split(self, values: FloatArray) -> list[dict[str, FloatArray]]:
        """Return numbers that are end to end by record and path, of shape (k, size)."""
        found, first = [], 0
        for record in self.records:
            sizes = [each.shape[1] for each in record.outputs.values()]
            last = first + len(record.times) * sum(sizes)
            table = values[first:last].reshape(len(record.times), sum(sizes))
            parts = np.split(table, np.cumsum(sizes)[:-1], axis=1)
            found.append(dict(zip(record.outputs, parts, strict=True)))
            first = last
        return found


def _found(
    context: Context, parameters: Any, bounds: Any, attempt: str
) -> tuple[list[Variable], list[Any]]:
    """Find the parameters, and the bounds that are given."""
    if isinstance(parameters, Mapping):
        ways, limits = list(parameters), list(parameters.values())
    else:
        ways = several(parameters)
        limits = [None] * len(ways)
    for way in ways:
        path_of(way)
    variables = find_variables(context, ways, attempt, states=True)
    if len(variables) < len(ways):
        raise ValueRefusedError(attempt, expected="parameters with numbers", found="an empty one")
    paths = [variable.place.path for variable in variables]
    others = {} if bounds is None else bounds
    for way, given in mapping(others, "bounds as a mapping of paths", attempt).items():
        path = find_place(context.system, way).path
        here = f"{attempt} with bounds of '{path}'"
        require_known(path, paths, here)
        if limits[paths.index(path)] is not None:
            raise ValueRefusedError(here, expected="bounds of everything once", found="two of them")
        limits[paths.index(path)] = given
    return variables, limits


def _bounds(variable: Variable, given: Any, attempt: str) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of the components: the given ones within those of the declaration."""
    place = variable.place
    least, most = bounds_of(given, variable.shape, place.path, attempt)
    if not isinstance(place.handle, NumericParameter):
        return least, most
    lower = np.broadcast_to(place.handle.lower, place.handle.shape).ravel()[place.components]
    upper = np.broadcast_to(place.handle.upper, place.handle.shape).ravel()[place.components]
    return np.maximum(lower, least), np.minimum(upper, most)


def _check_span(context: Context, record: Record, attempt: str) -> None:
    """Refuse a record that the motion, or whose measured inputs do not reach."""
    first = float(record.times[0])
    if first < context.time or (record.inputs and first > context.time):
        raise ValueRefusedError(
            attempt,
            expected=f"times from t = {context.time:g} s on, where the context begins"
            + ", since inputs were measured" * bool(record.inputs),
            found=f"a record that begins at {first:g} s",
            remedy="Set context.time to the beginning of the record, or shift its times",
        )
