"""Pictures of the signals of a sweep over time: bands of quantiles, and the nominal run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from flexure.diagrams.checks.arguments import flag, items_of, require
from flexure.diagrams.checks.errors import FlexureError, ValueRefusedError
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import COLORS, check_file, labelled, tidy
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.sweeps.pictures.plot_columns import title_of
from flexure.solvers.sweeps.tables.model_placeholder import AbsentModel
from flexure.solvers.tracing.signals import Signal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flexure.solvers.sweeps.sweep import Sweep

_FEW = 12  # runs that are drawn as lines, as quantiles of so few say little
_MOST = 12  # panels
#: What a panel is called, its signal, and which component that is, if it has several.
Panel: TypeAlias = tuple[str, str, int | None]


def plot_responses(
    sweep: Sweep,
    *signals: Signal,
    bands: tuple[float, ...] = (0.9, 0.5),
    nominal: bool = True,
    path: str | Path | None = None,
) -> Figure:
    """Plot sampled signals over time: the median of all runs, bands, and the nominal run.

    Parameters
    ----------
    *signals : Handle or str
        Sampled signals; all of them when omitted. Components are drawn in a panel each.
    bands : tuple of float
        The shares of the runs that are within the bands at each time: 0.9 from the 5 % to the
        95 % quantile.
    nominal : bool
        Whether to simulate what the runs have in common, without any of the values of the plan,
        and to draw it.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    UnknownNameError
        When a signal was not sampled.
    ValueRefusedError
        When there is none, no run has numbers, or a share is not between 0 and 1.
    """
    attempt = f"Cannot plot the signals of the sweep of '{sweep.system.label}'"
    check_file(path, attempt)
    flag(nominal, "nominal", attempt)
    shares = _checked(bands, attempt)
    panels = _panels(sweep, signals or sweep.signals)
    if not 1 <= len(panels) <= _MOST:
        raise ValueRefusedError(
            attempt,
            expected=f"1 to {_MOST} sampled signals and components of them",
            found=f"{len(panels)}",
            remedy="Name those that are to be kept and shown in signals= of the sweep",
        )
    if not len(sweep) or not len(sweep.times):
        raise ValueRefusedError(attempt, expected="runs and times of samples", found="none")
    reference = _nominal(sweep, panels) if nominal else None
    figure = new_figure(figsize=(8.0, 1.7 + 2.6 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (name, signal, k) in zip(axes, panels, strict=True):
        values = sweep[signal][..., k] if k is not None else sweep[signal]
        _draw_bands(ax, sweep.times, values, shares)
        if reference:
            known = reference[signal]
            line = known[..., k] if k is not None else known
            ax.plot(
                sweep.times, line, color=COLORS[1], linewidth=1.6, linestyle="--", label="nominal"
            )
        ax.set_ylabel(labelled(name, sweep.units[signal]))
        tidy(ax)
        ax.margins(x=0.0)
    if reference == {}:
        axes[0].plot([], [], color="none", label="(the nominal run failed)")
    axes[-1].set_xlabel("time [s]")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    figure.suptitle(title_of(sweep), fontsize=11)
    return saved(figure, path)


def _checked(bands: Any, attempt: str) -> list[float]:
    """Return the shares of bands, the widest one first."""
    items = items_of(bands, "shares of the runs between 0 and 1, such as (0.9, 0.5)", attempt)
    for share in items:
        number = isinstance(share, (int, float, np.number)) and not isinstance(share, bool)
        require(number and 0.0 < share <= 1.0, share, attempt, "shares of the runs in (0, 1]")
    return sorted(map(float, items), reverse=True)


def _panels(sweep: Sweep, signals: Sequence[Signal]) -> list[Panel]:
    """Return a panel for each component of some signals."""
    found: list[Panel] = []
    for signal in signals:
        path, values = path_of(signal), sweep[signal]
        if values.ndim == 3:
            reader = sweep._readers[path]
            found += [(f"{path}[{label}]", path, k) for k, label in enumerate(reader.labels)]
        else:
            found.append((path, path, None))
    return found


def _nominal(sweep: Sweep, panels: Sequence[Panel]) -> dict[str, FloatArray] | None:
    """Return the signals of a run with what all runs have in common; none where it fails."""
    if sweep.plan is None or isinstance(sweep._variants, AbsentModel):
        return None
    with suppress(FlexureError):
        result = sweep._settings.simulate(sweep._variants.base())
        reached = sweep.times[sweep.times <= result.time[-1]]
        found = {}
        for path in {path for _, path, _ in panels}:
            values = np.asarray(result.sample(path, reached))
            found[path] = np.full((len(sweep.times), *values.shape[1:]), np.nan)
            found[path][: len(reached)] = values
        return found
    return {}


def _draw_bands(ax: Any, times: FloatArray, values: FloatArray, shares: Sequence[float]) -> None:
    """Draw quantiles at each time of the runs that came so far; single lines of few runs."""
    there = np.isfinite(values).any(axis=0)
    shown, at = values[:, there], times[there]
    if len(values) <= _FEW:
        ax.plot(at, shown.T, color=COLORS[0], linewidth=1.0, alpha=0.6)
        ax.plot([], [], color=COLORS[0], linewidth=1.0, label=f"{len(values)} runs")
        return
    for k, share in enumerate(shares):
        low, high = np.nanquantile(shown, [0.5 - 0.5 * share, 0.5 + 0.5 * share], axis=0)
        ax.fill_between(
            at,
            low,
            high,
            color=_pale(0.2 + 0.2 * k),
            linewidth=0,
            label=f"{100.0 * share:g} % of the runs",
        )
    ax.plot(at, np.nanmedian(shown, axis=0), color=COLORS[0], linewidth=1.8, label="median")


def _pale(share: float) -> tuple[float, ...]:
    """Return the color of a band, which is that of its entry in the legend, too."""
    from matplotlib.colors import to_rgb

    return tuple(1.0 - min(share, 1.0) * (1.0 - part) for part in to_rgb(COLORS[0]))
