"""Zeros, static gains and minimal models, and the way to python-control and SciPy and back."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import linalg, signal

import flexure as fx
from flexure.diagrams.checks.errors import DeclarationError, MissingExtraError, ValueRefusedError
from tests.support.mechanics.mechanics import servo
from tests.support.tiers import for_each

W = np.array([0.0, 0.3, 2.0, 40.0])
PAIR: Any = [-2.0 + 1j, -2.0 - 1j]
LONELY: Any = [1j]


def model(A: Any, B: Any, C: Any, D: Any = None, **options: float) -> fx.LinearModel:
    A, B, C = (np.asarray(matrix, dtype=float) for matrix in (A, B, C))
    D = np.zeros((len(C), B.shape[1])) if D is None else D
    return fx.LinearModel.from_scipy(signal.StateSpace(A, B, C, D, **options))


def random_model(rng: np.random.Generator, n: int, m: int, p: int) -> fx.LinearModel:
    return model(rng.normal(size=(n, n)), rng.normal(size=(n, m)), rng.normal(size=(p, n)))


def chain(count: int, stiffness: float = 1e6, mass: float = 0.1) -> fx.LinearModel:
    """Masses in a row, the first one driven and observed; units of very different size."""
    K = stiffness * (2.0 * np.eye(count) - np.eye(count, k=1) - np.eye(count, k=-1)) / mass
    A = np.block([[np.zeros((count, count)), np.eye(count)], [-K, -1e-5 * K]])
    B = np.zeros((2 * count, 1))
    B[count] = 1.0 / mass
    return model(A, B, np.eye(1, 2 * count))


def loop() -> fx.LinearModel:
    diagram = servo(derivative_filter=0.01)
    return fx.linearize(diagram, None, ["target.value", "pendulum.torque"], ["pendulum.angle"])


def alike(found: Any, expected: Any, rtol: float = 1e-7) -> None:
    """Compare conjugate numbers in whatever order."""
    found, expected = (
        each[np.lexsort((each.real.round(6), each.imag))] for each in (found, expected)
    )
    np.testing.assert_allclose(found, expected, rtol=rtol)


def same(found: fx.LinearModel, expected: fx.LinearModel) -> None:
    """Compare all that another package can keep, to the last bit."""
    for name in "ABCD":
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
        assert getattr(found, name).shape == getattr(expected, name).shape
    assert found.period == expected.period


# Zeros -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 5])
def test_zeros_of_a_chain_are_the_poles_of_what_is_left_when_its_end_is_held(size: int) -> None:
    whole, held = chain(size), chain(size - 1)
    np.testing.assert_allclose(
        np.sort(whole.zeros.imag), np.sort(held.poles.imag), rtol=1e-9, atol=1e-6
    )
    assert len(whole.zeros) == 2 * (size - 1)


@pytest.mark.parametrize("direct", [0.0, 1.0])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 1), (6, 2), (7, 3)])
def test_square_models_have_the_finite_eigenvalues_of_their_pencil(
    n: int, m: int, direct: float
) -> None:
    rng = np.random.default_rng(n)
    found = random_model(rng, n, m, m)
    found = dataclasses.replace(found, D=direct * rng.normal(size=(m, m)))
    left = np.block([[found.A, found.B], [found.C, found.D]])
    values = linalg.eigvals(left, linalg.block_diag(np.eye(n), np.zeros((m, m))))
    values = values[np.abs(values) < 1e6]
    alike(found.zeros, values)


def test_zeros_between_unequal_numbers_are_where_the_rank_drops() -> None:
    rng = np.random.default_rng(3)
    assert len(random_model(rng, 6, 2, 3).zeros) == len(random_model(rng, 6, 3, 2).zeros) == 0
    # A common factor (s + 4) in front of all inputs of a wide model.
    A, B = rng.normal(size=(3, 3)), rng.normal(size=(3, 1))
    inner = model(A, B, rng.normal(size=(2, 3)), rng.normal(size=(2, 1)))
    front = model([[-1.0]], [[1.0]], [[3.0]], [[1.0]])  # (s + 4) / (s + 1)
    both = model(
        np.block([[A, B @ front.C], [np.zeros((1, 3)), front.A]]),
        np.vstack([B @ front.D, front.B]),
        np.hstack([inner.C, inner.D @ front.C]),
        inner.D @ front.D,
    )
    assert both.zeros == pytest.approx([-4.0])
    turned = model(both.A.T, both.C.T, both.B.T, both.D.T)
    assert turned.zeros == pytest.approx([-4.0])


def test_few_things_have_no_zeros() -> None:
    assert model(np.eye(2), np.zeros((2, 0)), np.eye(2)).zeros.shape == (0,)
    assert model(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), [[2.0]]).zeros.size == 0
    delay = model([[0.0, 0.0], [1.0, 0.0]], [[1.0], [0.0]], [[0.0, 1.0]], dt=0.1)
    assert delay.zeros.size == 0


# Static gains ------------------------------------------------------------------------------------


def test_static_gains_are_those_of_the_response_at_zero() -> None:
    rng = np.random.default_rng(1)
    found = random_model(rng, 4, 2, 3)
    np.testing.assert_allclose(found.static_gain, found.frequency_response(0.0).real, rtol=1e-10)
    sampled = model(0.5 * np.eye(2), np.eye(2), [[1.0, 2.0]], dt=0.1)
    np.testing.assert_allclose(sampled.static_gain, [[2.0, 4.0]], rtol=1e-14)
    assert model([], np.zeros((0, 1)), np.zeros((1, 0)), [[2.0]]).static_gain.tolist() == [[2.0]]


@pytest.mark.parametrize("turned", [False, True])
def test_what_integrates_has_an_infinite_gain_and_what_drifts_unseen_has_none(turned: bool) -> None:
    A = np.diag([-2.0, 0.0])
    B, C = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [1.0, 1.0]])
    turn = linalg.qr(np.random.default_rng(5).normal(size=(2, 2)))[0] if turned else np.eye(2)
    found = model(turn.T @ A @ turn, turn.T @ B, C @ turn).static_gain
    np.testing.assert_allclose(found, [[0.5, 0.5], [0.5, np.inf]], rtol=1e-12)


# Minimal realizations ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_hidden_states_are_counted_and_the_transfer_stays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen, unreached, unseen = rng.normal(size=(3, 3)), rng.normal(size=(2, 2)), -np.eye(1)
    A = linalg.block_diag(seen, unreached, unseen)
    A[:3, 3:5], A[5, :5] = rng.normal(size=(3, 2)), rng.normal(size=5)
    B = np.vstack([rng.normal(size=(3, 2)), np.zeros((2, 2)), rng.normal(size=(1, 2))])
    C = np.hstack([rng.normal(size=(2, 5)), np.zeros((2, 1))])
    turn = rng.normal(size=(6, 6)) * 10.0 ** rng.integers(-4, 4, size=6)
    whole = model(*(np.linalg.solve(turn, A @ turn), np.linalg.solve(turn, B), C @ turn))
    least = whole.minimal()
    assert least.how.endswith("3 of 6 states removed (2 uncontrollable, 1 unobservable)")
    assert least.state_names == ["z1", "z2", "z3"]
    alike(least.poles, np.linalg.eigvals(seen).astype(complex))
    np.testing.assert_allclose(
        least.frequency_response(W), whole.frequency_response(W), rtol=1e-6, atol=1e-9
    )
    assert least.minimal() is least


def test_nothing_is_removed_where_nothing_is_hidden() -> None:
    stiff = chain(4, stiffness=1e8, mass=1e-3)
    assert stiff.minimal() is stiff
    assert loop().minimal().how == "exact derivatives"


@pytest.mark.parametrize("time", [1e-12, 1e6])
@pytest.mark.parametrize("units", [(1.0, 1.0), (1e12, 1e12), (1e-12, 1e12)])
def test_units_of_time_and_signals_hide_nothing(time: float, units: tuple[float, float]) -> None:
    below = np.poly([-1.0, -2.0, -3.0])
    stable = fx.LinearModel.from_scipy(signal.TransferFunction([1.0, 4.0, 5.0], below))
    drifting = fx.LinearModel.from_scipy(signal.TransferFunction([2.0, 6.0, 5.0], [1, 4, 6, 4, 0]))
    for each, gain in ((stable, 5.0 / 6.0), (drifting, np.inf)):
        small = np.hstack([each.B, 1e-11 * np.eye(len(each.A))[:, :1]])
        found = model(each.A * time, small * time / units[0], each.C * units[1])
        assert found.minimal() is found
        assert found.static_gain[0, 0] == pytest.approx(gain * units[1] / units[0], rel=1e-9)
        alike(model(found.A, found.B[:, :1], found.C).zeros / time, each.zeros)


def test_an_input_in_large_units_counts_like_others() -> None:
    apart = model(-np.diag([1.0, 2.0]), np.diag([1e-12, 1.0]), [[1.0, 1.0]])
    assert len(apart.minimal().A) == 2


def test_a_model_whose_transfer_is_a_number_keeps_no_state() -> None:
    found = model([[-1.0]], [[1.0]], [[0.0]], [[3.0]]).minimal()
    assert found.A.shape == (0, 0)
    assert found.static_gain.tolist() == [[3.0]]
    assert found.frequency_response(1.0).tolist() == [[3.0]]
    assert found.poles.size == 0


def test_a_tolerance_is_checked() -> None:
    for tolerance in (0.0, -1.0, 1.0, np.nan, "small"):
        with pytest.raises(ValueRefusedError, match="this tolerance"):
            loop().minimal(tolerance)  # type: ignore[arg-type]


def test_matrices_that_do_not_fit_are_refused() -> None:
    good = loop()
    for bad in ({"B": np.eye(2)}, {"A": np.ones(4)}, {"D": np.zeros((2, 2))}, {"C": 1.0}):
        with pytest.raises(
            ValueRefusedError, match=r"Cannot make a linear model: .*shapes \(n, n\)"
        ):
            dataclasses.replace(good, **bad)
    with pytest.raises(ValueRefusedError, match="finite numbers in A"):
        dataclasses.replace(good, A=np.full(good.A.shape, np.nan))


# SciPy -------------------------------------------------------------------------------------------


@for_each("period", [0.0, -0.1, np.nan, np.inf, "0.1"])
def test_what_is_no_period_is_refused(period: Any) -> None:
    with pytest.raises(ValueRefusedError, match="Cannot make a linear model with this period"):
        dataclasses.replace(model([[0.5]], [[1.0]], [[1.0]]), period=period)


def test_scipy_gets_the_matrices_and_gives_them_back() -> None:
    found = loop()
    same(fx.LinearModel.from_scipy(found.to_scipy()), found)
    sampled = dataclasses.replace(found, period=0.02)
    assert sampled.to_scipy().dt == 0.02
    same(fx.LinearModel.from_scipy(sampled.to_scipy()), sampled)
    static = model([], np.zeros((0, 2)), np.zeros((1, 0)), [[1.0, 2.0]])
    same(fx.LinearModel.from_scipy(static.to_scipy()), static)


@pytest.mark.parametrize(
    ("system", "orders"),
    [
        (signal.TransferFunction([1.0, 2.0], [2.0, 0.4, 4.0]), 2),
        (signal.TransferFunction([[1.0, 2.0], [3.0, 4.0]], [1.0, 5.0]), 2),
        (signal.ZerosPolesGain([-1.0], PAIR, 3.0), 2),
        (signal.TransferFunction([3.0], [2.0]), 0),
    ],
    ids=["ratio", "two outputs", "roots", "number"],
)
def test_every_form_of_scipy_is_taken(system: Any, orders: int) -> None:
    found = fx.LinearModel.from_scipy(system)
    s = 1j * W
    if isinstance(system, signal.ZerosPolesGain):
        above = system.gain * np.polyval(np.poly(system.zeros), s)
        below = np.polyval(np.poly(system.poles), s)
        expected = (above / below)[:, np.newaxis, np.newaxis]
    else:
        rows = [np.polyval(row, s) / np.polyval(system.den, s) for row in np.atleast_2d(system.num)]
        expected = np.transpose(rows)[..., np.newaxis]
    np.testing.assert_allclose(found.frequency_response(W), expected, rtol=1e-12)
    assert len(found.A) == orders


@for_each(
    ("system", "period", "told"),
    [
        (signal.TransferFunction([1.0, 0.0], [2.0]), None, "proper transfer function"),
        (signal.TransferFunction([1.0], [1.0, 0.5], dt=True), None, "Pass period="),
        (
            signal.TransferFunction([1.0], [1.0, 0.5], dt=0.1),
            0.2,
            "the period of the system, 0.1 s",
        ),
        (signal.TransferFunction([1.0], [1.0, 0.5]), 0.2, "continuous time"),
        (signal.TransferFunction([1.0], [1.0, 0.5], dt=True), -1.0, "this period"),
        (signal.ZerosPolesGain([], LONELY, 1.0), None, "conjugate pairs"),
        (signal.StateSpace([[np.nan]], [[1.0]], [[1.0]], [[0.0]]), None, "finite numbers in A"),
        ("system", None, "a linear system of scipy.signal"),
    ],
)
def test_what_is_no_model_is_refused_and_why(system: Any, period: Any, told: str) -> None:
    with pytest.raises(ValueRefusedError, match=told):
        fx.LinearModel.from_scipy(system, period=period)


def test_a_period_that_is_not_known_is_passed() -> None:
    filtered = signal.TransferFunction([0.2], [1.0, -0.8], dt=True)
    assert fx.LinearModel.from_scipy(filtered, period=0.1).period == 0.1


# python-control ----------------------------------------------------------------------------------


def test_python_control_gets_the_matrices_and_names_and_gives_them_back() -> None:
    control = pytest.importorskip("control")
    found = loop()
    system = found.to_control()
    assert isinstance(system, control.StateSpace)
    assert system.dt == 0
    assert system.state_labels == [name.replace(".", ":") for name in found.state_names]
    again = fx.LinearModel.from_control(system)
    same(again, found)
    assert again.state_names == found.state_names
    assert (again.input_names, again.output_names) == (found.input_names, found.output_names)
    np.testing.assert_allclose(
        system(2j), found.frequency_response(2.0).reshape(system(2j).shape), rtol=1e-9
    )


def test_names_with_signs_of_their_own_come_back() -> None:
    pytest.importorskip("control")
    names = ["a.x[10:30 %]", "a:x[10.30 %]", "%3A", "%25", "a..b"]
    found = dataclasses.replace(random_model(np.random.default_rng(0), 2, 1, 5), output_names=names)
    assert fx.LinearModel.from_control(found.to_control()).output_names == names


def test_names_that_python_control_would_lose_are_refused() -> None:
    pytest.importorskip("control")
    found = dataclasses.replace(loop(), input_names=["u", "u"])
    with pytest.raises(ValueRefusedError, match=r"different inputs.*\['u'\]"):
        found.to_control()


def test_loops_can_be_closed_by_name_in_python_control() -> None:
    control = pytest.importorskip("control")
    builder = fx.DiagramBuilder("rig")
    builder.add_all(fx.Constant("force", 0.0), fx.TransferFunction("plant", [2.0], [1.0, 1.0]))
    builder.connect_chain("force", "plant")
    plant = fx.linearize(builder.build(), None, ["plant.u"], ["plant.y"]).to_control()
    gain = control.ss([], [], [], [[3.0]], inputs=["plant:y"], outputs=["back"])
    total = control.summing_junction(["r", "-back"], "plant:u")
    closed = control.interconnect([plant, gain, total], inputs=["r"], outputs=["plant:y"])
    assert fx.LinearModel.from_control(closed).poles == pytest.approx([-7.0])
    assert fx.LinearModel.from_control(closed).output_names == ["plant.y"]


def test_systems_without_states_and_with_samples_go_both_ways() -> None:
    control = pytest.importorskip("control")
    static = model([], np.zeros((0, 2)), np.zeros((1, 0)), [[1.0, 2.0]])
    same(fx.LinearModel.from_control(static.to_control()), static)
    assert fx.LinearModel.from_control(control.tf([2.0], [1.0])).A.shape == (0, 0)
    sampled = dataclasses.replace(loop(), period=0.02)
    assert sampled.to_control().dt == 0.02
    same(fx.LinearModel.from_control(sampled.to_control()), sampled)
    unknown = control.ss(0.5, 1.0, 1.0, 0.0, True)
    with pytest.raises(ValueRefusedError, match="Pass period="):
        fx.LinearModel.from_control(unknown)
    assert fx.LinearModel.from_control(unknown, period=0.1).period == 0.1
    either = control.ss(-0.5, 1.0, 1.0, 0.0, None)
    assert fx.LinearModel.from_control(either).period is None
    assert fx.LinearModel.from_control(either, period=0.1).period == 0.1


def test_transfer_functions_with_several_inputs_are_laid_side_by_side() -> None:
    control = pytest.importorskip("control")
    ratios = [[[1.0], [2.0, 1.0]], [[3.0], [0.0]]], [[[1.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [1.0]]]
    found = fx.LinearModel.from_control(control.tf(*ratios))
    s = 2j
    expected = [[1.0 / (s + 1.0), (2.0 * s + 1.0) / (s + 2.0)], [3.0 / s, 0.0]]
    np.testing.assert_allclose(found.frequency_response(2.0), expected, rtol=1e-13)
    assert len(found.A) == 3
    with pytest.raises(ValueRefusedError, match="proper transfer function"):
        fx.LinearModel.from_control(control.tf([1.0, 0.0, 0.0], [1.0, 1.0]))
    response = control.frd([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ValueRefusedError, match="a state-space system or a transfer function"):
        fx.LinearModel.from_control(response)
    with pytest.raises(ValueRefusedError, match="a linear system of python-control"):
        fx.LinearModel.from_control(signal.TransferFunction([1.0], [1.0, 1.0]))


def test_zeros_gains_and_periods_are_those_of_python_control() -> None:
    control = pytest.importorskip("control")
    found = random_model(np.random.default_rng(2), 5, 2, 2)
    system = found.to_control()
    alike(found.zeros, control.zeros(system))
    np.testing.assert_allclose(found.static_gain, control.dcgain(system), rtol=1e-9)


def test_who_lacks_python_control_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "control", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'flexure\[control\]'"):
        loop().to_control()


def test_neither_package_is_imported_to_recognize_its_objects() -> None:
    code = (
        "import sys, flexure as fx; fx.StateSpace('a', -1.0, 1.0, 1.0);"
        "print({'control', 'scipy.signal'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=110)
    assert shown.stdout.strip() == "set()"


# Blocks ------------------------------------------------------------------------------------------


def test_blocks_take_the_objects_of_scipy() -> None:
    ratio = signal.TransferFunction([1.0, 3.0], [2.0, 0.4, 4.0])
    block, again = fx.TransferFunction("g", ratio), fx.StateSpace("h", ratio)
    for each in (block, again):
        context = each.create_default_context()
        context.set("u", 0.0)
        expected = fx.LinearModel.from_scipy(ratio)
        same(fx.linearize(each, context), expected)
    roots = signal.ZerosPolesGain([], PAIR, 3.0)
    assert fx.TransferFunction("g", roots).denominator.default == pytest.approx([1.0, 4.0, 5.0])
    space = signal.StateSpace([[-1.0]], [[2.0]], [[3.0]], [[4.0]])
    assert fx.StateSpace("h", space, initial=[5.0]).D is not None
    sampled = signal.TransferFunction([0.2], [1.0, -0.8], dt=0.1)
    for kind in (fx.TransferFunction, fx.StateSpace):
        sampler: Any = kind("g", sampled)
        result = fx.simulate(wired(sampler), 0.25)
        assert result.sample("g.y", 0.25)[..., 0] == pytest.approx(0.2 * (1.0 + 0.8 + 0.64))


def wired(block: Any) -> fx.Diagram:
    builder = fx.DiagramBuilder("step")
    builder.add_all(fx.Constant("one", 1.0), block)
    builder.connect_chain("one", block.name)
    return builder.build()


def test_blocks_take_the_objects_of_python_control() -> None:
    control = pytest.importorskip("control")
    block = fx.TransferFunction("g", control.tf([1.0], [1.0, 2.0]))
    assert block.denominator.default.tolist() == [1.0, 2.0]
    space = control.ss([[-1.0, 1.0], [0.0, -2.0]], [[0.0], [1.0]], [[1.0, 0.0]], 0.0)
    assert fx.StateSpace("h", space).A.default.tolist() == [[-1.0, 1.0], [0.0, -2.0]]
    sampled = control.c2d(space, 0.1)
    assert fx.StateSpace("h", sampled).order == 2
    assert fx.StateSpace("back", loop().to_control()).order == len(loop().A)
    with pytest.raises(DeclarationError, match="one input and one output"):
        fx.TransferFunction("g", control.tf([[[1.0], [1.0]]], [[[1.0, 1.0], [1.0, 2.0]]]))
    with pytest.raises(DeclarationError, match="Use a Gain"):
        fx.StateSpace("h", control.ss([], [], [], [[2.0]]))
    with pytest.raises(DeclarationError, match="state-space system or a transfer function"):
        fx.StateSpace("h", control.frd([1.0, 2.0], [1.0, 2.0]))


SPACE = signal.StateSpace([[-1.0]], [[2.0]], [[3.0]], [[4.0]])
RATIO = signal.TransferFunction([1.0], [1.0, 2.0])
SAMPLED = signal.TransferFunction([0.2], [1.0, -0.8], dt=0.1)
UNKNOWN = signal.TransferFunction([0.2], [1.0, -0.8], dt=True)


@for_each(
    ("make", "told"),
    [
        (lambda: fx.TransferFunction("g", SPACE), "'g': expected a transfer function.*StateSpace"),
        (lambda: fx.StateSpace("g", SPACE, [[1.0]]), "the system alone"),
        (lambda: fx.TransferFunction("g", RATIO, [1.0, 2.0]), "the system alone"),
        (lambda: fx.StateSpace("g", SPACE, period=0.1), "continuous time"),
        (lambda: fx.StateSpace("g", SPACE, offset=0.1), "no offset without a sampling period"),
        (lambda: fx.TransferFunction("g", RATIO, period=0.1), "continuous time"),
        (lambda: fx.TransferFunction("g", UNKNOWN), "Pass period="),
        (lambda: fx.TransferFunction("g", SAMPLED, period=0.2), "0.1 s"),
        (lambda: fx.StateSpace("g", [[1.0]]), "matrices A, B and C"),
        (lambda: fx.TransferFunction("g", [1.0]), "numerator and denominator"),
        (lambda: fx.TransferFunction("g", signal.TransferFunction([1, 0], [1.0])), "degree"),
    ],
)
def test_blocks_refuse_what_does_not_fit(make: Any, told: str) -> None:
    with pytest.raises(DeclarationError, match=told):
        make()
