"""The loop of a plant and a PID controller: peak of the sensitivity, poles, and largest gains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.poles import all_decay

Response = npt.NDArray[np.complex128]
_BEYOND = 100.0  # how far the frequencies go beyond those of the poles
_COUNT = 250
_LEVEL = 32  # steps after which their length doubles
_DECAYED = 12.0  # times of the slowest pole, after which nothing is left to see
_MOST_LEVELS = 40
_ROUNDING = 1e-14  # of the fastest pole: whether slower ones decay is not known


@dataclass(frozen=True)
class Gains:
    """Gains of a PID controller, ``kp + ki / s + kd s / (lag s + 1)``."""

    kp: float
    ki: float
    kd: float
    lag: float

    def times(self, factor: float) -> Gains:
        """Return all gains times a factor."""
        return Gains(self.kp * factor, self.ki * factor, self.kd * factor, self.lag)


class PIDLoop:
    """A plant with one input and a measurement without a direct way, and frequencies that show it.

    The plant leads from the output of the controller to its measurement and, where that comes from
    outside, the rate of it. A sampled one has the output of the controller among its states where
    it is seen at once, and the controller ``s = (1 - 1/z) / period`` instead of s.
    """

    def __init__(self, plant: LinearModel) -> None:
        self.plant = plant
        self.period = plant.period
        self.has_rate = len(plant.C) > 1
        poles = self.rates(plant.poles)
        size = np.abs(poles)
        size = size[size > 1e-9 * size.max(initial=0.0)]
        low, high = (size.min(), size.max()) if size.size else (1.0, 1.0)
        low, high = low / _BEYOND, high * _BEYOND
        if self.period is not None:
            high = np.pi / self.period
            low = min(low, high / _BEYOND)
        spread = np.geomspace(low, high, _COUNT)
        self.omega = self._merged(spread, poles)
        self.response = plant.frequency_response(self.omega)[:, :, 0]

    def rates(self, poles: npt.ArrayLike) -> Response:
        """Return poles in rad/s; those of a sampled model that vanish at once are left out."""
        found = np.asarray(poles, dtype=complex)
        if self.period is None:
            return found
        return np.asarray(np.log(found[np.abs(found) > 1e-6]) / self.period)

    def _merged(self, omega: FloatArray, poles: Response) -> FloatArray:
        """Return frequencies and those around poles in rad/s, up to that of a sampled model."""
        found = np.unique(np.concatenate([omega, _around(poles)]))
        return found if self.period is None else found[found <= np.pi / self.period]

    def loop_gain(self, gains: Gains, omega: FloatArray, response: Response) -> Response:
        """Return the loop gain, given the response of the plant at the frequencies."""
        s = 1j * omega
        if self.period is not None:
            s = -np.expm1(-s * self.period) / self.period
        if self.has_rate:
            own = (gains.kp + gains.ki / s) * response[:, 0]
            return np.asarray(own + gains.kd * response[:, 1])
        parts = gains.kp + gains.ki / s + gains.kd * s / (gains.lag * s + 1.0)
        return np.asarray(parts * response[:, 0])

    def closed(
        self, gains: Gains, weight: float = 1.0, derivative_weight: float = 0.0
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return A, B and C of the closed loop, from the setpoint to the measurement.

        The states are those of the plant, the integral, and that of the filter; the last two only
        with a gain. The weights are those of the setpoint.
        """
        A, B, C = self.plant.A, self.plant.B, self.plant.C[:1]
        n, (kp, ki, kd, lag) = len(A), (gains.kp, gains.ki, gains.kd, gains.lag)
        period = self.period
        T = period or 0.0
        slope = 0.0 if self.has_rate else kd / (lag + T)
        closed, entry = np.zeros((n + 2, n + 2)), np.zeros(n + 2)
        now = kp + slope if period is None else kp + slope + ki * T
        closed[:n, :n] = A - B @ C * now
        if self.has_rate:
            closed[:n, :n] -= B @ self.plant.C[1:] * kd
        closed[:n, n] = B[:, 0] * ki
        entry[:n] = B[:, 0] * (kp * weight + ki * T + slope * derivative_weight)
        if period is None:
            closed[:n, n + 1] = -B[:, 0] * slope
            closed[n, :n], closed[n + 1, :n] = -C[0], -C[0] / lag
            closed[n + 1, n + 1] = -1.0 / lag
            entry[n:] = 1.0, derivative_weight / lag
        else:  # the filter keeps lag d - (c r - y) of the sample before
            share = period / (lag + period)
            closed[:n, n + 1] = B[:, 0] * slope
            closed[n, :n], closed[n + 1, :n] = -C[0] * period, C[0] * share
            closed[n, n], closed[n + 1, n + 1] = 1.0, lag / (lag + period)
            entry[n:] = period, -derivative_weight * share
        kept = [*range(n), *([n] if ki else []), *([n + 1] if kd and not self.has_rate else [])]
        return closed[np.ix_(kept, kept)], entry[kept], np.append(C[0], [0.0, 0.0])[kept]

    def poles(self, gains: Gains) -> Response:
        """Return the poles of the closed loop."""
        return np.linalg.eigvals(self.closed(gains)[0]).astype(complex)

    def is_stable(self, gains: Gains) -> bool:
        """Return whether all poles of the closed loop decay, by more than rounding."""
        poles = self.poles(gains)
        if not all_decay(poles, self.period):
            return False
        lost = _ROUNDING * np.abs(poles).max(initial=0.0)
        return self.period is not None or bool(np.all(poles.real < -lost))

    def setpoint_error(
        self, gains: Gains, weight: float, derivative_weight: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return times and the error after a unit step of the setpoint, in a stable loop.

        The steps double in length, so that fast and slow poles are resolved alike.
        """
        A, B, C = self.closed(gains, weight, derivative_weight)
        sizes = self.rates(np.linalg.eigvals(A))
        if self.period is None:
            rest, step = -np.linalg.solve(A, B), 0.05 / np.abs(sizes).max()
            flow = exponential(A * step)
        else:
            rest, step = np.linalg.solve(np.eye(len(A)) - A, B), self.period
            flow = A
        span = _DECAYED / np.abs(sizes.real).min(initial=np.inf)
        powers = [flow]
        while 2 ** len(powers) < _LEVEL:
            powers.append(powers[-1] @ powers[-1])
        time, state = 0.0, -rest[:, np.newaxis]
        times, errors = [np.zeros(1)], [1.0 - C @ (rest[:, np.newaxis] + state)]
        for level in range(_MOST_LEVELS):
            states = powers[0] @ state
            for power in powers:
                states = np.hstack([states, power @ states])
            times.append(time + step * np.arange(1, _LEVEL + 1))
            errors.append(1.0 - C @ (rest[:, np.newaxis] + states))
            time, state = float(times[-1][-1]), states[:, -1:]
            if time > span:
                break
            if level:  # the first length twice: from then on, a step is a share of the time
                powers = [*powers[1:], powers[-1] @ powers[-1]]
                step *= 2.0
        return np.concatenate(times), np.concatenate(errors)

    def peak(self, gains: Gains) -> tuple[float, float]:
        """Return the peak of the sensitivity, and its frequency."""
        from scipy.optimize import minimize_scalar

        # What is sharp lies at the poles of the closed loop.
        grid = self._merged(self.omega, self.rates(self.poles(gains)))
        response = self.plant.frequency_response(grid)[:, :, 0]
        distance = np.abs(1.0 + self.loop_gain(gains, grid, response))
        k = int(np.argmin(distance))
        low, high = np.log(grid[[max(k - 1, 0), min(k + 1, len(grid) - 1)]]).tolist()

        def near(place: float) -> float:
            omega = np.exp([place])
            plant = self.plant.frequency_response(omega)[:, :, 0]
            return float(np.abs(1.0 + self.loop_gain(gains, omega, plant))[0])

        found = minimize_scalar(near, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
        if found.fun < distance[k]:
            return 1.0 / float(found.fun), float(np.exp(found.x))
        return 1.0 / float(distance[k]), float(grid[k])

    def crosses_late(self, gains: Gains) -> bool:
        """Return whether the loop gain is more than one where no dynamics are left."""
        if self.period is not None:  # samples limit any loop
            return False
        late = self.omega > 0.1 * self.omega[-1]
        return bool(np.any(np.abs(self.loop_gain(gains, self.omega, self.response))[late] > 1.0))

    def strongest(self, shape: Gains, bound: float) -> float:
        """Return the largest factor that keeps the bound: 0 if none does, inf if all do."""
        loop = self.loop_gain(shape, self.omega, self.response)
        size = np.abs(loop)
        # Beyond, the loop gain crosses one where nothing is looked at, and may do so unseen.
        most = 1.0 / size[-1] if self.period is None else 1e3 / size.min()
        factors = np.geomspace(1e-3 / size.max(), most, 60)
        nearest = np.abs(1.0 + np.multiply.outer(factors, loop)).min(axis=1)
        fits = 1.0 / nearest <= bound
        # Where the bound is kept all the way, no pole comes to the imaginary axis.
        ends = np.flatnonzero(fits & ~np.append(fits[1:], False))
        for k in ends[::-1]:
            if self.is_stable(shape.times(factors[k])):
                break
        else:
            return 0.0
        if k == len(factors) - 1:
            return np.inf
        return bisect(
            lambda factor: bool(1.0 / np.abs(1.0 + factor * loop).min() <= bound),
            factors[k],
            factors[k + 1],
        )


def _around(poles: Response) -> FloatArray:
    """Return frequencies at which the resonances of poles show."""
    widths = np.outer([-1.0, 1.0], [0.0, 0.3, 0.7, 1.0, 1.5, 2.5, 4.0, 7.0, 12.0, 20.0, 35.0])
    found = (np.abs(poles.imag)[:, np.newaxis] + np.outer(np.abs(poles.real), widths)).ravel()
    return np.asarray(found[found > 1e-6 * np.abs(poles).max(initial=0.0)], dtype=float)


def exponential(A: FloatArray) -> FloatArray:
    """Return the exponential of a small matrix, for which SciPy waits for its threads."""
    halvings = max(0, int(np.ceil(np.log2(np.abs(A).sum(axis=0).max() + 1e-300))) + 1)
    part = A / 2.0**halvings
    term = flow = np.eye(len(A))
    for k in range(1, 14):
        term = term @ part / k
        flow = flow + term
    for _ in range(halvings):
        flow = flow @ flow
    return np.asarray(flow)


def bisect(keeps: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest factor that keeps a rule, between one that does and one that does not."""
    for _ in range(20):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return float(low)
