"""Files of plans: NumPy's format, which keeps all of a plan, and tables for other programs."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flexure.blocks.signals.table_files import bare, read_table
from flexure.diagrams.checks.arguments import file_path, items_of, require_that
from flexure.diagrams.checks.errors import FlexureError, ValueRefusedError, quoted, suggestion
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.values.arrays import freeze
from flexure.solvers.sweeps.plans.plans import SAMPLE, Axis, Plan, by_component

_FORMAT = "flexure plan 1"
_KINDS = (".npz", ".csv")
_TABLES = (".mat", ".parquet", ".arrow", ".feather")


def save(plan: Plan, path: str | Path) -> None:
    """Write a plan to a file, in place of an older one or not at all."""
    if _kind(path, "Cannot save a plan") == ".csv":
        table = by_component(plan.columns())
        with replacing(path, newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table)
            writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
        return
    content = {"format": _FORMAT, "axes": [[axis.name, *axis.columns] for axis in plan.axes]}
    arrays = [column for axis in plan.axes for column in axis.columns.values()]
    with replacing(path, binary=True) as file:
        np.savez(file, *arrays, plan=np.array(json.dumps(content)))


def load_plan(path: str | Path, paths: Iterable[str] | None = None) -> Plan:
    """Read a plan that `Plan.save` wrote, or a table whose columns are named by paths.

    Parameters
    ----------
    path : str or Path
        A file whose name ends in ``.npz`` or ``.csv``, or a table from elsewhere, such as that of
        `Sweep.to_parquet`: in ``.mat``, or in ``.parquet``, ``.arrow`` or ``.feather`` (extra
        ``data``).
    paths : iterable of str, optional
        Columns to use; all of them when omitted. The table of a study also has its metrics. Other
        columns may have texts.

    Returns
    -------
    Plan

    Raises
    ------
    ValueRefusedError
        When it cannot be read, holds no plan, or a path is no column of it.
    MissingExtraError
        When the package that reads it is not installed.

    See Also
    --------
    Sweep : Runs of a plan.
    load_study : Read a stored study.

    Examples
    --------
    >>> import flexure as fx
    >>> import tempfile
    >>> plan = fx.plans.grid({"pid.kp": [1.0, 2.0], "pid.ki": [0.5]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plan.save(f"{folder}/plan.npz")
    ...     fx.plans.load_plan(f"{folder}/plan.npz") == plan
    True
    """
    attempt = f"Cannot load a plan from '{file_path(path, 'Cannot load a plan')}'"
    kept = None if paths is None else items_of(paths, "paths", attempt)
    try:
        if not Path(path).is_file():
            raise OSError("no file of this name")
        kind = _kind(path, attempt, (*_KINDS, *_TABLES))
        if kind in _TABLES:
            table = read_table(str(path), attempt)
            plan = _listed({bare(name): values for name, values in table.values.items()})
        else:
            plan = _from_csv(path, kept) if kind == ".csv" else _from_npz(path)
        return plan if kept is None else _chosen(plan, kept, attempt)
    except FlexureError:
        raise
    except Exception as error:  # of whatever a damaged file makes NumPy stumble over
        raise ValueRefusedError(
            attempt, expected="a file that Plan.save wrote", found=f"{error!s:.200}"
        ) from error


def _kind(path: Any, attempt: str, kinds: Sequence[str] = _KINDS) -> str:
    """Return the end of the name of a file."""
    suffix = Path(file_path(path, attempt)).suffix.lower()
    if suffix not in kinds:
        raise ValueRefusedError(
            attempt, expected=f"the name of a file that ends in {quoted(kinds)}", found=repr(path)
        )
    return suffix


def _listed(table: Mapping[str, Any]) -> Plan:
    """Return the plan whose runs are the rows of a table."""
    return Plan([Axis(SAMPLE, {name: freeze(np.array(v, float)) for name, v in table.items()})])


def _chosen(plan: Plan, kept: Sequence[str], attempt: str) -> Plan:
    """Return the part of a plan that varies some paths."""
    known = [path for axis in plan.axes for path in axis.columns]
    for path in kept:
        require_that(
            path in known, attempt, "paths of its columns", repr(path), suggestion(str(path), known)
        )
    parts = [
        (axis.name, {k: v for k, v in axis.columns.items() if k in kept}) for axis in plan.axes
    ]
    return Plan([Axis(name, columns) for name, columns in parts if columns])


def _from_csv(path: str | Path, kept: Sequence[str] | None) -> Plan:
    """Return the plan of a table; columns that are not kept are not read and are 0."""
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader([file.readline()]), [])
        if not names or len(set(names)) < len(names) or "" in names:
            raise ValueError(f"a first line without one path for each column: {quoted(names)}")
        rows = file.read().strip()
    lines = rows.splitlines()
    if kept is None:
        table = np.loadtxt(lines, delimiter=",", ndmin=2) if lines else np.empty((0, len(names)))
        if table.shape[1] != len(names):
            raise ValueError(f"{len(names)} paths above {table.shape[1]} columns")
        return _listed(dict(zip(names, table.T, strict=True)))
    table, read = np.zeros((len(lines), len(names))), [names.index(k) for k in kept if k in names]
    if lines and read:
        table[:, read] = np.loadtxt(lines, delimiter=",", usecols=read, ndmin=2, quotechar='"')
    return _listed(dict(zip(names, table.T, strict=True)))


def _from_npz(path: str | Path) -> Plan:
    # Opened here, as NumPy does not close what it cannot read.
    with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
        content = json.loads(str(file["plan"]))
        if content["format"] != _FORMAT:
            raise ValueError(f"the format {content['format']!r:.80}")
        arrays = iter([freeze(np.asarray(file[name])) for name in file.files if name != "plan"])
        axes = [
            Axis(name, {path: next(arrays) for path in paths}) for name, *paths in content["axes"]
        ]
    for axis in axes:
        columns = axis.columns.values()
        if not all(each.dtype == float for each in columns) or len(set(map(len, columns))) != 1:
            raise ValueError(f"columns of '{axis.name}' that do not belong together")
    return Plan(axes)
