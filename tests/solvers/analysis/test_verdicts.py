"""Words of judgment, each made false on purpose: what is not stable is never called that."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import signal
from scipy.linalg import block_diag

import flexure as fx
from flexure.diagrams.checks.errors import EvaluationError, ValueRefusedError
from tests.support.tiers import for_each


class Clip(fx.LeafSystem):
    """What a user writes, without a word about linear models."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.u])

    def calc_y(self, context: Any) -> Any:
        return np.clip(self.u(context), -1.0, 1.0)


class Foreign(Clip):
    """A block that cannot be traced."""

    def calc_y(self, context: Any) -> Any:
        return np.array([float(str(float(self.u(context)[0])))])


def servo(element: fx.LeafSystem, target: float = 0.0, **limits: Any) -> Any:
    """A double integrator with a PID controller and an element between them, and its context."""
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Constant("target", target),
        fx.PIDController("pid", kp=3.0, ki=1.0, kd=2.0, **limits),
        element,
        fx.TransferFunction("plant", [1.0], [1.0, 1.0, 0.0]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", element.name, "plant", "pid.measurement")
    diagram = builder.build()
    return diagram, diagram.create_default_context()


# Loops that small changes do not pass ------------------------------------------------------------

WIRE: Callable[[], fx.LeafSystem] = lambda: fx.Gain("e", 1.0)  # noqa: E731
HARD: dict[str, tuple[Callable[..., Any], float, dict[str, Any], str]] = {
    "Quantizer": (lambda **o: fx.Quantizer("e", 1e-4, **o), 0.0, {}, "'e'.*rounds to multiples"),
    "DeadZone": (lambda **o: fx.DeadZone("e", -0.1, 0.1, **o), 0.0, {}, "'e'.*dead zone"),
    "Saturation": (lambda **o: fx.Saturation("e", -1.0, 1.0, **o), 9.0, {}, "'e'.*beyond its lim"),
    "RateLimiter": (
        lambda **o: fx.RateLimiter("e", 1.0, 1.0, 1e-6, **o),
        9.0,
        {},
        r"'e'.*a rate of .* beyond -?\[?-?1",
    ),
    "PID": (lambda **o: WIRE(), 9.0, {"upper": 1.0}, "'pid'.*beyond its limits -inf and 1"),
}


def made(kind: str, linearize_as: str) -> Any:
    make, target, limits, _ = HARD[kind]
    option = {"linearize_as": linearize_as}
    if kind == "PID":
        return servo(make(), target, **limits, **option)
    return servo(make(**option), target, **limits)


def end_of(kind: str, linearize_as: str) -> Any:
    diagram, context = made(kind, linearize_as)
    return fx.simulate(diagram, 0.2, context=context).sample("plant.y", 0.2)


@pytest.mark.parametrize("kind", HARD)
def test_a_loop_that_an_element_opens_is_not_stable_and_the_element_is_named(kind: str) -> None:
    diagram, context = made(kind, "exact")
    found = fx.margins(fx.loop_gain(diagram, "plant.y", context=context))
    assert not found.is_stable
    assert np.isnan(found.gain_margin)
    text = " ".join(str(found).split())
    assert "not stable" in text
    assert "neither decay nor grow" in text
    assert any(re.search(HARD[kind][3], note) for note in found.notes)
    model = fx.linearize(diagram, context, inputs=[], outputs=[])
    assert not model.is_stable
    assert "not stable" in repr(model)
    assert any("passes no small changes" in note for note in model.notes)


@pytest.mark.full
@pytest.mark.parametrize("kind", HARD)
def test_an_element_that_passes_as_a_gain_leaves_the_loop_that_it_is_in(kind: str) -> None:
    diagram, context = made(kind, "gain")
    without, start = servo(WIRE(), HARD[kind][1])
    found, expected = (
        fx.margins(fx.loop_gain(d, "plant.y", context=c))
        for d, c in [(diagram, context), (without, start)]
    )
    assert expected.is_stable
    assert not expected.notes
    assert found.phase_margin == pytest.approx(expected.phase_margin, rel=1e-5)
    assert found.modulus_margin == pytest.approx(expected.modulus_margin, rel=1e-5)
    assert ["is linearized as a gain" in note for note in found.notes] == [True]
    checkup = fx.doctor(diagram, context)
    assert any(re.search(HARD[kind][3], note) for note in checkup.linear_notes)
    assert "linearized as a gain" in " ".join(str(checkup).split())
    exact = end_of(kind, "exact")
    assert end_of(kind, "gain") == exact


@pytest.mark.parametrize("kind", HARD)
def test_gains_and_modes_name_the_elements_that_they_rest_on(kind: str) -> None:
    diagram, context = made(kind, "exact")
    if kind == "PID":  # whose limits are not in the plant
        assert not fx.tune_pid(diagram, "pid", context=context, parts="PI").plant.notes
    else:
        with pytest.raises(ValueRefusedError, match=f"no small change.*{HARD[kind][3]}"):
            fx.tune_pid(diagram, "pid", context=context, parts="PI")
        diagram, context = made(kind, "gain")
        tuning = fx.tune_pid(diagram, "pid", context=context, parts="PI")
        assert re.search(f"sensitivity 1.6; {HARD[kind][3]}", repr(tuning))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is not at rest there
        text = " ".join(str(fx.modes(diagram, context)).split())
    assert re.search(f"note: {HARD[kind][3]}", text)


def test_derivatives_of_runs_never_take_the_gain_for_the_slope() -> None:
    builder = fx.DiagramBuilder("chain")
    limit = fx.Saturation("e", -0.1, 0.2, linearize_as="gain")
    builder.add_all(fx.Constant("u", 0.24), limit, fx.Integrator("sum"))
    builder.connect_chain("u", "e", "sum")
    chain = builder.build()
    model = fx.linearize(chain, inputs=["u.value", "e.upper"], outputs=["e.y"])
    assert model.D.tolist() == model.B.tolist() == [[1.0, 0.0]]  # as a gain, it has no limit
    assert model.y0.tolist() == [0.2]
    found = fx.parameter_sensitivity(chain, ["u.value", "e.upper"], 2.0)
    assert found.derivatives["u.value"][-1].tolist() == [0.0]
    assert found.derivatives["e.upper"][-1] == pytest.approx([2.0])


@pytest.mark.parametrize("as_gain", [False, True])
def test_the_same_holds_from_sample_to_sample(as_gain: bool) -> None:
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Constant("target", 9.0),
        fx.PIDController(
            "pid",
            kp=3.0,
            kd=2.0,
            upper=1.0,
            linearize_as="gain" if as_gain else "exact",
            period=0.02,
        ),
        fx.TransferFunction("plant", [1.0], [1.0, 1.0, 0.0]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "plant", "pid.measurement")
    found = fx.margins(fx.loop_gain(builder.build(), "plant.y", period=0.02))
    assert found.is_stable is as_gain
    assert any("'pid'" in note for note in found.notes)


def test_a_block_of_the_user_that_passes_nothing_is_named() -> None:
    diagram, context = servo(Clip("e"), 9.0)
    found = fx.margins(fx.loop_gain(diagram, "plant.y", context=context))
    assert not found.is_stable
    assert any("'e' passes no small changes" in note for note in found.notes)


def test_code_that_many_blocks_share_takes_gains_as_well() -> None:
    growth = []
    for limits in (0.0, 1.0):
        builder = fx.DiagramBuilder("chain")
        for k in range(64):
            builder.add(fx.FirstOrderLag(f"lag{k}", 0.1, initial=2.0))
            builder.add(fx.Saturation(f"e{k}", -limits, limits, linearize_as="gain"))
        builder.connect_chain(*(f"{name}{k}" for k in range(64) for name in ("lag", "e")), "lag0")
        model = fx.linearize(builder.build(), inputs=[], outputs=["e63.y"])
        assert len(model.notes) == 64
        growth.append(model.poles[0])
    assert growth == pytest.approx([0.0, 0.0], abs=1e-8)  # a ring with gain 1


def test_an_element_beside_the_loop_does_not_count() -> None:
    builder = fx.DiagramBuilder("servo")
    builder.add_all(fx.Gain("k", -2.0), fx.Integrator("plant"), fx.Relay("beside", 1.0, -1.0))
    builder.connect_chain("k", "plant", "k")
    builder.connect("plant.y", "beside.u")
    found = fx.margins(fx.loop_gain(builder.build(), "plant.y"))
    assert found.is_stable
    assert not found.notes


def test_a_gain_beside_equations_that_cannot_be_traced_is_refused() -> None:
    builder = fx.DiagramBuilder("servo")
    builder.add_all(Foreign("foreign"), fx.Quantizer("e", 0.1), fx.Integrator("plant"))
    builder.connect_chain("foreign", "e", "plant", "foreign")
    with pytest.raises(EvaluationError, match=r"'e' as a gain.*linearize_as='exact'"):
        fx.linearize(builder.build(), inputs=[], outputs=[])


# Poles -------------------------------------------------------------------------------------------

Blocks = list[list[list[float]]]
POLES: dict[str, tuple[Blocks, float | None, bool]] = {
    "one integrator": ([[[0.0]]], None, False),
    "two integrators": ([[[0.0, 1.0], [0.0, 0.0]]], None, False),
    "three integrators": ([[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]], None, False),
    "an undamped mode": ([[[0.0, 3.0], [-3.0, 0.0]]], None, False),
    "a mode that hardly grows": ([[[1e-9, 3.0], [-3.0, 1e-9]]], None, False),
    "a damped mode": ([[[-1e-6, 3.0], [-3.0, -1e-6]]], None, True),
    "a slow pole beside a fast one": ([[[-1e-4]], [[-1e7]]], None, True),
    "six equal poles": ([(-np.eye(6) + 0.5 * np.eye(6, k=1)).tolist()], None, True),
    "a sampled integrator": ([[[1.0]]], 0.1, False),
    "two sampled integrators": ([[[1.0, 0.1], [0.0, 1.0]]], 0.1, False),
    "a sampled mode": ([[[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]]], 0.1, False),
    "a sampled pole that decays": ([[[1.0 - 1e-6]]], 0.1, True),
}


@for_each("case", POLES)
@for_each("seed", range(4))
def test_what_neither_decays_nor_grows_is_not_stable_in_any_coordinates(
    case: str, seed: int
) -> None:
    blocks, period, is_stable = POLES[case]
    A: npt.NDArray[np.float64] = block_diag(
        *map(np.array, blocks), np.array([[0.5 if period else -5.0]])
    )
    n = len(A)
    if seed and "fast" not in case:
        turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
        A = turn.T @ A @ turn
    ones = np.ones((n, 1))
    sampled = {} if period is None else {"dt": period}
    plain = fx.LinearModel.from_scipy(signal.StateSpace(A, ones, ones.T, [[0.0]], **sampled))
    assert plain.is_stable is is_stable
    assert ("not stable" in repr(plain)) is not is_stable
    nothing = replace(plain, B=0.0 * plain.B)
    assert fx.margins(nothing).is_stable is is_stable  # a loop that moves nothing holds nothing


# What to do instead ------------------------------------------------------------------------------


def test_a_diagram_in_the_place_of_its_model_is_told_how_to_get_one() -> None:
    diagram, _ = servo(WIRE())
    asks: list[Callable[[Any], Any]] = [fx.bode, fx.nyquist, fx.nichols, fx.margins]
    for ask in asks:
        for given in (diagram, [diagram], {"loop": diagram}):
            with pytest.raises(ValueRefusedError, match=r"fx\.loop_gain\(servo, location\)"):
                ask(given)


def test_a_delay_that_has_no_continuous_model_names_the_one_that_has() -> None:
    diagram, context = servo(fx.TimeDelay("e", 0.1, 0.01))
    with pytest.raises(EvaluationError, match=r"period=.*PadeDelay instead of 'e'"):
        fx.margins(fx.loop_gain(diagram, "pid.u", context=context))


@for_each("order", [1, 2, 5])
def test_an_approximated_delay_answers_for_no_loop_that_is_faster(order: int) -> None:
    """A gain k around an integrator and a delay of 1 s is stable up to k = π/2."""
    quiet = {1: 0.4, 2: 1.4, 5: 1.5}
    noted = {1: 1.8, 2: 1.575, 5: 6.0}
    for k in (quiet[order], noted[order]):
        builder = fx.DiagramBuilder("loop")
        delay = fx.PadeDelay("delay", 1.0, order=order)
        builder.add_all(fx.Gain("k", -k), fx.Integrator("plant"), delay)
        builder.connect_chain("k", "plant", "delay", "k")
        found = fx.margins(fx.loop_gain(builder.build(), "delay.y"))
        is_named = any("'delay' approximates its delay up to" in note for note in found.notes)
        assert is_named == (k == noted[order])
        assert is_named or found.is_stable == (k < 0.5 * np.pi)


# Loads that follow the motion --------------------------------------------------------------------


class Follower(fx.LeafSystem):
    """A force P along the second of two links, and a torque on the first one as a damper has."""

    def __init__(self) -> None:
        super().__init__("follower")
        self.load = self.declare_numeric_parameter("load", 0.0)
        self.drive = self.declare_numeric_parameter("drive", 0.0)
        self.angles = [self.declare_vector_input(name, 1) for name in ("a", "b")]
        self.rate = self.declare_vector_input("rate", 1)
        self.declare_vector_output("force", 6, self.calc_force, prerequisites=self.angles)
        reads = [self.rate]
        self.declare_vector_output("torque", 1, self.calc_torque, prerequisites=reads)

    def calc_force(self, context: Any) -> Any:
        turn = sum(angle(context)[0] for angle in self.angles)
        push = -self.load(context)
        return fx.array([0.0, 0.0, 0.0, push * np.sin(turn), 0.0, push * np.cos(turn)])

    def calc_torque(self, context: Any) -> Any:
        return self.drive(context) * self.rate(context)


def ziegler(
    damping: float,
    masses: tuple[float, float] = (2.0, 1.0),
    stiffness: float = 1.0,
    length: float = 1.0,
) -> Any:
    """The double pendulum of Ziegler: two links with springs, and masses at their ends."""
    builder = fx.PlantBuilder("links", gravity=(0.0, 0.0, 0.0))
    last: Any = builder.world
    for k, mass in enumerate(masses):
        link = builder.add_body(f"link{k}", fx.SpatialInertia.point_mass(mass), com=(0, 0, length))
        axis = builder.add_joint(fx.RevoluteJoint(f"axis{k}", last, link, axis=(0, 1, 0)))
        spring = fx.JointSpring(f"spring{k}", axis, stiffness=stiffness, damping=damping)
        builder.add_force_element(spring)
        if not k:
            builder.add_actuator("motor", axis)
        last = builder.add_frame(f"end{k}", link, (0.0, 0.0, length))
    builder.add_external_force("tip", link)
    outer = fx.DiagramBuilder("pendulum")
    outer.add_all(builder.build(), Follower())
    outer.connect("links.axis0.angle", "follower.a")
    outer.connect("links.axis1.angle", "follower.b")
    outer.connect("links.axis0.rate", "follower.rate")
    outer.connect("follower.force", "links.tip")
    outer.connect("follower.torque", "links.motor")
    return outer.build()


@pytest.mark.parametrize("damping", [0.0, 1e-3])
def test_a_column_under_a_follower_force_flutters(damping: float) -> None:
    """Without damping from (7/2 - √2) k/l on, with a little from 41/28 k/l on (Ziegler 1952)."""
    pendulum, critical = ziegler(damping), 41.0 / 28.0 if damping else 3.5 - np.sqrt(2.0)
    path = fx.load_path(pendulum, {"follower.load": [0.0, 0.99 * critical, 1.01 * critical]})
    assert path.stable.tolist() == (path["follower.load"] < critical).tolist()
    assert path.num_unstable[-1] == 1
    for refine in (True, False):
        with pytest.warns(UserWarning, match="no potential.*flutter may begin"):
            assert not len(fx.buckling(pendulum, {"follower.load": 1.0}, refine=refine))


def test_a_block_that_drives_what_a_spring_holds_is_not_stable() -> None:
    for drive in (-0.1, 0.1):
        pendulum = ziegler(1e-3)
        context = pendulum.create_default_context()
        context.set("follower.drive", drive)
        path = fx.load_path(pendulum, {"follower.load": [0.0, 1e-9]}, context=context)
        assert (path.stable == (drive < 0.0)).all()


def test_flutter_of_bodies_without_mass_is_not_known() -> None:
    path = fx.load_path(ziegler(0.0, (1.0, 0.0)), {"follower.load": [0.0, 1.0]})
    with pytest.warns(UserWarning, match="without a potential do not count as stable"):
        assert path.num_unstable[-1] == -1
    assert not path.stable[-1]


@pytest.mark.parametrize("order", [1, 3])
def test_gains_that_rest_on_a_rough_delay_say_so(order: int) -> None:
    builder = fx.DiagramBuilder("loop")
    delay = fx.PadeDelay("delay", 1.0, order=order)
    builder.add_all(fx.PIDController("pid"), fx.FirstOrderLag("plant", 0.1), delay)
    builder.add(fx.Constant("target", 1.0))
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", "plant", "delay", "pid.measurement")
    tuning = fx.tune_pid(builder.build(), "pid", parts="PI")
    s = 1j * np.linspace(0.5, 3.0, 2001)
    loop = (tuning.kp + tuning.ki / s) / (0.1 * s + 1.0) * np.exp(-s)
    peak = float(np.max(1.0 / np.abs(1.0 + loop)))
    assert ("'delay' approximates its delay" in repr(tuning)) == (order == 1)
    assert (abs(peak - 1.6) < 0.01) == (order == 3)


# Responses that are not at rest ------------------------------------------------------------------


TIME = np.linspace(0.0, 1.0, 2001)
RISE = 1.0 - np.exp(-20.0 * TIME)
UNSETTLED: dict[str, npt.NDArray[np.float64]] = {
    "a drift through the target": RISE + 0.018 * (1.0 - TIME),
    "a swing that is slower than the record": RISE + 0.018 * np.cos(0.5 * np.pi * TIME),
    "a drift that slows down beyond the band": RISE + 0.06 * np.exp(-TIME) - 0.04,
}


@pytest.mark.parametrize("case", UNSETTLED)
def test_a_response_that_is_on_its_way_out_of_the_band_has_not_settled(case: str) -> None:
    with pytest.warns(UserWarning, match="still moves at t = 1 s"):
        found = fx.step_info(TIME, UNSETTLED[case], target=1.0)
    assert np.isnan(found.settling_time)


@pytest.mark.parametrize("offset", [0.018, -0.018])
def test_a_response_that_ends_off_its_target_inside_of_the_band_has_settled(offset: float) -> None:
    late = offset * (1.0 - np.exp(-4.0 * TIME))  # moves by more than a tenth of the band at last
    assert fx.step_info(TIME, RISE + late, target=1.0).settling_time < 0.5
    swing = 0.01 * np.cos(60.0 * TIME)  # for ever, inside of the band
    assert fx.step_info(TIME, RISE + swing, target=1.0).settling_time < 0.5


def test_a_record_that_ends_at_its_largest_deviation_shows_no_recovery() -> None:
    time = np.linspace(0.0, 9e-4, 100)
    with pytest.warns(UserWarning, match=r"0\.000899 from its target and farther than ever"):
        found = fx.disturbance_info(time, time * np.exp(-time), tolerance=0.01)
    assert np.isnan(found.recovery_time)
    assert fx.disturbance_info(time, np.ones(100)).recovery_time == 0.0
    with pytest.raises(ValueRefusedError, match="found a disturbance at 1 s"):
        fx.disturbance_info(TIME, RISE, at=1.0)


def test_verdicts_do_not_depend_on_units() -> None:
    found = []
    for mass, length in ((1.0, 1.0), (1e-24, 1e-9), (1e24, 1e6)):
        pendulum = ziegler(0.1 * mass * length**2, (2.0 * mass, mass), mass * length**2, length)
        path = fx.load_path(pendulum, {"follower.load": [0.0, mass * length]})
        modes = fx.modes(pendulum)
        found.append([*modes.frequencies, *modes.damping_ratios, path.stable.all(), len(path)])
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-9, 1e-12, 1e-100])
def test_numbers_in_small_units_are_right_or_doubted(unit: float) -> None:
    lag, times = fx.FirstOrderLag("lag", time_constant=1.0), np.linspace(0.0, 5.0, 26)
    columns = {"u": unit * np.ones(26), "y": 3.0 * unit * (1.0 - np.exp(-times / 2.0))}
    found = fx.fit(lag, {"time": times, **columns}, ["time_constant", "gain"])
    assert found["time_constant"] == pytest.approx(2.0, rel=1e-6)
    assert found["gain"] == pytest.approx(3.0, rel=1e-6)
    context = lag.create_default_context()
    context.set("u", unit)
    result = fx.simulate(lag, 5.0, context=context, atol=1e-9 * unit)
    assert result["y"][-1] == pytest.approx(unit * (1.0 - np.exp(-5.0)), rel=1e-5)
    if unit > 1e-15:
        with pytest.warns(UserWarning, match="All states of 'lag' stay so small .*atol = 1e-09"):
            fx.simulate(lag, 5.0, context=context)
        with pytest.warns(UserWarning, match="All states of 'lag' stay so small .*atol = 1e-09"):
            fx.sweep(lag, {"u": [unit, 2.0 * unit]}, 5.0, metrics=fx.metrics.final("y"))
        with pytest.warns(UserWarning, match="All states of 'lag' stay so small .*atol = 1e-11"):
            fx.parameter_sensitivity(lag, "time_constant", 5.0, context=context)
    exact = fx.parameter_sensitivity(lag, "time_constant", 5.0, context=context, atol=1e-9 * unit)
    assert exact["time_constant"] == pytest.approx([-5.0 * unit * np.exp(-5.0)], rel=1e-5)


# Rates that are not zero anywhere ----------------------------------------------------------------


class Runaway(fx.LeafSystem):
    """A state with a given rate, as a function of it."""

    def __init__(self, rate: Callable[[Any], Any]) -> None:
        super().__init__("runaway")
        self.rate = rate
        self.state = self.declare_continuous_state(z=1, default=[1.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        return [self.rate(self.state(context)[0])]


def test_a_sweep_of_small_motions_goes_on_where_its_first_run_fails() -> None:
    decay = Runaway(lambda x: 0.0 * np.sqrt(x) - x)
    with pytest.warns(UserWarning, match="All states of 'runaway' stay so small"):
        sweep = fx.sweep(decay, {"x": [-1e-7, 1e-7]}, 1.0)
    assert sweep.outcomes.tolist() == ["failed", "completed"]


def test_states_that_run_away_have_no_equilibrium_however_small_their_rates_become() -> None:
    rates: list[Callable[[Any], Any]] = [lambda x: np.exp(-x), lambda x: 1.0 / x]
    for rate in rates:
        with pytest.raises(EvaluationError, match="expected derivatives that become zero"):
            fx.equilibrium(Runaway(rate))
    roots: list[Callable[[Any], Any]] = [lambda x: 0.5 - x, lambda x: (x - 0.5) ** 2]
    for rate in [*roots, lambda x: (0.5 - x) ** 3]:  # and multiple roots have one
        found = fx.equilibrium(Runaway(rate))
        assert found.context.continuous_state == pytest.approx([0.5], abs=1e-5)


# Numbers that runs do not determine --------------------------------------------------------------


@pytest.mark.parametrize("by_path", [True, False])
def test_a_value_that_the_objective_does_not_depend_on_has_no_precision(by_path: bool) -> None:
    def drive(result: fx.results.SimulationResult) -> float:
        return float(result.context.get("u").item())

    found = fx.optimize(
        fx.FirstOrderLag("lag", 1.0),
        {"x": (0.0, 1.0), "u": (0.0, 5.0)},
        fx.metrics.final("u") if by_path else drive,
        t_final=1.0,
        max_evaluations=32,
    )
    assert found.precision["x"] == np.inf
    assert found.precision["u"] < 1e-3
    assert str(found).count("not determined") == 1


class Latch(fx.LeafSystem):
    """A parabola over a slope, to which a latch adds once a sample has seen a ramp above 1."""

    def __init__(self) -> None:
        super().__init__("latch")
        self.slope = self.declare_numeric_parameter("slope", 0.5)
        self.state = self.declare_continuous_state(z=2)
        self.held = self.declare_discrete_state("held", [0.0])
        self.declare_discrete_update(self.update, fx.diagrams.Periodic(0.1))

    def update(self, context: Any) -> Any:
        return {self.held: fx.array([np.where(self.state(context)[0] > 1.0, 1.0, 0.0)])}

    def calc_time_derivatives(self, context: Any) -> Any:
        slope = self.slope(context)
        return [slope, 1.0 + self.held(context)[0] + (slope - 1.105) ** 2]


def test_an_objective_that_jumps_beside_the_answer_may_have_other_minima() -> None:
    whole = fx.metrics.final("x[1]")
    with pytest.warns(UserWarning, match="'latch' may have ended at a local minimum.*another seed"):
        found = fx.optimize(Latch(), {"slope": (0.5, 2.0)}, whole, t_final=1.0, max_evaluations=32)
    assert found["slope"] == pytest.approx(1.105, abs=1e-3)  # from 1 / 0.9 on, it jumps
    far = fx.optimize(Latch(), {"slope": (0.2, 0.9)}, whole, t_final=1.0, max_evaluations=32)
    assert far["slope"] == pytest.approx(0.9)


@pytest.mark.filterwarnings("ignore:.* runs of 'lag' will take")
def test_what_is_random_is_not_determined_and_has_no_sobol_indices() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)

    def noise(noisy: float) -> Callable[[fx.results.SimulationResult], float]:
        rng = np.random.default_rng(4)

        def metric(result: fx.results.SimulationResult) -> float:
            u = float(np.ravel(result.context.get("u"))[0])
            return (u - 2.0) ** 2 + noisy * float(rng.normal())

        return metric

    for noisy in (1.0, 1e-3):
        with pytest.warns(UserWarning, match="is not a function of the variables: a second run"):
            best = fx.optimize(
                lag, {"u": (0.0, 5.0)}, noise(noisy), t_final=0.1, max_evaluations=32
            )
        assert "±" not in str(best)
    same = fx.optimize(lag, {"u": (0.0, 5.0)}, noise(0.0), t_final=0.1, max_evaluations=32)
    assert same["u"] == pytest.approx(2.0, abs=1e-3)

    values, rng = {"u": (0.0, 2.0), "x": (0.0, 0.5)}, np.random.default_rng(5)
    quiet: dict[str, Callable[[fx.results.SimulationResult], float]] = {
        "constant": lambda result: 3.0,
        "rounding": lambda result: 3.0 + 1e-9 * float(result.context.get("x").item()),
    }
    for name, metric in quiet.items():
        with pytest.warns(UserWarning, match=f"'{name}' say nothing: it does not depend"):
            fx.sobol_indices(lag, values, 0.1, 16, metrics={name: metric})
    noise_alone = {"noise": lambda _: rng.normal()}  # in the order of the runs, in one thread
    with pytest.warns(UserWarning, match="'noise' varies as noise does"):
        fx.sobol_indices(lag, values, 0.1, 16, metrics=noise_alone, threads=1)


def test_intervals_of_sobol_indices_from_few_rows_are_doubted() -> None:
    lag, values = fx.FirstOrderLag("lag", 1.0), {"u": (0.0, 2.0), "x": (0.0, 0.5)}
    with pytest.warns(UserWarning, match="too few rows of samples, 2"):
        few = fx.sobol_indices(lag, values, 1.0, 2, metrics=fx.metrics.final("y"))["final(y)"]
    assert few.first_interval[0, 0] > 1.0  # which no index is
    with pytest.warns(UserWarning, match="too few rows of samples, 1"):
        one = fx.sobol_indices(lag, values, 1.0, 1, metrics=fx.metrics.final("y"))["final(y)"]
    assert np.isnan(one.first).all()
    fx.sobol_indices(lag, values, 1.0, 16, metrics=fx.metrics.final("y"))


def test_an_element_with_powers_beyond_numbers_is_not_passive() -> None:
    ends = [fx.Body(name, fx.SpatialInertia.point_mass(1.0)) for name in ("body", "other")]
    points = (ends[0], (0, 0, 0), ends[1], (0, 0, 1))
    spring = fx.LinearSpringDamper("spring", *points, free_length=1.0, stiffness=1e308, damping=0)
    report = fx.check_passivity(spring, num_motions=5)
    assert not np.isfinite(report.power_scale)
    assert not report.is_passive
