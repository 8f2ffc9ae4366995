"""A diagram cut in two, one half as an FMU of our own: it gives the run of the whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.tiers import by_tier

TIGHT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}
TIMES = np.linspace(0.0, 2.0, 101)


def plant() -> fx.Diagram:
    """A motor with limits, an arm, and a switch with hysteresis."""
    builder = fx.DiagramBuilder("plant")
    builder.add_all(
        fx.Saturation("limit", lower=-2.0, upper=2.0),
        fx.FirstOrderLag("motor", time_constant=0.05),
        fx.TransferFunction("arm", [9.0], [1.0, 1.5, 9.0]),
        fx.Relay("stop", 0.9, 0.5, on_value=0.3),
        fx.Sum("sum", "+-"),
    )
    builder.connect_chain("limit", "motor", "sum.u1")
    builder.connect_chain("sum", "arm", "stop", "sum.u2")
    builder.export_input("limit.u", name="u")
    builder.export_output("arm.y", name="y")
    return builder.build()


def servo(block: fx.System) -> fx.Diagram:
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Step("target", at=0.2), fx.PIDController("pid", kp=4.0, ki=4.0, kd=0.8), block
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("pid.u", block.input_ports[0])
    builder.connect(block.output_ports[0], "pid.measurement")
    return builder.build()


@pytest.fixture(scope="module", params=by_tier(fast=["3.0"], full=["2.0", "3.0"]))
def unit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("fmpy")
    if not any(map(shutil.which, ("gcc", "cc", "clang"))):
        pytest.skip("there is no C compiler")
    path = tmp_path_factory.mktemp("cut") / "plant.fmu"
    fx.to_fmu(plant(), version=request.param).save(path)
    return path


def test_model_exchange_gives_the_run_of_the_whole(unit: Path) -> None:
    whole = fx.simulate(servo(plant()), 2.0, **TIGHT)
    cut = fx.simulate(servo(fx.FMUBlock("plant", unit, kind="me")), 2.0, **TIGHT)
    expected = whole.sample("plant.arm.y", TIMES)
    assert np.ptp(expected) > 0.5
    np.testing.assert_allclose(cut.sample("plant.y", TIMES), expected, rtol=1e-7, atol=1e-9)


def test_linear_models_have_the_exact_derivatives_of_the_unit(unit: Path) -> None:
    places: Any = {"inputs": ["target.to", "plant.u"], "outputs": ["pid.u"]}
    whole = fx.linearize(servo(plant()), **places)
    cut = fx.linearize(servo(fx.FMUBlock("plant", unit, kind="me")), **places)
    assert cut.how == "exact derivatives, own ones of 'plant'"
    for s in (0.0, 3.0, 40.0):
        np.testing.assert_allclose(
            cut.frequency_response(s), whole.frequency_response(s), rtol=1e-12, atol=1e-13
        )


def test_co_simulation_approaches_the_whole_with_its_period(unit: Path) -> None:
    expected = fx.simulate(servo(plant()), 1.0, **TIGHT).sample("plant.arm.y", TIMES[:51])
    errors = []
    for period in (0.01, 0.005):
        block = fx.FMUBlock("plant", unit, kind="cs", period=period)
        found = fx.simulate(servo(block), 1.0).sample("plant.y", TIMES[:51])
        errors.append(np.max(np.abs(found - expected)))
    assert errors[1] < 0.6 * errors[0] < 0.3
