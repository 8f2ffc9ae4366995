"""Rules for the gains of PID controllers: SIMC, AMIGO and lambda.

Each identifies a simple process that approximates the plant, with the static gain k, the lags T
and T2 and the dead time L. With the ideal form ``K (1 + 1/(Ti s) + Td s)``::

    SIMC, with the closed-loop time Tc = L, in series form K' (1 + 1/(Ti' s)) (Td' s + 1):
        K' = T / (k (Tc + L)),  Ti' = min(T, 4 (Tc + L)),  Td' = T2
    AMIGO, PI:   K = (0.15 + (0.35 - L T / (L + T)²) T / L) / k
                 Ti = 0.35 L + 13 L T² / (T² + 12 L T + 7 L²)
    AMIGO, PID:  K = (0.2 + 0.45 T / L) / k
                 Ti = L (0.4 L + 0.8 T) / (L + 0.1 T),  Td = 0.5 L T / (0.3 L + T)
    lambda, with the closed-loop time Tc = T:
        PI:   K = T / (k (L + Tc)),  Ti = T
        PID:  K = (T + L/2) / (k (L/2 + Tc)),  Ti = T + L/2,  Td = L T / (L + 2 T)

The rule lambda takes 1 - L s for the dead time of PI and (1 - L s/2) / (1 + L s/2) for that of PID,
cancels all else, and leaves the closed loop with the pole -1/Tc.

A process that integrates has T / k replaced by the inverse of the slope. SIMC then also takes two
integrators, with ``K' = 1 / (k'' 4 (Tc + L)²)`` and ``Ti' = Td' = 4 (Tc + L)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.design.pid.pid_loops import Gains, exponential

RULES = ("simc", "amigo", "lambda")
_ZERO = 1e-7  # poles that integrate, by the largest one
_ALIKE = 1e-4  # relative difference of what cancels
_DAMPED = 0.7  # damping ratio of pairs of poles that are as good as two lags
_ROUNDS = 20
_HALF_RULE = "a plant of lags, real zeros, dead time and few integrators"
_T63 = 1.0 - np.exp(-1.0)


def rule_gains(
    rule: str,
    plant: LinearModel,
    parts: str,
    closed_loop_time: float | None,
    ratio: float,
    attempt: str,
) -> Gains:
    """Return the gains of a rule ("simc", "amigo", "lambda"), in the parallel form of controllers.

    The plant is in continuous time, with the measurement as its first output; ``parts`` is "PI" or
    "PID", ``closed_loop_time`` Tc in s, for the rules that have it, and ``ratio`` the derivative
    time by the time constant of the derivative's filter.
    """
    if rule == "simc":
        process = half_rule(plant, len(parts) - 1, attempt)
        gain, integral, derivative = _simc(process, _time(process.delay, closed_loop_time, attempt))
    else:
        process = step_process(plant, attempt)
        if rule == "lambda":
            form = _lambda(process, parts, closed_loop_time, attempt)
        else:
            form = _amigo(process, parts, attempt)
        gain, integral, derivative = form
    lag = derivative / ratio or integral
    return Gains(gain, gain / integral, gain * derivative, lag)


def _simc(process: Process, closed: float) -> tuple[float, float, float]:
    """Return the gains of SIMC, in ideal form."""
    span = closed + process.delay
    if process.integrates and np.isinf(process.second):
        gain, integral, derivative = 1.0 / (process.gain * 4.0 * span**2), 4.0 * span, 4.0 * span
    else:
        lag = 1.0 if process.integrates else process.lag
        gain, integral = lag / (process.gain * span), min(process.lag, 4.0 * span)
        derivative = process.second
    more = 1.0 + derivative / integral
    return gain * more, integral * more, derivative / more


def _amigo(process: Process, parts: str, attempt: str) -> tuple[float, float, float]:
    """Return the gains of AMIGO, in ideal form."""
    k, T, L = process.gain, process.lag, process.delay
    if L == 0.0:
        raise _without_delay(attempt, "Take another rule, with closed_loop_time")
    if process.integrates:
        if parts == "PI":
            return 0.35 / (k * L), 13.4 * L, 0.0
        return 0.45 / (k * L), 8.0 * L, 0.5 * L
    if parts == "PI":
        gain = (0.15 + (0.35 - L * T / (L + T) ** 2) * T / L) / k
        return gain, 0.35 * L + 13.0 * L * T**2 / (T**2 + 12.0 * L * T + 7.0 * L**2), 0.0
    gain = (0.2 + 0.45 * T / L) / k
    return gain, L * (0.4 * L + 0.8 * T) / (L + 0.1 * T), 0.5 * L * T / (0.3 * L + T)


def _lambda(
    process: Process, parts: str, closed_loop_time: float | None, attempt: str
) -> tuple[float, float, float]:
    """Return the gains of lambda tuning, in ideal form."""
    k, T, L = process.gain, process.lag, process.delay
    if process.integrates:
        raise ValueRefusedError(
            attempt,
            expected="a plant that settles, for lambda tuning",
            found="one that integrates",
            remedy="Use rule='simc' or rule='amigo'",
        )
    closed = T if closed_loop_time is None else closed_loop_time
    if parts == "PI":
        return T / (k * (L + closed)), T, 0.0
    return (T + L / 2.0) / (k * (L / 2.0 + closed)), T + L / 2.0, L * T / (L + 2.0 * T)


def _time(delay: float, closed_loop_time: float | None, attempt: str) -> float:
    """Return the closed-loop time of SIMC: the dead time when there is none given."""
    if closed_loop_time is None and delay <= 0.0:
        raise _without_delay(attempt, "Pass closed_loop_time=")
    return delay if closed_loop_time is None else closed_loop_time


def _without_delay(attempt: str, remedy: str) -> ValueRefusedError:
    return ValueRefusedError(
        attempt,
        expected="a plant with a dead time, or with lags that count as one",
        found="none",
        remedy=remedy,
    )


@dataclass(frozen=True)
class Process:
    """``gain exp(-delay s) / ((lag s + 1)(second s + 1))``, or with integrators for the lags."""

    # Static gain; of one that integrates, the slope after a unit step, or that of the slope.
    gain: float
    # lag, second: time constants in s; an infinite one means an integrator, ``1 / s``.
    lag: float
    second: float
    delay: float  # dead time in s, whatever is fast included

    @property
    def integrates(self) -> bool:
        """Whether a lag is infinite."""
        return bool(np.isinf(self.lag))


def half_rule(plant: LinearModel, order: int, attempt: str) -> Process:
    """Return the process of order 1 or 2 that the half rule makes of a plant in continuous time.

    The largest neglected lag is given half to the smallest lag that is kept and half to the dead
    time, which gets all others and the zeros in the right half plane, too. Zeros in the left half
    plane first cancel lags near to them.
    """
    plant = plant.minimal()
    poles, zeros, delay = _without_allpasses(plant.poles, plant.zeros)
    size = max(np.abs(plant.poles).max(initial=0.0), 1e-300)
    integrators = int(np.sum(np.abs(poles) <= _ZERO * size))
    lags = _lags(poles[np.abs(poles) > _ZERO * size], attempt)
    leads = []
    for zero in zeros:
        if abs(zero.imag) > _ALIKE * abs(zero) or abs(zero) <= _ZERO * size:
            raise _refusal(attempt, _HALF_RULE, f"the zero {zero:.4g}")
        leads.append(-1.0 / zero.real)
    if integrators > order:
        raise _refusal(attempt, _HALF_RULE, f"{integrators} integrators")
    omega = 1.0 / max(sum(lags) + delay, 1e-3 / size)  # any one: it divides out
    value = plant.frequency_response(omega)[0, 0] * (1j * omega) ** integrators
    for lag in lags:
        value *= 1j * omega * lag + 1.0
    for lead in leads:
        value /= 1j * omega * lead + 1.0
    gain = float(np.copysign(abs(value), (value * np.exp(1j * omega * delay)).real))
    delay -= sum(lead for lead in leads if lead < 0.0)
    leads = [lead for lead in leads if lead > 0.0]
    slow = [np.inf] * integrators
    late = delay
    for _ in range(_ROUNDS):  # the rules for zeros ask for the dead time that comes out
        share, left = _cancelled(lags, leads, late)
        kept, found = _halved(slow + left, order)
        if abs(found + delay - late) <= 1e-12 * (found + delay):
            break
        late = found + delay
    return Process(gain * share, kept[0], kept[1], delay + found)


def _without_allpasses(
    poles: npt.NDArray[np.complex128], zeros: npt.NDArray[np.complex128]
) -> tuple[npt.NDArray[np.complex128], list[complex], float]:
    """Take out the zeros that are mirror images of poles, which together are a dead time."""
    left, others, delay = list(poles), [], 0.0
    for zero in zeros:
        distance = [abs(pole + np.conj(zero)) for pole in left]
        k = int(np.argmin(distance)) if left else -1
        if zero.real > 0.0 and left and distance[k] <= _ALIKE * abs(zero):
            delay += 2.0 * float((1.0 / zero).real)
            left.pop(k)
        else:
            others.append(complex(zero))
    return np.array(left, dtype=complex), others, delay


def _lags(poles: npt.NDArray[np.complex128], attempt: str) -> list[float]:
    """Return the time constants of stable poles, none of which may oscillate."""
    lags = []
    for pole in poles:
        if pole.real >= 0.0 or -pole.real < _DAMPED * abs(pole):
            raise _refusal(attempt, _HALF_RULE, f"the pole {pole:.4g}")
        lags.append(float(-(1.0 / pole).real))
    return sorted(lags, reverse=True)


def _cancelled(lags: list[float], leads: list[float], late: float) -> tuple[float, list[float]]:
    """Cancel the zeros with time constants against lags, after Skogestad's rules T1 to T3."""
    left, gain = sorted(lags, reverse=True), 1.0
    for lead in sorted(leads, reverse=True):
        slower = [lag for lag in left if lag >= lead]
        lag = min(slower) if slower else max(left)
        left.remove(lag)
        if lead >= lag:
            gain *= lead / lag if lag >= late else lead / late if lead >= late else 1.0
        elif lead >= 5.0 * late:
            gain *= lead / lag
        else:
            short = max(min(lag, 5.0 * late), lead)
            gain *= short / lag
            left.append(short - lead)
            left.sort(reverse=True)
    return gain, left


def _halved(lags: list[float], order: int) -> tuple[list[float], float]:
    """Return the two slowest lags, zero where they are not kept, and what joins the dead time."""
    ordered = [*sorted(lags, reverse=True), 0.0, 0.0, 0.0]
    kept, half = ordered[:order], ordered[order] / 2.0
    kept[-1] += half
    return [*sorted(kept, reverse=True), 0.0][:2], half + sum(ordered[order + 1 :])


def step_process(plant: LinearModel, attempt: str) -> Process:
    """Return the lag with dead time whose step response is most like that of a continuous plant.

    The dead time ends where the tangent at the steepest slope leaves the initial value, and lag
    and dead time together are the time after which 63 % are reached. For a plant that integrates,
    the tangent is the asymptote.
    """
    plant = plant.minimal()
    poles = plant.poles
    size = np.abs(poles).max(initial=0.0)
    integrating = np.abs(poles) <= _ZERO * max(size, 1e-300)
    if integrating.sum() > 1 or np.any(poles[~integrating].real >= 0.0):
        raise _refusal(attempt, "a plant that settles, or integrates once", f"the poles {poles}")
    if integrating.any():
        slope, offset = _asymptote(plant)
        return Process(slope, np.inf, 0.0, max(-offset / slope, 0.0))
    return _settling_process(plant, attempt)


def _asymptote(plant: LinearModel) -> tuple[float, float]:
    """Return slope and offset of the line to which the step response of an integrator goes."""
    A, B, C = plant.A, plant.B[:, 0], plant.C[0]
    left, right = _null_vector(A.T), _null_vector(A)
    projection = np.outer(right, left) / (left @ right)
    # Away from the integrator, A can be inverted; shifted, it can be so everywhere.
    rest = np.linalg.solve(A - projection * np.linalg.norm(A), B - projection @ B)
    return float(C @ projection @ B), float(-C @ rest)


def _null_vector(A: FloatArray) -> FloatArray:
    """Return the vector that a singular matrix takes to zero."""
    return np.asarray(np.linalg.svd(A)[2][-1])


def _settling_process(plant: LinearModel, attempt: str) -> Process:
    """Return the process of a stable plant."""
    from scipy.optimize import brentq

    A, B, C = plant.A, plant.B[:, 0], plant.C[0]
    rest = -np.linalg.solve(A, B)
    gain = float(C @ rest)
    slow = float(1.0 / np.abs(plant.poles.real).min(initial=np.inf))
    fast = float(1.0 / np.abs(plant.poles).max())
    times = np.concatenate([[0.0], np.geomspace(fast / 100.0, 10.0 * slow, 400)])
    share: Any = np.empty(len(times))
    slopes: Any = np.empty(len(times))
    for k, time in enumerate(times):
        flow = exponential(A * time)
        share[k], slopes[k] = 1.0 - C @ flow @ rest / gain, C @ flow @ B / gain
    if not gain or share.max() > 1.1:
        found = f"a response that overshoots by {100.0 * (share.max() - 1.0):.3g} %"
        raise _refusal(attempt, "a plant that settles without oscillation", found)

    def bend(time: float) -> float:
        return float(C @ A @ exponential(A * time) @ B / gain)

    k = int(np.argmax(slopes))
    steep, low, high = float(times[k]), times[max(k - 1, 0)], times[min(k + 1, len(times) - 1)]
    if bend(low) > 0.0 > bend(high):
        steep = float(brentq(bend, low, high, xtol=1e-12 * high))
    flow = exponential(A * steep)
    reached, slope = 1.0 - C @ flow @ rest / gain, C @ flow @ B / gain
    delay = max(float(steep - reached / slope), 0.0)
    k = int(np.argmax(share >= _T63))
    late = brentq(
        lambda time: float(1.0 - C @ exponential(A * time) @ rest / gain - _T63),
        times[k - 1],
        times[k],
    )
    return Process(gain, float(late) - delay, 0.0, delay)


def _refusal(attempt: str, expected: str, found: str) -> ValueRefusedError:
    """Return the refusal of a plant that a rule does not fit."""
    return ValueRefusedError(
        attempt,
        expected=f"for this rule, {expected}",
        found=found,
        remedy="Leave out rule=, and tune by a goal",
    )
