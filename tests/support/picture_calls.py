"""A working call of every picture of results."""

from __future__ import annotations

from typing import Any

import flexure as fx
from tests.support.odd_arguments import Call
from tests.support.public_calls import BOX, Make, lag, method


def result() -> tuple[Any, Any]:
    system, context = lag()
    return fx.simulate(system, 0.01, context, method="RK45", compiled=False), lambda: None


def response() -> tuple[Any, Any]:
    return result()[0].step_response("lag.y", at=0.0, target=1.0), lambda: None


def compared() -> Call:
    run, state = result()
    options: dict[str, Any] = {"units": {}, "title": "runs", "ax": None, "path": "runs.png"}
    return Call(fx.compare, {"runs": {"a": run, "b": run}, **options}, state)


def spectrum() -> tuple[Any, Any]:
    return result()[0].spectrum("lag.y", samples=64), lambda: None


def ledger_result() -> tuple[Any, Any]:
    builder = fx.PlantBuilder("lift")
    cabin = builder.add_body("cabin", BOX)
    builder.add_joint(fx.PrismaticJoint("rail", builder.world, cabin, (0.0, 0.0, 1.0)))
    builder.add_energy_ledger()
    return fx.simulate(builder.build(), 0.01, method="RK45", compiled=False), lambda: None


def picture_calls() -> dict[str, Make]:
    """What draws results, and what they return to be drawn."""
    return {
        "compare": compared,
        "StepResponse.plot": method(response, "plot", ax=None, path="step.png"),
        "SimulationResult.plot": method(
            result, "plot", units={"rad": "deg"}, title="run", ax=None, path=None
        ),
        "SimulationResult.plot_phase": method(
            result, "plot_phase", x="lag.y", y="lag.y", units={}, title="run", ax=None, path="p.png"
        ),
        "SimulationResult.plot_energy": method(
            ledger_result, "plot_energy", ledger=None, units={}, title="run", ax=None, path="e.png"
        ),
        "SimulationResult.spectrum": method(
            result,
            "spectrum",
            signal="lag.y",
            kind="psd",
            window="hamming",
            start=0.001,
            samples=64,
        ),
        "SimulationResult.unit_of": method(result, "unit_of", signal="lag.y"),
        "Spectrum.plot": method(spectrum, "plot", ax=None, path="spectrum.png"),
    }
