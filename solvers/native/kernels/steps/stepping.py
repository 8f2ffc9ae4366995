"""Kernels of step-size control: from trial steps to good ones, the same for every method."""

from __future__ import annotations

from flexure.solvers.integration.methods.projecting import PULLED, TIMES
from flexure.solvers.integration.methods.step_control import LEAST_FACTOR, SAFETY, SMALLEST_ERROR
from flexure.solvers.native.kernels.parts.arithmetic import (
    INFINITY,
    all_finite,
    copy,
    larger,
    smaller,
)
from flexure.solvers.native.kernels.parts.manifold import LOST, MOVED, bend, place
from flexure.solvers.native.kernels.parts.run import (
    PROJECTED,
    TAKEN,
    Run,
    StepData,
    SystemData,
    ToleranceData,
)
from flexure.solvers.native.kernels.steps import explicit, rosenbrock
from flexure.solvers.native.language.language import (
    Floats,
    Real,
    Reals,
    Static,
    nextafter,
    power,
    sqrt,
    unrolled,
    where,
)


def begin(run: Run, method: Static) -> None:
    """Begin a motion: the slope at the present state, and the first step if none is given."""
    step, longest = run.step, run.tolerances.max_step
    run.counts.restarts += 1
    run.system.rhs(smaller(step.time, step.clip), step.x, run.system.env, step.k)
    run.counts.evaluations += 1
    step.moved = 0
    run.linear.known = 0
    step.ready = 0
    step.error_old = SMALLEST_ERROR
    step.h_first = step.h_next
    interval = run.motion.stop - step.time
    if step.h_next > 0.0:
        step.h_next = smaller(step.h_next, smaller(longest, interval))
    else:
        system, allowed, x, k = run.system, run.tolerances, step.x, step.k
        step.h_next = initial_step(
            method, system, allowed, step.time, step.clip, interval, x, k, step.work, step.x_new
        )
        run.counts.evaluations += 1


def initial_step(
    method: Static,
    system: SystemData,
    tolerances: ToleranceData,
    time: Real,
    clip: Real,
    interval: Real,
    x: Reals,
    k: Reals,
    y: Reals,
    slope: Reals,
) -> Real:
    """Suggest a first step, like `flexure.solvers.integration.methods.rosenbrock.initial_step`."""
    n, rtol, atol = system.n, tolerances.rtol, tolerances.atol
    d0 = scaled_norm(n, x, x, rtol, atol)
    d1 = scaled_norm(n, k, x, rtol, atol)
    h = where(d0 >= 1e-5 and d1 >= 1e-5, 0.01 * d0 / d1, 1e-6)
    h = smaller(h, interval)
    for i in range(n):
        y[i] = x[i] + h * k[i]
    system.rhs(smaller(time + h, clip), y, system.env, slope)
    for i in range(n):
        slope[i] = slope[i] - k[i]
    d2 = scaled_norm(n, slope, x, rtol, atol) / h
    d2 = where(d2 < INFINITY, d2, d1)
    later = power(0.01 / larger(d1, d2), 1.0 / (method.error_order + 1))
    later = where(d1 > 1e-15 or d2 > 1e-15, later, larger(1e-6, h * 1e-3))
    return smaller(smaller(100.0 * h, later), smaller(interval, tolerances.max_step))


def scaled_norm(n: int, v: Reals, x: Reals, rtol: Floats, atol: Floats) -> Real:
    """Return the root mean square of a vector in units of the tolerance at a state."""
    total: Real = 0.0
    for i in range(n):
        part = v[i] / (atol[i] + abs(x[i]) * rtol[i])
        total += part * part
    norm: Real = sqrt(total / n)
    return norm


def take_step(run: Run, method: Static) -> bool:
    """Try shorter and shorter steps until one is good; tell whether one was found."""
    step, n, longest = run.step, run.system.n, run.tolerances.max_step
    if step.moved == TAKEN:
        copy(n, step.k[method.last * n :], step.k)
    elif step.moved == PROJECTED:
        copy(n, run.manifold.slope, step.k)
    step.moved = 0
    h = step.h_next
    step.h_wanted = h
    if h > longest:
        h = longest
    elif is_too_short(h, step.time):
        h = shortest_step(step.time)
    rejected = False
    while True:
        if is_too_short(h, step.time):
            return False
        end = smaller(step.time + h, run.motion.stop)
        step.h = end - step.time
        h = step.h
        error = run.system.attempt(run)
        if error < 1.0:
            step.h_next = h * growth(step, method, error, rejected)
            run.counts.steps += 1
            run.linear.known = 0
            accept(step, end)
            return True
        h *= shrinking(method, error)
        rejected = True
        run.counts.rejected += 1


def is_too_short(h: float, time: float) -> bool:
    """Return whether a step is shorter than 10 spacings of floating-point numbers, or NaN."""
    if h >= 1e-14 * abs(time) + 1e-306:  # a quick look: spacings are at most 2.3e-16 of a number
        return False
    return not h >= shortest_step(time)


def shortest_step(time: float) -> float:
    """Return 10 spacings of floating-point numbers."""
    return 10.0 * (nextafter(time, INFINITY) - time)


def growth(step: StepData, method: Static, error: float, rejected: bool) -> float:
    """Return how much longer than a good step the next one is to be."""
    factor: float = method.largest_factor
    # Below some error the step grows as much as it may, whatever the power would be.
    small = 0.99 * (SAFETY / method.largest_factor) ** (method.error_order + 1)
    if error > (0.0 if method.beta > 0.0 else small):
        if method.beta > 0.0:
            exponent = -1.0 / (method.error_order + 1) + 0.75 * method.beta
            wanted = SAFETY * power(error, exponent) * power(step.error_old, method.beta)
        else:
            wanted = SAFETY * power(error, -1.0 / (method.error_order + 1))
        factor = larger(LEAST_FACTOR, smaller(factor, wanted))
    step.error_old = larger(error, SMALLEST_ERROR)
    if rejected:
        factor = smaller(factor, 1.0)
    return factor


def shrinking(method: Static, error: float) -> float:
    """Return how much shorter than a bad step the next try is to be."""
    if not error < INFINITY:
        return LEAST_FACTOR
    return larger(LEAST_FACTOR, SAFETY * power(error, -1.0 / (method.error_order + 1)))


def accept(step: StepData, end: float) -> None:
    """Move to the end of a good step."""
    step.time_old, step.time_new, step.time = step.time, end, end
    old = step.x_old
    step.x_old = step.x
    step.x = step.x_new
    step.x_new = old
    step.moved = TAKEN
    step.ready = 0


def place_end(run: Run) -> int:
    """Move the end of the last step to where it belongs; return where it is."""
    step, system, manifold = run.step, run.system, run.manifold
    n = system.n
    found = place(manifold, n, step.time, step.clip, INFINITY, step.x, system.env, step.work)
    if found != MOVED:
        manifold.pulls = 0
    else:
        for i in range(n):
            manifold.shift[i] = step.x[i] - manifold.landed[i]
        tolerances = run.tolerances
        moved = scaled_norm(n, manifold.shift, step.x, tolerances.rtol, tolerances.atol)
        manifold.pulls = manifold.pulls + 1 if moved > PULLED else 0
        if manifold.pulls == TIMES:
            run.budget = 0  # Python has a word to say
        system.rhs(manifold.time, step.x, system.env, manifold.slope)
        run.counts.evaluations += 1
        step.moved = PROJECTED
        if not all_finite(n, manifold.slope):
            return LOST
    return found


def state_inside(run: Run, method: Static, time: float, out: Floats) -> None:
    """Compute the state at a time inside of the last step."""
    step, n, manifold = run.step, run.system.n, run.manifold
    if time == step.time_new and step.time == step.time_new:
        copy(n, step.x, out)
        return
    if step.ready == 0:
        if step.moved == PROJECTED:
            find_interpolant(run, method, manifold.landed)
        else:
            find_interpolant(run, method, step.x)
        step.ready = 1
    if method.linear:
        rosenbrock.interpolate(step, n, time, out)
    else:
        explicit.interpolate(step, method.tableau, n, time, out)
    if step.moved == PROJECTED:
        bend(manifold, n, (time - step.time_old) / (step.time_new - step.time_old), out)


def find_interpolant(run: Run, method: Static, end: Floats) -> None:
    """Compute the coefficients of the interpolant of the last step, and its end as it was taken."""
    if method.linear:
        rosenbrock.prepare_interpolant(run.step, method.tableau, run.system.n, end)
    else:
        explicit.prepare_interpolant(run, method.tableau, run.system.n, run.system.rhs, end)


def limited_by_stability(run: Run, method: Static) -> bool:
    """Return whether the last step was about as long as stability allows.

    See `flexure.solvers.integration.guard.stiffness_detection.StiffnessDetector`.
    """
    n, x, k = run.system.n, run.step.x, run.step.k
    rtol, atol = run.tolerances.rtol, run.tolerances.atol
    changes = 0.0
    distances = 0.0
    for i in range(n):
        weight = atol[i] + rtol[i] * abs(x[i])
        change = (k[method.last * n + i] - k[(method.last - 1) * n + i]) / weight
        distance = 0.0
        for j in unrolled(method.last):
            distance += method.difference[j] * k[j * n + i]
        distance /= weight
        changes += change * change
        distances += distance * distance
    limited: bool = changes > method.threshold * method.threshold * distances
    return limited
