"""Signals as arrays, data frames, data sets and files, also for MATLAB and Modelica's tools."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import file_path, import_extra, one_of
from flexure.diagrams.checks.errors import RecordFileError
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.tracing.signals import Reader, Signal

#: Which values a table has at an instant at which something jumps.
Jumps: TypeAlias = Literal["both", "before", "after"]
_ROWS = 10_000  # of a table that are written at once


class StoredSignal(NamedTuple):
    """The description of a signal by a `Reader`, without its values."""

    shape: tuple[int, ...]  # shape of the signal at one time
    unit: str  # physical unit; empty when it is unknown
    labels: list[Any]  # names of its components, or their numbers
    doc: str  # one line of documentation

    @classmethod
    def of(cls, reader: Reader | StoredSignal) -> StoredSignal:
        """Return what a reader says."""
        return cls(reader.shape, reader.unit, reader.labels, reader.doc)

    @classmethod
    def parse(cls, shape: Any, unit: Any, labels: Any, doc: Any) -> StoredSignal:
        """Return what a file says."""
        return cls(tuple(map(int, shape)), str(unit), list(labels), str(doc))

    @property
    def size(self) -> int:
        """Number of components."""
        return prod(self.shape)


class Series(NamedTuple):
    """A signal at the times of a table."""

    name: str  # its path
    reader: Reader | StoredSignal  # what was read
    values: FloatArray  # one row per time, shape (k,) or (k, n)

    def columns(self) -> dict[str, FloatArray]:
        """Return one entry per component."""
        if self.values.ndim == 1:
            return {self.name: self.values}
        labels = self.reader.labels
        return {f"{self.name}[{label}]": self.values[:, k] for k, label in enumerate(labels)}


class SignalTable(NamedTuple):
    """Signals at common times."""

    time: FloatArray  # the times in seconds, shape (k,)
    series: list[Series]  # the signals

    @property
    def units(self) -> dict[str, str]:
        """Units by column; empty where they are unknown."""
        pairs = [(name, each.reader.unit) for each in self.series for name in each.columns()]
        return {"time": "s"} | dict(pairs)

    def columns(self) -> dict[str, FloatArray]:
        """Return one entry per component, the times first."""
        table = {"time": self.time}
        for each in self.series:
            table |= each.columns()
        return table

    def arrays(self) -> dict[str, FloatArray]:
        """Return one entry per signal, the times first."""
        return {"time": self.time} | {each.name: each.values for each in self.series}

    def to_csv(self, path: str | Path, with_units: bool) -> None:
        """Write a file with one column per component."""
        columns, known = self.columns(), self.units if with_units else {}
        with writing(path, newline="") as file:
            writer = csv.writer(file)
            writer.writerow(f"{c} [{known[c]}]" if known.get(c) else c for c in columns)
            for first in range(0, len(self.time), _ROWS):  # numbers as objects take much memory
                some = (column[first : first + _ROWS].tolist() for column in columns.values())
                writer.writerows(
                    [repr(number) for number in row] for row in zip(*some, strict=True)
                )

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with time as its index."""
        pandas = import_extra("pandas")
        columns = self.columns()
        time = columns.pop("time")
        frame = pandas.DataFrame(columns, index=pandas.Index(time, name="time"))
        frame.attrs["units"] = self.units
        return frame

    def to_arrow(self) -> Any:
        """Return a pyarrow Table with the units in the metadata of its fields."""
        return arrow_table(self.columns(), self.units)

    def to_xarray(self) -> Any:
        """Return an xarray Dataset with the dimension time."""
        xarray = import_extra("xarray")
        variables: dict[str, Any] = {}
        coordinates: dict[str, Any] = {"time": ("time", self.time, {"units": "s"})}
        for name, reader, values in self.series:
            known = {"units": reader.unit, "long_name": reader.doc}
            notes = {key: text for key, text in known.items() if text}
            dims = ["time", f"{name}_component"][: values.ndim]
            variables[name] = (dims, values, notes)
            coordinates |= dict.fromkeys(dims[1:], reader.labels)
        return xarray.Dataset(variables, coords=coordinates)


def arrow_table(columns: Mapping[str, Any], units: Mapping[str, str]) -> Any:
    """Return a pyarrow Table with the units in the metadata of its fields."""
    pyarrow = import_extra("pyarrow")
    arrays = [pyarrow.array(column) for column in columns.values()]
    fields = [
        pyarrow.field(name, array.type, metadata={"unit": units.get(name, "")})
        for name, array in zip(columns, arrays, strict=True)
    ]
    return pyarrow.table(arrays, schema=pyarrow.schema(fields))


class Exported:
    """The exports of a result: its signals as arrays, files, data frames and data sets."""

    def _table(
        self, signals: Iterable[Signal] | None, times: npt.ArrayLike | None, jumps: Jumps
    ) -> SignalTable:
        raise NotImplementedError

    def to_dict(
        self,
        signals: Iterable[Signal] | None = None,
        times: npt.ArrayLike | None = None,
        jumps: Jumps = "both",
    ) -> dict[str, FloatArray]:
        """Return ``{"time": ..., path: values, ...}`` for some or all signals.

        Parameters
        ----------
        signals : iterable of Handle or str, optional
            What to export; all signals when omitted.
        times : array_like, optional
            When, ascending, in seconds; the times of the steps when omitted.
        jumps : {"both", "before", "after"}
            Which values an instant has at which something jumps: both, in two rows of equal time,
            or those before or after, so that every time is there once.
        """
        return self._table(signals, times, jumps).arrays()

    def columns(
        self,
        signals: Iterable[Signal] | None = None,
        times: npt.ArrayLike | None = None,
        jumps: Jumps = "both",
    ) -> dict[str, FloatArray]:
        """Return the same as `to_dict`, with one entry per component."""
        return self._table(signals, times, jumps).columns()

    def to_csv(
        self,
        path: str | Path,
        signals: Iterable[Signal] | None = None,
        times: npt.ArrayLike | None = None,
        jumps: Jumps = "both",
        with_units: bool = False,
    ) -> None:
        """Write a table with one column per component; numbers keep every bit.

        Parameters
        ----------
        path : str or Path
            Where to write it.
        signals, times, jumps
            As for `to_dict`.
        with_units : bool
            Whether the names of the columns are followed by the units, as in ``"y [rad]"``: those
            of `unit_of`, as far as they are known.
        """
        self._table(signals, times, jumps).to_csv(path, with_units)

    def to_npz(
        self,
        path: str | Path,
        signals: Iterable[Signal] | None = None,
        times: npt.ArrayLike | None = None,
        jumps: Jumps = "both",
    ) -> None:
        """Write a NumPy archive with one array per signal; options are those of `to_dict`."""
        arrays: Mapping[str, Any] = self.to_dict(signals, times, jumps)
        name = file_path(path, "Cannot write a file")
        with writing(name if name.endswith(".npz") else f"{name}.npz", binary=True) as file:
            np.savez_compressed(file, **arrays)

    def to_pandas(
        self,
        signals: Iterable[Signal] | None = None,
        times: npt.ArrayLike | None = None,
        jumps: Jumps = "after",
    ) -> Any:
        """Return a pandas DataFrame with time as its index, and one column per component.

        Options are those of `to_dict`; unless ``jumps`` is "both", every time is there once, as
        pandas needs it to select rows. ``attrs["units"]`` has the units by column.
        """
        return self._table(signals, times, jumps).to_pandas()

    def to_xarray(
        self,
        signals: Iterable[Signal] | None = None,
        times: npt.ArrayLike | None = None,
        jumps: Jumps = "after",
    ) -> Any:
        """Return an xarray Dataset with the dimension time, and one variable per signal.

        Options are those of `to_dict`; unless ``jumps`` is "both", every time is there once, as
        xarray needs it to select. Components are selected by name or number along the dimension
        ``"<signal>_component"``; ``attrs["units"]`` of a variable is its unit.
        """
        return self._table(signals, times, jumps).to_xarray()

    def to_mat(
        self,
        path: str | Path,
        signals: Iterable[Signal] | None = None,
        times: npt.ArrayLike | None = None,
        jumps: Jumps = "both",
        form: Literal["structures", "modelica"] = "structures",
    ) -> None:
        """Write a MAT file for MATLAB, Octave, or the tools of Modelica.

        Parameters
        ----------
        path : str or Path
            Where to write it.
        signals, times, jumps
            As for `to_dict`.
        form : {"structures", "modelica"}
            The variable ``time`` and one structure per block, so that the signal "plant.y" is
            ``plant.y`` in MATLAB, with the units in a structure ``units``; or the trajectories that
            Dymola and OpenModelica write, with one variable per component.

        Raises
        ------
        RecordFileError
            When the file cannot be written, or two signals have one name in MATLAB.
        """
        write_mat(self._table(signals, times, jumps), path, form)

    def to_arrow(
        self,
        signals: Iterable[Signal] | None = None,
        times: npt.ArrayLike | None = None,
        jumps: Jumps = "after",
    ) -> Any:
        """Return a pyarrow Table with one column per component, the times first.

        Options are those of `to_dict`. The metadata of a field hold its unit.
        """
        return self._table(signals, times, jumps).to_arrow()

    def to_parquet(
        self,
        path: str | Path,
        signals: Iterable[Signal] | None = None,
        times: npt.ArrayLike | None = None,
        jumps: Jumps = "after",
    ) -> None:
        """Write a Parquet file with the table of `to_arrow`, which pandas and others read."""
        table = self.to_arrow(signals, times, jumps)
        with writing(path, binary=True) as file:
            import_extra("pyarrow.parquet").write_table(table, file)


@contextmanager
def writing(
    path: str | Path,
    newline: str | None = None,
    *,
    binary: bool = False,
    attempt: str = "Cannot write signals",
) -> Iterator[IO[Any]]:
    """Open a file that takes the place of another one once all of it is written."""
    try:
        with replacing(path, newline, binary=binary) as file:
            yield file
    except OSError as error:
        raise RecordFileError(
            f"{attempt} to '{path}'",
            expected="the name of a file that can be written, and room for it",
            found=error.strerror or str(error),
            remedy="A file of this name is unchanged",
        ) from error


def make_table(
    names: Sequence[str],
    readers: Sequence[Reader],
    sample: Callable[[FloatArray], list[FloatArray]],
    grid: FloatArray,
    jumps: Jumps,
) -> SignalTable:
    """Sample signals at times, of which those with jumps may be there twice.

    ``sample(times)`` returns arrays; the first of two equal times means before a jump, and a single
    one or the second after it. ``jumps`` is what to keep of two equal times: "both", "before" or
    "after".
    """
    one_of(jumps, get_args(Jumps), "jumps", "Cannot make a table of signals")
    step = 1
    if jumps != "both":
        grid = np.unique(grid)
    if jumps == "before":
        grid, step = np.repeat(grid, 2), 2
    values = [array[::step] for array in sample(grid)]
    series = [Series(*each) for each in zip(names, readers, values, strict=True)]
    return SignalTable(np.array(grid[::step]), series)


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
