"""What every plant promises, whatever bodies, joints and force elements it is made of."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flexure as fx
from flexure.blocks.multibody.constraints import Constraint, LoopJoint
from flexure.solvers.analysis.equations.equations import Equations, find_variables
from flexure.solvers.native.llvm.library import available
from flexure.solvers.native.programs.program import Program
from tests.contracts.equations import Equation
from tests.contracts.test_every_reading import Readings, check_program
from tests.support.mechanics.mechanisms import (
    CLOSING,
    MECHANISMS,
    TRIED_MECHANISMS,
    closed_by,
    random_context,
    random_contexts,
    random_plant,
)
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import by_tier, for_each

every_mechanism = pytest.mark.parametrize("name", TRIED_MECHANISMS)
#: Chains, and what has force elements, as the behavior of single joints follows from theirs.
ELEMENTS = ["elements on bodies", "elements on joints"]
LARGE = [name for name in MECHANISMS if not name.endswith(" joint")]
every_large_mechanism = pytest.mark.parametrize(
    "name", [name for name in TRIED_MECHANISMS if name in LARGE]
)
#: For what is slow: one plant with force elements and one with constraints, or all.
every_kind_of_plant = pytest.mark.parametrize(
    "name", by_tier(fast=["elements on joints", "wheels and skates"], full=LARGE)
)


def rates(context: Any) -> Any:
    return context.store.time_derivatives()


def equations_of(plant: fx.Plant) -> dict[str, Equation]:
    """Return everything that a plant computes, all reactions as one, as some of them cancel."""
    reactions = [port for port in plant.output_ports if port.name.endswith(".reaction")]
    others = {port.name: port for port in plant.output_ports if port not in reactions}
    return {"derivatives": rates, "reactions": lambda c: [port(c) for port in reactions], **others}


def test_every_constraint_is_in_the_battery() -> None:
    kinds = {
        kind
        for place in (fx.blocks, fx.constraints)
        for kind in (getattr(place, name) for name in vars(place)["__all__"])
        if isinstance(kind, type) and issubclass(kind, Constraint) and not inspect.isabstract(kind)
    }
    assert {type(each) for name in LARGE for each in MECHANISMS[name]().constraints} == kinds
    thread = MECHANISMS["loops and couplings"]().constraint("thread")
    assert isinstance(thread, LoopJoint)
    loops = [closed_by(kind).constraint("loop") for kind in CLOSING]
    closures = {
        type(each) for loop in loops if isinstance(loop, LoopJoint) for each in loop.equations
    }
    assert {type(each) for each in thread.equations} == closures


# Readings ----------------------------------------------------------------------------------------


def check_readings(plant: fx.Plant, contexts: list[fx.Context]) -> None:
    """Compare lanes, straight-line code and native code with the equations."""
    readings = Readings(equations_of(plant), contexts)
    assert not readings.refused
    assert np.isfinite(readings.expected).all()
    readings.check_lanes()
    readings.check_straight_line(exact=False)
    if available():
        readings.check_simplified_native()
        check_program(Program(plant.layout), contexts)


@every_mechanism
def test_every_reading_gives_the_numbers_of_the_equations(name: str) -> None:
    plant = MECHANISMS[name]()
    check_readings(plant, random_contexts(plant, 5))


@settings(max_examples=by_tier(fast=2, full=8))
@given(seed=st.integers(0, 10_000), count=st.integers(1, 5))
def test_random_mechanisms_give_the_same_numbers_in_every_reading(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    plant = random_plant(rng, count)
    check_readings(plant, [random_context(plant, rng) for _ in range(3)])


@every_large_mechanism
def test_many_contexts_at_once_give_the_numbers_of_one_after_the_other(name: str) -> None:
    plant = MECHANISMS[name]()
    contexts = random_contexts(plant, by_tier(fast=10, full=30))
    ports = list(plant.output_ports)
    for port, found in zip(ports, fx.evaluate_batch(plant, ports, contexts), strict=True):
        expected = np.array([port(context) for context in contexts]).reshape(found.shape)
        size = np.max(np.abs(expected), initial=1.0)
        rounding = 1e-11 if plant.constraints else 1e-12  # of multipliers in other orders
        np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding * size)


# Derivatives -------------------------------------------------------------------------------------


def check_slopes(matrix: Any, function: Callable[[Any], Any], point: Any) -> None:
    """Compare a Jacobian with central differences along random directions."""
    for direction in np.random.default_rng(1).normal(size=(3, point.size)):
        step = 1e-5 * direction
        expected = (function(point + step) - function(point - step)) / 2e-5
        size = np.max(np.abs(expected), initial=1.0)
        np.testing.assert_allclose(matrix @ direction, expected, rtol=1e-6, atol=1e-7 * size)


@every_kind_of_plant
def test_exact_derivatives_of_the_motion_agree_with_differences(name: str) -> None:
    plant = MECHANISMS[name]()
    (context,) = random_contexts(plant, 1, seed=3)
    masses = [f"{body.name}.mass" for body in plant.bodies[1:] if not body.is_node]
    choices: list[Any] = [*plant.input_ports, *masses]
    equations = Equations(context, find_variables(context, choices, "Cannot differentiate"))
    assert equations.exact is not None
    point = equations.point()
    check_slopes(equations.jacobian(point), equations.values, point)


@pytest.mark.parametrize("name", ["motors", *by_tier(fast=[], full=ELEMENTS)])
def test_a_linear_model_is_tangent_to_the_plant(name: str) -> None:
    plant = MECHANISMS[name]()
    (context,) = random_contexts(plant, 1, seed=4)
    model = fx.linearize(plant, context)
    assert model.how == "exact derivatives"
    inputs = list(plant.input_ports)
    ends = np.cumsum([context.continuous_state.size, *(port.size or 0 for port in inputs)])

    def motion_and_outputs(point: Any) -> Any:
        state, *values = np.split(point, ends[:-1])
        context.continuous_state = state
        for port, value in zip(inputs, values, strict=True):
            port.fix(context, value)
        outputs = [port.eval(context) for port in plant.output_ports]
        return np.concatenate([plant.eval_time_derivatives(context), *outputs])

    point = np.concatenate([context.continuous_state, *(port.eval(context) for port in inputs)])
    matrix = np.block([[model.A, model.B], [model.C, model.D]])
    check_slopes(matrix, motion_and_outputs, point)


@pytest.mark.parametrize(
    "name",
    ["revolute joint", *by_tier(fast=[], full=["universal joint", *ELEMENTS])],
)
def test_a_plant_that_slows_down_has_an_equilibrium_nearby(name: str) -> None:
    plant = MECHANISMS[name]()
    start = fx.simulate(plant, 20.0).context
    plant.set_velocities(start, np.zeros(plant.num_velocities))
    context = fx.equilibrium(plant, start).context
    np.testing.assert_allclose(plant.eval_time_derivatives(context), 0.0, atol=1e-6)
    np.testing.assert_allclose(plant.get_velocities(context), 0.0, atol=1e-6)
    released = plant.create_default_context()
    assert plant.calc_potential_energy(context) < plant.calc_potential_energy(released)


# Simulations -------------------------------------------------------------------------------------

#: Steps that are as long as they may be: no error estimate, in which rounding shows, decides.
STEPS: dict[str, Any] = {"method": "RK45", "rtol": 0.09, "atol": 1e3, "max_step": 0.01}


@needs_llvmlite
@every_kind_of_plant
def test_simulations_agree_however_the_equations_are_computed(name: str) -> None:
    plant = MECHANISMS[name]()
    (context,) = random_contexts(plant, 1, seed=5)
    if plant.constraints:
        plant.assemble(context)
    compiled: list[Any] = [False, "python", "native", True]
    interpreted, *others = [
        fx.simulate(plant, 0.1, context=context, **STEPS, compiled=how) for how in compiled
    ]
    for run in others:
        np.testing.assert_allclose(run.time, interpreted.time, rtol=1e-12)
        found, expected = (each.context.continuous_state for each in (run, interpreted))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(
            run["accelerations"], interpreted["accelerations"], rtol=1e-9, atol=1e-9
        )
    if plant.constraints:  # whose forces do no work
        assert all(np.ptp(run["mechanical_energy"]) > 0.1 for run in (interpreted, *others))
        assert all(np.ptp(run["ledger.balance"]) < 1e-6 for run in (interpreted, *others))


SWEPT: dict[str, dict[str, Any]] = {
    "elements on bodies": {
        "gimbal_free.force_stiffness": [[30.0, 40.0, 50.0], [60.0, 50.0, 40.0], [0.0, 0.0, 0.0]],
        "spring.stiffness": [0.0, 10.0, 200.0],
        "body1.mass": [0.5, 1.0, 4.0],
    },
    "elements on joints": {
        "hinge.spring_constant": [0.0, 2.0, 10.0],
        "table.forces": [[-5.0, 1.0, 3.0], [0.0, 0.0, 0.0], [-1.0, 2.0, 1.0]],
        "body2.mass": [0.5, 1.0, 4.0],
    },
    "motors": {
        "body2.com": [[0.1, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.3]],
        "body3.mass": [0.5, 1.0, 4.0],
        "motor": [-1.0, 0.0, 2.0],
    },
}


@pytest.mark.parametrize("name", by_tier(fast=["motors"], full=[*SWEPT]))
def test_a_sweep_gives_the_results_of_single_runs(name: str) -> None:
    plant = MECHANISMS[name]()
    (context,) = random_contexts(plant, 1, seed=9)
    table = fx.sweep(plant, SWEPT[name], 0.2, context=context, **STEPS)
    assert not table.failures
    for k in range(3):
        single = context.clone()
        for path, values in SWEPT[name].items():
            single.set(path, values[k])
        expected = fx.simulate(plant, 0.2, context=single, **STEPS).context.continuous_state
        np.testing.assert_allclose(table.final_states[k], expected, rtol=1e-10, atol=1e-10)
    assert np.ptp(table.final_states, axis=0).max() > 1e-3


# Contexts, files and drawings --------------------------------------------------------------------


@for_each("name", TRIED_MECHANISMS)
def test_a_saved_context_is_loaded_with_every_bit(name: str, tmp_path: Path) -> None:
    plant = MECHANISMS[name]()
    (context,) = random_contexts(plant, 1)
    context.save(tmp_path / "context.json")
    loaded = plant.load_context(tmp_path / "context.json")
    assert loaded == context
    for port in plant.output_ports:
        np.testing.assert_array_equal(port(loaded), port(context))


@for_each("name", TRIED_MECHANISMS)
def test_a_pickled_plant_computes_the_same(name: str) -> None:
    plant = MECHANISMS[name]()
    (context,) = random_contexts(plant, 1)
    twin = pickle.loads(pickle.dumps(plant))
    restored = twin.context_from_dict(context.to_dict())
    for port, other in zip(plant.output_ports, twin.output_ports, strict=True):
        np.testing.assert_array_equal(other(restored), port(context))
    for joint, other in zip(plant.joints, twin.joints, strict=True):
        np.testing.assert_array_equal(other.positions.get(restored), joint.positions.get(context))
        assert other.parent_plant is twin
    for element, other in zip(plant.force_elements, twin.force_elements, strict=True):
        assert other.stored_energy.eval(restored) == element.stored_energy.eval(context)
        assert other.parent_plant is twin


@for_each("name", TRIED_MECHANISMS)
def test_a_plant_can_be_drawn(name: str) -> None:
    plant = MECHANISMS[name]()
    for drawing in (plant.to_svg(), plant.to_dot(), plant.to_mermaid()):
        for block in ("tree", "totals", *(element.name for element in plant.force_elements)):
            assert block in drawing
