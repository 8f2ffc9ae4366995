"""Executors: the parts of a sweep sent out to threads, processes or machines, and taken back.

Any executor with the interface of ``concurrent.futures`` does. Each worker gets the job once; which
worker gets which part is up to the executor, and does not show in the numbers.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from flexure.diagrams.checks.arguments import shown
from flexure.diagrams.checks.errors import ExecutorError, FlexureError, ValueRefusedError
from flexure.solvers.sweeps.running.chunks import Chunk, Job, Pace
from flexure.solvers.sweeps.running.job_serialization import Parcel, run_part
from flexure.solvers.sweeps.running.sweep_record import Part

_SECONDS = 1.0  # of a chunk, about
_AT_ONCE = 2  # parts in flight for each worker: one that runs, and one that waits
_LOOK = 0.5  # s, after which it is looked whether somebody has interrupted
_COUNTED = 5.0  # s for which a number of workers is believed


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
    """Have all runs of a part done by an executor; go through the chunks as they come back.

    A job that cannot be pickled is refused before anything runs.
    """
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
