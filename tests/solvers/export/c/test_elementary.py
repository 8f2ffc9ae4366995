"""The elementary functions that are ours err by less than one unit in the last place."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np

from flexure.solvers.native.kernels.parts import elementary

_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def sine(angle: Decimal) -> Decimal:
    """Return a sine by its Taylor series, of a small angle."""
    angle -= 2 * _PI * round(angle / (2 * _PI))
    term = total = angle
    for k in range(1, 40):
        term *= -angle * angle / (2 * k * (2 * k + 1))
        total += term
    return total


def worst(found: Callable[..., float], exact: Callable[..., Decimal], *columns: object) -> float:
    """Return the largest error in units of the last place."""
    errors = []
    with localcontext() as context:
        context.prec = 60
        for row in zip(*(np.asarray(each, float).tolist() for each in columns), strict=True):
            value = found(*row)
            error = Decimal(value) - exact(*map(Decimal, row))
            errors.append(abs(float(error / Decimal(math.ulp(value)))))
    return max(errors)


def test_errors_are_below_one_unit_in_the_last_place() -> None:
    rng = np.random.default_rng(3)
    wide, near = rng.uniform(-700.0, 700.0, 300), rng.uniform(-1.0, 1.0, 300)
    angles = np.hstack([rng.uniform(-1e6, 1e6, 300), 7.0 * near, 1e-4 * near])
    angles = np.hstack([angles, 0.5 * np.pi * np.arange(1, 50)])
    both = np.hstack([wide, near])
    positive = np.hstack([np.exp(wide), 1.0 + 0.5 * near, 1.0 + 1e-9 * near])
    base, power = rng.uniform(0.01, 100.0, 300), rng.uniform(-100.0, 100.0, 300)
    assert worst(elementary.exp_of, Decimal.exp, both) < 0.75
    assert worst(elementary.log_of, Decimal.ln, positive) < 0.75
    assert worst(elementary.sin_of, sine, angles) < 0.8
    assert worst(elementary.cos_of, lambda a: sine(a + _PI / 2), angles) < 0.8
    assert worst(elementary.pow_of, lambda a, b: (a.ln() * b).exp(), base, power) < 0.75


def test_special_numbers_are_those_of_the_c_library() -> None:
    exp, log, sin, power = (getattr(elementary, f"{n}_of") for n in ("exp", "log", "sin", "pow"))
    assert [exp(0.0), exp(1000.0), exp(-1000.0), log(1.0)] == [1.0, math.inf, 0.0, 0.0]
    assert [log(0.0), log(math.inf)] == [-math.inf, math.inf]
    assert math.isnan(log(-1.0))
    assert math.copysign(1.0, sin(-0.0)) == -1.0
    assert [power(-2.0, 3.0), power(-2.0, 2.0), power(0.0, 0.0)] == [-8.0, 4.0, 1.0]
    assert math.isnan(power(-2.0, 0.5))
