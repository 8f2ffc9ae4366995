"""Tables over a signal: a value that is looked up, and a gain that is scheduled."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import numbers, one_of, refusal
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import Array, FloatArray, check_size, freeze, show


class LookupTable(LeafSystem):
    """Lookup table: linear interpolation, component by component.

    For ``points[k] <= u <= points[k + 1]``, y is on the straight line between two values::

        y = values[k] + slope * (u - points[k])
        slope = (values[k + 1] - values[k]) / (points[k + 1] - points[k])

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    points : array_like, shape (n,)
        Strictly increasing inputs, at least two. They are structure, not a parameter.
    values : array_like, shape (n,)
        Outputs at the points, the parameter ``values``.
    extrapolate : {"hold", "linear"}
        Beyond the points, y keeps the value of the last one, or continues the last line.
    size : int
        Size of u and y; every component uses the same table.

    Raises
    ------
    DeclarationError
        When the points are not strictly increasing, there are fewer than two, or not as many as
        values, or ``extrapolate`` is neither of the two words.

    See Also
    --------
    TimeFunction : A signal computed by a Python function of time.

    Examples
    --------
    >>> import flexure as fx
    >>> spring = fx.LookupTable("spring", [0.0, 1.0, 2.0], [0.0, 3.0, 8.0], extrapolate="linear")
    >>> context = spring.create_default_context()
    >>> spring.u.fix(context, 1.5)
    >>> spring.y(context)
    array([5.5])
    >>> spring.u.fix(context, 3.0)
    >>> spring.y(context)
    array([13.])
    """

    def __init__(
        self,
        name: str,
        points: npt.ArrayLike,
        values: npt.ArrayLike,
        extrapolate: Literal["hold", "linear"] = "hold",
        size: int = 1,
    ) -> None:
        super().__init__(name)
        self.points: FloatArray = freeze(numbers(self, "points", points))
        self.values = self.declare_numeric_parameter("values", values, doc="outputs at the points")
        if self.points.ndim != 1 or self.points.shape != self.values.shape or len(self.points) < 2:
            found = f"points of shape {self.points.shape}, values of shape {self.values.shape}"
            raise refusal(self, "two or more points and as many values, each in one row", found)
        _require_increasing(self, "points", self.points)
        self.extrapolate = one_of(self, "extrapolate", extrapolate, ("hold", "linear"))
        self.u = self.declare_vector_input("u", size)
        self.y = self.declare_vector_output("y", size, self.calc_y, prerequisites=[self.u])

    def calc_y(self, context: Any) -> Array:
        """Return the interpolated values."""
        return interpolated(self.u(context), self.points, self.values(context), self.extrapolate)


class GainSchedule(LeafSystem):
    """A gain that depends on a signal, such as a speed, a load or a pose.

    ``y = k(signal) u``, where k is on straight lines between the given gains, as the y of a
    `LookupTable` of the signal is.

    With nothing connected to u it is one, and y the gain itself: so it drives the gains of a
    `PIDController` with ``gain_ports``. In a loop with any other integral, schedule what comes
    before the integral, that is the error or setpoint and measurement, and not what comes after
    it: then a change of the gain makes no jump, and limits hold as they are.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    breakpoints : array_like, shape (k,)
        Strictly increasing values of the signal, at least two. They are structure, not a parameter.
    gains : array_like, shape (k,) or (k, size)
        Gains at the breakpoints, for all components or one column for each; the parameter
        ``gains``.
    extrapolate : {"hold", "linear"}
        Beyond the breakpoints, k keeps the value of the last one, or continues the last line.
    size : int, optional
        Size of u and y; when omitted the number of columns of the gains, or 1.

    Attributes
    ----------
    signal : InputPort
        Input "signal", of size 1.
    u : InputPort
        Input "u", of ``size``; ones while nothing is connected.
    y : LeafOutputPort
        Output "y", of ``size``; needs both inputs at once.
    gains : NumericParameter
        Parameter "gains".

    Raises
    ------
    DeclarationError
        When the breakpoints are not strictly increasing, there are fewer than two, or another
        number of gains, or ``extrapolate`` is neither of the two words.
    ValueRefusedError
        When a gain is not finite.

    See Also
    --------
    LookupTable : A function of a signal given by a table.

    Examples
    --------
    >>> import flexure as fx
    >>> schedule = fx.GainSchedule("schedule", breakpoints=[0.0, 10.0], gains=[4.0, 2.0])
    >>> context = schedule.create_default_context()
    >>> schedule.signal.fix(context, 5.0)
    >>> schedule.u.fix(context, 0.1)
    >>> schedule.y.eval(context).round(6)
    array([0.3])
    """

    def __init__(
        self,
        name: str,
        breakpoints: npt.ArrayLike,
        gains: npt.ArrayLike,
        extrapolate: Literal["hold", "linear"] = "hold",
        size: int | None = None,
    ) -> None:
        super().__init__(name)
        self.breakpoints: FloatArray = freeze(numbers(self, "breakpoints", breakpoints))
        self.gains = self.declare_numeric_parameter("gains", gains, doc="one row per breakpoint")
        shape, count = self.gains.shape, len(np.atleast_1d(self.breakpoints))
        if self.breakpoints.ndim != 1 or len(shape) not in (1, 2) or shape[0] != count or count < 2:
            found = f"breakpoints of shape {self.breakpoints.shape}, gains of shape {shape}"
            raise refusal(self, "two or more breakpoints and a row of gains for each", found)
        _require_increasing(self, "breakpoints", self.breakpoints)
        self.extrapolate = one_of(self, "extrapolate", extrapolate, ("hold", "linear"))
        columns = shape[1] if len(shape) == 2 else None
        size = check_size((columns or 1) if size is None else size, f"'{name}'", minimum=1)
        if columns not in (None, size):
            raise refusal(self, f"one gain, or {size}, for each breakpoint", f"{columns} of them")
        self.signal = self.declare_vector_input("signal", 1)
        self.u = self.declare_vector_input("u", size, default=np.ones(size))
        self.y = self.declare_vector_output(
            "y", size, self.calc_y, prerequisites=[self.signal, self.u]
        )

    def calc_y(self, context: Any) -> Array:
        """Return k(signal) u."""
        signal, gains = self.signal(context), self.gains(context)
        columns = [gains] if gains.ndim == 1 else list(gains.T)
        k = [interpolated(signal, self.breakpoints, each, self.extrapolate) for each in columns]
        return np.concatenate(k) * self.u(context)


def interpolated(u: Array, points: FloatArray, values: Array, extrapolate: str) -> Array:
    """Return what is on straight lines between values at points, which increase strictly.

    Beyond the points it is the last value ("hold"), or on the last line ("linear").
    """
    y = np.interp(u, points, values)
    if extrapolate == "hold":
        return y
    first_slope = (values[1] - values[0]) / (points[1] - points[0])
    last_slope = (values[-1] - values[-2]) / (points[-1] - points[-2])
    below, above = np.minimum(u - points[0], 0.0), np.maximum(u - points[-1], 0.0)
    return y + first_slope * below + last_slope * above


def _require_increasing(block: LeafSystem, what: str, points: FloatArray) -> None:
    if not (np.all(np.isfinite(points)) and np.all(np.diff(points) > 0.0)):
        raise refusal(block, f"finite, strictly increasing {what}", show(points))
