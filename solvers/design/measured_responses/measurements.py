"""Measurements: the runs in which a system is excited, and when they count as settled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.waveforms import Sine
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import Periodic
from flexure.solvers.design.measured_responses.estimates import (
    ComplexArray,
    fit_lines,
    harmonics_of,
    images_of,
    transform,
)
from flexure.solvers.design.measured_responses.excitation import ChirpBurst, ExcitedSystem
from flexure.solvers.simulation.run_control.options import IntegrationOptions
from flexure.solvers.sweeps.sweeps import sweep

Indices = npt.NDArray[np.intp]

_PERIODS = 3.0  # in a window
_GROUP = 4.0  # ratio of the frequencies of a sweep
_TURN = 2.0 * np.pi / 128.0  # of the highest sine of a sweep between two times
_COARSE = 2.0 * np.pi / 12.0  # that of a chirp or multisine
_HELD, _PARTS = 200.0, 64.0  # times of held values in a radian, and in a sampling period
_SAMPLES = 40.0  # in a window
_ENDS = 0.5, 0.75, 1.0  # of a run, where windows end
_LONGEST = 4.0  # times the first record of a chirp
_MOST = 1e7  # times in a run
CLOSE = 0.02  # of the sampling rate: an image that is nearer is not told from its frequency
_RESOLVED = 4.0  # bins between lines
_BEYOND = 1.5  # factor by which chirps begin below and end above the frequencies
_PER_OCTAVE = 6.0  # periods of the lowest frequency for each octave of a chirp
_RTOL = 1e-8  # of integration, unless it is given
_ACCURACY = 10.0  # multiples of rtol that are no response


class MeasuringOptions(IntegrationOptions, total=False):
    """How runs are integrated, and by whom."""

    executor: Executor | None
    threads: int | None
    progress: bool


@dataclass
class Measurement:
    """What is measured, and the responses found so far."""

    context: Context  # where the runs begin
    # omega, amplitude: frequencies in rad/s, and amplitudes of the input, shape (n,).
    omega: FloatArray
    amplitude: FloatArray
    period: float | None  # from one reading of the outputs to the next, in s
    # tolerance, max_periods, options, attempt: as for `frequency_response`, and the beginning of
    # messages.
    tolerance: float
    max_periods: float
    options: MeasuringOptions
    attempt: str
    duration: float = 0.0  # of the longest run
    failures: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        clocks = {
            event.trigger
            for leaf in self.context.leaves()
            for event in leaf.system.events
            if isinstance(event.trigger, Periodic)
        }
        self.clocks = sorted(clocks, key=lambda clock: clock.period)
        if self.options.get("rtol") is None:
            self.options["rtol"] = self.context.accuracy or _RTOL
        rtol: Any = self.options["rtol"]
        loosest = max(rtol.values(), default=_RTOL) if isinstance(rtol, Mapping) else rtol
        self.accuracy = _ACCURACY * float(loosest)

    @property
    def start(self) -> float:
        """When runs begin, in s."""
        return float(self.context.time)

    @property
    def periods(self) -> list[float]:
        """The sampling periods of which continuous outputs show images."""
        return [] if self.period is not None else sorted({clock.period for clock in self.clocks})

    def times(self, span: float, step: float) -> FloatArray:
        """Return equidistant times after the start, or the instants at which outputs are read.

        Between updates, times are spread evenly about the middle, where samples of held values
        have the right phase.
        """
        shortest = step if self.period is None else self.period
        if not (span / shortest < _MOST and self.start + shortest > self.start):
            raise ValueRefusedError(
                self.attempt,
                expected=f"runs with up to {_MOST:.0e} times that the clock can tell apart",
                found=f"a run of {span:.3g} s, sampled every {shortest:.3g} s",
                remedy="Pass frequencies nearer to each other, in rad/s, and fewer max_periods",
            )
        if self.period is None and not self.clocks:
            return np.linspace(self.start, self.start + span, round(span / step) + 1)
        if self.period is not None:
            clock = self.clocks[-1] if self.clocks else Periodic(self.period)
            every, middle = max(float(round(self.period / clock.period)), 1.0), 0.0
        else:
            clock = self.clocks[0]
            parts = np.ceil(min(_HELD * _TURN * clock.period / step, _PARTS))
            parts = max(parts, np.ceil(clock.period / step))
            every, middle = 1.0 / parts if parts > 1.0 else max(step // clock.period, 1.0), 0.5
        before = float(np.nextafter(self.start, -np.inf))
        first = round((clock.next_time(before) - clock.offset) / clock.period)
        count = max(round(span / (every * clock.period)), 1)
        steps = first + every * (np.arange(count + 1) + middle)
        return np.asarray(clock.offset + clock.period * steps)


@dataclass
class Responses:
    """Measured arrays of shape (n, p), as in `FrequencyResponse`."""

    response: ComplexArray
    drift: FloatArray
    distortion: FloatArray
    coherence: FloatArray
    leakage: FloatArray
    images: FloatArray
    level: FloatArray  # below which there is no response

    @classmethod
    def empty(cls, n: int, p: int) -> Responses:
        """Return responses of which nothing is known."""
        unknown = [np.full((n, p), np.nan) for _ in range(6)]
        return cls(np.full((n, p), complex(np.nan, np.nan)), *unknown)

    def put(self, rows: Any, other: Responses) -> None:
        """Replace some rows."""
        for name, values in vars(other).items():
            getattr(self, name)[rows] = values


#: Responses at some frequencies, by the times of a record and its signals in all runs.
Estimate: TypeAlias = Callable[[Measurement, Indices, FloatArray, FloatArray], Responses]


def measure(
    plan: Measurement,
    excitation: str,
    entry: Way,
    outputs: Way | Iterable[Way],
    openings: Way | Iterable[Way],
) -> tuple[Responses, ExcitedSystem]:
    """Excite a copy of the system, and return its responses."""
    n, lowest, highest = len(plan.omega), plan.omega[0], plan.omega[-1]
    values: dict[Any, Any] = {}
    source: Any
    if excitation == "chirp":
        low, high, span = _chirp(plan)
        source = ChirpBurst("chirp", plan.amplitude[0], low, high, span, plan.start)
        values = {
            source.f0: [[low], [high], [low]],
            source.f1: [[high], [low], [high]],
            source.amplitude: plan.amplitude[0] * np.array([[1.0], [1.0], [0.0]]),
        }
    else:
        count = n if excitation == "multisine" else 1
        phases = _phases(plan, count)
        source = Sine("sine", plan.amplitude[:count], plan.omega[:count], phases)
        if count > 1 or excitation == "multisine":
            values = {source.phase: [phases, np.random.default_rng(0).permutation(phases)]}
    excited = ExcitedSystem(plan.context, entry, outputs, openings, source, plan.attempt)
    found = Responses.empty(n, len(excited.output_names))
    runs = _Runs(plan, excited, found)
    if excitation == "chirp":
        record = 2.0 * (span + _PERIODS * 2.0 * np.pi / lowest)
        runs.until_settled(np.arange(n), record, record, _COARSE / highest, values, _by_transform)
    elif excitation == "multisine":
        apart = np.min(np.diff(plan.omega, prepend=0.0))
        window = 2.0 * np.pi * max(_PERIODS / lowest, _RESOLVED / apart)
        runs.until_settled(np.arange(n), 4.0 * window, window, _COARSE / highest, values, _by_lines)
    else:
        first = 0
        while first < n:
            end = int(np.searchsorted(plan.omega, _GROUP * plan.omega[first], side="right"))
            group = np.arange(first, end)
            window = _window(plan, plan.omega[group])
            step = _TURN / plan.omega[end - 1]
            runs.until_settled(group, 4.0 * window, window, step, None, _by_sine)
            first = end
    return found, excited


class _Runs:
    """The runs of an excited system, which are repeated with twice the length until they settle."""

    def __init__(self, plan: Measurement, excited: ExcitedSystem, found: Responses) -> None:
        self._plan, self._excited, self._found = plan, excited, found

    def until_settled(
        self,
        rows: Indices,
        length: float,
        window: float,
        step: float,
        values: Mapping[Any, Any] | None,
        estimate: Estimate,
    ) -> None:
        """Run some frequencies until their responses are the same in the middle and at the end.

        Windows end there and at three quarters; those of a whole record begin at its beginning.
        ``values`` are those of runs for all frequencies; None asks for a run for each of them.
        """
        plan = self._plan
        whole = window == length
        most = plan.max_periods * 2.0 * np.pi / plan.omega[rows[0]]
        most = _LONGEST * length if whole else max(most, length)
        while True:
            times = plan.times(length, step)
            count = len(times) if whole else round(len(times) * window / length)
            ends = [round(part * len(times)) for part in ((0.5, 1.0) if whole else _ENDS)]
            spans = [slice(0 if whole else max(end - count, 0), end) for end in ends]
            kept = np.unique(np.concatenate([np.arange(s.start, s.stop) for s in spans]))
            signals = self._signals(rows, times[kept], values)
            *earlier, last = (
                estimate(plan, rows, times[s], signals[:, slice(*np.searchsorted(kept, ends))])
                for s, ends in ((s, (s.start, s.stop)) for s in spans)
            )
            last.drift = _drift(earlier, last)
            self._found.put(rows, last)
            plan.duration = max(plan.duration, length)
            is_open = np.any(last.drift > plan.tolerance, axis=1)  # NaN where the run failed
            length *= 2.0
            if not is_open.any() or length > most:
                return
            if whole:
                window = length
            rows = rows[is_open] if values is None else rows

    def _signals(
        self, rows: Indices, times: FloatArray, values: Mapping[Any, Any] | None
    ) -> FloatArray:
        """Return all outputs and the test signal, shape (runs, times, signals)."""
        plan, excited = self._plan, self._excited
        source: Any = excited.source
        if values is None:
            values = {
                source.frequency: plan.omega[rows, np.newaxis],
                source.amplitude: plan.amplitude[rows, np.newaxis],
                source.phase: np.array([_phases(plan, 1, row) for row in rows]),
            }
        signals = [*excited.outputs, excited.signal]
        found = sweep(
            excited.context.system,
            values,
            float(times[-1] + 0.5 * (times[-1] - times[-2])),  # beyond updates at the last instant
            context=excited.context,
            signals=signals,
            times=times,
            **plan.options,
        )
        plan.failures |= dict.fromkeys(found.failures.values())
        shape = (len(found), len(times), -1)
        return np.concatenate([found[each].reshape(shape) for each in signals], axis=2)


def _drift(earlier: Sequence[Responses], last: Responses) -> FloatArray:
    """Return the largest relative change of responses to the last ones."""
    change = np.max([np.abs(last.response - each.response) for each in earlier], axis=0)
    with np.errstate(all="ignore"):
        relative = change / np.maximum(np.abs(last.response), last.level)
    return np.asarray(np.where(change > 0.0, relative, change))


def _phases(plan: Measurement, count: int, first: int = 0) -> FloatArray:
    """Return phases with which sines have no high peak, and samples show one at half their rate."""
    omega = plan.omega[first : first + count]
    at_end = omega * (plan.period or 0.0) > 0.9 * np.pi
    return np.where(at_end, 0.5 * np.pi, np.pi * np.arange(count) ** 2 / count)


def _chirp(plan: Measurement) -> tuple[float, float, float]:
    """Return the lowest and the highest frequency of a chirp in Hz, and its length in s."""
    low, high = plan.omega[0] / _BEYOND, plan.omega[-1] * _BEYOND
    own = [] if plan.period is None else [plan.period]
    limits = [np.pi / period for period in plan.periods or own]
    high = min([high, *(limit for limit in limits if limit >= plan.omega[-1])])  # without images
    span = _PER_OCTAVE * np.log2(high / low) * 2.0 * np.pi / plan.omega[0]
    return low / (2.0 * np.pi), high / (2.0 * np.pi), float(span)


def _window(plan: Measurement, omega: FloatArray) -> float:
    """Return the length of a window in s in which all lines of some sines can be told apart."""
    window = _PERIODS * 2.0 * np.pi / omega[0]
    periods = plan.periods if plan.period is None else [plan.period]
    rates = [2.0 * np.pi / period for period in periods]
    nearest = min(
        (gap for rate in rates for gap in np.abs(rate - 2.0 * omega) if gap > CLOSE * rate),
        default=np.inf,
    )
    return float(max(window, _RESOLVED * 2.0 * np.pi / nearest, _SAMPLES * (plan.period or 0.0)))


def _by_sine(plan: Measurement, rows: Indices, times: FloatArray, signals: FloatArray) -> Responses:
    """Return the responses to one sine in each run."""
    found = Responses.empty(len(rows), signals.shape[2] - 1)
    for k, row in enumerate(rows):
        omega, record = plan.omega[row], signals[k]
        if not np.isfinite(record).all():
            continue
        lines = harmonics_of(omega, plan.period)
        count = len(lines)
        images = images_of(omega, plan.periods, lines, CLOSE)
        fit = fit_lines(times, record, np.append(lines, images))
        sizes, given = np.abs(fit.amplitudes[:, :-1]), fit.amplitudes[0, -1]
        first, higher = sizes[0], np.linalg.norm(sizes[1:count], axis=0)
        repeated = np.linalg.norm(sizes[count:], axis=0)
        rest = np.hypot(fit.rest[:-1], repeated)
        with np.errstate(all="ignore"):
            found.put(
                k,
                Responses(
                    response=fit.amplitudes[0, :-1] / given,
                    drift=np.full(len(first), np.nan),
                    distortion=higher / first,
                    coherence=first**2 / (first**2 + higher**2 + rest**2),
                    leakage=rest / first,
                    images=repeated / first,
                    level=plan.accuracy * np.max(np.abs(record[:, :-1]), axis=0) / abs(given),
                ),
            )
    return found


def _by_lines(
    plan: Measurement, rows: Indices, times: FloatArray, signals: FloatArray
) -> Responses:
    """Return the responses to many sines at once, from runs with different phases."""
    if not np.isfinite(signals).all():
        return Responses.empty(len(rows), signals.shape[2] - 1)
    fits = [fit_lines(times, record, plan.omega) for record in signals]
    sizes = np.mean([np.abs(fit.amplitudes[:, :-1]) for fit in fits], axis=0)
    rest = np.mean([fit.rest[:-1] for fit in fits], axis=0)
    found = _together(plan, np.array([fit.amplitudes for fit in fits]), signals)
    with np.errstate(all="ignore"):
        found.leakage = rest / sizes
    return found


def _by_transform(
    plan: Measurement, rows: Indices, times: FloatArray, signals: FloatArray
) -> Responses:
    """Return the responses to signals that begin and end, beside a last run without one."""
    if not np.isfinite(signals).all():
        return Responses.empty(len(rows), signals.shape[2] - 1)
    signals = signals[:-1] - signals[-1]
    spectra = [transform(times, record, plan.omega) for record in signals]
    return _together(plan, np.array(spectra), signals)


def _together(plan: Measurement, spectra: ComplexArray, signals: FloatArray) -> Responses:
    """Return the linear part of the responses in several runs, shape (runs, lines, signals)."""
    out, given = spectra[:, :, :-1], spectra[:, :, -1:]
    cross, power = np.sum(out * given.conj(), axis=0), np.sum(np.abs(given) ** 2, axis=0)
    with np.errstate(all="ignore"):
        coherence = np.abs(cross) ** 2 / (np.sum(np.abs(out) ** 2, axis=0) * power)
        coherence = np.minimum(coherence, 1.0)
        unknown = np.full(coherence.shape, np.nan)
        scale = np.max(np.abs(signals[:, :, :-1]), axis=(0, 1)) / np.max(np.abs(signals[:, :, -1]))
        return Responses(
            response=cross / power,
            drift=unknown,
            distortion=np.sqrt(1.0 / coherence - 1.0),
            coherence=coherence,
            leakage=unknown,
            images=unknown,
            level=np.broadcast_to(plan.accuracy * scale, coherence.shape),
        )
