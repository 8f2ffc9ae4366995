"""Findings of a trace of sampled equations, and the values of a context while time goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flexure.diagrams.contexts.store import Store
from flexure.solvers.analysis.sampled.parameter_slopes import ParameterCode
from flexure.solvers.analysis.sampled.time_driven_values import TimeDrivenValues, TracedUpdate
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, JacobianCode
from flexure.solvers.tracing.trace import Key


class Course:
    """The values of a context while time goes on, and the derivatives there.

    The values are ``ahead`` of the first instant by some seconds.
    """

    def __init__(self, store: Store, slopes: JacobianCode, ahead: float) -> None:
        self.store, self.ahead = store, ahead
        self.exact = ExactJacobian(store, slopes)


@dataclass(frozen=True)
class Reading:
    """The findings of a trace, beside rates and outputs."""

    keys: list[Key]  # of discrete values that follow states or inputs
    time_driven: TimeDrivenValues
    moving: list[TracedUpdate]  # those that write states or these discrete values
    num_outputs: int
    cut: list[Any]  # what comes to the cuts
    by_parameters: dict[tuple[Key, ...], ParameterCode] = field(default_factory=dict)
