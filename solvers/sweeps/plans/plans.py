"""Plans: what the runs of a sweep differ in, as a table that is there before anything runs.

A plan is a product of axes, each of them a small table. A grid has an axis for each of its paths;
what is sampled or zipped has a single one. Rows go through all combinations, the last axis fastest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import import_extra, shown
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, quoted, suggestion
from flexure.diagrams.contexts.value_places import Way, path_of
from flexure.diagrams.interface.html import Shown, heading, note
from flexure.diagrams.values.arrays import FloatArray, as_numbers, freeze
from flexure.diagrams.values.tables import Table

SAMPLE = "sample"  # what the dimension of a plan is called that is no grid
_MOST = 2**31  # samples
_SHOWN = 10  # rows in a notebook


@dataclass(frozen=True, eq=False)
class Axis:
    """One dimension of a plan: columns of equal length, of which the entries belong together."""

    name: str  # name of the dimension: that of its path in a grid
    columns: dict[str, FloatArray]  # arrays of shape ``(n, *shape)`` by path

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


class Plan(Shown):
    """A table of samples: values of parameters, inputs and states for each run.

    `grid`, `zipped`, `latin_hypercube`, `sobol`, `random` and `load_plan` make plans, and
    `flexure.sweep` takes them. ``plan["pid.kp"]`` is a column as an array, ``plan[3]`` a row as a
    dictionary, and ``plan[:10]``, ``plan[mask]`` or ``plan[[4, 2]]`` a plan of some rows. ``a * b``
    has every row of ``a`` with every row of ``b``, and ``a + b`` the rows of ``a``, then those of
    ``b``. Plans are equal when their rows, columns and dimensions are; they cannot be changed.

    Attributes
    ----------
    axes : tuple
        The tables of which the plan is the product.

    See Also
    --------
    flexure.sweep : Run a plan.

    Examples
    --------
    >>> import flexure as fx
    >>> plan = fx.plans.grid({"pid.kp": [1.0, 2.0], "pid.ki": [0.0, 0.5, 1.0]})
    >>> plan
    <Plan of 6 samples, 2 x 3; pid.kp from 1 to 2, pid.ki from 0 to 1>
    >>> plan[plan["pid.ki"] < plan["pid.kp"]].table()
    pid.kp  pid.ki
    ------  ------
    1       0
    1       0.5
    2       0
    2       0.5
    2       1
    """

    __slots__ = ("axes",)

    def __init__(self, axes: Iterable[Axis]) -> None:
        self.axes = tuple(axes)

    # What it holds -------------------------------------------------------------------------

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the varied values."""
        return tuple(path for axis in self.axes for path in axis.columns)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions: the paths of a grid, "sample" for what has been drawn."""
        return tuple(axis.name for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions; results of runs can be brought into this shape."""
        return tuple(map(len, self.axes))

    @property
    def coordinates(self) -> dict[str, tuple[str, FloatArray]]:
        """For each path the dimension along which it varies, and its values there."""
        return {path: (axis.name, c) for axis in self.axes for path, c in axis.columns.items()}

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self._row, range(len(self)))

    def columns(self) -> dict[str, FloatArray]:
        """Return arrays of shape ``(N, *shape)`` by path: one entry for each of N runs."""
        return self._rows(slice(None))

    def _rows(self, chosen: Any) -> dict[str, FloatArray]:
        """Return columns of the whole table for some rows."""
        if len(self.axes) == 1:
            return {path: freeze(c[chosen]) for path, c in self.axes[0].columns.items()}
        places = np.unravel_index(np.arange(len(self))[chosen], self.shape)
        return {
            path: freeze(column[place])
            for axis, place in zip(self.axes, places, strict=True)
            for path, column in axis.columns.items()
        }

    def _row(self, index: int) -> dict[str, Any]:
        return {path: column[0] for path, column in self._rows([index]).items()}

    @overload
    def __getitem__(self, key: Way) -> FloatArray: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice | npt.NDArray[Any] | Sequence[int]) -> Plan: ...

    def __getitem__(self, key: Any) -> Any:
        """Return a column by its path, a row by its number, or some rows as a plan."""
        if isinstance(key, slice):
            return _single(self._rows(key))
        if isinstance(key, (int, np.integer, list, np.ndarray)) and not isinstance(key, bool):
            rows = self._chosen(key)
            return self._row(int(rows)) if rows.ndim == 0 else _single(self._rows(rows))
        path = path_of(key)
        for k, axis in enumerate(self.axes):
            if path in axis.columns:
                outer, inner = math.prod(self.shape[:k]), math.prod(self.shape[k + 1 :])
                places = np.tile(np.repeat(np.arange(len(axis)), inner), outer)
                return freeze(axis.columns[path][places])
        raise UnknownNameError(
            f"Cannot find '{path}' in a plan", remedy=suggestion(path, self.paths)
        )

    def _chosen(self, key: Any) -> npt.NDArray[np.intp]:
        """Return the numbers of rows, for their numbers or for a truth value for each row."""
        count = len(self)
        try:
            chosen = np.asarray(key)
        except ValueError:  # as of ragged lists
            chosen = np.empty(())
        chosen = chosen if chosen.size else chosen.astype(np.intp)
        if chosen.dtype == bool and chosen.shape == (count,):
            return np.flatnonzero(chosen)
        whole = chosen.dtype.kind in "iu" and chosen.ndim <= 1
        if whole and np.all((chosen >= -count) & (chosen < count)):
            return chosen.astype(np.intp) % max(count, 1)
        raise ValueRefusedError(
            "Cannot take rows of a plan",
            expected=f"numbers of its {count} rows, or a truth value for each of them",
            found=f"{key!r:.200}",
        )

    # What is made of it --------------------------------------------------------------------

    def __mul__(self, other: Plan) -> Plan:
        """Return every row of one plan with every row of another one, which varies other paths."""
        if not isinstance(other, Plan):
            return NotImplemented
        common = [path for path in self.paths if path in other.paths]
        if common:
            raise ValueRefusedError(
                "Cannot multiply plans",
                expected="plans that vary different paths",
                found=f"{quoted(common)} in both",
                remedy="Add plans of the same paths, a + b, to have the rows of both",
            )
        taken, axes = set(self.dims), list(self.axes)
        for axis in other.axes:
            name, k = axis.name, 2
            while name in taken:
                name, k = f"{axis.name}_{k}", k + 1
            taken.add(name)
            axes.append(Axis(name, axis.columns))
        return _checked(axes)

    def __add__(self, other: Plan) -> Plan:
        """Return the rows of one plan, then those of another one with the same paths and shapes."""
        if not isinstance(other, Plan):
            return NotImplemented
        mine, others = self.columns(), other.columns()
        shapes = {path: column.shape[1:] for path, column in mine.items()}
        found = {path: column.shape[1:] for path, column in others.items()}
        if shapes != found:
            raise ValueRefusedError(
                "Cannot add plans",
                expected=f"plans that both vary {_with_shapes(shapes)}",
                found=_with_shapes(found),
                remedy="Multiply plans of different paths, a * b, to have all combinations",
            )
        return _single({path: np.concatenate([mine[path], others[path]]) for path in mine})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return self.dims == other.dims and all(
            list(mine.columns) == list(its.columns)
            and all(np.array_equal(mine.columns[path], its.columns[path]) for path in mine.columns)
            for mine, its in zip(self.axes, other.axes, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    # How it is shown and kept --------------------------------------------------------------

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.paths]

    def table(self) -> Table:
        """Return the rows as a table."""
        columns = self.columns()
        return Table(columns, zip(*map(list, columns.values()), strict=True))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame: a row for each run, and a column for each number."""
        pandas = import_extra("pandas")
        index = pandas.RangeIndex(len(self), name="run")
        return pandas.DataFrame(by_component(self.columns()), index=index)

    def save(self, path: str | Path) -> None:
        """Write the plan to a file, which `load_plan` reads; an older one is replaced as a whole.

        Parameters
        ----------
        path : str or Path
            With ``.npz``, NumPy's format, which keeps dimensions and shapes. With ``.csv``, a
            table for other programs: a column for each number, the components of ``plant.A`` as
            ``plant.A[0]``, or ``plant.A[1,0]`` of a matrix, and no dimensions but "sample".

        Raises
        ------
        ValueRefusedError
            When the name ends otherwise.
        """
        from flexure.solvers.sweeps.plans.plan_files import save

        save(self, path)

    def _pieces(self) -> Iterator[str]:
        shape = " x ".join(map(str, self.shape)) if len(self.axes) > 1 else ""
        yield heading("Plan", remark=f"{len(self)} samples{f', {shape}' if shape else ''}")
        pairs = (pair for axis in self.axes for pair in axis.columns.items())
        if len(self):
            yield note("; ".join(starmap(with_range, pairs)))
        yield self[:_SHOWN].table().to_html()
        if len(self) > _SHOWN:
            yield note(f"{len(self) - _SHOWN} more rows; table() has all")

    def __repr__(self) -> str:
        shape = f", {' x '.join(map(str, self.shape))}" if len(self.axes) > 1 else ""
        ranges = ""
        if len(self):
            pairs = (pair for axis in self.axes for pair in axis.columns.items())
            ranges = f"; {', '.join(starmap(with_range, pairs))}"
        return f"<Plan of {len(self)} samples{shape}{ranges}>"


def grid(values: Mapping[Any, npt.ArrayLike]) -> Plan:
    """Plan runs for all combinations of some values.

    Parameters
    ----------
    values : mapping
        The values of each path or handle: an array, whose first axis goes through the values. For
        values with a shape, an array of shape ``(n, *shape)``.

    Returns
    -------
    Plan
        With a dimension for each path. The values of the last one change from run to run.

    Raises
    ------
    ValueRefusedError
        When there are no values, or something else than numbers.

    See Also
    --------
    zipped : Plan runs that take the first entries of all arrays.

    Examples
    --------
    >>> import flexure as fx
    >>> plan = fx.plans.grid({"pid.kp": [1.0, 2.0], "pid.ki": [0.0, 0.5, 1.0]})
    >>> plan["pid.ki"].reshape(plan.shape)
    array([[0. , 0.5, 1. ],
           [0. , 0.5, 1. ]])
    """
    attempt = "Cannot make a grid"
    columns = _numbers(values, attempt, "Cannot make a grid of '{}'")
    if not columns:
        raise ValueRefusedError(attempt, expected="at least one array of values", found="none")
    return _checked([Axis(path, {path: column}) for path, column in columns.items()])


def zipped(values: Mapping[Any, npt.ArrayLike]) -> Plan:
    """Plan runs that take the first entries of all arrays, then the second, and so on.

    Parameters
    ----------
    values : mapping
        Arrays of equal length N by path or handle, with one entry for each run; of what has a
        shape, of shape ``(N, *shape)``.

    Returns
    -------
    Plan

    Raises
    ------
    ValueRefusedError
        When arrays differ in length, or hold something else than numbers.

    See Also
    --------
    grid : Plan runs for all combinations of some values.

    Examples
    --------
    >>> import flexure as fx
    >>> fx.plans.zipped({"pid.kp": [1.0, 2.0], "pid.ki": [0.5, 1.0]})
    <Plan of 2 samples; pid.kp from 1 to 2, pid.ki from 0.5 to 1>
    """
    return zip_values(values, "Cannot zip values", "Cannot zip values of '{}'")


def zip_values(values: Any, attempt: str, of_column: str) -> Plan:
    """Return the plan that arrays of equal length make; the texts begin its errors."""
    columns = _numbers(values, attempt, of_column)
    if len({len(column) for column in columns.values()}) != 1:
        lengths = ", ".join(f"{len(column)} values of '{path}'" for path, column in columns.items())
        raise ValueRefusedError(
            attempt,
            expected="at least one array of values, and all of one length",
            found=lengths or "none",
            remedy="To try all combinations of values, use fx.plans.grid" if lengths else "",
        )
    return Plan([Axis(SAMPLE, columns)])


def _numbers(values: Any, attempt: str, of_column: str) -> dict[str, FloatArray]:
    """Return arrays, which cannot be changed, by path; ``of_column`` begins errors of one."""
    if not isinstance(values, Mapping):
        raise ValueRefusedError(
            attempt,
            expected="a mapping from paths to arrays, such as {'spring.stiffness': [1.0, 2.0]}",
            found=shown(values),
        )
    columns: dict[str, FloatArray] = {}
    for way, array in values.items():
        path = path_of(way)
        column = as_numbers(array, of_column.format(path))
        if column.ndim == 0:
            raise ValueRefusedError(
                of_column.format(path),
                expected="values of shape (N,), or (N, *shape) where one has a shape",
                found=f"the single number {column[()]:g}",
                remedy="Set values that all runs share in the context",
            )
        if path in columns:
            raise ValueRefusedError(
                of_column.format(path),
                expected="one array for each number",
                found="two for the same",
            )
        columns[path] = freeze(column)
    return columns


def _single(columns: Mapping[str, FloatArray]) -> Plan:
    """Return a plan of one dimension."""
    return Plan([Axis(SAMPLE, {path: freeze(column) for path, column in columns.items()})])


def _checked(axes: Sequence[Axis]) -> Plan:
    """Return the product of axes, unless it is too long for any machine."""
    plan = Plan(axes)
    count = math.prod(plan.shape)
    if count > _MOST:
        raise ValueRefusedError(
            "Cannot make a plan",
            expected=f"at most {_MOST} samples",
            found=f"{' x '.join(map(str, plan.shape))}",
            remedy="Sample so many dimensions by fx.plans.latin_hypercube or fx.plans.sobol",
        )
    return plan


def by_component(columns: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return columns of numbers: those of arrays cut into their components, with their numbers."""
    flat: dict[str, FloatArray] = {}
    for path, column in columns.items():
        for place in np.ndindex(column.shape[1:]):
            label = f"[{','.join(map(str, place))}]" if place else ""
            flat[path + label] = column[(slice(None), *place)]
    return flat


def with_range(name: str, values: FloatArray) -> str:
    """Say between which bounds values lie."""
    if not np.size(values):
        return name
    least, greatest = np.min(values), np.max(values)
    bounds = f"= {least:g}" if least == greatest else f"from {least:g} to {greatest:g}"
    return f"{name} {bounds}"


def _with_shapes(shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Name paths, with the shape of their values where they are no numbers."""
    return ", ".join(f"'{path}'{f' of shape {s}' if s else ''}" for path, s in shapes.items())
