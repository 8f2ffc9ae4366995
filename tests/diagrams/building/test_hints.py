"""Hints of refusals: what was probably meant is what the call can take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    DeclarationError,
    UnknownNameError,
    WiringError,
    suggestion,
)
from tests.support.tiers import for_each


@pytest.fixture(scope="module")
def servo() -> fx.Diagram:
    plant = fx.PlantBuilder("door")
    panel = plant.add_body("panel", fx.SpatialInertia.point_mass(1.0), com=(0, 1, 0))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(0, 0, 1)))
    plant.add_force_element(fx.DoorHinge("hinge", axis, spring_constant=3.0))
    plant.add_actuator("motor", axis)
    builder = fx.DiagramBuilder("servo")
    builder.add_all(plant.build(), fx.Step("target", to=0.3), fx.PIDController("pid", kp=9.0))
    builder.connect("target.y", "pid.setpoint")
    builder.connect("door.axis.angle", "pid.measurement")
    builder.connect("pid.u", "door.motor")
    return builder.build()


@for_each(
    ("call", "meant"),
    [
        (lambda s: fx.sweep(s, {"door.hinge.spring": [1.0]}, 1.0), "spring_constant"),
        (lambda s: s.create_default_context().set("door.hinge.spring", 1.0), "spring_constant"),
        (lambda s: s.create_default_context().get("door.hinge.spring_torq"), "spring_torque"),
        (lambda s: fx.linearize(s, inputs="door.hinge.spring"), "spring_constant"),
        (lambda s: fx.linearize(s, outputs="door.hinge.spring"), "spring_torque"),
        (lambda s: fx.parameter_sensitivity(s, "door.hinge.spring", 1.0), "spring_constant"),
        (lambda s: fx.evaluate_batch(s, ["door.hinge.spring"], []), "spring_torque"),
        (lambda s: fx.equilibrium(s, fixed="door.axis.angl"), "axis.angle"),
        (lambda s: fx.sweep(s, {"door.Panel.mass": [1.0]}, 1.0), "panel.mass"),
        (lambda s: fx.sweep(s, {"pid.Kp": [1.0]}, 1.0), "kp"),
        (lambda s: fx.sweep(s, {"PID.kp": [1.0]}, 1.0), "pid."),
        (lambda s: s.find("pid.Setpoint"), "setpoint"),
        (lambda s: s.get_system("Pid"), "pid"),
    ],
)
def test_what_a_call_can_take_is_suggested(
    servo: fx.Diagram, call: Callable[[fx.Diagram], Any], meant: str
) -> None:
    with pytest.raises(UnknownNameError, match=rf"Did you mean '{meant}'\?"):
        call(servo)


def test_what_a_call_cannot_take_is_not_listed(servo: fx.Diagram) -> None:
    with pytest.raises(UnknownNameError) as caught:
        fx.sweep(servo, {"door.hinge.spring": [1.0]}, 1.0)
    assert "spring_torque" not in str(caught.value)
    assert "stored_energy" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "valid", "meant"),
    [("Kp", ["ki", "kp"], "kp"), ("k", ["K"], "K"), ("sp", ["spring_rate", "spring"], "spring")],
)
def test_suggestions_do_not_mind_case_or_missing_ends(
    name: str, valid: list[str], meant: str
) -> None:
    assert suggestion(name, valid).startswith(f"Did you mean '{meant}'?")
    assert suggestion("zzz", valid).startswith("Valid names")


# Wires --------------------------------------------------------------------------------------------


def two_blocks() -> tuple[fx.DiagramBuilder, fx.Gain, fx.Integrator]:
    builder = fx.DiagramBuilder("chain")
    return builder, builder.add(fx.Gain("k", 2.0)), builder.add(fx.Integrator("plant"))


@pytest.mark.parametrize("by_name", [True, False])
def test_swapped_ends_of_a_wire_are_noticed(by_name: bool) -> None:
    builder, gain, plant = two_blocks()
    ends: Any = ("k.u", "plant.y") if by_name else (gain.u, plant.y)
    with pytest.raises(WiringError, match=r"Swap the ends: connect\('plant\.y', 'k\.u'\)"):
        builder.connect(*ends)
    assert builder.graph.number_of_edges() == 0
    builder.connect(*ends[::-1])


def test_an_input_in_the_place_of_an_output_is_called_an_input() -> None:
    builder, _, _ = two_blocks()
    with pytest.raises(UnknownNameError, match=r"but an input port of that name.*'plant\.y'"):
        builder.connect("plant.u", "k.u")
    with pytest.raises(UnknownNameError, match="but an output port of that name"):
        builder.connect("plant.y", "k.y")


# Cells that run again -----------------------------------------------------------------------------


def build() -> fx.Diagram:
    builder, _, _ = two_blocks()
    builder.connect_chain("k", "plant")
    builder.export_input("k.u", name="u")
    return builder.build()


@pytest.mark.parametrize(
    "use",
    [
        lambda new, old: fx.simulate(new, 1.0, context=old),
        lambda new, old: fx.sweep(new, {"k.gain": [1.0]}, 1.0, context=old),
        fx.linearize,
        lambda new, old: new["k"].gain.set(old, 3.0),
        lambda new, old: new["k"].y.eval(old),
        lambda new, old: new.create_default_context().copy_from(old),
    ],
)
def test_a_context_of_an_earlier_diagram_of_the_same_name_is_told_apart(
    use: Callable[[Any, fx.Context], Any],
) -> None:
    old = build().create_default_context()
    with pytest.raises(ContextError, match="another 'chain', which was built at another time"):
        use(build(), old)


def test_a_context_of_a_block_is_not_called_that_of_another_diagram() -> None:
    diagram = build()
    with pytest.raises(ContextError) as caught:
        fx.simulate(diagram, 1.0, context=diagram.create_default_context()["k"])
    assert "another" not in str(caught.value)


# Constructors -------------------------------------------------------------------------------------


class Declares(fx.LeafSystem):
    def __init__(self) -> None:
        self.gain = self.declare_numeric_parameter("gain", 1.0)


class Silent(fx.LeafSystem):
    def __init__(self) -> None:
        self.speed = 3.0


@pytest.mark.parametrize(
    "use",
    [
        Declares,
        lambda: fx.DiagramBuilder().add(Silent()),
        lambda: Silent().create_default_context(),
        lambda: Silent().find("gain"),
        lambda: fx.simulate(Silent(), 1.0),
        lambda: fx.Simulator(Silent()),
        lambda: fx.sweep(Silent(), {"gain": [1.0]}, 1.0),
        lambda: fx.simulate_many(Silent(), [], 1.0),
        lambda: fx.evaluate_batch(Silent(), ["y"], []),
        lambda: fx.linearize(Silent()),
        lambda: fx.equilibrium(Silent()),
        lambda: fx.equation(Silent(), "y"),
        lambda: fx.step_response(Silent(), "u", "y", 1.0),
    ],
)
def test_a_forgotten_call_of_the_constructor_is_named(use: Callable[[], Any]) -> None:
    wanted = (
        r"Cannot use a (Silent|Declares): expected super\(\)\.__init__\(name\) as the first call"
    )
    with pytest.raises(DeclarationError, match=wanted):
        use()


def test_other_missing_attributes_stay_what_they_are() -> None:
    class Broken(fx.LeafSystem):
        @property
        def length(self) -> Any:
            return self.lenght  # type: ignore[attr-defined]

    block = Broken("block")
    assert not hasattr(block, "nothing")
    with pytest.raises(AttributeError, match="no attribute 'lenght'"):
        _ = block.length
