"""How wide a text is, estimated without a font."""

from __future__ import annotations

import unicodedata

# Widths in units of the font size. They bound DejaVu Sans Bold, the widest of the usual fonts, so
# that a box of this width holds its text in any of them.
_WIDTHS = {
    character: width
    for width, characters in {
        0.42: " '`,.:;/\\|-ijlIJ",
        0.52: '"()[]!*_frt',
        0.72: "$0123456789{}?EFLTabcdeghknopqsuvxyz",
        0.85: "#+<=>^~ABCDGHKNOPQRSUVXYZ",
        1.10: "%&@MWmw",
    }.items()
    for character in characters
}
_REGULAR = 0.93  # regular letters against bold ones


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return an upper estimate of the width of one line of text, in the unit of ``size``.

    >>> text_width("plant", 10.0, bold=True) > text_width("plant", 10.0) > text_width("pl", 10.0)
    True
    """
    return sum(_character_width(c) for c in text) * size * (1.0 if bold else _REGULAR)


def _character_width(character: str) -> float:
    width = _WIDTHS.get(character)
    if width is not None:
        return width
    if unicodedata.combining(character):
        return 0.0
    return 1.1 if unicodedata.east_asian_width(character) in "WF" else 0.9
