"""The exceptions of Flexure: one hierarchy, with one pattern of messages.

::

    FlexureError
    ├── DeclarationError          a block declares something impossible or too late
    ├── WiringError               a builder call is rejected; the builder is unchanged
    │   └── AlgebraicLoopError    outputs that need themselves at the same instant
    ├── UnknownNameError          a path or name that does not exist (also a LookupError)
    ├── ContextError              a context is used with a system it does not belong to
    │   ├── ValueRefusedError     a value of wrong shape, kind or bound (also a ValueError)
    │   └── ContextFileError      a saved context that does not fit the system
    ├── EvaluationError           a block's equations cannot be evaluated
    │   └── TraceError            an equation needs the number of a symbol
    ├── SimulationError           a simulation cannot go on; carries its time
    │   ├── NonFiniteError        NaN or infinity in a derivative, a state or an output
    │   ├── StepSizeError         the step size collapsed
    │   ├── NoProgressError       steps are accepted but time hardly moves
    │   └── ZenoError             events pile up at one instant
    ├── RecordFileError           a stored study or result cannot be used or written
    ├── ExecutorError             runs of an executor did not return
    ├── NativeCodeError           native code was required and is not available
    └── MissingExtraError         an optional package is not installed (also an ImportError)

The text of every error follows the same order: what was attempted (with the paths), what was
expected, what was found, and what to do about it. The parts stay available as attributes.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class FlexureError(Exception):
    """Base of all errors that Flexure raises on purpose.

    Parameters
    ----------
    attempt : str
        What was attempted, with the paths it concerns, e.g. ``"Cannot connect 'a.y' to 'b.u'"``.
    expected : str, optional
        What would have been accepted.
    found : str, optional
        What was there instead.
    remedy : str, optional
        What the reader can do, as a sentence without its final period.

    Examples
    --------
    >>> print(FlexureError("Cannot open 'door'", expected="a key", found="none", remedy="Knock"))
    Cannot open 'door': expected a key; found none. Knock.
    """

    def __init__(
        self,
        attempt: str,
        *,
        expected: str | None = None,
        found: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.attempt = attempt
        self.expected = expected
        self.found = found
        self.remedy = remedy
        super().__init__(self._compose())

    def _compose(self) -> str:
        parts = []
        if self.expected is not None:
            parts.append(f"expected {self.expected}")
        if self.found is not None:
            parts.append(f"found {self.found}")
        text = self.attempt + (": " + "; ".join(parts) if parts else "") + "."
        return f"{text} {self.remedy}." if self.remedy else text

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(
    kind: type[FlexureError], args: tuple[object, ...], state: dict[str, object]
) -> FlexureError:
    """Unpickle an error without calling the constructor of its class."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class DeclarationError(FlexureError):
    """A block declares something impossible, twice, or after it was put to use."""


class WiringError(FlexureError):
    """A call of the diagram builder is rejected; the builder is unchanged."""


class AlgebraicLoopError(WiringError):
    """Outputs depend on themselves at the same instant.

    Attributes
    ----------
    loop : tuple of str
        The ports of the loop in the order in which values travel, e.g.
        ``("sum.u1", "sum.y", "gain.u", "gain.y")``.
    """

    loop: tuple[str, ...] = ()


class UnknownNameError(FlexureError, LookupError):
    """A name or path that does not exist."""


class ContextError(FlexureError):
    """A context is used with another system, or at the wrong moment."""


class ValueRefusedError(ContextError, ValueError):
    """A value has the wrong shape or kind, violates a bound, or is not finite."""


class ContextFileError(ContextError):
    """A saved context cannot be read, or does not fit the system."""


class EvaluationError(FlexureError):
    """An output, derivative or update of a block cannot be evaluated."""


class TraceError(EvaluationError):
    """An equation needs the number of a symbol: a branch, float(), a foreign function."""


class SimulationError(FlexureError):
    """A simulation cannot go on.

    Attributes
    ----------
    time : float or None
        Simulation time at which it stopped, in seconds.
    """

    time: float | None = None


class NonFiniteError(SimulationError):
    """A derivative, a state or an output became NaN or infinite."""


class StepSizeError(SimulationError):
    """The integrator cannot meet its tolerances with a step that still advances time."""


class NoProgressError(SimulationError):
    """Steps are accepted, yet time hardly advances."""


class ZenoError(SimulationError):
    """Events accumulate at one instant, so that simulation time cannot pass it."""


class RecordFileError(FlexureError):
    """A stored study or result cannot be read or written, or belongs to another model."""


class NativeCodeError(FlexureError):
    """Native code was required and is not available."""


class ExecutorError(FlexureError):
    """Runs of an executor did not return, or its workers could not run them.

    Attributes
    ----------
    result : Sweep
        The sweep so far, in which the outcome of the runs that are missing is "interrupted".
    """

    result: Any = None


class MissingExtraError(FlexureError, ImportError):
    """An optional package is needed and not installed."""


_ALIKE = 0.7  # of the end of a path and a part of another: a common beginning is no reason
_COMPARED = 200  # letters of names for which the closest one is looked for


def quoted(names: Iterable[str], limit: int = 12) -> str:
    """Join names for a message, cut after ``limit``.

    >>> quoted(["a", "b"])
    "'a', 'b'"
    """
    names = list(names)
    text = ", ".join(f"'{name}'" for name in names[:limit]) or "none"
    return text if len(names) <= limit else f"{text} and {len(names) - limit} more"


def suggestion(name: object, valid: Iterable[str]) -> str:
    """Say which of the valid names was probably meant, and list them.

    >>> suggestion("Angel", ["angle", "rate"])
    "Did you mean 'angle'? Valid names: 'angle', 'rate'"
    """
    valid = list(valid)
    meant = closest(name, valid)
    guess = "" if meant is None else f"Did you mean '{meant}'? "
    return f"{guess}Valid names: {quoted(valid)}"


def closest(name: object, valid: Iterable[str]) -> str | None:
    """Return which of the valid names was probably meant; None when none is similar."""
    import difflib  # here, as only refusals need it

    known = isinstance(name, str) and len(name) <= _COMPARED
    wanted = str(name).casefold() if known else ""

    def ends_alike(other: str) -> bool:
        *before, end = wanted.split(".")
        if not before or other.endswith("."):  # a name that stands alone, or the beginning of one
            return True
        parts, least = other.casefold().split("."), _ALIKE if len(end) > 3 else 0.5
        ratios = [difflib.SequenceMatcher(None, part, end).ratio() for part in parts]
        return max(ratios) >= least or any(part.startswith(end) for part in parts)

    # Comparing takes time with the square of lengths: what is in a file may be of any.
    short = [each for each in valid if len(each) <= _COMPARED and ends_alike(each)][:1000]
    folded = {each.casefold(): each for each in reversed(short)}
    close = [each.casefold() for each in difflib.get_close_matches(str(name), short, n=1) if wanted]
    close = close or difflib.get_close_matches(wanted, folded, n=1)
    if wanted and not close:
        longer = [each for each in folded if each.startswith(wanted)]
        close = difflib.get_close_matches(wanted, longer, n=1, cutoff=0.0)
    return folded[close[0]] if close else None


def call_site() -> str:
    """Return ``file.py:line`` of the innermost caller outside of Flexure itself."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_inside(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{_short_name(frame.f_code.co_filename)}:{frame.f_lineno}"


def warn(text: str) -> None:
    """Warn, as from the line of the innermost caller outside of Flexure itself."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_on_the_way(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


_ROOT = Path(__file__).resolve().parents[2].as_posix()
_FOLDERS = tuple(f"{_ROOT}/{folder}/" for folder in ("flexure", "diagrams", "blocks", "solvers"))


@functools.cache
def _short_name(filename: str) -> str:
    """Return the last part of the path of a source file."""
    return Path(filename).name


@functools.cache
def _is_on_the_way(filename: str) -> bool:
    """Return whether a source file belongs to Flexure or to SciPy, which calls user functions."""
    return is_inside(filename) or "/scipy/" in Path(filename).as_posix()


@functools.cache
def is_inside(filename: str) -> bool:
    """Return whether a source file belongs to Flexure; links are resolved once per file."""
    return Path(filename).resolve().as_posix().startswith(_FOLDERS)
