"""Parcels: a job and its parts as bytes, which workers in other processes unpack.

A job travels to each worker once, which keeps it; parts refer to it. Pickle finds functions and
classes by their names. Objects without a name that is valid elsewhere, such as a lambda or a class
of the running script, are sent by value if cloudpickle is installed, and refused otherwise.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import pickle
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from types import FunctionType
from typing import Any, cast

import numpy as np

from flexure.diagrams.checks.errors import DeclarationError, ExecutorError
from flexure.diagrams.concurrency.threads import Lock
from flexure.diagrams.systems.copying import Household
from flexure.diagrams.systems.system import System
from flexure.solvers.sweeps.running.chunks import Chunk, Job
from flexure.solvers.sweeps.running.sweep_record import Part

_KEPT = 4  # jobs that a worker remembers
_NO_RUNS = np.empty(0, dtype=np.int64)


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
