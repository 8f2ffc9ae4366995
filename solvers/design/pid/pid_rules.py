"""Rules for the gains of PID controllers: SIMC, AMIGO and lambda.

Each identifies a simple process, see `flexure.solvers.design.pid.pid_processes`, with the static
gain k, the lags T and T2 and the dead time L. With the ideal form ``K (1 + 1/(Ti s) + Td s)``::

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

import numpy as np

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.design.pid.pid_loops import Gains
from flexure.solvers.design.pid.pid_processes import Process, half_rule, step_process

RULES = ("simc", "amigo", "lambda")


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
