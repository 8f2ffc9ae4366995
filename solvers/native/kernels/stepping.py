"""Kernels of step-size control: from trial steps to good ones, the same for every method."""

from __future__ import annotations

from flexure.solvers.integration.step_control import LEAST_FACTOR, SAFETY, SMALLEST_ERROR
from flexure.solvers.native.kernels import explicit, rosenbrock
from flexure.solvers.native.kernels.arithmetic import INFINITY, copy, larger, smaller
from flexure.solvers.native.kernels.run import Run
from flexure.solvers.native.language.language import (
    Floats,
    Static,
    nextafter,
    power,
    sqrt,
    unrolled,
)


def begin(run: Run, method: Static) -> None:
    """Begin a motion: the slope at the present state, and the first step if none is given."""
    run.restarts += 1
    run.rhs(smaller(run.time, run.clip), run.x, run.env, run.k)
    run.evaluations += 1
    run.moved = 0
    run.known = 0
    run.ready = 0
    run.error_old = SMALLEST_ERROR
    run.h_first = run.h_next
    interval = run.stop - run.time
    if run.h_next > 0.0:
        run.h_next = smaller(run.h_next, smaller(run.max_step, interval))
    else:
        run.h_next = initial_step(run, method, interval)


def initial_step(run: Run, method: Static, interval: float) -> float:
    """Suggest a first step, as `flexure.solvers.integration.rosenbrock.initial_step` does."""
    n, x, k, y = run.n, run.x, run.k, run.work
    d0 = scaled_norm(n, x, x, run.rtol, run.atol)
    d1 = scaled_norm(n, k, x, run.rtol, run.atol)
    h = 1e-6
    if d0 >= 1e-5 and d1 >= 1e-5:
        h = 0.01 * d0 / d1
    h = smaller(h, interval)
    for i in range(n):
        y[i] = x[i] + h * k[i]
    run.rhs(smaller(run.time + h, run.clip), y, run.env, run.x_new)
    run.evaluations += 1
    for i in range(n):
        run.x_new[i] -= k[i]
    d2 = scaled_norm(n, run.x_new, x, run.rtol, run.atol) / h
    if not d2 < INFINITY:
        d2 = d1
    later = larger(1e-6, h * 1e-3)
    if d1 > 1e-15 or d2 > 1e-15:
        later = power(0.01 / larger(d1, d2), 1.0 / (method.error_order + 1))
    return smaller(smaller(100.0 * h, later), smaller(interval, run.max_step))


def scaled_norm(n: int, v: Floats, x: Floats, rtol: Floats, atol: Floats) -> float:
    """Return the root mean square of a vector in units of the tolerance at a state."""
    total = 0.0
    for i in range(n):
        part = v[i] / (atol[i] + abs(x[i]) * rtol[i])
        total += part * part
    return sqrt(total / n)


def take_step(run: Run, method: Static) -> bool:
    """Try shorter and shorter steps until one is good; tell whether one was found."""
    n = run.n
    if run.moved == 1:
        copy(n, run.k[method.last * n :], run.k)
        run.moved = 0
    h = run.h_next
    run.h_wanted = h
    if h > run.max_step:
        h = run.max_step
    elif is_too_short(h, run.time):
        h = shortest_step(run.time)
    rejected = False
    while True:
        if is_too_short(h, run.time):
            return False
        end = smaller(run.time + h, run.stop)
        run.h = end - run.time
        h = run.h
        error = run.attempt(run)
        if error < 1.0:
            run.h_next = h * growth(run, method, error, rejected)
            accept(run, end)
            return True
        h *= shrinking(method, error)
        rejected = True
        run.rejected += 1


def is_too_short(h: float, time: float) -> bool:
    """Tell whether a step is shorter than 10 spacings of floating-point numbers, or NaN."""
    if h >= 1e-14 * abs(time) + 1e-306:  # a quick look: spacings are at most 2.3e-16 of a number
        return False
    return not h >= shortest_step(time)


def shortest_step(time: float) -> float:
    """Return 10 spacings of floating-point numbers."""
    return 10.0 * (nextafter(time, INFINITY) - time)


def growth(run: Run, method: Static, error: float, rejected: bool) -> float:
    """Return how much longer than a good step the next one is to be."""
    factor: float = method.largest_factor
    # Below some error the step grows as much as it may, whatever the power would be.
    small = 0.99 * (SAFETY / method.largest_factor) ** (method.error_order + 1)
    if error > (0.0 if method.beta > 0.0 else small):
        if method.beta > 0.0:
            exponent = -1.0 / (method.error_order + 1) + 0.75 * method.beta
            wanted = SAFETY * power(error, exponent) * power(run.error_old, method.beta)
        else:
            wanted = SAFETY * power(error, -1.0 / (method.error_order + 1))
        factor = larger(LEAST_FACTOR, smaller(factor, wanted))
    run.error_old = larger(error, SMALLEST_ERROR)
    if rejected:
        factor = smaller(factor, 1.0)
    return factor


def shrinking(method: Static, error: float) -> float:
    """Return how much shorter than a bad step the next try is to be."""
    if not error < INFINITY:
        return LEAST_FACTOR
    return larger(LEAST_FACTOR, SAFETY * power(error, -1.0 / (method.error_order + 1)))


def accept(run: Run, end: float) -> None:
    """Move to the end of a good step."""
    run.steps += 1
    run.time_old, run.time_new, run.time = run.time, end, end
    old = run.x_old
    run.x_old = run.x
    run.x = run.x_new
    run.x_new = old
    run.moved = 1
    run.known = 0
    run.ready = 0


def state_inside(run: Run, method: Static, time: float, out: Floats) -> None:
    """Compute the state at a time inside of the last step."""
    if time == run.time_new and run.time == run.time_new:
        copy(run.n, run.x, out)
        return
    if run.ready == 0:
        if method.linear:
            rosenbrock.prepare_interpolant(run, method.tableau, run.n, run.rhs)
        else:
            explicit.prepare_interpolant(run, method.tableau, run.n, run.rhs)
        run.ready = 1
    if method.linear:
        rosenbrock.interpolate(run, method.tableau, run.n, time, out)
    else:
        explicit.interpolate(run, method.tableau, run.n, time, out)


def limited_by_stability(run: Run, method: Static) -> bool:
    """Tell whether the last step was about as long as stability allows.

    See `flexure.solvers.integration.stiffness.StiffnessDetector`.
    """
    n, x, k = run.n, run.x, run.k
    changes = 0.0
    distances = 0.0
    for i in range(n):
        weight = run.atol[i] + run.rtol[i] * abs(x[i])
        change = (k[method.last * n + i] - k[(method.last - 1) * n + i]) / weight
        distance = 0.0
        for j in unrolled(method.last):
            distance += method.difference[j] * k[j * n + i]
        distance /= weight
        changes += change * change
        distances += distance * distance
    limited: bool = changes > method.threshold * method.threshold * distances
    return limited
