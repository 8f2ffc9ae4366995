"""Sources: blocks without inputs that start a signal.

Every source has one output, ``y``. The numbers given to a constructor become parameters of the
same name, so that they can be changed in a context; the handles are attributes of the same name.
Each number is a scalar, which holds for every component of ``y``, or a vector with one entry per
component. Outputs that jump have the new value at the instant of the jump.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import common_size, numbers, one_of, refusal
from flexure.blocks.signals.waveforms import first_after
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import TIME
from flexure.diagrams.values.arrays import Array, FloatArray, freeze, show
from flexure.diagrams.values.handles import Handle

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context


class Constant(LeafSystem):
    """A constant signal: ``y = value``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    value : float or array_like, shape (n,)
        The output.

    Raises
    ------
    DeclarationError
        When the value is neither a scalar nor a vector.
    ValueRefusedError
        When it is not real and finite.

    See Also
    --------
    Step : A signal that jumps once.

    Examples
    --------
    >>> import flexure as fx
    >>> gravity = fx.Constant("gravity", [0.0, 0.0, -9.81])
    >>> gravity.y(gravity.create_default_context())
    array([ 0.  ,  0.  , -9.81])
    """

    def __init__(self, name: str, value: npt.ArrayLike) -> None:
        super().__init__(name)
        size = common_size(self, value=value)
        self.value = self.declare_numeric_parameter("value", value, doc="the output")
        self.y = self.declare_vector_output("y", size, self.value, prerequisites=[])


class Step(LeafSystem):
    """A signal that jumps once, at a given time.

    ::

        y(t) = initial   for t <  at
               to        for t >= at

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    at : float or array_like, shape (n,)
        Time of the jump, in s; integrators stop there.
    to : float or array_like, shape (n,)
        Value from then on.
    initial : float or array_like, shape (n,)
        Value before.

    Raises
    ------
    DeclarationError
        When sizes differ.
    ValueRefusedError
        When an argument is not real and finite.

    See Also
    --------
    Ramp : A signal that rises linearly between two times.
    Square : A square wave.

    Examples
    --------
    >>> import flexure as fx
    >>> step = fx.Step("target", at=0.5, to=2.0)
    >>> context = step.create_default_context()
    >>> step.y(context), step.calc_next_break_time(context)
    (array([0.]), 0.5)
    >>> context.time = 0.5
    >>> step.y(context)
    array([2.])
    """

    def __init__(
        self,
        name: str,
        at: npt.ArrayLike = 0.0,
        to: npt.ArrayLike = 1.0,
        initial: npt.ArrayLike = 0.0,
    ) -> None:
        super().__init__(name)
        size = common_size(self, at=at, to=to, initial=initial)
        self.at = self.declare_numeric_parameter("at", at, unit="s", doc="time of the jump")
        self.to = self.declare_numeric_parameter("to", to, doc="value after the jump")
        self.initial = self.declare_numeric_parameter(
            "initial", initial, doc="value before the jump"
        )
        self.y = self.declare_vector_output("y", size, self._calc_y, prerequisites=[TIME])

    def _calc_y(self, context: Context) -> Array:
        return np.where(context.time >= self.at(context), self.to(context), self.initial(context))

    def calc_next_break_time(self, context: Any) -> float:
        """Return the next jump."""
        return first_after(context.time, self.at(context))


class Ramp(LeafSystem):
    """A signal that rises linearly between two times.

    ::

        y(t) = initial + slope max(min(t, stop) − start, 0)

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    slope : float or array_like, shape (n,)
        Rate of change between start and stop, per s.
    start : float or array_like, shape (n,)
        Time at which the ramp begins, in s.
    initial : float or array_like, shape (n,)
        Value until then.
    stop : float or array_like, shape (n,)
        Time from which the value is held, in s; infinity for a ramp without end. A stop before
        the start leaves the initial value.

    Raises
    ------
    DeclarationError
        When sizes differ.
    ValueRefusedError
        When an argument is not real, or anything but the stop is not finite.

    See Also
    --------
    Step : A signal that jumps once.

    Examples
    --------
    >>> import flexure as fx
    >>> ramp = fx.Ramp("lift", slope=2.0, start=1.0, stop=4.0)
    >>> context = ramp.create_default_context()
    >>> context.time = 2.0
    >>> ramp.y(context), ramp.calc_next_break_time(context)
    (array([2.]), 4.0)
    """

    def __init__(
        self,
        name: str,
        slope: npt.ArrayLike = 1.0,
        start: npt.ArrayLike = 0.0,
        initial: npt.ArrayLike = 0.0,
        stop: npt.ArrayLike = np.inf,
    ) -> None:
        super().__init__(name)
        size = common_size(self, slope=slope, start=start, initial=initial, stop=stop)
        self.slope = self.declare_numeric_parameter(
            "slope", slope, unit="1/s", doc="rate of change"
        )
        self.start = self.declare_numeric_parameter("start", start, unit="s", doc="begin")
        self.initial = self.declare_numeric_parameter("initial", initial, doc="value at the begin")
        self.stop = self.declare_numeric_parameter(
            "stop", stop, unit="s", allow_infinite=True, doc="end"
        )
        self.y = self.declare_vector_output("y", size, self._calc_y, prerequisites=[TIME])

    def _calc_y(self, context: Context) -> Array:
        passed = np.minimum(context.time, self.stop(context)) - self.start(context)
        return self.initial(context) + self.slope(context) * np.maximum(passed, 0.0)

    def calc_next_break_time(self, context: Any) -> float:
        """Return the next bend."""
        return first_after(context.time, self.start(context), self.stop(context))


class Trajectory(LeafSystem):
    """A signal through given points: ``y(times[k]) = values[k]``.

    Before the first and after the last of the points, its value is held.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    times : array_like, shape (k,)
        Instants of the points, in s; at least two, strictly increasing. They are part of the
        structure and stay as they are.
    values : array_like, shape (k,) or (k, n)
        The points, one row per instant. A parameter.
    kind : {"hold", "linear", "cubic"}
        What happens in between: the last value is held, straight lines, or a cubic spline.

    Attributes
    ----------
    times : ndarray, shape (k,)
        Instants of the points; read-only.
    values : NumericParameter
        The points.

    Raises
    ------
    DeclarationError
        When the times are not as described, the values have another number of rows, or the kind
        is unknown.
    ValueRefusedError
        When the values are not real and finite.

    See Also
    --------
    MinimumJerkProfile : A smooth move to a target.
    TimeFunction : A function of time.

    Notes
    -----
    Integrators stop where the signal jumps ("hold") or bends ("linear", at every point). The cubic
    spline has two continuous derivatives and meets the not-a-knot condition at both ends, so that
    cubic polynomials are reproduced; integrators stop at its first and last point only, where it
    meets the held values with a bend.

    The work for one value is proportional to the number of points.

    Examples
    --------
    >>> import flexure as fx
    >>> lift = fx.Trajectory("lift", [0.0, 1.0, 3.0], [0.0, 2.0, 3.0], kind="linear")
    >>> context = lift.create_default_context()
    >>> context.time = 2.0
    >>> lift.y(context), lift.calc_next_break_time(context)
    (array([2.5]), 3.0)
    """

    def __init__(
        self,
        name: str,
        times: npt.ArrayLike,
        values: npt.ArrayLike,
        kind: Literal["hold", "linear", "cubic"] = "linear",
    ) -> None:
        super().__init__(name)
        self.times = _instants(self, "times", times)
        self.kind = one_of(self, "kind", kind, ("hold", "linear", "cubic"))
        self._lengths = freeze(np.diff(self.times))
        if self.times.size < 2 or not np.all(self._lengths > 0.0):
            raise refusal(self, "at least two times that increase strictly", show(self.times))
        shape = numbers(self, "values", values).shape
        if len(shape) not in (1, 2) or shape[0] != self.times.size:
            expected = f"one row of values for each of {self.times.size} times"
            raise refusal(self, expected, f"values of shape {shape}")
        self.values = self.declare_numeric_parameter("values", values, doc="one row per time")
        needs: list[Handle | Literal["time"]] = [TIME]
        if kind == "cubic":
            self._slopes_per_value = _spline_slopes(self.times)
            self.slopes = self.declare_cache_entry("slopes", self._calc_slopes, prerequisites=[])
            needs.append(self.slopes)
        calculations: dict[str, Callable[[Context], Array]] = {
            "hold": self._calc_hold,
            "linear": self._calc_linear,
            "cubic": self._calc_cubic,
        }
        breaks = {"hold": self.times[1:], "linear": self.times, "cubic": self.times[[0, -1]]}
        self._breaks = breaks[kind]
        size = shape[1] if len(shape) == 2 else 1
        self._calculation, self._needs = calculations[kind], needs
        self.y = self.declare_vector_output("y", size, self._calculation, prerequisites=needs)

    def _fractions(self, context: Context) -> Array:
        """Return the part of each interval that has passed, 0 to 1."""
        return np.clip((context.time - self.times[:-1]) / self._lengths, 0.0, 1.0)

    def _blend(self, context: Context, shares: Array) -> Array:
        """Return the values, each interval being crossed by a share of 0 to 1."""
        weights = np.concatenate([[1.0], shares]) - np.concatenate([shares, [0.0]])
        return weights @ self.values(context)

    def _calc_hold(self, context: Context) -> Array:
        return self._blend(context, np.where(context.time >= self.times[1:], 1.0, 0.0))

    def _calc_linear(self, context: Context) -> Array:
        return self._blend(context, self._fractions(context))

    def _calc_slopes(self, context: Context) -> Array:
        return self._slopes_per_value @ self.values(context)

    def _calc_cubic(self, context: Context) -> Array:
        s = self._fractions(context)
        slopes = self.slopes(context)
        leaving = self._lengths * s * (1.0 - s) ** 2
        arriving = self._lengths * s**2 * (1.0 - s)
        blend = self._blend(context, s**2 * (3.0 - 2.0 * s))
        return blend + leaving @ slopes[:-1] - arriving @ slopes[1:]

    def calc_next_break_time(self, context: Any) -> float:
        """Return the next jump or bend."""
        return first_after(context.time, self._breaks)


def _spline_slopes(times: FloatArray) -> FloatArray:
    """Return the matrix that maps values to the slopes of their not-a-knot spline, at the knots."""
    from scipy.interpolate import CubicSpline

    slopes: FloatArray = freeze(CubicSpline(times, np.eye(times.size))(times, 1))
    return slopes


class TimeFunction(LeafSystem):
    """A signal computed by a Python function of time: ``y = function(t)``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    function : callable
        ``function(t) -> value``, with t in s; a pure function. The value is a number, a vector of
        ``size``, or a list of numbers. To pickle the diagram, the function must be picklable,
        that is defined at the top level of a module. Written with NumPy functions it can also be
        traced.
    size : int
        Number of components of ``y``.
    breaks : array_like, shape (k,)
        Instants, in s, at which the function jumps or bends, in any order; integrators stop there.

    Raises
    ------
    DeclarationError
        When the function cannot be called, the size is no integer, or the breaks are not finite
        numbers.

    See Also
    --------
    FunctionBlock : A function of other signals.
    Trajectory : A signal through given points.

    Examples
    --------
    >>> import flexure as fx
    >>> bump = fx.TimeFunction("bump", lambda t: np.exp(-((t - 1.0) ** 2)))
    >>> context = bump.create_default_context()
    >>> context.time = 1.0
    >>> bump.y(context)
    array([1.])
    """

    def __init__(
        self, name: str, function: Callable[[Any], Any], size: int = 1, breaks: npt.ArrayLike = ()
    ) -> None:
        super().__init__(name)
        if not callable(function):
            raise refusal(self, "a function of time", repr(function))
        self.function = function
        self.breaks = _instants(self, "breaks", breaks)
        self.y = self.declare_vector_output("y", size, self._calc_y, prerequisites=[TIME])

    def _calc_y(self, context: Context) -> Array:
        return self.function(context.time)

    def calc_next_break_time(self, context: Any) -> float:
        """Return the next of the breaks."""
        return first_after(context.time, self.breaks)


def _instants(block: LeafSystem, argument: str, value: npt.ArrayLike) -> FloatArray:
    """Return times that are part of the structure."""
    times: FloatArray = freeze(numbers(block, argument, value))
    if times.ndim != 1 or not np.all(np.isfinite(times)):
        raise refusal(block, f"a list of finite times for {argument}", repr(value)[:200])
    return times
