"""A page of a plant shows it in 3-D, where the run in the page has brought it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import flexure as fx
from examples.compliant_door import build as door
from examples.mechanisms.four_bar_linkage import build as four_bar
from flexure.diagrams.drawing.formats.style import RED
from flexure.solvers.results.mechanisms.camera import Camera
from tests.support.calls.public_methods import CALLS
from tests.support.pages.pages import opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SEEN = "() => { const {mechanism} = document.querySelector('#mechanism canvas');"
SEEN += "mechanism.draw(); return mechanism.seen(); }"


@pytest.mark.parametrize("live", [True, False], ids=["that runs", "as recorded"])
def test_the_door_turns_as_far_as_a_simulation_says(
    live: bool, browser: Browser, tmp_path: Path
) -> None:
    servo = door()
    servo_result = fx.simulate(servo, 3.0, rtol=1e-8)
    page = fx.page(servo, 3.0, rtol=1e-8) if live else servo_result.page()
    with opened(browser, page, tmp_path) as shown:
        at_start = shown.visit.page.evaluate(SEEN)
        shown.visit.page.locator("#player input[type=range]").press("End")
        at_end = shown.visit.page.evaluate(SEEN)
    angle = float(servo_result["door.axis.angle"][-1])
    camera = Camera((at_end["camera"]["azimuth"], at_end["camera"]["elevation"]))
    origin = np.array(at_end["bodies"][1])
    corner = np.array([-0.6 * np.sin(angle), 0.6 * np.cos(angle), 0.35])  # near to the edge
    right, up, _ = camera(corner)
    expected = origin + at_end["scale"] * np.array([right, -up])
    corners = [np.concatenate([f["corners"] for f in each["faces"]]) for each in (at_start, at_end)]
    off = [np.min(np.linalg.norm(each - expected, axis=1)) for each in corners]
    assert off[1] < 0.02 * at_end["scale"]  # half of the thickness, and the view
    assert off[0] > 0.1 * at_end["scale"]


def test_all_plants_are_shown_with_forces_and_traces_and_their_energies_add_up(
    browser: Browser, tmp_path: Path
) -> None:
    builder = fx.DiagramBuilder("pair")
    for name in ("left", "right"):
        plant = fx.PlantBuilder(name, gravity=(0.0, 0.0, -9.81))
        solid = fx.SpatialInertia.solid_box(mass=1.0, size=(0.6, 0.05, 0.05))
        bar = plant.add_body("bar", solid, com=(0.3, 0.0, 0.0))
        plant.add_frame("tip", bar, (0.6, 0.0, 0.0))
        plant.add_joint(fx.RevoluteJoint("pivot", plant.world, bar, axis=(0, 1, 0)))
        strut = fx.LinearSpringDamper(
            "strut", plant.world, (0.3, 0.0, 0.6), bar, (0.5, 0.0, 0.0),
            free_length=0.3, stiffness=60.0, damping=1.0,
        )  # fmt: skip
        plant.add_force_element(strut)
        plant.add_energy_ledger()
        builder.add(plant.build())
    pair = builder.build()
    tip = pair.get_system("left").frame("tip")  # type: ignore[attr-defined]
    result = fx.simulate(pair, 0.5)
    page = result.page(signals=["left.pivot.angle", "left.ledger.balance"],
                       units={"rad": "deg"}, forces=True, trace=tip)  # fmt: skip
    with opened(browser, page, tmp_path) as shown:
        assert shown.page.locator("#mechanism h3").all_inner_texts() == ["left", "right"]
        shown.visit.page.locator("#player input[type=range]").press("End")
        seen = [
            shown.page.evaluate(
                SEEN.replace("querySelector", "querySelectorAll").replace(
                    "canvas')", f"canvas')[{k}]"
                )
            )
            for k in range(2)
        ]
        table = shown.table()
        charts = shown.page.evaluate(
            "[...document.querySelectorAll('.panel .face')].flatMap(each => each.data)"
            ".filter(t => !t.quiet).map(t => [t.name, Array.from(t.y)])"
        )
        legend = shown.page.locator(".legend").first.inner_text()
        data = shown.page.evaluate("JSON.parse(document.getElementById('data').textContent)")
    for name, each in zip(("left", "right"), seen, strict=True):
        (arrow,) = each["arrows"]
        force = result[f"{name}.strut.force_on_B"][-1, 3:]
        (x0, y0), (x1, y1) = arrow["ends"]
        direction = np.array([x1 - x0, y0 - y1]) / np.hypot(x1 - x0, y0 - y1)  # x and z are seen
        np.testing.assert_allclose(direction, force[[0, 2]] / np.linalg.norm(force), atol=1e-6)
    traces = [len(each["traces"]) for each in data["mechanisms"]]
    assert traces == [1, 0]
    shown_curves = dict(charts)
    np.testing.assert_allclose(
        shown_curves["left.pivot.angle"], np.rad2deg(table["left.pivot.angle"]), rtol=1e-12
    )
    assert "deg" in legend
    balance = table["left.ledger.balance"]
    np.testing.assert_allclose(
        shown_curves["left.ledger.balance"], balance - balance[0], atol=1e-15
    )


def pushed_leaf(yield_strength: float | None) -> fx.Plant:
    """A leaf that a constant force bends."""
    builder = fx.PlantBuilder("guide", gravity=(0.0, 0.0, 0.0))
    block = builder.add_body("block", fx.SpatialInertia.point_mass(0.05))
    axis = builder.add_joint(fx.PrismaticJoint("axis", builder.world, block, axis=(0, 1, 0)))
    axis.default_translation = 1e-3
    foot = builder.add_frame("foot", builder.world, (-0.1, 0.0, 0.0))
    steel = fx.Material(210e9, poissons_ratio=0.3, density=7850.0, yield_strength=yield_strength)
    builder.add_force_element(
        fx.LeafSpring(
            "leaf",
            foot,
            block,
            length=0.1,
            width=0.02,
            thickness=5e-4,
            material=steel,
            prestressed=True,
        )
    )
    return builder.build()


def test_flexures_have_the_colors_of_their_stress_up_to_the_yield_strength_that_people_set(
    browser: Browser, tmp_path: Path
) -> None:
    plant = pushed_leaf(235e6)
    context = plant.create_default_context()
    greatest = float(plant.find_output("leaf.greatest_stress").eval(context).item())
    strength = "leaf.yield_strength"
    page = fx.page(plant, 1e-3, stress=True, parameters=[strength])
    with opened(browser, page, tmp_path) as shown:
        before = shown.page.evaluate(SEEN)
        shown.enter(strength, str(0.9 * greatest))
        after = shown.page.evaluate(SEEN)
    assert before["stress"] == 235e6
    assert after["stress"] == pytest.approx(0.9 * greatest)
    is_red = [[face["color"] == RED for face in each["faces"]] for each in (before, after)]
    assert not any(is_red[0])
    assert any(is_red[1])
    assert not all(is_red[1])


def test_a_flexure_that_is_pressed_shows_its_stress_safety_and_equations(
    browser: Browser, tmp_path: Path
) -> None:
    plant = pushed_leaf(235e6)
    result = fx.simulate(plant, 0.02, rtol=1e-8)
    with opened(browser, fx.page(plant, 0.02, forces=True, rtol=1e-8), tmp_path) as shown:
        canvas = shown.page.locator("#mechanism canvas")
        box = canvas.bounding_box()
        seen = shown.page.evaluate(SEEN)
        assert box is not None
        assert all(arrow["text"].endswith(" N") for arrow in seen["arrows"])
        corners = np.mean(seen["faces"][len(seen["faces"]) // 2]["corners"], axis=0)
        with shown.running():  # which now gives these signals, too
            shown.page.mouse.click(box["x"] + corners[0], box["y"] + corners[1])
        assert shown.page.locator(".inside select").input_value() == "0"
        shown.press("Add to the charts")
        table = shown.table()
        tiles = [
            float(each.get_attribute("data-number") or "nan")
            for each in shown.page.locator(".inside .tile").all()
        ]
        assert shown.page.locator(".inside .curve").count() == 2
        assert "k_y = E w t³ / L³" in shown.page.locator(".inside .law").inner_text()
    stress, safety = (result.sample(f"leaf.{name}", table["time"]) for name in
                      ("greatest_stress", "safety"))  # fmt: skip
    expected = [stress[0], np.max(stress), safety[0], np.min(safety)]
    np.testing.assert_allclose(tiles, expected, rtol=1e-4)
    np.testing.assert_allclose(table["leaf.safety"], safety, rtol=1e-3)


def test_shapes_of_modes_and_of_buckling_move_the_mechanism_with_a_slider(
    browser: Browser, tmp_path: Path
) -> None:
    plant, other = pushed_leaf(235e6), pushed_leaf(None)
    modes, others = (fx.modes(each, fx.equilibrium(each).context) for each in (plant, other))
    with pytest.raises(fx.errors.ValueRefusedError, match=r"shapes= results of modes, buckling"):
        fx.page(plant, 0.01, shapes=others)
    page = fx.page(plant, 0.01, shapes=[modes], view="xy")
    with opened(browser, page, tmp_path) as shown:
        choice = shown.page.get_by_label("Shape of guide")
        assert choice.locator("option").count() == 1 + len(modes)
        slider = shown.page.get_by_label("Phase of the shape in degrees")
        assert not slider.is_visible()
        choice.select_option("0")
        places = []
        for degrees in (0, 90, 180):
            slider.fill(str(degrees))
            seen = shown.page.evaluate(SEEN)
            places.append(-seen["bodies"][1][1] / seen["scale"])
        shown.page.get_by_label("Shape of guide").select_option("")
        assert not slider.is_visible()
    up, rest, down = np.array(places) - places[1]
    assert up == pytest.approx(-down, rel=1e-3)
    assert abs(up) == pytest.approx(0.12 * 0.1, rel=0.02)  # of the length of the leaf
    assert rest == 0.0
    call = CALLS["buckling"]()
    loads: Any = call.function(**call.arguments)
    shapes = json.dumps([f"{each.kind}, factor {each.factor:.4g}" for each in loads])
    page = fx.page(loads.context.system, 0.01, shapes=loads)
    assert json.dumps(re.findall(r'"name":"([^"]*, factor [^"]*)"', page.html)) == shapes


def test_a_slider_drags_the_mechanism_along_a_load_path(browser: Browser, tmp_path: Path) -> None:
    plant = pushed_leaf(235e6)
    path = fx.load_path(plant, {"axis.translation": np.linspace(0.0, 4e-4, 5)})
    page = fx.page(plant, 0.01, shapes=path, view="xy", stress=True)
    with opened(browser, page, tmp_path) as shown:
        shown.page.get_by_label("Shape of guide").select_option("0")
        slider = shown.page.get_by_label("Place on the load path")
        places = []
        for end in ("0", slider.get_attribute("max") or ""):
            slider.fill(end)
            seen = shown.page.evaluate(SEEN)
            places.append(-seen["bodies"][1][1] / seen["scale"])
        label = shown.page.locator(".inside output").inner_text()
    assert places[1] - places[0] == pytest.approx(4e-4, rel=1e-2)
    force = path.required["axis.translation"][-1]
    assert label.startswith("axis.translation = 0.0004, required force on axis.translation = ")
    assert float(label.rsplit(" ", 1)[1]) == pytest.approx(force, rel=1e-5)
    rows = re.findall(r'"signals":\{"leaf.stress":(\[\[.*?\]\])', page.html)
    np.testing.assert_allclose(json.loads(rows[0])[-1], path["leaf.stress"][-1], rtol=1e-5)


def test_without_a_yield_strength_colors_end_at_the_greatest_stress_of_the_run(
    browser: Browser, tmp_path: Path
) -> None:
    result = fx.simulate(pushed_leaf(None), 0.01)
    with opened(browser, result.page(stress=True), tmp_path) as shown:
        seen = shown.page.evaluate(SEEN)
    greatest = np.max(result["leaf.stress"])
    assert seen["stress"] == pytest.approx(greatest, rel=1e-2)


def test_a_loop_that_a_slider_has_opened_is_closed_as_in_python(
    browser: Browser, tmp_path: Path
) -> None:
    linkage, context = four_bar()
    page = fx.page(linkage, 0.2, context=context, parameters=["shaft.angle"], rtol=1e-8)
    with opened(browser, page, tmp_path) as shown:
        untouched = shown.text("Python")
        shown.enter("shaft.angle", "1.2")
        told, end = shown.text("Python"), shown.table()["shaft.angle"][-1]
        state = shown.page.locator("#alert").is_hidden()
    assert state
    assert "assemble" not in untouched
    assert "linkage.assemble(context)" in told
    context.set("shaft.angle", 1.2)
    linkage.assemble(context)
    assert end == pytest.approx(
        fx.simulate(linkage, 0.2, context=context, rtol=1e-8)["shaft.angle"][-1]
    )


def test_what_a_page_cannot_show_of_a_mechanism_is_refused() -> None:
    servo = door()
    for odd, complaint in (
        ({"trace": fx.Body("stranger")}, "of this plant"),
        ({"view": "above"}, "a view among"),
        ({"view": np.ones((2, 3))}, "a vector of size 2"),
        ({"forces": "yes"}, "forces"),
        ({"ground": np.nan}, "ground"),
        ({"units": {"rad": "kg"}}, "'rad' as 'kg'"),
        ({"stress": True}, "a Beam or a NotchHinge"),
        ({"stress": "no"}, "stress"),
    ):
        with pytest.raises(fx.errors.FlexureError, match=complaint):
            fx.page(servo, 1.0, **odd)
