"""Forty pictures of one example each: nothing cut off, no text upon another, no empty panel."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

import flexure as fx
from examples import compliant_door
from tests.solvers.analysis.statics.test_buckling import DOWN, arch, column
from tests.support.mechanics.beams import cantilever

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]

_EPS = 1.5  # of a pixel, which texts may touch


@cache
def door() -> fx.Diagram:
    return compliant_door.build()


def _hinged() -> Any:
    return door().children[0]


@cache
def run(kd: float = 12.0) -> Any:
    context = door().create_default_context()
    context.set("pid.kd", kd)
    return fx.simulate(door(), 3.0, context=context)


@cache
def plant() -> fx.Plant:
    """Two links with an energy ledger, between springs."""
    builder = fx.PlantBuilder("arm")
    last: Any = builder.world
    for k in range(2):
        link = builder.add_body(
            f"link{k}", fx.SpatialInertia.solid_box(1.0, size=(0.5, 0.05, 0.05)), com=(0.25, 0, 0)
        )
        foot = builder.add_frame(f"foot{k}", last, (0.5 if k else 0.0, 0.0, 0.0))
        joint = fx.RevoluteJoint(f"joint{k}", foot, link, axis=(0, 1, 0))
        builder.add_joint(joint)
        builder.add_force_element(fx.JointSpring(f"spring{k}", joint, stiffness=30.0, damping=0.2))
        last = link
    builder.add_energy_ledger()
    return builder.build()


@cache
def swing() -> Any:
    return fx.simulate(plant(), 2.0)


@cache
def study() -> fx.results.Sweep:
    plan = fx.plans.latin_hypercube(
        {"pid.kp": (40, 80), "pid.ki": (5, 30), "door.hinge.spring_constant": (1, 5)}, 24
    )
    return fx.sweep(
        door(),
        plan,
        3.0,
        signals="door.axis.angle",
        times=np.linspace(0.0, 3.0, 31),
        metrics={"overshoot": "overshoot", "effort": fx.metrics.peak("pid.u")},
    )


@cache
def mapped() -> fx.results.Sweep:
    grid = {"pid.kp": np.linspace(40.0, 80.0, 5), "pid.kd": np.linspace(6.0, 20.0, 4)}
    plan = fx.plans.grid(grid)
    return fx.sweep(door(), plan, 3.0, signals="door.axis.angle", metrics="overshoot")


@cache
def loop() -> fx.LinearModel:
    return fx.loop_gain(door(), "pid.u")


@cache
def bent() -> Any:
    return fx.load_path(arch(0.2), {"push[fz]": np.linspace(0.0, -4.0, 9)})


@cache
def leaf() -> fx.Plant:
    return cantilever(4)


def free() -> Any:
    builder = fx.PlantBuilder("free")
    builder.add_body("box", fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.2, 0.3)))
    return fx.simulate(builder.build(), 1.0)


def long_chain() -> fx.Diagram:
    builder = fx.DiagramBuilder("chain")
    builder.add_all(fx.Step("in"), *(fx.FirstOrderLag(f"lag{k}", 0.1) for k in range(40)))
    builder.connect_chain("in", *(f"lag{k}" for k in range(40)))
    return builder.build()


def mimo() -> fx.LinearModel:
    return fx.linearize(
        door(),
        inputs=["pid.setpoint", "pid.measurement"],
        outputs=["pid.u", "door.axis.angle"],
        openings=["pid.setpoint", "pid.measurement"],
    )


def six_runs() -> dict[str, Any]:
    return {f"kd = {kd:g}": run(kd) for kd in (6.0, 8.0, 10.0, 12.0, 14.0, 16.0)}


ANGLE, TORQUE = "door.axis.angle", "pid.u"

#: What each of them is of, and how it is drawn.
PICTURES: dict[str, Callable[[], Any]] = {
    "result": lambda: run().plot(),
    "panels": lambda: run().plot(["target.y", ANGLE], TORQUE, "door.hinge.stored_energy"),
    "mechanism's result": lambda: swing().plot(),
    "free body": lambda: free().plot(),
    "step response": lambda: run().step_response(ANGLE).plot(),
    "phase": lambda: run().plot_phase(ANGLE, "door.axis.rate"),
    "spectrum": lambda: run().spectrum(TORQUE).plot(),
    "energy": lambda: swing().plot_energy(),
    "comparison": lambda: fx.compare(six_runs(), ANGLE, TORQUE),
    "comparison of several": lambda: fx.compare(six_runs(), ["target.y", ANGLE], TORQUE),
    "diagram": lambda: door().plot(),
    "opened diagram": lambda: door().plot(depth=2),
    "long diagram": lambda: long_chain().plot(),
    "door": lambda: fx.plot_mechanism(_hinged(), run().context_at(2.0), forces=True),
    "arm": lambda: fx.plot_mechanism(plant(), swing().context_at(0.5)),
    "stress": lambda: fx.plot_mechanism(leaf(), leaf().create_default_context(), stress=True),
    "bode": lambda: fx.bode(loop()),
    "bode in Hz": lambda: fx.bode(loop(), units="Hz", magnitude="absolute"),
    "nyquist": lambda: fx.nyquist(loop()),
    "nichols": lambda: fx.nichols(loop()),
    "poles": lambda: fx.pole_zero(loop()),
    "root locus": lambda: fx.root_locus(door(), "pid.kp", np.geomspace(1.0, 600.0, 30)).plot(),
    "modes": lambda: fx.modes(plant()).plot(),
    "modes of a beam": lambda: fx.modes(leaf()).plot(),
    "mode": lambda: fx.modes(leaf()).plot_mechanism(0),
    "tracks": lambda: fx.track_modes(plant(), {"spring0.stiffness": [20.0, 30.0, 40.0]}).plot(),
    "buckling": lambda: fx.buckling(column(2), {"push": DOWN}).plot(),
    "load path": lambda: bent().plot("slot.translation", "push[fz]"),
    "load path, states": lambda: bent().plot_mechanism(),
    "sweep": lambda: study().plot(ANGLE),
    "histograms": lambda: study().plot_histogram(),
    "scatter": lambda: study().plot_scatter(
        "pid.kp", "door.hinge.spring_constant", "overshoot", color="effort"
    ),
    "parallel": lambda: study().plot_parallel(color="overshoot"),
    "parallel by name": lambda: study().plot_parallel(
        "pid.kp", "door.hinge.spring_constant", "overshoot", "effort"
    ),
    "map": lambda: mapped().plot_map(),
    "map with contours": lambda: mapped().plot_map(contours=True),
    "tornado": lambda: fx.sweep(
        door(),
        fx.plans.one_at_a_time(
            {"pid.kp": (40, 80), "door.hinge.spring_constant": (1, 5)},
            context=door().create_default_context(),
        ),
        3.0,
        signals=ANGLE,
        metrics="overshoot",
    ).plot_tornado("overshoot"),
    "sobol": lambda: fx.sobol_indices(
        door(), {"pid.kp": (40, 80), "pid.ki": (5, 30)}, 3.0, 32, signals=ANGLE, metrics="overshoot"
    ).plot(),
    "stiffness": lambda: fx.track_stiffness(leaf(), "tip", {"beam.area": [0.5, 1.0, 2.0]}).plot(),
    "optimal motion": lambda: fx.optimal_motion(
        fx.FirstOrderLag("lag", time_constant=1.0),
        None,
        1.0,
        inputs={"u": (-2.0, 2.0)},
        end={"y": 0.5},
    ).plot(),
    "tolerances": lambda: fx.tolerances(
        door(), {"door.panel.mass": "5 %"}, fx.metrics.final(ANGLE) <= 1.0, 0.1, num_samples=8
    ).plot(),
    "optimization": lambda: fx.optimize(
        door(), {"pid.kd": (8.0, 20.0)}, "overshoot", t_final=3.0, signals=ANGLE, max_evaluations=40
    ).plot(),
}


def figure_of(drawn: Any) -> Any:
    """Return the figure of what a function that draws returns: a figure, axes or several."""
    return drawn if hasattr(drawn, "savefig") else np.ravel(drawn)[0].figure


def texts_of(figure: Any) -> Iterator[tuple[str, Any]]:
    """Yield all texts that are to be seen, with their boxes in pixels."""
    ticks = {}
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            room = 1e-9 * (high - low)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                seen = ax.axison and low - room <= tick.get_loc() <= high + room
                ticks[tick.label1] = seen and tick.label1.get_visible()
                ticks[tick.label2] = seen and tick.label2.get_visible()
            ticks[axis.offsetText] = ax.axison
            ticks[axis.label] = ax.axison
    for text in figure.findobj(Text):
        if text.get_text().strip() and ticks.get(text, text.get_visible()):
            yield text.get_text(), text.get_window_extent()


def faults(figure: Any) -> list[str]:
    """Return what is cut off, covered or empty in a figure."""
    figure.draw_without_rendering()
    shown = list(texts_of(figure))
    found = []
    whole = figure.bbox
    for text, box in shown:
        if box.x0 < -_EPS or box.y0 < -_EPS or box.x1 > whole.x1 + _EPS or box.y1 > whole.y1 + _EPS:
            found.append(f"{text!r} is cut off")
    for (text, one), (other, two) in itertools.combinations(shown, 2):
        wide = min(one.x1, two.x1) - max(one.x0, two.x0)
        high = min(one.y1, two.y1) - max(one.y0, two.y0)
        if min(wide, high) > _EPS:
            found.append(f"{text!r} covers {other!r}")
    empty = [ax for ax in figure.axes if ax.get_visible() and ax.axison and not ax.has_data()]
    return found + [f"the panel of {ax.get_ylabel() or ax.get_title()!r} is empty" for ax in empty]


@pytest.mark.parametrize("name", PICTURES)
def test_nothing_is_cut_off_covered_or_empty(name: str) -> None:
    figure = figure_of(PICTURES[name]())
    width, height = figure.get_size_inches()
    assert 0.25 < width / height < 6.0
    assert faults(figure) == []
