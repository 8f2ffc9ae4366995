"""Columns of numbers in files: CSV, NumPy archives, MAT files, Modelica's results, Parquet, Arrow.

Measurements for blocks and fits are read here. Nothing in a file is run: archives with pickled
objects are refused.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import import_extra
from flexure.diagrams.checks.errors import FlexureError, ValueRefusedError, suggestion

#: Formats by the ends of names; every other name is that of a CSV file.
FORMATS = ".csv, .npz, .mat, .parquet, .arrow or .feather"


@dataclass(frozen=True)
class Columns:
    """Columns of one table."""

    # Arrays or lists of numbers by name, as they are in the source; empty cells are NaN.
    values: dict[str, Any]
    units: dict[str, str]  # units that the source states beside the names, by name
    lines: list[int]  # lines of the rows in a text file; empty for other sources

    def row(self, k: int) -> str:
        """Describe where a row is."""
        return f"line {self.lines[k]}" if self.lines else f"row {k}"

    def find(self, name: str, attempt: str) -> str:
        """Return the name of a column, which may be given without the unit behind it."""
        found = [each for each in self.values if name in (each, bare(each))]
        if name in self.values or len(found) == 1:
            return name if name in self.values else found[0]
        raise ValueRefusedError(
            attempt,
            expected=f"one column '{name}'",
            found="none" if not found else f"{len(found)} of them",
            remedy=suggestion(name, [bare(each) for each in self.values]),
        )

    def unit(self, name: str) -> str:
        """Return the unit of a column, as it is stated beside or behind its name."""
        _, bracket, unit = name.partition(" [")
        return unit.rstrip("]") if bracket else self.units.get(name, "")


def bare(name: str) -> str:
    """Return the name of a column without the unit in brackets behind it."""
    return name.partition(" [")[0]


def read_table(path: str, attempt: str) -> Columns:
    """Read the columns of a file in one of the formats.

    Refuses files that cannot be read, or are no tables of numbers. Parquet and Arrow need pyarrow.
    """
    suffix = Path(path).suffix.lower()
    read = {".npz": _npz, ".mat": _mat, ".parquet": _arrow, ".arrow": _arrow, ".feather": _arrow}
    if suffix not in read:
        return _csv(path, attempt)
    try:
        if not Path(path).is_file():
            raise FileNotFoundError("no file of this name")
        return read[suffix](path)
    except FlexureError:
        raise
    except Exception as error:  # of whatever a damaged file makes a library stumble over
        raise ValueRefusedError(
            attempt,
            expected=f"a {suffix} file with columns of numbers",
            found=f"{path!r}: {type(error).__name__}: {error!s:.200}",
        ) from error


def _csv(path: str, attempt: str) -> Columns:
    """Read a row of names, and rows of numbers below."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, row) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueRefusedError(
            attempt, expected="a CSV file that can be read", found=f"{path!r}: {error}"
        ) from error
    names = [name.strip() for name in rows[0][1]] if rows else []
    if len(rows) < 2 or len(set(names)) < len(names):
        raise ValueRefusedError(
            attempt,
            expected="a row of names, each once, and rows of numbers below",
            found=f"{len(rows)} rows in {path!r}, of which the first is {[names]}",
        )
    numbers: list[list[float]] = []
    for line, row in rows[1:]:
        if len(row) != len(names):
            raise ValueRefusedError(
                attempt,
                expected=f"{len(names)} entries in each row of {path!r}",
                found=f"{len(row)} entries in line {line}",
            )
        numbers.append([])
        for name, text in zip(names, row, strict=True):
            try:
                numbers[-1].append(float(text) if text.strip() else np.nan)
            except ValueError as error:
                raise ValueRefusedError(
                    attempt,
                    expected=f"numbers in the column '{name}' of {path!r}",
                    found=f"{text!r:.80} in line {line}",
                ) from error
    return Columns(
        dict(zip(names, np.array(numbers).T, strict=True)), {}, [line for line, _ in rows[1:]]
    )


def _npz(path: str) -> Columns:
    with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
        return spread({name: file[name] for name in file.files if file[name].dtype.kind in "biuf"})


def _arrow(path: str) -> Columns:
    form = "parquet" if path.lower().endswith(".parquet") else "feather"
    table = import_extra(f"pyarrow.{form}", attempt=f"Cannot read '{path}'").read_table(path)
    units = {
        field.name: field.metadata[b"unit"].decode()
        for field in table.schema
        if field.metadata and b"unit" in field.metadata
    }
    values = {name: table[name].to_numpy() for name in table.column_names}
    return Columns({k: v for k, v in values.items() if v.dtype.kind in "biuf"}, units, [])


def _mat(path: str) -> Columns:
    """Read a MAT file: variables and structures of them, or the result of a Modelica tool."""
    from scipy.io import loadmat, whosmat

    if {"Aclass", "dataInfo"} <= {name for name, *_ in whosmat(path, appendmat=False)}:
        return _modelica(loadmat(path, chars_as_strings=False, appendmat=False))
    content = loadmat(path, squeeze_me=True, simplify_cells=True, appendmat=False)
    units: dict[str, Any] = {}
    _flatten(content.pop("units", {}), "", units)
    values: dict[str, Any] = {}
    _flatten({k: v for k, v in content.items() if not k.startswith("__")}, "", values)
    numbers = {k: v for k, v in values.items() if np.asarray(v).dtype.kind in "biuf"}
    texts = {k: str(v) for k, v in units.items() if isinstance(v, str) and v}
    return spread(numbers, texts)


def _flatten(tree: Any, path: str, into: dict[str, Any]) -> None:
    """Collect what is in structures by path."""
    if isinstance(tree, Mapping):
        for name, each in tree.items():
            _flatten(each, f"{path}.{name}" if path else str(name), into)
    else:
        into[path] = tree


def _modelica(content: Mapping[str, Any]) -> Columns:
    """Read the trajectories of a Modelica tool: ``dataInfo`` says where each variable is."""
    # A variable is a row of ``data_1``, the constants, or of ``data_2``, the trajectories; a
    # negative number of a row is that of an alias with the opposite sign. Instants of events are
    # there twice; the values after them are read.
    is_transposed = "".join(content["Aclass"][3]).strip("\0 ") == "binTrans"

    def oriented(name: str) -> Any:
        return content[name] if is_transposed else content[name].T

    def texts(name: str) -> list[str]:  # one text per column
        return ["".join(column).strip("\0 ") for column in oriented(name).T]

    varying = np.asarray(oriented("data_2"), dtype=float)
    count = varying.shape[1]
    values: dict[str, Any] = {}
    units: dict[str, str] = {}
    for name, about, (block, row, *_) in zip(
        texts("name"), texts("description"), oriented("dataInfo").T, strict=True
    ):
        if block in (0, 2):
            series = varying[abs(row) - 1]
        else:
            series = np.full(count, oriented("data_1")[abs(row) - 1, 0], dtype=float)
        values[name] = series if row >= 0 else -series
        if about.endswith("]") and "[" in about:
            units[name] = about[about.rindex("[") + 1 : -1].partition("|")[0]
    if "Time" in values and "time" not in values:
        values["time"] = values.pop("Time")
    last = np.append(np.diff(values["time"]) != 0.0, True) if "time" in values else slice(None)
    return Columns({name: series[last] for name, series in values.items()}, units, [])


def spread(arrays: Mapping[str, Any], units: Mapping[str, str] | None = None) -> Columns:
    """Return columns, one for each component of arrays that have several."""
    values: dict[str, Any] = {}
    told: dict[str, str] = {}
    for name, array in arrays.items():
        rows = np.asarray(array)
        parts = {name: rows}
        if rows.ndim == 2:
            parts = {f"{name}[{k}]": rows[:, k] for k in range(rows.shape[1])}
        values |= parts
        told |= dict.fromkeys(parts, (units or {}).get(name, ""))
    return Columns(values, {name: unit for name, unit in told.items() if unit}, [])
