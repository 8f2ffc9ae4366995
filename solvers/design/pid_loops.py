"""The loop of a plant and a PID controller: peak of the sensitivity, poles, and largest gains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flexure.diagrams.values import FloatArray
from flexure.solvers.analysis.linear_model import LinearModel
from flexure.solvers.analysis.poles import all_decay

Response = npt.NDArray[np.complex128]
_BEYOND = 100.0  # how far the frequencies go beyond those of the poles
_COUNT = 250


@dataclass(frozen=True)
class Gains:
    """Gains of a PID controller, ``kp + ki / s + kd s / (lag s + 1)``."""

    kp: float
    ki: float
    kd: float
    lag: float

    def response(self, omega: FloatArray) -> Response:
        """Return the frequency response."""
        s = 1j * omega
        return np.asarray(self.kp + self.ki / s + self.kd * s / (self.lag * s + 1.0))

    def times(self, factor: float) -> Gains:
        """Return all gains times a factor."""
        return Gains(self.kp * factor, self.ki * factor, self.kd * factor, self.lag)


class PIDLoop:
    """A plant with one input and one output without a direct way, and frequencies that show it.

    Parameters
    ----------
    plant : LinearModel
        From the output of the controller to its measurement, in continuous time.
    """

    def __init__(self, plant: LinearModel) -> None:
        self.plant = plant
        size = np.abs(plant.poles)
        size = size[size > 1e-9 * size.max(initial=0.0)]
        low, high = (size.min(), size.max()) if size.size else (1.0, 1.0)
        spread = np.geomspace(low / _BEYOND, high * _BEYOND, _COUNT)
        self.omega = np.unique(np.concatenate([spread, _around(plant.poles)]))
        self.response = plant.frequency_response(self.omega)[:, 0, 0]

    def poles(self, gains: Gains) -> npt.NDArray[np.complex128]:
        """Return the poles of the closed loop."""
        A, B, C = self.plant.A, self.plant.B, self.plant.C
        n, slope = len(A), gains.kd / gains.lag
        closed = np.zeros((n + 2, n + 2))
        closed[:n, :n] = A - B @ C * (gains.kp + slope)
        closed[:n, n], closed[:n, n + 1] = B[:, 0] * gains.ki, -B[:, 0] * slope
        closed[n, :n], closed[n + 1, :n] = -C[0], -C[0] / gains.lag
        closed[n + 1, n + 1] = -1.0 / gains.lag
        count = n + 2 if gains.kd else n + 1  # without a derivative part, there is no filter
        return np.linalg.eigvals(closed[:count, :count]).astype(complex)

    def is_stable(self, gains: Gains) -> bool:
        """Tell whether all poles of the closed loop decay."""
        return all_decay(self.poles(gains), None)

    def peak(self, gains: Gains) -> tuple[float, float]:
        """Return the peak of the sensitivity, and its frequency."""
        from scipy.optimize import minimize_scalar

        # What is sharp lies at the poles of the closed loop.
        grid = np.unique(np.concatenate([self.omega, _around(self.poles(gains))]))
        response = self.plant.frequency_response(grid)[:, 0, 0]
        distance = np.abs(1.0 + gains.response(grid) * response)
        k = int(np.argmin(distance))
        ends = np.log(grid[[max(k - 1, 0), min(k + 1, len(grid) - 1)]])

        def near(place: float) -> float:
            omega = np.exp([place])
            plant = self.plant.frequency_response(omega)[:, 0, 0]
            return float(np.abs(1.0 + gains.response(omega) * plant)[0])

        found = minimize_scalar(near, bounds=ends, method="bounded", options={"xatol": 1e-6})
        if found.fun < distance[k]:
            return 1.0 / float(found.fun), float(np.exp(found.x))
        return 1.0 / float(distance[k]), float(grid[k])

    def crosses_late(self, gains: Gains) -> bool:
        """Tell whether the loop gain is more than one where no dynamics are left."""
        late = self.omega > 0.1 * self.omega[-1]
        return bool(np.any(np.abs(gains.response(self.omega) * self.response)[late] > 1.0))

    def strongest(self, shape: Gains, bound: float) -> float:
        """Return the largest factor that keeps the bound: 0 if none does, inf if all do."""
        loop = shape.response(self.omega) * self.response
        size = np.abs(loop)
        factors = np.geomspace(1e-3 / size.max(), 1e3 / size.min(), 60)
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


def _around(poles: npt.NDArray[np.complex128]) -> FloatArray:
    """Return frequencies at which the resonances of poles show."""
    widths = np.outer([-1.0, 1.0], [0.0, 0.3, 0.7, 1.0, 1.5, 2.5, 4.0, 7.0, 12.0, 20.0, 35.0])
    found = (np.abs(poles.imag)[:, np.newaxis] + np.outer(np.abs(poles.real), widths)).ravel()
    return np.asarray(found[found > 1e-6 * np.abs(poles).max(initial=0.0)], dtype=float)


def bisect(keeps: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest factor that keeps a rule, between one that does and one that does not."""
    for _ in range(20):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return float(low)


__all__ = ["Gains", "PIDLoop", "bisect"]
