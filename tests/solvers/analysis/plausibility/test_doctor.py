"""The doctor finds implausible values, and none in healthy models."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ContextError, DeclarationError
from flexure.solvers.analysis.plausibility.doctor import RULES
from tests.contracts.catalog import CATALOG, TRIED
from tests.support.mechanics.mechanisms import MECHANISMS
from tests.support.tiers import for_each

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").rglob("*.py"))
PANEL: dict[str, Any] = {"mass": 9.0, "size": (0.02, 0.6, 0.7)}
PID: dict[str, Any] = {"kp": 60.0, "ki": 20.0, "kd": 12.0}


def servo(
    *,
    panel: dict[str, Any] | None = None,
    com: Any = (0.0, 0.3, 0.0),
    gravity: Any = (0.0, 0.0, -9.81),
    joint: dict[str, Any] | None = None,
    hinge: dict[str, Any] | None = None,
    motor: dict[str, Any] | None = None,
    pid: dict[str, Any] | None = None,
    period: float | None = None,
    target: float = 1.0,
    before_motor: fx.LeafSystem | None = None,
    elements: Callable[[Any, Any], list[fx.multibody.ForceElement]] = lambda axis, panel: [],
    start: float = 0.0,
) -> fx.Diagram:
    """A door that a motor turns upwards, with some numbers replaced."""
    plant = fx.PlantBuilder("door", gravity=gravity)
    inertia = fx.SpatialInertia.solid_box(**PANEL | (panel or {}))
    body = plant.add_body("panel", inertia, com=com)
    axis = fx.RevoluteJoint("axis", plant.world, body, axis=(1, 0, 0), **(joint or {}))
    plant.add_joint(axis)
    axis.default_positions = [start]
    plant.add_force_element(
        fx.DoorHinge("hinge", axis, **({"spring_constant": 3.0} | (hinge or {})))
    )
    for element in elements(axis, body):
        plant.add_force_element(element)
    plant.add_actuator("motor", axis, **(motor or {}))
    builder = fx.DiagramBuilder("servo")
    gains = PID | (pid or {})
    controller = (
        fx.PIDController("pid", **gains)
        if period is None
        else fx.PIDController("pid", period=period, **gains)
    )
    builder.add_all(plant.build(), fx.Step("target", at=0.5, to=target), controller)
    builder.connect("target.y", "pid.setpoint")
    builder.connect("door.axis.angle", "pid.measurement")
    if before_motor is None:
        builder.connect("pid.u", "door.motor")
    else:
        builder.add(before_motor)
        builder.connect_chain("pid", before_motor.name, "door.motor")
    return builder.build()


def thick_flexure(axis: fx.multibody.Joint) -> fx.LumpedHinge:
    """A flexure with a thickness of a fifth of its length."""
    return fx.LumpedHinge(
        "flexure",
        axis,
        section=fx.sections.RectangleSection(width=0.01, thickness=0.02),
        material=fx.Material.common("structural steel S235"),
        length=0.1,
    )


# What is healthy ---------------------------------------------------------------------------------


@pytest.mark.full
@for_each("script", EXAMPLES)
def test_the_examples_are_healthy(script: Path) -> None:
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    built = module.build()
    checkup = fx.doctor(*(built if isinstance(built, tuple) else (built,)))
    assert checkup, checkup
    assert checkup.unchecked == ()


@pytest.mark.full
@pytest.mark.parametrize("name", ["branches", "motors", "elements on joints", "screw joint"])
def test_mechanisms_are_healthy(name: str) -> None:
    checkup = fx.doctor(MECHANISMS[name]())
    assert checkup, checkup
    assert checkup.unchecked == ()


@for_each("name", TRIED)
def test_every_block_is_healthy_alone(name: str) -> None:
    checkup = fx.doctor(CATALOG[name]())
    assert checkup, checkup


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"period": 0.01},
        {"gravity": (0.0, 0.0, 0.0)},
        {"pid": {"upper": 40.0, "lower": -40.0}},
        {"pid": {"kp": 1e4, "kd": 500.0}},
        {"motor": {"effort_limit": 60.0, "gear_ratio": 50.0, "rotor_inertia": 1e-5}},
        {"hinge": {"motion_threshold": 1e-4}},
        {"joint": {"position_limits": (0.0, math.pi / 2)}},
        {"target": 2.5 * math.pi},
        {"before_motor": fx.TimeDelay("delay", 0.02, 0.01)},
        {"before_motor": fx.PadeDelay("delay", 0.02)},
        {"before_motor": fx.Saturation("limits", -40.0, 40.0)},
        {"before_motor": fx.Quantizer("steps", 0.01), "period": 0.01},
        {"panel": {"mass": 1.0, "size": (math.sqrt(6.0),) * 3}},
    ],
    ids=str,
)
def test_a_servo_as_people_build_it_is_healthy(options: dict[str, Any]) -> None:
    checkup = fx.doctor(servo(**options))
    assert checkup, checkup


def test_noise_is_no_gain() -> None:
    builder = fx.DiagramBuilder("shaken")
    builder.add_all(fx.Noise("noise", 1, 0.01), fx.ZeroOrderHold("hold", 0.01), fx.Sum("sum", "++"))
    builder.add_all(fx.FirstOrderLag("lag", 0.1))
    builder.connect("noise.y", "sum.u1")
    builder.connect("hold.y", "sum.u2")
    builder.connect_chain("sum", "lag", "hold")
    checkup = fx.doctor(builder.build())
    assert checkup, checkup
    assert checkup.unchecked == ()


# What is not -------------------------------------------------------------------------------------


class Angle(fx.LeafSystem):
    """A block that takes degrees."""

    def __init__(self, unit: str) -> None:
        super().__init__("gauge")
        self.u = self.declare_vector_input("u", 1, unit=unit)
        self.y = self.declare_vector_output("y", 1, self.u, unit="N m")


def gauge(unit: str) -> fx.Diagram:
    """A pendulum whose angle goes to a block with a unit of its own."""
    plant = fx.PlantBuilder("door")
    panel = plant.add_body("panel", fx.SpatialInertia.solid_box(**PANEL))
    plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(1, 0, 0)))
    builder = fx.DiagramBuilder("display")
    builder.add_all(plant.build(), Angle(unit))
    builder.connect("door.axis.angle", "gauge.u")
    return builder.build()


def two_bodies(mass: float, size: float) -> fx.Plant:
    builder = fx.PlantBuilder("arm")
    inner = builder.add_body("inner", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    outer = builder.add_body("outer", fx.SpatialInertia.solid_sphere(mass, radius=size))
    builder.add_joint(fx.RevoluteJoint("shoulder", builder.world, inner, axis=(1, 0, 0)))
    builder.add_joint(fx.RevoluteJoint("elbow", inner, outer, axis=(1, 0, 0)))
    return builder.build()


def sampled_twice(first: float, second: float) -> fx.Diagram:
    builder = fx.DiagramBuilder("rates")
    builder.add_all(fx.Sine("wave"), fx.UnitDelay("one", first), fx.UnitDelay("two", second))
    builder.connect_chain("wave", "one", "two")
    return builder.build()


def loop(gain: float, time_constant: float = 1.0) -> fx.Diagram:
    """A first-order lag with proportional control."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("target", 1.0),
        fx.PIDController("pid", kp=gain),
        fx.FirstOrderLag("lag", time_constant),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", "lag", "pid.measurement")
    return builder.build()


def rope(length: float) -> Callable[[Any, Any], list[fx.multibody.ForceElement]]:
    """A spring between the door and a place above it."""

    def elements(axis: fx.multibody.Joint, panel: fx.Body) -> list[fx.multibody.ForceElement]:
        world = axis.parent_body
        return [
            fx.LinearSpringDamper(
                "rope",
                *(world, (0.0, 0.3, 1.0), panel, (0.0, 0.6, 0.0)),
                free_length=length,
                stiffness=3e4,
                damping=10.0,
            )
        ]

    return elements


def vibrating(damping: float) -> fx.Plant:
    builder = fx.PlantBuilder("fork")
    prong = builder.add_body("prong", fx.SpatialInertia.solid_box(0.1, size=(0.01, 0.01, 0.2)))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, prong, axis=(1, 0, 0)))
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=100.0, damping=damping))
    return builder.build()


def leaf(modulus: float = 193e9, density: float = 7880.0, **given: float) -> fx.Plant:
    """A leaf spring of steel from the world to a small block, with some numbers replaced."""
    size = {"length": 0.1, "width": 0.02, "thickness": 5e-4, **given}
    builder = fx.PlantBuilder("bench", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.solid_box(0.01, size=(0.01, 0.01, 0.01)))
    joint = builder.add_joint(fx.PlanarJoint("tip", builder.world, tip))
    joint.default_pose = np.eye(3), (size["length"], 0.0, 0.0)
    material = fx.Material(modulus, poissons_ratio=0.3, density=density)
    builder.add_force_element(fx.LeafSpring("leaf", builder.world, tip, material=material, **size))
    return builder.build()


MISTAKES: dict[str, tuple[Callable[[], fx.System], str, str]] = {
    "a mass in g": (lambda: servo(panel={"mass": 9000.0}), "density", "door.panel.mass"),
    "a size in mm": (
        lambda: servo(panel={"size": (20.0, 600.0, 700.0)}),
        *("density", "door.panel.unit_inertia"),
    ),
    "a modulus in GPa": (lambda: leaf(modulus=193.0), "material", "leaf.youngs_modulus"),
    "a modulus in MPa": (lambda: leaf(modulus=193e3), "material", "leaf.youngs_modulus"),
    "a density in g/cm³": (lambda: leaf(density=7.9), "material", "leaf.density"),
    "a thickness in mm": (lambda: leaf(thickness=0.5), "dimensions", "leaf.thickness"),
    "a width in mm": (lambda: leaf(width=20.0), "dimensions", "leaf.width"),
    "a width for a thickness": (
        lambda: leaf(width=5e-4, thickness=0.02),
        *("dimensions", "leaf.thickness"),
    ),
    "a leaf in mm": (
        lambda: leaf(length=100.0, width=20.0, thickness=0.5),
        *("dimensions", "leaf.length"),
    ),
    "a center of mass in mm": (lambda: servo(com=(0.0, 300.0, 0.0)), "arm", "door.panel.com"),
    "gravity in mm/s²": (
        lambda: servo(gravity=(0.0, 0.0, -9810.0)),
        *("gravity", "door.tree.gravity"),
    ),
    "a proportional gain": (lambda: servo(pid={"kp": 1e12}), "faster than sound", "pid.kp"),
    "a negative gain": (lambda: servo(pid={"kp": -1e14}), "fast mode", "pid.kp"),
    "an integral gain": (lambda: servo(pid={"ki": 1e22}), "fast mode", "pid.ki"),
    "a derivative gain": (lambda: servo(pid={"kd": 1e14}), "fast mode", "pid.kd"),
    "a derivative filter": (
        lambda: servo(pid={"derivative_filter": 1e-9}),
        *("fast mode", "pid.derivative_filter"),
    ),
    "a gain far from mechanisms": (lambda: loop(1e12), "fast mode", "pid.kp"),
    "a time constant": (lambda: loop(10.0, 1e-9), "fast mode", "lag.time_constant"),
    "a thick flexure": (
        lambda: servo(elements=lambda axis, panel: [thick_flexure(axis)]),
        *("limit", "door.flexure"),
    ),
    "a spring constant": (
        lambda: servo(hinge={"spring_constant": 1e12}),
        *("faster than sound", "door.hinge.spring_constant"),
    ),
    "a threshold of friction": (
        lambda: servo(hinge={"motion_threshold": 1e-8}),
        *("fast mode", "door.hinge.motion_threshold"),
    ),
    "a target in degrees": (lambda: servo(target=60.0), "degrees", "target.to"),
    "a limit of a joint in degrees": (
        lambda: servo(joint={"position_limits": (-10.0, 90.0)}),
        *("degrees", "door.axis.angle"),
    ),
    "a start in degrees": (lambda: servo(start=45.0), "degrees", "door.axis.angle"),
    "a parameter in degrees": (
        lambda: servo(hinge={"spring_zero_angle_rad": -90.0}),
        *("degrees", "door.hinge.spring_zero_angle_rad"),
    ),
    "degrees on a wire": (lambda: gauge("deg"), "units of a wire", "door.tree.axis_q"),
    "a torque on a wire": (lambda: gauge("N m"), "units of a wire", "door.tree.axis_q"),
    "limits in kN m": (
        lambda: servo(pid={"lower": -0.04, "upper": 0.04}),
        *("actuator limit", "pid.lower"),
    ),
    "a limit of a motor in kN m": (
        lambda: servo(motor={"effort_limit": 0.04}),
        *("actuator limit", "door.tree.motor_effort"),
    ),
    "a limit that never acts": (
        lambda: servo(before_motor=fx.Saturation("limits", -1e9, 1e9)),
        *("actuator limit", "limits.lower"),
    ),
    "limits that are equal": (
        lambda: servo(pid={"lower": 5.0, "upper": 5.0}),
        *("closed limits", "pid.upper"),
    ),
    "a sampled gain": (
        lambda: servo(pid={"kp": 1e12}, period=0.01),
        *("sampled gain", "pid.kp"),
    ),
    "a period in ms": (
        lambda: servo(
            period=10.0,
            hinge={"dynamic_friction_torque": 0.0, "static_friction_torque": 0.0},
            elements=lambda axis, _: [fx.JointSpring("spring", axis, stiffness=500.0)],
        ),
        *("slow sampling", "pid"),
    ),
    "a period in ns": (
        lambda: servo(period=1e-14),
        *("idle sampling", "pid"),
    ),
    "a delay in ms": (
        lambda: servo(before_motor=fx.TimeDelay("delay", 1e6, 1e3)),
        *("long delay", "delay.delay"),
    ),
    "a delay in ns": (
        lambda: servo(before_motor=fx.TimeDelay("delay", 2e-12, 1e-12)),
        *("idle sampling", "delay.delay"),
    ),
    "periods that drift": (lambda: sampled_twice(0.1, 0.033333), "periods", "two"),
    "a mass ratio": (lambda: two_bodies(1e-7, 1e-3), "mass ratio", "inner.mass"),
    "a size ratio": (lambda: two_bodies(1e-5, 1e-6), "size ratio", "inner.unit_inertia"),
    "a length in mm": (
        lambda: servo(elements=rope(800.0)),
        *("violent start", "door.rope.free_length"),
    ),
    "a damping": (lambda: vibrating(1e-9), "faint damping", "spring.damping"),
}


@pytest.mark.full
@for_each("mistake", MISTAKES)
def test_a_mistake_is_found_where_it_is(mistake: str) -> None:
    make, rule, path = MISTAKES[mistake]
    system = make()
    checkup = fx.doctor(system)
    assert not checkup
    assert rule in [finding.rule for finding in checkup], checkup
    findings = [finding for finding in checkup if finding.rule == rule]
    assert path in [where for finding in findings for where in finding.paths[:2]], checkup
    assert path in str(checkup)
    assert all(finding.what and finding.why and finding.look for finding in findings)
    tables = [system.parameters(), system.signals(), system.create_default_context().describe()]
    known = {path for table in tables for path in table["path"]}
    for each in {each for finding in findings for each in finding.paths} - known:
        system.get_system(each)


def test_every_rule_has_a_mistake_that_it_finds() -> None:
    found = {rule for _, rule, _ in MISTAKES.values()}
    assert len(found) == len(RULES) - 1  # that of `spread` follows
    assert "spread" not in found


def test_motions_too_far_apart_are_found() -> None:
    builder = fx.DiagramBuilder("tanks")
    builder.add_all(fx.Sine("in"), fx.FirstOrderLag("fast", 1e-5), fx.FirstOrderLag("slow", 1e6))
    builder.connect_chain("in", "fast", "slow")
    (finding,) = fx.doctor(builder.build())
    assert finding.rule == "spread"
    assert finding.path == "fast.time_constant"
    assert finding.magnitude == pytest.approx(1e11)


def test_density_is_that_of_the_material() -> None:
    """Uniform solids of all shapes have about the density that they were made with."""
    density, edges = 5e4, np.array([0.1, 0.2, 0.3])
    shapes = [
        fx.SpatialInertia.solid_box(density * edges.prod(), size=edges),
        fx.SpatialInertia.solid_sphere(density * 4.0 / 3.0 * math.pi * 1e-3, radius=0.1),
        fx.SpatialInertia.solid_cylinder(density * math.pi * 5e-3, radius=0.1, length=0.5),
    ]
    for inertia in shapes:
        builder = fx.PlantBuilder("one")
        builder.add_body("solid", inertia)
        (finding,) = fx.doctor(builder.build())
        assert finding.rule == "density"
        assert finding.magnitude == pytest.approx(density, rel=0.15)
        assert finding.limit < finding.magnitude


@pytest.mark.parametrize("inertia", [fx.SpatialInertia.point_mass(9000.0)])
def test_what_has_no_size_has_no_density(inertia: fx.SpatialInertia) -> None:
    builder = fx.PlantBuilder("one")
    builder.add_body("bob", inertia, com=(0.0, 0.0, -1.0))
    assert fx.doctor(builder.build())


def test_thin_bodies_are_judged_by_what_they_could_be() -> None:
    builder = fx.PlantBuilder("thin")
    builder.add_body("rod", fx.SpatialInertia.thin_rod(1.0, length=1.0))
    builder.add_body("plate", fx.SpatialInertia.thin_plate(1.0, size=(1.0, 1.0)))
    assert fx.doctor(builder.build())


# The report --------------------------------------------------------------------------------------


def test_the_report_can_be_read_gone_through_and_asserted() -> None:
    checkup = fx.doctor(servo(panel={"mass": 9000.0}, target=60.0))
    assert (len(checkup), checkup.ok, bool(checkup)) == (2, False, False)
    assert [finding.path for finding in checkup] == ["door.panel.mass", "target.to"]
    assert checkup.table()["rule"] == ["density", "degrees"]
    text = str(checkup)
    assert text.startswith("'servo': 2 implausible values")
    assert "9000 kg" in text
    assert "60 rad" in text
    assert max(map(len, text.splitlines())) <= 100
    healthy = fx.doctor(servo())
    assert (len(healthy), healthy.ok, bool(healthy)) == (0, True, True)
    assert str(healthy) == "'servo': no implausible values"


def test_the_context_decides_and_stays_as_it_was() -> None:
    system = servo()
    context = system.create_default_context()
    context.set("pid.kp", 1e12)
    context.set("door.axis.angle", 45.0)
    twin = context.clone()
    assert {finding.path for finding in fx.doctor(system, context)} == {"pid.kp", "door.axis.angle"}
    assert context == twin
    assert fx.doctor(system)


def test_what_cannot_be_traced_is_looked_at_all_the_same() -> None:
    foreign = fx.FunctionBlock("foreign", lambda u: math.sin(u[0]) * 40.0)
    assert fx.doctor(servo(before_motor=foreign))
    foreign = fx.FunctionBlock("foreign", math.fsum)
    (finding,) = fx.doctor(servo(pid={"kp": 1e12}, before_motor=foreign))
    assert finding.path == "pid.kp"


def test_what_cannot_be_computed_is_said() -> None:
    def broken(u: Any) -> Any:
        return np.log(u - 1.0)

    checkup = fx.doctor(servo(panel={"mass": 9000.0}, before_motor=fx.FunctionBlock("f", broken)))
    assert [finding.path for finding in checkup] == ["door.panel.mass"]
    assert any("not finite" in note for note in checkup.unchecked)
    lag = fx.doctor(fx.FirstOrderLag("lag", 1.0))
    assert lag.ok
    assert "'u'" in lag.unchecked[0]
    assert "not checked" in str(lag)


def test_modes_that_coincide_are_not_passed_over_in_silence() -> None:
    builder = fx.DiagramBuilder("filters")
    builder.add_all(fx.Step("step"), *(fx.FirstOrderLag(name, 1e-9) for name in ("one", "other")))
    builder.connect_chain("step", "one", "other")
    assert "coincide" in str(fx.doctor(builder.build()))


def test_rates_too_large_for_eigenvalues_are_said() -> None:
    assert "rates of 1e+300 per second" in str(fx.doctor(fx.FirstOrderLag("lag", 1e-300)))


def test_a_large_system_is_looked_at_in_part() -> None:
    size = 500
    checkup = fx.doctor(fx.Integrator("many", size=size))
    assert checkup.ok
    assert any("500 states" in note for note in checkup.unchecked)


@pytest.mark.parametrize(
    "given",
    [
        {"modulus": 60e3, "density": 1050.0},  # soft silicone rubber
        {"modulus": 1140e9, "density": 3510.0},  # diamond
        {"modulus": 0.04e9, "density": 60.0},  # foam
        {"width": 0.25},
        {"thickness": 5e-6},
        {"width": 1e-3, "thickness": 1e-3},
    ],
)
def test_unusual_leaves_are_healthy(given: dict[str, float]) -> None:
    rules = {finding.rule for finding in fx.doctor(leaf(**given))}
    assert not rules & {"material", "dimensions"}


@for_each("wrong", [None, "servo", fx.DiagramBuilder("servo"), fx.Gain])
def test_what_is_no_system_is_refused(wrong: Any) -> None:
    with pytest.raises(DeclarationError, match="Cannot check"):
        fx.doctor(wrong)


def test_a_context_of_another_system_is_refused() -> None:
    with pytest.raises(ContextError):
        fx.doctor(loop(1.0), loop(2.0).create_default_context())
