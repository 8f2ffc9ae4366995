"""Notebooks run in a real kernel, and what their cells show is drawn by a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.pages.browser import visiting
from tests.support.pages.notebooks import ROOT, executed, html_of, streams_of, write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.full
EXAMPLE = ROOT / "examples" / "door_notebook.ipynb"
PROGRESS = """
import sys, warnings
{before}
class Slow(fx.LeafSystem):
    def __init__(self):
        super().__init__("slow")
        self.x = self.declare_continuous_state(z=1, default=[1.0])
    def calc_time_derivatives(self, context):
        return -self.x(context)
with warnings.catch_warnings():
    warnings.simplefilter("always")
    done = fx.simulate(Slow(), 1.0, method="rk4", step=0.01, compiled=False, progress=True)
"""
COMPLETE = """
from IPython.core.completer import provisionalcompleter
def completed(text):
    found = []
    for jedi in (False, True):
        get_ipython().Completer.use_jedi = jedi
        with provisionalcompleter():
            names = {each.text for each in get_ipython().Completer.completions(text, len(text))}
        found.append({name.lstrip(".") for name in names})
    return found
import json
print(json.dumps([[sorted(names) for names in completed(text)] for text in TEXTS]))
"""
TEXTS = {
    'servo["pid"].k': {"kd", "ki", "kp"},
    'servo["door"]["hinge"].spring_c': {"spring_constant"},
    'servo["': {"door", "door.hinge", "pid", "target"},
    'context["do': {"door", "door.hinge"},
    'result["door.axis.a': {"door.axis.angle"},
    'sweep.plan["': {"pid.kp", "door.hinge.spring_constant"},
    'context.set("door.hinge.spring_c': {"door.hinge.spring_constant"},
    'fx.sweep(servo,\n    {"pid.k': {"pid.kd", "pid.ki", "pid.kp"},
    'result.plot("door.axis.a': {"door.axis.angle"},
}


#: Cells that draw, and how many pictures and players each shows.
DRAWN = {
    "result.plot('door.axis.angle')": (1, 0),
    "phase = result.plot_phase('door.axis.angle', 'pid.u')": (1, 0),
    "phase": (1, 0),
    "result.plot('pid.u', path=folder + '/u.png')": (1, 0),
    "result.plot('pid.u', path=folder + '/u.png'); 0": (0, 0),
    "fx.bode(fx.linearize(servo, inputs='pid.feedforward', outputs='door.axis.angle'))": (1, 0),
    "servo.plot()": (1, 0),
    "for _ in range(2): _ = result.plot('pid.u')": (2, 0),
    "moving = fx.animate(result, fps=5)": (0, 0),
    "moving": (0, 1),
}


def code_of(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run all in one kernel, since kernels start slowly: the example, and cells of ours."""
    cells = {f"example {k}": code for k, code in enumerate(code_of(EXAMPLE))}
    cells |= {
        "complete": f"TEXTS = {list(TEXTS)!r}\n{COMPLETE}",
        "bar": PROGRESS.format(before=""),
        "bar of text": PROGRESS.format(
            before="for name in [n for n in sys.modules if n.startswith('tqdm')]:\n"
            "    del sys.modules[name]\n"
            "sys.modules['ipywidgets'] = sys.modules['IProgress'] = None\n"
        ),
        "bar without tqdm": PROGRESS.format(before="sys.modules['tqdm'] = None"),
    }
    home = tmp_path_factory.mktemp("ipython")
    cells["folder"] = f"%matplotlib inline\nfolder = {str(home)!r}"
    cells |= {cell: cell for cell in DRAWN}
    return dict(zip(cells, executed(cells.values(), EXAMPLE.parent, home), strict=True))


def test_the_notebook_has_no_outputs_in_it_and_shows_something_in_each_cell(
    outputs: dict[str, Any],
) -> None:
    cells = json.loads(EXAMPLE.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells)
    shown = {name: html_of(found) for name, found in outputs.items() if "example" in name}
    assert all("flexure" in html for html in shown.values())
    assert not any("<script" in html for html in shown.values())


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_browser_draws_all_outputs_readably_in_light_and_dark(
    outputs: dict[str, Any], browser: Browser, theme: str, tmp_path: Path
) -> None:
    pieces = [html_of(found) for name, found in outputs.items() if "example" in name]
    page = write_page(tmp_path / "page.html", pieces, theme)
    with visiting(browser, page, width=900) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        width = visit.page.evaluate("document.documentElement.scrollWidth")
        weak = visit.page.evaluate(CONTRAST)
        visit.page.screenshot(path=tmp_path / f"{theme}.png", full_page=True)
        formula = visit.page.locator("math").first.bounding_box()
        texts = visit.page.locator("td:visible").count()
    assert width <= 900
    assert weak == []
    assert formula is not None
    assert formula["height"] > 30
    assert texts > 200


#: Texts whose contrast to what is behind them is less than 4.5, which WCAG calls AA.
CONTRAST = """() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const found = [];
  for (const element of document.querySelectorAll('.out *:not(svg *)')) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || element.tagName === 'STYLE' || !element.getClientRects().length) continue;
    let alpha = 1, behind = null;
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at), color = parse(style.backgroundColor);
      alpha *= Number(style.opacity);
      if (!behind && (color.length < 4 || color[3] > 0)) behind = color;
    }
    const text = parse(getComputedStyle(element).color)
      .slice(0, 3).map((v, k) => alpha * v + (1 - alpha) * behind[k]);
    const [a, b] = [light(text), light(behind)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(element.textContent.slice(0, 40));
  }
  return found;
}"""


def test_names_and_paths_are_completed_with_jedi_and_without(outputs: dict[str, Any]) -> None:
    found = json.loads(streams_of(outputs["complete"], "stdout"))
    for (text, wanted), each_way in zip(TEXTS.items(), found, strict=True):
        for names in each_way:
            assert wanted <= {name.strip("\"'[]") for name in names}, text


def test_progress_is_a_bar_of_widgets_where_there_are_widgets(outputs: dict[str, Any]) -> None:
    pytest.importorskip("ipywidgets")
    shown = [each for each in outputs["bar"] if "data" in each]
    assert "application/vnd.jupyter.widget-view+json" in shown[0]["data"]
    assert "simulating" in shown[0]["data"]["text/plain"]
    assert streams_of(outputs["bar"]) == ""


@pytest.mark.parametrize("cell", ["bar of text", "bar without tqdm"])
def test_progress_is_a_line_where_there_are_no_widgets(outputs: dict[str, Any], cell: str) -> None:
    text = streams_of(outputs[cell])
    assert "simulating" in text
    assert "100%" in text
    assert "Warning" not in text


def test_a_cell_shows_each_figure_once(outputs: dict[str, Any]) -> None:
    for cell, counts in DRAWN.items():
        kinds = [set(each.get("data", {})) for each in outputs[cell]]
        found = tuple(sum(kind in each for each in kinds) for kind in ("image/png", "text/html"))
        assert found == counts, (cell, kinds)
