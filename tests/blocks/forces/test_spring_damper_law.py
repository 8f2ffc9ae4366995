"""The law of a spring and damper between two points, one physical situation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

import flexure as fx
from flexure.blocks.forces.spring_damper_law import refuse_coincident_points
from flexure.diagrams import scalars
from flexure.diagrams.values import FloatArray
from tests.oracle.reading import cases

LAW = fx.SpringDamperLaw(free_length=0.8, stiffness=50.0, damping=3.0)
OF_POSITION = ["length", "elongation", "direction", "stored_energy"]
OF_BOTH = ["rate", "tension", "force", "conservative_power", "non_conservative_power"]

vectors = arrays(float, 3, elements=st.floats(-10.0, 10.0))


def point(X: dict[str, Any], V: dict[str, Any], p: list[float]) -> tuple[FloatArray, ...]:
    """Return where a point of a body is, how it moves, and its arm from the origin of the body."""
    arm = Rotation.from_quat(np.roll(X["q"], -1)).apply(p)
    return np.add(X["p"], arm), np.add(V["v"], np.cross(V["w"], arm)), arm


def from_oracle(case: dict[str, Any]) -> tuple[fx.SpringDamperLaw, FloatArray, FloatArray, Any]:
    """Return the law of a case, the relative motion of its points, and the arms of the bodies."""
    params = dict(case["params"])
    p_AP, p_BQ = params.pop("p_AP"), params.pop("p_BQ")
    world = {"q": [1.0, 0.0, 0.0, 0.0], "p": [0.0] * 3}, {"w": [0.0] * 3, "v": [0.0] * 3}
    X_WA, V_WA = world if case["A_is_world"] else (case["X_WA"], case["V_WA"])
    P, v_P, arm_A = point(X_WA, V_WA, p_AP)
    Q, v_Q, arm_B = point(case["X_WB"], case["V_WB"], p_BQ)
    return fx.SpringDamperLaw(**params), Q - P, v_Q - v_P, {"F_A_W": arm_A, "F_B_W": arm_B}


@pytest.mark.parametrize("case", cases("element_spring_damper.json"))
def test_force_energy_and_powers_are_those_of_drake(case: dict[str, Any]) -> None:
    law, p, v, arms = from_oracle(case)
    expected = case["expected"]
    if expected["throws"]:
        with pytest.raises(fx.errors.EvaluationError, match="'strut'"):
            refuse_coincident_points("strut", p, law.free_length)
        return
    refuse_coincident_points("strut", p, law.free_length)
    force = law.force(p, v)
    for body, sign in (("F_A_W", 1.0), ("F_B_W", -1.0)):
        if body in expected:
            np.testing.assert_allclose(sign * force, expected[body]["f"], rtol=1e-11, atol=1e-12)
            moment = np.cross(arms[body], sign * force)
            np.testing.assert_allclose(moment, expected[body]["tau"], rtol=1e-11, atol=1e-12)
    found = [law.stored_energy(p), law.conservative_power(p, v), law.non_conservative_power(p, v)]
    wanted = [expected[name] for name in ("PE", "P_conservative", "P_nonconservative")]
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


def test_a_stretched_spring_pulls_towards_the_other_end() -> None:
    force = LAW.force(np.array([0.0, 1.0, 0.0]), np.zeros(3))
    np.testing.assert_allclose(force, [0.0, 50.0 * 0.2, 0.0], rtol=1e-14)


def test_a_compressed_spring_pushes_away() -> None:
    force = LAW.force(np.array([0.0, 0.0, -0.5]), np.zeros(3))
    np.testing.assert_allclose(force, [0.0, 0.0, 50.0 * 0.3], rtol=1e-14)


@pytest.mark.parametrize("speed", [2.0, -2.0])
def test_the_damper_resists_both_directions(speed: float) -> None:
    force = LAW.force(np.array([0.8, 0.0, 0.0]), np.array([speed, 0.0, 0.0]))
    np.testing.assert_allclose(force, [3.0 * speed, 0.0, 0.0], rtol=1e-14)


def test_motion_across_the_line_is_not_resisted() -> None:
    force = LAW.force(np.array([0.8, 0.0, 0.0]), np.array([0.0, 5.0, -7.0]))
    np.testing.assert_array_equal(force, [0.0, 0.0, 0.0])


@given(vectors, vectors)
def test_powers_add_up_to_what_the_forces_do(p: FloatArray, v: FloatArray) -> None:
    assume(np.linalg.norm(p) > 1e-3)
    done = -LAW.force(p, v) @ v  # f on A at P and -f on B at Q
    total = LAW.conservative_power(p, v) + LAW.non_conservative_power(p, v)
    assert total == pytest.approx(done, rel=1e-12, abs=1e-12)
    assert LAW.non_conservative_power(p, v) <= 0.0
    assert LAW.stored_energy(p) >= 0.0


@given(vectors, vectors)
def test_conservative_power_is_what_the_stored_energy_loses(p: FloatArray, v: FloatArray) -> None:
    assume(np.linalg.norm(p) > 0.1)
    h = 1e-5
    ahead, behind = LAW.stored_energy(p + h * v), LAW.stored_energy(p - h * v)
    assert LAW.conservative_power(p, v) == pytest.approx((behind - ahead) / (2.0 * h), abs=1e-3)


@given(vectors, vectors, vectors)
def test_the_force_turns_with_the_frame(p: FloatArray, v: FloatArray, turn: FloatArray) -> None:
    assume(np.linalg.norm(p) > 1e-3)
    R = Rotation.from_rotvec(turn)
    turned = LAW.force(R.apply(p), R.apply(v))
    np.testing.assert_allclose(turned, R.apply(LAW.force(p, v)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("multiple", [1.0, 3.0, 1e3])
def test_the_soft_length_has_an_exact_rate_down_to_the_nearest_distance(multiple: float) -> None:
    delta = 2.0**-52 * LAW.free_length
    p = np.array([0.0, multiple * delta, 0.0])
    v = np.array([0.0, 1.0, 0.0])
    assert LAW.length(p) == pytest.approx(delta * np.hypot(multiple, 1.0), rel=1e-15)
    assert LAW.rate(p, v) == pytest.approx(multiple / np.hypot(multiple, 1.0), rel=1e-15)


@given(vectors, vectors)
def test_symbols_give_the_same_bits_as_floats(p: FloatArray, v: FloatArray) -> None:
    graph = scalars.Graph()
    sources = {"p": p, "v": v, "k": np.array([LAW.free_length, LAW.stiffness, LAW.damping])}
    known = {(key, i): value for key, values in sources.items() for i, value in enumerate(values)}
    on_symbols = fx.SpringDamperLaw(*scalars.symbols(graph, "k", 3))
    p_symbols, v_symbols = (scalars.symbols(graph, key, 3) for key in "pv")
    for name in OF_POSITION:
        found = scalars.evaluate(getattr(on_symbols, name)(p_symbols), known)
        np.testing.assert_array_equal(found, getattr(LAW, name)(p))
    for name in OF_BOTH:
        found = scalars.evaluate(getattr(on_symbols, name)(p_symbols, v_symbols), known)
        np.testing.assert_array_equal(found, getattr(LAW, name)(p, v))


@pytest.mark.parametrize("name", [*OF_POSITION, *OF_BOTH])
def test_many_vectors_at_once_give_what_each_one_gives(name: str) -> None:
    rng = np.random.default_rng(4)
    arguments = rng.normal(size=(2, 4, 5, 3))[: 1 if name in OF_POSITION else 2]
    together = getattr(LAW, name)(*arguments)
    for i, j in np.ndindex(4, 5):
        np.testing.assert_array_equal(together[i, j], getattr(LAW, name)(*arguments[:, i, j]))


def test_meeting_points_are_refused_with_the_distance_and_a_way_out() -> None:
    with pytest.raises(
        fx.errors.EvaluationError, match=r"'door\.strut'.*at least 2\.2.*e-16 m; .* 0 m apart.*Keep"
    ):
        refuse_coincident_points("door.strut", np.zeros(3), 1.0)


def test_symbols_pass_the_check_of_the_distance() -> None:
    p = scalars.symbols(scalars.Graph(), "p", 3)
    refuse_coincident_points("strut", p, 1.0)
    refuse_coincident_points("strut", np.zeros(3), p[0])
