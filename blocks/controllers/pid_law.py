"""The common part of continuous and sampled PID controllers: inputs, gains, limits, sums."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import flag, full, linearization, per_component, refusal
from flexure.diagrams.checks.arguments import is_one_of
from flexure.diagrams.checks.errors import quoted
from flexure.diagrams.systems.leaf import LeafSystem, LinearizeAs
from flexure.diagrams.systems.ports import InputPort, LeafOutputPort
from flexure.diagrams.values.arrays import Array, FloatArray, check_size, show
from flexure.diagrams.values.parameters import NumericParameter

#: What keeps the integral from winding up while the output is at a limit.
AntiWindup: TypeAlias = Literal["back_calculation", "conditional"]
_ANTI_WINDUPS = ("back_calculation", "conditional")


class PIDLaw(LeafSystem):
    """Gains, limits and inputs that PID controllers share, and the sums they form of them."""

    # With gain ports these are input ports, and the declared type is that of the ordinary case.
    kp: NumericParameter
    ki: NumericParameter
    kd: NumericParameter | None
    u: LeafOutputPort

    def __init__(
        self,
        name: str,
        *,
        size: int,
        kp: npt.ArrayLike,
        ki: npt.ArrayLike,
        kd: npt.ArrayLike | None,
        derivative_filter: npt.ArrayLike,
        setpoint_weight: npt.ArrayLike,
        derivative_weight: npt.ArrayLike | None,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        anti_windup: AntiWindup | None,
        tracking_time: npt.ArrayLike | None,
        rate_inputs: bool,
        gain_ports: bool,
        linearize_as: LinearizeAs,
        period: float = 0.0,
    ) -> None:
        super().__init__(name)
        self.linearize_as = linearization(self, linearize_as)
        known = is_one_of(anti_windup, _ANTI_WINDUPS)
        if anti_windup is not None and not known:
            choices = f"{quoted(_ANTI_WINDUPS)} or None for anti_windup"
            raise refusal(self, choices, repr(anti_windup))
        if flag(self, "rate_inputs", rate_inputs) and kd is None:
            raise refusal(self, "a gain kd of the rate inputs", "kd=None", "Pass kd=0.0 or more")
        self.size = check_size(size, f"'{name}'", minimum=1)
        self.anti_windup = anti_windup
        self.has_filter = kd is not None and not rate_inputs
        self.gain_ports = flag(self, "gain_ports", gain_ports)
        self._declare_inputs(rate_inputs)
        self._declare_gains(kp, ki, kd, setpoint_weight, derivative_weight, rate_inputs)
        if self.has_filter:
            self.derivative_filter = self.declare_numeric_parameter(
                "derivative_filter",
                per_component(self, "derivative_filter", derivative_filter, self.size),
                unit="s",
                lower=0.0,
                exclusive=period == 0.0,
                doc="time constant of the lag in the derivative",
            )
        self._declare_limits(lower, upper)
        # A sample is taken or left out; a continuous integral has to be stopped gradually.
        self.stops_gradually = anti_windup == "conditional" and period == 0.0
        if anti_windup == "back_calculation" or self.stops_gradually:
            usual = self._default_tracking_time(period) * (0.01 if self.stops_gradually else 1.0)
            time = usual if tracking_time is None else tracking_time
            self.tracking_time = self.declare_numeric_parameter(
                "tracking_time",
                per_component(self, "tracking_time", time, self.size),
                unit="s",
                lower=period,
                exclusive=period == 0.0,
                doc="time constant with which the integral follows a limited output",
            )

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that setpoint and measurement have one unit, and output and feedforward another.

        Rates have the unit of what they are the rates of, per second.
        """
        rates = []
        if self.kd is not None and not self.has_filter:
            rates.append((self.setpoint_rate, self.setpoint, "s"))
            rates.append((self.measurement_rate, self.measurement, "s"))
        return [(self.setpoint, self.measurement), (self.feedforward, self.u), *rates]

    def _declare_gains(
        self,
        kp: npt.ArrayLike,
        ki: npt.ArrayLike,
        kd: npt.ArrayLike | None,
        setpoint_weight: npt.ArrayLike,
        derivative_weight: npt.ArrayLike | None,
        rate_inputs: bool,
    ) -> None:
        self.kp = self._declare_gain("kp", kp, "proportional gain", self.gain_ports)
        self.ki = self._declare_gain("ki", ki, "gain of the integral of the error", self.gain_ports)
        self.setpoint_weight = self._declare_gain(
            "setpoint_weight", setpoint_weight, "weight of the setpoint in the proportional part"
        )
        self.kd = None
        if kd is not None:
            self.kd = self._declare_gain("kd", kd, "derivative gain", self.gain_ports)
            weight = float(rate_inputs) if derivative_weight is None else derivative_weight
            self.derivative_weight = self._declare_gain(
                "derivative_weight", weight, "weight of the setpoint in the derivative part"
            )
        if self.gain_ports:  # the sum of all parts sees ki through the integral alone
            gains: list[Any] = [self.kp, self.kd]
            self.inputs += [gain for gain in gains if gain is not None]

    def _declare_gain(
        self, gain: str, value: npt.ArrayLike, doc: str, as_port: bool = False
    ) -> Any:
        if as_port:
            default = full(self, gain, value, self.size)
            return self.declare_vector_input(gain, self.size, default=default, doc=doc)
        return self.declare_numeric_parameter(
            gain, per_component(self, gain, value, self.size), doc=doc
        )

    def _declare_limits(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None:
        low = per_component(self, "lower", lower, self.size)
        high = per_component(self, "upper", upper, self.size)
        self.lower = self.declare_numeric_parameter(
            "lower", low, allow_infinite=True, doc="lower limit of the output"
        )
        self.upper = self.declare_numeric_parameter(
            "upper", high, allow_infinite=True, doc="upper limit of the output"
        )
        self.declare_relation(self.lower, "<=", self.upper)

    def _declare_inputs(self, rate_inputs: bool) -> None:
        self.setpoint = self.declare_vector_input("setpoint", self.size)
        self.measurement = self.declare_vector_input("measurement", self.size)
        # What the sum of all parts needs at once.
        self.inputs: list[InputPort] = [self.setpoint, self.measurement]
        if rate_inputs:
            self.setpoint_rate = self.declare_vector_input("setpoint_rate", self.size)
            self.measurement_rate = self.declare_vector_input("measurement_rate", self.size)
            self.inputs += [self.setpoint_rate, self.measurement_rate]
        self.feedforward = self.declare_vector_input(
            "feedforward", self.size, default=np.zeros(self.size), doc="added to the output"
        )
        self.inputs.append(self.feedforward)

    def _default_tracking_time(self, period: float) -> FloatArray:
        """Return the integral time kp/ki, or 1 s where that is not a positive time."""
        with np.errstate(divide="ignore", invalid="ignore"):
            integral_time = np.divide(self.kp.default, self.ki.default)
        usable = np.isfinite(integral_time) & (integral_time > 0.0)
        return np.maximum(np.where(usable, integral_time, 1.0), period)

    def error(self, context: Any) -> Array:
        """Return r − y."""
        return self.setpoint(context) - self.measurement(context)

    def integrated(self, context: Any) -> Array:
        """Return what the integral is the integral of: e, or ki e where ki comes from outside.

        A gain before the integral makes no jump when it changes.
        """
        error = self.error(context)
        return self.ki(context) * error if self.gain_ports else error

    def gain_of_integral(self, context: Any) -> Array:
        """Return the factor between the integral and the output."""
        return 1.0 if self.gain_ports else self.ki(context)

    def differentiated(self, context: Any) -> Array:
        """Return c r − y, what the derivative part is the derivative of."""
        return self.derivative_weight(context) * self.setpoint(context) - self.measurement(context)

    def given_rate(self, context: Any) -> Array:
        """Return c ṙ − ẏ from the rate inputs."""
        setpoint_rate = self.derivative_weight(context) * self.setpoint_rate(context)
        return setpoint_rate - self.measurement_rate(context)

    def total(self, context: Any, integral: Array, rate: Array) -> Array:
        """Return the sum of all parts, before the limits."""
        setpoint = self.setpoint_weight(context) * self.setpoint(context)
        total = self.kp(context) * (setpoint - self.measurement(context))
        total = total + self.gain_of_integral(context) * integral
        if self.kd is not None:
            total = total + self.kd(context) * rate
        return total + self.feedforward(context)

    def limited(self, context: Any, total: Array) -> Array:
        """Return the sum of all parts within the limits."""
        limited = np.clip(total, self.lower(context), self.upper(context))
        return self.with_slope_of(limited, total)

    def limit_remark(self, context: Any, total: Array) -> str | None:
        """Tell whether the sum of all parts is beyond a limit."""
        lower, upper = self.lower(context), self.upper(context)
        if np.any((total < lower) | (total > upper)):
            limits = f"{show(lower)} and {show(upper)}"
            return f"its output would be {show(total)}, beyond its limits {limits}"
        return None

    def integrand(self, context: Any, total: Array) -> Array:
        """Return the derivative of the integral: what it integrates, corrected against windup."""
        integrated = self.integrated(context)
        gain = self.gain_of_integral(context)
        if self.anti_windup is None:
            return integrated
        pulled = 0.0
        if self.anti_windup == "back_calculation" or self.stops_gradually:
            excess = total - self.limited(context, total)
            # Without integral action there is nothing to unwind.
            unwinding = self.tracking_time(context) * np.where(gain == 0.0, np.inf, gain)
            pulled = integrated - excess / unwinding
        if self.anti_windup == "back_calculation":
            return pulled
        winds_up = (total > self.upper(context)) & (gain * integrated > 0.0)
        winds_down = (total < self.lower(context)) & (gain * integrated < 0.0)
        slowed = np.where(pulled * integrated > 0.0, pulled, 0.0)
        return self.with_slope_of(np.where(winds_up | winds_down, slowed, integrated), integrated)
