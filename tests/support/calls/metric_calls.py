"""A working call of everything in `flexure.metrics`, which ends with the number."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import flexure as fx
from tests.support.calls.odd_arguments import Call

_TIMES = [0.0, 1.0, 3.0]
_SAMPLES = {"y": [[0.0, 1.0, 1.0]]}


def metric_calls() -> dict[str, Callable[[], Call]]:
    """The functions that make metrics, and the methods of metrics."""
    window: dict[str, Any] = {"signal": "y", "start": 1.0, "end": 2.0}
    error = {**window, "target": 0.5}
    step = {"name": "overshoot", "signal": "y", "at": 0.5, "initial": 0.0, "final": 1.0}
    extremes = ("maximum", "minimum", "peak")
    arguments: dict[str, dict[str, Any]] = {
        **dict.fromkeys((*extremes, "mean", "rms", "integral", "total_variation"), window),
        **dict.fromkeys(("iae", "ise", "itae"), error),
        "final": {"signal": "y"},
        "at": {"signal": "y", "time": 1.5},
        "first_crossing": {"signal": "y", "level": 0.5, "direction": "rising"},
        "step": {**step, "target": 1.0, "band": 0.05, "control": None},
        "disturbance": {
            "name": "recovery_time",
            "signal": "y",
            "at": 0.5,
            "target": 1.0,
            "band": 0.05,
            "tolerance": 0.1,
            "control": None,
        },
        "of": {"law": lambda t, y: y[-1], "signal": "y", "label": "last"},
        "largest": {"metric": fx.metrics.final("y"), "other": 1.0},
        "smallest": {"metric": fx.metrics.final("y"), "other": 1.0},
    }
    calls: dict[str, Callable[[], Call]] = {
        f"metrics.{name}": partial(Call, partial(_evaluated, name), given)
        for name, given in arguments.items()
    }
    calls |= {
        f"metrics.{name}": partial(Call, partial(_at_rest, name), given)
        for name, given in _rest_arguments().items()
    }
    metric = fx.metrics.rms("y")
    methods = {
        "evaluate": Call(metric.evaluate, {"times": _TIMES, "samples": _SAMPLES, "steps": None}),
        "named": Call(metric.named, {"label": "effort"}),
    }
    bounded = metric <= 1.0
    calls |= {f"metrics.Metric.{name}": partial(lambda it: it, it) for name, it in methods.items()}
    calls["metrics.Constraint.excess"] = partial(Call, bounded.excess, {"values": [0.5]})
    calls["metrics.Constraint.holds"] = partial(Call, bounded.holds, {"values": [0.5]})
    return calls


def _rest_arguments() -> dict[str, dict[str, Any]]:
    """The arguments of metrics of a system at rest."""
    ways: dict[str, Any] = {"inputs": "u", "outputs": "y", "openings": ()}
    band = {"lower": 0.1, "upper": 10.0}
    wires = {"reference": "u", "output": "y"}
    times = {"response_time": 0.5, "steady_error": 0.01, "peak_error": 1.5}
    return {
        "decay_rate": band,
        "least_damping": band,
        "frequency": {"number": 0},
        "stiffness_at": {"frame": "stage", "about": (0.0, 0.0, 1.0), "p_FP": (0.0, 0.0, 0.1)},
        "at_rest": {"signal": "y"},
        "over_stroke": {
            "signal": "y",
            "output": "q",
            "stroke": (-0.1, 0.1),
            "worst": "peak",
            "points": 5,
        },
        "gain": {**ways, **band, "bound": ([0.1, 1.0], [1.0, 2.0])},
        "tracking": {**wires, **times, "openings": ()},
        "h2": ways,
        "stability_margin": {"location": "u", "kind": "disk", "openings": ()},
        "overshoot": wires,
    }


def _at_rest(name: str, **given: Any) -> Any:
    """Make a metric of a system at rest, and return what it is called."""
    return getattr(fx.metrics, name)(**given).label


def _evaluated(function: str, /, **given: Any) -> Any:
    """Make a metric, and compute it."""
    by_place = ("law", "name", "signal", "metric", "other")
    args = [given.pop(each) for each in by_place if each in given]
    return getattr(fx.metrics, function)(*args, **given).evaluate(_TIMES, _SAMPLES)
