"""Copies: copy.copy, copy.deepcopy and pickle work as a whole, or say what to call."""

from __future__ import annotations

import copy
import itertools
import multiprocessing
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ContextError, DeclarationError
from tests.support.systems.blocks import Lag, nested

Duplicate: TypeAlias = Callable[[Any], Any]


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


every_copy = pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickled])
deep_copies = pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])


def loop() -> fx.Diagram:
    """Return a sampled loop with a log."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("source", at=0.5),
        fx.Sum("error", signs="+-"),
        fx.ZeroOrderHold("hold", period=0.25),
        nested(fx.FirstOrderLag("lag", time_constant=1.0), 2),
        fx.VectorLog("log", period=0.5),
    )
    builder.connect_chain("source", "error.u1")
    builder.connect_chain("error", "hold", "d2", "error.u2")
    builder.connect("d2.y", "log.u")
    builder.export_output("d2.y", name="y")
    return builder.build()


LOOP = loop()
TAU = "d2.d1.lag.time_constant"


# Contexts ----------------------------------------------------------------------------------------


@every_copy
def test_a_copy_of_a_context_has_its_values_and_is_independent(duplicate: Duplicate) -> None:
    simulator = fx.Simulator(LOOP)
    simulator.advance_to(1.3)
    context = simulator.context
    context.set(TAU, 2.0)
    twin = duplicate(context)
    assert twin.to_dict() == context.to_dict()
    np.testing.assert_array_equal(twin.get("y"), context.get("y"))
    logs = [log_of(each) for each in (twin, context)]
    np.testing.assert_array_equal(logs[0].data, logs[1].data)
    twin.set(TAU, 3.0)
    twin.time = 9.0
    logs[0].clear()
    assert (context.get(TAU), context.time, logs[1].times.size) == (2.0, 1.3, 3)
    assert (twin.system is LOOP) is (duplicate is not pickled)
    with pytest.raises(ValueError, match="read-only"):
        twin.continuous_state[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        twin["hold"].discrete[0][0] = 1.0


def log_of(context: Any) -> Any:
    """Return what the log of the loop has recorded."""
    return context["log"].records[0]


@every_copy
@pytest.mark.parametrize("path", ["hold", "d2", "d2.d1.lag"])
def test_a_copy_of_the_context_of_a_block_is_in_a_copy_of_the_whole(
    path: str, duplicate: Duplicate
) -> None:
    context = LOOP.create_default_context()
    window = context[path]
    twin = duplicate(window)
    assert twin.root is not context
    assert twin is twin.root[path]
    twin.root.set(TAU, 5.0)
    assert context.get(TAU) == 1.0
    assert twin.root.get(TAU) == 5.0


@deep_copies
def test_what_belongs_together_stays_together(duplicate: Duplicate) -> None:
    context = LOOP.create_default_context()
    root, window, store = duplicate([context, context["hold"], context.store])
    assert window is root["hold"]
    assert store is root.store


@deep_copies
def test_a_context_goes_along_with_its_system_in_any_order(duplicate: Duplicate) -> None:
    context = LOOP.create_default_context()
    context.set(TAU, 2.0)
    pieces = [context, LOOP, context["d2"], context["hold"]]
    for order in itertools.permutations(range(4)):
        twins = duplicate([pieces[k] for k in order])
        root, system, window, block = (twins[order.index(k)] for k in range(4))
        assert system is not LOOP
        assert root.system is system
        assert window is root["d2"]
        assert block is root["hold"]
        assert block.system is system["hold"]
        assert block.store is root.store
        assert block.root is root
        assert system.find(TAU)(root["d2.d1.lag"]) == 2.0
        root.set(TAU, 3.0)
        assert (root.get(TAU), context.get(TAU)) == (3.0, 2.0)
        assert context.system is LOOP
        end = fx.simulate(system, 0.5, context=root).context
        assert end.to_dict() == fx.simulate(LOOP, 0.5, context=_with(3.0)).context.to_dict()


def _with(time_constant: float) -> fx.Context:
    context = LOOP.create_default_context()
    context.set(TAU, time_constant)
    return context


# Systems -----------------------------------------------------------------------------------------


def everything(depth: int) -> fx.Diagram:
    """Return deeply nested diagrams with an output."""
    diagram = nested(Lag("lag"), depth)
    assert isinstance(diagram, fx.Diagram)
    return diagram


@deep_copies
@pytest.mark.parametrize("used", [False, True])
def test_diagrams_of_any_depth_are_copied(used: bool, duplicate: Duplicate) -> None:
    diagram = everything(500)
    if used:
        assert diagram.feedthrough is not None
    twin = duplicate(diagram)
    context = twin.create_default_context()
    context.set("u", 2.0)
    context.continuous_state = [0.5]
    np.testing.assert_array_equal(twin.eval_time_derivatives(context), [1.5])
    again = duplicate(context)
    assert again.to_dict() == context.to_dict()
    assert next(twin.create_default_context().leaves()).system.path.count(".") == 499


@deep_copies
def test_whatever_is_reached_first_the_whole_comes_along_once(duplicate: Duplicate) -> None:
    reaches: list[Callable[[Any], Any]] = [
        lambda d: d["d2.d1.lag"],
        lambda d: d.find(TAU),
        lambda d: d.find("y"),
        lambda d: d["d2"].output_port("y"),
        lambda d: d["d2.d1"],
    ]
    for reach in reaches:
        diagram = loop()
        twin = duplicate(reach(diagram))
        top: Any = getattr(twin, "system", twin)
        while top.parent is not None:
            top = top.parent
        assert top is not diagram
        assert reach(top) is twin
        first, second = duplicate([reach(diagram), diagram])
        assert reach(second) is first
        context = second.create_default_context()
        context.set(TAU, 4.0)
        assert second["d2.d1.lag"].find("time_constant")(context) == 4.0


def test_copies_of_one_diagram_by_many_threads_are_whole() -> None:
    diagram = everything(50)
    barrier = threading.Barrier(8)
    found: list[int] = []

    def work() -> None:
        barrier.wait()
        twin = pickled(diagram)
        context = twin.create_default_context()
        context.set("u", 1.0)
        found.append(len(list(context.leaves())) + twin.eval_time_derivatives(context).size)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2] * 8


def test_a_copy_can_be_used_where_the_system_is_already() -> None:
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    builder = fx.DiagramBuilder("one")
    builder.add(lag)
    builder.export_input("lag.u", name="u")
    builder.build()
    other = fx.DiagramBuilder("two")
    twin = copy.deepcopy(lag.parent)
    assert twin is not None
    other.add(twin)
    other.export_input("one.u")
    assert other.build()["one.lag"] is not lag


class Slotted(fx.LeafSystem):
    """A block with a slot, and with a state of its own making."""

    __slots__ = ("extra",)

    def __init__(self) -> None:
        super().__init__("slotted")
        self.extra = [1.0]
        self.dropped = "what is not pickled"

    def __getstate__(self) -> Any:
        attributes = {key: value for key, value in vars(self).items() if key != "dropped"}
        return attributes, {"extra": self.extra}


class Restoring(fx.LeafSystem):
    """A block that restores its state in its own way."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.restored = True


@deep_copies
def test_blocks_may_say_how_they_are_pickled(duplicate: Duplicate) -> None:
    one, two = duplicate([Slotted(), Restoring("restoring")])
    assert one.extra == [1.0]
    assert not hasattr(one, "dropped")
    assert two.restored
    assert one.create_default_context().time == two.create_default_context().time == 0.0


def test_shallow_copies_of_systems_are_refused_with_what_to_do() -> None:
    with pytest.raises(DeclarationError) as caught:
        copy.copy(LOOP)
    assert str(caught.value) == (
        "Cannot copy 'loop': expected one of it in all of its diagram; found a copy of it alone. A "
        "system holds no values: make as many contexts of it as you need, or copy all of its "
        "diagram with copy.deepcopy."
    )
    with pytest.raises(DeclarationError, match=r"Cannot copy 'd2\.d1\.lag'"):
        copy.copy(LOOP["d2.d1.lag"])


def test_a_copy_of_a_handle_is_the_handle() -> None:
    for path in (TAU, "y", "hold.u"):
        assert copy.copy(LOOP.find(path)) is LOOP.find(path)


# Runs --------------------------------------------------------------------------------------------


@every_copy
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("was_read", [False, True])
def test_a_copy_of_a_result_can_be_read(
    was_read: bool, compiled: bool, duplicate: Duplicate
) -> None:
    result = fx.simulate(LOOP, 2.0, compiled=compiled)
    if was_read:
        assert result["y"].size
    result.context.set("source.to", 5.0)  # which changes no signal
    twin = duplicate(result)
    times = np.linspace(0.0, 2.0, 7)
    for signal in ("y", "hold.y", "d2.d1.lag.x"):
        np.testing.assert_array_equal(twin[signal], result[signal])
        np.testing.assert_array_equal(twin.sample(signal, times), result.sample(signal, times))
    assert (twin.outcome, twin.message) == (result.outcome, result.message)
    assert twin.statistics == result.statistics
    assert twin.signals == result.signals
    twin.context.set(TAU, 7.0)
    assert result.context.get(TAU) == 1.0


@every_copy
def test_a_copy_of_a_sweep_can_be_read(duplicate: Duplicate) -> None:
    sweep = fx.sweep(LOOP, {TAU: [1.0, 2.0]}, 20.0, signals=["y"], metrics=["peak"])
    twin = duplicate(sweep)
    np.testing.assert_array_equal(twin["y"], sweep["y"])
    np.testing.assert_array_equal(twin.metrics["peak"], sweep.metrics["peak"])
    np.testing.assert_array_equal(twin.metric("overshoot"), sweep.metric("overshoot"))
    assert twin.context(1).get(TAU) == 2.0
    assert (twin.how, len(twin), twin.signals) == (sweep.how, 2, ("y",))
    twin.values[TAU][0] = 9.0
    assert sweep.values[TAU][0] == 1.0


@every_copy
@pytest.mark.parametrize("record", [False, True])
def test_a_simulator_is_not_copied_and_says_what_to_do(record: bool, duplicate: Duplicate) -> None:
    simulator = fx.Simulator(LOOP, record=record)
    simulator.advance_to(1.0)
    with pytest.raises(DeclarationError, match=r"Simulator\(system, simulator\.context\.clone\(\)"):
        duplicate(simulator)
    other = fx.Simulator(LOOP, simulator.context.clone())
    for each in (simulator, other):
        each.advance_to(1.6)
    np.testing.assert_allclose(other.context.get("y"), simulator.context.get("y"), rtol=1e-6)


def test_results_and_sweeps_travel_between_processes() -> None:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        result = pool.submit(fx.simulate, LOOP, 2.0).result()
        sweep = pool.submit(fx.sweep, LOOP, {TAU: [1.0, 2.0]}, 2.0, signals=["y"]).result()
        final = pool.submit(fx.results.SimulationResult.sample, result, "y", [2.0]).result()
    np.testing.assert_array_equal(result["y"], fx.simulate(LOOP, 2.0)["y"])
    np.testing.assert_array_equal(final, result.sample("y", [2.0]))
    np.testing.assert_array_equal(
        sweep["y"], fx.sweep(LOOP, {TAU: [1.0, 2.0]}, 2.0, signals=["y"])["y"]
    )


# Mechanisms --------------------------------------------------------------------------------------


def pendulum() -> tuple[fx.Plant, fx.RevoluteJoint, Any]:
    builder = fx.PlantBuilder("pendulum")
    bob = builder.add_body("bob", fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, -1.0))
    pivot = builder.add_joint(fx.RevoluteJoint("pivot", builder.world, bob, axis=(0, 1, 0)))
    return builder.build(), pivot, bob


@deep_copies
def test_joints_and_bodies_come_with_their_plant(duplicate: Duplicate) -> None:
    plant, pivot, bob = pendulum()
    joint, body, twin = duplicate([pivot, bob, plant])
    context = twin.create_default_context()
    joint.angle.set(context, 0.5)
    np.testing.assert_allclose(twin.eval_time_derivatives(context)[1], -9.81 * np.sin(0.5))
    assert body.pose(context).p.shape == (3,)
    with pytest.raises(ContextError):
        pivot.angle.get(context)


def test_shallow_copies_of_joints_bodies_and_frames_are_refused() -> None:
    _, pivot, bob = pendulum()
    for thing in (pivot, bob, pivot.frame_on_parent):
        with pytest.raises(DeclarationError, match="or copy all of its plant with"):
            copy.copy(thing)


def test_a_system_and_its_context_are_copied_as_a_pair() -> None:
    lag = fx.FirstOrderLag("lag", time_constant=2.0)
    context = lag.create_default_context()
    context.set("u", 1.0)
    for duplicate in (copy.deepcopy, pickled):
        pair: Any = duplicate((lag, context))
        twin, values = pair
        assert values.system is twin is not lag
        values.set("u", 3.0)
        assert fx.simulate(twin, 1.0, context=values).outcome == "completed"
    assert lag.u(context).item() == 1.0
    assert copy.deepcopy(context).system is lag


@dataclass
class Case:
    """A system, and then a context of it."""

    system: Any
    context: Any


def test_whatever_holds_a_system_before_its_context_is_copied_with_both() -> None:
    simulator = fx.Simulator(LOOP)
    simulator.advance_to(0.6)
    context = simulator.context
    hold = LOOP.get_system("hold")
    pairs: list[Any] = [(LOOP, context), [LOOP, context], {"of": LOOP, "at": context}]
    for pair in [*pairs, Case(LOOP, context), Case(hold, context.find(hold))]:
        twin = copy.deepcopy(pair)
        values = vars(twin) if isinstance(twin, Case) else twin
        system, there = values.values() if isinstance(values, dict) else values
        assert there.system is system
        assert there.root.system is not LOOP
        assert there.root.continuous_state == pytest.approx(context.continuous_state, abs=0.0)
    for reverse in (copy.deepcopy, pickled):
        there, system = reverse((context, LOOP))
        assert there.system is system
        assert system is not LOOP
