"""What every law of a force along a coordinate promises: energies, powers, symbols, arrays."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from scipy.integrate import fixed_quad, solve_ivp

from flexure.blocks.forces.between_points.one_sided_spring import OneSidedSpringLaw
from flexure.blocks.forces.between_points.spring_damper import SpringDamperLaw
from flexure.blocks.forces.on_joints.coordinate_law import CoordinateLaw, hunt_crossley_damping
from flexure.blocks.forces.on_joints.door_hinge import DoorHingeConfig, HingeLaw
from flexure.blocks.forces.on_joints.joint_springs import SpringLaw, TabulatedSpringLaw
from flexure.blocks.forces.on_joints.joint_stop import StopLaw
from flexure.diagrams import scalars
from tests.support.tiers import for_each, thinned

coordinates = st.floats(-5.0, 5.0)
rates = st.floats(-20.0, 20.0)
offsets = st.floats(-2.0, 2.0)
not_negative = st.floats(0.0, 50.0)
perhaps = st.none() | not_negative


@st.composite
def tables(draw: Any, start: float, forces: Any, least: int) -> Any:
    """Draw the points of a table, which begins after a start."""
    steps = draw(st.lists(st.floats(0.1, 1.5), min_size=least, max_size=5))
    values = draw(st.lists(forces, min_size=len(steps), max_size=len(steps)))
    return start + np.cumsum(steps), np.array(values)


@st.composite
def tabulated_laws(draw: Any) -> TabulatedSpringLaw:
    points, forces = draw(tables(start=-3.0, forces=st.floats(-30.0, 30.0), least=2))
    return TabulatedSpringLaw(
        points, forces, draw(offsets), draw(offsets), draw(not_negative), draw(perhaps)
    )


@st.composite
def one_sided_laws(draw: Any) -> OneSidedSpringLaw:
    points, forces = draw(tables(start=0.0, forces=not_negative, least=1))
    side = draw(st.sampled_from([1.0, -1.0]))
    return OneSidedSpringLaw(side, draw(offsets), points, forces, draw(not_negative), draw(perhaps))


LAWS: dict[str, st.SearchStrategy[CoordinateLaw]] = {
    "spring": st.builds(SpringLaw, not_negative, offsets, offsets, not_negative),
    "spring and damper": st.builds(
        SpringDamperLaw, st.floats(0.1, 2.0), not_negative, not_negative
    ),
    "tabulated spring": tabulated_laws(),
    "one-sided spring": one_sided_laws(),
    "stop": st.builds(
        StopLaw,
        st.floats(-3.0, 0.0) | st.just(-np.inf),
        st.floats(0.0, 3.0) | st.just(np.inf),
        not_negative,
        not_negative,
    ),
}
every_kind = pytest.mark.parametrize("kind", thinned(LAWS, fast=2))


def kinks(law: Any) -> list[float]:
    """Return where the force bends."""
    if isinstance(law, TabulatedSpringLaw):
        return [*(law.nominal_position + law.deflections)]
    if isinstance(law, OneSidedSpringLaw):
        return [law.free_length, *(law.free_length + law.side * law.deflections)]
    if isinstance(law, StopLaw):
        return [law.lower, law.upper]
    return []


@every_kind
@given(st.data(), coordinates, coordinates)
def test_the_stored_energy_is_the_work_against_the_force(
    kind: str, data: Any, start: float, end: float
) -> None:
    law: Any = data.draw(LAWS[kind])
    low, high = sorted((start, end))
    corners = sorted([low, high, *(bend for bend in kinks(law) if low < bend < high)])
    force = np.vectorize(law.conservative_force, otypes=[float])
    rise = -sum(fixed_quad(force, a, b)[0] for a, b in pairwise(corners))  # exact between corners
    work = rise if start <= end else -rise
    found = law.stored_energy(end) - law.stored_energy(start)
    scale = 1.0 + abs(law.stored_energy(start)) + abs(law.stored_energy(end))
    assert found == pytest.approx(work, rel=1e-10, abs=1e-10 * scale)


@pytest.mark.full
@every_kind
@given(st.data(), coordinates)
def test_the_conservative_force_is_the_slope_of_the_energy(kind: str, data: Any, q: float) -> None:
    law = data.draw(LAWS[kind])
    assume(all(abs(q - bend) > 1e-6 for bend in kinks(law)))
    graph = scalars.Graph()
    energy = law.stored_energy(scalars.symbols(graph, "q", ()))
    (slope,) = scalars.evaluate(scalars.gradient(energy, [("q", 0)]), {("q", 0): q})
    assert -slope == pytest.approx(law.conservative_force(q), rel=1e-12, abs=1e-11)


@every_kind
@given(st.data(), coordinates, rates)
def test_powers_are_those_of_the_force_and_dissipation_takes_energy(
    kind: str, data: Any, q: float, v: float
) -> None:
    law = data.draw(LAWS[kind])
    conservative, lost = law.conservative_power(q, v), law.non_conservative_power(q, v)
    assert conservative == law.conservative_force(q) * v
    assert conservative + lost == pytest.approx(law.force(q, v) * v, rel=1e-12, abs=1e-10)
    assert lost <= 0.0


@every_kind
@given(st.data(), coordinates, rates)
def test_the_force_is_continuous(kind: str, data: Any, q: float, v: float) -> None:
    law = data.draw(LAWS[kind])
    h = 1e-9
    for place in [q, *np.clip(kinks(law), -1e3, 1e3)]:
        jump = law.force(place + h, v) - law.force(place - h, v)
        assert abs(jump) < 1e-2  # slopes are below 600 and damping multiplies by up to 1001


@every_kind
@given(st.data(), coordinates, rates)
def test_symbols_give_the_same_numbers_as_floats(kind: str, data: Any, q: float, v: float) -> None:
    law: Any = data.draw(LAWS[kind])
    graph = scalars.Graph()
    known = {("q", 0): q, ("v", 0): v}
    constants = {}
    for field in fields(law):
        value = getattr(law, field.name)
        if field.name in ("side", "deflections") or value is None:
            continue
        constants[field.name] = scalars.symbols(graph, field.name, np.shape(value))
        known |= {(field.name, k): entry for k, entry in enumerate(np.ravel(value))}
    symbolic = replace(law, **constants)
    q_symbol, v_symbol = (scalars.symbols(graph, name, ()) for name in "qv")
    for found, expected in [
        (symbolic.stored_energy(q_symbol), law.stored_energy(q)),
        (symbolic.conservative_force(q_symbol), law.conservative_force(q)),
        (symbolic.dissipative_force(q_symbol, v_symbol), law.dissipative_force(q, v)),
        (symbolic.force(q_symbol, v_symbol), law.force(q, v)),
    ]:
        assert scalars.evaluate(found, known) == expected


@pytest.mark.full
@every_kind
@given(st.data())
def test_many_coordinates_at_once_give_what_each_one_gives(kind: str, data: Any) -> None:
    law = data.draw(LAWS[kind])
    q, v = np.random.default_rng(5).uniform(-5.0, 5.0, (2, 3, 4))
    for name, arguments in [
        ("stored_energy", (q,)),
        ("force", (q, v)),
        ("conservative_power", (q, v)),
        ("non_conservative_power", (q, v)),
    ]:
        together = getattr(law, name)(*arguments)
        for place in np.ndindex(q.shape):
            alone = getattr(law, name)(*(argument[place] for argument in arguments))
            assert together[place] == alone


@pytest.mark.parametrize(
    "law",
    [
        SpringDamperLaw(0.7, 30.0, 2.0),
        HingeLaw(**asdict(DoorHingeConfig(spring_constant=3.0, spring_zero_angle_rad=0.2))),
    ],
)
def test_energies_of_many_numbers_are_those_of_each_one_in_all_bits(law: Any) -> None:
    q = np.random.default_rng(5).uniform(-5.0, 5.0, 20_000)
    # The C library rounds one of a thousand powers x**2 otherwise than the product x*x.
    assert any(x**2 != x * x for x in q)
    np.testing.assert_array_equal(law.stored_energy(q), [law.stored_energy(x) for x in q])


# The damping of contacts ----------------------------------------------------------------------


@for_each(
    ("rate", "damping_force"), [(2.0, 10.0), (0.0, 0.0), (-1.0, -5.0), (-2.0, -10.0), (-9.0, -10.0)]
)
def test_damping_adds_to_a_contact_at_most_what_takes_its_force_away(
    rate: float, damping_force: float
) -> None:
    assert hunt_crossley_damping(10.0, rate, damping=0.5) == damping_force


@pytest.mark.parametrize("exponent", [1.0, 1.5])
@pytest.mark.parametrize("damped_speed", [0.1, 1.0, 5.0])
def test_the_rebound_depends_on_damping_and_speed_alone(
    exponent: float, damped_speed: float
) -> None:
    mass, stiffness, damping = 2.0, 300.0, 0.5
    arriving = damped_speed / damping

    def fall(t: float, x: Any) -> list[float]:
        elastic = stiffness * max(x[0], 0.0) ** exponent
        return [x[1], -(elastic + hunt_crossley_damping(elastic, x[1], damping)) / mass]

    def leaves(t: float, x: Any) -> float:
        return float(x[0]) if t > 0.0 else 1.0

    leaves.terminal = True  # type: ignore[attr-defined]
    run = solve_ivp(fall, (0.0, 10.0), [0.0, arriving], events=leaves, rtol=1e-10, atol=1e-12)
    leaving = -run.y[1, -1]
    left, right = damping * arriving, damping * leaving
    assert left - np.log1p(left) == pytest.approx(-right - np.log1p(-right), rel=1e-6)
    assert 0.0 < leaving < min(arriving, 1.0 / damping)
