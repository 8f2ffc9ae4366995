"""The plant of a PID controller in a diagram: one component, and its linear model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flexure.blocks.controllers.controllers import PIDController
from flexure.diagrams.checks.arguments import is_whole, require, shown
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.systems.system import System
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.linearization import linearize
from flexure.solvers.analysis.linear_models.poles import fate, least_stable_first
from flexure.solvers.analysis.linear_models.realizations import reduction
from flexure.solvers.design.state_space.model_requirements import without_states

_HIDDEN = 1e-12  # beside the norm of the scaled matrices: what is not seen


@dataclass(frozen=True)
class Controlled:
    """One component of a PID controller in a diagram."""

    block: PIDController  # the controller
    component: int  # which one of its components

    @classmethod
    def find(cls, system: System, controller: object, component: Any, attempt: str) -> Controlled:
        """Return the component of a controller, which is given by itself or by its path."""
        block: Any = system.get_system(controller) if isinstance(controller, str) else controller
        if not isinstance(block, PIDController):
            expected = "a PIDController, or its path"
            raise ValueRefusedError(attempt, expected=expected, found=shown(controller))
        if block.gain_ports:
            raise ValueRefusedError(
                attempt,
                expected=f"gains of '{block.path}' that are parameters",
                found="gain ports",
                remedy="Tune a controller without gain_ports where the schedule has its "
                "breakpoints, and pass the gains found to the schedule",
            )
        if component is None:
            wanted = "a PIDController with one component"
            remedy = f"Say which one of its {block.size} components, as in component=0"
            require(block.size == 1, controller, attempt, wanted, remedy=remedy)
            return cls(block, 0)
        fits = is_whole(component) and 0 <= component < block.size
        require(fits, component, attempt, f"the number of a component, from 0 to {block.size - 1}")
        gains = [gain for gain in (block.kp, block.ki, block.kd) if gain is not None]
        gains += [block.derivative_filter] if block.has_filter else []
        for gain in gains if block.size > 1 else []:
            wanted = f"{gain.name} with a number for each component"
            remedy = f"Make the controller with {gain.name}=[...], {block.size} numbers"
            require(gain.default.ndim, gain, attempt, wanted, remedy=remedy)
        return cls(block, int(component))

    @property
    def period(self) -> float | None:
        """The period of a sampled controller."""
        return self.block.period

    def way(self, handle: Any) -> Any:
        """Return what leads to the component of a port or parameter."""
        return handle if self.block.size == 1 else Place.of(handle).names[self.component]

    def value(self, context: Context, parameter: Any) -> float:
        """Return the value of a parameter in a context; 0 where the controller has none."""
        if parameter is None:
            return 0.0
        return float(np.broadcast_to(parameter.get(context), self.block.size)[self.component])

    def set(self, context: Context, handle: Any, value: float) -> None:
        """Set a parameter or the value of the integral in a context."""
        values = np.array(handle.get(context))
        values.reshape(-1)[self.component if values.ndim else 0] = value
        handle.set(context, values)

    def plant(self, system: System, start: Context) -> LinearModel:
        """Return the linear plant, from the output of the controller to what it measures."""
        block = self.block
        if block.period is not None:
            return self._sampled_plant(system, start, block.period)
        seen = [block.measurement, *(_rate_inputs(block)[1:])]
        opening = self.way(block.u)
        model = linearize(
            system, start, [opening], [self.way(port) for port in seen], openings=[opening]
        )
        names = Place.of(block.x).names
        return _without(model, names[self.component :: block.size], block)

    def _sampled_plant(self, system: System, start: Context, period: float) -> LinearModel:
        """Return the plant from what the controller computes to what it measures at an instant."""
        # With all gains zero, what comes in as feedforward is what it computes. What it measures is
        # what its integral gets, just before the updates of that instant. The output that it holds
        # remains a state: other sampled blocks may see the one from before.
        block, free = self.block, start.clone()
        for gain in (block.kp, block.ki, block.kd):
            if gain is not None:
                self.set(free, gain, 0.0)
        self.set(free, block.lower, -np.inf)
        self.set(free, block.upper, np.inf)
        entry = self.way(block.feedforward)
        model = linearize(system, free, [entry], [], period=period)
        integral = model.state_names.index(Place.of(block.integral).names[self.component])
        seen = model.A[integral].copy()
        seen[integral] -= 1.0
        rows = [-seen / period]
        if _rate_inputs(block):
            held = model.state_names.index(Place.of(block.held).names[self.component])
            assert block.kd is not None
            self.set(free, block.kd, 1.0)
            rows.append(-linearize(system, free, [entry], [], period=period).A[held])
        ports = [block.measurement, *(_rate_inputs(block)[1:])]
        model = replace(
            model,
            C=np.array(rows),
            D=np.zeros((len(rows), 1)),
            y0=np.array([port.eval(start)[self.component] for port in ports]),
            output_names=[Place.of(port).names[self.component] for port in ports],
        )
        own: list[Any] = [block.integral]
        if block.has_filter:
            own += [block.previous, block.rate]
        return _without(model, [Place.of(state).names[self.component] for state in own], block)


def _rate_inputs(block: PIDController) -> list[Any]:
    """Return the inputs for the rates of setpoint and measurement, where they come from outside."""
    if block.kd is None or block.has_filter:
        return []
    return [block.setpoint_rate, block.measurement_rate]


def seen(model: LinearModel, attempt: str) -> LinearModel:
    """Return a plant that shows all its states that do not decay, without those that stay put.

    The integral of an outer loop is such a state for the controller of the inner one.
    """
    if not (np.any(model.D[:1]) or len(model.minimal(_HIDDEN).A)):
        raise ValueRefusedError(
            attempt,
            expected="a plant of which the controller moves what it measures",
            found="; ".join(["no small change that comes back", *model.notes]),
            remedy="Tune where the path is open, or pass linearize_as='gain' to the block that is "
            "in the way",
        )
    hidden = reduction(model.A, model.B, model.C[:1], _HIDDEN).hidden_poles
    rest = fate(hidden, model.poles, model.period)
    worst, remedy = (
        least_stable_first(hidden, model.period)[:1],
        "Stabilize the rest of the diagram first",
    )
    wanted = "a plant whose growing modes the controller moves and measures"
    require(rest != "grow", worst, attempt, wanted, remedy=remedy)
    return model if rest == "decay" else model.minimal(_HIDDEN)


def _without(model: LinearModel, names: list[str], block: PIDController) -> LinearModel:
    """Leave out states and limits of a controller, and the directions that nothing moves."""
    notes = tuple(note for note in model.notes if not note.startswith(f"'{block.label}' "))
    return replace(without_states(model, names.__contains__), notes=notes)
