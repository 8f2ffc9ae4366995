"""How large pages are, when they have drawn, and how long a slider step takes to a new picture.

Run it with ``python benchmarks/exports/pages.py [--json FILE]``. It needs Chromium and playwright.
The page of the compliant door is opened in a Chromium without a window, and measures itself: the
time from its address to its first curves and until all charts are painted, and, for many places of
a slider, from the event of the slider to the end of drawing. The same is measured for its hinge,
inspected in four charts, with a constant that moves all of them and one that moves some. The bars
are for a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from examples.compliant_door import build
from tests.support.pages.browser import running_chromium, visiting

#: Bytes of the page, and seconds: to the first curves, to all charts, and of a slider step.
BARS = {
    "size": 1.5e6,
    "size of an inspector": 1.5e6,
    "first drawing": 1.0,
    "all charts": 1.5,
    "slider step": 0.05,
    "slider step, p95": 0.08,
    "inspector step": 0.05,
    "inspector step, p95": 0.08,
}
SLIDER = '.control[data-path$="{}"] input[type=range]'
STEPS = 60
VISITS = 5
MOVE = """async ([selector, steps]) => {
  const slider = document.querySelector(selector);
  performance.clearMeasures();
  for (let k = 0; k < steps; k++) {
    const before = document.body.dataset.runs;
    slider.value = 300 + 8 * k;
    slider.dispatchEvent(new Event("input"));
    while (document.body.dataset.runs === before) await new Promise((go) => setTimeout(go, 1));
    await new Promise((go) => requestAnimationFrame(go));
  }
  return performance.getEntriesByName("answer").map((entry) => entry.duration / 1000);
}"""
MARK = "performance.getEntriesByName('{}')[0].startTime / 1000"


def measure(folder: Path) -> dict[str, float]:
    """Return the numbers of the door's page."""
    servo = build()
    page = fx.page(servo, 10.0, path=folder / "door.html")
    hinge = fx.inspect_block(servo.get_system("door.hinge"), path=folder / "hinge.html")
    with running_chromium() as browser:

        def opening() -> tuple[float, float]:
            with visiting(browser, folder / "door.html") as visit:
                visit.page.locator("body[data-drawn][data-runs]").wait_for()
                drawn, painted = (visit.page.evaluate(MARK.format(n)) for n in ("drawn", "painted"))
                return float(drawn), float(painted)

        def steps(title: str, name: str, path: str) -> dict[str, float]:
            with visiting(browser, folder / name) as visit:
                visit.page.locator("body[data-drawn][data-runs]").wait_for()
                visit.page.wait_for_timeout(1000)
                found = visit.page.evaluate(MOVE, [SLIDER.format(path), STEPS])
            times = sorted(map(float, found))
            late = statistics.quantiles(times, n=20)[-1]
            return {title: statistics.median(times), f"{title}, p95": late}

        visits = [opening() for _ in range(VISITS)]
        moved = {
            **steps("slider step", "door.html", "pid.kp"),
            **steps("inspector step", "hinge.html", "spring_constant"),
            **steps("inspector step, some curves", "hinge.html", "catch_width"),
        }
    return {
        "size": float(page.size),
        "size of an inspector": float(hinge.size),
        "first drawing": statistics.median(drawn for drawn, _ in visits),
        "all charts": statistics.median(painted for _, painted in visits),
        **moved,
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
