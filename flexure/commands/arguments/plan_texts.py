"""Plans of sweeps and metrics from words.

Plans are grids, samples and files, of which every row meets every other. Metrics are ``overshoot``,
``overshoot(door.axis.angle)`` or ``rms(pid.u, start=1)``. A name such as ``peak`` can be that of a
step metric and of a function of `flexure.metrics`. Without a signal it is the step metric, with a
signal the function, as in Python.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import fields
from functools import reduce
from operator import mul
from typing import TYPE_CHECKING, Any

from flexure.commands.arguments.call_texts import Axis, Call, Samples
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, quoted, suggestion

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context
    from flexure.diagrams.systems.system import System
    from flexure.solvers.results.measures.metrics import Metric
    from flexure.solvers.sweeps.plans.plans import Plan


_ALIASES = {"normal": "norm"}


def plan_of(arguments: Namespace, context: Context) -> Plan:
    """Return the product of all that is to be varied; tolerances are around the context."""
    from flexure.solvers.sweeps.plans import sampling_designs
    from flexure.solvers.sweeps.plans.plan_files import load_plan

    ways = {
        "random": sampling_designs.random,
        "latin": sampling_designs.latin_hypercube,
        "sobol": sampling_designs.sobol,
    }
    plans = [load_plan(file) for file in arguments.plan]
    plans += [_grid(axis) for axis in arguments.grid]
    for name, way in ways.items():
        for drawn in getattr(arguments, name):
            values = _sources(drawn)
            plans.append(way(values, drawn.size, context=context, seed=arguments.seed))
    if not plans:
        raise ValueRefusedError(
            "Cannot sweep",
            expected="at least one path that differs between runs",
            found="none",
            remedy="Name one, as in --grid pid.kp=4:40:10 or --random 1000 'pid.kp=normal(20,2)'",
        )
    return reduce(mul, plans)


def _grid(axis: Axis) -> Plan:
    import numpy as np

    from flexure.solvers.sweeps.plans.plans import grid

    space = np.geomspace if axis.spacing == "log" else np.linspace
    return grid({axis.path: axis.values or space(axis.low, axis.high, axis.size)})


def _sources(drawn: Samples) -> dict[str, Any]:
    return {
        path: source if isinstance(source, str) else distribution(source, path)
        for path, source in drawn.sources.items()
    }


def distribution(call: Call, path: str) -> Any:
    """Return what `fx.plans.random` draws from: an interval, or a distribution of SciPy by name.

    >>> distribution(Call("", "normal", (3.0, 0.2), {}), "pid.kp").mean()
    np.float64(3.0)
    """
    attempt = f"Cannot draw '{path}' from {call.text}"
    numbers = [*call.args, *call.named.values()]
    if not all(isinstance(each, float) and math.isfinite(each) for each in numbers):
        raise ValueRefusedError(
            attempt, expected="finite numbers as its arguments", found=call.text
        )
    if call.name == "uniform":
        return call.of(lambda low, high: (low, high), attempt)
    from scipy import stats

    families = {
        name: each
        for name, each in vars(stats).items()
        if isinstance(each, (stats.rv_continuous, stats.rv_discrete))
    }
    family = families.get(_ALIASES.get(call.name, call.name))
    if family is None:
        names = ["normal", *families]
        raise UnknownNameError(
            attempt,
            expected="'uniform(low, high)', or a distribution of scipy.stats",
            remedy=suggestion(call.name, names),
        )
    try:
        return family(*call.args, **call.named)
    except TypeError as error:
        shapes = [*(family.shapes or "").split(", "), "loc=0"]
        shapes += ["scale=1"] if isinstance(family, stats.rv_continuous) else []
        raise ValueRefusedError(
            attempt, expected=f"{call.name}({', '.join(filter(None, shapes))})", found=call.text
        ) from error


_OTHERS = ("Constraint", "Metric", "largest", "of", "smallest")  # which are not of signals


def metrics_of(
    calls: Sequence[Call], system: System, signals: Sequence[str] | None
) -> dict[str, Metric]:
    """Return metrics by their labels.

    A step metric without parentheses applies to the signals that were named, or, with none, to the
    only output of the system. Where a function of `fx.metrics` has the name of a step metric, that
    is used which takes the arguments.
    """
    from flexure import metrics
    from flexure.solvers.results.measures.step_characteristics import StepInfo
    from flexure.solvers.tracing.signals import resolve

    figures = [field.name for field in fields(StepInfo)]
    kinds = [name for name in vars(metrics)["__all__"] if name not in _OTHERS]
    found: dict[str, Metric] = {}
    for each in calls:
        attempt = f"Cannot measure {each.text}"
        is_figure = each.name in figures
        step = Call(each.text, "step", (each.name, *each.args), each.named)
        metric = getattr(metrics, each.name) if each.name in kinds else None
        if is_figure and not each.args:
            paths = _responses(each, system, signals)
            for path in paths:
                label = each.text if len(paths) == 1 else f"{each.text} of {path}"
                found[label] = step._replace(args=(each.name, path)).of(metrics.step, attempt)
        elif metric and (each.fits(metric) or not (is_figure and step.fits(metrics.step))):
            found[each.text] = each.of(metric, attempt)
        elif is_figure:
            found[each.text] = step.of(metrics.step, attempt)
        else:
            raise UnknownNameError(attempt, remedy=suggestion(each.name, [*figures, *kinds]))
    for measured in found.values():
        for signal in measured.signals:
            resolve(system, signal)  # refused before anything runs
    return found


def _responses(call: Call, system: System, signals: Sequence[str] | None) -> list[str]:
    """Return the signals to which a step metric applies."""
    from flexure.solvers.tracing.signals import resolve

    if signals is None:
        paths = [port.path for port in system.output_ports if port.size == 1]
        fits = len(paths) == 1
    else:
        paths = [path for path in signals if resolve(system, path).size == 1]
        fits = bool(paths)
    if not fits:
        raise ValueRefusedError(
            f"Cannot measure {call.text}",
            expected="a system with one output of one component, or signals with one component",
            found=quoted(paths),
            remedy=f"Name the signal, as in {call.name}(door.axis.angle)",
        )
    return paths
