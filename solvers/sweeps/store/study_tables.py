"""The tables of a stored study: what is in them, and how plans and numbers get there and back.

What is one number or text has a column that SQL can compare; arrays are blobs of little-endian
64-bit floats, in C order. Columns of numbers have no declared type, as SQLite would lose the sign
of zero in those of reals. NaN is NULL.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.results.records.exports import StoredSignal
from flexure.solvers.results.records.provenance import Entry, Provenance
from flexure.solvers.sweeps.plans.plans import Axis, Plan, by_component
from flexure.solvers.sweeps.running.variants import Varied

APPLICATION = 0x464C5853  # "FLXS", by which programs know the file
FORMAT = 2
_MOST_COLUMNS = 1900  # of the 2000 that SQLite has
_FLOAT = np.dtype("<f8")

SCHEMA = """
CREATE TABLE study (name TEXT PRIMARY KEY, value);
CREATE TABLE provenance (kind TEXT, name TEXT, value TEXT, PRIMARY KEY (kind, name));
CREATE TABLE axes (
    axis INTEGER, name TEXT, path TEXT PRIMARY KEY, unit TEXT, doc TEXT, value_shape TEXT,
    shape TEXT, numbers BLOB
);
CREATE TABLE signals (signal TEXT PRIMARY KEY, shape TEXT, unit TEXT, labels TEXT, doc TEXT);
CREATE TABLE metrics (metric TEXT PRIMARY KEY, name TEXT, unit TEXT);
CREATE TABLE samples (
    run INTEGER, signal TEXT, numbers BLOB, digest BLOB, PRIMARY KEY (run, signal)
);
CREATE TABLE chunks (chunk INTEGER PRIMARY KEY, runs INTEGER, seconds REAL, finished TEXT);
"""
TABLES = ("study", "provenance", "axes", "signals", "metrics", "samples", "chunks", "runs")
#: Columns of the table of runs beside values and metrics.
OWN = ("run", "outcome", "reason", "steps", "final_states", "digest")
#: What the digest of the outline is about: the tables that are written with it, but not how runs
#: were run, which the first chunk tells.
_OUTLINE = ("study WHERE name NOT IN ('how', 'digest')", "provenance", "axes", "signals", "metrics")


@dataclass
class Outline:
    """The definition of a study, without results of its runs."""

    plan: Plan  # what the runs differ in
    provenance: Provenance  # what the numbers depend on
    label: str  # what the system is called
    t_final: float  # end of the runs in seconds
    times: FloatArray  # when signals are sampled, shape (K,)
    states: list[str]  # names of the continuous states
    signals: Mapping[str, StoredSignal]  # the signals that are kept, by path
    # The units of what is measured, by name; empty texts where they are not known.
    metrics: Mapping[str, str]
    varied: Mapping[str, Varied]  # what is known of what the runs differ in, by path
    # How the runs are integrated, as JSON of the options that were given; None when they have no
    # such form.
    integration: str | None
    # What the runs have in common, as the JSON of a saved context; None when it has no such form.
    context: str | None
    columns: list[str] = field(init=False)

    def __post_init__(self) -> None:
        """Name the columns of the table of runs; SQL does not tell capital letters from others."""
        values = list(by_component({k: c[:0] for k, c in self.plan.columns().items()}))
        if len(values) + len(self.metrics) + len(OWN) > _MOST_COLUMNS:
            values = []  # which are in the plan
        self.columns = []
        taken = set(OWN)
        for name in [*values, *self.metrics]:
            free, k = name, 2
            while free.casefold() in taken:
                free, k = f"{name} ({k})", k + 1
            taken.add(free.casefold())
            self.columns.append(free)
        self.value_count = len(values)

    @property
    def metric_columns(self) -> list[str]:
        """The columns of metrics."""
        return self.columns[self.value_count :]


def create(connection: sqlite3.Connection, outline: Outline) -> None:
    """Make the tables, and write what the study is about."""
    for table in TABLES:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    numbers = "".join(f"{quote(name)}, " for name in outline.columns)
    connection.execute(
        f"CREATE TABLE runs (run INTEGER PRIMARY KEY, {numbers}"
        "outcome TEXT, reason TEXT, steps INTEGER, final_states BLOB, digest BLOB)"
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    facts = {
        "system": outline.label,
        "t_final": outline.t_final,
        "times": to_blob(outline.times),
        "states": json.dumps(outline.states),
        "how": "",
        "integration": outline.integration,
        "context": outline.context,
    }
    connection.executemany("INSERT INTO study VALUES (?, ?)", facts.items())
    entries = [(*entry, text) for entry, text in outline.provenance.items()]
    connection.executemany("INSERT INTO provenance VALUES (?, ?, ?)", entries)
    signals = [
        (path, json.dumps(each.shape), each.unit, json.dumps(each.labels), each.doc)
        for path, each in outline.signals.items()
    ]
    connection.executemany("INSERT INTO signals VALUES (?, ?, ?, ?, ?)", signals)
    names = outline.metrics
    metrics = zip(outline.metric_columns, names, names.values(), strict=True)
    connection.executemany("INSERT INTO metrics VALUES (?, ?, ?)", metrics)
    write_plan(connection, outline)


def write_plan(connection: sqlite3.Connection, outline: Outline) -> None:
    """Write the plan in place of what was there."""
    connection.execute("DELETE FROM axes")
    rows = []
    for number, axis in enumerate(outline.plan.axes):
        for path, column in axis.columns.items():
            unit, doc, shape = outline.varied[path]
            about = (number, axis.name, path, unit, doc, json.dumps(shape))
            rows.append((*about, json.dumps(column.shape), to_blob(column)))
    connection.executemany(insertion("axes", 8), rows)
    connection.execute(
        "INSERT OR REPLACE INTO study VALUES ('digest', ?)", (_outlined(connection),)
    )


def _outlined(connection: sqlite3.Connection) -> bytes:
    """Return the digest of what a study is about."""
    tables = (connection.execute(f"SELECT * FROM {name} ORDER BY rowid") for name in _OUTLINE)
    return digest(*(cell for rows in tables for row in rows for cell in row))


def digest(*cells: Any) -> bytes:
    """Return the checksum of cells as they come back from a file: without NaN and signs of zero."""
    found = hashlib.blake2b(digest_size=8)
    for cell in cells:
        if isinstance(cell, float):
            text = "None" if math.isnan(cell) else repr(cell + 0.0)
        else:
            text = type(cell).__name__ if isinstance(cell, bytes) else repr(cell)
        data = cell if isinstance(cell, bytes) else b""
        told = text.encode("utf-8", "surrogatepass")
        found.update(f"{len(told)} {len(data)} ".encode() + told + data)
    return found.digest()


def sealed(cells: Sequence[Any]) -> tuple[Any, ...]:
    """Return cells of a row with their checksum behind them."""
    return (*cells, digest(*cells))


def require_sealed(row: Sequence[Any], table: str) -> None:
    """Refuse a row that is not what was written."""
    if digest(*row[:-1]) != row[-1]:
        raise sqlite3.DatabaseError(f"a damaged row of the table '{table}', run {row[0]!r}")


def read_outline(connection: sqlite3.Connection) -> Outline:
    """Read what a study is about."""
    seals = connection.execute("SELECT value FROM study WHERE name = 'digest'").fetchall()
    if seals != [(_outlined(connection),)]:
        raise sqlite3.DatabaseError("damaged data about the study")
    facts = dict(connection.execute("SELECT name, value FROM study"))
    entries = connection.execute("SELECT kind, name, value FROM provenance ORDER BY rowid")
    provenance = {Entry(kind, name): text for kind, name, text in entries}
    signals = {
        path: StoredSignal.parse(json.loads(shape), unit, json.loads(labels), doc)
        for path, shape, unit, labels, doc in connection.execute(
            "SELECT signal, shape, unit, labels, doc FROM signals ORDER BY rowid"
        )
    }
    metrics = dict(connection.execute("SELECT name, unit FROM metrics ORDER BY rowid"))
    return Outline(
        plan=_read_plan(connection),
        provenance=provenance,
        label=facts["system"],
        t_final=float(facts["t_final"]),
        times=from_blob(facts["times"]),
        states=list(json.loads(facts["states"])),
        signals=signals,
        metrics=metrics,
        varied={
            path: Varied(unit, doc, tuple(json.loads(shape)))
            for path, unit, doc, shape in connection.execute(
                "SELECT path, unit, doc, value_shape FROM axes"
            )
        },
        integration=facts["integration"],
        context=facts["context"],
    )


def _read_plan(connection: sqlite3.Connection) -> Plan:
    axes: dict[int, Axis] = {}
    rows = connection.execute("SELECT axis, name, path, shape, numbers FROM axes ORDER BY rowid")
    for number, name, path, shape, numbers in rows:
        axis = axes.setdefault(number, Axis(name, {}))
        axis.columns[path] = freeze(from_blob(numbers, *json.loads(shape)))
    return Plan(axes.values())


def places_in(old: Plan, runs: Iterable[int], new: Plan) -> list[int | None]:
    """Return where the values of some runs of a plan are in another one; None where nowhere.

    Runs with the same values are matched in order.
    """
    waiting: dict[bytes, list[int]] = {}
    for number, key in reversed(list(enumerate(_keys(new)))):
        waiting.setdefault(key, []).append(number)
    known = _keys(old)
    stacks = [waiting.get(known[run]) for run in runs]
    return [stack.pop() if stack else None for stack in stacks]


def _keys(plan: Plan) -> list[bytes]:
    """Return the values of each run, whatever the order of the paths."""
    columns = [column.reshape(len(column), -1) for _, column in sorted(plan.columns().items())]
    table = np.ascontiguousarray(np.hstack(columns), _FLOAT)
    return [row.tobytes() for row in table]


def renumber(connection: sqlite3.Connection, places: Mapping[int, int]) -> None:
    """Give runs other numbers."""
    pairs = [(-1 - new, old) for old, new in places.items() if new != old]
    for table in ("runs", "samples") if pairs else ():
        connection.executemany(f"UPDATE {table} SET run = ? WHERE run = ?", pairs)
        connection.execute(f"UPDATE {table} SET run = -1 - run WHERE run < 0")
        rows = connection.execute(f"SELECT rowid, * FROM {table}").fetchall()
        seals = [(digest(*cells), rowid) for rowid, *cells, _ in rows]
        connection.executemany(f"UPDATE {table} SET digest = ? WHERE rowid = ?", seals)


def to_blob(numbers: Any) -> bytes:
    """Write numbers as they are in files."""
    return np.ascontiguousarray(numbers, _FLOAT).tobytes()


def from_blob(data: bytes, *shape: int) -> FloatArray:
    """Read numbers of a file, of a shape; of any number when it is omitted."""
    return np.frombuffer(data, _FLOAT).astype(float).reshape(shape or -1)


def rows_of_blobs(table: FloatArray) -> list[bytes]:
    """Return the rows of an array as blobs."""
    data, size = to_blob(table), 8 * prod(table.shape[1:])
    return [data[k * size : (k + 1) * size] for k in range(len(table))]


def quote(name: str) -> str:
    """Write a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def insertion(table: str, count: int) -> str:
    """Return the statement that adds rows with so many columns."""
    return f"INSERT INTO {table} VALUES ({', '.join('?' * count)})"
