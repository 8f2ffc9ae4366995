"""Files of plans: NumPy's format, which keeps all of a plan, and tables for other programs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import file_path
from flexure.diagrams.checks.errors import FlexureError, ValueRefusedError, quoted
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.values.arrays import freeze
from flexure.solvers.sweeps.plans.plans import SAMPLE, Axis, Plan, by_component

_FORMAT = "flexure plan 1"
_KINDS = (".npz", ".csv")


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


def load_plan(path: str | Path) -> Plan:
    """Read a plan that `Plan.save` wrote, or a table of numbers below a line of paths.

    Parameters
    ----------
    path : str or Path
        A file whose name ends in ``.npz`` or ``.csv``.

    Returns
    -------
    Plan

    Raises
    ------
    ValueRefusedError
        When it cannot be read, or holds no plan.

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
    try:
        if not Path(path).is_file():
            raise OSError("no file of this name")
        return _from_csv(path) if _kind(path, attempt) == ".csv" else _from_npz(path)
    except FlexureError:
        raise
    except Exception as error:  # of whatever a damaged file makes NumPy stumble over
        raise ValueRefusedError(
            attempt, expected="a file that Plan.save wrote", found=f"{error!s:.200}"
        ) from error


def _kind(path: Any, attempt: str) -> str:
    """Return the end of the name of a file."""
    suffix = Path(file_path(path, attempt)).suffix.lower()
    if suffix not in _KINDS:
        raise ValueRefusedError(
            attempt, expected=f"the name of a file that ends in {quoted(_KINDS)}", found=repr(path)
        )
    return suffix


def _from_csv(path: str | Path) -> Plan:
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader([file.readline()]), [])
        if not names or len(set(names)) < len(names) or "" in names:
            raise ValueError(f"a first line without one path for each column: {quoted(names)}")
        rows = file.read().strip()
    lines = rows.splitlines()
    table = np.loadtxt(lines, delimiter=",", ndmin=2) if lines else np.empty((0, len(names)))
    if table.shape[1] != len(names):
        raise ValueError(f"{len(names)} paths above {table.shape[1]} columns")
    columns = {name: freeze(np.array(table[:, k])) for k, name in enumerate(names)}
    return Plan([Axis(SAMPLE, columns)])


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
