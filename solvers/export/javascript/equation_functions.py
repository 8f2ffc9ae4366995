"""Expressions of a trace as JavaScript functions ``f(t, x, env, out)`` over Float64Arrays.

Every operation rounds as NumPy's does, one by one; only functions such as ``sin``, which engines of
JavaScript compute in their own ways, may differ in the last bits.

V8 optimizes no function whose code is too long, and takes the longer for each of its operations the
more there are. So what is long is written in chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from flexure.solvers.export.equation_parts import (
    OPERATORS,
    Part,
    PartWriter,
    calls,
    plan_parts,
    spelled,
)
from flexure.solvers.native.emission.emission import Environment, Node

CHUNK = 400  # operations

_CALLS = {
    "exp2": "Math.pow(2, {})",
    **calls(
        "absolute=abs arcsin=asin arccos=acos arctan=atan arcsinh=asinh arccosh=acosh "
        "arctanh=atanh sqrt cbrt floor ceil trunc exp expm1 log log2 log10 log1p sin cos tan sinh "
        "cosh tanh",
        "maximum=max minimum=min arctan2=atan2 hypot",
        prefix="Math.",
    ),
    **calls(
        "sign rint isfinite=Number.isFinite isnan=Number.isNaN isinf=isInfinite",
        "copysign fmax fmin power remainder=remainder_of floor_divide",
    ),
}


def number(value: float) -> str:
    """Spell a number.

    >>> [number(each) for each in (2.0, -0.5, 1e22, float("inf"), -0.0)]
    ['2', '-0.5', '1e+22', 'Infinity', '-0']
    """
    return spelled(value, "NaN", "Infinity").removesuffix(".0")


@dataclass
class Parts:
    """Functions that compute groups of expressions, which share what they have in common."""

    # Functions ``(t, x, env, out) => {...}``. Results go to ``out``, those of all groups end to
    # end.
    texts: list[str] = field(default_factory=list)
    # For each group the functions that compute it, in their order.
    needs: list[list[int]] = field(default_factory=list)


def write_function(outputs: Sequence[Any], environment: Environment, chunk: int = CHUNK) -> str:
    """Write a function that computes expressions of one trace, as an expression of JavaScript.

    They go to ``out`` in their order. The environment knows where the inputs are, and gives room to
    what chunks of ``chunk`` operations hand on.
    """
    return in_sequence(write_parts([outputs], environment, chunk).texts)


def in_sequence(texts: Sequence[str]) -> str:
    """Write a function that calls others one after the other."""
    return texts[0] if len(texts) == 1 else f"inSequence([{', '.join(texts)}])"


def write_parts(
    groups: Sequence[Sequence[Any]], environment: Environment, chunk: int = CHUNK
) -> Parts:
    """Write functions that compute groups of expressions, of which some may be asked for alone.

    Later groups use the results of earlier ones, and then need their functions.
    """
    plan = plan_parts(groups, environment, chunk)
    return Parts([_Writer(environment, plan.handed).write(part) for part in plan.parts], plan.needs)


class _Writer(PartWriter):
    """Writes the function of one part."""

    operators = OPERATORS | {
        "equal": "{} === {}",
        "not_equal": "{} !== {}",
        "logical_xor": "{} !== {}",
        "fmod": "{} % {}",
    }
    calls = _CALLS
    truth = "{} !== 0"
    choice = "{} ? 1 : 0"

    def write(self, part: Part) -> str:
        """Write the function."""
        body = "\n".join(self.statements(part))
        return f"(t, x, env, out) => {{\n{body}\n}}"

    def number(self, value: float) -> str:
        return number(value)

    def declaration(self, node: Node, name: str, text: str) -> str:
        return f"const {name} = {text};"
