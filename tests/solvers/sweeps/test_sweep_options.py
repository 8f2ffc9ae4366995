"""The options of `sweep` and `simulate_many`: they have one home, and mean the same in both."""

from __future__ import annotations

import inspect
from typing import Any, Unpack, get_type_hints

import numpy as np
import pytest

import flexure as fx
from flexure.errors import ValueRefusedError
from flexure.solvers.simulation.run_control.options import SimulationOptions
from flexure.solvers.sweeps.running.sweep_record import SweepOptions
from tests.support.systems.sweeps import Pendulum
from tests.support.tiers import for_each

STIFFNESS = [1.0, 2.0, 4.0]

both = pytest.mark.parametrize("function", ["sweep", "simulate_many"])


def run(function: str, **options: Any) -> fx.results.Sweep:
    """Run the same three pendulums by either function."""
    pendulum = Pendulum()
    if function == "sweep":
        return fx.sweep(pendulum, {"stiffness": STIFFNESS}, 2.0, **options)
    contexts = [pendulum.create_default_context() for _ in STIFFNESS]
    for context, stiffness in zip(contexts, STIFFNESS, strict=True):
        context.set("stiffness", stiffness)
    return fx.simulate_many(pendulum, contexts, 2.0, **options)


@both
@pytest.mark.parametrize("name", ["treads", "isolate", "monitor", "record"])
def test_an_option_that_does_not_exist_is_refused_by_its_name(function: str, name: str) -> None:
    message = rf"{function}\(\) got an unexpected keyword argument '{name}'"
    with pytest.raises(TypeError, match=message):
        run(function, **{name: True})


@both
def test_the_signature_leads_to_the_options(function: str) -> None:
    hints = get_type_hints(getattr(fx, function), localns={"Sweep": fx.results.Sweep})
    assert hints["options"] == Unpack[SweepOptions]


def test_every_option_is_described_once() -> None:
    docscrape = pytest.importorskip("numpydoc.docscrape")
    parameters = docscrape.NumpyDocString(inspect.getdoc(fx.sweep))["Parameters"]
    named = [name for entry in parameters for name in entry.name.split(", ")]
    own = [name for name in inspect.signature(fx.sweep).parameters if name != "options"]
    assert sorted(named) == sorted([*own, *SweepOptions.__optional_keys__])


@pytest.mark.parametrize("name", sorted(SimulationOptions.__optional_keys__))
def test_what_is_meant_for_the_simulator_is_an_option_of_it(name: str) -> None:
    option = inspect.signature(fx.Simulator).parameters[name]
    assert option.annotation == SimulationOptions.__annotations__[name].__forward_arg__
    assert inspect.signature(fx.simulate).parameters[name] == option


@pytest.mark.parametrize(
    ("options", "changes_steps"),
    [
        ({}, False),
        ({"method": "DOP853"}, True),
        ({"rtol": 1e-3, "atol": {"": 1e-2}}, True),
        ({"max_step": 0.01}, True),
        ({"method": "rk4", "step": 0.01}, True),
        ({"compiled": False}, False),
        ({"threads": 1}, False),
        ({"signals": "angle", "times": [0.5, 2.0], "metrics": ["initial"]}, False),
    ],
    ids=str,
)
def test_an_option_means_the_same_in_both(options: dict[str, Any], changes_steps: bool) -> None:
    ours, theirs = (run(function, **options) for function in ("sweep", "simulate_many"))
    assert ours.how == theirs.how
    assert ours.steps.tolist() == theirs.steps.tolist()
    assert (ours.steps.tolist() != run("sweep").steps.tolist()) == changes_steps
    np.testing.assert_array_equal(ours.final_states, theirs.final_states)
    assert ours.times.tolist() == theirs.times.tolist() == options.get("times", [])
    assert list(ours.metrics) == list(theirs.metrics) == options.get("metrics", [])


@pytest.mark.parametrize("rtol", [{}, {"rtol": None}], ids=["omitted", "None"])
def test_without_rtol_the_accuracy_of_the_first_context_is_that_of_all_runs(rtol: Any) -> None:
    pendulum = Pendulum()
    contexts = [pendulum.create_default_context() for _ in range(2)]
    contexts[0].accuracy = 1e-10
    fine = fx.simulate_many(pendulum, contexts, 2.0, **rtol)
    assert fine.steps[0] == fine.steps[1] > 2 * fx.simulate_many(pendulum, contexts[1:], 2.0).steps


class Counted(Pendulum):
    """A pendulum that does not run in lanes, as it counts seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.declare_publish(lambda context: self.asked.append(1), fx.diagrams.Periodic(1.0))


def test_long_interpreted_runs_are_announced_with_the_time_that_they_will_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("flexure.solvers.sweeps.running.runs._LONG", 0.0)
    told = r"2 runs of 'pendulum' will take about [\d.e-]+ s, as the second took .* interpreted"
    values = {"stiffness": [*STIFFNESS, STIFFNESS[0]]}
    with pytest.warns(UserWarning, match=told):
        fx.sweep(Counted(), values, 2.0, method="LSODA")
    fx.sweep(Counted(), values, 2.0, method="LSODA", compiled=False)  # as was wanted


def test_short_interpreted_runs_are_not_worth_a_warning() -> None:
    fx.sweep(Counted(), {"stiffness": STIFFNESS}, 2.0, method="LSODA")


@for_each("threads", [0, 2.7, True, "x", [], float("nan")])
def test_numbers_of_threads_that_are_no_positive_integers_are_refused(threads: Any) -> None:
    with pytest.raises(ValueRefusedError, match="number of threads: expected a positive integer"):
        fx.sweep(Pendulum(), {"stiffness": [1.0]}, 1.0, threads=threads)


def test_plans_refuse_what_is_no_context() -> None:
    with pytest.raises(ValueRefusedError, match="context= to be a context or a system"):
        fx.plans.random({"stiffness": (1.0, 2.0)}, 3, context=object())  # type: ignore[arg-type]
