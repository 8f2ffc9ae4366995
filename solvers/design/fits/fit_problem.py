"""The least squares of a fit: residuals of records, and their exact derivatives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.blocks.forces.fits.least_squares import LeastSquares, Unknown, bounds_of
from flexure.diagrams.checks.arguments import mapping, require_known
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way, find_place, path_of, several
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.parameters import NumericParameter
from flexure.solvers.analysis.equations.equations import Variable, find_variables
from flexure.solvers.analysis.sensitivities.interpreted_motion import LongMotions
from flexure.solvers.analysis.sensitivities.motion_derivatives import (
    MotionDerivatives,
    refuse_events,
)
from flexure.solvers.design.fits.records import Record, names_of
from flexure.solvers.simulation.run_control.method_selection import Method


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
