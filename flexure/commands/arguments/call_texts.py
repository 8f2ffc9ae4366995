"""Calls as words, such as ``normal(3, 0.2)``: read by their form, and never evaluated."""

from __future__ import annotations

import inspect
import re
from argparse import Action, ArgumentError, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flexure.commands.arguments.value_texts import names, number, split_assignment
from flexure.diagrams.checks.errors import ValueRefusedError

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\((.*)\))?\s*", re.DOTALL)
_MOST = 10_000_000  # values of one path


class Call(NamedTuple):
    """A name, and what stands in the parentheses behind it."""

    text: str  # as it was written
    name: str
    args: tuple[Any, ...]  # numbers or texts
    named: dict[str, Any]  # arguments with names

    def of(self, function: Callable[..., Any], attempt: str) -> Any:
        """Call a function with these arguments, unless they do not fit it."""
        signature = inspect.signature(function)
        try:
            signature.bind(*self.args, **self.named)
        except TypeError as error:
            plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
            spelled = signature.replace(parameters=plain, return_annotation=signature.empty)
            raise ValueRefusedError(
                attempt, expected=f"{self.name}{spelled}", found=self.text
            ) from error
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
