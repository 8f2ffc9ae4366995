"""Expressions and names in MathML, which browsers draw without a script."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from html import escape, unescape
from typing import Any, ClassVar

from flexure.diagrams.scalars.notations.latex import GREEK, Typeset
from flexure.diagrams.scalars.notations.notation import (
    Form,
    Level,
    Phrase,
    Rank,
    Written,
    comparison,
    write,
)

_NUMBERS = {"inf": "<mi>∞</mi>", "nan": "<mi>NaN</mi>"}
# Without a font for mathematics, Chromium stretches no parentheses: these are lines around choices,
# which stand for them, or for the brace.
_BRACE = "border-left:.09em solid;border-radius:.5em;padding-left:.15em"
_PARENTHESES = "border:solid;border-width:0 .09em;border-radius:.7em;padding:0 .25em;margin:0 .1em"
_TIMES = '<mo lspace="0" rspace=".2em">&#x2062;</mo>'  # which is not seen


def write_mathml(
    outputs: Iterable[Any],
    names: Mapping[Any, str],
    *,
    constants: Container[Any] = (),
    reserved: Iterable[str] = (),
) -> Written:
    """Write expressions in MathML, for the inside of a ``<math>`` or ``<mrow>``.

    Arguments are those of `write_python`; the names of inputs are in MathML, see `mathml_names`.

    >>> from flexure.diagrams.scalars import Graph
    >>> x = Graph().input("x")
    >>> print(*write_mathml([2.0 / x], {"x": "<mi>x</mi>"}).results)
    <mfrac><mrow><mn>2</mn></mrow><mrow><mi>x</mi></mrow></mfrac>
    """
    return write(_MathML(), outputs, names, constants, reserved)


def mathml_names(names: Iterable[tuple[str, str]]) -> list[str]:
    """Turn the paths and components of values into MathML, as `latex_names` does into LaTeX.

    >>> print(*mathml_names([("omega", ""), ("k_p", "")]))
    <mi>ω</mi> <msub><mi>k</mi><mrow><mi>p</mi></mrow></msub>
    """
    return _MathML().names(names)


def _operator(sign: str) -> str:
    return f"{{}}<mo>{escape(sign)}</mo>{{}}"


def _compared(sign: str) -> Form:
    return comparison(sign)._replace(template=_operator(sign))


def _between(opening: str, closing: str, inside: str = "{}") -> str:
    left, right = (
        f'<mo form="{form}" fence="true" stretchy="true">{sign}</mo>'
        for form, sign in (("prefix", opening), ("postfix", closing))
    )
    return f"<mrow>{left}{inside}{right}</mrow>"


_FRACTION = "<mfrac><mrow>{}</mrow><mrow>{}</mrow></mfrac>"


class _MathML(Typeset):
    """Mathematics as elements side by side; functions without a usual name keep that of NumPy."""

    brackets = ("<mrow><mo>(</mo>", "<mo>)</mo></mrow>")
    opening = f'<mtable style="{_BRACE}">'
    between_rows, closing = "", "</mtable>"
    forms: ClassVar = {
        "add": Form(_operator("+"), Level.SUM, (Level.SUM, Level.REMAINDER)),
        "subtract": Form(_operator("−"), Level.SUM, (Level.SUM, Level.REMAINDER)),
        "remainder": Form(_operator("mod"), Level.REMAINDER, (Level.POWER, Level.POWER)),
        "multiply": Form(f"{{}}{_TIMES}{{}}", Level.PRODUCT, (Level.PRODUCT, Level.SIGN)),
        "multiply by digits": Form(_operator("⋅"), Level.PRODUCT, (Level.PRODUCT, Level.SIGN)),
        "divide": Form(_FRACTION, Level.SIGN, (Level.CHOICE, Level.CHOICE)),
        "power": Form(
            "<msup><mrow>{}</mrow><mrow>{}</mrow></msup>", Level.POWER, (Level.ATOM, Level.CHOICE)
        ),
        "exp": Form(
            '<msup><mi mathvariant="normal">e</mi><mrow>{}</mrow></msup>',
            Level.POWER,
            (Level.CHOICE,),
        ),
        "exp2": Form("<msup><mn>2</mn><mrow>{}</mrow></msup>", Level.POWER, (Level.CHOICE,)),
        "sqrt": Form("<msqrt>{}</msqrt>", Level.ATOM, (Level.CHOICE,)),
        "cbrt": Form("<mroot><mrow>{}</mrow><mn>3</mn></mroot>", Level.ATOM, (Level.CHOICE,)),
        "absolute": Form(_between("|", "|"), Level.ATOM, (Level.CHOICE,)),
        "floor": Form(_between("⌊", "⌋"), Level.ATOM, (Level.CHOICE,)),
        "ceil": Form(_between("⌈", "⌉"), Level.ATOM, (Level.CHOICE,)),
        "floor_divide": Form(
            _between("⌊", "⌋", _FRACTION), Level.ATOM, (Level.CHOICE, Level.CHOICE)
        ),
        "less": _compared("<"),
        "less_equal": _compared("≤"),
        "greater": _compared(">"),
        "greater_equal": _compared("≥"),
        "equal": _compared("="),
        "not_equal": _compared("≠"),
        "logical_xor": _compared("⊕"),
        "logical_not": Form("<mrow><mo>¬</mo>{}</mrow>", Level.NOT, (Level.SUM,)),
        "logical_and": Form(_operator("∧"), Level.AND, (Level.AND, Level.AND)),
        "logical_or": Form(_operator("∨"), Level.OR, (Level.OR, Level.OR)),
    }
    functions: ClassVar = {
        "arcsinh": "<mi>arsinh</mi>",
        "arccosh": "<mi>arcosh</mi>",
        "arctanh": "<mi>artanh</mi>",
        "log": "<mi>ln</mi>",
        "log2": "<msub><mi>log</mi><mn>2</mn></msub>",
        "log10": "<msub><mi>log</mi><mn>10</mn></msub>",
        "maximum": "<mi>max</mi>",
        "minimum": "<mi>min</mi>",
        "sign": "<mi>sgn</mi>",
    }

    def number(self, value: float) -> Phrase:
        """Write a constant, with a power of ten where Python prints one."""
        is_negative = math.copysign(1.0, value) < 0.0
        mantissa, is_scientific, exponent = repr(abs(value)).removesuffix(".0").partition("e")
        text = _NUMBERS.get(mantissa, f"<mn>{mantissa}</mn>")
        if not is_scientific:
            return Phrase(text, Level.ATOM, is_negative, Rank.NUMBER)
        sign = "<mo>−</mo>" if exponent.startswith("-") else ""
        digits = f"{sign}<mn>{abs(int(exponent))}</mn>"
        power = f"<msup><mn>10</mn><mrow>{digits}</mrow></msup>"
        if mantissa == "1":
            return Phrase(power, Level.POWER, is_negative, Rank.NUMBER)
        return Phrase(f"{text}<mo>⋅</mo>{power}", Level.PRODUCT, is_negative, Rank.NUMBER)

    def text(self, phrase: Phrase) -> str:
        """Return a phrase with its sign, of which browsers see that it belongs to it."""
        if phrase.is_negative:
            return f"<mrow><mo>−</mo>{self.enclosed(phrase.positive, Level.PRODUCT)}</mrow>"
        return phrase.size

    def enclosed(self, phrase: Phrase, level: Level) -> str:
        """Return a text that binds at least as tightly as a level."""
        if phrase.level == Level.CHOICE < level:
            inside = f"<mtable>{phrase.size.removeprefix(self.opening)}"
            return f'<mrow style="{_PARENTHESES}">{inside}</mrow>'
        return super().enclosed(phrase, level)

    def local_name(self, k: int) -> str:
        """Return a with an index."""
        return self.with_subscripts(self.letter("a"), [self.indices(str(k))])

    def call(self, function: str, arguments: Sequence[str]) -> str:
        """Write the call of a function by its usual name, if it has one."""
        name = self.functions.get(function, f"<mi>{escape(function)}</mi>")
        opening, closing = self.brackets
        inside = "<mo>,</mo>".join(f"<mrow>{each}</mrow>" for each in arguments)
        return f"<mrow>{name}<mo>&#x2061;</mo>{opening}{inside}{closing}</mrow>"

    def begins_with_digit(self, text: str) -> bool:
        """Return whether a number comes first."""
        return text.startswith(("<mn>", "<msup><mn>", "<msup><mrow><mn>"))

    def case(self, value: str, condition: str | None) -> str:
        """Write a row of a choice."""
        when = "<mtext>otherwise</mtext>"
        if condition is not None:
            when = f"<mtext>if&#xa0;</mtext>{condition}"
        cells = (f'<mtd style="text-align:left">{each}</mtd>' for each in (value, when))
        return f"<mtr>{''.join(cells)}</mtr>"

    def letter(self, name: str) -> str:
        """Write a letter."""
        return f"<mi>{unescape(f'&{name};') if name in GREEK else escape(name)}</mi>"

    def word(self, text: str) -> str:
        """Write a word; browsers set single letters in italics unless they are told not to."""
        upright = ' mathvariant="normal"' if len(text) == 1 else ""
        return f"<mi{upright}>{escape(text)}</mi>"

    def indices(self, text: str) -> str:
        """Write digits."""
        return f"<mn>{text}</mn>"

    def verbatim(self, text: str) -> str:
        """Write a name in typewriter type."""
        return f'<mtext style="font-family:monospace">{escape(text)}</mtext>'

    def with_subscripts(self, base: str, subscripts: Sequence[str]) -> str:
        """Write subscripts, with commas between them."""
        inside = "<mo>,</mo>".join(subscripts)
        return f"<msub>{base}<mrow>{inside}</mrow></msub>"
