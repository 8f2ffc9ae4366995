"""Notebook display of linear models, equilibria and sensitivities: tables with names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.contexts.notebook_tables import without_empty
from flexure.diagrams.interface.html import fold, heading, note, rows_of
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.tables import Table

if TYPE_CHECKING:
    from flexure.solvers.analysis.linear_models.linear_model import LinearModel
    from flexure.solvers.analysis.operating_points.equilibria import Equilibrium
    from flexure.solvers.analysis.sensitivities.sensitivities import ParameterSensitivity

_MOST = 24  # rows and columns of a matrix
_OPENED = 12  # rows and columns of one that needs no folding
_POLES = 40


def model_pieces(model: LinearModel) -> Iterator[str]:
    """Show a linear model: all its matrices in one table with names, and its poles."""
    (p, m), n = model.D.shape, len(model.A)
    found, sampled = model.poles, model.period is not None
    about = f"n = {n}, m = {m}, p = {p}, {'stable' if model.is_stable else 'not stable'}, "
    about += f"t = {model.time:g} s, {f'period {model.period:g} s, ' if sampled else ''}{model.how}"
    yield heading("LinearModel", remark=about)
    yield from map(note, model.notes)
    rates = [f"next {name}" if sampled else f"d/dt {name}" for name in model.state_names]
    whole = np.block([[model.A, model.B], [model.C, model.D]])
    inside = matrix(
        whole, [*rates, *model.output_names], [*model.state_names, *model.input_names], edges=(n, n)
    )
    small = n + max(m, p) <= _OPENED
    yield fold("A, B, C, D", inside, "A B above C D", opened=small)
    if n:
        yield fold("Poles", poles(found, model.period), opened=n <= _OPENED)
    names = [*model.state_names, *model.input_names, *model.output_names]
    kinds = ["state"] * n + ["input"] * m + ["output"] * p
    values = np.concatenate([model.x0, model.u0, model.y0]) + 0.0  # no -0
    point = Table(("name", "kind", "value"), zip(names, kinds, values, strict=True))
    yield fold("Point", point.to_html(_POLES))


def poles(found: npt.NDArray[np.complex128], period: float | None = None) -> str:
    """Return poles as a table, with natural frequencies and damping ratios in continuous time."""
    texts = [f"{pole:.5g}" if pole.imag else f"{pole.real:.5g}" for pole in found]
    if period is not None:
        sizes = zip(texts, np.abs(found), strict=True)
        return Table(("pole in z", "magnitude"), sizes).to_html(_POLES)
    rows: list[Any] = []
    for text, pole in zip(texts, found, strict=True):
        size = abs(pole)
        ratio = -pole.real / size + 0.0 if size else None
        rows.append((text, size / (2.0 * np.pi), ratio, -1.0 / pole.real if pole.real else None))
    names = ("pole [rad/s]", "frequency [Hz]", "damping ratio", "time constant [s]")
    return Table(names, rows).to_html(_POLES)


def matrix(
    values: FloatArray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    edges: tuple[int, int] = (0, 0),
) -> str:
    """Return a matrix with the names of its rows and columns; zeros are dots.

    ``edges`` are the row and the column before which there is a line.
    """
    texts = [
        (name, *(f"{x:.5g}" if x else "·" for x in row[:_MOST]))
        for name, row in zip(rows[:_MOST], values, strict=False)
    ]
    width = 1 + min(len(columns), _MOST)
    table = rows_of(
        texts,
        ["", *columns[:_MOST]],
        numeric=range(1, width),
        edges=([edges[1] + 1] if edges[1] else [], [edges[0]] if edges[0] else []),
    )
    if max(values.shape) <= _MOST:
        return table
    return table + note(f"the beginning of a matrix of {values.shape[0]} x {values.shape[1]}")


def equilibrium_pieces(found: Equilibrium) -> Iterator[str]:
    """Show how good an equilibrium is, and its states and free inputs, then all values."""
    context = found.context
    about = f"residual {found.residual:.3g} after {found.iterations} steps, {found.how}"
    yield heading("Equilibrium", context.system.label, about)
    table = context.describe()
    moving = [row for row in table if row["kind"] in ("state", "input")]
    names = ("path", "kind", "value", "unit", "doc")
    shown = Table(names, ([row[name] for name in names] for row in moving))
    yield without_empty(shown).to_html(_POLES)
    yield fold("All values", "".join(context._pieces()))


def sensitivity_pieces(found: ParameterSensitivity) -> Iterator[str]:
    """Show the derivatives of the last states and outputs by each parameter."""
    yield heading(
        "ParameterSensitivity", found.context.system.label, f"at t = {found.time[-1]:g} s"
    )
    columns = list(found.derivatives)
    finals = [found.derivatives[parameter][-1] for parameter in columns]
    rows = [
        (f"d {name}", *(final[k] for final in finals)) for k, name in enumerate(found.state_names)
    ]
    for path, slopes in found.output_derivatives.items():
        last = [slopes[parameter][-1] for parameter in columns]
        if found.outputs[path].ndim == 1:
            rows.append((f"d {path}", *last))
            continue
        count = found.outputs[path].shape[1]
        rows += [(f"d {path}[{k}]", *(final[k] for final in last)) for k in range(count)]
    yield Table(("", *(f"/ d {parameter}" for parameter in columns)), rows).to_html(_POLES)
