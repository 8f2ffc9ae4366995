"""Executors: the parts of a sweep sent out to threads, processes or machines, and taken back.

Any executor with the interface of ``concurrent.futures`` does. A job travels to each worker of
another process once, as bytes, and parts refer to it; which worker gets which part is up to the
executor, and does not show in the numbers. Pickle finds functions and classes by their names.
Objects without a name that is valid elsewhere, such as a lambda or a class of the running script,
are sent by value if cloudpickle is installed, and refused otherwise.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import pickle
import platform
import sys
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from types import FunctionType
from typing import Any, NoReturn, cast

import numpy as np

from flexure.diagrams.checks.arguments import shown
from flexure.diagrams.checks.errors import (
    DeclarationError,
    ExecutorError,
    FlexureError,
    ValueRefusedError,
)
from flexure.diagrams.concurrency.threads import Lock
from flexure.diagrams.systems.copying import Household
from flexure.diagrams.systems.system import System
from flexure.solvers.sweeps.running.chunks import Chunk, Job, Pace
from flexure.solvers.sweeps.running.sweep_record import Part

_SECONDS = 1.0  # of a chunk, about
_AT_ONCE = 2  # parts in flight for each worker: one that runs, and one that waits
_LOOK = 0.5  # s, after which it is looked whether somebody has interrupted
_COUNTED = 5.0  # s for which a number of workers is believed
_KEPT = 4  # jobs that a worker remembers
_NO_RUNS = np.empty(0, dtype=np.int64)


def checked_executor(executor: Any) -> Executor | None:
    """Return an executor; for a client of Dask, its executor."""
    if hasattr(executor, "get_executor"):
        executor = executor.get_executor()
    if executor is None or isinstance(executor, Executor):
        return executor
    raise ValueRefusedError(
        "Cannot use this executor",
        expected="an executor of concurrent.futures, or another one of its kind",
        found=shown(executor),
        remedy="Pass one such as ProcessPoolExecutor(), or client.get_executor() of Dask",
    )


class Workers:
    """An executor, of which it is known how many parts it can do at once."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._counted = -np.inf
        self._count = 1

    def __len__(self) -> int:
        """Return how many parts are done at once, which may change with time."""
        if time.monotonic() - self._counted > _COUNTED:
            self._count, self._counted = max(1, self._ask()), time.monotonic()
        return self._count

    def _ask(self) -> int:
        client = getattr(self._executor, "_client", None)
        if client is not None:  # of Dask, whose workers come and go
            return int(sum(client.ncores().values()))
        for name in ("_max_workers", "num_workers", "max_workers"):
            count = getattr(self._executor, name, None)
            if isinstance(count, int):
                return count
        return os.cpu_count() or 1


@dataclass(frozen=True)
class _Sender:
    """Sends parts of a job to an executor, with the job where it may not be known."""

    executor: Executor
    job: Job
    parcel: Parcel | None
    stopping: threading.Event = field(default_factory=threading.Event)

    def send(self, part: Part, *, whole: bool) -> Future[Chunk | None]:
        """Send a part, with the job if wanted."""
        if self.parcel is None:
            return self.executor.submit(self.job.run, part, self.stopping)
        parcel = self.parcel
        content = parcel.content if whole else None
        return self.executor.submit(
            run_part, parcel.digest, parcel.versions, content, parcel.address(part)
        )


def done_elsewhere(executor: Executor, job: Job, part: Part) -> Generator[Chunk]:
    """Have all runs of a part done by an executor; go through the chunks as they come back."""
    shares_memory = type(executor) is ThreadPoolExecutor
    parcel = None if shares_memory else Parcel.of(job, part)
    sender, workers, pace = _Sender(executor, job, parcel), Workers(executor), Pace(job, _SECONDS)
    waiting: dict[Future[Chunk | None], Part] = {}
    first, count, sent = 0, len(part.runs), 0
    try:
        while first < count or waiting:
            # Until a chunk is measured they are small, and what is small is costly.
            most = len(workers) * (_AT_ONCE if pace.known else 1)
            while first < count and len(waiting) < most:
                last = first + pace.size(count - first, len(workers))
                some = part.of(np.arange(first, last))
                waiting[sender.send(some, whole=sent < len(workers))] = some
                first, sent = last, sent + 1
            for future in wait(waiting, _LOOK, FIRST_COMPLETED).done:
                chunk, some = future.result(), waiting.pop(future)
                if chunk is None:
                    waiting[sender.send(some, whole=True)] = some
                    continue
                chunk.runs = some.runs
                pace.learn(chunk)
                yield chunk
    except (KeyboardInterrupt, Exception) as error:
        yield from _arrived(waiting)
        _raise(error, executor, job)
    finally:
        sender.stopping.set()
        for future in waiting:
            future.cancel()


def _arrived(waiting: dict[Future[Chunk | None], Part]) -> Iterator[Chunk]:
    """Go through the finished chunks that were not read yet."""
    for future, some in waiting.items():
        if future.done() and not future.cancelled() and future.exception() is None:
            chunk = future.result()
            if chunk is not None:
                chunk.runs = some.runs
                yield chunk


def _raise(error: BaseException, executor: Executor, job: Job) -> NoReturn:
    """Raise an error, in terms of the sweep where it is one of the executor."""
    if isinstance(error, (KeyboardInterrupt, FlexureError)):
        raise error
    raise ExecutorError(
        f"Cannot finish the sweep of '{job.settings.system.label}'",
        expected=f"that {type(executor).__name__} runs its tasks",
        found=" ".join(f"{type(error).__name__}: {error}".split()),
        remedy="The attribute 'result' of this error has the finished runs",
    ) from error


@dataclass(frozen=True)
class Parcel:
    """A job that can be sent."""

    job: Job  # what all parts have in common
    content: bytes  # the job, and a part without runs
    digest: str  # by which workers know it
    versions: dict[str, str]  # of the packages on which numbers depend

    @classmethod
    def of(cls, job: Job, whole: Part) -> Parcel:
        """Pack a job."""
        try:
            content = _packed((job, replace(whole.of(_NO_RUNS), breaks=np.array([np.inf]))))
        except Exception as error:
            label = job.settings.system.label
            what, reason = next(_culprits(job), (f"the sweep of '{label}'", error))
            raise DeclarationError(
                f"Cannot send {what} to other processes",
                expected="objects that can be pickled",
                found=str(reason),
                remedy="Define functions and classes in a module that workers can import, or "
                "install cloudpickle: pip install 'flexure[cluster]'",
            ) from error
        return cls(job, content, hashlib.blake2b(content, digest_size=16).hexdigest(), _versions())

    def address(self, part: Part) -> bytes:
        """Return what distinguishes a part from others."""
        cargo = part.variants.cargo(np.arange(len(part.runs)))
        return _packed((part.runs, cargo, part.steps, part.breaks), Household)


# In a worker -------------------------------------------------------------------------------

_jobs: dict[str, tuple[Job, Part]] = {}
_unpacking = Lock()


def run_part(
    digest: str, versions: dict[str, str], content: bytes | None, address: bytes
) -> Chunk | None:
    """Run a part of a job in this process; return None when the job is not known here."""
    with _unpacking:
        if digest not in _jobs:
            if content is None:
                return None
            _require_versions(versions)
            _jobs[digest] = _unpacked(content)
            _ = _jobs[digest][0].runner  # compiles
        job, none = _jobs[digest] = _jobs.pop(digest)  # the last one is the latest
        for other in list(_jobs)[:-_KEPT]:
            del _jobs[other]
    runs, cargo, steps, breaks = _unpacked(address, Household.of(job.settings.system))
    chunk = job.run(Part(runs, none.variants.loaded(cargo), steps, breaks))
    chunk.runs = _NO_RUNS  # whoever has asked knows them
    return chunk


def _unpacked(content: bytes, common: Household | None = None) -> Any:
    """Return what was packed."""
    unpickler = pickle.Unpickler(io.BytesIO(content))
    unpickler.persistent_load = lambda _: common  # type: ignore[method-assign]
    try:
        return unpickler.load()
    except Exception as error:
        raise ExecutorError(
            "Cannot unpack runs in a worker",
            expected="the modules of the diagram, as where the sweep was started",
            found=repr(error),
            remedy="Install them wherever the runs are run",
        ) from error


def _versions() -> dict[str, str]:
    """Return the versions of what numbers depend on."""
    face = sys.modules["flexure"]  # which is there before what is below it
    python = ".".join(platform.python_version_tuple()[:2])
    return {"flexure": face.__version__, "numpy": np.__version__, "python": python}


def _require_versions(versions: dict[str, str]) -> None:
    """Refuse to run what would give other numbers, or none."""
    mine = _versions()
    other = [name for name, version in versions.items() if mine[name] != version]
    if other:
        raise ExecutorError(
            "Cannot run a part of a sweep in a worker",
            expected=", ".join(f"{name} {versions[name]}" for name in other),
            found=", ".join(f"{name} {mine[name]}" for name in other),
            remedy="Install the same versions wherever the runs are run",
        )


# Packing -----------------------------------------------------------------------------------


class _ByName(pickle.Pickler):
    """Pickles what can be found elsewhere by its name, and nothing of the script that runs."""

    left_out: Any = ()

    def persistent_id(self, thing: Any) -> str | None:
        """Leave out everything that the receiver knows."""
        return "known" if isinstance(thing, self.left_out) else None

    def reducer_override(self, thing: Any) -> Any:
        """Refuse classes and functions of a script, whose name means another thing elsewhere."""
        if isinstance(thing, (type, FunctionType)) and thing.__module__ == "__main__":
            raise pickle.PicklingError(f"'{thing.__qualname__}' is defined in the script that runs")
        return NotImplemented


def _packed(thing: Any, left_out: Any = ()) -> bytes:
    """Return something as bytes, without the instances of some classes."""
    try:
        return _dumped(_ByName, thing, left_out)
    except Exception:
        if find_spec("cloudpickle") is None:
            raise
        kind = importlib.import_module("cloudpickle").CloudPickler
        return _dumped(
            type("_ByValue", (kind,), {"persistent_id": _ByName.persistent_id}), thing, left_out
        )


def _dumped(kind: Any, thing: Any, left_out: Any = ()) -> bytes:
    stream = io.BytesIO()
    pickler = kind(stream, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.left_out = left_out
    pickler.dump(thing)
    return stream.getvalue()


def _culprits(job: Job) -> Iterator[tuple[str, Exception]]:
    """Go through what cannot be pickled, and why."""
    for name, metric in job.measuring.metrics.items():
        yield from _faults(f"the metric '{name}'", metric)
    for system in cast("list[System]", Household.of(job.settings.system).members):
        yield from _faults(f"'{system.label}'", type(system))
        for name, value in system.__getstate__().items():
            yield from _faults(f"the attribute '{name}' of '{system.label}'", value)


def _faults(what: str, thing: Any) -> Iterator[tuple[str, Exception]]:
    """Say why something cannot be pickled, apart from the systems that it refers to."""
    try:
        _packed(thing, System)
    except Exception as error:
        yield what, error
