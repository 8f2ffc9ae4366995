"""Results in files: the signals of a run, how it ended, and what its numbers depend on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.arguments import file_path
from flexure.diagrams.checks.errors import (
    FlexureError,
    RecordFileError,
    UnknownNameError,
    suggestion,
)
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.context_files import from_dict, to_dict
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.interface.completion import HasSignals
from flexure.diagrams.interface.html import Shown
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.results.records import provenance
from flexure.solvers.results.records.exports import Series, SignalTable, StoredSignal, writing
from flexure.solvers.results.records.provenance import Entry, Provenance
from flexure.solvers.results.records.statistics import Statistics
from flexure.solvers.tracing.signals import Signal

if TYPE_CHECKING:
    from flexure.solvers.results.records.result import SimulationResult

_FORMAT = "flexure result 1"
_ABOUT = "about this file"  # which no signal is called, as paths have no spaces


def save_result(result: SimulationResult, table: SignalTable, path: str | Path) -> None:
    """Write a table of signals of a result to a file, in place of an older one or not at all."""
    name = file_path(path, "Cannot save a result")
    context = result.context
    try:
        values: Any = to_dict(context)
    except FlexureError:  # with values that have no such form
        values = None
    found = provenance.of_model(context) | provenance.of_versions()
    about = {
        "format": _FORMAT,
        "system": result.system.label,
        "outcome": result.outcome,
        "message": result.message,
        "statistics": asdict(result.statistics),
        "signals": {each.name: StoredSignal.of(each.reader) for each in table.series},
        "context": values,
        "provenance": [[*entry, text] for entry, text in found.items()],
    }
    arrays: dict[str, Any] = {**table.arrays(), _ABOUT: np.array(json.dumps(about))}
    what = f"Cannot save the simulation of '{result.system.label}'"
    with writing(name, binary=True, attempt=what) as file:
        np.savez_compressed(file, **arrays)


class StoredResult(Shown, HasSignals):
    """A result read from a file: saved signals, without the model.

    ``stored["plant.y"]`` is a signal at the times ``time``, of shape (k,), or (k, n) for several
    components. There is no motion between these times.

    Attributes
    ----------
    label : str
        What the system was called.
    outcome, message : str
        How the run ended.
    statistics : Statistics
        Counts of steps, evaluations and events.
    time : ndarray, shape (k,)
        Times in seconds; instants with jumps occur twice, unless others were asked for.
    provenance : dict
        What the numbers depend on: blocks, wires, values and versions.

    See Also
    --------
    load_result : Read one.
    simulate : Simulate a system.

    Examples
    --------
    >>> import flexure as fx
    >>> import tempfile
    >>> result = fx.simulate(fx.Ramp("ramp"), 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result.save(f"{folder}/ramp.npz")
    ...     stored = fx.load_result(f"{folder}/ramp.npz")
    >>> stored.outcome, float(stored["y"][-1])
    ('completed', 1.0)
    """

    def __init__(self, table: SignalTable, about: Mapping[str, Any]) -> None:
        self.label: str = about["system"]
        self.outcome: str = about["outcome"]
        self.message: str = about["message"]
        statistics = dict(about["statistics"])
        statistics["methods"] = [(t, name, why) for t, name, why in statistics["methods"]]
        self.statistics = Statistics(**statistics)
        self.time = freeze(table.time)
        self.provenance: Provenance = {
            Entry(kind, name): text for kind, name, text in about["provenance"]
        }
        self._values = about["context"]
        self._table = table
        self._signals: dict[str, FloatArray] = {
            each.name: freeze(each.values) for each in table.series
        }

    @property
    def signals(self) -> tuple[str, ...]:
        """Paths of the signals that were saved."""
        return tuple(self._signals)

    def __getitem__(self, signal: Signal) -> FloatArray:
        """Return a signal at the times ``time``: shape (k,) for one component, else (k, n)."""
        name = path_of(signal)
        if name not in self._signals:
            raise UnknownNameError(
                f"Cannot find the signal '{name}' in the stored result of '{self.label}'",
                remedy=suggestion(name, self._signals),
            )
        return self._signals[name]

    def unit_of(self, signal: Signal) -> str:
        """Return the unit of a signal; empty when it is not known."""
        self[signal]  # which refuses other names
        name = path_of(signal)
        return next(each.reader.unit for each in self._table.series if each.name == name)

    def context(self, system: System) -> Context:
        """Return a new context with the values at the end of the run.

        Parameters
        ----------
        system : System
            The model. It must be the one that was simulated.

        Raises
        ------
        RecordFileError
            When it is another model, or a block has values that cannot be stored.
        """
        attempt = f"Cannot make the context of the stored result of '{self.label}'"
        require_system(system, attempt)
        if self._values is None:
            raise RecordFileError(
                attempt,
                expected="values that are numbers, texts or lists",
                found="other ones, which were not saved",
            )
        now = provenance.of_model(system.create_default_context())
        found = provenance.differences(self.provenance, now, provenance.STRUCTURE)
        if found:  # or values might not fit
            raise RecordFileError(
                attempt, expected="the model that was simulated", found=f"differences: {found}"
            )
        return from_dict(system, self._values)

    def to_dict(self) -> dict[str, FloatArray]:
        """Return ``{"time": ..., path: values, ...}``."""
        return self._table.arrays()

    def columns(self) -> dict[str, FloatArray]:
        """Return the same as `to_dict`, with one entry per component."""
        return self._table.columns()

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with time as its index, and one column per component."""
        return self._table.to_pandas()

    def to_xarray(self) -> Any:
        """Return an xarray Dataset with the dimension time, and one variable per signal."""
        return self._table.to_xarray()

    def _pieces(self) -> Iterator[str]:
        from flexure.solvers.results.records.result_tables import stored_pieces

        return stored_pieces(self)

    def __repr__(self) -> str:
        return (
            f"<StoredResult of '{self.label}', {len(self.signals)} signals at {len(self.time)} "
            f"times, {self.outcome}>"
        )


def load_result(path: str | Path) -> StoredResult:
    """Read a result that `SimulationResult.save` wrote, without the model.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    StoredResult

    Raises
    ------
    RecordFileError
        When it cannot be read, or holds no result.

    See Also
    --------
    load_study : Read the runs of a sweep.

    Examples
    --------
    >>> import flexure as fx
    >>> import tempfile
    >>> result = fx.simulate(fx.Ramp("ramp"), 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result.save(f"{folder}/ramp.npz")
    ...     stored = fx.load_result(f"{folder}/ramp.npz")
    >>> bool((stored["y"] == result["y"]).all())
    True
    """
    name = file_path(path, "Cannot load a result")
    try:
        if not Path(name).is_file():
            raise OSError("no file of this name")
        # Opened here, as NumPy does not close what it cannot read.
        with Path(name).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            about = json.loads(str(file[_ABOUT]))
            if about["format"] != _FORMAT:
                raise ValueError(f"the format {about['format']!r:.80}")
            series = [
                Series(signal, StoredSignal.parse(*parts), _checked(file, signal))
                for signal, parts in about["signals"].items()
            ]
            return StoredResult(SignalTable(_checked(file, "time"), series), about)
    except FlexureError:
        raise
    except Exception as error:  # of whatever a damaged file makes NumPy stumble over
        raise RecordFileError(
            f"Cannot load a result from '{name}'",
            expected="a file that SimulationResult.save wrote",
            found=f"{type(error).__name__}: {error!s:.200}",
        ) from error


def _checked(file: Mapping[str, Any], name: str) -> FloatArray:
    """Return an array of numbers with as many rows as there are times."""
    values = np.asarray(file[name])
    if values.dtype != float or len(values) != len(file["time"]):
        raise ValueError(f"values of '{name}' that do not fit the times")
    return values
