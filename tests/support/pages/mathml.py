"""MathML read as people read it, and put into Python: what has no parentheses gets none."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

_OPERATORS = {
    "−": "-",
    "⋅": "*",
    "\u2062": "*",
    "\u2061": "",
    "mod": "%",
    "=": "==",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "⊕": "!=",
    "∧": " and ",
    "∨": " or ",
    "¬": " not ",
    "|pre": "abs(",
    "|pos": ")",
    "⌊": "floor(",
    "⌋": ")",
    "⌈": "ceil(",
    "⌉": ")",
}
_NAMES = {
    "ln": "log",
    "max": "maximum",
    "min": "minimum",
    "sgn": "sign",
    "∞": "inf",
    "NaN": "nan",
    "arsinh": "arcsinh",
    "arcosh": "arccosh",
    "artanh": "arctanh",
}


def as_python(text: str) -> str:
    """Return the Python expression that is meant by MathML."""
    return _row(ET.fromstring(f"<mrow>{text}</mrow>"))


def _row(element: ET.Element) -> str:
    return "".join(map(_read, element))


def _read(element: ET.Element) -> str:
    text, parts = element.text or "", list(element)
    match element.tag:
        case "mi":
            return _NAMES.get(text, text)
        case "mn":
            return text
        case "mo":
            return _OPERATORS.get(text + element.get("form", "")[:3], _OPERATORS.get(text, text))
        case "mrow":
            return f"({_row(element)})" if "border" in element.get("style", "") else _row(element)
        case "mfrac":
            return f"(({_read(parts[0])})/({_read(parts[1])}))"
        case "msup" if parts[0].get("mathvariant") == "normal":
            return f"exp({_read(parts[1])})"
        case "msup":
            base = _read(parts[0])  # Python has no negative powers of some integers
            return f"{'10.0' if base == '10' else base}**({_read(parts[1])})"
        case "msub":
            return f"{_read(parts[0])}{_read(parts[1])}"
        case "msqrt":
            return f"sqrt({_row(element)})"
        case "mroot":
            return f"cbrt({_read(parts[0])})"
        case "mtable":
            return _choice(element)
    raise AssertionError(f"no such element in formulas: {element.tag}")


def _choice(element: ET.Element) -> str:
    texts = []
    for row in element:
        value, when = row
        label, *condition = when
        is_last = label.text == "otherwise"
        assert is_last or re.fullmatch(r"if\s", label.text or "")
        texts.append(f"({_row(value)})")
        if not is_last:
            texts.append(f" if {''.join(map(_read, condition))} else ")
    return f"({''.join(texts)})"
