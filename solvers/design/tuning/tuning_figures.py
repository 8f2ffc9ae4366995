"""The figure of a tuning: gains over frequency beside their bounds, and all goals beside theirs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.drawing.formats.new_figures import new_figure
from flexure.diagrams.drawing.formats.style import COLORS, GREY, tidy
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.frequency.frequency_search import QuadraticSearch
from flexure.solvers.design.objectives.measures import GainMeasure, MarginMeasure
from flexure.solvers.design.objectives.parametric_models import ParametricModel, Realization
from flexure.solvers.design.tuning.problem import SampledModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flexure.solvers.design.tuning.problem import Goal
    from flexure.solvers.design.tuning.tuning import Tune

_POINTS = 500  # of a curve
_STILL = 1e-7  # of the fastest pole: slower ones are rounding
_AROUND = 30.0  # times the natural frequencies, on both sides


def plot_tuning(found: Tune) -> Figure:
    """Plot each gain over frequency in all contexts, and how far all goals are met."""
    curves = [
        goal for goal in found._goals if isinstance(goal.measure, (GainMeasure, MarginMeasure))
    ]
    figure = new_figure(
        figsize=(8.0, 1.4 + 2.4 * len(curves) + 0.3 * len(found._goals)), layout="constrained"
    )
    ratios = [2.4] * len(curves) + [0.5 + 0.3 * len(found._goals)]
    axes = figure.subplots(len(ratios), 1, squeeze=False, height_ratios=ratios)[:, 0]
    for goal, ax in zip(curves, axes[:-1], strict=True):
        _plot_gain(ax, found, goal)
    _plot_goals(axes[-1], found)
    return figure


def _plot_gain(ax: Any, found: Tune, goal: Goal) -> None:
    """Draw the gain of a goal in all contexts, and its bound."""
    attempt, measure = f"Cannot plot '{goal.label}'", goal.measure
    center = measure.center if isinstance(measure, MarginMeasure) else None
    for number, context in enumerate(found.contexts):
        request = measure.request(context, attempt)
        model: ParametricModel | SampledModel
        if found._period is None:
            model = ParametricModel(context, (), [request], attempt, follows=False)
        else:
            model = SampledModel(context, (), [request], attempt, period=found._period)
        here: Any = model.at(context)
        seen = model.realization(here, 0)
        offset = measure.offset if isinstance(measure, GainMeasure) else 1.0 - (center or 0.0)
        frequencies, sizes = _curve(seen, offset)
        ax.plot(
            frequencies,
            sizes,
            color=COLORS[number % len(COLORS)],
            linewidth=1.5,
            label=f"context {number}",
        )
    if isinstance(measure, GainMeasure) and not goal.is_free:
        limits = goal.bound * measure.limits(frequencies)
        ax.plot(frequencies, limits, "--", color=GREY, label="bound")
    elif center is not None and not goal.is_free:
        ax.axhline(1.0 / goal.bound, linestyle="--", color=GREY, label="bound")
    ax.set(xscale="log", yscale="log", xlabel="frequency [rad/s]", ylabel="gain")
    ax.set_title(goal.label, fontsize=9)
    ax.legend(frameon=False, fontsize=8)
    tidy(ax)


def _curve(model: Realization, offset: float) -> tuple[FloatArray, FloatArray]:
    D = model.D + offset * np.eye(*model.D.shape)
    search = QuadraticSearch(*model.on_tangent(), D, model.period, Q=1.0)
    natural = search.natural[search.natural > _STILL * search.natural.max(initial=0.0)]
    natural = natural if len(natural) else np.ones(1)
    ends = natural[0] / _AROUND, min(natural[-1] * _AROUND, search.end)
    frequencies = np.union1d(np.geomspace(*ends, _POINTS), natural)
    sizes = np.sqrt(np.maximum(search.sizes(frequencies), 0.0))
    return frequencies, np.where(np.isfinite(sizes), sizes, math.nan)


def _plot_goals(ax: Any, found: Tune) -> None:
    """Draw a bar for each goal: its value beside the bound, or beside what it was."""
    rows = np.arange(len(found._goals))[::-1]
    for row, (k, goal) in zip(rows, enumerate(found._goals), strict=True):
        value = found.achieved[goal.label]
        beside = found._before[k, found.worst_context[goal.label]] if goal.is_free else goal.bound
        share = value / beside if goal.sign > 0.0 else beside / value if value else math.inf
        met = goal.is_free or found.excess[goal.label] <= 0.0
        shown = share if math.isfinite(share) and share >= 0.0 else 2.0
        ax.barh(row, min(shown, 2.0), height=0.6, color=COLORS[0] if met else COLORS[1])
    ax.axvline(1.0, color=GREY, linestyle="--", linewidth=1.0)
    ax.set_yticks(rows, [goal.label for goal in found._goals], fontsize=8)
    ax.set_xlabel("part of the bound, or of the value before")
    tidy(ax)
