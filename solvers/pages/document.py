"""The HTML of a page: one file with its style, scripts and data, which may load nothing."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

from flexure.diagrams.files.versions import versions
from flexure.solvers.results.mechanisms.view_data import view_script

#: Of the folder of assets, in the order in which they are joined.
SCRIPTS = (
    "page/elements.js",
    "page/app.js",
    "runs/runs.js",
    "page/colors.js",
    "page/runner.js",
    "charts/scales.js",
    "page/controls.js",
    "charts/axes.js",
    "charts/chart.js",
    "charts/charts.js",
    "charts/scope.js",
    "charts/bode.js",
    "charts/figures.js",
    "charts/responses.js",
    "runs/goals.js",
    "runs/agreement.js",
    "runs/inside.js",
    "page/player.js",
    "page/sharing.js",
    "diagram/diagram_stage.js",
    "diagram/diagram_words.js",
    "diagram/diagram_view.js",
    "page/start.js",
)
_SHARED = ("page/colors.css", "charts/charts.css", "runs/runs.css", "page/page.css")
STYLES = (*_SHARED, "diagram/diagram_view.css")


class Outline(NamedTuple):
    """Names of the assets of a kind of page."""

    html: str  # its frame
    # scripts, styles: what is joined in it.
    scripts: tuple[str, ...]
    styles: tuple[str, ...]
    moving: bool = False  # whether it shows mechanisms


#: A page in which a diagram runs.
RUNS = Outline("page/page.html", SCRIPTS, STYLES, moving=True)
#: A page in which constants of a block move its curves.
INSPECTOR = Outline(
    "inspector/inspector.html",
    (
        "page/elements.js",
        "page/app.js",
        "runs/runs.js",
        "page/colors.js",
        "charts/scales.js",
        "page/controls.js",
        "page/sharing.js",
        "charts/curves.js",
        "charts/axes.js",
        "charts/chart.js",
        "charts/plots.js",
        "inspector/inspector.js",
    ),
    (*_SHARED, "inspector/inspector.css"),
)
#: What ends a script of HTML, or begins a comment in it.
_ENDS = re.compile(r"<(?=/script|script|!--)", re.IGNORECASE)


def document(
    title: str,
    doc: str,
    note: str,
    layout: str,
    data: dict[str, Any],
    model: str = "",
    outline: Outline = RUNS,
) -> str:
    """Return the whole page, with title, doc and note in plain text at its head.

    ``layout`` are classes of the main element, ``data`` is plain data for the scripts, and
    ``model`` the text of ``function flexureModel()``, empty on pages that run nothing.
    """
    scripts = {"model": _script(model), "script": _script(_joined(outline))}
    hashes = " ".join(f"'sha256-{hash_of(text)}'" for text in scripts.values())
    policy = {
        "default-src": "'none'",
        "script-src": hashes,
        "style-src": f"'sha256-{hash_of(joined_style(outline.styles))}'",
        "img-src": "data: blob:",
        "worker-src": "blob:",
        "connect-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    body = Template(asset(outline.html)).substitute(
        title=_plain(title),
        doc=_plain(doc),
        note=f'<p class="remark">{_plain(note)}</p>' if note else "",
        layout=layout,
        data=text.replace("<", "\\u003c"),  # which cannot end its script
        **scripts,
    )
    return framed(title, policy, joined_style(outline.styles), body, schemes="light dark")


def printed(
    title: str, sections: Sequence[tuple[str, str]], annex: Sequence[tuple[str, str]] = ()
) -> str:
    """Return a page without scripts, to be read or printed.

    Titles are plain text, contents of sections HTML. The annex begins on a new sheet of paper.
    """
    policy = {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    parts = [
        f'<section id="part-{k}">\n<h2>{_plain(name)}</h2>\n<div class="inside">{inside}</div>\n'
        "</section>"
        for k, (name, inside) in enumerate([*sections, *annex])
    ]
    parts[len(sections) :] = [
        '<div class="annex">',
        "<h1>Annex</h1>",
        *parts[len(sections) :],
        "</div>",
    ]
    names = [name for name, _ in (*sections, *annex)]
    links = [f'<a href="#part-{k}">{_plain(name)}</a>' for k, name in enumerate(names)]
    body = Template(asset("report/report.html")).substitute(
        title=_plain(title), contents=" ".join(links), sections="\n".join(parts)
    )
    return framed(title, policy, joined_style(["report/report.css"]), body, schemes="light")


def framed(title: str, policy: dict[str, str], style: str, body: str, *, schemes: str) -> str:
    """Return a document of HTML with a policy, styles and a body, for color schemes."""
    return Template(asset("page/frame.html")).substitute(
        policy="; ".join(f"{name} {value}" for name, value in policy.items()),
        made=f"Flexure {versions()['flexure']}",
        schemes=schemes,
        title=_plain(title),
        style=style,
        body=body,
    )


def _plain(text: str) -> str:
    """Return text that is nothing but text in HTML, halves of characters as question marks."""
    return html.escape(text.encode("utf-8", "replace").decode())


def _script(text: str) -> str:
    """Return a script whose strings cannot end it, with the ends of lines that HTML makes."""
    return _ENDS.sub(r"<\\", text.replace("\r\n", "\n").replace("\r", "\n"))


@functools.lru_cache(8)
def hash_of(text: str) -> str:
    """Return the hash of a script or style, as a policy has it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _joined(outline: Outline) -> str:
    """Return the scripts of a page as one, in which nothing is global."""
    texts = [view_script()] if outline.moving else []
    texts += map(asset, outline.scripts)
    return "(() => {\n" + "\n".join(texts) + "})();"


def joined_style(names: Sequence[str]) -> str:
    """Return the text of several style sheets."""
    return "\n".join(map(asset, names))


def asset(name: str) -> str:
    """Return the text of an asset."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
