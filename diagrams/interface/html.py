"""HTML for notebooks: short, without scripts, in the colors of whatever is around it.

Every text goes through `escaped`, so that a block called ``<script>`` stays a text. Long contents
are folded or cut, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby

from flexure.diagrams.concurrency.warnings_and_garbage import quietly

_LARGEST = 400_000  # characters, beyond which a notebook gets the text alone
_LONGEST = 240  # characters of a text in a cell
_SHORT = 16  # characters of texts that stay on one line

# Notebooks bring styles for tables with them, which differ; these make them alike, and take over
# colors and fonts. MathJax, where it runs, is told to leave dollar signs alone.
_CLASSES = "flexure tex2jax_ignore mathjax_ignore"
_STYLE = """<style>
.flexure{overflow-x:auto;max-width:100%}
.flexure table{border-collapse:collapse;border:0;margin:.3em 0 .5em;font-size:.92em;width:auto}
.flexure th,.flexure td{padding:.2em .7em;text-align:left;vertical-align:top;border:0;
border-bottom:1px solid rgba(128,128,128,.28);white-space:normal;max-width:34em;
overflow-wrap:break-word}
.flexure th{font-weight:600;border-bottom-color:rgba(128,128,128,.6)}
.flexure tbody th{font-weight:400;white-space:nowrap;border-bottom-color:rgba(128,128,128,.28)}
.flexure th.n,.flexure td.n{text-align:right;font-variant-numeric:tabular-nums}
.flexure th.s,.flexure td.s{white-space:nowrap}
.flexure th.edge,.flexure td.edge{border-left:2px solid rgba(128,128,128,.6)}
.flexure tr.edge>*{border-top:2px solid rgba(128,128,128,.6)}
.flexure p{margin:.2em 0}
.flexure code{background:none;color:inherit;padding:0}
.flexure summary{cursor:pointer;padding:.15em 0}
.flexure details{margin:.1em 0}
.flexure details>:not(summary){margin-left:1.1em}
.flexure small,.flexure .note{opacity:.75;font-size:.88em}
.flexure figure{display:inline-block;margin:.3em 1.2em .3em 0;vertical-align:top}
.flexure figcaption{font-size:.88em}
.flexure svg{max-width:100%;height:auto}
.flexure math{font-size:1.12em;width:max-content;margin:.4em 0}
</style>"""


class Shown:
    """Base of what notebooks show as HTML; terminals, and all who ask for a text, get the text."""

    def _pieces(self) -> Iterable[str]:
        """Return pieces of HTML, one below the other: by default the lines of the text."""
        about = getattr(self, "system", None)
        yield heading(type(self).__name__, getattr(about, "label", ""))
        yield lines(str(self))

    def _repr_html_(self) -> str | None:
        """Return HTML; None, for which notebooks show the text, if there is none."""
        try:
            with quietly():
                found = "".join(self._pieces())
        except Exception:  # whatever is wrong with it, looking at it is how one finds out
            return None
        if len(found) > _LARGEST:
            return None
        return f'<div class="{_CLASSES}">{_STYLE}{found}</div>'


def escaped(text: object) -> str:
    """Return a text in which nothing has a meaning for browsers."""
    return escape(str(text))


def code(text: object) -> str:
    """Return a name or path."""
    return f"<code>{escaped(text)}</code>"


def heading(kind: str, name: object = "", remark: object = "") -> str:
    """Return what something is, whose, and a remark."""
    parts = [f"<b>{escaped(kind)}</b>"]
    parts += [code(name)] * bool(name) + [f"<small>{escaped(remark)}</small>"] * bool(remark)
    return f"<p>{' '.join(parts)}</p>"


def note(text: object) -> str:
    """Return a remark on a line of its own."""
    return f'<p class="note">{escaped(text)}</p>'


def fold(title: object, inside: str, remark: object = "", *, opened: bool = False) -> str:
    """Return something under a title that opens and closes it."""
    small = f" <small>{escaped(remark)}</small>" if remark else ""
    start = '<details open="">' if opened else "<details>"
    return f"{start}<summary>{escaped(title)}{small}</summary>{inside}</details>"


def lines(text: str) -> str:
    """Return a text of lines such as ``rise time    0.2 s`` as a table, and others as remarks."""
    rows = [re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in text.splitlines() if line]
    pieces = []
    for width, group in groupby(rows, key=len):
        alike = list(group)
        pieces += [rows_of(alike)] if width > 1 else [note(row[0]) for row in alike]
    return "".join(pieces)


def rows_of(
    rows: Sequence[Sequence[str]],
    head: Sequence[str] = (),
    *,
    numeric: Iterable[int] = (),
    edges: tuple[Iterable[int], Iterable[int]] = ((), ()),
) -> str:
    """Return a table of texts, of which the first cell of each row is what the row is called.

    Numeric columns stand to the right. ``edges`` are the columns and rows that a line separates
    from what is before them.
    """
    columns, across = map(set, edges)
    looks = {"n": set(numeric), "edge": columns, "s": _short_columns(rows)}
    kinds = [
        " ".join(name for name, places in looks.items() if k in places)
        for k in range(max(map(len, [*rows, head]), default=0))
    ]
    kinds = [f' class="{kind}"' if kind else "" for kind in kinds]
    starts = ('<tr class="edge">' if k in across else "<tr>" for k in range(len(rows)))
    body = "".join(
        f"{start}{''.join(_cells(row, kinds))}</tr>"
        for start, row in zip(starts, rows, strict=True)
    )
    above = "".join(
        f'<th scope="col"{kind}>{escaped(text)}</th>'
        for text, kind in zip(head, kinds, strict=False)
    )
    above = f"<thead><tr>{above}</tr></thead>" if head else ""
    return f"<table>{above}<tbody>{body}</tbody></table>"


def _short_columns(rows: Sequence[Sequence[str]]) -> set[int]:
    """Return the columns that are not to be broken into lines."""
    columns = enumerate(zip(*rows, strict=True))
    return {k for k, column in columns if max(map(len, column)) <= _SHORT}


def _cells(row: Sequence[str], kinds: Sequence[str]) -> Iterator[str]:
    for k, (text, kind) in enumerate(zip(row, kinds, strict=False)):
        tag, scope = ("td", "") if k else ("th", ' scope="row"')
        short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        yield f"<{tag}{scope}{kind}>{escaped(short)}</{tag}>"
