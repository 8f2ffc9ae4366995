"""What a report says of an experiment is true of it, and not of something beside it."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pytest

import flexure as fx

pytest.importorskip("matplotlib")


def servo(*, ledger: bool = True) -> fx.Diagram:
    plant = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    panel = plant.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(0, 0, 1)))
    plant.add_force_element(fx.JointSpring("spring", axis, stiffness=8.0, damping=1.0))
    plant.add_actuator("motor", axis)
    if ledger:
        plant.add_energy_ledger()
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        plant.build(),
        fx.Step("target", at=0.5, to=1.0),
        fx.PIDController("pid", kp=20.0, ki=10.0),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("door.axis.angle", "pid.measurement")
    builder.connect("pid.u", "door.motor")
    return builder.build()


def section(page: fx.results.Page, title: str) -> str:
    """Return the HTML of a section."""
    found = re.search(rf"<h2[^>]*>{title}</h2>(.*?)(?=<h2|</main>)", page.html, re.DOTALL)
    assert found, title
    return str(found[1])


def poles(page: fx.results.Page) -> list[complex]:
    """Return the poles that a report shows."""
    rows = re.findall(r"<tr[^>]*><th[^>]*>([^<]*)</th>", section(page, "Linear model"))
    return [complex(html.unescape(row)) for row in rows if not row.startswith("pole")]


@pytest.mark.full
def test_poles_are_those_of_the_motion_and_not_of_what_a_ledger_adds_up() -> None:
    page = fx.report(fx.simulate(servo(), 1.0))
    # 0.5 q'' = -8 q - q' + 20 (r - q) + z, z' = 10 (r - q), for 2 kg at 0.5 m
    expected = np.sort_complex(np.roots([0.5, 1.0, 28.0, 10.0]))
    np.testing.assert_allclose(np.sort_complex(np.array(poles(page))), expected, rtol=1e-4)
    assert "not stable" not in section(page, "Linear model")
    assert poles(fx.report(fx.simulate(servo(ledger=False), 1.0))) == poles(page)


@pytest.mark.full
def test_what_somebody_does_to_the_context_of_a_result_changes_no_report() -> None:
    result = fx.simulate(servo(), 1.0)
    before = poles(fx.report(result))
    result.context.set("pid.kp", 500.0)
    assert poles(fx.report(result)) == before


def test_the_values_of_a_sweep_are_those_that_its_runs_have_in_common() -> None:
    lag = fx.FirstOrderLag("lag", time_constant=0.5)
    context = lag.create_default_context()
    context.set("gain", 7.0)
    sweep = fx.sweep(lag, {"u": [1.0, 2.0]}, 1.0, context=context, signals=["y"])
    text = section(fx.report(sweep), "Values other than the defaults")
    assert re.search(r">gain</th><td[^>]*>7</td><td[^>]*>1</td>", text)


def test_a_study_without_its_model_still_tells_what_was_asked(tmp_path: Path) -> None:
    lag = fx.FirstOrderLag("lag", time_constant=0.5)
    file = tmp_path / "lag.study"
    fx.sweep(lag, {"u": [1.0, 2.0]}, 1.0, signals=["y"], store=file)
    page = fx.report(fx.load_study(file), question="How far?")
    asked = section(page, "What was asked")
    assert "How far?" in asked
    assert "could not be made" not in asked


def test_reports_leave_no_figures_behind() -> None:
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    fx.report(fx.simulate(servo(), 1.0))
    assert plt.get_fignums() == before


def test_a_sweep_without_runs_has_a_report_without_outcomes() -> None:
    lag, none = fx.FirstOrderLag("lag", 1.0), fx.plans.grid({"u": [1.0]})[:0]
    page = fx.report(fx.sweep(lag, none, 1.0, metrics=fx.metrics.final("y")))
    assert "0, until 1 s<" in page.html
