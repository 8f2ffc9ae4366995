"""Inspected blocks in a browser: what sliders do there is what the equations give in Python."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import flexure as fx
from examples.compliant_door import build as door
from flexure.solvers.pages.force_benches import force_bench
from tests.support.pages.pages import OpenPage, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Curves = dict[tuple[str, str], tuple[Any, Any]]
ORIGIN = (0.0, 0.0, 0.0)


def hinge(name: str = "hinge", **constants: float) -> fx.DoorHinge:
    axis = fx.RevoluteJoint("axis", fx.Body("frame"), fx.Body("door"), axis=(0, 0, 1))
    return fx.DoorHinge(name, axis, **constants)


class Inspected(OpenPage):
    """A page of a block that is open."""

    def fill(self, label: str, text: str) -> None:
        """Type into the field of a label, and wait until the curves are drawn anew."""
        with self.running():
            field = self.page.get_by_label(label, exact=True)
            field.fill(text)
            field.press("Enter")

    def curves(self) -> Curves:
        """Return places and values of all curves, by chart and name."""
        with self.page.expect_download() as download:
            self.press("CSV")
        file = self._folder / "curves.csv"
        download.value.save_as(file)
        rows: dict[tuple[str, str], list[list[float]]] = {}
        with file.open(encoding="utf-8", newline="") as stream:
            for row in list(csv.reader(stream))[1:]:
                rows.setdefault((row[0], row[1]), []).append([float(row[2]), float(row[3])])
        return {name: tuple(np.array(points).T) for name, points in rows.items()}

    def shares(self) -> dict[str, float]:
        rows = self.page.locator(".share").all()
        return {
            str(row.get_attribute("data-term")): float(row.get_attribute("data-number") or "nan")
            for row in rows
        }


@contextmanager
def inspected(
    browser: Browser, page: fx.results.Page, folder: Path, **options: Any
) -> Iterator[Inspected]:
    with opened(browser, page, folder, **options) as found:
        yield Inspected(found.visit, folder)


def assert_agree(found: tuple[Any, Any], law: Any, *others: float) -> None:
    places, values = found
    expected = np.array([np.ravel(law(place, *others))[0] for place in places])
    scale = 1.0 + np.max(np.abs(expected))
    np.testing.assert_allclose(values, expected, rtol=0.0, atol=1e-9 * scale)


def test_constants_of_a_hinge_move_its_curves_as_its_law_says(
    browser: Browser, tmp_path: Path
) -> None:
    block = hinge(spring_constant=3.0)
    angles = np.linspace(0.0, 1.0, 9)
    measured = (
        angles,
        np.full(9, 0.2),
        block.law(block.create_default_context()).torque(angles, 0.2),
    )
    page = fx.inspect_block(block, measured=measured, ranges={"angle": (-0.25, 1.5)})
    with inspected(browser, page, tmp_path) as shown:
        shown.fill("spring_constant", "2.25")
        with shown.running():
            slider = shown.page.get_by_label("catch_width, slider")
            slider.focus()
            slider.press("PageUp")
        shown.fill("rate", "0.01")
        scope: dict[str, Any] = {"hinge": block, "joint": block.joint}
        exec(shown.text("Python"), scope)
        context = scope["context"]
        assert float(block.spring_constant.get(context)) == 2.25
        assert float(block.catch_width.get(context)) > 0.02
        made = scope["hinge"].create_default_context()
        for handle in block.numeric_parameters:
            assert scope["hinge"].find(handle.name).get(made) == handle.get(context)
        law, curves = block.law(context), shown.curves()
        over_angle, over_rate = "Torque over angle", "Torque over rate"
        assert_agree(curves[over_angle, "torque"], law.torque, 0.01)
        assert_agree(curves[over_angle, "at the opposite rate"], law.torque, -0.01)
        assert_agree(curves[over_rate, "torque"], lambda rate: law.torque(0.0, rate))
        assert_agree(curves["Stored energy over angle", "stored energy"], law.stored_energy)
        for name in law.terms(0.0, 0.0):
            assert_agree(curves[over_angle, name], lambda q, name=name: law.terms(q, 0.01)[name])
        places = curves[over_angle, "torque"][0]
        assert (places[0], places[-1]) == (-0.25, 1.5)
        assert np.min(np.diff(places)) < 0.2 * np.max(np.diff(places))  # more where the catch is
        shares = shown.shares()
        total = shares.pop("torque")
        assert total == pytest.approx(float(law.torque(0.0, 0.01)), rel=1e-12)
        assert sum(shares.values()) == pytest.approx(total, rel=1e-12)
        measured_points = shown.page.evaluate(
            "document.querySelectorAll('.chart .face')[0].querySelectorAll('circle').length"
        )
        assert measured_points == 9 + 1  # and the point that is looked at
        with shown.running():
            shown.press("Reset")
        assert "spring_constant" not in shown.text("Python").partition("# Or")[0]


def test_an_element_of_a_plant_has_the_values_of_a_context(
    browser: Browser, tmp_path: Path
) -> None:
    servo = door()
    block: Any = servo.get_system("door.hinge")
    context = servo.create_default_context()
    context.set("door.hinge.spring_constant", 7.5)
    context.set("door.axis.angle", 0.5)
    with inspected(browser, fx.inspect_block(block, context), tmp_path, width=400) as shown:
        assert shown.page.evaluate("document.documentElement.scrollWidth") == 400
        shown.fill("viscous_friction", "1.5")
        scope: dict[str, Any] = {"servo": servo, "hinge": block, "joint": block.joint}
        exec(shown.text("Python"), scope)
        law = block.law(scope["context"].find(block))
        assert float(scope["hinge"].spring_constant.default) == 7.5
        assert (float(law.spring_constant), float(law.viscous_friction)) == (7.5, 1.5)
        curves = shown.curves()
        assert_agree(curves["Torque over rate", "torque"], lambda v: law.torque(0.5, v))
        last = shown.page.locator(".chart").last  # which is not drawn while nobody sees it
        last.scroll_into_view_if_needed()
        title = last.get_attribute("data-title")
        wanted = {name: list(y) for (chart, name), (_, y) in curves.items() if chart == title}
        drawn = "[...document.querySelectorAll('.chart')].at(-1).querySelector('.face')"
        drawn = f"({drawn}.data ?? []).map((trace) => [trace.name, [...trace.y]])"
        shown.until(drawn, lambda found: {name: dict(found).get(name) for name in wanted} == wanted)
    assert float(context.get("door.hinge.viscous_friction")) != 1.5
    assert block.parent is not None


def test_a_bushing_is_swept_along_a_coordinate_while_others_are_held(
    browser: Browser, tmp_path: Path
) -> None:
    mount = fx.LinearBushingRollPitchYaw(
        "mount",
        fx.Body("frame"),
        fx.Body("engine"),
        torque_stiffness=[50.0, 60.0, 80.0],
        torque_damping=[0.5, 0.25, 1.0],
        force_stiffness=[4e4, 5e4, 9e4],
        force_damping=200.0,
        energy_consistent=True,
    )
    with inspected(browser, fx.inspect_block(mount), tmp_path) as shown:
        with shown.running():
            shown.page.get_by_label("Over", exact=True).select_option(label="yaw")
        shown.page.locator("#held summary").click()
        shown.fill("y", "0.02")
        shown.fill("yaw rate", "0.5")
        shown.fill("mount.torque_stiffness[2]", "75")
        curves = shown.curves()
    context = mount.create_default_context()
    mount.torque_stiffness.set(context, [50.0, 60.0, 75.0])
    law = mount.law(context)

    def deformation(yaw: float) -> Any:
        R = [[np.cos(yaw), -np.sin(yaw), 0.0], [np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]]
        return law.deformation((np.array(R), np.array([0.0, 0.02, 0.0])))

    def torque(yaw: float, rate: float) -> float:
        now = deformation(yaw)
        F_C_A = law.spatial_forces(now, law.rates(now, np.array([0.0, 0.0, rate, 0.0, 0.0, 0.0])))[
            1
        ]
        return float(F_C_A[2])

    assert_agree(curves["Torque over yaw", "torque"], torque, 0.5)
    energy = curves["Stored energy over yaw", "stored energy"]
    assert_agree(energy, lambda yaw: law.stored_energy(deformation(yaw)))
    conservative = curves["Torque over yaw", "conservative"]
    slope = -np.gradient(np.interp(conservative[0], *energy), conservative[0], edge_order=2)
    np.testing.assert_allclose(conservative[1], slope, atol=2e-2 * np.max(np.abs(slope)))


def test_a_strut_is_pulled_along_its_length_and_a_table_over_its_input(
    browser: Browser, tmp_path: Path
) -> None:
    strut = fx.LinearSpringDamper(
        "strut", fx.Body("a"), (0.1, 0.2, 0.0), fx.Body("b"), ORIGIN,
        free_length=1.0, stiffness=96.0, damping=2.0,
    )  # fmt: skip
    with inspected(browser, fx.inspect_block(strut), tmp_path) as shown:
        rate = float(shown.page.get_by_label("length rate", exact=True).input_value())
        law = strut.law(strut.create_default_context())
        assert rate == 0.5
        assert_agree(shown.curves()["Force over length", "force"], law.force, rate)
        folded = shown.page.locator("section.zero:not(:has(canvas:visible, svg:visible))")
        assert folded.count() == 0
        shown.fill("strut.stiffness", "0")
        assert [each.get_attribute("data-title") for each in folded.all()] == [
            "Stored energy over length"
        ]
    table = fx.LookupTable("table", [10.0, 11.0, 12.0], [0.0, 3.0, 1.0])
    with inspected(
        browser, fx.inspect_block(table, title="<script>alert(1)</script>"), tmp_path
    ) as shown:
        assert shown.page.locator("h1").inner_text() == "<script>alert(1)</script>"
        shown.fill("values[1]", "4")
        x, y = shown.curves()["y over u", "y"]
        assert (np.min(x), np.max(x)) == pytest.approx((9.8, 12.2))  # with a tenth beyond its ends
        np.testing.assert_allclose(y, np.interp(x, [10.0, 11.0, 12.0], [0.0, 4.0, 1.0]), atol=1e-9)


def test_the_bench_is_right_in_every_element_without_a_browser() -> None:

    axis = fx.RevoluteJoint(
        "axis", fx.Body("frame"), fx.Body("door"), axis=(0, 0, 1), position_limits=(0.0, 1.5)
    )
    world = fx.PlantBuilder("plant").world
    elements: list[Any] = [
        fx.JointSpring("spring", axis, stiffness=4.0, damping=0.5, preload=1.0),
        fx.JointStop("stop", axis, stiffness=1000.0, damping=0.5),
        fx.JointFriction("friction", axis, coulomb_friction=3.0, transition_velocity=1e-3),
        fx.TabulatedSpring("table", axis, deflections=[-1.0, 0.0, 2.0], forces=[-2.0, 0.0, 9.0]),
        fx.LinearBushing(
            "back", fx.Body("engine"), world,
            torque_stiffness=5.0, torque_damping=1.0, force_stiffness=9.0, force_damping=2.0,
        ),
    ]  # fmt: skip
    for element in elements:
        values = element.create_default_context()
        bench = force_bench(element, values, "Cannot inspect")
        context = bench.context.clone()
        count = sum(axis.path == "velocity" for axis in bench.axes)
        rng = np.random.default_rng(4)
        rates = 0.1 * rng.normal(size=count)
        bench.system.find("velocity").fix(context, rates)
        bench.system.find("position").fix(context, 0.2 * rng.normal(size=count))
        force = np.concatenate([np.ravel(_read(bench, context, k)) for k in range(count)])
        powers = [f"{bench.prefix}{each}_power" for each in ("conservative", "non_conservative")]
        total = sum(float(bench.system.find_output(each).eval(context)[0]) for each in powers)
        assert force @ rates == pytest.approx(total, rel=1e-9)


def _read(bench: Any, context: fx.Context, k: int) -> Any:
    """Return the force along a coordinate, which the first curve of its view shows."""
    curve = bench.views[k].charts[0].curves[0]
    (reading,) = curve.reads
    return bench.system.find_output(reading.signal).eval(context)[reading.component]


def test_what_moves_by_itself_or_cannot_be_traced_is_refused() -> None:
    with pytest.raises(fx.errors.DeclarationError, match=re.escape("fx.page")):
        fx.inspect_block(fx.FirstOrderLag("lag", 1.0))
    with pytest.raises(fx.errors.DeclarationError, match=r"states in 'door\.tree'"):
        fx.inspect_block(door())
    outer = fx.DiagramBuilder("outer")
    inner = fx.DiagramBuilder("inner")
    inner.add(fx.Constant("one", 1.0))
    outer.add(inner.build())
    part = outer.build().get_system("inner")
    with pytest.raises(fx.errors.DeclarationError, match="a part of 'outer'"):
        fx.inspect_block(part)

    class Foreign(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("foreign")
            self.u = self.declare_vector_input("u", 1)
            self.declare_vector_output("y", 1, lambda context: float(self.u(context)[0]))

    with pytest.raises(fx.errors.TraceError, match="foreign"):
        fx.inspect_block(Foreign())
    with pytest.raises(fx.errors.UnknownNameError, match="angle"):
        fx.inspect_block(hinge(), ranges={"angel": (0.0, 1.0)})
    for odd in ((1.0, 1.0), (np.nan, 1.0), 3.0):
        with pytest.raises(fx.errors.FlexureError):
            fx.inspect_block(hinge(), ranges={"angle": odd})  # type: ignore[dict-item]
    for rows in ([1.0], ([1.0, 2.0], [3.0]), {"position": [1.0]}):
        with pytest.raises(fx.errors.FlexureError):
            fx.inspect_block(hinge(), measured=rows)


def test_measured_points_that_are_not_finite_are_refused_by_name() -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match="1 in force that are not"):
        fx.inspect_block(fx.Gain("gain", 2.0), measured=([0.0, 1.0], [1.0, np.nan]))


@pytest.mark.parametrize("segments", [1, 3])
def test_a_leaf_in_a_plant_is_shown_as_one_segment(segments: int) -> None:
    steel = fx.Material.common("structural steel S235")
    builder = fx.PlantBuilder("guide")
    block = builder.add_body("block", fx.SpatialInertia.point_mass(0.1))
    joint = fx.QuaternionFloatingJoint("free", builder.world, block)
    joint.default_pose = np.eye(3), (0.1, 0.0, 0.0)
    builder.add_joint(joint)
    size: dict[str, Any] = {"length": 0.1, "width": 0.02, "thickness": 1e-3, "material": steel}
    leaf = fx.LeafSpring("leaf", builder.world, block, segments=segments, **size)
    builder.add_force_element(leaf)
    plant = builder.build()
    context = plant.create_default_context()
    context.set("leaf.thickness", 2e-3)
    bench = force_bench(leaf, context, "Cannot inspect")
    start = bench.system.find("position").eval(bench.context)
    place = np.array([0.0, 0.0, 0.0, 0.1, 1e-6, 0.0])
    bench.system.find("position").fix(bench.context, place)
    force = bench.system.find("leaf_force.along").eval(bench.context)
    # Guided at both ends; shear makes it softer by less than a thousandth.
    stiffness = 12.0 * steel.youngs_modulus * 0.02 * 2e-3**3 / 12.0 / 0.1**3
    assert force[4] == pytest.approx(-stiffness * 1e-6, rel=2e-3)
    assert (", as one segment" in fx.inspect_block(leaf, context).html) == (segments > 1)
    for axis in bench.axes[:6]:  # which start within the limits, and not far from them
        middle, reach = np.mean(axis.span), np.ptp(axis.span) / 2.0

        def used(offset: float, k: int = axis.component, at: float = float(middle)) -> float:
            bench.system.find("position").fix(
                bench.context, [*start[:k], at + offset, *start[k + 1 :]]
            )
            return float(np.max(bench.system.find_output("leaf.utilization").eval(bench.context)))

        assert max(used(-reach), used(reach)) <= 1.0
        assert reach in (np.pi / 2.0, 0.01) or max(used(-2.5 * reach), used(2.5 * reach)) > 1.0


@pytest.mark.full
def test_a_notch_shows_its_stress_along_it() -> None:
    t, R, b = 5e-4, 5e-3, 1e-2
    aluminum = fx.Material.common("aluminum 7075-T6")
    notch = fx.sections.CircularNotch(thickness=t, radius=R, width=b)
    hinge = fx.NotchHinge(
        "hinge", fx.Body("base"), fx.Body("lever"), notch=notch, material=aluminum
    )
    bench = force_bench(hinge, hinge.create_default_context(), "Cannot inspect")
    assert bench.axes[-1].span == pytest.approx([-R, R])
    find, context = bench.system.find, bench.context
    # Unloaded, it is bent to half of its strength, by the formula of beams with Neuber's factor.
    factor = notch.stress_concentration().bending
    assert aluminum.yield_strength is not None
    moment = 0.5 * aluminum.yield_strength / (factor * 6.0 / (b * t * t))
    for place in (0.0, 1e-3, -2e-3, R):
        find("place").fix(context, place)
        height = t + 2.0 * (R - np.sqrt(R * R - place * place))
        (stress,) = find("hinge.stress_along").eval(context)
        assert stress == pytest.approx(factor * 6.0 * moment / (b * height**2), rel=1e-9)
    # A force across it makes the stress greatest beside the neck, on both sides alike.
    find("position").fix(context, [0.0, 0.0, 0.0, 0.0, 1e-5, 0.0])
    places = np.linspace(-R, R, 401)
    stresses = []
    for place in places:
        find("place").fix(context, place)
        stresses.append(float(find("hinge.stress_along").eval(context)[0]))
    np.testing.assert_allclose(stresses, stresses[::-1], rtol=1e-12, atol=1e-3)
    assert stresses[200] < 1e-6 * max(stresses)
    greatest = float(find("hinge.greatest_stress").eval(context)[0])
    assert greatest == pytest.approx(max(stresses), rel=0.03)
    assert "Greatest stress of each section" in fx.inspect_block(hinge).html
