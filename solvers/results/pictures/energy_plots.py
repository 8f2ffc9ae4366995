"""The ledger of a plant as a picture: where its energy is, and how well it adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks.multibody import EnergyLedger
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import ValueRefusedError, quoted
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import (
    BLUE,
    COLORS,
    check_file,
    check_title,
    labelled,
    tidy,
    write_legend,
)
from flexure.diagrams.systems.system import each_system
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.pictures.panels import Scales, drawable
from flexure.solvers.results.pictures.signal_plots import given_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.solvers.results.records.result import SimulationResult

_NEVER = 1e-9  # of the largest energy: work that is rounding


@dataclass(frozen=True)
class _Account:
    """Energies over time, in J."""

    time: FloatArray
    parts: dict[str, FloatArray]  # that are stacked, none of them negative
    supplied: FloatArray  # what they should add up to
    residual: FloatArray


def plot_energy(
    result: SimulationResult,
    ledger: str | None = None,
    *,
    units: Mapping[str, str] | None = None,
    title: str | None = None,
    ax: Sequence[Axes] | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Plot where the energy of a plant is, and how well its ledger adds up.

    Kinetic and stored energies are stacked, and on them what was lost in each source of work
    that never gave any. Their sum should be the black line: what was there at first, and the
    work of all other sources. The residual below, the change of the balance, is the difference.
    Stored energies count from the lowest one in the run.

    Parameters
    ----------
    ledger : str, optional
        Path of an `EnergyLedger`, or of a plant with one; needed where there are several.
    units, title, path
        As for `plot`; energies are in J.
    ax : sequence of matplotlib.axes.Axes, optional
        Two axes, for energies and residual; a new figure when omitted.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueRefusedError
        When there is no ledger, or none of them is meant.
    """
    attempt = f"Cannot plot the energy of '{result.system.label}'"
    check_file(path, attempt)
    check_title(title, attempt)
    scales = Scales(units, attempt)
    axes = given_axes(ax, attempt)
    wanted = "ax to be two Axes of Matplotlib, for energies and their residual, or None"
    require(axes is None or len(axes) == 2, ax, attempt, wanted)
    account = _account(result, _ledger(result, ledger, attempt), attempt)
    if axes is None:
        figure = new_figure(figsize=(8.0, 5.6), layout="constrained")
        rows = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3.0, 1.0]})
        axes = [*rows]
        figure.suptitle(result.system.label if title is None else title)
    else:
        figure = axes[0].figure.figure
    upper, lower = axes
    (unit, size), (second, scale) = scales("J"), scales("s")
    time = scale * account.time
    floor = np.zeros(len(time))
    for k, (name, energy) in enumerate(account.parts.items()):
        color = COLORS[k % len(COLORS)]
        style: dict[str, Any] = {"color": color, "alpha": 0.55, "linewidth": 0, "label": name}
        if name.startswith("lost"):
            style |= {"hatch": "///", "alpha": 0.3}
        upper.fill_between(time, size * floor, size * (floor + energy), **style)
        floor = floor + energy
    name = "at first, and supplied since"
    upper.plot(time, size * account.supplied, color="black", linewidth=1.4, label=name)
    lower.plot(time, size * account.residual, color=BLUE, linewidth=1.4)
    for each, name in ((upper, "energy"), (lower, "residual")):
        each.set_ylabel(labelled(name, unit))
        tidy(each)
        each.margins(x=0.0)
    upper.set_ylim(bottom=0.0)
    lower.set_xlabel(f"time [{second}]")
    rows = write_legend(upper, upper.get_legend_handles_labels()[1])
    if ax is not None and title is not None:
        upper.set_title(title, pad=6.0 + 15.0 * rows)
    return saved(figure, path)


def _ledger(result: SimulationResult, name: str | None, attempt: str) -> EnergyLedger:
    """Return the ledger of a plant, or the only one that there is."""
    found = {
        each.path or each.name: each
        for each in each_system(result.system)
        if isinstance(each, EnergyLedger)
    }
    require(name is None or isinstance(name, str), name, attempt, "the path of a ledger, or None")
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if name in found:
        return found[name]
    few = {path: each for path, each in found.items() if name and path.startswith(f"{name}.")}
    if len(few) == 1:
        return next(iter(few.values()))
    raise ValueRefusedError(
        attempt,
        expected="the path of an energy ledger, or of a plant that has one",
        found=("none" if name is None else f"'{name}'") + f", where there are {quoted(found)}"
        if found
        else "no ledger",
        remedy=None if found else "Call add_energy_ledger() of the plant builder",
    )


def _account(result: SimulationResult, ledger: EnergyLedger, attempt: str) -> _Account:
    """Return what a ledger knows, at the times at which all of it is finite."""
    # Sources with a negative final work are stacked as lost; the work of all others is supplied.
    grid = result.fine_time()
    stores = [ledger.input_port(f"{name}_energy") for name in ledger.stores]
    kinetic, works, balance, *energies = result.sample_all(
        [ledger.kinetic_energy, ledger.works, ledger.balance, *stores], grid
    )
    flows = [np.reshape(each, (len(grid), -1)) for each in (kinetic, works, balance, *energies)]
    usable = np.isfinite(drawable(np.hstack(flows))).all(axis=1)
    if not usable.any():
        raise ValueRefusedError(attempt, expected="finite energies", found="none at any time")
    grid, kinetic, works, balance, *energies = (
        each[usable] for each in (grid, kinetic, works, balance, *energies)
    )
    parts: dict[str, FloatArray] = {"kinetic": kinetic}
    for name, energy in zip(ledger.stores, energies, strict=True):
        if np.ptp(energy) > 0.0:  # known up to a constant
            parts[name] = energy - np.min(energy)
    works = np.reshape(works, (len(grid), -1))
    largest = max(float(np.max(energy)) for energy in parts.values())
    supplied = np.zeros(len(grid))
    for name, work in zip(ledger.works.element_names or (), works.T, strict=True):
        if np.max(np.abs(work), initial=0.0) <= _NEVER * largest:
            continue
        if np.max(work) <= _NEVER * largest:
            parts[f"lost in {name}"] = np.maximum(-work, 0.0)
        else:
            supplied = supplied + work
    start = sum(float(energy[0]) for energy in parts.values())
    residual = balance - balance[0]
    return _Account(grid, parts, start + supplied, residual)
