"""The search for gains of a PID controller: for loads, or for setpoints, within a robust loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.design.pid.pid_loops import Gains, PIDLoop, bisect

_MOST = 0.25  # derivative time by integral time: from here on, the zeros are complex
_PARTS = (0.02, 0.1, _MOST)
_STARTS = 3
_SLOW = 100.0  # how much longer times are where no others do: two integrators have no time
_FACTORS = (0.15, 0.4, 0.7, 1.0)  # of the strongest gains, for a setpoint
_LOADS = 0.1  # share of the largest integral gain that a setpoint may not go below
_STEEP = 0.3  # what a percent of overshoot too much costs, as a share of the error
_BARELY = 0.1  # percent of overshoot that do not matter


@dataclass(frozen=True)
class Search:
    """What is looked for."""

    loop: PIDLoop  # the plant
    parts: str  # of the controller: "P", "PI", "PD" or "PID"
    bound: float  # of the peak of the sensitivity
    ratio: float  # derivative time by the time constant of the derivative's filter
    weights: tuple[float, float]  # of the setpoint, in the proportional and in the derivative part
    attempt: str  # beginning of messages
    start: Gains | None = None  # where to start as well

    @property
    def most(self) -> float:
        """The largest derivative time, as a part of the integral time."""
        return _MOST if self.parts == "PID" else 0.0

    def shape(self, time: float, part: float, sign: float) -> Gains:
        """Return gains of the strength one: a time, and the derivative time as a part of it."""
        if self.parts in ("P", "PD"):  # the time is that of the derivative
            slope = sign * time if self.parts == "PD" else 0.0
            return Gains(sign, 0.0, slope, time / self.ratio)
        derivative = part * time
        return Gains(sign, sign / time, sign * derivative, derivative / self.ratio or time)

    def disturbance(self) -> Gains:
        """Return the gains with the largest integral gain or, without an integral, the largest."""

        def strength(time: float, part: float, sign: float) -> float:
            factor = self.loop.strongest(self.shape(time, part, sign), self.bound)
            return factor / time if "I" in self.parts else factor

        best = Gains(0.0, 0.0, 0.0, 1.0)
        rounds = (self._starts(), self._starts(_SLOW))
        for time, part, sign in self._refined(strength, rounds, _STARTS):
            form = self.shape(time, part, sign)
            factor = self._limited(form)
            gains = form.times(factor)
            if abs(gains.ki or gains.kp) > abs(best.ki or best.kp):
                best = gains
        return best

    def setpoint(self, max_overshoot: float) -> Gains:
        """Return the gains with the smallest integral of the absolute error after a setpoint."""
        loads = self.disturbance()  # which gives the sign, and what the integral can do

        def strength(time: float, part: float, sign: float) -> float:
            form = self.shape(time, part, sign)
            return 1.0 / self._best_factor(form, max_overshoot, abs(loads.ki))[0]

        least, best = np.inf, loads
        for time, part, sign in self._refined(strength, (self._near(loads),), 1):
            form = self.shape(time, part, sign)
            error, factor = self._best_factor(form, max_overshoot, abs(loads.ki))
            if error < least:
                least, best = error, form.times(factor)
        _, overshoot = self.figures(best)
        if not overshoot <= max_overshoot + _BARELY:
            raise ValueRefusedError(
                self.attempt,
                expected=f"gains with an overshoot of at most {max_overshoot:g} %",
                found=f"{overshoot:.3g} % at the least error",
                remedy="Lower the setpoint_weight of the controller, or allow more",
            )
        return best

    def figures(self, gains: Gains) -> tuple[float, float]:
        """Return the integral of the absolute error, and the overshoot in percent."""
        time, error = self.loop.setpoint_error(gains, *self.weights)
        size = np.abs(error)
        whole = float(np.sum(0.5 * (size[1:] + size[:-1]) * np.diff(time)))
        return whole, float(100.0 * np.max(-error, initial=0.0))

    def _best_factor(
        self, form: Gains, max_overshoot: float, integral: float
    ) -> tuple[float, float]:
        """Return the least error of gains of a form, with what is wrong with them, and the factor.

        What is wrong is overshoot, and an integral that is of no use against loads.
        """
        from scipy.optimize import minimize_scalar

        most = self.loop.strongest(form, self.bound)
        if not 0.0 < most < np.inf:
            return np.inf, most

        def cost(factor: float) -> float:
            gains = form.times(factor * most)
            if not self.loop.is_stable(gains):
                return np.inf
            error, overshoot = self.figures(gains)
            error *= max(1.0, _LOADS * integral / abs(gains.ki)) if gains.ki else 1.0
            return error * (1.0 + _STEEP * max(0.0, overshoot - max_overshoot))

        costs = [cost(factor) for factor in _FACTORS]
        k = int(np.argmin(costs))
        least, place = costs[k], _FACTORS[k]
        ends = (_FACTORS[max(k - 1, 0)], _FACTORS[min(k + 1, len(_FACTORS) - 1)])
        found = minimize_scalar(
            cost, bounds=ends, method="bounded", options={"xatol": 1e-3, "maxiter": 12}
        )
        if found.fun < least:
            least, place = float(found.fun), float(found.x)
        return least, place * most

    def _refined(
        self,
        strength: Callable[[float, float, float], float],
        rounds: Iterable[list[tuple[float, float, float]]],
        count: int,
    ) -> list[tuple[float, float, float]]:
        """Return the best times, parts and signs, each refined from a start of its own."""
        # Later rounds of starts are for plants that those before do not stabilize.
        from scipy.optimize import minimize

        for starts in rounds:
            found = sorted(
                (strength(time, part, sign), time, part, sign) for time, part, sign in starts
            )
            if found[-1][0] > 0.0:
                break
        else:
            raise ValueRefusedError(
                self.attempt,
                expected="a plant that gains stabilize with a peak of the sensitivity of "
                f"{self.bound:g}",
                found=f"none for the poles {self.loop.plant.poles[:4]}",
                remedy="Allow a larger max_sensitivity, or add a derivative part",
            )
        refined, omega = [], self.loop.omega
        slowest, fastest = np.log(_SLOW / omega[0]), -np.log(_SLOW * omega[-1])
        for _, time, part, sign in found[-count:]:

            def loss(place: FloatArray, sign: float = sign) -> float:
                part = float(np.clip(place[1], 0.0, self.most)) if self.most else 0.0
                if not fastest < place[0] < slowest:
                    return np.inf
                value = strength(float(np.exp(place[0])), part, sign)
                return -float(np.log(max(value, 1e-300)))

            place = np.array([np.log(time), part])
            if np.isfinite(found[-1][0]) and self.parts != "P":
                place = minimize(loss, place, method="Nelder-Mead", options={"maxiter": 60}).x
            refined.append(
                (float(np.exp(place[0])), float(np.clip(place[1], 0.0, self.most)), sign)
            )
        return refined

    def _starts(self, slower: float = 1.0) -> list[tuple[float, float, float]]:
        """Return times, parts and signs to begin with."""
        omega = self.loop.omega
        times = slower / np.geomspace(omega[0] * 3.0, omega[-1] / 3.0, 25)
        parts = [part for part in _PARTS if part <= self.most] or [0.0]
        if self.parts == "P":
            times = times[:1]
        starts = [
            (float(time), part, sign) for time in times for part in parts for sign in (1.0, -1.0)
        ]
        return starts if self.start is None else [*starts, self._form(self.start)]

    def _near(self, gains: Gains) -> list[tuple[float, float, float]]:
        """Return starts with times that are longer than those of some gains."""
        time, part, sign = self._form(gains)
        parts = [part] if part == 0.0 else [part, 0.5 * part]
        starts = [(time * longer, part, sign) for longer in (1.0, 2.0, 4.0) for part in parts]
        return starts if self.start is None else [*starts, self._form(self.start)]

    def _form(self, gains: Gains) -> tuple[float, float, float]:
        """Return time, part and sign of gains."""
        sign = float(np.sign(gains.kp or gains.ki))
        if not gains.ki:
            return (gains.kd / gains.kp if gains.kd else 1.0), 0.0, sign
        time = gains.kp / gains.ki
        return time, float(np.clip(gains.kd / gains.kp / time, 0.0, self.most)), sign

    def _limited(self, form: Gains) -> float:
        """Return the largest factor; refuse a plant where nothing limits it."""
        factor = self.loop.strongest(form, self.bound)
        if not np.isfinite(factor) or self.loop.crosses_late(form.times(factor)):
            raise ValueRefusedError(
                self.attempt,
                expected="a plant whose dynamics limit the gains",
                found=f"a bound that all gains meet, for the poles {self.loop.plant.poles[:4]}",
                remedy="Add fast dynamics, such as the lag of a sensor or a PadeDelay",
            )
        return factor


def weakened(loop: PIDLoop, gains: Gains, bound: float) -> Gains:
    """Return the gains times the largest factor below one that keeps the bound, if there is one."""

    def keeps(factor: float) -> bool:
        return loop.peak(gains.times(factor))[0] <= bound

    factors = 1.0 - np.geomspace(1e-4, 0.99, 12)
    for above, factor in pairwise([1.0, *factors.tolist()]):
        if keeps(factor):
            return gains.times(bisect(keeps, factor, above))
    return gains
