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

from flexure.blocks.models.fmu.description import Facts, hash_of, read_facts, unpack
from flexure.blocks.models.fmu.instance import Instance
from flexure.diagrams.checks.arguments import import_extra
from flexure.diagrams.checks.errors import (
    DeclarationError,
    EvaluationError,
    FlexureError,
    SimulationError,
)
from flexure.diagrams.concurrency.threads import Lock


class Runtime:
    """An FMU that answers questions, one at a time.

    The binary is loaded at the first question. A copy, also in another process, unpacks and loads
    its own from the same file, and refuses a file that has changed. ``kind`` is "me", "cs", or
    "auto" for the first of both that it offers; ``facts`` are its description. An isolated FMU runs
    in a process of its own.
    """

    _machine: Any = None
    _finalizer: Any = None

    def __init__(self, label: str, path: str, kind: str, isolated: bool) -> None:
        attempt = f"Cannot make the FMUBlock '{label}'"
        self._label, self._path, self._isolated = label, path, isolated
        self._lock = Lock()
        self._open(attempt, kind)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_lock": None, "_machine": None, "_finalizer": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())

    def ask(self, question: str, *arguments: Any) -> Any:
        """Ask a question, a method of `Instance`."""
        with self._lock:
            if self._machine is None:
                self._open(f"Cannot load the FMU '{self._label}'")
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
                log = "; ".join(self._machine.log)
                self.close()
                raise EvaluationError(
                    f"Cannot ask the FMU '{self._label}' for '{question}'",
                    expected="an answer",
                    found=f"{error!s:.300}" + (f"; its log says: {log}" if log else ""),
                ) from error

    def close(self) -> None:
        """Free the instance and remove what was unpacked; the next question loads it again."""
        if self._machine is not None:
            self._machine = None
            self._finalizer()

    def _open(self, attempt: str, kind: str = "") -> None:
        """Unpack the FMU; read its description if a kind is given, which is for the first time."""
        found = hash_of(self._path, attempt)
        if kind:
            self._digest = found
        if found != self._digest:
            raise DeclarationError(
                attempt,
                expected="the file with which the block was made",
                found=f"another one at {self._path!r}",
                remedy="Make the block again",
            )
        folder = unpack(self._path, attempt)
        try:
            if kind:
                self.facts = read_facts(folder, kind, attempt)
            require_binary(folder, self.facts, attempt)
            start = Remote if self._isolated else Instance
            self._machine = start(str(folder), self.facts)
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

    def __init__(self, folder: str, facts: Facts) -> None:
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from {__name__} import serve; serve()"
        )  # fmt: skip
        self.log: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._questions: Any = self._process.stdin
        self._answers: Any = self._process.stdout
        self._call((folder, facts))

    def __getattr__(self, question: str) -> Any:
        if question.startswith("_"):
            raise AttributeError(question)
        return lambda *arguments: self._call((question, arguments))

    def close(self) -> None:
        """End the process."""
        process = self._process
        for stream in (self._questions, self._answers):
            with suppress(OSError):  # of a process that ended before
                stream.close()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _call(self, message: Any) -> Any:
        try:
            pickle.dump(message, self._questions)
            self._questions.flush()
            is_fine, answer, self.log = pickle.load(self._answers)
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
