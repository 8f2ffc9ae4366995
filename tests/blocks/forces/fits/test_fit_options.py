"""What fits of laws share with `fit`: options, reports, figures and ways into a context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure import fitting
from tests.support.tiers import for_each

TIME = np.linspace(0.0, 3.0, 60)
START = {"height": 1.0, "rate": 1.0}


def decay(height: float, rate: float) -> Any:
    return height * np.exp(-rate * TIME)


def noisy(seed: int = 0) -> Any:
    return decay(2.0, 1.5) + 0.02 * np.random.default_rng(seed).standard_normal(TIME.size)


def of_system(measured: Any, **options: Any) -> fx.results.Fit:
    """The same decay as the motion of a block, whose rate is its initial state."""

    class Decay(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("decay")
            self.rate = self.declare_numeric_parameter("rate", 1.0)
            self.height = self.declare_numeric_parameter("height", 1.0)
            self.x = self.declare_continuous_state(z=1, default=[1.0])
            self.y = self.declare_vector_output("y", 1, self.calc)

        def calc_time_derivatives(self, context: Any) -> Any:
            return -self.rate(context) * self.x.z(context)

        def calc(self, context: Any) -> Any:
            return self.height(context) * self.x.z(context)

    return fx.fit(Decay(), {"time": TIME, "y": measured}, ["height", "rate"], **options)


@pytest.mark.full
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"deviations": 0.02},
        {"deviations": 0.02, "loss": "huber"},
        {"deviations": 0.01, "loss": "cauchy"},
        {"logarithmic": ["rate"]},
        {"bounds": {"rate": (0.5, 1.2)}},
    ],
)
def test_a_law_and_a_system_are_fitted_alike(options: dict[str, Any]) -> None:
    measured = noisy()
    law, system = (
        fitting.fit_constants(decay, measured, START, **options),
        of_system(measured, **options),
    )
    assert isinstance(system, fitting.FitReport)
    assert law.constants == pytest.approx(system.constants, rel=1e-4)
    np.testing.assert_allclose(law.covariance, system.covariance, rtol=2e-3)
    for name in ("known_deviations", "logarithmic", "at_bound", "fitted"):
        assert getattr(law, name) == getattr(system, name), name
    for name in ("cost", "condition"):
        assert getattr(law, name) == pytest.approx(getattr(system, name), rel=1e-3), name
    assert law.deviations["measured"] == pytest.approx(system.deviations["y"], rel=1e-4)
    for one, other in zip(
        law.confidence_intervals().values(), system.confidence_intervals().values(), strict=True
    ):
        assert one == pytest.approx(other, rel=1e-3)
    assert str(law).splitlines()[1].split() == str(system).splitlines()[1].split()


def test_a_fit_does_not_depend_on_the_unit_of_what_was_measured() -> None:
    """A gradient below an absolute tolerance would end the search early where numbers are small."""
    whole = fitting.fit_constants(decay, noisy(), START)
    small = fitting.fit_constants(decay, 1e-9 * noisy(), {"height": 1e-9, "rate": 1.0})
    assert small["rate"] == pytest.approx(whole["rate"], rel=1e-7)
    assert small.standard_errors["rate"] == pytest.approx(whole.standard_errors["rate"], rel=1e-5)


@pytest.mark.full
def test_200_fits_hold_the_truth_as_often_as_they_say() -> None:
    fits = [fitting.fit_constants(decay, noisy(seed), START) for seed in range(200)]
    for name, truth in (("height", 2.0), ("rate", 1.5)):
        intervals = [fit.confidence_intervals(0.95)[name] for fit in fits]
        inside = sum(low <= truth <= high for low, high in intervals)
        assert abs(inside - 190) <= 3.0 * np.sqrt(200 * 0.95 * 0.05)


def test_outliers_move_a_robust_fit_of_a_law_less() -> None:
    measured = noisy()
    measured[::10] += 1.0
    plain, robust = (
        fitting.fit_constants(decay, measured, START, deviations=0.02, loss=loss)
        for loss in ("linear", "cauchy")
    )
    assert abs(robust["height"] - 2.0) < 0.2 * abs(plain["height"] - 2.0)


def shaken(noise: float = 0.1) -> Any:
    x, rate, error = np.random.default_rng(3).standard_normal((3, 40, 3))
    return x, rate, -(50.0 * x + 4.0 * rate) + noise * error


def test_options_of_a_bushing_choose_bound_and_weight_its_constants() -> None:
    x, rate, force = shaken()
    known = fx.BushingConstants(force_damping=4.0, force_stiffness=30.0)
    _, plain = fitting.fit_bushing(translation=(x, rate, force))
    found, reports = fitting.fit_bushing(
        translation=(x, rate, force),
        base=known,
        fitted=["force_stiffness[0]", "force_stiffness[1]"],
        bounds={"force_stiffness[1]": (20.0, 40.0)},
        deviations={"x": 0.1, "y": 0.2},
    )
    assert list(reports) == ["x", "y"]
    assert (found.force_damping, found.force_stiffness[2]) == (known.force_damping, 30.0)
    rest = force[:, 0] + 4.0 * rate[:, 0]
    assert found.force_stiffness[0] == pytest.approx(-(x[:, 0] @ rest) / (x[:, 0] @ x[:, 0]))
    error = 0.1 / np.linalg.norm(x[:, 0])
    assert reports["x"].standard_errors["force_stiffness[0]"] == pytest.approx(error)
    assert (found.force_stiffness[1], reports["y"].at_bound) == (40.0, ("force_stiffness[1]",))
    force[:3, 0] += 100.0
    options: dict[str, Any] = {"deviations": 0.1, "loss": "soft_l1", "base": known}
    robust, _ = fitting.fit_bushing(
        translation=(x, rate, force), logarithmic=["force_stiffness[0]"], **options
    )
    assert robust.force_stiffness[0] == pytest.approx(plain["x"]["force_stiffness[0]"], rel=0.01)


def door() -> tuple[fx.System, fx.Context]:
    builder = fx.PlantBuilder("door")
    panel = builder.add_body("panel", fx.SpatialInertia.solid_box(9.0, size=(0.02, 0.6, 0.7)))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(1, 0, 0)))
    builder.add_force_element(fx.DoorHinge("hinge", axis))
    builder.add_force_element(
        fx.LinearBushing.from_constants(
            "mount", builder.world, panel, fx.BushingConstants(force_stiffness=1.0)
        )
    )
    plant = builder.build()
    return plant, plant.create_default_context()


def test_reports_of_laws_are_applied_to_elements_and_a_refused_one_changes_nothing() -> None:
    _, context = door()
    q = np.linspace(0.0, 1.0, 50)
    torque = -2.5 * (q + 1.5)
    rest = fx.DoorHingeConfig(dynamic_friction_torque=0.0, viscous_friction=0.0, catch_torque=0.0)
    _, report = fitting.fit_hinge(q, 0.0 * q, torque, rest, fitted=["spring_constant"])
    report.apply(context["hinge"])
    assert context.get("hinge.spring_constant") == report["spring_constant"]
    _, reports = fitting.fit_bushing(translation=shaken())
    reports["y"].apply(context["mount"])
    assert context.get("mount.force_stiffness")[1] == reports["y"]["force_stiffness[1]"]
    assert context.get("mount.force_damping")[1] == reports["y"]["force_damping[1]"]
    before = context.clone()
    negative = fitting.fit_constants(
        lambda spring_constant, viscous_friction: spring_constant * q - viscous_friction,
        q + 2.0,
        {"spring_constant": 2.0, "viscous_friction": -1.0},
    )
    with pytest.raises(fx.errors.FlexureError, match="viscous_friction"):
        negative.apply(context["hinge"])
    with pytest.raises(fx.errors.UnknownNameError, match="spring_constant"):
        negative.apply(context["mount"])
    assert context == before


def test_the_report_of_a_law_is_plotted_with_its_residuals(tmp_path: Path) -> None:
    _, reports = fitting.fit_bushing(translation=shaken())
    figure = reports["z"].plot(tmp_path / "z.png")
    assert [axes.get_ylabel() for axes in figure.axes] == ["z [N]", "residual [N]"]
    drawn = np.asarray(figure.axes[1].lines[0].get_ydata(), dtype=float)
    np.testing.assert_allclose(drawn, reports["z"].residuals)


@for_each(
    ("options", "kind", "text"),
    [
        ({"loss": "huber"}, fx.errors.ValueRefusedError, "deviations, which define what"),
        ({"loss": "square"}, fx.errors.ValueRefusedError, "'soft_l1', 'huber'"),
        ({"deviations": -1.0}, fx.errors.ValueRefusedError, "deviations"),
        ({"deviations": {"y": 1.0}}, fx.errors.UnknownNameError, "'measured'"),
        ({"logarithmic": ["speed"]}, fx.errors.UnknownNameError, "'speed'"),
        ({"fitted": ["rate"], "logarithmic": "height"}, fx.errors.UnknownNameError, "'height'"),
        ({"bounds": {"rate": (3.0, 2.0)}}, fx.errors.ValueRefusedError, "lower bounds below"),
        ({"max_evaluations": 0}, fx.errors.ValueRefusedError, "an integer >= 1"),
        ({"max_evaluations": 1}, fx.errors.EvaluationError, "raise max_evaluations"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        fitting.fit_constants(decay, noisy(), START, **options)
