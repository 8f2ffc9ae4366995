"""How pages look: readable in light and dark, usable on a phone and by the keyboard, only text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import flexure as fx
from examples.compliant_door import build as door
from tests.support.pages.pages import OpenPage, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ATTACK = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>"
#: Contrast of texts with what is behind them, by the formula of WCAG 2, and what is too low.
CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parts = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const color = parts(getComputedStyle(each).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  const found = [];
  for (const node of document.body.querySelectorAll("*")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    const field = node instanceof HTMLInputElement && node.type !== "range";
    if (!(own || field) || !node.checkVisibility() || node.closest("script, style")) continue;
    const style = getComputedStyle(node);
    const color = parts(node instanceof SVGElement ? style.fill : style.color);
    if (color[3] === 0 || node.getBoundingClientRect().width === 0) continue;
    const [high, low] = [light(color), light(behind(node))].sort((a, b) => b - a);
    found.push([(high + 0.05) / (low + 0.05), `${node.tagName} ${node.textContent.slice(0, 30)}`]);
  }
  return found;
}"""
#: Fields and buttons without a name, or that the keyboard does not reach.
NAMELESS = """() => [...document.querySelectorAll("input, select, button, summary")]
  .filter((node) => node.checkVisibility())
  .filter((node) => {
    const name = node.getAttribute("aria-label") || node.labels?.[0]?.textContent || node.innerText;
    return !name?.trim() || node.tabIndex < 0;
  }).map((node) => node.outerHTML.slice(0, 200))"""
#: What has the focus, and whether it is above the player, which stays at the lower edge.
FOCUSED = """() => {
  const node = document.activeElement, { y, height } = node.getBoundingClientRect();
  const edge = document.getElementById("player").getBoundingClientRect().y;
  return [node.outerHTML.slice(0, 300), node.closest("#player") !== null || y + height / 2 < edge];
}"""
WIDER_THAN_THE_WINDOW = """() => {
  const wide = [...document.querySelectorAll("main *, header *, footer *")]
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1)
    .filter((node) => !node.closest("svg") || node.tagName === "svg") // which cuts off its parts
    .map((node) => node.outerHTML.slice(0, 120));
  return [document.documentElement.scrollWidth, wide];
}"""


@pytest.fixture(scope="module")
def shown(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenPage]:
    """Open the page of the door with a changed value, so that all kinds of texts are there."""
    page = fx.page(door(), 10.0)
    with opened(browser, page, tmp_path_factory.mktemp("door")) as found:
        found.enter("pid.kp", "75")
        found.page.locator("summary", has_text="more values").click()
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_the_contrast_that_accessibility_asks_for(scheme: Any, shown: OpenPage) -> None:
    shown.page.emulate_media(color_scheme=scheme)
    shown.until(CONTRAST, lambda found: len(found) > 100 and min(r for r, _ in found) >= 4.5)


def test_everything_has_a_name_and_is_reached_by_the_keyboard(shown: OpenPage) -> None:
    page = shown.page
    assert page.evaluate(NAMELESS) == []
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.title() == "servo"
    assert page.locator("h1").count() == 1
    page.locator("h1").click()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        text, is_seen = page.evaluate(FOCUSED)
        reached.add(text)
        assert is_seen, text
    assert len(reached) > 50
    fields = page.locator('#values fieldset[data-block="pid"] input.number').all()
    assert {str(each.get_attribute("aria-label")).partition(".")[0] for each in fields} == {"pid"}


def test_a_phone_shows_all_of_it_without_scrolling_sideways(shown: OpenPage) -> None:
    shown.page.set_viewport_size({"width": 400, "height": 800})
    shown.until(WIDER_THAN_THE_WINDOW, lambda found: found[0] <= 400 and found[1] == [])
    shown.page.set_viewport_size({"width": 1280, "height": 900})


def test_a_phone_shows_curves_before_the_figures_of_a_response(shown: OpenPage) -> None:
    shown.page.set_viewport_size({"width": 390, "height": 844})
    edges = "['charts', 'responses'].map((id) => document.getElementById(id))"
    edges += ".map((node) => node.getBoundingClientRect()).map((box) => [box.top, box.bottom])"
    shown.until(edges, lambda found: found[0][1] <= found[1][0])
    shown.page.set_viewport_size({"width": 1280, "height": 900})


def test_a_phone_shows_the_foremost_curves_while_a_slider_far_below_them_moves(
    shown: OpenPage,
) -> None:
    glance = shown.page.locator(".glance")
    assert not glance.is_visible()  # where charts are beside the sliders
    shown.page.set_viewport_size({"width": 400, "height": 800})
    slider = shown.row("pid.kd").locator("input[type=range]")
    slider.evaluate("node => node.scrollIntoView({ block: 'end' })")
    charts = shown.page.locator("#charts .charts").bounding_box()
    assert charts is not None
    assert charts["y"] + charts["height"] < 0.0
    lines = glance.locator(".curve")
    before = [line.get_attribute("d") for line in lines.all()]
    with shown.running():
        slider.press("PageUp")
    after = [line.get_attribute("d") for line in lines.all()]
    assert len(after) >= 2
    assert after[-1] != before[-1]
    box, moved = glance.bounding_box(), slider.bounding_box()
    assert box is not None
    assert moved is not None
    assert 0.0 <= box["y"] < box["y"] + box["height"] < moved["y"] < 800.0
    assert 60.0 < box["height"] < 160.0
    shown.page.set_viewport_size({"width": 1280, "height": 900})


def test_paper_shows_charts_and_figures_without_what_only_hands_use(shown: OpenPage) -> None:
    shown.page.emulate_media(media="print", color_scheme="dark")
    ink = shown.page.locator("h1").evaluate("node => getComputedStyle(node).color")
    assert max(map(int, re.findall(r"\d+", ink))) < 64  # paper is white
    seen = {
        name: shown.page.locator(name).first.is_visible()
        for name in ("#charts .face", ".tiles", "#runs table", "#player", "#sharing", ".picker")
    }
    assert list(seen.values()) == [True, True, True, False, False, False]
    shown.page.emulate_media(media="screen", color_scheme="light")


def test_a_page_around_it_chooses_light_or_dark(shown: OpenPage) -> None:
    page = shown.page
    page.emulate_media(color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    chart = "getComputedStyle(document.querySelector('#charts .face text')).fill"
    light = page.evaluate(f"[{paper}, {chart}]")

    def is_dark(found: list[str]) -> bool:
        return all(one != other for one, other in zip(found, light, strict=True))

    page.evaluate("postMessage({ colors: 'dark' }, '*')")
    shown.until(f"[{paper}, {chart}]", is_dark)
    page.evaluate("postMessage({ colors: 'sepia' }, '*')")
    page.wait_for_timeout(100)
    assert is_dark(page.evaluate(f"[{paper}, {chart}]"))  # it knows no other words
    page.evaluate("postMessage({ colors: 'light' }, '*')")
    shown.until(f"[{paper}, {chart}]", light.__eq__)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(paper) == light[0]


class Odd(fx.LeafSystem):
    """A lag whose texts are those of somebody who means no good."""

    def __init__(self) -> None:
        super().__init__("odd")
        rate = {"unit": "</script>", "doc": ATTACK}
        self.rate = self.declare_numeric_parameter("rate", 1.0, **rate)  # type: ignore[arg-type]
        self.declare_numeric_parameter("t_final", 1.0)
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.declare_vector_output("y", 1, self.x, unit="<b>m</b>", doc=ATTACK)
        labels = ["a[0]", ATTACK]
        self.declare_vector_output("both", 2, self.calc_both, element_names=labels)

    def calc_both(self, context: Any) -> Any:
        return [2.0 * self.x(context)[0], 3.0]

    def calc_time_derivatives(self, context: Any) -> Any:
        return -self.rate(context) * self.x(context)


def test_texts_of_users_stay_texts(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, fx.page(Odd(), 2.0, title=ATTACK), tmp_path) as shown:
        shown.page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        assert shown.page.title() == ATTACK
        assert shown.page.locator("h1").inner_text() == ATTACK
        assert shown.row("rate").locator(".unit").inner_text() == "</script>"
        assert ATTACK in (shown.row("rate").locator("label").get_attribute("title") or "")
        assert shown.page.locator(".legend .unit").first.inner_text().strip() == "<b>m</b>"
        shown.page.mouse.move(700, 450)  # the unit is written beside the pointer, too
        shown.enter("rate", "2")
        assert shown.page.locator("img, main script").count() == 0
        shown.enter("t_final", "3")  # is not the end of the run
        shown.until("location.hash", "#rate=2&t_final=3".__eq__)  # follows when the hand rests
        table = shown.table()
        assert table["time"][-1] == 2.0
        assert len(table["y"]) > 1000
        assert table["both[a[0]]"].tolist() == (2.0 * table["y"]).tolist()


def test_data_is_read_back_as_it_was() -> None:
    html = fx.page(Odd(), 2.0).html
    text = html.partition('id="data">')[2].partition("</script>")[0]
    assert json.loads(text)["signals"][0]["doc"] == ATTACK
