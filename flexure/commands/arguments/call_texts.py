"""Values, assignments and calls as words, read by their form and never evaluated.

A call is such as ``normal(3, 0.2)``.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from argparse import Action, ArgumentError, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from flexure.diagrams.checks.errors import ValueRefusedError


class Assignment(NamedTuple):
    """What is written as ``path=value``."""

    path: str
    value: Any


class Span(NamedTuple):
    """What is written as ``name=low:high``."""

    path: str
    low: float
    high: float


def split_assignment(text: str, value: str = "VALUE") -> tuple[str, str]:
    """Return path and value of ``path=value``; the value may hold further signs of equality."""
    path, sign, word = text.partition("=")
    if not (sign and path.strip() and word.strip()):
        raise ArgumentTypeError(f"expected PATH={value}; found {text!r}")
    return path.strip(), word.strip()


def assignment(text: str) -> Assignment:
    """Read ``path=value``.

    >>> assignment("arm.A[1,0]=-4")
    Assignment(path='arm.A[1,0]', value=-4.0)
    """
    path, word = split_assignment(text)
    return Assignment(path, parsed(word))


def span(text: str) -> Span:
    """Read ``name=low:high``.

    >>> span("angle=-0.1:1.6")
    Span(path='angle', low=-0.1, high=1.6)
    """
    path, word = split_assignment(text, "LOW:HIGH")
    low, sign, high = word.partition(":")
    if not sign:
        raise ArgumentTypeError(f"expected LOW:HIGH; found {word!r}")
    return Span(path, number(low), number(high))


def parsed(word: str) -> Any:
    """Return a number, an array as ``1,2,3`` or ``1,2;3,4``, a truth value, or the text itself.

    >>> parsed("80"), parsed("1,2,3"), parsed("1,2;3,4"), parsed("2,"), parsed("true")
    (80.0, [1.0, 2.0, 3.0], [[1.0, 2.0], [3.0, 4.0]], [2.0], True)
    """
    if word in ("true", "false"):
        return word == "true"
    try:
        rows = [_row(row) for row in word.strip().strip("[]").split(";")]
    except ValueError:
        return word  # which only abstract parameters take: others say what they want
    if len(rows) > 1:
        return rows
    return rows[0] if "," in word or word.startswith("[") else rows[0][0]


def _row(text: str) -> list[float]:
    return [float(entry) for entry in text.strip().removesuffix(",").split(",")]


def names(text: str) -> list[str]:
    """Return names that are separated by commas, of which those in brackets do not count.

    >>> names("door.axis.angle, arm.A[1,0], max(pid.u, 3)")
    ['door.axis.angle', 'arm.A[1,0]', 'max(pid.u, 3)']
    """
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "[(") - (letter in ")]")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    stripped = [name.strip() for name in found]
    if not all(stripped):
        raise ArgumentTypeError(f"expected names separated by commas; found {text!r}")
    return stripped


def tolerance(text: str) -> Any:
    """Return a tolerance, or several by path: ``1e-8``, or ``plant=1e-9,=1e-6``."""
    if "=" not in text:
        return number(text)
    pairs = (entry.partition("=") for entry in names(text))
    return {path.strip(): number(word) for path, _, word in pairs}


def number(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"expected a number; found {text!r}") from None


def read_parameters(file: str) -> list[Assignment]:
    """Return what a TOML file assigns to paths, ``"pid.kp" = 80``; tables are parts of paths."""
    attempt = f"Cannot read parameters from '{file}'"
    try:
        content = tomllib.loads(Path(file).read_bytes().decode("utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ValueRefusedError(
            attempt, expected='a TOML file with lines such as "pid.kp" = 80', found=reason
        ) from error
    return list(_flat(content, ""))


def _flat(table: Mapping[str, Any], before: str) -> Iterator[Assignment]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield Assignment(f"{before}{key}", value)


_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\((.*)\))?\s*", re.DOTALL)
_MOST = 10_000_000  # values of one path


class Call(NamedTuple):
    """A name, and what stands in the parentheses behind it."""

    text: str  # as it was written
    name: str
    args: tuple[Any, ...]  # numbers or texts
    named: dict[str, Any]  # arguments with names

    def fits(self, function: Callable[..., Any]) -> bool:
        """Return whether a function takes these arguments."""
        try:
            inspect.signature(function).bind(*self.args, **self.named)
        except TypeError:
            return False
        return True

    def of(self, function: Callable[..., Any], attempt: str) -> Any:
        """Call a function with these arguments, unless they do not fit it."""
        if not self.fits(function):
            signature = inspect.signature(function)
            plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
            spelled = signature.replace(parameters=plain, return_annotation=signature.empty)
            raise ValueRefusedError(attempt, expected=f"{self.name}{spelled}", found=self.text)
        return function(*self.args, **self.named)


class Axis(NamedTuple):
    """The values of a grid: a list, or a range."""

    path: str
    values: tuple[float, ...]
    low: float = 0.0
    high: float = 0.0
    size: int = 0
    spacing: str = ""


class Samples(NamedTuple):
    """How many samples, and what each path is drawn from."""

    size: int
    sources: dict[str, Call | str]


def call(text: str) -> Call:
    """Read ``name(argument, name=argument)``; arguments are numbers or words.

    >>> call("rms(pid.u, start=1)")
    Call(text='rms(pid.u, start=1)', name='rms', args=('pid.u',), named={'start': 1.0})
    """
    found = _CALL.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(f"expected a name, or name(arguments); found {text!r}")
    name, inside = found.groups()
    args: list[Any] = []
    named: dict[str, Any] = {}
    for word in names(inside) if inside and inside.strip() else ():
        key, sign, value = word.partition("=")
        if not sign:
            args.append(_number_or_word(word))
        if (named and not sign) or key.strip() in named:
            raise ArgumentTypeError(
                f"expected each named argument once, after the others: {text!r}"
            )
        if sign:
            named[key.strip()] = _number_or_word(value.strip())
    return Call(text.strip(), name, tuple(args), named)


def calls(text: str) -> list[Call]:
    """Read several, separated by commas."""
    return [call(each) for each in names(text)]


def axis(text: str) -> Axis:
    """Read ``path=low:high:count``, or ``path=1,2,5``.

    >>> axis("pid.kp=4:40:10")
    Axis(path='pid.kp', values=(), low=4.0, high=40.0, size=10, spacing='linear')
    """
    path, word = split_assignment(text, "LOW:HIGH:COUNT")
    parts = word.split(":")
    if len(parts) == 1:
        return Axis(path, tuple(map(number, names(word))))
    spacing = parts[3].strip() if len(parts) == 4 else "linear"
    try:
        low, high, count = number(parts[0]), number(parts[1]), int(parts[2])
        fits = 1 <= count <= _MOST and spacing in ("linear", "log") and len(parts) <= 4
    except (ArgumentTypeError, IndexError, ValueError):
        fits = False
    if not (fits and abs(low) + abs(high) < float("inf")):
        raise ArgumentTypeError(
            f"expected LOW:HIGH:COUNT with finite numbers and a count from 1 to {_MOST}, "
            f"optionally followed by :log, or values separated by commas; found {word!r}"
        )
    if spacing == "log" and not (min(low, high) > 0.0 or max(low, high) < 0.0):
        raise ArgumentTypeError(f"expected bounds of one sign, not zero, for :log; found {word!r}")
    return Axis(path, (), low, high, count, spacing)


class DrawAction(Action):
    """Reads ``1000 path=normal(3,0.2) path=5%``."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Add one group of words to those before."""
        before = list(getattr(namespace, self.dest))
        try:
            setattr(namespace, self.dest, [*before, samples(list(values or ()))])
        except ArgumentTypeError as error:
            raise ArgumentError(self, str(error)) from None


def samples(words: Sequence[str]) -> Samples:
    """Read a count, and what each path is drawn from."""
    try:
        count = int(words[0])
    except ValueError:
        raise ArgumentTypeError(f"expected the number of samples; found {words[0]!r}") from None
    if len(words) == 1 or count < 1:
        raise ArgumentTypeError("expected a positive number of samples, and PATH=DISTRIBUTION")
    sources: dict[str, Call | str] = {}
    for each in words[1:]:
        path, word = split_assignment(each, "DISTRIBUTION")
        if path in sources:
            raise ArgumentTypeError(f"expected each path once; found {path!r} twice")
        sources[path] = word if word.endswith("%") else call(word)
    return Samples(count, sources)


def _number_or_word(text: str) -> Any:
    try:
        return number(text)
    except ArgumentTypeError:
        return text
