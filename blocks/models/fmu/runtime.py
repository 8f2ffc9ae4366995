"""Running FMUs: where they are unpacked, who may ask them, and processes of their own."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from flexure.blocks.models.fmu.archive import hash_of, unpack
from flexure.blocks.models.fmu.description import Facts
from flexure.blocks.models.fmu.instance import Instance, make
from flexure.diagrams.checks.errors import (
    DeclarationError,
    EvaluationError,
    FlexureError,
    SimulationError,
)
from flexure.diagrams.checks.extras import import_extra
from flexure.diagrams.concurrency.threads import Lock

_STATUS = {2: "discard", 3: "error", 4: "fatal"}


class Runtime:
    """An FMU that answers questions, one at a time.

    The binary is unpacked and loaded at the first question. A copy, also in another process, loads
    its own from the same file, and refuses a file that has changed.

    Parameters
    ----------
    label : str
        Name of the block, for messages.
    path, digest : str
        The file and its hash.
    facts : Facts
        Its description.
    isolated : bool
        Whether it runs in a process of its own.
    """

    def __init__(self, label: str, path: str, digest: str, facts: Facts, isolated: bool) -> None:
        self._label, self._path, self._digest = label, path, digest
        self._facts, self._isolated = facts, isolated
        self._lock = Lock()
        self._machine: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_lock": None, "_machine": None, "_finalizer": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())

    def ask(self, question: str, *arguments: Any) -> Any:
        """Ask a question, a method of `Instance`."""
        with self._lock:
            if self._machine is None:
                self._open()
            try:
                return getattr(self._machine, question)(*arguments)
            except FlexureError as error:
                is_over = isinstance(error, SimulationError)  # others are tried with shorter steps
                if is_over:
                    self.close()
                raise (SimulationError if is_over else EvaluationError)(
                    f"Cannot ask the FMU '{self._label}' for '{question}'",
                    expected=error.expected,
                    found=error.found,
                    remedy=error.remedy,
                ) from error
            except Exception as error:
                log = "; ".join(getattr(self._machine, "log", []))
                status = _STATUS.get(getattr(error, "status", 0))
                what = f"{getattr(error, 'function', '')} returned '{status}'" if status else error
                self.close()
                raise EvaluationError(
                    f"Cannot ask the FMU '{self._label}' for '{question}'",
                    expected="an answer",
                    found=f"{what!s:.300}" + (f"; its log says: {log}" if log else ""),
                ) from error

    def close(self) -> None:
        """Free the instance and remove what was unpacked; the next question loads it again."""
        if self._machine is not None:
            self._machine = None
            self._finalizer()

    def _open(self) -> None:
        attempt = f"Cannot load the FMU '{self._label}'"
        if hash_of(self._path, attempt) != self._digest:
            raise DeclarationError(
                attempt,
                expected="the file with which the block was made",
                found=f"another one at {self._path!r}",
                remedy="Make the block again",
            )
        folder = unpack(self._path, attempt)
        try:
            require_binary(folder, self._facts, attempt)
            start = Remote if self._isolated else make
            self._machine = start(folder, self._facts)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._finalizer = weakref.finalize(self, _remove, self._machine, folder, os.getpid())


def require_binary(folder: Path, facts: Facts, attempt: str) -> None:
    """Refuse an FMU without a binary for this platform."""
    fmpy = import_extra("fmpy", "fmi", attempt)
    place = fmpy.platform if facts.version == "2.0" else fmpy.platform_tuple
    binaries = folder / "binaries"
    if not (binaries / place / f"{facts.identifier}{fmpy.sharedLibraryExtension}").is_file():
        others = sorted(each.name for each in binaries.iterdir()) if binaries.is_dir() else []
        raise DeclarationError(
            attempt,
            expected=f"a binary for '{place}', the platform of this computer",
            found=f"binaries for {', '.join(others)}" if others else "no binaries",
            remedy="Export the FMU for this platform, or compile the sources in it",
        )


def _remove(machine: Any, folder: Path, process: int) -> None:
    """Free an instance and remove its folder, unless this is a fork of its process."""
    if os.getpid() != process:
        return
    with suppress(Exception):  # an FMU that failed may also fail to end
        machine.close()
    shutil.rmtree(folder, ignore_errors=True)


class Remote:
    """An instance in a process of its own, which may crash without harm.

    Parameters are those of `Instance`.
    """

    def __init__(self, folder: Path | str, facts: Facts) -> None:
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from {__name__} import serve; serve()"
        )  # fmt: skip
        self.log: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._call((str(folder), facts))

    def __getattr__(self, question: str) -> Any:
        if question.startswith("_"):
            raise AttributeError(question)
        return lambda *arguments: self._call((question, arguments))

    def close(self) -> None:
        """End the process."""
        process = self._process
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with suppress(OSError):  # of a process that ended before
                stream.close()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _call(self, message: Any) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            pickle.dump(message, stdin)
            stdin.flush()
            is_fine, answer, self.log = pickle.load(stdout)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            code = self._process.wait()
            how = signal.Signals(-code).name if code < 0 else f"code {code}"
            raise SimulationError(
                "Cannot ask an FMU",
                expected="an answer",
                found=f"the end of its process, with {how}",
                remedy="Its binary crashed: report this to those who made it",
            ) from error
        if not is_fine:
            raise answer
        return answer


def serve() -> None:
    """Answer questions from the standard input until it ends."""
    with suppress(ImportError):  # on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no file
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the FMU prints is no answer
    questions = sys.stdin.buffer
    folder, facts = pickle.load(questions)
    instance = Instance(folder, facts)
    answer: Any = None
    is_fine = True
    while True:
        pickle.dump((is_fine, answer, instance.log), answers)
        answers.flush()
        try:
            question, arguments = pickle.load(questions)
        except EOFError:
            instance.close()
            return
        try:
            is_fine, answer = True, getattr(instance, question)(*arguments)
        except FlexureError as error:
            is_fine, answer = False, error
        except Exception as error:  # of FMPy; its own class may not be picklable
            is_fine, answer = False, RuntimeError(str(error))
