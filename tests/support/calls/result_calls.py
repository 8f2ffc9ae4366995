"""A working call of pages, and of every method of a result and of what it is turned into."""

from __future__ import annotations

from functools import cache
from typing import Any

import flexure as fx
from tests.support.calls.live_calls import live_calls
from tests.support.calls.odd_arguments import Call
from tests.support.calls.public_calls import BOX, Make, lag, method, of_lag, whole


@cache
def result() -> tuple[Any, Any]:
    system, context = lag()
    return fx.simulate(system, 0.01, context=context, method="RK45", compiled=False), lambda: None


@cache
def a_page() -> tuple[Any, Any]:
    return fx.page(lag()[0], 1.0), lambda: None


def reported() -> Call:
    """A report of a system with the values of a context."""
    system, context = lag()
    known = {"signals": ["lag.y"], "title": "lag", "path": None}
    arguments = {"subject": system, "context": context, "question": "Why?", **known}
    return Call(fx.report, arguments, context.to_dict)


@cache
def spectrum() -> tuple[Any, Any]:
    return result()[0].spectrum("lag.y", num_samples=64), lambda: None


@cache
def ledger_result() -> tuple[Any, Any]:
    builder = fx.PlantBuilder("lift")
    cabin = builder.add_body("cabin", BOX)
    builder.add_joint(fx.PrismaticJoint("rail", builder.world, cabin, (0.0, 0.0, 1.0)))
    builder.add_energy_ledger()
    return fx.simulate(builder.build(), 0.01, method="RK45", compiled=False), lambda: None


@cache
def response() -> tuple[Any, Any]:
    return result()[0].step_response("lag.y", at=0.0, target=1.0), lambda: None


@cache
def pushed() -> tuple[Any, Any]:
    return result()[0].disturbance_response("lag.y", at=0.0, target=1.0), lambda: None


def result_calls() -> dict[str, Make]:
    """The calls by their names."""
    return live_calls() | {
        "page": of_lag(
            fx.page,
            t_final=1.0,
            parameters=["lag.time_constant"],
            signals=["lag.y"],
            goals=["last of lag.y < 2"],
            title="lag",
            rtol=1e-6,
            atol=1e-9,
            max_step=0.5,
            num_samples=50,
            path=None,
        ),
        "inspect_block": whole(
            fx.inspect_block,
            system=fx.Saturation("limits", -1.0, 1.0),
            measured=([0.0, 1.0], [0.0, 1.0]),
            ranges={"u": (-2.0, 2.0)},
            title="limits",
        ),
        "report": reported,
        "SimulationResult.sample": method(result, "sample", signal="lag.y", times=[0.0]),
        "SimulationResult.sample_all": method(result, "sample_all", signals=["lag.y"], times=[0.0]),
        "SimulationResult.context_at": method(result, "context_at", time=0.005),
        "SimulationResult.page": method(
            result, "page", path="run.html", parameters=["lag.gain"], signals=["lag.y"], title="lag"
        ),
        "Page.save": method(a_page, "save", path="lag.html"),
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
            num_samples=64,
        ),
        "SimulationResult.unit_of": method(result, "unit_of", signal="lag.y"),
        "Spectrum.plot": method(spectrum, "plot", ax=None, path="spectrum.png"),
        "SimulationResult.step_info": method(
            result, "step_info", signal="lag.y", at=0.0, target=1.0, band=0.02
        ),
        "SimulationResult.step_response": method(
            result, "step_response", signal="lag.y", at=0.0, target=1.0, band=0.02
        ),
        "SimulationResult.to_csv": method(result, "to_csv", path="run.csv", signals=["lag.y"]),
        "SimulationResult.to_mat": method(
            result, "to_mat", path="run.mat", signals=["lag.y"], form="modelica"
        ),
        "SimulationResult.to_arrow": method(result, "to_arrow", signals=["lag.y"]),
        "SimulationResult.to_parquet": method(
            result, "to_parquet", path="run.parquet", signals=["lag.y"]
        ),
        "SimulationResult.save": method(result, "save", path="run.npz", signals=["lag.y"]),
        "SimulationResult.to_dict": method(result, "to_dict", signals=["lag.y"], times=[0.0]),
        "SimulationResult.to_npz": method(result, "to_npz", path="run.npz", signals=["lag.y"]),
        "SimulationResult.__getitem__": lambda: Call(result()[0].__getitem__, {}, lambda: None),
        "DisturbanceResponse.plot": method(pushed, "plot", ax=None, path="pushed.png"),
        "SimulationResult.disturbance_info": method(
            result,
            "disturbance_info",
            signal="lag.y",
            at=0.0,
            target=0.0,
            band=0.05,
            tolerance=0.1,
            control="lag.y",
        ),
        "StepResponse.plot": method(response, "plot", ax=None, path="step.png"),
    }
