"""Reduced models stay within their error bounds, and are those of closed forms and of SLICOT."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import linalg, signal

import flexure as fx
from flexure.diagrams.checks.errors import FlexureError, ValueRefusedError
from tests.support.tiers import by_tier, for_each


def model_of(*parts: Any, period: float | None = None) -> fx.LinearModel:
    options = {} if period is None else {"dt": period}
    return fx.LinearModel.from_scipy(signal.StateSpace(*parts, **options))


def random_model(seed: int, period: float | None = None, *, stable: bool = False) -> fx.LinearModel:
    """A random model, some of whose modes grow."""
    rng = np.random.default_rng(seed)
    n, m, p = int(rng.integers(1, 11)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    A = rng.normal(size=(n, n))
    poles = np.linalg.eigvals(A)
    if stable and period is None:
        A -= (poles.real.max() + 0.1) * np.eye(n)
    elif stable or period is not None:
        A *= 0.9 / np.abs(poles).max() if stable else 0.5
    parts = A, rng.normal(size=(n, m)), rng.normal(size=(p, n)), rng.normal(size=(p, m))
    return model_of(*parts, period=period)


def gains(model: fx.LinearModel, other: fx.LinearModel) -> float:
    top = 1e3 if model.period is None else np.pi / model.period
    places = np.geomspace(1e-3, top, 300)
    away = model.frequency_response(places) - other.frequency_response(places)
    return float(np.linalg.norm(away, 2, axis=(1, 2)).max())


@for_each("seed", range(by_tier(fast=8, full=50)))
def test_every_order_stays_within_its_bound_whatever_grows(seed: int) -> None:
    period, method = (None, 0.1)[seed % 2], ("balanced", "modal")[seed // 2 % 2]
    model, exact = random_model(seed, period), seed % 8 > 3
    options: Any = {"method": method, "keep_static_gain": exact}
    whole = fx.model_reduction(model, tolerance=0.0, **options)
    assert len(whole.model.A) == whole.orders[-1]
    growing = np.sum(~(model.poles.real < 0.0 if period is None else np.abs(model.poles) < 1.0))
    assert whole.orders[0] == growing
    assert np.all(np.diff(whole.error_bounds) <= 0.0)
    for order, bound in zip(whole.orders, whole.error_bounds, strict=True):
        found = fx.model_reduction(model, int(order), **options)
        assert len(found.model.A) == order
        assert found.error_bound == bound
        assert found.error <= bound * (1.0 + 1e-6) + 1e-9
        assert gains(model, found.model) <= found.error * (1.0 + 1e-6) + 1e-7
        if exact:
            size = 1.0 + np.abs(model.static_gain).max()
            np.testing.assert_allclose(found.difference.static_gain, 0.0, atol=1e-8 * size)
        if method == "modal":
            near = np.abs(np.subtract.outer(found.model.poles, model.poles)).min(axis=1, initial=9)
            assert near.max(initial=0.0) < 1e-6
        # A hundredth more than the bound, and its order is enough; a hundredth less is not.
        if bound > 1e-6 and order == whole.orders[len(whole.orders) // 2]:
            some = fx.model_reduction(model, tolerance=1.01 * bound, **options)
            fewer = fx.model_reduction(model, tolerance=0.99 * bound, **options)
            assert len(some.model.A) <= order < len(fewer.model.A)


def test_hankel_values_and_the_error_of_one_state_less_are_those_of_closed_forms() -> None:
    """Of 1/((s + 1)(s + 10)), by the cross Gramian, whose eigenvalues are ±σ."""
    model = fx.LinearModel.from_scipy(signal.TransferFunction([1.0], [1.0, 11.0, 10.0]))
    cross = linalg.solve_sylvester(model.A, model.A, -model.B @ model.C)
    values = np.sort(np.abs(np.linalg.eigvals(cross)))[::-1]
    for exact in (False, True):
        found = fx.model_reduction(model, 1, keep_static_gain=exact)
        np.testing.assert_allclose(found.values, values, rtol=1e-10)
        assert found.error_bound == pytest.approx(2.0 * values[1], rel=1e-9)
        # Where all dynamics of a symmetric model with one input are left out, the bound is exact.
        assert found.error == pytest.approx(found.error_bound, rel=1e-6)


@for_each("seed", range(by_tier(fast=10, full=50)))
def test_slicot_finds_the_same_hankel_values_and_models(seed: int) -> None:
    slycot = pytest.importorskip("slycot", reason="slycot, which reduces, is missing")
    control = pytest.importorskip("control")
    model = random_model(seed, stable=True)
    (p, m), n = model.D.shape, len(model.A)
    copies = [each.copy() for each in (model.A, model.B, model.C)]
    *_, values = slycot.ab09ad("C", "B", "N", n, m, p, *copies, nr=max(n // 2, 1), tol=0.0)
    found = fx.model_reduction(model, tolerance=0.0)
    np.testing.assert_allclose(found.values, values, atol=1e-7 * values[0])
    system = control.ss(model.A, model.B, model.C, model.D)
    for order in found.orders[1:-1]:
        for method, exact in (("truncate", False), ("matchdc", True)):
            theirs = fx.LinearModel.from_control(control.balred(system, int(order), method=method))
            ours = fx.model_reduction(model, int(order), keep_static_gain=exact).model
            places = np.array([0.0, 0.1, 1.0, 10.0])
            pairs: Any = [each.frequency_response(places) for each in (ours, theirs)]
            np.testing.assert_allclose(pairs[0], pairs[1], atol=1e-5 * values[0], rtol=1e-5)


def test_flexible_modes_beside_integrators_are_reduced_and_the_integrators_stay() -> None:
    builder = fx.DiagramBuilder("stage")
    builder.add_all(fx.TransferFunction("body", [1.0], [2.0, 0.0, 0.0]), fx.Sum("sum", "++++"))
    for k, (frequency, damping) in enumerate([(10.0, 0.01), (60.0, 0.005), (900.0, 0.01)], start=2):
        below = [1.0, 2.0 * damping * frequency, frequency**2]
        builder.add(fx.TransferFunction(f"mode{k}", [0.5], below))
        builder.connect(f"mode{k}.y", f"sum.u{k}")
    builder.connect("body.y", "sum.u1")
    builder.export_input(*(f"{name}.u" for name in ("body", "mode2", "mode3", "mode4")), name="u")
    builder.export_output("sum.y", "y")
    system = builder.build()
    context = system.create_default_context()
    context.set("u", 0.0)
    model = fx.linearize(system, context)
    modal = fx.model_reduction(model, 6, method="modal", keep_static_gain=True)
    assert modal.orders.tolist() == [2, 4, 6, 8]
    assert sorted(np.abs(modal.model.poles).round(7)) == [0.0, 0.0, 10.0, 10.0, 60.0, 60.0]
    # The peak of a mode beside its static gain.
    peak = modal.values[2] * 900.0**2
    assert peak == pytest.approx(0.25 / 0.01 / math.sqrt(1.0 - 0.01**2), rel=1e-6)
    slow = modal.model.frequency_response(5.0)
    np.testing.assert_allclose(slow, model.frequency_response(5.0), rtol=1e-4)
    balanced = fx.model_reduction(model, 4)
    assert np.abs(balanced.model.poles)[:2].max() < 1e-6
    assert balanced.error <= balanced.error_bound
    block = balanced.model.to_state_space("reduced")
    assert block.order == 4


def test_poles_of_one_place_stay_together_and_equal_values_too() -> None:
    same = fx.LinearModel.from_scipy(signal.TransferFunction([1.0], np.poly([-1.0, -1.0, -1.0])))
    assert fx.model_reduction(same, 0, method="modal").orders.tolist() == [0, 3]
    # Two like channels have each value twice, counted once.
    twin = model_of(*(linalg.block_diag(each, each) for each in (same.A, same.B, same.C)))
    one, two = (fx.model_reduction(each, tolerance=0.0) for each in (same, twin))
    np.testing.assert_allclose(two.values[::2], one.values, rtol=1e-9)
    np.testing.assert_allclose(two.error_bounds, one.error_bounds, rtol=1e-6)
    assert two.orders.tolist() == [0, 2, 4, 6]
    for order in (1, 3, 5, 7):
        with pytest.raises(ValueRefusedError, match=r"an order among 0, 2, 4, 6: .*equal values"):
            fx.model_reduction(twin, order)
    assert fx.model_reduction(twin, 2).model.is_stable


def test_static_models_and_models_that_only_grow_have_nothing_to_remove() -> None:
    static = fx.model_reduction(model_of(np.zeros((0, 0)), np.zeros((0, 1)), [[]], [[2.0]]), 0)
    assert (static.error_bound, static.error, static.model.D.item()) == (0.0, 0.0, 2.0)
    growing = fx.model_reduction(model_of([[1.0]], [[1.0]], [[1.0]], [[0.0]]), 1, method="modal")
    assert growing.orders.tolist() == [1]
    assert "order        1" in str(growing)
    with pytest.raises(ValueRefusedError, match="not below the 1 modes that do not decay"):
        fx.model_reduction(model_of(np.diag([1.0, -1.0]), [[1.0], [1.0]], [[1.0, 1.0]], [[0.0]]), 0)


def test_an_error_without_states_is_zero_and_nothing_complains(capfd: Any) -> None:
    found = fx.model_reduction(random_model(1, stable=True), tolerance=0.0)
    assert found.error == 0.0
    assert "".join(capfd.readouterr()) == ""


def test_arguments_that_are_none_are_refused() -> None:
    model = random_model(3)
    calls: list[Any] = [
        lambda: fx.model_reduction(model),
        lambda: fx.model_reduction(model, 1, tolerance=0.1),
        lambda: fx.model_reduction(model, 1.5),  # type: ignore[arg-type]
        lambda: fx.model_reduction(model, -1),
        lambda: fx.model_reduction(model, 10_000),
        lambda: fx.model_reduction(model, tolerance=math.nan),
        lambda: fx.model_reduction(model, tolerance=-1.0),
        lambda: fx.model_reduction(model, 1, method="hankel"),  # type: ignore[arg-type]
        lambda: fx.model_reduction(model, 1, keep_static_gain=2),  # type: ignore[arg-type]
        lambda: fx.model_reduction(fx.Integrator("x"), 1),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(FlexureError, match="Cannot reduce a model"):
            call()
