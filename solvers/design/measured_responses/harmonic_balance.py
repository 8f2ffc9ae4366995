"""Harmonic balance of a nonlinear block and the linear rest of its loop, and runs that confirm it.

The block answers ``u = b + A sin(ωt)`` with the mean m(A, b) and the fundamental N(A, b) A. The
linear rest G of the loop leads it back to u. Both balance where ``N G(jω) = 1``, or
``N G(exp(jωT)) = 1`` with samples at the period T, and where the means of the loop are constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from flexure.blocks.signals.nonlinear import Relay
from flexure.diagrams.checks.errors import EvaluationError, FlexureError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import Periodic
from flexure.diagrams.values.kinds import CONTINUOUS, TIME_KIND
from flexure.solvers.analysis.equations.equations import refuse_sampled, slot_of
from flexure.solvers.analysis.frequency.frequency_curves import frequencies
from flexure.solvers.analysis.linear_models.linear_inputs import LinearInputs
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.linearization import linearized
from flexure.solvers.analysis.linear_models.loop_transfers import wiring
from flexure.solvers.design.measured_responses.describing_functions import Harmonics, fourier
from flexure.solvers.design.measured_responses.relay_cycles import (
    LONGEST,
    RelayCycle,
    amplitude_of,
    relay_cycles,
    returns,
)
from flexure.solvers.simulation.simulation import simulate

_BALANCED = 1e-9  # of the amplitude or of the largest mean
_ROUGHLY = 1e-4  # how exact the means are where cycles are looked for
_TRIALS = 30  # of a mean
_REACHES = 0.05, 1.0, 4.0  # amplitudes within which means are looked for
_STARTS = 0.7, 1.3  # times the predicted cycle, where simulations begin
_CYCLES, _MOST_CYCLES = 30, 500  # of a simulation
_STEADY = 1e-5  # relative change of amplitude and period from one cycle to a later one
_AGREE = 0.1  # relative difference of prediction and simulation that is worth a note
_MET = 1e-2  # relative difference of the amplitudes that two simulations reach
_SAME = 1e-4  # relative distance of two solutions that are one
_BESIDE = 0.999, 1.001  # times an exact cycle, where simulations begin
_RTOL = 1e-8


@dataclass
class Balance:
    """Amplitude, mean value of the input, describing function and mean of the output."""

    amplitude: float
    bias: float
    gain: complex
    mean: float


@dataclass
class Cycle:
    """A predicted cycle: its balance, frequency, stability, and its samples where it is exact."""

    balance: Balance
    omega: float
    is_stable: bool
    exact: RelayCycle | None = None


class HarmonicBalance:
    """The balance of a nonlinear block and the linear rest of its loop."""

    def __init__(self, context: Context, block: Any, attempt: str, period: float | None) -> None:
        self._context, self._block, self._attempt = context, block, attempt
        self._harmonics = Harmonics(block, context, 1.0, attempt)
        if period is None:  # with its output cut, blocks that sample it follow an input
            cut = LinearInputs(context, [], block.output_ports[:1], attempt).context
            refuse_sampled(cut, attempt, "Pass period= for the cycles of a sampled loop")
        entry = slot_of(context, block.input_ports[0])
        self._moves = self._moves_between(entry, period or 0.0)
        model = self.model = self._linear_rest(period)
        n = len(model.A)
        # x, the mean of the output and that of the input, as deviations
        equations = np.zeros((n + 1, n + 2))
        still = model.A if period is None else model.A - np.eye(n)
        equations[:n, :n], equations[:n, n : n + 1] = still, model.B
        equations[n:, :n], equations[n:, n : n + 1], equations[n, n + 1] = model.C, model.D, -1.0
        right = np.append(-model.xdot0, 0.0)
        self._point = np.linalg.lstsq(equations, right, rcond=None)[0]
        _, sizes, turned = np.linalg.svd(equations)
        free = turned[np.sum(sizes > 1e-12 * sizes[0]) :]
        _, _, ways = np.linalg.svd(free[:, n:])
        self._way = np.linalg.lstsq(free[:, n:].T, ways[0], rcond=None)[0] @ free
        if abs(self._way[n + 1]) > 1e-9:
            self._way = self._way / self._way[n + 1]

    def _moves_between(self, entry: int, period: float) -> bool:
        """Return whether the input moves between samples, as behind an interpolating delay."""
        mask = self._context.store.layout.masks[entry]
        if mask & CONTINUOUS or not mask & TIME_KIND:
            return bool(mask & CONTINUOUS)
        changes = []
        for step in (0.0, 1e-3 * period):  # what sources change is the same for both
            context = self._context.clone()
            for leaf in context.leaves():
                groups = enumerate(leaf.discrete, 1)
                leaf.discrete = [each + step * (k + np.arange(each.size)) for k, each in groups]
            ends = []
            for part in (0.25, 0.75):
                context.time = self._context.time + part * period
                ends.append(context.store.value(entry))
            changes.append(ends[1] - ends[0])
        return bool(np.max(np.abs(changes[1] - changes[0])) > 1e-9 * period)

    def _linear_rest(self, period: float | None) -> LinearModel:
        """Return G, with an output of the block that changes when its input does."""
        entry, output = self._block.input_ports[0], self._block.output_ports[0]
        find = partial(
            linearized,
            self._context.system,
            self._context,
            [output],
            [entry],
            self._attempt,
            openings=[output],
            period=period,
        )
        model = find()
        if period is None:
            return model
        self._require_clock(period)
        later = find(inputs_after_updates=True)
        if not self._moves:
            return later
        if later.B[: len(model.A)].any() or later.D.any():
            raise EvaluationError(
                self._attempt,
                expected="a block whose input or output is held between sampling instants",
                found=f"'{self._block.label}', both of which move between them",
                remedy="Measure the loop in simulations",
            )
        return model

    def _require_clock(self, period: float) -> None:
        """Refuse samplers next to the block with other periods, between which it may switch."""
        graph = wiring(self._context)
        graph = graph if self._moves else graph.reverse()  # who samples it, or what it reads
        leaves = self._context.store.layout.leaves
        start: Any = self._context.find(self._block)
        waiting, passed = [int(start.position)], {-1}
        while waiting:
            position = waiting.pop()
            for near in set(graph.successors(position)) - passed:
                passed.add(near)
                system = leaves[near]
                triggers = [e.trigger for e in system.events if e.kind != "publish"]
                clocks = [each for each in triggers if isinstance(each, Periodic)]
                for clock in clocks:
                    if abs(clock.period / period - 1.0) > 1e-9:
                        raise EvaluationError(
                            self._attempt,
                            expected=f"samplers next to the block with period={period:g} s",
                            found=f"'{system.label}', which samples every {clock.period:g} s",
                            remedy=f"Pass period={clock.period:g}, or give it the same period",
                        )
                if not clocks and system.continuous_state is None:
                    waiting.append(near)

    def _means(self, step: float) -> tuple[FloatArray, float, float]:
        """Return states, mean output and mean input that are constant in the linear rest."""
        whole = self._point + step * self._way
        mean = whole[-2] + self.model.u0[0]
        return self.model.x0 + whole[:-2], float(mean), float(whole[-1] + self.model.y0[0])

    def _answer(self, amplitude: float, step: float) -> tuple[Balance, float]:
        """Return what the block answers, and how far its mean is from the one that is wanted."""
        _, wanted, bias = self._means(step)
        gain, mean = self._harmonics(amplitude, bias)
        scale = max(abs(mean), abs(wanted), abs(gain) * amplitude)
        error = (mean - wanted) / scale if scale > 0.0 else 0.0
        return Balance(amplitude, bias, gain, mean), error

    def balance(
        self, amplitude: float, step: float, tolerance: float = _BALANCED
    ) -> tuple[Balance | None, float]:
        """Return the balance of the means at an amplitude next to a step, and its step."""
        from scipy.optimize import brentq

        def error(at: float) -> float:
            return self._answer(amplitude, at)[1]

        balance, here = self._answer(amplitude, step)
        if abs(here) <= _BALANCED:
            return balance, step
        for reach in _REACHES:
            ends = step - reach * amplitude, step + reach * amplitude
            sides = [error(end) for end in ends]
            if sides[0] * sides[1] <= 0.0:
                step, _ = brentq(
                    error,
                    *ends,
                    xtol=tolerance * amplitude,
                    maxiter=_TRIALS,
                    full_output=True,
                    disp=False,
                )
                balance, here = self._answer(amplitude, float(step))
                return (balance if abs(here) <= _ROUGHLY else None), float(step)
        return None, step

    def curve(self, amplitudes: FloatArray) -> list[Balance]:
        """Return the balances at ascending amplitudes; those that have none are left out."""
        found: list[Balance] = []
        step = -float(self._point[-1]) if abs(self._way[-1]) > 1e-9 else 0.0
        for amplitude in amplitudes[::-1]:  # large ones cross all thresholds
            balance, there = self.balance(float(amplitude), step, _ROUGHLY)
            if balance is not None:
                found.insert(0, balance)
                step = there
        if found:
            other = Harmonics(self._block, self._context, 3.0, self._attempt)
            gain, _ = other(found[-1].amplitude, found[-1].bias)
            if abs(gain - found[-1].gain) > 1e-6 * abs(gain):
                raise EvaluationError(
                    self._attempt,
                    expected="a block whose describing function depends on the amplitude alone",
                    found=f"other gains of '{self._block.label}' at 1 and at 3 rad/s",
                    remedy="Split its dynamics from the nonlinearity",
                )
        return found

    def crossings(self, curve: list[Balance]) -> Iterator[tuple[Balance, float]]:
        """Yield where the polygon of N(A) crosses that of 1 / G(jω)."""
        (grid,) = frequencies([self.model], None, "rad/s", self._attempt, beyond=10.0)
        response = self.model.frequency_response(grid)[:, 0, 0]
        with np.errstate(all="ignore"):
            inverse = 1.0 / response
        gains = np.array([each.gain for each in curve])
        with np.errstate(all="ignore"):
            p, r = gains[:-1, None], np.diff(gains)[:, None]
            q, s = inverse[None, :-1], np.diff(inverse)[None, :]
            cross = (r.conj() * s).imag
            along = ((q - p).conj() * s).imag / cross
            across = ((q - p).conj() * r).imag / cross
            hits = (along >= 0.0) & (along < 1.0) & (across >= 0.0) & (across < 1.0)
        for i, j in np.argwhere(hits):
            t, w = along[i, j], across[i, j]
            size = curve[i].amplitude ** (1.0 - t) * curve[i + 1].amplitude ** t
            bias = curve[i].bias * (1.0 - t) + curve[i + 1].bias * t
            gain = curve[i].gain * (1.0 - t) + curve[i + 1].gain * t
            yield Balance(size, bias, gain, np.nan), float(grid[j] ** (1.0 - w) * grid[j + 1] ** w)

    def cycles(self, curve: list[Balance], amplitudes: FloatArray) -> list[Cycle]:
        """Return the cycles within a range of amplitudes, in ascending order."""
        period, slowest = self.model.period, np.inf
        found: list[Cycle] = []
        if period is not None and isinstance(self._block, Relay):
            slowest = 2.0 * np.pi / (LONGEST * period)  # above it, cycles are exact
            found = [
                c for c in self._exact() if amplitudes[0] <= c.balance.amplitude <= amplitudes[-1]
            ]
        refined = [
            self.refined(near, omega) for near, omega in self.crossings(curve) if omega < slowest
        ]
        places = [np.log([balance.amplitude, omega]) for balance, omega in refined]
        for k, (balance, omega) in enumerate(refined):
            is_new = not any(np.max(np.abs(places[k] - other)) < _SAME for other in places[:k])
            if is_new and omega < slowest:
                found.append(Cycle(balance, omega, self.is_stable(balance, omega)))
        return sorted(found, key=lambda each: each.balance.amplitude)

    def _exact(self) -> Iterator[Cycle]:
        """Yield the cycles of a sampled relay."""
        relay, leaf = self._block, self._context.find(self._block)
        rise, fall, on, off = (
            float(np.reshape(each(leaf), ()))
            for each in (relay.on_threshold, relay.off_threshold, relay.on_value, relay.off_value)
        )
        does_return = returns(self.model)
        for each in relay_cycles(self.model, (rise, fall), (on, off), self._mean_input):
            balance = Balance(each.amplitude, each.bias, 1.0 / self._rest(each.omega), each.mean)
            yield Cycle(balance, each.omega, does_return, each)

    def _mean_input(self, mean: float) -> float | None:
        """Return the mean input for a mean output: NaN if it is free, None if there is none."""
        off = mean - self._means(0.0)[1]
        if abs(self._way[-2]) > 1e-9:
            return self._means(off / self._way[-2])[2]
        return np.nan if abs(off) <= 1e-9 * max(abs(mean), 1.0) else None

    def _rest(self, omega: float) -> complex:
        return complex(self.model.frequency_response(omega)[0, 0])

    def _step_of(self, balance: Balance) -> float:
        """Return where the linear rest has the mean values of a balance."""
        n = len(self._way) - 2
        k, value = (n + 1, balance.bias - self.model.y0[0])
        if abs(self._way[k]) < 1e-9:
            return 0.0
        return float((value - self._point[k]) / self._way[k])

    def refined(self, near: Balance, omega: float) -> tuple[Balance, float]:
        """Return the exact solution next to an estimate, or the estimate where there is a jump."""
        from scipy.optimize import root

        def errors(z: FloatArray) -> FloatArray:
            size, turns = np.exp(z[:2])
            balance, error = self._answer(float(size), float(z[2] * size))
            whole = balance.gain * self._rest(float(turns)) - 1.0
            return np.array([whole.real, whole.imag, error])

        start = np.array([*np.log([near.amplitude, omega]), self._step_of(near) / near.amplitude])
        found = root(errors, start, options={"xtol": 1e-11, "eps": 1e-7})
        is_near = bool(np.max(np.abs(found.x - start)) < 0.5)
        z = found.x if is_near and np.max(np.abs(found.fun)) < 1e-6 else start
        size, turns = np.exp(z[:2])
        return self._answer(float(size), float(z[2] * size))[0], float(turns)

    def is_stable(self, cycle: Balance, omega: float) -> bool:
        """Judge a cycle by Loeb's criterion, and by the other poles of the loop with its gain."""
        step, change = self._step_of(cycle), 1e-4
        sides = [
            self.balance(cycle.amplitude * np.exp(sign * change), step)[0] for sign in (-1.0, 1.0)
        ]
        if any(side is None for side in sides):
            return False
        slope = (sides[1].gain - sides[0].gain) * self._rest(omega)  # type: ignore[union-attr]
        ahead, behind = (self._rest(omega * np.exp(sign * change)) for sign in (1.0, -1.0))
        turn = cycle.gain * (ahead - behind) / 1j
        decays = self._others_decay(cycle.gain, omega)
        return decays and bool((slope / turn).real > 0.0)

    def _others_decay(self, gain: complex, omega: float) -> bool:
        """Return whether the poles of the loop with a gain decay, but those of the cycle."""
        own = self.model.on_tangent()
        A, B, C, D = own.A, own.B, own.C, own.D[0, 0]
        if own.period is None:
            real, rate = gain.real, gain.imag / omega  # y = real u + rate du/dt
            through = (real * C + rate * C @ A) / (1.0 - rate * (C @ B)[0, 0])
            poles = np.linalg.eigvals(A + B @ through / (1.0 - real * D))
            rest = poles[np.argsort(np.abs(poles.real) + np.abs(np.abs(poles.imag) - omega))][2:]
            return bool(np.all(rest.real < 1e-6 * omega))
        turn = np.exp(1j * omega * own.period)
        late = -gain.imag / turn.imag  # y[k] = now u[k] + late u[k-1]
        now = gain.real - late * turn.real
        seen = np.hstack([C, [[D * late]]]) / (1.0 - now * D)
        driven = now * seen + np.append(np.zeros(len(A)), late)
        poles = np.linalg.eigvals(np.vstack([np.pad(A, ((0, 0), (0, 1))) + B @ driven, seen]))
        rest = poles[np.argsort(np.abs((poles - turn) * (poles - turn.conj())))][2:]
        return bool(np.all(np.abs(rest) < 1.0 + 1e-6))

    def confirmed(self, predicted: Cycle) -> tuple[tuple[float, float], bool, list[str]]:
        """Simulate from both sides of a cycle: what is reached, whether it agrees, and notes."""
        if predicted.exact is not None:
            return self._confirmed_exactly(predicted, predicted.exact)
        cycle, omega, is_stable = predicted.balance, predicted.omega, predicted.is_stable
        where = f"the cycle of amplitude {cycle.amplitude:.4g} at {omega:.4g} rad/s"
        ends = [self._reached(cycle, omega, scale) for scale in _STARTS]
        (low, _), (high, turns) = ends
        apart = _MET + omega * (self.model.period or 0.0)  # one may switch a sample later
        meet = abs(high - low) <= apart * max(low, high) < np.inf  # False for NaN
        if is_stable:
            if not meet or high < _STARTS[0] * 0.5 * cycle.amplitude:
                text = f"{where} is not reached: simulations end at {low:.4g} and {high:.4g}"
                return (np.nan, np.nan), False, [text]
            off = max(abs(high / cycle.amplitude - 1.0), abs(turns / omega - 1.0))
            notes = [f"{where} differs by {100.0 * off:.0f} % from its simulation"] * (off > _AGREE)
            return (high, turns), True, notes
        leaves = not low > _STARTS[0] * cycle.amplitude, not high < _STARTS[1] * cycle.amplitude
        if all(leaves) and not meet:
            return (np.nan, np.nan), True, []
        text = f"{where} is predicted to be unstable; simulations end at {low:.4g} and {high:.4g}"
        return ((high, turns) if meet else (np.nan, np.nan)), False, [text]

    def _reached(self, cycle: Balance, omega: float, scale: float) -> tuple[float, float]:
        """Return amplitude and frequency at the end of a run that begins near a cycle."""
        model, period = self.model, 2.0 * np.pi / omega
        mean, _, _ = self._means(self._step_of(cycle))
        s = 1j * omega if model.period is None else np.exp(1j * omega * model.period)
        matrix = s * np.eye(len(model.A)) - model.A
        swing = np.linalg.solve(matrix, model.B[:, 0]) * cycle.gain * cycle.amplitude
        context = self._begun(mean + scale * swing.imag)
        leaf: Any = context.find(self._block)
        leaf.discrete = self._harmonics.discrete(cycle.amplitude, cycle.bias)
        start, cycles = float(context.time), _CYCLES
        while True:
            try:
                result = simulate(
                    context.system, start + cycles * period, context=context, rtol=_RTOL
                )
            except FlexureError:
                return np.inf, np.nan
            sample = partial(result.sample, self._block.input_ports[0])
            ends = (
                [
                    _cycle_at(sample, start, part * cycles * period, period, result.time)
                    for part in (0.6, 1.0)
                ]
                if model.period is None
                else _sampled_cycles(self._samples(result, model.period), model.period)
            )
            change = max(
                abs(a - b) / max(abs(a), abs(b), 1e-300) for a, b in zip(*ends, strict=True)
            )
            if not change > (_STEADY if model.period is None else _MET) or cycles >= _MOST_CYCLES:
                return ends[1]
            cycles *= 2

    def _begun(self, states: FloatArray) -> Context:
        """Return a context with states of the linear rest, at its first instant."""
        context = self._context.clone()
        n = context.store.layout.num_states
        context.store.set_motion(self.model.time, states[:n])
        for name, value in zip(self.model.state_names[n:], states[n:], strict=True):
            if not name.startswith("previous "):  # what a relay shows before it switches
                context.set(name, value)
        return context

    def _samples(self, result: Any, period: float) -> FloatArray:
        """Return the input of the block just after the sampling instants of a run."""
        begin, end = result.time[[0, -1]]
        count = int((end - begin) / period * (1.0 + 1e-9))
        shift = 0.0 if self._moves else 0.5  # held values are read in the middle
        times = begin + (np.arange(count) + shift) * period
        return np.asarray(result.sample(self._block.input_ports[0], times))

    def _confirmed_exactly(
        self, predicted: Cycle, exact: RelayCycle
    ) -> tuple[tuple[float, float], bool, list[str]]:
        """Simulate from beside an exact cycle: whether all samples stay near it."""
        period, count = float(self.model.period or 0.0), len(exact.inputs)
        mean, _, _ = self._means(self._step_of(predicted.balance))
        swing = exact.states(self.model)
        last, stays = exact.inputs, []
        for scale in _BESIDE:
            context = self._begun(mean + scale * swing)
            # One that moves has crossed the threshold when it is sampled.
            context.find(self._block).set("mode", float(self._moves))
            end = context.time + _CYCLES * count * period
            try:
                result = simulate(context.system, end, context=context, rtol=_RTOL)
            except FlexureError:
                stays.append(False)
                continue
            last = self._samples(result, period)[-count:]
            stays.append(bool(np.abs(last - exact.inputs).max() <= _MET * exact.amplitude))
        if all(stays) and predicted.is_stable:
            return (amplitude_of(last), predicted.omega), True, []
        if not any(stays) and not predicted.is_stable:
            return (np.nan, np.nan), True, []
        where = f"the cycle of {count} samples and of amplitude {exact.amplitude:.4g}"
        verdict = "stable" if predicted.is_stable else "unstable"
        text = f"{where} is predicted to be {verdict}; simulations from beside it "
        return (np.nan, np.nan), False, [text + ("leave it" if predicted.is_stable else "stay")]


def _sampled_cycles(samples: FloatArray, period: float) -> list[tuple[float, float]]:
    """Return amplitude and frequency of samples in the middle and in the last part of a run."""
    n = len(samples)
    return [_fitted(samples[n // 5 : 3 * n // 5], period), _fitted(samples[3 * n // 5 :], period)]


def _fitted(samples: FloatArray, period: float) -> tuple[float, float]:
    """Return amplitude and frequency of the sine that fits whole cycles of samples."""
    above = samples - np.mean(samples)
    rises = np.flatnonzero((above[:-1] < 0.0) & (above[1:] >= 0.0))
    if len(rises) < 2 or np.ptp(samples) < 1e-9 * (1.0 + np.abs(samples).max()):
        return 0.5 * float(np.ptp(samples)), np.nan
    first, last = (k + above[k] / (above[k] - above[k + 1]) for k in rises[[0, -1]])
    turn = 2.0 * np.pi * (len(rises) - 1) / (last - first)
    phases = turn * np.arange(rises[0], rises[-1])
    waves = np.stack([np.ones(len(phases)), np.cos(phases), np.sin(phases)], axis=1)
    _, *parts = np.linalg.lstsq(waves, samples[rises[0] : rises[-1]], rcond=None)[0]
    return float(np.hypot(*parts)), float(turn / period)


def _cycle_at(
    sample: Any, start: float, end: float, period: float, stops: FloatArray
) -> tuple[float, float]:
    """Return amplitude and frequency of the last whole cycle before a time after the start."""
    times = start + end - 3.0 * period * np.linspace(1.0, 0.0, 601)
    values = sample(times)
    level = float(np.mean(values))
    rises = np.flatnonzero((values[:-1] < level) & (values[1:] >= level))
    if len(rises) < 2 or np.ptp(values) < 1e-9 * (1.0 + abs(level)):  # it grows slowly, or rests
        return 0.5 * float(np.ptp(values)), np.nan
    first, last = (_crossing(sample, times[k], times[k + 1], level) for k in rises[-2:])
    _, fundamental = fourier(sample, first, last - first, stops)
    return 2.0 * abs(fundamental), 2.0 * np.pi / (last - first)


def _crossing(sample: Any, a: float, b: float, level: float) -> float:
    """Return where a signal crosses a level."""
    from scipy.optimize import brentq

    return float(brentq(lambda t: float(sample(np.array([t]))[0]) - level, a, b, xtol=1e-14))
