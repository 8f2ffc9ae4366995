"""Signals in MAT files: structures for MATLAB and Octave, and trajectories for Modelica's tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.checks.errors import RecordFileError
from flexure.solvers.results.records.exports import SignalTable, writing


def write_mat(table: SignalTable, path: str | Path, form: str) -> None:
    """Write a table; forms are those of `SimulationResult.to_mat`."""
    one_of(form, ("structures", "modelica"), "form", f"Cannot write signals to '{path}'")
    if form == "modelica":
        _save(_trajectories(table), path, format="4")
    else:
        columns = {each.name: (each.values, each.reader.unit) for each in table.series}
        way_out = "Leave one out with signals=, or pass form='modelica'"
        write_structures({"time": (table.time, "s"), **columns}, path, way_out)


def write_structures(
    columns: Mapping[str, tuple[Any, str]], path: str | Path, way_out: str
) -> None:
    """Write values with their units by path: one structure per block, and a tree with the units."""
    content: dict[str, Any] = {}
    units: dict[str, Any] = {}
    for name, pair in columns.items():
        *blocks, leaf = [_field(part) for part in name.split(".")]
        for root, value in zip((content, units), pair, strict=True):
            tree: Any = root
            for block in blocks:
                tree = tree.setdefault(block, {}) if isinstance(tree, dict) else tree
            if not isinstance(tree, dict) or leaf in tree:
                raise RecordFileError(
                    f"Cannot write '{path}'",
                    expected="columns with different names in MATLAB",
                    found=f"'{name}' and another one of the same name",
                    remedy=way_out,
                )
            tree[leaf] = value
    if "units" in content:
        raise RecordFileError(
            f"Cannot write '{path}'",
            expected="'units' to be the units",
            found="a block or column of that name",
            remedy=way_out,
        )
    content["units"] = units
    _save(content, path, long_field_names=True, oned_as="column")


def _save(content: dict[str, Any], path: str | Path, **options: Any) -> None:
    from scipy.io import savemat

    with writing(path, binary=True) as file:
        savemat(cast("Any", file), content, appendmat=False, **options)


def _field(name: str) -> str:
    """Return a name that MATLAB accepts: letters, digits and underscores, a letter first."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).rstrip("_")
    return plain if plain[:1].isalpha() else f"x{plain}"


def _trajectories(table: SignalTable) -> dict[str, Any]:
    """Return the matrices that Modelica's tools read, each with one column per variable or time."""
    columns, units = table.columns(), table.units
    count = len(columns)
    described = [f"[{units[name]}]" if units.get(name) else "" for name in columns]
    about = np.zeros((4, count), dtype=np.int32)
    about[0], about[1], about[3] = 2, np.arange(1, count + 1), -1
    about[0, 0] = 0  # the times
    data = np.vstack([*columns.values()])
    return {
        "Aclass": np.array(["Atrajectory", "1.1", "", "binTrans"]),
        "name": _letters(list(columns)),
        "description": _letters(described),
        "dataInfo": about,
        "data_1": np.array([[data[0, 0], data[0, -1]]]).reshape(1, 2),
        "data_2": data,
    }


def _letters(texts: list[str]) -> Any:
    """Return a matrix of letters with one column per text."""
    plain = [text.encode("ascii", "replace").decode() for text in texts]
    width = max(1, *map(len, plain))
    return np.ascontiguousarray(np.array([list(text.ljust(width)) for text in plain]).T)
