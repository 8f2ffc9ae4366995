"""Names of options: what an option is called here, by the words of other programs and of habit.

A word that no option of a function has remains a `TypeError`, as in Python; if an option of this
function has its meaning, the message says which.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any, Self, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

_TABLE = """
damping_ratio: zeta
torque_stiffness: k012
torque_damping: d012
force_stiffness: kxyz
force_damping: dxyz
frame_a: frame_F
frame_c: frame_M
body_a: frame_F
body_b: frame_M
num_samples: n count samples
num_motions: n count
num_factors: n count
num_inputs: n count
num_equilibria: n count
num_points: n points
interval: step
step_to: step
location: at
where: at
t_final: t_end t_stop tf
step: dt
period: dt Ts sample_time
stiffness: k
damping: c d
signals: outputs
executor: workers n_jobs
context: x0
youngs_modulus: E
poissons_ratio: nu
at: step_time
to: final_value
frequency: freq frequencies omega
numerator: num
denominator: den
kp: Kp
ki: Ki
kd: Kd
position_limits: limits
nominal_position: rest_angle
input: entry
amplitude: amplitudes
free_length: rest_length natural_length
density: rho
"""

#: The options that a word may mean.
OPTIONS: dict[str, list[str]] = {}
for _option, _, _words in (line.partition(": ") for line in _TABLE.strip().splitlines()):
    for _word in _words.split():
        OPTIONS.setdefault(_word, []).append(_option)


def unknown_option(function: str, word: str, options: Iterable[str]) -> TypeError:
    """Return the error of an option that a function does not have, with the one that is meant."""
    meant = [each for each in OPTIONS.get(word, ()) if each in set(options)]
    here = f": here it is {meant[0]!r}" if meant else ""
    return TypeError(f"{function}() got an unexpected keyword argument {word!r}{here}")


def refuse_unknown(function: str, given: Iterable[str], options: Collection[str]) -> None:
    """Refuse the options that a function with ``**options`` does not have."""
    for word in given:
        if word not in options:
            raise unknown_option(function, word, options)


def shows_options_of(kind: type, names: Collection[str]) -> Callable[[_F], _F]:
    """Let the signature of a function show, for its ``**options``, those of a constructor."""

    def showing(function: _F) -> _F:
        own = inspect.signature(function)
        options = inspect.signature(kind).parameters
        shown = [*[*own.parameters.values()][:-1], *(options[n] for n in options if n in names)]
        function.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]
        return function

    return showing


def answers_other_words(function: _F) -> _F:
    """Let a function name its own option when it is called with another word or without one."""
    code = function.__code__
    most, name = code.co_argcount, function.__name__

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if not OPTIONS.keys().isdisjoint(named):
            _check(name, function, named)
        if len(args) > most and code.co_kwonlyargcount:
            raise TypeError(
                f"{name}() takes {most} positional argument{'s' * (most != 1)} but {len(args)} "
                f"were given: give {code.co_varnames[most]!r} and what follows by name"
            )
        return function(*args, **named)

    return call  # type: ignore[return-value]


class AnswersOtherWords:
    """Base of classes whose constructors name their option when called with another word for it."""

    def __new__(cls, *args: Any, **named: Any) -> Self:
        """Refuse the words of other programs for the options of the constructor."""
        if not OPTIONS.keys().isdisjoint(named):
            _check(cls.__name__, cls.__init__, named)
        return super().__new__(cls)


def _check(name: str, function: Callable[..., Any], named: Iterable[str]) -> None:
    """Refuse a word that no parameter has, if a parameter has its meaning."""
    options = inspect.signature(function).parameters
    for word in named:
        if word not in options and any(each in options for each in OPTIONS.get(word, ())):
            raise unknown_option(name, word, options)
