"""Lead-lag and notch: their frequency responses, and rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.linear_systems.filters import LeadLag, NotchFilter
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from tests.support.tiers import for_each

OMEGA = np.geomspace(0.01, 1e4, 41)


def response(block: fx.LeafSystem) -> Any:
    """Return the frequency response of the components of a block to themselves."""
    context = block.create_default_context()
    size = block.input_port("u").size or 0
    context.set("u", np.ones(size))
    found = fx.linearize(block, context).frequency_response(OMEGA)
    off_diagonal = found[:, ~np.eye(size, dtype=bool)]
    assert not off_diagonal.any()
    return np.diagonal(found, axis1=1, axis2=2).T


def test_lead_lag_has_one_zero_and_one_pole() -> None:
    zeros, poles, gains = [3.0, 40.0], [30.0, 0.5], [2.0, -0.7]
    s = 1j * OMEGA
    found = response(LeadLag("filter", zeros, poles, gains))
    for k in range(2):
        expected = gains[k] * (1.0 + s / zeros[k]) / (1.0 + s / poles[k])
        np.testing.assert_allclose(found[k], expected, rtol=1e-12)


def test_lead_turns_most_at_the_geometric_mean() -> None:
    block = LeadLag("lead", 4.0, 25.0)
    context = block.create_default_context()
    context.set("u", 0.0)
    model = fx.linearize(block, context)
    phases = np.angle(model.frequency_response([9.9, 10.0, 10.1])[:, 0, 0])
    assert phases[1] == pytest.approx(np.arcsin(21.0 / 29.0))
    assert phases[1] > max(phases[0], phases[2])


def test_lead_lag_rests_at_the_input_that_it_starts_with() -> None:
    block = LeadLag("filter", 2.0, 5.0, gain=3.0, initial=0.5)
    context = block.create_default_context()
    context.set("u", 0.5)
    assert block.eval_time_derivatives(context).tolist() == [0.0]
    assert context.get("y").tolist() == [1.5]


def test_lead_lag_answers_a_step_as_its_transfer_function_does() -> None:
    builder = fx.DiagramBuilder("bench")
    builder.add_all(fx.Step("step"), LeadLag("filter", 2.0, 5.0, gain=3.0))
    builder.add(fx.TransferFunction("twin", [3.0 / 2.0, 3.0], [1.0 / 5.0, 1.0]))
    builder.connect("step.y", "filter.u")
    builder.connect("step.y", "twin.u")
    result = fx.simulate(builder.build(), 2.0, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result["filter.y"], result["twin.y"], atol=1e-8)
    expected = 3.0 * (1.0 + 1.5 * np.exp(-5.0 * result.time))
    np.testing.assert_allclose(result["filter.y"].ravel(), expected, atol=1e-6)


def test_notch_has_the_transfer_function_of_its_docstring() -> None:
    center, width, depth = [20.0, 300.0], [4.0, 50.0], [1.0, 0.6]
    s = 1j * OMEGA
    found = response(NotchFilter("notch", center, width, depth))
    for k in range(2):
        w, b, d = center[k], width[k], depth[k]
        expected = (s**2 + (1.0 - d) * b * s + w**2) / (s**2 + b * s + w**2)
        np.testing.assert_allclose(found[k], expected, rtol=1e-10, atol=1e-12)


def test_depth_and_width_of_a_notch_are_what_they_are_called() -> None:
    w, b = 20.0, 6.0
    # The two solutions of |w² - ω²| = b ω, whose difference is b.
    edges = np.sqrt(w**2 + b**2 / 4.0) + np.array([-0.5, 0.5]) * b
    for depth in (1.0, 0.25, 0.0):
        block = NotchFilter("notch", w, b, depth)
        context = block.create_default_context()
        context.set("u", 0.0)
        model = fx.linearize(block, context)
        gain = abs(model.frequency_response([0.0, w, 1e6, *edges])[:, 0, 0])
        np.testing.assert_allclose(gain[:3], [1.0, 1.0 - depth, 1.0], atol=1e-9)
        np.testing.assert_allclose(gain[3:] ** 2, (1.0 + (1.0 - depth) ** 2) / 2.0)


def test_notch_takes_a_resonance_out_of_what_passes() -> None:
    builder = fx.DiagramBuilder("bench")
    builder.add_all(
        fx.Sine("hum", amplitude=[1.0, 1.0], frequency=[20.0, 2.0]),
        NotchFilter("notch", 20.0, 10.0, size=2),
    )
    builder.connect_chain("hum", "notch")
    result = fx.simulate(builder.build(), 6.0, rtol=1e-8, atol=1e-10)
    settled = result.time > 3.0
    peaks = np.max(np.abs(result["notch.y"][settled]), axis=0)
    assert peaks[0] < 1e-5
    assert peaks[1] == pytest.approx(1.0, abs=0.01)


@for_each(
    "make",
    [
        lambda: LeadLag("filter", 0.0, 1.0),
        lambda: LeadLag("filter", 1.0, -1.0),
        lambda: LeadLag("filter", 1.0, 1.0, gain=np.inf),
        lambda: NotchFilter("notch", 0.0, 1.0),
        lambda: NotchFilter("notch", 1.0, 0.0),
        lambda: NotchFilter("notch", 1.0, 1.0, depth=1.1),
        lambda: NotchFilter("notch", 1.0, 1.0, depth=-0.1),
    ],
)
def test_numbers_without_meaning_are_refused(make: Any) -> None:
    with pytest.raises(ValueRefusedError):
        make()


def test_sizes_that_differ_are_refused() -> None:
    with pytest.raises(DeclarationError, match=r"zero of shape \(2,\), pole of shape \(3,\)"):
        LeadLag("filter", [1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(DeclarationError, match=r"center of shape \(2,\), size of shape \(3,\)"):
        NotchFilter("notch", [1.0, 2.0], 1.0, size=3)
