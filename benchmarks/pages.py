"""How large pages are, when they have drawn, and how long a slider step takes to a new picture.

Run it with ``python benchmarks/pages.py [--json FILE]``. It needs Chromium, playwright and plotly.
The compliant door's page is opened in a Chromium without a window, and measures itself: the time
from its address to its first curves and to charts with axes, and, for many places of a slider, from
the event of the slider to the end of drawing. The same is measured for its hinge, inspected in four
charts: to the end of the frame in which the first of them is drawn, and until all are that move,
with a constant that moves all of them and one that moves some. Beside it is how long a page takes
that holds nothing but plotly. The bars are for a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import flexure as fx
from examples.compliant_door import build
from tests.support.pages.browser import running_chromium, visiting

#: Bytes of the page, seconds to the first curves, and seconds of a slider step, the median.
BARS = {"size": 6e6, "first drawing": 1.5, "slider step": 0.05, "inspector step": 0.05}
SLIDER = '.control[data-path$="{}"] input[type=range]'
STEPS = 60
VISITS = 5
MOVE = """async ([selector, steps, measure]) => {
  const slider = document.querySelector(selector);
  performance.clearMeasures();
  for (let k = 0; k < steps; k++) {
    const before = document.body.dataset.runs;
    slider.value = 300 + 8 * k;
    slider.dispatchEvent(new Event("input"));
    while (document.body.dataset.runs === before) await new Promise((go) => setTimeout(go, 1));
    await new Promise((go) => requestAnimationFrame(go));
  }
  return performance.getEntriesByName(measure).map((entry) => entry.duration / 1000);
}"""
MARK = "performance.getEntriesByName('{}')[0].startTime / 1000"
ALONE = """<!doctype html><title>plotly</title><script>{}</script>
<script>performance.mark("charts")</script>"""


def measure(folder: Path) -> dict[str, float]:
    """Return the numbers of the door's page."""
    servo = build()
    page = fx.page(servo, 10.0, path=folder / "door.html")
    fx.inspect_block(servo.get_system("door.hinge"), path=folder / "hinge.html")
    library = page.html.partition('id="library">')[2].partition("</script>")[0]
    (folder / "alone.html").write_text(ALONE.format(library), encoding="utf-8", newline="\n")
    with running_chromium() as browser:

        def marks(name: str, *names: str) -> list[float]:
            with visiting(browser, folder / name) as visit:
                if name == "door.html":
                    visit.page.locator("body[data-drawn][data-runs]").wait_for()
                return [float(visit.page.evaluate(MARK.format(each))) for each in names]

        def step(name: str, path: str, measure: str = "answer") -> float:
            with visiting(browser, folder / name) as visit:
                visit.page.locator("body[data-drawn][data-runs]").wait_for()
                visit.page.wait_for_timeout(1000)
                found = visit.page.evaluate(MOVE, [SLIDER.format(path), STEPS, measure])
            return statistics.median(map(float, found))

        ours = [marks("door.html", "drawn", "charts") for _ in range(VISITS)]
        alone = [marks("alone.html", "charts")[0] for _ in range(VISITS)]
        steps = {
            "slider step": step("door.html", "pid.kp"),
            "inspector step": step("hinge.html", "spring_constant", "first"),
            "inspector step, all charts": step("hinge.html", "spring_constant"),
            "inspector step, some of them": step("hinge.html", "catch_width"),
        }
    return {
        "size": float(page.size),
        "first drawing": statistics.median(drawn for drawn, _ in ours),
        "charts with axes": statistics.median(charts for _, charts in ours),
        "plotly alone": statistics.median(alone),
        **steps,
    }


def main() -> None:
    """Measure, print, and compare with the bars."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the numbers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder))
    shown: dict[str, Any] = {}
    for name, value in found.items():
        bar = BARS.get(name)
        verdict = "" if bar is None else f"  bar {bar:g}, {'kept' if value <= bar else 'MISSED'}"
        print(f"{name:38} {value:12.4g}{verdict}")
        shown[name] = value
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(shown, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
