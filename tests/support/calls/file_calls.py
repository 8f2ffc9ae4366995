"""A working call of everything that reads plans, studies, results and models from files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flexure as fx
from tests.support.calls.odd_arguments import Call
from tests.support.calls.public_calls import lag, plant, whole

MODEL = "<model name='m'><link name='a'/></model>"


def saved_plan() -> Call:
    """A plan in a file."""
    fx.plans.grid({"pid.kp": [1.0, 2.0]}).save("plan.npz")
    return Call(fx.plans.load_plan, {"path": "plan.npz", "paths": ["pid.kp"]})


def stored_study() -> Call:
    """A study in a file."""
    system, context = lag()
    options: dict[str, Any] = {"context": context, "store": "lag.study", "force": True}
    fx.sweep(system, {"lag.time_constant": [1.0]}, 0.01, **options)
    arguments = {"path": "lag.study", "system": system, "context": context}
    return Call(fx.load_study, arguments, context.to_dict)


def stored_result() -> Call:
    """A result in a file."""
    system, context = lag()
    fx.simulate(system, 0.01, context=context).save("lag.npz")
    return Call(fx.load_result, {"path": "lag.npz"})


def stored() -> fx.results.StoredResult:
    stored_result()
    return fx.load_result("lag.npz")


def saved_plant(save: Callable[..., Any]) -> Callable[[], Call]:
    """A plant to be written."""

    def made() -> Call:
        system, context = plant()
        return Call(save, {"plant": system, "path": "robot.xml", "context": context})

    return made


def file_calls() -> dict[str, Callable[[], Call]]:
    """The functions that read files, and the methods of what is only read."""
    return {
        "load_plan": saved_plan,
        "load_study": stored_study,
        "load_result": stored_result,
        "load_mjcf": whole(fx.load_mjcf, source="<mujoco/>"),
        "load_sdf": whole(fx.load_sdf, source=f"<sdf version='1.7'>{MODEL}</sdf>"),
        "load_urdf": whole(fx.load_urdf, source="<robot name='r'><link name='a'/></robot>"),
        "save_urdf": saved_plant(fx.save_urdf),
        "save_sdf": saved_plant(fx.save_sdf),
        "save_mjcf": saved_plant(fx.save_mjcf),
        "StoredResult.context": lambda: Call(stored().context, {"system": lag()[0]}),
        "StoredResult.unit_of": lambda: Call(stored().unit_of, {"signal": "lag.y"}),
        "StoredResult.__getitem__": lambda: Call(stored().__getitem__, {}, lambda: None),
    }
