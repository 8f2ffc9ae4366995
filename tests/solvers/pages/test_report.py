"""Reports: what they say is what was computed, on a page that needs nothing and prints."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import flexure as fx
from examples.compliant_door import build as door
from flexure.diagrams.systems.copying import detached
from flexure.solvers.tracing.readable_equations import brief_equation, named_parts
from tests.support.mechanics.mechanics import ForeignPendulum
from tests.support.pages.browser import visiting

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ASKED = "Does the door reach 60 degrees?\n\nAsked by <b>Ada</b> & <script>alert(1)</script>."


@functools.cache
def run(stiffness: float = 7.5) -> fx.results.SimulationResult:
    servo = door()
    context = servo.create_default_context()
    context.set("door.hinge.spring_constant", stiffness)
    return fx.simulate(servo, 10.0, context=context)


def section(html: str, title: str) -> str:
    """Return the section of a title."""
    found = re.search(rf"<h2>{title}</h2>(.*?)</section>", html, re.DOTALL)
    assert found is not None, title
    return found[1]


def test_the_report_of_a_run_says_what_was_asked_and_what_came_of_it(
    browser: Browser, tmp_path: Path
) -> None:
    result = run()
    file = tmp_path / "report.html"
    page = fx.report(result, question=ASKED, title="Door <1>", path=file)
    assert not page.live
    assert page.size < 1_000_000
    assert "<script" not in page.html
    assert "could not be made" not in page.html
    changed = section(page.html, "Values other than the defaults")
    assert "door.hinge.spring_constant" in changed
    assert ">7.5<" in changed
    assert "spring_zero" not in changed
    figures = section(page.html, "Step responses")
    for line in str(result.step_info("door.axis.angle")).splitlines():
        assert line.split("  ")[0].strip() in figures
    model = fx.linearize(result.system, result.context)
    poles = section(page.html, "Linear model")
    for pole in model.poles:
        assert f"{pole:.5g}" in poles if pole.imag else f"{pole.real:.5g}" in poles
    energies = section(page.html, "Energy")
    assert f"{result['door.potential_energy'][-1]:.6g}" in energies
    with visiting(browser, file, width=400) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") == 400
        assert visit.page.locator("header h1").inner_text() == "Door <1>"
        shown = visit.page.locator("main").inner_text()
        assert "Asked by <b>Ada</b> & <script>alert(1)</script>." in shown
        assert visit.page.locator("math").count() >= 4
        broken = "[...document.images].filter((each) => !each.naturalWidth).length"
        assert visit.page.evaluate(broken) == 0
        printed = visit.page.pdf(prefer_css_page_size=True)
        assert 3 <= len(re.findall(rb"/Type /Page\b", printed)) <= 6


def test_the_report_of_flexures_is_two_pages_with_equal_leaves_once_and_an_annex(
    browser: Browser, tmp_path: Path
) -> None:
    builder = fx.PlantBuilder("guide", gravity=(0.0, 0.0, 0.0))
    platform = builder.add_body(
        "platform", fx.SpatialInertia.solid_box(0.2, size=(0.01, 0.08, 0.02))
    )
    joint = builder.add_joint(fx.PlanarJoint("platform", builder.world, platform))
    joint.default_pose = np.eye(3), (0.05, 0.0, 0.0)
    steel = fx.Material.common("stainless steel 301")
    leaves: dict[str, Any] = {"length": 0.05, "width": 0.02, "thickness": 3e-4, "material": steel}
    ends = builder.world, platform
    builder.add_assembly(fx.ParallelGuide("guide", *ends, distance=0.06, planar=True, **leaves))
    plant = builder.build()
    context = plant.create_default_context()
    joint.translation.set(context, [0.05, 0.002])
    result = fx.simulate(plant, 0.02, context=context)
    page = fx.report(result, path=tmp_path / "guide.html")
    assert "could not be made" not in page.html
    shown = section(page.html, "Elements with limits")
    assert "<code>guide_leaf1, guide_leaf2</code>" in shown
    assert shown.count("k_y = E w t³ / L³") == 1
    greatest = max(result[f"guide_leaf{k}.greatest_stress"].max() for k in (1, 2))
    assert f"{greatest:.6g}" in shown
    assert page.html.index("<h1>Annex</h1>") < page.html.index("<h2>Diagram of the plant")
    with visiting(browser, tmp_path / "guide.html", width=800) as visit:
        visit.page.evaluate("document.querySelector('.annex').remove()")
        printed = visit.page.pdf(prefer_css_page_size=True)
        assert len(re.findall(rb"/Type /Page\b", printed)) <= 2


@pytest.mark.full
def test_other_values_make_another_report_and_equal_runs_equal_ones() -> None:
    def told(result: fx.results.SimulationResult) -> str:
        html = fx.report(result).html
        return re.sub(r"<tr><th[^>]*>written</th>.*?</tr>", "", html, flags=re.DOTALL)

    first, again, other = told(run()), told(run()), told(run(5.0))
    assert first == again
    for title in ("Step responses", "Linear model", "Where the numbers come from"):
        assert section(first, title) != section(other, title)


@pytest.mark.full
def test_the_report_of_a_sweep_shows_its_table_its_distributions_and_its_failures(
    tmp_path: Path,
) -> None:
    builder = fx.DiagramBuilder("decay")
    lag = builder.add(fx.FirstOrderLag("lag", time_constant=1.0))
    builder.export_input(lag.u, name="u")
    builder.export_output(lag.y, name="y")
    system = builder.build()

    values = {"lag.time_constant": np.linspace(0.5, 3.0, 30)}
    context = system.create_default_context()
    context.set("u", 1.0)
    store = tmp_path / "study.db"
    study = fx.sweep(
        system, values, 40.0, context=context, metrics=["rise_time"], signals=["y"],
        times=np.linspace(0.0, 40.0, 201), store=store,
    )  # fmt: skip
    html = fx.report(study, question="How fast?").html
    assert "could not be made" not in html
    runs = section(html, "Runs")
    assert "The first 12 of 30 runs." in runs
    (metric,) = study.metrics
    assert f"{np.median(study.metrics[metric]):.6g}" in runs
    assert section(html, "Distributions").count("<img") == 2
    assert "Failures" not in html
    study.failures[3] = "Cannot simulate at 0.25 s: <b>lost</b>"
    told = section(fx.report(study).html, "Failures")
    assert "&lt;b&gt;lost&lt;/b&gt;" in told
    alone = fx.report(fx.load_study(store)).html
    assert section(alone, "Runs") == runs
    assert "The model is not available" in section(alone, "Values other than the defaults")


def test_a_section_that_cannot_be_made_says_why_and_the_others_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = ForeignPendulum("swing", angle=0.5)
    context = system.create_default_context()
    context.set("torque", 0.25)

    def fails(self: Any, *signals: Any, **options: Any) -> Any:
        raise RuntimeError("no <pictures> today")

    monkeypatch.setattr(fx.results.SimulationResult, "plot", fails)
    html = fx.report(fx.simulate(system, 1.0, context=context)).html
    assert "no &lt;pictures&gt; today" in section(html, "Signals")
    assert "swing" in section(html, "Equations")
    assert "fingerprint" in section(html, "Where the numbers come from")


def test_a_system_alone_has_a_report_and_odd_things_have_none() -> None:
    lag = fx.FirstOrderLag("lag", time_constant=0.5)
    context = lag.create_default_context()
    context.set("u", 1.0)
    html = fx.report(lag, context, question="How fast?").html
    assert "-2" in section(html, "Linear model")
    assert "<math" in section(html, "Equations")
    with pytest.raises(fx.errors.ContextError, match="a context beside it"):
        fx.report(run(), lag.create_default_context())
    with pytest.raises(fx.errors.FlexureError, match="Cannot write a report"):
        fx.report(3.0)  # type: ignore[arg-type]
    with pytest.raises(fx.errors.UnknownNameError):
        fx.report(run(), signals=["door.axis.angel"])


def test_the_law_of_a_divided_leaf_and_its_like_segments_are_there_once() -> None:
    builder = fx.PlantBuilder("clamped")
    size = {"length": 0.1, "width": 0.02, "thickness": 5e-4}
    end = builder.add_frame("end", builder.world, (0.1, 0.0, 0.0))
    steel = fx.Material.common("stainless steel 301")
    options = {"segments": 4, "planar": True, **size}
    leaf = fx.LeafSpring("leaf", builder.world, end, material=steel, **options)
    builder.add_force_element(leaf)
    html = fx.report(builder.build()).html
    page = section(html, "Elements with limits")
    assert page.count("k_y = E w t³ / L³") == 1
    assert "<code>leaf_1, leaf_2, leaf_3, leaf_4</code>" in page
    assert "fx.equation writes them in full" in section(html, "Equations")


def test_a_brief_equation_computes_what_the_block_does() -> None:
    steel = fx.Material.common("stainless steel 301")
    bodies = [fx.Body(name, fx.SpatialInertia.point_mass(1.0)) for name in ("a", "c")]
    leaf = fx.LeafSpring("leaf", *bodies, material=steel, length=0.1, width=0.02, thickness=5e-4)
    twin = detached(leaf)
    context = twin.create_default_context()
    c, s = np.cos(0.1), np.sin(0.1)
    pose = np.array([c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0, 0.0995, 0.004, 0.001])
    still = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    twin.find("pose_A").fix(context, still)
    twin.find("pose_C").fix(context, pose)
    (part,) = named_parts(twin)
    found = brief_equation(twin, twin.find("stored_energy"), [part])
    assert "exp" not in found.text
    names = {**vars(np), "pose_A": still, "pose_C": pose, part.name: part(context)}
    equations, _, definitions = found.text.partition("\nwhere ")
    for line in definitions.splitlines():
        name, _, right = line.strip().partition(" = ")
        names[name] = eval(right, names)
    energy = eval(equations.partition(" = ")[2], names)
    assert energy == pytest.approx(twin.find("stored_energy").eval(context).item(), rel=1e-12)


def test_the_report_of_a_flexure_without_load_has_its_poles() -> None:
    """Its safety is infinite, which is an output, and does not concern them."""
    builder = fx.PlantBuilder("cantilever")
    tip = builder.add_body("tip", fx.SpatialInertia.solid_box(0.02, size=(0.01, 0.01, 0.02)))
    joint = builder.add_joint(fx.PlanarJoint("tip", builder.world, tip))
    joint.default_pose = np.eye(3), (0.1, 0.0, 0.0)
    size = {"length": 0.1, "width": 0.02, "thickness": 5e-4}
    steel = fx.Material.common("stainless steel 301")
    leaf = fx.LeafSpring("leaf", builder.world, tip, material=steel, planar=True, **size)
    builder.add_force_element(leaf)
    plant = builder.build()
    written = fx.report(plant).html
    assert "6 states" in section(written, "Linear model")
    assert "cantilever, as the values say" in section(written, "Mechanism")
    with pytest.warns(UserWarning, match=r"'cantilever' leaves out 'leaf.safety', infinite"):
        model = fx.linearize(plant)
    with pytest.warns(UserWarning, match=r"'cantilever' leaves out 'leaf.safety', infinite"):
        sampled = fx.linearize(plant, period=1e-4)
    assert model.output_names == sampled.output_names
    assert len(model.output_names) == sum(port.size or 0 for port in plant.output_ports) - 1
    np.testing.assert_allclose(sampled.C, model.C)
    with pytest.raises(fx.errors.EvaluationError, match=r"leaf.safety = inf.*outputs=\["):
        fx.linearize(plant, outputs=["leaf.safety"])
