"""The diagram of a page in a real browser: what it shows, and what it does when it is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import flexure as fx
from tests.support.pages.browser import Visit, visiting
from tests.support.pages.diagram_page import write_diagram_page
from tests.support.pages.drawings import cell, diagram_of, rig

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

RECORDED = {"plant.angle": 0.5, "pid.y": 2.0}


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Iterator[Visit]:
    """Visit a controller with a plant that has many outputs; nothing may go wrong meanwhile."""
    file = tmp_path / "rig.html"
    write_diagram_page(rig(), file, RECORDED)
    with visiting(browser, file) as visit:
        visit.page.emulate_media(reduced_motion="reduce")
        yield visit


@pytest.fixture
def page(visit: Visit) -> Page:
    return visit.page


def stage(page: Page) -> Locator:
    return page.locator("svg.stage")


def block(page: Page, name: str) -> Locator:
    return stage(page).get_by_role("button", name=name)


def texts(page: Page) -> set[str]:
    return set(stage(page).locator("text").all_text_contents())


def calls(page: Page) -> list[list[Any]]:
    found: list[list[Any]] = page.evaluate("calls")
    return found


def middle(page: Page, text: str) -> tuple[float, float]:
    """Return where on the screen a text of the drawing is."""
    box = stage(page).get_by_text(text, exact=True).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def width_of(locator: Locator) -> float:
    box = locator.bounding_box()
    assert box is not None
    return box["width"]


# Folding -----------------------------------------------------------------------------------


def test_a_block_unfolds_in_place_and_folds_again(page: Page) -> None:
    assert "tree" not in texts(page)
    assert block(page, "plant").get_attribute("aria-expanded") == "false"
    page.locator(".opener").click()
    assert {"tree", "totals", "pid"} <= texts(page)
    assert block(page, "plant").get_attribute("aria-expanded") == "true"
    page.locator(".opener").click()
    assert "tree" not in texts(page)


def test_space_unfolds_the_block_that_has_the_focus_and_keeps_it(page: Page) -> None:
    block(page, "plant").focus()
    page.keyboard.press("Space")
    assert "tree" in texts(page)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("plant")
    page.keyboard.press("Space")
    assert "tree" not in texts(page)


def test_two_quick_presses_unfold_a_block_and_a_sign_at_its_edge_acts_once(page: Page) -> None:
    page.mouse.dblclick(*middle(page, "plant"))
    assert "tree" in texts(page)
    sign = page.locator(".opener").bounding_box()
    assert sign is not None
    page.mouse.dblclick(sign["x"] + sign["width"] / 2, sign["y"] + sign["height"] / 2)
    assert "tree" not in texts(page)


def test_the_inside_of_a_block_is_shown_alone_with_a_way_back(page: Page) -> None:
    block(page, "plant").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Go inside").click()
    assert "pid" not in texts(page)
    assert {"tree", "totals", "momentum"} <= texts(page)  # exported ports are not folded there
    page.get_by_role("navigation").get_by_role("button", name="rig").click()
    assert {"pid", "plant"} <= texts(page)


def test_blocks_in_blocks_unfold_one_by_one_and_fold_together(
    browser: Browser, tmp_path: Path
) -> None:
    write_diagram_page(cell(), tmp_path / "cell.html", {})
    with visiting(browser, tmp_path / "cell.html") as visit:
        page = visit.page
        for name in ("robot", "elbow"):
            block(page, name).focus()
            page.keyboard.press("Space")
        assert {"path", "arm", "pid", "motor"} <= texts(page)
        assert block(page, "shoulder").get_attribute("aria-expanded") == "false"
        block(page, "robot").focus()
        page.keyboard.press("Space")
        assert {"path", "pid"}.isdisjoint(texts(page))


# Pointing and pressing ---------------------------------------------------------------------


def test_a_port_that_is_pointed_at_tells_its_kind_and_its_value_now(page: Page) -> None:
    page.mouse.move(*middle(page, "angle"))
    note = page.get_by_role("tooltip")
    assert note.locator("strong").text_content() == "plant.angle"
    assert "output, size 1" in note.inner_text()
    page.evaluate("app.seek(4)")
    assert note.locator(".value").text_content() == "2"
    page.mouse.move(*middle(page, "measurement"))  # an input has the value that comes to it
    assert note.locator("strong").text_content() == "pid.measurement"
    assert note.locator(".value").text_content() == "2"


def test_a_wire_that_is_pointed_at_tells_its_value_and_lights_up_with_its_ports(page: Page) -> None:
    wire = stage(page).locator("path.reach").first
    number = wire.get_attribute("data-thing")
    wire.dispatch_event("pointermove", {"clientX": 300, "clientY": 200, "bubbles": True})
    page.evaluate("app.seek(10)")
    assert page.get_by_role("tooltip").locator(".value").text_content() in ("5", "20")
    assert stage(page).locator(f".wire.pointed[data-thing='{number}']").count() >= 1
    assert stage(page).locator("rect.pointed").count() == 2


def test_pressing_a_port_plots_it_and_pressing_it_again_ends_that(page: Page) -> None:
    for _ in range(2):
        page.mouse.click(*middle(page, "angle"))
    assert [call for call in calls(page) if call[0] != "select"] == [
        ["show", "plant.angle"],
        ["hide", "plant.angle"],
    ]


def test_folded_ports_are_listed_and_plotted_from_the_list(page: Page) -> None:
    page.mouse.click(*middle(page, "… 7 more outputs"))
    rows = page.locator(".details button.plot")
    assert rows.count() == 7
    rows.filter(has_text="momentum").click()
    assert ["show", "plant.momentum"] in calls(page)
    assert rows.filter(has_text="momentum").get_attribute("aria-pressed") == "true"


def test_what_another_view_selects_is_told_here(page: Page) -> None:
    page.evaluate("app.select('pid')")
    assert page.locator(".details h3").inner_text().startswith("pid")


# Search ------------------------------------------------------------------------------------


def test_search_finds_unfolds_and_marks(page: Page) -> None:
    field = page.get_by_role("combobox")
    field.fill("totals.")
    options = page.get_by_role("option")
    assert options.all_inner_texts()[0].startswith("plant.totals.")
    page.keyboard.press("ArrowDown")
    assert options.nth(1).get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    assert "totals" in texts(page)
    assert "found" in (block(page, "totals").get_attribute("class") or "")
    box = block(page, "totals").bounding_box()
    window = stage(page).bounding_box()
    assert box is not None
    assert window is not None
    assert abs(box["x"] + box["width"] / 2 - window["x"] - window["width"] / 2) < 2
    assert page.locator(".details .current").count() == 1


def test_search_finds_parameters_and_says_when_there_is_nothing(
    browser: Browser, tmp_path: Path
) -> None:
    lag = diagram_of("only", [fx.FirstOrderLag("lag", 2.5)], "", {"u": "lag.u"})
    write_diagram_page(lag, tmp_path / "lag.html", {})
    with visiting(browser, tmp_path / "lag.html") as visit:
        field = visit.page.get_by_role("combobox")
        field.fill("nowhere")
        assert visit.page.get_by_role("listbox").inner_text() == "Nothing is called so"
        field.fill("CONSTANT")
        visit.page.get_by_role("option").first.dispatch_event("pointerdown")
        assert visit.page.locator(".details .current").inner_text().split("\n") == [
            "time_constant",
            "2.5 s",
        ]


def test_a_large_diagram_opens_at_its_first_block(browser: Browser, tmp_path: Path) -> None:
    """Wires of a plant with a divided leaf fill the corner of its drawing."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    table = builder.add_body("table", fx.SpatialInertia.point_mass(0.5))
    builder.add_joint(fx.PlanarJoint("table", builder.world, table)).default_positions = [0.1, 0, 0]
    leaf: dict[str, Any] = {"length": 0.1, "width": 0.02, "thickness": 5e-4}
    steel = fx.Material.common("stainless steel 301")
    builder.add_force_element(
        fx.LeafSpring("leaf", builder.world, table, material=steel, segments=6, **leaf)
    )
    write_diagram_page(builder.build(), tmp_path / "stage.html", {})
    with visiting(browser, tmp_path / "stage.html") as visit:
        window = stage(visit.page).bounding_box()
        boxes = [each.bounding_box() for each in stage(visit.page).get_by_role("button").all()]
        assert window is not None
        first = min((box for box in boxes if box is not None), key=lambda box: box["x"])
        for along, size in (("x", "width"), ("y", "height")):
            into = first[along] - window[along]  # type: ignore[literal-required]
            assert 0.0 <= into < 0.5 * window[size]  # type: ignore[literal-required]


# Moving around -----------------------------------------------------------------------------


def test_keys_zoom_pan_and_show_everything_again(page: Page) -> None:
    stage(page).focus()
    page.keyboard.press("0")
    whole = stage(page).get_attribute("viewBox")
    before = width_of(block(page, "pid"))
    page.keyboard.press("+")
    assert width_of(block(page, "pid")) > 1.2 * before
    zoomed = stage(page).get_attribute("viewBox")
    page.keyboard.press("ArrowRight")
    assert stage(page).get_attribute("viewBox") != zoomed
    page.keyboard.press("0")
    assert stage(page).get_attribute("viewBox") == whole


def test_the_wheel_scrolls_the_page_unless_the_diagram_is_in_use(page: Page) -> None:
    before = stage(page).get_attribute("viewBox")
    page.mouse.move(*middle(page, "pid"))
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(50)
    assert stage(page).get_attribute("viewBox") == before
    at = middle(page, "pid")
    page.mouse.click(*at)
    page.mouse.wheel(0, -200)
    page.wait_for_function(
        "before => document.querySelector('svg.stage').getAttribute('viewBox') !== before",
        arg=before,
    )
    x, y = middle(page, "pid")
    assert abs(x - at[0]) < 3  # what is under the pointer stays there
    assert abs(y - at[1]) < 3


def test_dragging_pans_and_presses_nothing(page: Page) -> None:
    x, y = middle(page, "angle")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 10, steps=4)
    page.mouse.up()
    after = middle(page, "angle")
    assert abs(after[0] - x - 40) < 6
    assert abs(after[1] - y - 10) < 6
    assert calls(page) == []


def test_two_fingers_pinch(page: Page) -> None:
    before = width_of(block(page, "pid"))
    page.evaluate("""() => {
      const svg = document.querySelector("svg.stage");
      svg.setPointerCapture = () => {};
      const send = (kind, id, x, y) => svg.dispatchEvent(new PointerEvent(kind,
        { pointerId: id, pointerType: "touch", clientX: x, clientY: y, bubbles: true, button: 0 }));
      send("pointerdown", 1, 300, 150);
      send("pointerdown", 2, 400, 150);
      send("pointermove", 2, 450, 150);
      send("pointermove", 2, 500, 150);
      send("pointerup", 1, 300, 150);
      send("pointerup", 2, 500, 150);
    }""")
    assert 1.7 < width_of(block(page, "pid")) / before < 2.3


def test_a_narrow_page_begins_with_what_can_be_read(browser: Browser, tmp_path: Path) -> None:
    write_diagram_page(rig(), tmp_path / "rig.html", {})
    with visiting(browser, tmp_path / "rig.html", width=400) as visit:
        page = visit.page
        heights = [box["height"] for text in ("pid", "plant") if (box := _box(page, text))]
        assert min(heights) >= 8
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.get_by_role("button", name="Show everything").click()


def _box(page: Page, text: str) -> Any:
    return stage(page).get_by_text(text, exact=True).bounding_box()


# Names of people ---------------------------------------------------------------------------


def test_on_a_live_page_any_wire_tells_its_value_and_is_charted(
    browser: Browser, tmp_path: Path
) -> None:
    lags = [fx.FirstOrderLag(f"lag{k}", 1.0) for k in range(3)]
    wires = "source.y>lag0.u lag0.y>lag1.u lag1.y>lag2.u"
    diagram = diagram_of("chain", [fx.Constant("source", 3.0), *lags], wires)
    fx.page(diagram, 20.0, signals=["lag2.y"], path=tmp_path / "page.html")
    with visiting(browser, tmp_path / "page.html") as visit:
        page = visit.page
        page.locator("body[data-drawn][data-runs]").wait_for()
        stage(page).scroll_into_view_if_needed()
        target = stage(page).locator("path.reach").nth(1)
        number = target.get_attribute("data-thing")
        x, y = page.evaluate(
            """number => {
              const path = document.querySelector(`path.reach[data-thing="${number}"]`);
              const at = path.getPointAtLength(path.getTotalLength() / 2);
              const { x, y } = at.matrixTransform(path.getScreenCTM());
              return [x, y];
            }""",
            number,
        )
        page.mouse.move(x, y)
        value = page.get_by_role("tooltip").locator(".value")
        value.get_by_text("0", exact=True).wait_for()  # recorded since somebody points at it
        page.mouse.click(x, y)
        legend = page.locator("#charts .legend")
        legend.get_by_text("lag0.y").wait_for()


def test_names_units_and_docs_stay_text(browser: Browser, tmp_path: Path) -> None:
    kind = type("<script>boom()</script>", (Odd,), {"__doc__": "<img src=x onerror=boom()> &amp;"})
    write_diagram_page(diagram_of("top", [kind("odd")]), tmp_path / "odd.html", {})
    with visiting(browser, tmp_path / "odd.html") as visit:
        page = visit.page
        assert "<script>boom()</script>" in texts(page)
        block(page, "odd").focus()
        page.keyboard.press("Enter")
        page.mouse.move(*middle(page, "force"))
        page.get_by_role("combobox").fill("force")
        shown = page.locator("#place")
        for text in ("<img src=x onerror=boom()> &amp;", "<i>N</i>", "</script><b>pushes</b>"):
            assert text in shown.inner_text()
        assert shown.locator("script, img, i, b").count() == 0


class Odd(fx.LeafSystem):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        doc = "</script><b>pushes</b>"
        self.declare_vector_input("force", 1, default=[0.0], unit="<i>N</i>", doc=doc)
