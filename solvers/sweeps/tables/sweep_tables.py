"""Sweeps as tables: columns with units, data frames, data sets with dimensions, and failures.

A placeholder takes the place of a model of which only the contents of a file are known.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.arguments import import_extra
from flexure.diagrams.checks.errors import ContextError
from flexure.diagrams.interface.html import fold, heading, note
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.tables import Table
from flexure.solvers.analysis.equations.equations import state_names
from flexure.solvers.results.records.exports import arrow_table, write_structures, writing
from flexure.solvers.sweeps.plans.plans import by_component
from flexure.solvers.sweeps.store.study_tables import Outline

if TYPE_CHECKING:
    from flexure.solvers.sweeps.sweep import Sweep


_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w)")
_FIRST = 5  # runs of a reason that a table names
_SHOWN = 10  # runs, and reasons, in a notebook
RUN = "run"  # the dimension of runs that have no plan


def numbers(sweep: Sweep) -> dict[str, FloatArray]:
    """Return one number for each run by name: components of values, and metrics."""
    return by_component(sweep.values) | sweep.metrics


def units(sweep: Sweep) -> dict[str, str]:
    """Return the units of `numbers`."""
    of_values = {
        name: sweep.units[path]
        for path, column in sweep.values.items()
        for name in by_component({path: column})
    }
    return of_values | {name: sweep.units[name] for name in sweep.metrics}


def reasons(sweep: Sweep) -> NDArray[np.object_]:
    """Return why each run failed; an empty text where it did not."""
    return np.array([sweep.failures.get(k, "") for k in range(len(sweep))], dtype=object)


def columns(sweep: Sweep) -> dict[str, Any]:
    """Return the columns of a table with a row for each run."""
    return {**numbers(sweep), "outcome": sweep.outcomes, "reason": reasons(sweep)}


def to_pandas(sweep: Sweep) -> Any:
    """Return a pandas DataFrame: a row for each run, with values, metrics, outcome and reason.

    Units are in ``frame.attrs["units"]``, by column.
    """
    pandas = import_extra("pandas")
    frame = pandas.DataFrame(columns(sweep), index=pandas.RangeIndex(len(sweep), name=RUN))
    frame.attrs["units"] = {name: unit for name, unit in units(sweep).items() if unit}
    return frame


def to_csv(sweep: Sweep, path: str | Path) -> None:
    """Write a CSV file with the columns of `to_pandas`, which begins with names.

    Parameters
    ----------
    path : str or Path
        Where to write it.

    Raises
    ------
    RecordFileError
        When the file cannot be written.
    """
    table = {RUN: np.arange(len(sweep)), **columns(sweep)}
    with writing(path, newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))


def to_mat(sweep: Sweep, path: str | Path) -> None:
    """Write a MAT file for MATLAB and Octave: a column for each value and metric.

    Parameters
    ----------
    path : str or Path
        Where to write it. Paths become structures, as "pid.kp" ``pid.kp``; units are in the
        structure ``units``, outcomes and the reasons of failures are texts.

    Raises
    ------
    RecordFileError
        When the file cannot be written, or two columns have one name in MATLAB.
    """
    known = units(sweep)
    pairs = {name: (each, known.get(name, "")) for name, each in columns(sweep).items()}
    write_structures(pairs, path, "Give metrics other names, or use to_parquet or to_pandas")


def to_parquet(sweep: Sweep, path: str | Path) -> None:
    """Write a Parquet file with the columns of `to_pandas`, and units as metadata of fields.

    Parameters
    ----------
    path : str or Path
        Where to write it. This requires pyarrow.

    Raises
    ------
    RecordFileError
        When the file cannot be written.
    """
    table = arrow_table(columns(sweep), units(sweep))
    with writing(path, binary=True) as file:
        import_extra("pyarrow.parquet").write_table(table, file)


def to_xarray(sweep: Sweep) -> Any:
    """Return an xarray Dataset with the dimensions of the plan.

    A grid has a dimension for each of its paths, with its values as coordinates. Samples have
    the dimension "sample", and given contexts "run", along which the values are coordinates.
    Metrics, signals, which have the dimension "time", too, final states, steps, outcomes and
    the reasons of failures are variables, and NaN where a run failed or was interrupted.
    Units are attributes. What is both varied and sampled, such as a state and where it begins,
    is called "... over time" as a signal.
    """
    xarray = import_extra("xarray")
    dims: tuple[str, ...] = (RUN,)
    shape: tuple[int, ...] = (len(sweep),)
    coordinates: dict[str, Any] = {}
    if sweep.plan is not None:
        dims, shape = sweep.plan.dims, sweep.plan.shape
        for path, (dim, values) in sweep.plan.coordinates.items():
            known = _attributes(*sweep._varied[path][:2])
            for name, column in by_component({path: values}).items():
                coordinates[name] = (dim, column, known)
    if RUN not in coordinates:
        coordinates[RUN] = (dims, np.arange(len(sweep)).reshape(shape))
    coordinates["time"] = ("time", sweep.times, {"units": "s"})
    variants = sweep._variants
    absent = isinstance(variants, AbsentModel)
    coordinates["state"] = variants.states if absent else state_names(variants.base())
    variables: dict[str, Any] = {
        name: (dims, column.reshape(shape), _attributes(sweep.units[name]))
        for name, column in sweep.metrics.items()
    }
    for path, reader in sweep._readers.items():
        samples, inner = sweep[path], ["time"]
        if reader.shape:
            inner.append(f"{path}_component")
            coordinates[inner[1]] = reader.labels
        name = f"{path} over time" if path in coordinates else path
        known = _attributes(reader.unit, reader.doc)
        variables[name] = ([*dims, *inner], samples.reshape(*shape, *samples.shape[1:]), known)
    finals = sweep.final_states
    variables["final_states"] = ([*dims, "state"], finals.reshape(*shape, finals.shape[1]))
    for name, kept in (
        ("steps", sweep.steps),
        ("outcome", sweep.outcomes),
        ("reason", reasons(sweep)),
    ):
        variables[name] = (dims, kept.reshape(shape))
    about = {"system": sweep.system.label, "t_final": sweep.t_final, "how": sweep.how}
    return xarray.Dataset(variables, coords=coordinates, attrs=about)


def _attributes(unit: str, doc: str = "") -> dict[str, str]:
    """Return what is known of a variable."""
    return {key: text for key, text in (("units", unit), ("long_name", doc)) if text}


def pieces(sweep: Sweep) -> Iterator[str]:
    """Show the first runs, with units, and why others failed; see `Sweep`."""
    count, failed = len(sweep), len(sweep.failures)
    about = f"{count} runs to {sweep.t_final:g} s" + f", {failed} failed" * bool(failed)
    yield heading("Sweep", sweep.system.label, about)
    known = units(sweep)
    first: dict[str, Any] = {"run": np.arange(min(count, _SHOWN))}
    for name, column in numbers(sweep).items():
        first[f"{name} [{known[name]}]" if known.get(name) else name] = column[:_SHOWN]
    first["outcome"] = sweep.outcomes[:_SHOWN]
    yield Table(first, zip(*map(list, first.values()), strict=True)).to_html()
    if count > _SHOWN:
        yield note(f"{count - _SHOWN} more runs; table() has all")
    if failed:
        table = failure_table(sweep)
        yield fold("Failures", table.to_html(_SHOWN), failed, opened=True)


def failure_table(sweep: Sweep) -> Table:
    """Return a table of the reasons why runs failed: how many, the first ones, the reason.

    Reasons that differ in numbers alone count as one, with ``#`` instead of the numbers. The
    most frequent one comes first; ``failures`` has the texts of all runs.
    """
    found: dict[str, list[int]] = {}
    for index, text in sorted(sweep.failures.items()):
        found.setdefault(_NUMBER.sub("#", text), []).append(index)
    rows = sorted(found.items(), key=lambda item: -len(item[1]))
    cells = [
        (len(runs), ", ".join(map(str, runs[:_FIRST])) + ", ..." * (len(runs) > _FIRST), text)
        for text, runs in rows
    ]
    return Table(("count", "runs", "reason"), cells)


class AbsentModel:
    """The system and the runs of a study that was loaded without its model."""

    def __init__(self, outline: Outline, path: str) -> None:
        self.label = outline.label  # what the system is called
        self.plan = outline.plan  # what the runs differ in
        self.varied = outline.varied  # what is known of it, by path
        self.states = outline.states  # names of the continuous states
        # The same as `plan`, as arrays of shape ``(N, *shape)``.
        self.values = {
            name: column.reshape(len(column), *outline.varied[name].shape)
            for name, column in outline.plan.columns().items()
        }
        self._path = path

    def __getattr__(self, name: str) -> Any:
        """Refuse what the model would know."""
        if name.startswith("__") or "_path" not in self.__dict__:
            raise AttributeError(name)
        raise ContextError(
            f"Cannot ask '{self.label}' for its {name.strip('_')}",
            expected="a study that was loaded with its model",
            found="one that was loaded without",
            remedy=f"Load it with fx.load_study({self._path!r}, system=...)",
        )

    def __repr__(self) -> str:
        return f"<model '{self.label}', which was not loaded>"


class AbsentMetrics(NamedTuple):
    """What is known of measurements without the functions that made them."""

    readers: Mapping[str, Any]  # what is known of the signals that were kept, by path
    times: FloatArray  # when they were sampled, shape (K,)
    units: Mapping[str, str]  # units of the metrics by name
