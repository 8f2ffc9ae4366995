"""Files of studies: opened by one process at a time, written chunk by chunk, never half."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice, repeat
from pathlib import Path

import numpy as np

from flexure.diagrams.checks.errors import RecordFileError, quoted, warn
from flexure.diagrams.concurrency.deferred_interrupt import DeferredInterrupt
from flexure.diagrams.concurrency.threads import Lock
from flexure.solvers.results.records.provenance import differences
from flexure.solvers.sweeps.plans.plans import by_component
from flexure.solvers.sweeps.running.chunks import Chunk
from flexure.solvers.sweeps.running.metric_columns import MetricColumns
from flexure.solvers.sweeps.running.sweep_record import FAILED, INTERRUPTED, SweepRecord
from flexure.solvers.sweeps.store import study_tables as tables
from flexure.solvers.sweeps.store.study_tables import Outline

_PATIENCE = 60.0  # s, for others that read
_FAR = 1 << 20  # the byte that is locked, where Windows lets others read the rest
_held: set[str] = set()  # by this process, in which the operating system sees no conflict
_guard = Lock()


class StudyFile:
    """A study on disk that is going on.

    A file with finished runs must be about the same as ``outline``, with a plan that contains
    them; ``force`` deletes the runs of another study and starts again.
    """

    def __init__(self, path: Path, outline: Outline, force: bool = False) -> None:
        self._attempt = f"Cannot keep the study of '{outline.label}' in '{path}'"
        self._outline = outline
        self._lock = StudyLock(path)
        journal = Path(f"{os.path.realpath(path)}-journal")
        if journal.exists() and journal.stat().st_size:
            warn(
                f"An earlier process was ended while it wrote to '{path}', as '{journal.name}' "
                "shows: its unfinished writes are undone, and these runs are repeated"
            )
        try:
            with _blaming(self._attempt):
                self._connection = _connect(path, "rwc")
                try:
                    # Half as many waits for the disk as by default; a study stands still in each.
                    self._connection.execute("PRAGMA synchronous = NORMAL")
                    with self._transaction():
                        self._begin(force)
                    self._connection.execute("PRAGMA journal_mode = TRUNCATE")
                except BaseException:
                    self._connection.close()
                    raise
        except BaseException:
            self._lock.release()
            raise

    def _begin(self, force: bool) -> None:
        """Make the tables, or see that those that are there belong to the same study."""
        connection = self._connection
        runs: list[int] = []
        if _is_study(connection, self._attempt) and not force:
            for (text,) in connection.execute("PRAGMA quick_check(1)"):
                if text != "ok":
                    raise sqlite3.DatabaseError(str(text))
            runs = [run for (run,) in connection.execute("SELECT run FROM runs ORDER BY run")]
        if runs:
            self._go_on(tables.read_outline(connection), runs)
        else:
            tables.create(connection, self._outline)

    def _go_on(self, old: Outline, runs: list[int]) -> None:
        """Take over the finished runs of the same study."""
        new = self._outline
        found = differences(old.provenance, new.provenance)
        if found:
            raise RecordFileError(
                self._attempt,
                expected="the model, options and versions with which its runs were made",
                found=f"differences: {found}",
                remedy="Name another file, or pass force=True to discard its runs and start again",
            )
        shapes = [
            {path: column.shape[1:] for path, column in outline.plan.columns().items()}
            for outline in (old, new)
        ]
        places = tables.places_in(old.plan, runs, new.plan) if shapes[0] == shapes[1] else [None]
        missing = places.count(None)
        if missing:
            found = f"{missing} of its {len(runs)} finished runs missing in the plan"
            if shapes[0] != shapes[1]:
                found = f"{quoted(new.plan.paths)} in the plan, and {quoted(old.plan.paths)} there"
            raise RecordFileError(
                self._attempt,
                expected="a plan with all runs that are finished there, in any order",
                found=found,
                remedy="Add the plans, old + new, name another file, or pass force=True to discard "
                "its runs and start again",
            )
        if old.plan != new.plan:
            _read_done(self._connection, old)  # so that no damage is sealed
            pairs = zip(runs, places, strict=True)
            moved = {run: place for run, place in pairs if place is not None}
            tables.renumber(self._connection, moved)
            tables.write_plan(self._connection, new)

    def done(self) -> list[Chunk]:
        """Return what the finished runs did, if there are any."""
        with _blaming(self._attempt):
            chunk = _read_done(self._connection, self._outline)
        return [chunk] if len(chunk.runs) else []

    def write(self, chunk: Chunk) -> None:
        """Write runs that are finished, all or none; an interruption waits until that is done."""
        record, outline = chunk.record, self._outline
        rows = np.flatnonzero([outcome != INTERRUPTED for outcome in record.outcomes])
        runs = chunk.runs[rows]
        numbers = runs.tolist()
        values = by_component(outline.plan[runs].columns()).values()
        columns = [*islice(values, outline.value_count)]
        columns += [chunk.metrics.columns[name][rows] for name in outline.metrics]
        cells = zip(
            numbers,
            *(column.tolist() for column in columns),
            [record.outcomes[row] for row in rows],
            [record.failures.get(row) for row in rows.tolist()],
            record.steps[rows].tolist(),
            tables.rows_of_blobs(record.finals[rows]),
            strict=True,
        )
        now = datetime.now(UTC).isoformat(timespec="seconds")
        patience = DeferredInterrupt()
        with patience, _blaming(self._attempt), self._transaction():
            connection = self._connection
            width = len(columns) + len(tables.OWN)
            connection.executemany(tables.insertion("runs", width), map(tables.sealed, cells))
            for path, sample in zip(outline.signals, record.samples, strict=True):
                blobs = zip(numbers, repeat(path), tables.rows_of_blobs(sample[rows]), strict=False)
                sealed = map(tables.sealed, blobs)
                connection.executemany(tables.insertion("samples", 4), sealed)
            connection.execute(
                "INSERT INTO chunks (runs, seconds, finished) VALUES (?, ?, ?)",
                (len(numbers), chunk.cost, now),
            )
            # That of the first runs; the last ones may be too few for as many threads.
            connection.execute(
                "UPDATE study SET value = ? WHERE name = 'how' AND value = ''", (record.how,)
            )
        patience.deliver()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Write all that follows, or nothing of it."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def __enter__(self) -> StudyFile:
        return self

    def __exit__(self, *_: object) -> None:
        """Let others write to the file."""
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA journal_mode = DELETE")  # removes the journal
        self._connection.close()
        self._lock.release()


def read_study(path: Path, attempt: str) -> tuple[Outline, Chunk]:
    """Read a study: what it is about, and what its finished runs did."""
    with _blaming(attempt):
        if not path.is_file():
            remedy = "Check the name; the file is created with the first finished runs"
            raise RecordFileError(
                attempt, expected="a file", found="no file of this name", remedy=remedy
            )
        with closing(_connect(path, "ro")) as connection:
            connection.execute("BEGIN")  # so that all is as it was at one moment
            if not _is_study(connection, attempt):
                raise sqlite3.DatabaseError("an empty file")
            outline = tables.read_outline(connection)
            return outline, _read_done(connection, outline)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{Path(os.path.realpath(path)).as_uri()}?mode={mode}"
    return sqlite3.connect(
        address, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
    )


def _is_study(connection: sqlite3.Connection, attempt: str) -> bool:
    """Return whether a file is a study, not empty; refuse what is neither."""
    ((application,),) = connection.execute("PRAGMA application_id")
    ((version,),) = connection.execute("PRAGMA user_version")
    ((count,),) = connection.execute("SELECT count(*) FROM sqlite_master")
    if application == tables.APPLICATION and version == tables.FORMAT:
        return True
    if application or version or count:
        known = application == tables.APPLICATION
        raise RecordFileError(
            attempt,
            expected=f"a study of format {tables.FORMAT}" if known else "the file of a study",
            found=f"format {version}" if known else "a database of another program",
            remedy="It is unchanged",
        )
    return False


def _read_done(connection: sqlite3.Connection, outline: Outline) -> Chunk:
    """Read what the finished runs did; all of it is as it was written."""
    rows = connection.execute("SELECT * FROM runs ORDER BY run").fetchall()
    for row in rows:
        tables.require_sealed(row, "runs")
    ((told,),) = connection.execute("SELECT total(runs) FROM chunks")
    if told != len(rows):
        raise sqlite3.DatabaseError(f"{len(rows)} runs, of {told:g} that were written")
    count, times, measured = len(rows), len(outline.times), len(outline.metrics)
    columns = [*zip(*rows, strict=True)] or [()] * (len(outline.columns) + len(tables.OWN))
    runs, outcomes, reasons, steps, finals = columns[0], *columns[-5:-1]
    found = columns[1 + outline.value_count : 1 + outline.value_count + measured]
    numbers = np.array(runs, dtype=np.int64)
    samples = [np.full((count, times, each.size), np.nan) for each in outline.signals.values()]
    for path, sample in zip(outline.signals, samples, strict=True):
        blobs = connection.execute("SELECT * FROM samples WHERE signal = ? ORDER BY run", (path,))
        known = []
        for row, cells in enumerate(blobs):
            tables.require_sealed(cells, "samples")
            known.append(cells[0])
            if runs[row : row + 1] != (cells[0],):
                break
            sample[row] = tables.from_blob(cells[2], *sample.shape[1:])
        if known != [*runs]:
            raise sqlite3.DatabaseError(f"samples of '{path}' that are not those of the runs")
    if count and not 0 <= numbers[0] <= numbers[-1] < len(outline.plan):
        raise sqlite3.DatabaseError("runs that are not in its plan")
    ((how,),) = connection.execute("SELECT value FROM study WHERE name = 'how'")
    record = SweepRecord(
        finals=tables.from_blob(b"".join(finals), count, len(outline.states)),
        samples=samples,
        steps=np.array(steps, dtype=np.int64),
        outcomes=list(outcomes),
        failures={row: text for row, text in enumerate(reasons) if outcomes[row] == FAILED},
        how=how,
    )
    metrics = MetricColumns(outline.metrics, count)
    for name, column in zip(outline.metrics, found, strict=True):
        metrics.columns[name][:] = column
    return Chunk(numbers, record, metrics, 0.0)


@contextmanager
def _blaming(attempt: str) -> Iterator[None]:
    """Turn errors of SQLite and of damaged contents into a `RecordFileError`."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        expected = "a file that can be read and written"
        if "full" in text:
            expected = "room on the disk"
        elif "not a database" in text or "malformed" in text or "damage" in text:
            expected = "the file of a study, as it was written"
        raise RecordFileError(
            attempt, expected=expected, found=text, remedy="The stored runs are unchanged"
        ) from error
    except (
        *(AttributeError, IndexError, KeyError, MemoryError, OverflowError),
        *(RecursionError, TypeError, ValueError),
    ) as error:
        raise RecordFileError(
            attempt,
            expected="the file of a study, as it was written",
            found=f"{type(error).__name__}: {error}",
        ) from error


class StudyLock:
    """The right to write to a file, from when it is made until `release`; others may read it.

    A lock of SQLite itself ends with each transaction, while a study has many. So it is a file of
    its own beside that of the study, which the operating system locks, and unlocks when the process
    ends, in whatever way. It says who holds it.
    """

    def __init__(self, path: Path) -> None:
        self._key = os.path.realpath(path)
        self._file = Path(f"{self._key}-lock")
        attempt = f"Cannot write to the study '{path}'"
        with _guard:
            if self._key in _held:
                self._refuse(attempt, f"process {os.getpid()}, this one, at work on it")
            try:
                self._descriptor = self._locked(attempt)
            except OSError as error:
                raise RecordFileError(
                    attempt,
                    expected="a folder in which files can be written",
                    found=error.strerror or str(error),
                ) from error
            _held.add(self._key)
        holder = f"process {os.getpid()} on {platform.node()}".encode()
        with suppress(OSError):  # a full disk, of which the study itself will tell
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, holder)

    def _locked(self, attempt: str) -> int:
        """Open the file that is beside the study, and lock it."""
        while True:
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o666)
            if not _take(descriptor):
                holder = os.read(descriptor, 200).decode(errors="replace")
                os.close(descriptor)
                self._refuse(attempt, f"{holder or 'another process'} at work on it")
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), self._file.stat()):
                    return descriptor
            os.close(descriptor)  # its last holder has just removed it

    def _refuse(self, attempt: str, found: str) -> None:
        raise RecordFileError(
            attempt,
            expected="no other process that writes to it",
            found=found,
            remedy="Wait for its end, or read what is done with fx.load_study",
        )

    def release(self) -> None:
        """Let others write."""
        with _guard:
            if sys.platform == "win32":  # where open files cannot be removed
                os.close(self._descriptor)
                with suppress(OSError):
                    self._file.unlink()
            else:
                with suppress(OSError):
                    self._file.unlink()
                os.close(self._descriptor)
            _held.discard(self._key)


def _take(descriptor: int) -> bool:
    """Lock an open file, unless another process has."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            import fcntl  # of a kind that forked processes do not inherit

            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.lseek(descriptor, 0, os.SEEK_SET)
        return False
    return True
