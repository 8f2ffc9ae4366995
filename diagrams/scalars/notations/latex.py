r"""Expressions and names in LaTeX, for MathJax and for papers."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from flexure.diagrams.scalars.notations.notation import (
    Form,
    Level,
    Notation,
    Phrase,
    Rank,
    Written,
    comparison,
    write,
)

GREEK = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"),
    *("lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
    *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega"),
)
#: A letter, and what is to be its subscript: digits, or what follows an underscore.
_LETTER = re.compile(rf"({'|'.join(GREEK)}|[^\W\d_])(?:_?(\d+)|_(\w+))?")


class Typeset(Notation):
    """Mathematics as it is set, beyond what every notation has.

    Its ``forms`` have one for "multiply by digits", which keeps the digits of two numbers apart.
    """

    opening: ClassVar[str]  # of a choice
    closing: ClassVar[str]
    between_rows: ClassVar[str]

    @abstractmethod
    def begins_with_digit(self, text: str) -> bool:
        """Return whether a text looks like a continuation of a number in front of it."""

    @abstractmethod
    def case(self, value: str, condition: str | None) -> str:
        """Write a row of a choice; the last one has no condition."""

    @abstractmethod
    def letter(self, name: str) -> str:
        """Write a single letter, Latin, or Greek by its name."""

    @abstractmethod
    def word(self, text: str) -> str:
        """Write something upright."""

    @abstractmethod
    def indices(self, text: str) -> str:
        """Write digits, with commas between them."""

    @abstractmethod
    def verbatim(self, text: str) -> str:
        """Write a name as it is."""

    @abstractmethod
    def with_subscripts(self, base: str, subscripts: Sequence[str]) -> str:
        """Write something with subscripts."""

    def form(self, op: str, *operands: Phrase) -> Phrase:
        """Write an operation in its form."""
        if op == "where":
            return self.cases(*operands)
        if op == "multiply" and self.begins_with_digit(self.enclosed(operands[1], Level.SIGN)):
            op = "multiply by digits"
        return super().form(op, *operands)

    def cases(self, condition: Phrase, a: Phrase, b: Phrase) -> Phrase:
        """Write a choice; one that stands in its last row goes on with more rows."""
        row, last = self.case(self.text(a), self.text(condition)), self.case(self.text(b), None)
        if b.level == Level.CHOICE:
            last = b.size.removeprefix(self.opening).removesuffix(self.closing)
        rank = max(condition.rank, a.rank, b.rank)
        text = f"{self.opening}{row}{self.between_rows}{last}{self.closing}"
        return Phrase(text, Level.CHOICE, rank=rank)

    def names(self, names: Iterable[tuple[str, str]]) -> list[str]:
        """Turn the paths and components of values into symbols, all of which look different."""
        names = list(names)
        found = {name: self._name(*name) for name in names}
        times = Counter(found.values())
        return [
            found[path, component]
            if times[found[path, component]] == 1
            else self.verbatim(f"{path}[{component}]" if component else path)
            for path, component in names
        ]

    def _name(self, path: str, component: str) -> str:
        """Write one name with its subscripts."""
        owner, _, name = path.rpartition(".")
        letter = _LETTER.fullmatch(name)
        base = self.word(name) if letter is None else self._part(letter[1])
        subscripts = [] if letter is None else [part for part in letter.groups()[1:] if part]
        texts = [
            *map(self._part, subscripts),
            *([self.word(owner)] if owner else []),
            *([self._part(component)] if component else []),
        ]
        return self.with_subscripts(base, texts) if texts else base

    def _part(self, text: str) -> str:
        """Write letters and numbers as such, and all else upright."""
        if re.fullmatch(r"[\d, ]+", text):
            return self.indices(text.replace(" ", ""))
        return self.letter(text) if text in GREEK or len(text) == 1 else self.word(text)


_NUMBERS = {"inf": r"\infty", "nan": r"\mathrm{NaN}"}


def write_latex(
    outputs: Iterable[Any],
    names: Mapping[Any, str],
    *,
    constants: Container[Any] = (),
    reserved: Iterable[str] = (),
) -> Written:
    r"""Write expressions in LaTeX for mathematical mode, as `write_python` does in Python.

    The names of inputs are in LaTeX; see `latex_names`.

    >>> from flexure.diagrams.scalars import Graph
    >>> x = Graph().input("x")
    >>> print(*write_latex([x / (1.0 + x * x)], {"x": r"\omega_{0}"}).results)
    \frac{\omega_{0}}{\omega_{0}^{2} + 1}
    """
    return write(_Latex(), outputs, names, constants, reserved)


class _Latex(Typeset):
    """Mathematics; functions without a usual name keep that of NumPy."""

    brackets = (r"\left(", r"\right)")
    opening, between_rows, closing = r"\begin{cases} ", r" \\ ", r" \end{cases}"
    forms: ClassVar = {
        "add": Form("{} + {}", Level.SUM, (Level.SUM, Level.REMAINDER)),
        "subtract": Form("{} - {}", Level.SUM, (Level.SUM, Level.REMAINDER)),
        "remainder": Form(r"{} \bmod {}", Level.REMAINDER, (Level.POWER, Level.POWER)),
        "multiply": Form(r"{} \, {}", Level.PRODUCT, (Level.PRODUCT, Level.SIGN)),
        "multiply by digits": Form(r"{} \cdot {}", Level.PRODUCT, (Level.PRODUCT, Level.SIGN)),
        "divide": Form(r"\frac{{{}}}{{{}}}", Level.SIGN, (Level.CHOICE, Level.CHOICE)),
        "power": Form("{}^{{{}}}", Level.POWER, (Level.ATOM, Level.CHOICE)),
        "exp": Form(r"\mathrm{{e}}^{{{}}}", Level.POWER, (Level.CHOICE,)),
        "exp2": Form("2^{{{}}}", Level.POWER, (Level.CHOICE,)),
        "sqrt": Form(r"\sqrt{{{}}}", Level.ATOM, (Level.CHOICE,)),
        "cbrt": Form(r"\sqrt[3]{{{}}}", Level.ATOM, (Level.CHOICE,)),
        "absolute": Form(r"\left|{}\right|", Level.ATOM, (Level.CHOICE,)),
        "floor": Form(r"\left\lfloor {} \right\rfloor", Level.ATOM, (Level.CHOICE,)),
        "ceil": Form(r"\left\lceil {} \right\rceil", Level.ATOM, (Level.CHOICE,)),
        "floor_divide": Form(
            r"\left\lfloor \frac{{{}}}{{{}}} \right\rfloor",
            Level.ATOM,
            (Level.CHOICE, Level.CHOICE),
        ),
        "less": comparison("<"),
        "less_equal": comparison(r"\le"),
        "greater": comparison(">"),
        "greater_equal": comparison(r"\ge"),
        "equal": comparison("="),
        "not_equal": comparison(r"\ne"),
        "logical_xor": comparison(r"\oplus"),
        "logical_not": Form(r"\lnot {}", Level.NOT, (Level.SUM,)),
        "logical_and": Form(r"{} \land {}", Level.AND, (Level.AND, Level.AND)),
        "logical_or": Form(r"{} \lor {}", Level.OR, (Level.OR, Level.OR)),
    }
    commands: ClassVar = {
        **{name: rf"\{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
        **{name: rf"\{name}" for name in ("arcsin", "arccos", "arctan")},
        "arcsinh": r"\operatorname{arsinh}",
        "arccosh": r"\operatorname{arcosh}",
        "arctanh": r"\operatorname{artanh}",
        "log": r"\ln",
        "log2": r"\log_{2}",
        "log10": r"\log_{10}",
        "maximum": r"\max",
        "minimum": r"\min",
        "sign": r"\operatorname{sgn}",
    }

    def number(self, value: float) -> Phrase:
        """Write a constant, with a power of ten where Python prints one."""
        is_negative = math.copysign(1.0, value) < 0.0
        mantissa, is_scientific, exponent = repr(abs(value)).removesuffix(".0").partition("e")
        if not is_scientific:
            return Phrase(_NUMBERS.get(mantissa, mantissa), Level.ATOM, is_negative, Rank.NUMBER)
        power = f"10^{{{int(exponent)}}}"
        if mantissa == "1":
            return Phrase(power, Level.POWER, is_negative, Rank.NUMBER)
        return Phrase(rf"{mantissa} \cdot {power}", Level.PRODUCT, is_negative, Rank.NUMBER)

    def local_name(self, k: int) -> str:
        """Return a with an index."""
        return f"a_{{{k}}}"

    def call(self, function: str, arguments: Sequence[str]) -> str:
        """Write the call of a function by its usual name, if it has one."""
        command = self.commands.get(function, rf"\operatorname{{{function}}}")
        return rf"{command}\left({', '.join(arguments)}\right)"

    def begins_with_digit(self, text: str) -> bool:
        """Return whether a text begins with one."""
        return text[0].isdigit()

    def case(self, value: str, condition: str | None) -> str:
        """Write a row of a choice."""
        when = r"\text{otherwise}" if condition is None else rf"\text{{if }} {condition}"
        return f"{value} & {when}"

    def letter(self, name: str) -> str:
        """Write a letter."""
        return rf"\{name}" if name in GREEK else name

    def word(self, text: str) -> str:
        """Write a word."""
        return rf"\mathrm{{{_escaped(text)}}}"

    def indices(self, text: str) -> str:
        """Write digits."""
        return text

    def verbatim(self, text: str) -> str:
        """Write a name in typewriter type."""
        return rf"\mathtt{{{_escaped(text)}}}"

    def with_subscripts(self, base: str, subscripts: Sequence[str]) -> str:
        """Write subscripts, with commas between them."""
        return f"{base}_{{{','.join(subscripts)}}}"


_ESCAPES = {
    **{character: rf"\{character}" for character in "_%#$&{} "},
    "\\": r"\backslash ",
    "^": r"\wedge ",
    "~": r"\sim ",
    "-": r"\text{-}",
}


def latex_names(names: Iterable[tuple[str, str]]) -> list[str]:
    r"""Turn the names of values into LaTeX, so that all of them look different.

    A single letter, Latin or Greek by its name, stays one; what follows it as a number or after an
    underscore becomes a subscript, and so do the path in front of it and the component. Words are
    set upright. Names that would look the same stay what they are, in typewriter type.

    Each value has a path and a component, which may be empty.

    >>> print(*latex_names([("arm.omega", ""), ("pid.k_p", ""), ("x", "rate"), ("kp", "0, 1")]))
    \omega_{\mathrm{arm}} k_{p,\mathrm{pid}} x_{\mathrm{rate}} \mathrm{kp}_{0,1}
    """
    return _Latex().names(names)


def _escaped(text: str) -> str:
    """Take from characters the meaning that LaTeX gives them."""
    return "".join(_ESCAPES.get(character, character) for character in text)
