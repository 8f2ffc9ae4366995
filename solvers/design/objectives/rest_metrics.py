"""Metrics of a system at rest: functions that each return one, for `optimize` and `tune`.

Each is computed at the equilibrium near the values of a context, without a run. Its derivatives by
parameters are exact, those of the equilibrium included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike
from flexure.diagrams.checks.arguments import is_whole, one_of, require
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.value_places import Way, path_of, several
from flexure.diagrams.values.arrays import FloatArray, as_number, as_numbers, bounded
from flexure.solvers.design.objectives import measures
from flexure.solvers.design.objectives.rest_numbers import StrokeMeasure
from flexure.solvers.results.measures.metrics import Metric, Records

#: Over frequency: a number, frequencies in rad/s with values, or a function of frequencies.
Profile = float | tuple[npt.ArrayLike, npt.ArrayLike] | Callable[[FloatArray], FloatArray]
_POINTS = 1000  # equilibria of a stroke, at most


def decay_rate(*, lower: float = 0.0, upper: float = math.inf) -> Metric:
    """Return the metric "least decay rate of the poles", ``min -Re λ`` in 1/s.

    It is negative if a motion grows, and 0 with a pole at rest on the imaginary axis, such as that
    of an integrator that nothing feeds back. In sampled models, λ = log(z) / period.

    Parameters
    ----------
    lower, upper : float
        Poles whose natural frequency ``|λ|`` is not between these count for nothing, in rad/s.

    Raises
    ------
    ValueRefusedError
        When the limits are no frequencies in this order.

    See Also
    --------
    least_damping : The least damping ratio.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=0.2)
    >>> context = lag.create_default_context()
    >>> context.set("u", 0.0)
    >>> slowest = fx.metrics.decay_rate()
    >>> found = fx.optimize(lag, {"time_constant": (0.1, 2.0)}, slowest, context=context)
    >>> round(found["time_constant"], 3), round(found.objective, 3)
    (2.0, 0.5)
    """
    return _pole_metric("decay_rate", lower, upper, "1/s")


def least_damping(*, lower: float = 0.0, upper: float = math.inf) -> Metric:
    """Return the metric "least damping ratio of the poles", ``min -Re λ / |λ|``.

    It is 1 for real poles that decay, -1 for those that grow, and 0 for poles at zero.

    Parameters
    ----------
    lower, upper : float
        Poles whose natural frequency ``|λ|`` is not between these count for nothing, in rad/s.

    Raises
    ------
    ValueRefusedError
        When the limits are no frequencies in this order.

    See Also
    --------
    decay_rate : The least decay rate.
    flexure.modes : All natural frequencies and damping ratios.

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.least_damping(upper=100.0).label
    'least_damping(upper=100)'
    """
    return _pole_metric("least_damping", lower, upper)


def frequency(number: int = 0) -> Metric:
    """Return the metric "natural frequency of a vibration", ``|λ| / 2π`` in Hz.

    The gap between two is the difference of their metrics. Frequencies are sorted, so where two
    vibrations cross, the metric has a kink; its derivative there is that of one of them.

    Parameters
    ----------
    number : int
        Which of the oscillating modes, counted from 0 by their frequencies. Overdamped and free
        motions do not count. Without so many, the metric is NaN.

    Raises
    ------
    ValueRefusedError
        When it is no such number.

    See Also
    --------
    flexure.modes : All modes, with their shapes.

    Examples
    --------
    >>> import flexure as fx
    >>> gap = fx.metrics.frequency(1) - fx.metrics.frequency(0)
    >>> gap.label
    'frequency(1) - frequency(0)'
    """
    fits = is_whole(number) and number >= 0
    require(fits, number, "Cannot make a metric with this number", "an integer from 0")
    return _metric(f"frequency({number})", measures.PoleMeasure("frequency", int(number)), "Hz")


def stiffness_at(
    frame: FrameLike | str,
    *,
    along: npt.ArrayLike | None = None,
    about: npt.ArrayLike | None = None,
    p_FP: npt.ArrayLike = (0.0, 0.0, 0.0),
) -> Metric:
    """Return the metric "stiffness of a frame along or about an axis".

    It is load per displacement, in N/m or N m/rad, where no other direction is held:
    ``1 / (dᵀ C d)`` with the compliance C of `flexure.stiffness`. It is 0 if nothing resists, and
    infinite if nothing can move.

    Parameters
    ----------
    frame : Frame, Body or str
        The frame F at which the load acts.
    along, about : array_like, shape (3,)
        Direction of a force, or axis of a couple, along the axes of F; one of them.
    p_FP : array_like, shape (3,)
        Position of the point at which a force acts, from Fo, expressed in F, in m.

    Raises
    ------
    ValueRefusedError
        When not one axis is given, or it is zero.

    See Also
    --------
    flexure.stiffness : All of it.

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.stiffness_at("stage", along=(0, 1, 0)).label
    'stiffness_at(stage, along=[0, 1, 0])'
    """
    attempt = "Cannot make a metric of a stiffness"
    given = {name: axis for name, axis in (("along", along), ("about", about)) if axis is not None}
    if len(given) != 1:
        raise ValueRefusedError(attempt, expected="either along or about", found=f"{len(given)}")
    ((name, axis),) = given.items()
    vector = as_number(axis, (3,), f"{attempt} {name} this axis")
    length = float(np.linalg.norm(vector))
    fits = 0.0 < length < math.inf
    require(fits, axis, f"{attempt} {name} this axis", "a vector that is not zero")
    point = as_number(p_FP, (3,), f"{attempt} with this p_FP")
    unit, turns = ("N/m", (0.0, 1.0)) if name == "along" else ("N m/rad", (1.0, 0.0))
    direction = np.kron(turns, vector / length)
    require(isinstance(frame, (str, Body, Frame)), frame, attempt, "a frame or body, or its name")
    where = frame if isinstance(frame, str) else frame.name
    numbers = ", ".join(f"{x:g}" for x in vector)
    measure = measures.StiffnessMeasure(frame, tuple(point.tolist()), tuple(direction.tolist()))
    return _metric(f"stiffness_at({where}, {name}=[{numbers}])", measure, unit)


def at_rest(signal: Way) -> Metric:
    """Return the metric "value of a signal at rest", such as a static deflection.

    Parameters
    ----------
    signal : Handle or str
        A port, state or parameter with one component, or a component of one.

    See Also
    --------
    over_stroke : The worst value over a stroke.
    flexure.equilibrium : The equilibrium itself.

    Examples
    --------
    >>> import flexure as fx
    >>> (fx.metrics.at_rest("stage.q[1]") <= 1e-4).label
    'at_rest(stage.q[1]) <= 0.0001'
    """
    return _metric(f"at_rest({path_of(signal)})", measures.ValueMeasure(signal))


def over_stroke(
    signal: Way,
    output: Way,
    stroke: float | tuple[float, float],
    worst: Literal["largest", "smallest", "peak"] = "peak",
    *,
    points: int = 5,
) -> Metric:
    """Return the metric "worst value of a signal along the stroke of an output".

    The output is moved through equilibria, as by `flexure.load_path`.

    Parameters
    ----------
    signal : Handle or str
        An output with one component, such as a stress, a safety, or the parasitic motion of a
        stage. If it is the output that moves, the force that moves it is measured.
    output : Handle or str
        What is moved, such as ``"axis.angle"``.
    stroke : float or (float, float)
        Its ends; one number means to both sides.
    worst : str
        Which value counts: ``"largest"``, ``"smallest"``, or ``"peak"``, the largest magnitude.
    points : int
        Number of equilibria along the stroke, both ends included.

    Raises
    ------
    ValueRefusedError
        When an argument is not as described.

    See Also
    --------
    at_rest : The value at one equilibrium.

    Examples
    --------
    >>> import flexure as fx
    >>> safety = fx.metrics.over_stroke("leaf.safety", "axis.angle", 0.2, "smallest")
    >>> safety.label
    'over_stroke(leaf.safety, axis.angle, (-0.2, 0.2), smallest)'
    """
    attempt = "Cannot make a metric of a stroke"
    ends = as_numbers(stroke, attempt, "one number or two, (from, to)")
    fits = ends.shape in ((), (2,)) and np.isfinite(ends).all() and bool(np.ptp([-1 * ends, ends]))
    require(fits, stroke, attempt, "one number or two, (from, to), not both zero")
    low, high = (-float(ends), float(ends)) if ends.ndim == 0 else map(float, ends)
    kind = one_of(worst, ("largest", "smallest", "peak"), "worst", attempt)
    fits = is_whole(points) and 2 <= points <= _POINTS
    require(fits, points, attempt, f"points to be an integer from 2 to {_POINTS}")
    label = f"{path_of(signal)}, {path_of(output)}, ({low:g}, {high:g}), {kind}"
    measure = StrokeMeasure(signal, output, (low, high), kind, int(points))
    return _metric(f"over_stroke({label})", measure, "{}")


def gain(
    inputs: Way | Iterable[Way],
    outputs: Way | Iterable[Way],
    *,
    bound: Profile = 1.0,
    lower: float = 0.0,
    upper: float = math.inf,
    openings: Way | Iterable[Way] = (),
) -> Metric:
    """Return the metric "peak gain from inputs to outputs", the H-infinity norm.

    It is the largest singular value over frequency, divided by a bound over frequency, and infinite
    if the model is unstable.

    Parameters
    ----------
    inputs, outputs, openings : Handle, str or iterable of them
        As for `flexure.linearize`.
    bound : float, (array_like, array_like) or callable
        The largest gain allowed: a number; frequencies in rad/s with values, between which it is
        linear in logarithms; or a function of an array of frequencies.
    lower, upper : float
        Frequencies between which gains count, in rad/s.

    Raises
    ------
    ValueRefusedError
        When an argument is not as described.

    See Also
    --------
    tracking, h2, stability_margin
    flexure.norms : Norms of one linear model.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=0.2)
    >>> peak = fx.metrics.gain("u", "y")
    >>> peak.label
    'gain(u, y)'
    """
    attempt = "Cannot make a metric of a gain"
    ways = _ends(inputs, outputs, openings, attempt)
    limits = _limits(lower, upper, attempt)
    measure = measures.GainMeasure(_profile(bound, attempt), *limits, **ways)
    return _metric(f"gain({_words(inputs)}, {_words(outputs)})", measure)


def tracking(
    reference: Way,
    output: Way,
    response_time: float,
    *,
    steady_error: float = 1e-3,
    peak_error: float = 1.5,
    openings: Way | Iterable[Way] = (),
) -> Metric:
    """Return the metric "tracking error over its bound", at most 1 if it tracks.

    The relative error ``E = 1 - T`` from a reference to an output is compared with ::

        |E(jω)| ≤ |(peak_error jω + ω_c steady_error) / (jω + ω_c)|,    ω_c = 2 / response_time

    Parameters
    ----------
    reference, output : Handle or str
        Input and output of the response T.
    response_time : float
        In s.
    steady_error : float
        The largest relative error at frequency zero.
    peak_error : float
        The largest relative error at any frequency.
    openings : Handle, str or iterable of them
        As for `flexure.linearize`.

    Raises
    ------
    ValueRefusedError
        When a number is not positive.

    See Also
    --------
    gain : Any gain below a bound.

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.tracking("target.value", "plant.y", 0.5).label
    'tracking(target.value, plant.y, 0.5)'
    """
    attempt = "Cannot make a metric of tracking"
    time = _positive(response_time, f"{attempt} with this response_time", "s")
    dc = _positive(steady_error, f"{attempt} with this steady_error")
    most = _positive(peak_error, f"{attempt} with this peak_error")
    ways = _ends(reference, output, openings, attempt)
    measure = measures.GainMeasure(partial(_error_bound, 2.0 / time, dc, most), offset=-1.0, **ways)
    words = f"{path_of(reference)}, {path_of(output)}, {time:g}"
    return _metric(f"tracking({words})", measure)


def h2(
    inputs: Way | Iterable[Way], outputs: Way | Iterable[Way], *, openings: Way | Iterable[Way] = ()
) -> Metric:
    """Return the metric "H2 norm from inputs to outputs".

    It is the root mean square of all outputs together for white noise of intensity 1 at all inputs;
    infinite if the model is unstable, or continuous with direct feedthrough.

    Parameters
    ----------
    inputs, outputs, openings : Handle, str or iterable of them
        As for `flexure.linearize`.

    See Also
    --------
    gain : The H-infinity norm.

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.h2("u", ["y", "v"]).label
    'h2(u, y, v)'
    """
    ways = _ends(inputs, outputs, openings, "Cannot make a metric of a norm")
    return _metric(f"h2({_words(inputs)}, {_words(outputs)})", measures.H2Measure(**ways))


def overshoot(reference: Way, output: Way) -> Metric:
    """Return the metric "overshoot of the linear step response", in percent.

    It is that of the linear model at rest, sampled finely; infinite if the model is unstable.
    `step` measures the response of a run instead.

    Parameters
    ----------
    reference, output : Handle or str
        Input and output of the response.

    See Also
    --------
    tracking, least_damping

    Examples
    --------
    >>> import flexure as fx
    >>> (fx.metrics.overshoot("target.value", "plant.y") <= 5.0).label
    'overshoot(target.value, plant.y) <= 5'
    """
    measure = measures.OvershootMeasure(inputs=(reference,), outputs=(output,))
    return _metric(f"overshoot({_words((reference, output))})", measure, "%")


def stability_margin(
    location: Way | Iterable[Way],
    kind: Literal["disk", "modulus"] = "disk",
    *,
    openings: Way | Iterable[Way] = (),
) -> Metric:
    """Return the metric "stability margin at wires", as `flexure.margins` defines it.

    A disk margin α allows gains from ``(2 - α) / (2 + α)`` to its inverse, or phases up to
    ``2 atan(α / 2)``. An unstable loop has the margin 0. With several wires, the margin is that for
    simultaneous changes of any structure, ``1 / max σ(S - c)``, which is not above
    ``Margins.disk_margin``.

    Parameters
    ----------
    location, openings : Handle, str or iterable of them
        As for `flexure.loop_gain`.
    kind : str
        ``"disk"``, c = 1/2, or ``"modulus"``, the least distance of the loop gain from -1, c = 0.

    Raises
    ------
    ValueRefusedError
        When there is no such kind.

    See Also
    --------
    flexure.margins : All margins of a loop gain.

    Examples
    --------
    >>> import flexure as fx
    >>> (fx.metrics.stability_margin("pid.u") >= 0.7).label
    'stability_margin(pid.u, disk) >= 0.7'
    """
    attempt = "Cannot make a metric of a margin"
    name = one_of(kind, ("disk", "modulus"), "kind", attempt)
    wires = _ways(location, "wires", attempt)
    center = 0.5 if name == "disk" else 0.0
    measure = measures.MarginMeasure(wires, center, openings=tuple(several(openings)))
    return _metric(f"stability_margin({_words(location)}, {name})", measure)


def _pole_metric(kind: str, lower: float, upper: float, unit: str = "") -> Metric:
    low, high = _limits(lower, upper, f"Cannot make a metric of the {kind.replace('_', ' ')}")
    words = [f"lower={low:g}"] * (low > 0.0) + [f"upper={high:g}"] * math.isfinite(high)
    return _metric(f"{kind}({', '.join(words)})", measures.PoleMeasure(kind, 0, low, high), unit)


def _metric(label: str, measure: Any, unit: str = "") -> Metric:
    return Metric(label, (), (), (measure,), partial(_number, measure), unit=unit)


def _number(measure: Any, records: Records) -> FloatArray:
    return records.numbers[measure]


def measure_of(metric: Metric) -> Any:
    """Return the measure that a metric is, without arithmetic; None if it is something else."""
    calc: Any = metric._calc
    is_plain = isinstance(calc, partial) and calc.func is _number
    return calc.args[0] if is_plain else None


def _limits(lower: Any, upper: Any, attempt: str) -> tuple[float, float]:
    low = float(as_number(lower, (), f"{attempt} with this lower frequency"))
    high = float(as_number(upper, (), f"{attempt} with this upper frequency"))
    fits = 0.0 <= low < high
    require(fits, (lower, upper), attempt, "frequencies from lower to upper, in rad/s")
    return low, high


def _positive(value: Any, attempt: str, unit: str = "") -> float:
    return float(bounded(value, attempt, lower=0.0, exclusive=True, unit=unit))


def _ways(ways: Any, what: str, attempt: str) -> tuple[Way, ...]:
    found = tuple(several(ways))
    require(len(found) > 0, ways, attempt, f"at least one of the {what}")
    return found


def _ends(inputs: Any, outputs: Any, openings: Any, attempt: str) -> dict[str, Any]:
    """Return the ways of a linear model, by the names that measures have for them."""
    ends = {"inputs": inputs, "outputs": outputs}
    found = {what: _ways(ways, what, attempt) for what, ways in ends.items()}
    return {**found, "openings": tuple(several(openings))}


def _words(ways: Any) -> str:
    return ", ".join(map(path_of, several(ways)))


def _profile(bound: Any, attempt: str) -> measures.Bound:
    """Return a bound over frequency."""
    if callable(bound):
        return bound  # type: ignore[no-any-return]
    if not isinstance(bound, (tuple, list)) and np.ndim(bound) == 0:
        return _positive(bound, f"{attempt} with this bound")
    expected = "a number, frequencies in ascending order with positive values, or a function"
    pair = as_numbers(bound, attempt, expected)
    fits = pair.ndim == 2 and len(pair) == 2 and pair.shape[1] > 1 and np.isfinite(pair).all()
    fits = fits and np.all(pair > 0.0) and np.all(np.diff(pair[0]) > 0.0)
    require(fits, bound, attempt, expected)
    return partial(_between, *np.log(pair))


def _between(corners: FloatArray, values: FloatArray, frequencies: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.interp(np.log(frequencies), corners, values)))


def _error_bound(corner: float, dc: float, most: float, frequencies: FloatArray) -> FloatArray:
    w = np.minimum(frequencies, 1e150)
    return np.asarray(np.abs((most * 1j * w + corner * dc) / (1j * w + corner)))
