"""The truth about each workload: its equations in NumPy, its exact motion, and the error of a run.

The equations are written by hand, independently of the models of any side, those of mechanisms in
`mechanics`; the models are checked against them before anything is timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.versus import mechanics
from benchmarks.versus.workloads import (
    Array,
    BouncingBall,
    ControlledMass,
    MassChain,
    Mechanism,
    SampledPendulum,
    StiffOscillator,
    Workload,
)

#: Gives the derivative of the state at a time and state.
Equations: TypeAlias = Callable[[float, Array], Array]
#: Gives the compared signals at times, one row per time.
Motion: TypeAlias = Callable[[Array], Array]


def equations(workload: Workload) -> Equations:
    """Return the right-hand side of a workload; of one with a controller, at zero torque."""
    match workload:
        case ControlledMass():
            return lambda t, x: _controlled_mass(workload, t, x)
        case MassChain():
            return lambda t, x: _mass_chain(workload, x)
        case SampledPendulum():
            return lambda t, x: np.array(_pendulum(workload, x[0], x[1], 0.0))
        case BouncingBall():
            return lambda t, x: np.array([x[1], -workload.g])
        case StiffOscillator():
            return lambda t, x: _oscillator(workload, t, x)
        case Mechanism():
            return lambda t, x: mechanics.derivatives(workload, x)
    raise NotImplementedError(workload)


def error(workload: Workload, times: ArrayLike, values: ArrayLike) -> float:
    """Return the largest error of a run, relative to the largest compared number.

    Parameters
    ----------
    workload : Workload
        What was run.
    times : array_like, shape (k,)
        When the run tells its state: the ends of its steps, or the ticks of the pendulum.
    values : array_like, shape (k, n)
        The compared signals at these times.
    """
    exact = motion(workload)(np.asarray(times, dtype=float))
    found = np.asarray(values, dtype=float)
    if found.shape != exact.shape:
        raise ValueError(f"{workload.name}: expected shape {exact.shape}, found {found.shape}")
    return float(np.max(np.abs(found - exact)) / np.max(np.abs(exact)))


@cache
def motion(workload: Workload) -> Motion:
    """Return the exact motion of a workload, to about twelve digits."""
    match workload:
        case ControlledMass() | StiffOscillator():
            return _response(equations(workload), workload.initial, workload.frequency)
        case MassChain():
            return _response(equations(workload), workload.initial, 0.0)
        case SampledPendulum():
            log = _pendulum_log(workload)
            return lambda times: log[np.rint(times / workload.period).astype(int)]
        case BouncingBall():
            return lambda times: _height(workload, times)
        case Mechanism():
            return _integrated(workload)
    raise NotImplementedError(workload)


# Equations ----------------------------------------------------------------------------------------


def _controlled_mass(w: ControlledMass, t: float, x: Array) -> Array:
    integral, filtered, q, v = x
    error = w.amplitude * np.sin(w.frequency * t) - q
    slope = (error - filtered) / w.filter_time
    force = w.kp * error + w.ki * integral + w.kd * slope
    return np.array([error, slope, v, (force - w.k * q - w.d * v) / w.m])


def _mass_chain(w: MassChain, x: Array) -> Array:
    q, v = x[: w.count], x[w.count :]
    stretch = w.spacing - w.rest_length + np.diff(q, prepend=0.0)
    pull = w.k * stretch + w.d * np.diff(v, prepend=0.0)
    return np.concatenate([v, np.diff(pull, append=0.0) / w.m])


def _pendulum(w: SampledPendulum, q: float, v: float, torque: float) -> tuple[float, float]:
    weight = w.m * w.g * w.length * math.sin(q)
    return v, (torque - w.b * v - weight) / (w.m * w.length**2)


def _oscillator(w: StiffOscillator, t: float, x: Array) -> Array:
    q, v = x
    push = w.amplitude * np.sin(w.frequency * t)
    return np.array([v, (push - w.d * v - w.k * q) / w.m])


# Exact motions ------------------------------------------------------------------------------------


def _response(f: Equations, initial: Array, frequency: float) -> Motion:
    """Solve x′ = A x + drive sin(frequency t) + offset by the eigenvectors of A."""
    zero = np.zeros_like(initial)
    offset = f(0.0, zero)
    A = np.column_stack([f(0.0, unit) - offset for unit in np.eye(initial.size)])
    drive = f(0.5 * math.pi / frequency, zero) - offset if frequency else zero
    rest = -np.linalg.solve(A, offset)
    swing = np.linalg.solve(1j * frequency * np.eye(initial.size) - A, drive)
    rates, modes = np.linalg.eig(A)
    weights = np.linalg.solve(modes, (initial - rest - swing.imag).astype(complex))

    def states(times: Array) -> Array:
        t = times[:, None]
        fading: NDArray[np.complex128] = (np.exp(rates * t) * weights) @ modes.T
        value: Array = rest + (swing * np.exp(1j * frequency * t)).imag + fading.real
        return value

    return states


def _integrated(w: Workload) -> Motion:
    """Integrate with far tighter tolerances than any side needs."""
    from scipy.integrate import solve_ivp  # here, as the new process of `cold` does without

    span = (0.0, w.horizon)
    solution = solve_ivp(
        equations(w), span, w.initial, "DOP853", dense_output=True, rtol=1e-12, atol=1e-13
    )
    interpolant = solution.sol
    if not solution.success or interpolant is None:
        raise RuntimeError(f"{w.title}: {solution.message}")

    def states(times: Array) -> Array:
        value: Array = interpolant(times).T
        return value

    return states


def _pendulum_log(w: SampledPendulum, parts: int = 4) -> Array:
    """Return angle and torque at all ticks, by the classical Runge-Kutta method in small steps."""
    h = w.period / parts
    q, v = w.initial.tolist()
    torque = 0.0
    rows = []
    for _ in w.ticks:
        rows.append((q, torque))
        torque = -(w.kp * q + w.kd * v)
        for _ in range(parts):
            a1, b1 = _pendulum(w, q, v, torque)
            a2, b2 = _pendulum(w, q + 0.5 * h * a1, v + 0.5 * h * b1, torque)
            a3, b3 = _pendulum(w, q + 0.5 * h * a2, v + 0.5 * h * b2, torque)
            a4, b4 = _pendulum(w, q + h * a3, v + h * b3, torque)
            q += h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
            v += h / 6.0 * (b1 + 2.0 * b2 + 2.0 * b3 + b4)
    return np.array(rows)


def impact_times(w: BouncingBall) -> Array:
    """Return the times of the impacts up to the first one after the horizon."""
    fall = math.sqrt(2.0 * w.height / w.g)
    flights = 2.0 * fall * w.restitution ** np.arange(1, w.impacts + 1)
    return fall + np.concatenate([[0.0], np.cumsum(flights)])


def _height(w: BouncingBall, times: Array) -> Array:
    """Follow the parabola of the flight in which each time lies."""
    bounces = np.searchsorted(impact_times(w), times)
    starts = np.concatenate([[-impact_times(w)[0]], impact_times(w)])[bounces]
    takeoff = math.sqrt(2.0 * w.g * w.height) * w.restitution ** bounces.astype(float)
    flight = times - starts
    height: Array = takeoff * flight - 0.5 * w.g * flight**2
    return height[:, None]
