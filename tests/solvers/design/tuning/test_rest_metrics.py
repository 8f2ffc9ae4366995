"""Metrics at rest: exact derivatives, second routes, and numbers that are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.design.objectives.rest_numbers import RestNumbers

m = fx.metrics
STEEL = fx.Material.common("stainless steel 301")
PLUS = np.array([1.0, -1.0, 0.5, -0.5])


def pivot(*, planar: bool) -> fx.Plant:
    """A rotor on crossed leaves."""
    builder = fx.PlantBuilder("pivot", gravity=(0.0, -9.81, 0.0))
    body = fx.SpatialInertia.solid_box(0.1, size=(0.05, 0.05, 0.02))
    rotor = builder.add_body("rotor", body, com=(0.01, 0.0, 0.0))
    kind = fx.PlanarJoint if planar else fx.QuaternionFloatingJoint
    builder.add_joint(kind("free", builder.world, rotor))
    sizes: dict[str, Any] = {"length": 0.04, "width": 0.01, "thickness": 3e-4, "material": STEEL}
    leaves = fx.CrossPivot(
        "cross", builder.world, rotor, segments=1, planar=planar, damping_time=1e-5, **sizes
    )
    builder.add_assembly(leaves)
    return builder.build()


def loop() -> fx.Diagram:
    """A PI controller of a vibrating plant."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("target", 1.0),
        fx.PIDController("pid", kp=2.0, ki=1.5),
        fx.TransferFunction("plant", [1.0], [0.05, 0.3, 1.2, 1.0]),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", "plant", "pid.measurement")
    return builder.build()


def derivatives(context: fx.Context, paths: list[str], metrics: list[Any]) -> tuple[Any, Any, Any]:
    """Return the numbers of metrics, their derivatives, and differences of fourth order."""
    measures: list[Any] = [metric.functions[0] for metric in metrics]
    numbers = RestNumbers(paths, measures, "Cannot test")
    here = numbers.at(context)
    found = np.empty((len(metrics), len(paths)))
    for k, path in enumerate(paths):
        x, values = float(np.ravel(context.get(path))[0]), []
        for sign in PLUS:
            there = context.clone()
            there.set(path, x * (1.0 + 2e-4 * sign))
            values.append(numbers.at(there).values)
        found[:, k] = (8.0 * (values[2] - values[3]) - (values[0] - values[1])) / (1.2e-3 * x)
    return here.values, here.slopes(), found


def agree(slopes: Any, found: Any, rtol: float, atol: float = 0.0) -> None:
    for row, expected in zip(slopes, found, strict=True):
        np.testing.assert_allclose(
            row, expected, rtol=rtol, atol=max(rtol * np.abs(expected).max(), atol)
        )


@pytest.mark.parametrize("planar", [True, False])
def test_derivatives_of_a_mechanism_are_those_of_differences(planar: bool) -> None:
    plant = pivot(planar=planar)
    context = plant.create_default_context()
    angle = "free.q[2]" if planar else "cross_leaf1.greatest_stress"
    metrics = [
        m.frequency(),
        m.stiffness_at("rotor", about=(0, 0, 1)),
        m.stiffness_at("rotor", along=(1, 0, 0), p_FP=(0.0, 0.01, 0.0)),
        m.at_rest("rotor.position[y]"),
        m.at_rest("cross_leaf1.greatest_stress"),
    ]
    if planar:
        metrics += [
            m.over_stroke("cross_leaf1.safety", angle, 0.15, "smallest", points=3),
            m.over_stroke("rotor.position[x]", angle, (0.0, 0.15), points=3),
            m.over_stroke(angle, angle, (0.0, 0.15), points=3),
        ]
    paths = ["cross_leaf1.thickness", "cross_leaf2.width"]
    values, slopes, found = derivatives(context, paths, metrics)
    agree(slopes, found, 3e-5)

    rest = fx.equilibrium(plant, context).context
    shaken = [each for each in fx.modes(plant, rest) if each.kind == "oscillation"]
    stiff = fx.stiffness(plant, "rotor", context=context)
    beside = fx.stiffness(plant, "rotor", context=context, p_FP=(0.0, 0.01, 0.0))
    known = [shaken[0].frequency, 1 / stiff.compliance[2, 2], 1 / beside.compliance[3, 3]]
    np.testing.assert_allclose(values[:3], known, rtol=1e-6)
    if planar:
        path = fx.load_path(plant, {angle: np.linspace(0.0, 0.15, 3)}, context=context)
        assert values[7] == pytest.approx(np.abs(path.required[angle]).max(), rel=1e-6)
        end = path.context(-1)
        assert values[6] >= abs(end.get("rotor.position")[0]) * (1.0 - 1e-6)


def test_derivatives_of_metrics_do_not_depend_on_those_before_them() -> None:
    context, paths = pivot(planar=True).create_default_context(), ["cross_leaf1.thickness"]
    metrics = [m.frequency(number) for number in range(3)]
    measures: list[Any] = [metric.functions[0] for metric in metrics]
    together = RestNumbers(paths, measures, "Cannot test").at(context).slopes()
    alone = [RestNumbers(paths, [each], "Cannot test").at(context).slopes() for each in measures]
    np.testing.assert_allclose(together, np.concatenate(alone), rtol=1e-9)


def test_derivatives_of_a_loop_are_those_of_differences_and_numbers_those_of_analyses() -> None:
    system = loop()
    context = system.create_default_context()
    context.set("pid.kp", 1.2)
    bound = ([0.1, 1.0, 10.0], [0.5, 2.0, 1.0])
    metrics = [
        m.decay_rate(),
        m.least_damping(),
        m.frequency(),
        m.gain("target.value", "plant.y"),
        m.gain("target.value", "plant.y", bound=bound),
        m.gain("target.value", "plant.y", lower=2.0, upper=3.0),
        m.tracking("target.value", "plant.y", 1.0),
        m.h2("pid.u", "plant.y"),
        m.stability_margin("pid.u"),
        m.stability_margin("pid.u", "modulus"),
        m.overshoot("target.value", "plant.y"),
    ]
    values, slopes, found = derivatives(context, ["pid.kp", "pid.ki"], metrics)
    agree(slopes, found, 2e-6, 2e-6)

    model = fx.linearize(system, context, ["target.value"], ["plant.y"])
    norms = fx.norms(model)
    margins = fx.margins(fx.loop_gain(system, "pid.u", context=context))
    added = fx.norms(fx.linearize(system, context, ["pid.u"], ["plant.y"]))
    w = np.geomspace(1e-4, 1e3, 20001)
    gains = np.abs(model.frequency_response(w).ravel())
    limit = np.exp(np.interp(np.log(w), *np.log(bound)))
    poles = model.poles
    known = {
        0: -poles.real.max(),
        1: (-poles.real / np.abs(poles)).min(),
        3: norms.h_infinity,
        4: (gains / limit).max(),
        5: gains[(w >= 2.0) & (w <= 3.0)].max(),
        7: added.h2,
        8: margins.disk_margin,
        9: margins.modulus_margin,
    }
    for k, expected in known.items():
        assert values[k] == pytest.approx(expected, rel=1e-3 if k == 5 else 1e-5), k
    result = fx.simulate(system, 60.0, context=context, rtol=1e-9)
    info = result.step_info("plant.y", target=1.0)
    assert values[10] == pytest.approx(info.overshoot, rel=1e-4)


def test_overshoot_is_found_at_once_and_early_and_late() -> None:
    """Beside a slow tail, in a direct gain, and after thousands of samples."""
    slow, ring = [1.0, 1e-3], 100.0 * np.exp(-np.pi * 0.2 / np.sqrt(0.96))
    fast = np.polymul([1e6 / 1.01], [1.0, 1.01e-3]), np.polymul([1.0, 400.0, 1e6], slow)
    # The slow mode adds 1 / 1.01 - 1 at first, which is 0 at the end.
    early = 100.0 * ((1.0 + ring / 100.0) / 1.01 - 1.0)
    late = [0.25], [1.0, 0.2, 0.25]
    for (numerator, denominator), period, expected in (
        (fast, None, early),
        (([2.0, 1.0], [1.0, 1.0]), None, 100.0),
        (late, None, ring),
        (late, 1e-3, ring),
    ):
        builder = fx.DiagramBuilder("way")
        plant = fx.TransferFunction("plant", numerator, denominator)
        builder.add_all(fx.Constant("target", 1.0), fx.Gain("gain", 1.0), plant)
        builder.connect_chain("target", "gain", "plant")
        goal = m.overshoot("target.value", "plant.y") <= 200.0
        found = fx.tune(builder.build(), ["gain.gain"], goal, starts=1, period=period)
        assert found.achieved[goal.label] == pytest.approx(expected, rel=1e-4), period


def test_repeated_poles_and_crossing_modes_have_numbers() -> None:
    """Of two equal frequencies, derivatives are those of one of the modes."""
    builder = fx.PlantBuilder("pair", gravity=(0.0, 0.0, 0.0))
    for name in "ab":
        body = builder.add_body(name, fx.SpatialInertia.point_mass(1.0))
        rail = builder.add_joint(fx.PrismaticJoint(f"{name}_rail", builder.world, body, (1, 0, 0)))
        builder.add_force_element(fx.JointSpring(f"{name}_spring", rail, stiffness=100.0))
    plant = builder.build()
    both: list[Any] = [m.frequency(0).functions[0], m.frequency(1).functions[0]]
    numbers = RestNumbers(["a_spring.stiffness"], both, "Cannot test")
    found = numbers.at(plant.create_default_context())
    np.testing.assert_allclose(found.values, 10.0 / (2.0 * np.pi), rtol=1e-9)
    slope = 0.5 * 10.0 / 100.0 / (2.0 * np.pi)
    assert all(-1e-9 <= each <= slope * (1.0 + 1e-6) for each in found.slopes().ravel())


def test_numbers_that_are_none() -> None:
    unstable = fx.StateSpace("plant", [[0.0, 1.0], [4.0, -0.1]], [0.0, 1.0], [1.0, 0.0])
    still = fx.Integrator("still")
    values: list[tuple[Any, Callable[[float], bool], fx.System]] = [
        (m.decay_rate(), lambda x: x < 0.0, unstable),
        (m.least_damping(), lambda x: x == -1.0, unstable),
        (m.gain("u", "y"), lambda x: x == np.inf, unstable),
        (m.h2("u", "y"), lambda x: x == np.inf, unstable),
        (m.overshoot("u", "y"), lambda x: x == np.inf, unstable),
        (m.frequency(), np.isnan, unstable),
        (m.decay_rate(), lambda x: x == 0.0, still),
        (m.gain("u", "y"), lambda x: x == np.inf, still),
    ]
    for metric, expected, system in values:
        context = system.create_default_context()
        context.set("u", 0.0)
        result = fx.simulate(system, 0.0, context=context)
        assert expected(metric(result)), metric.label
    held = fx.simulate(pivot(planar=True), 0.0)
    assert m.stiffness_at("rotor", about=(1, 0, 0))(held) == np.inf


def test_optimize_without_a_run_ties_dimensions_and_keeps_specifications() -> None:
    plant = pivot(planar=True)
    thick, wide = (
        tuple(f"cross_leaf{k}.{what}" for k in (1, 2)) for what in ("thickness", "width")
    )
    stiff = m.stiffness_at("rotor", about=(0, 0, 1))
    found = fx.optimize(
        plant,
        {thick: (1e-4, 6e-4), wide: (5e-3, 2e-2), "cross.length": (2e-2, 5e-2)},
        m.at_rest("cross.width") * m.at_rest("cross.length"),
        [stiff >= 0.3, stiff <= 0.3003, m.frequency() >= 10.0],
        population=5,
    )
    assert found.t_final is None
    assert found[thick[0]] == found[thick[1]]
    assert found["cross.length"] == found["cross_leaf2.length"] == pytest.approx(0.02)
    assert found.constraints["frequency(0) >= 10"] >= 10.0
    rest = fx.equilibrium(plant, found.context).context
    assert 1 / fx.stiffness(plant, "rotor", context=rest).compliance[2, 2] == pytest.approx(
        0.3, rel=2e-3
    )
    with pytest.raises(fx.errors.ValueRefusedError, match="at rest"):
        found.simulate()


@pytest.mark.full
def test_a_search_at_rest_warns_of_its_best_candidate_only() -> None:
    thin = {"cross.thickness": (3e-5, 5e-5)}  # each beyond the limit of a single segment
    with pytest.warns(UserWarning, match="^The equilibrium of 'pivot' may err") as noted:
        fx.optimize(pivot(planar=True), thin, m.at_rest("cross.length"), population=5, polish=False)
    assert len(noted) == 1


def test_metrics_of_runs_need_a_run_and_bad_arguments_are_refused() -> None:
    system = loop()
    with pytest.raises(fx.errors.ValueRefusedError, match="without t_final"):
        fx.optimize(system, {"pid.kp": (1.0, 2.0)}, m.final("plant.y"))
    for options in ({"rtol": 1e-3}, {"threads": 1}):
        text = f"no options of runs; found '{next(iter(options))}'"
        with pytest.raises(fx.errors.ValueRefusedError, match=text):
            fx.optimize(system, {"pid.kp": (1.0, 2.0)}, m.decay_rate(), **options)
    bad: list[Callable[[], object]] = [
        lambda: m.frequency(-1),
        lambda: m.stiffness_at("a"),
        lambda: m.stiffness_at("a", along=(0, 0, 0)),
        lambda: m.stiffness_at("a", along=(1, 0, 0), about=(1, 0, 0)),
        lambda: m.over_stroke("y", "q", 0.0),
        lambda: m.over_stroke("y", "q", 0.1, points=1),
        lambda: m.gain("u", "y", bound=-1.0),
        lambda: m.gain("u", "y", bound=([1.0, 0.5], [1.0, 1.0])),
        lambda: m.gain([], "y"),
        lambda: m.least_damping(lower=2.0, upper=1.0),
        lambda: m.tracking("u", "y", 0.0),
        lambda: m.stability_margin("u", cast("Any", "vector")),
    ]
    for make in bad:
        with pytest.raises(fx.errors.FlexureError):
            make()
