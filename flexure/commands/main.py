"""One command from its words to its end: errors as paragraphs, and exit codes."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
import traceback
import warnings
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flexure.commands import CUT_OFF, DONE, FAILED, INTERRUPTED, MISUSED, TERMINATED
from flexure.commands.parser import make_parser
from flexure.diagrams.checks.errors import FlexureError


def main(words: Sequence[str] | None = None) -> int:
    """Carry out one command, by default that of this process, and return its exit code.

    The code is 0 done, 1 an error of the model or the library, 2 invalid arguments, 3 done with
    findings, 130 interrupted, 141 the output is closed, 143 terminated; see `codes`.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # names of files and units are printed as far as it goes
            reconfigure(errors="backslashreplace")
    try:
        parser = make_parser()
        arguments = parser.parse_args(words)
        if arguments.command is None:
            parser.print_help()
            return _flushed(DONE)
        with _warnings_as_lines(), _removing_half_files():
            return _carried_out(arguments)
    except SystemExit as ending:  # after --help, --version and words that are not understood
        return _flushed(ending.code if isinstance(ending.code, int) else MISUSED)
    except BrokenPipeError:
        return _cut_off()
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except _Terminated:
        _complain("terminated")
        return TERMINATED


class _Terminated(BaseException):
    """SIGTERM arrived."""


@contextlib.contextmanager
def _removing_half_files() -> Any:
    """Turn SIGTERM into an exception, so that files that are being written are removed."""
    default = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if not default or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: Any) -> None:
        raise _Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _carried_out(arguments: Namespace) -> int:
    """Return the exit code of a command; its errors are printed."""
    try:
        return _flushed(_reported(arguments))
    except BrokenPipeError:
        raise
    except Exception as error:
        if arguments.debug:
            traceback.print_exc()
        else:
            _explain(error, getattr(arguments, "model", None))
        return FAILED


def _reported(arguments: Namespace) -> int:
    """Return the exit code of a command whose report is printed; one without a code is done."""
    from flexure.commands.command_output import Report

    file, _, name = arguments.function.partition(".")
    command = getattr(importlib.import_module(f"flexure.commands.{file}"), name)
    report = Report(arguments)
    with report.quiet():
        code = command(report, arguments)
    report.end()
    return DONE if code is None else int(code)


def _explain(error: Exception, model: str | None) -> None:
    """Say in a paragraph what went wrong, and on which line of the user."""
    from flexure.commands.arguments.model_files import own_line

    line = own_line(error, model)
    if isinstance(error, FlexureError):
        text = str(error)
    elif isinstance(error, SyntaxError) and error.lineno is not None:
        name = Path(error.filename or "").name
        line = f"{name}:{error.lineno}: {(error.text or '').strip()}"
        text = f"Cannot load the model '{model}': {error.msg}."
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"Cannot use '{error.filename}': {error.strerror or error}."
    else:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if line is None and not isinstance(error, MemoryError):
            text += " (--debug shows where)"
    _complain(f"error: {text}")
    if line is not None:
        print(f"    {line}", file=sys.stderr)


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):
        print(f"flexure: {text}", file=sys.stderr)


@contextlib.contextmanager
def _warnings_as_lines() -> Any:
    """Print warnings as lines of this program, unless the interpreter was told otherwise."""
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: _complain(f"warning: {message}")
        yield


def _flushed(code: int) -> int:
    """Return the exit code once all is written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _cut_off()
    return code


def _cut_off() -> int:
    """Write nothing more, as at ``| head``."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CUT_OFF
