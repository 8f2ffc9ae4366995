"""Cables and bumpers between two points, one physical situation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial.transform import Rotation

import flexure as fx
from flexure.blocks.forces.between_points.one_sided_spring import (
    Bumper,
    Cable,
    OneSidedSpring,
    OneSidedSpringLaw,
)
from flexure.blocks.math import rotation_about
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.diagrams.values.arrays import FloatArray
from tests.support.tiers import for_each

TABLE: dict[str, Any] = {"deflections": [0.1, 0.2], "forces": [10.0, 50.0]}
KINDS = {"cable": (Cable, 1.0), "bumper": (Bumper, -1.0)}
every_kind = for_each("kind", KINDS)


def make(kind: str, frame_a: Any = None, frame_b: Any = None, **options: Any) -> OneSidedSpring:
    """Make a cable or bumper of 1 m between two bodies of its own, or points on others."""
    P, Q = (options.pop(name, np.zeros(3)) for name in ("p_AP", "p_BQ"))
    ends = (frame_a or Body("left"), P, frame_b or Body("right"), Q)
    return KINDS[kind][0]("link", *ends, **{"free_length": 1.0, **TABLE, **options})


def place(element: OneSidedSpring, context: Any, label: str, X: Any, V: Any) -> None:
    """Fix how the body of a frame is placed and moves."""
    element.input_port(f"pose_{label}").fix(context, [*np.ravel(X[0]), *X[1]])
    element.input_port(f"velocity_{label}").fix(context, V)


def stretched(element: OneSidedSpring, length: float, rate: float = 0.0) -> Any:
    """Return a context in which B is away from A along x, and moves along it."""
    context = element.create_default_context()
    still = np.zeros(6)
    place(element, context, "A", (np.eye(3), np.zeros(3)), still)
    place(element, context, "B", (np.eye(3), [length, 0.0, 0.0]), [0.0, 0.0, 0.0, rate, 0.0, 0.0])
    return context


def numbers(element: OneSidedSpring, context: Any) -> dict[str, float]:
    """Evaluate the outputs of size 1."""
    return {port.name: float(port.eval(context)[0]) for port in element.output_ports[2:]}


# The law on a line --------------------------------------------------------------------------------


@every_kind
@for_each("rate", [0.0, 3.0, -3.0])
@for_each("slack", [0.0, 0.3])
def test_a_slack_one_does_nothing(kind: str, slack: float, rate: float) -> None:
    link = make(kind, damping=0.5)
    context = stretched(link, 1.0 - KINDS[kind][1] * slack, rate)
    assert numbers(link, context) == {
        "stored_energy": 0.0,
        "conservative_power": 0.0,
        "non_conservative_power": 0.0,
        "length": pytest.approx(1.0 - KINDS[kind][1] * slack),
        "load": 0.0,
    }
    for port in link.force_ports:
        np.testing.assert_array_equal(port.eval(context), np.zeros(6))


@every_kind
@for_each(
    ("deflection", "load", "energy"),
    [(0.05, 5.0, 0.125), (0.1, 10.0, 0.5), (0.15, 30.0, 1.5), (0.25, 70.0, 0.5 + 3.0 + 3.0)],
)
def test_an_engaged_one_follows_its_table(
    kind: str, deflection: float, load: float, energy: float
) -> None:
    link = make(kind)
    context = stretched(link, 1.0 + KINDS[kind][1] * deflection)
    assert link.load.eval(context) == pytest.approx(load, rel=1e-13)
    assert link.stored_energy.eval(context) == pytest.approx(energy, rel=1e-13)


def test_a_cable_pulls_its_ends_together() -> None:
    cable = make("cable")
    context = stretched(cable, 1.15)
    on_A, on_B = (port.eval(context) for port in cable.force_ports)
    np.testing.assert_allclose(on_A, [0.0, 0.0, 0.0, 30.0, 0.0, 0.0], rtol=1e-13)
    np.testing.assert_allclose(on_B, [0.0, 0.0, 0.0, -30.0, 0.0, 0.0], rtol=1e-13)


def test_a_bumper_pushes_its_ends_apart() -> None:
    bumper = make("bumper")
    context = stretched(bumper, 0.85)
    on_A, on_B = (port.eval(context) for port in bumper.force_ports)
    np.testing.assert_allclose(on_A, [0.0, 0.0, 0.0, -30.0, 0.0, 0.0], rtol=1e-13)
    np.testing.assert_allclose(on_B, [0.0, 0.0, 0.0, 30.0, 0.0, 0.0], rtol=1e-13)


@every_kind
@for_each(("closing", "load"), [(1.0, 45.0), (-1.0, 15.0), (-2.0, 0.0), (-9.0, 0.0)])
def test_damping_acts_while_engaged_and_never_turns_the_force(
    kind: str, closing: float, load: float
) -> None:
    link, side = make(kind, damping=0.5), KINDS[kind][1]
    found = numbers(link, stretched(link, 1.0 + 0.15 * side, closing * side))
    assert found["load"] == pytest.approx(load, rel=1e-13)
    assert found["conservative_power"] == pytest.approx(-30.0 * closing, rel=1e-13)
    assert found["non_conservative_power"] == pytest.approx((30.0 - load) * closing, rel=1e-13)


@every_kind
@given(st.floats(0.3, 2.0), st.floats(-100.0, 100.0))
def test_a_load_is_never_negative(kind: str, length: float, rate: float) -> None:
    link = make(kind, damping=0.5)
    assert link.law(link.create_default_context()).load(length, rate) >= 0.0


@every_kind
def test_beyond_the_table_a_stop_takes_over(kind: str) -> None:
    link = make(kind, end_stiffness=1e4)
    context = stretched(link, 1.0 + 0.21 * KINDS[kind][1])
    assert link.load.eval(context) == pytest.approx(50.0 + 100.0, rel=1e-12)


@every_kind
def test_a_falling_table_ends_level_instead_of_turning_the_force(kind: str) -> None:
    link = make(kind, forces=[50.0, 10.0])
    context = stretched(link, 1.0 + 0.9 * KINDS[kind][1])
    assert link.load.eval(context) == pytest.approx(10.0, rel=1e-13)


LINEAR: dict[str, dict[str, Any]] = {
    "stiffness": {"stiffness": 5e4, "deflections": None, "forces": None},
    "single point": {"deflections": [0.01], "forces": [500.0]},
}


@every_kind
@for_each("way", LINEAR)
@for_each("x", [0.0, 1e-3, 0.5, 0.9])
def test_a_stiffness_or_a_single_point_makes_it_linear(kind: str, way: str, x: float) -> None:
    link, side = make(kind, damping=0.5, **LINEAR[way]), KINDS[kind][1]
    context = stretched(link, 1.0 + side * x, side * 3.0)
    assert link.load.eval(context) == pytest.approx(5e4 * x * 2.5, rel=1e-12, abs=1e-8)
    assert link.stored_energy.eval(context) == pytest.approx(2.5e4 * x**2, rel=1e-12, abs=1e-8)


def test_a_linear_cable_may_be_stretched_far() -> None:
    cable = make("cable", **LINEAR["stiffness"])
    context = stretched(cable, 8.5)
    assert cable.load.eval(context) == pytest.approx(5e4 * 7.5, rel=1e-12)
    assert cable.stored_energy.eval(context) == pytest.approx(2.5e4 * 7.5**2, rel=1e-12)


@every_kind
def test_a_stiffness_is_a_parameter(kind: str) -> None:
    link = make(kind, **LINEAR["stiffness"])
    context = stretched(link, 1.0 + 0.1 * KINDS[kind][1])
    link.stiffness.set(context, 30.0)
    assert link.load.eval(context) == pytest.approx(3.0, rel=1e-12)
    with pytest.raises(fx.errors.ValueRefusedError, match=r"link\.stiffness"):
        link.stiffness.set(context, -1.0)
    names = {parameter.name for parameter in link.numeric_parameters}
    assert names == {"p_AP", "p_BQ", "free_length", "stiffness", "damping"}


def test_a_shorter_free_length_makes_a_pretension() -> None:
    cable = make("cable", deflections=[1.0], forces=[200.0])
    context = stretched(cable, 1.0)
    cable.free_length.set(context, 0.9)
    assert cable.load.eval(context) == pytest.approx(20.0, rel=1e-12)


# In space -----------------------------------------------------------------------------------------


def in_space(kind: str, seed: int) -> tuple[OneSidedSpring, Any, list[tuple[Any, FloatArray]]]:
    """Return an element between frames on bodies that are placed and move anyhow."""
    rng = np.random.default_rng(seed)
    frames = [
        Frame(name, Body(f"body_{name}"), (Rotation.random(random_state=rng).as_matrix(), offset))
        for name, offset in zip("ab", rng.normal(size=(2, 3)), strict=True)
    ]
    p_AP, p_BQ = rng.normal(size=(2, 3))
    link = make(kind, *frames, free_length=3.0, damping=0.3, p_AP=p_AP, p_BQ=p_BQ)
    context, motions = link.create_default_context(), []
    for label in "AB":
        X = Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)
        motions.append((X, rng.normal(size=6)))
        place(link, context, label, *motions[-1])
    return link, context, motions


@every_kind
@for_each("seed", range(20))
def test_in_space_length_forces_and_powers_fit_together(kind: str, seed: int) -> None:
    link, context, motions = in_space(kind, seed)
    points, velocities = [], []
    for attachment, ((R, p), V), point in zip(
        link.attachments, motions, (link.p_AP(context), link.p_BQ(context)), strict=True
    ):
        arm = R @ (attachment.frame.X_BF.p + attachment.frame.X_BF.R @ point)
        points.append(p + arm)
        velocities.append(V[3:] + np.cross(V[:3], arm))
    line = points[1] - points[0]
    length = np.linalg.norm(line)
    direction = line / length
    rate = direction @ (velocities[1] - velocities[0])
    assert link.length.eval(context) == pytest.approx(length, rel=1e-13)
    load = link.law(context).load(length, rate)
    assert link.load.eval(context) == pytest.approx(load, rel=1e-10, abs=1e-10)

    forces = [port.eval(context) for port in link.force_ports]
    side = KINDS[kind][1]
    np.testing.assert_allclose(forces[0][3:], side * load * direction, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(forces[0][3:], -forces[1][3:])
    about_origin = [
        F[:3] + np.cross(p, F[3:]) for F, ((_, p), _) in zip(forces, motions, strict=True)
    ]
    np.testing.assert_allclose(sum(about_origin), np.zeros(3), atol=1e-9)

    power = sum(float(F @ V) for F, (_, V) in zip(forces, motions, strict=True))
    found = numbers(link, context)
    total = found["conservative_power"] + found["non_conservative_power"]
    assert power == pytest.approx(total, rel=1e-10, abs=1e-9)
    assert found["non_conservative_power"] <= 0.0


def test_some_of_the_samples_in_space_are_engaged() -> None:
    for kind in KINDS:
        loads = [
            link.load.eval(context)[0] for link, context, _ in map(in_space, [kind] * 20, range(20))
        ]
        assert 0 < np.count_nonzero(loads) < 20


def test_an_end_on_the_world_needs_no_inputs() -> None:
    world = Body("world")
    world.number = 0
    lamp = Body("lamp", model_instance="lamps")
    cable = make("cable", world, lamp, p_AP=[0.0, 0.0, 3.0], p_BQ=[0.0, 0.0, 0.5])
    assert [port.name for port in cable.input_ports] == ["pose_B", "velocity_B"]
    assert cable.model_instance == "default"
    context = cable.create_default_context()
    upside_down = rotation_about([1.0, 0.0, 0.0], np.pi)
    place(cable, context, "B", (upside_down, [0.0, 0.0, 2.3]), np.zeros(6))
    np.testing.assert_allclose(cable.length.eval(context), [1.2], rtol=1e-13)
    np.testing.assert_allclose(
        cable.force_ports[1].eval(context), [0, 0, 0, 0, 0, 50.0], rtol=1e-12, atol=1e-12
    )


def test_the_stored_energy_and_the_length_need_no_velocities() -> None:
    link = make("cable")
    for output in ("stored_energy", "length"):
        assert {entry for entry, name in link.feedthrough if name == output} == {"pose_A", "pose_B"}
    context = link.create_default_context()
    for label, x in (("A", 0.0), ("B", 1.1)):
        link.input_port(f"pose_{label}").fix(context, [*np.eye(3).ravel(), x, 0.0, 0.0])
    assert link.stored_energy.eval(context) == pytest.approx(0.5, rel=1e-13)


# Meeting points -----------------------------------------------------------------------------------


def test_the_ends_of_a_slack_cable_may_meet() -> None:
    cable = make("cable", damping=1.0)
    context = stretched(cable, 0.0, 5.0)
    for port in cable.force_ports:
        np.testing.assert_array_equal(port.eval(context), np.zeros(6))


def test_a_bumper_whose_ends_meet_has_no_direction_to_push() -> None:
    bumper = make("bumper")
    context = stretched(bumper, 0.0)
    assert bumper.load.eval(context) > 0.0
    for port in bumper.force_ports:
        with pytest.raises(
            fx.errors.EvaluationError, match=r"force of 'link'.* 0 m apart.*no direction"
        ):
            port.eval(context)
    assert bumper.force_ports[0].eval(stretched(bumper, 1e-12))[3] < 0.0


# Constants and refusals ---------------------------------------------------------------------------


def test_constants_can_be_changed_in_a_context() -> None:
    link = make("bumper", end_stiffness=5.0)
    context = link.create_default_context()
    link.forces.set(context, [1.0, 2.0])
    link.damping.set(context, 3.0)
    link.p_BQ.set(context, [0.0, 0.0, 0.25])
    assert link.end_stiffness is not None
    link.end_stiffness.set(context, 7.0)
    law = link.law(context)
    expected = OneSidedSpringLaw(
        -1.0, 1.0, np.array([0.1, 0.2]), np.array([1.0, 2.0]), damping=3.0, end_stiffness=7.0
    )
    lengths = np.linspace(0.1, 1.5, 30)
    np.testing.assert_array_equal(law.force(lengths, 1.0), expected.force(lengths, 1.0))
    place(link, context, "A", (np.eye(3), np.zeros(3)), np.zeros(6))
    place(link, context, "B", (np.eye(3), np.zeros(3)), np.zeros(6))
    assert link.length.eval(context) == pytest.approx(0.25, rel=1e-15)


@every_kind
@for_each(
    ("options", "text"),
    [
        ({"deflections": [0.0, 0.1]}, "increase strictly, from zero; found"),
        ({"deflections": [-0.1, 0.1]}, "from zero"),
        ({"deflections": [0.2, 0.1]}, "from zero"),
        ({"deflections": [0.1, np.nan]}, "finite deflections"),
        ({"deflections": []}, "at least 1 deflections"),
        ({"deflections": [0.1]}, r"1 forces.*found forces of shape \(2,\)"),
    ],
)
def test_impossible_tables_are_refused(kind: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(fx.errors.DeclarationError, match=rf"table of 'link'.*{text}"):
        make(kind, **options)


@for_each(
    ("options", "text"),
    [
        ({"stiffness": 1.0}, "no table beside it; found 'deflections', 'forces'"),
        (
            {**LINEAR["stiffness"], "end_stiffness": 1.0},
            "no table beside it; found 'end_stiffness'",
        ),
        ({"forces": None}, "a stiffness, or deflections and forces; found 'deflections'"),
        ({"deflections": None}, "a stiffness, or deflections and forces; found 'forces'"),
        ({"deflections": None, "forces": None}, "a stiffness, or deflections and forces; found n"),
    ],
)
@every_kind
def test_a_stiffness_or_a_table_is_given(kind: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(fx.errors.DeclarationError, match=rf"Cannot make 'link'.*{text}"):
        make(kind, **options)


def test_elements_between_points_name_their_places_alike() -> None:
    top, eye = Body("top"), Frame("eye", Body("load"), (0.0, 0.0, 0.5))
    ends: dict[str, Any] = {"body_a": top, "p_AP": np.zeros(3), "body_b": eye, "p_BQ": np.ones(3)}
    constants: dict[str, Any] = {"free_length": 1.0, "stiffness": 5.0}
    for link in (
        Cable("link", **ends, **constants),
        Bumper("link", **ends, **constants),
        fx.LinearSpringDamper("link", **ends, **constants, damping=0.0),
    ):
        assert (link.body_a, link.body_b) == (top, eye.body)
        assert (link.frame_a, link.frame_b) == (top.frame, eye)
        np.testing.assert_array_equal(link.p_BQ.default, np.ones(3))


@for_each(
    ("name", "value"),
    [
        ("forces", [-1.0, 2.0]),
        ("free_length", 0.0),
        ("free_length", np.inf),
        ("damping", -1.0),
        ("end_stiffness", -1.0),
        ("p_AP", [0.0, np.nan, 0.0]),
        ("p_BQ", [0.0, 0.0]),
    ],
)
def test_impossible_constants_are_refused(name: str, value: Any) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"link\.{name}"):
        make("cable", **{name: value})
    link = make("cable", end_stiffness=1.0)
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"link\.{name}"):
        getattr(link, name).set(link.create_default_context(), value)


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(fx.errors.DeclarationError, match=r"attach 'link'.*a Frame or a Body"):
        make("cable", "ceiling")
