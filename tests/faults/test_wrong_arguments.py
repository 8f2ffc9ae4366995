"""What is easily passed in place of something else is refused, with what to pass instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ContextError, DeclarationError, ValueRefusedError
from tests.support.mechanics.mechanisms import arm


def loop() -> fx.DiagramBuilder:
    """A diagram that is not built yet."""
    builder = fx.DiagramBuilder("loop")
    builder.add(fx.FirstOrderLag("lag", 1.0))
    return builder


WITH_A_SYSTEM: dict[str, Callable[[Any], object]] = {
    "simulate": lambda system: fx.simulate(system, 1.0),
    "Simulator": fx.Simulator,
    "sweep": lambda system: fx.sweep(system, {"x": [1.0]}, 1.0),
    "simulate_many": lambda system: fx.simulate_many(system, [], 1.0),
    "linearize": fx.linearize,
    "equilibrium": fx.equilibrium,
    "compiled_equations": fx.compiled_equations,
    "sensitivity": lambda system: fx.parameter_sensitivity(system, ["x"], 1.0),
    "equation": lambda system: fx.equation(system, "y"),
    "step_response": lambda system: fx.step_response(system, "u", "y", 1.0),
    "evaluate_batch": lambda system: fx.evaluate_batch(system, ["y"], []),
}
every_function = pytest.mark.parametrize("function", WITH_A_SYSTEM)


@every_function
@pytest.mark.parametrize("make", [loop, lambda: arm()[0]], ids=["DiagramBuilder", "PlantBuilder"])
def test_a_builder_is_to_be_built_first(function: str, make: Callable[[], Any]) -> None:
    with pytest.raises(DeclarationError) as caught:
        WITH_A_SYSTEM[function](make())
    assert "expected a block or a diagram; found <" in str(caught.value)
    assert str(caught.value).endswith("Call build() first, and pass its result.")


@every_function
def test_a_class_is_to_be_called_first(function: str) -> None:
    with pytest.raises(DeclarationError, match="Call the class to make a block"):
        WITH_A_SYSTEM[function](fx.Integrator)


@every_function
def test_a_context_does_not_stand_for_its_system(function: str) -> None:
    with pytest.raises(DeclarationError, match=r"found <LeafContext of 'lag'"):
        WITH_A_SYSTEM[function](fx.FirstOrderLag("lag", 1.0).create_default_context())


@pytest.mark.parametrize("wrong", [{}, "plant", fx.Integrator("other")], ids=str)
def test_a_context_comes_from_the_system(wrong: Any) -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    calls: list[Callable[[], object]] = [
        lambda: fx.simulate(lag, 1.0, context=wrong),
        lambda: fx.Simulator(lag, wrong),
        lambda: fx.sweep(lag, {"u": [1.0]}, 1.0, context=wrong),
        lambda: fx.simulate_many(lag, [wrong], 1.0),
        lambda: fx.linearize(lag, wrong),
        lambda: fx.step_response(lag, "u", "y", 1.0, context=wrong),
        lambda: fx.evaluate_batch(lag, ["y"], [wrong]),
    ]
    for call in calls:
        with pytest.raises(ContextError, match=r"as made by create_default_context\(\)"):
            call()


@pytest.mark.parametrize("wrong", [None, "1.0", [1.0, 2.0]], ids=str)
def test_a_time_is_a_number(wrong: Any) -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    context = lag.create_default_context()
    context.set("u", 1.0)
    simulator = fx.Simulator(lag, context)
    with pytest.raises(ValueRefusedError, match="expected a real number"):
        simulator.advance_to(wrong)
    assert simulator.context.time == 0.0
    with pytest.raises(ValueRefusedError, match="expected a real number"):
        fx.simulate(lag, wrong, context=context)


@pytest.mark.parametrize("wrong", [None, [1.0, 2.0], "time_constant"], ids=str)
def test_a_sweep_wants_paths_and_values(wrong: Any) -> None:
    with pytest.raises(ValueRefusedError, match="expected a mapping from paths to arrays"):
        fx.sweep(fx.FirstOrderLag("lag", 1.0), wrong, 1.0)


def test_many_contexts_are_not_one() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    context = lag.create_default_context()
    several: list[Any] = [context, 1.0]
    for wrong in several:
        with pytest.raises(ValueRefusedError, match="expected several root contexts"):
            fx.simulate_many(lag, wrong, 1.0)


def test_one_name_stands_for_a_list_of_one() -> None:
    lag = fx.FirstOrderLag("lag", time_constant=2.0, initial=1.0)
    context = lag.create_default_context()
    context.set("u", 0.0)
    alone = fx.parameter_sensitivity(lag, "time_constant", 3.0, context=context)
    assert (
        alone["time_constant"]
        == fx.parameter_sensitivity(lag, ["time_constant"], 3.0, context=context)["time_constant"]
    )
    model = fx.linearize(lag, context, inputs="u", outputs=lag.output_port("y"))
    assert (model.input_names, model.output_names) == (["u"], ["y"])


@pytest.mark.parametrize("wrong", [None, 3, b"<robot/>", ["robot.urdf"]], ids=str)
def test_a_robot_comes_from_a_file_or_a_text(wrong: Any) -> None:
    with pytest.raises(DeclarationError, match="the name of a file as str or Path, or a text"):
        fx.load_urdf(wrong)


def test_stick_figures_move_with_results_and_stand_in_contexts() -> None:
    plant = arm()[0].build()
    wrongs: list[Any] = [plant, plant.create_default_context(), None]
    for wrong in wrongs:
        with pytest.raises(DeclarationError, match=r"Pass what simulate\(plant, t_final\) returns"):
            fx.animate(wrong)
    with pytest.raises(DeclarationError, match=r"Call build\(\) first"):
        fx.plot_mechanism(arm()[0], plant.create_default_context())  # type: ignore[arg-type]
