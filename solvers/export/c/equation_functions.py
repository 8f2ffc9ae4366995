"""Expressions of a trace as C functions ``f(t, x, env, out)``.

Every operation rounds as NumPy's does, one by one, when the compiler fuses none of them
(``-ffp-contract=off``). The functions exp, log, sin, cos and pow are those of the kernels in
`flexure.solvers.native.kernels.parts.elementary`, with the same bits on every processor; all others
are those of the C library. Values that have a name keep it: ``p_`` begins that of a parameter,
``u_`` of an input, ``x_`` of a state and ``d_`` of a discrete value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flexure.diagrams.scalars.expressions.vocabulary import CONDITIONS
from flexure.solvers.export.equation_parts import (
    OPERATORS,
    Part,
    PartWriter,
    calls,
    plan_parts,
    spelled,
)
from flexure.solvers.native.emission.emission import Environment, Node, Place

CHUNK = 1000  # operations; compilers take the longer for each of them the more there are

_CALLS = calls(
    "absolute=fabs exp=exp_of log=log_of sin=sin_of cos=cos_of arcsin=asin arccos=acos arctan=atan "
    "arcsinh=asinh arccosh=acosh arctanh=atanh sign sqrt cbrt floor ceil trunc rint exp2 expm1 "
    "log2 log10 log1p tan sinh cosh tanh",
    "power=pow_of arctan2=atan2 remainder=remainder_of hypot copysign fmod fmax fmin maximum "
    "minimum floor_divide",
)
#: Functions of <math.h>, whose names end in f for numbers of single precision.
_OF_THE_LIBRARY = (
    "fabs|pow|asin|acos|atan|atan2|asinh|acosh|atanh|sqrt|cbrt|floor|ceil|trunc|rint|exp|exp2|"
    "expm1|log|log2|log10|log1p|sin|cos|tan|sinh|cosh|tanh|hypot|copysign|fmod|fmax|fmin|nextafter"
)
SIGNATURE = "double t, const double x[], double env[], double out[]"


def constant_array(element: str, name: str, entries: Sequence[str]) -> str:
    """Write an array that never changes."""
    return f"static const {element} {name}[{len(entries)}] = {{ {', '.join(entries)} }};\n"


def in_single_precision(text: str) -> str:
    """Return the text of a program with all numbers in single precision."""
    text = re.sub(r"\b((?:exp|log|sin|cos|pow)_of)\(", r"\1_single(", text)
    text = re.sub(r"\bdouble\b", "float", text)
    text = re.sub(rf"\b({_OF_THE_LIBRARY})\(", r"\1f(", text)
    return re.sub(r"(?<![\w.])\d+(\.\d*(e[-+]?\d+)?|e[-+]?\d+)(?![\w.])", _single, text)


def _single(found: re.Match[str]) -> str:
    with np.errstate(all="ignore"):
        value = np.float32(found[0])
    return f"{value}f" if np.isfinite(value) else "(float)INFINITY"


def number(value: float) -> str:
    """Spell a number.

    >>> [number(each) for each in (2.0, -0.5, 1e22, float("inf"), -0.0)]
    ['2.0', '-0.5', '1e+22', '(double)INFINITY', '-0.0']
    """
    return spelled(value, "(double)NAN", "(double)INFINITY")


@dataclass
class Equations:
    """The functions of a model."""

    environment: Environment  # knows where the inputs are, and gives room to what chunks hand on
    # Names of values in ``x`` and ``env``, by place.
    names: Mapping[Place, str] = field(default_factory=dict)
    # All functions, those that call others behind them.
    texts: list[str] = field(default_factory=list)

    def write(
        self,
        name: str,
        outputs: Sequence[Any],
        what: str,
        labels: Sequence[str] = (),
        kept: bool = False,
    ) -> None:
        """Write a function that computes expressions, which go to ``out`` in their order.

        Comments say ``what`` they are, and by ``labels`` what each of them is. ``kept`` is for an
        ``out`` that is the environment, where later functions find the results.
        """
        first = self.environment.reserve(len(outputs)) if kept else 0
        plan = plan_parts([outputs], self.environment, CHUNK)
        for part in plan.parts:
            part.results = [(first + k, each) for k, each in part.results]
        several = len(plan.parts) > 1
        names = [f"{name}_{k}" if several else name for k in range(len(plan.parts))]
        for each, part in zip(names, plan.parts, strict=True):
            body = _Writer(self.environment, plan.handed, self.names, labels).statements(part)
            self._add(each, body, what)
        if several:
            self._add(name, [f"{each}(t, x, env, out);" for each in names], what)
        if kept:
            for k, node in enumerate(outputs):
                self.environment.places[node.index] = "env", first + k

    def _add(self, name: str, body: Sequence[str], what: str) -> None:
        """Add a function."""
        text = "".join(f"  {line}\n" for line in body)
        used = set(re.findall(r"\b(?:t|x|env|out)\b", re.sub(r"/\*.*?\*/", "", text)))
        unused = [each for each in ("t", "x", "env", "out") if each not in used]
        silent = "".join(f"  (void){each};\n" for each in unused)
        self.texts.append(
            f"/* {comment(what)} */\nstatic void {name}({SIGNATURE})\n{{\n{silent}{text}}}\n\n"
        )


class _Writer(PartWriter):
    """Writes the function of one part."""

    operators = OPERATORS | {name: f"{name}({{}}) != 0" for name in ("isfinite", "isnan", "isinf")}
    calls = _CALLS
    truth = "{} != 0.0"
    choice = "{} ? 1.0 : 0.0"

    def __init__(
        self,
        environment: Environment,
        handed: Mapping[int, int],
        names: Mapping[Place, str],
        labels: Sequence[str],
    ) -> None:
        super().__init__(environment, handed)
        self._names_of = names
        self._labels = labels

    def statements(self, part: Part) -> list[str]:
        lines = super().statements(part)
        if self._labels:
            count = len(part.results)
            first = len(lines) - count
            for line, (k, _) in enumerate(part.results, first):
                lines[line] += f" /* {comment(self._labels[k])} */"
        return lines

    def number(self, value: float) -> str:
        return number(value)

    def declaration(self, node: Node, name: str, text: str) -> str:
        return f"const {'bool' if node.op in CONDITIONS else 'double'} {name} = {text};"

    def _operation(self, node: Node) -> str:
        if node.op == "where":  # whose precedence is to be seen
            for each in node.args[1:]:
                if each.index in self._compound:
                    self._compound.discard(each.index)
                    self._name(each, self._texts[each.index])
        return super()._operation(node)

    def _value(self, node: Node) -> str:
        place = self._places.get(node.index)
        if node.index not in self._texts and place is not None and place in self._names_of:
            name = self._names_of[place]
            self._lines.append(f"const double {name} = {place[0]}[{place[1]}];")
            self._texts[node.index] = name
        return super()._value(node)


def comment(text: str) -> str:
    """Return a text that can be inside of a comment.

    >>> comment("a/*b*/")
    'a/ *b* /'
    """
    plain = text.encode("ascii", "replace").decode().replace("\n", " ")
    return plain.replace("/*", "/ *").replace("*/", "* /")
