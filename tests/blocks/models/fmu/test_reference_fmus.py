"""The Reference FMUs of the Modelica Association as blocks, against what is published of them."""

from __future__ import annotations

import csv
import math
import pickle
import zipfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.errors import DeclarationError, EvaluationError
from tests.support.processes.foreign_fmus import reference

VERSIONS = ["2.0", "3.0"]
every_version = pytest.mark.parametrize("version", VERSIONS)
TIGHT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}


def published(name: str) -> dict[str, Any]:
    """Return the columns of the published results, in which vectors are rows."""
    path = reference(name).parents[1] / "results" / f"{name}_out.csv"
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    values = [[[float(part) for part in entry.split()] for entry in row] for row in rows]
    columns = {name: np.array([row[k] for row in values]) for k, name in enumerate(names)}
    return {name: each[:, 0] if each.shape[1] == 1 else each for name, each in columns.items()}


@every_version
@pytest.mark.parametrize(
    ("name", "period", "signals"),
    [
        ("Dahlquist", 0.1, ["x"]),
        ("VanDerPol", 0.01, ["x0", "x1"]),
        ("BouncingBall", 0.01, ["h", "v"]),
        ("Stair", 0.2, ["counter"]),
        ("StateSpace", 1.0, ["y"]),
        ("Resource", 1.0, ["y"]),
    ],
)
def test_co_simulation_gives_the_published_results(
    version: str, name: str, period: float, signals: list[str]
) -> None:
    """They are made with fixed steps, so that the numbers are equal, and not only close."""
    if (version, name) == ("2.0", "StateSpace"):
        return  # there is none
    expected = published(name)
    block = fx.FMUBlock("fmu", reference(name, version), kind="cs", period=period)
    times = np.arange(len(expected["time"])) * period
    result = fx.simulate(block, times[-1] + 0.5 * period)
    end = np.searchsorted(times, result.time[-1], "right")
    assert end >= len(times) - (name == "Stair")
    for signal in signals:
        found = result.sample(signal, times[:end])
        wanted = expected[signal][:end].reshape(found.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9, err_msg=f"{name}.{signal}")


@every_version
def test_model_exchange_follows_closed_forms_and_our_own_equations(version: str) -> None:
    lag = fx.FMUBlock("fmu", reference("Dahlquist", version), kind="me")
    result = fx.simulate(lag, 2.0, **TIGHT)
    assert result["x"][-1] == pytest.approx(math.exp(-2.0), rel=1e-8)
    assert result.context.get("states[x]") == result["x"][-1]

    class VanDerPol(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("own")
            self.x = self.declare_continuous_state(z=2, default=[2.0, 0.0])

        def calc_time_derivatives(self, context: Any) -> Any:
            x0, x1 = self.x(context)
            return [x1, (1.0 - x0 * x0) * x1 - x0]

    own = fx.simulate(VanDerPol(), 5.0, **TIGHT)
    fmu = fx.FMUBlock("fmu", reference("VanDerPol", version), kind="me")
    found = fx.simulate(fmu, 5.0, **TIGHT)
    np.testing.assert_allclose(found["x0"][-1], own["x[0]"][-1], rtol=1e-7)
    start = fmu.create_default_context()
    start.set("mu", 0.0)  # a harmonic oscillator
    start.set("states", [0.0, 1.0])  # which starts where the context says
    free = fx.simulate(fmu, 1.0, context=start, **TIGHT)
    assert free["x0"][-1] == pytest.approx(math.sin(1.0), rel=1e-8)


@every_version
def test_every_bounce_of_the_ball_is_found_where_it_is(version: str) -> None:
    """Heights between bounces are parabolas: times of impacts are a geometric series."""
    block = fx.FMUBlock("ball", reference("BouncingBall", version), kind="me")
    result = fx.simulate(block, 3.0, **TIGHT)
    fall = math.sqrt(2.0 / 9.81)
    impacts = [fall]
    speed = 9.81 * fall
    while 0.7 * speed > 0.1:
        speed *= 0.7
        impacts.append(impacts[-1] + 2.0 * speed / 9.81)
    jumps = result.time[:-1][np.diff(result.time) == 0.0]
    np.testing.assert_allclose(jumps[: len(impacts)], impacts, atol=1e-7)
    assert result["h"].min() > -1e-9
    top = impacts[0] + 0.7 * 9.81 * fall / 9.81
    assert result.sample("h", [top])[0] == pytest.approx(0.49, abs=1e-7)
    context = block.create_default_context()
    context.set("e", 0.5)
    assert fx.simulate(block, top, context=context, **TIGHT)["h"].max() == 1.0
    with pytest.raises(ValueError, match="e"):
        context.set("e", 2.0)  # beyond the bounds of the description


@every_version
def test_time_events_are_met_exactly(version: str) -> None:
    block = fx.FMUBlock("stair", reference("Stair", version), kind="me")
    result = fx.simulate(block, 8.5)
    steps = result.sample("counter", [0.999, 1.0, 1.001, 7.999, 8.0])
    np.testing.assert_array_equal(steps, [1.0, 2.0, 2.0, 8.0, 9.0])
    assert fx.simulate(block, 20.0).outcome == "terminated"


def test_roberts_reaction_keeps_its_mass() -> None:
    block = fx.FMUBlock("fmu", reference("Roberts"), kind="me")
    result = fx.simulate(block, 40.0, method="Radau", rtol=1e-6, atol=1e-10)
    total = sum(result[name] for name in ("y1", "y2", "y3"))
    np.testing.assert_allclose(total, 1.0, atol=1e-9)
    assert result["y1"][-1] == pytest.approx(0.7158, abs=2e-4)  # as in textbooks at 40 s


@every_version
def test_inputs_of_every_type_pass(version: str) -> None:
    block = fx.FMUBlock("fmu", reference("Feedthrough", version), kind="me")
    builder = fx.DiagramBuilder("d")
    builder.add_all(fx.Step("jump", at=0.35, to=0.6), fx.Ramp("ramp", slope=2.0), block)
    builder.add(fx.Step("choice", at=0.35, initial=1.0, to=2.4))
    sources = {"Float64_continuous_input": "ramp.y", "Enumeration_input": "choice.y"}
    for port in block.input_ports:
        builder.connect(sources.get(port.name, "jump.y"), port)
    result = fx.simulate(builder.build(), 0.7)
    for output in block.output_ports:
        before, after = result.sample(output, [0.3, 0.5]).tolist()
        if output.name == "Float64_continuous_output":
            assert (before, after) == pytest.approx((0.6, 1.0))
        elif "Float" in output.name:
            assert (before, after) == pytest.approx((0.0, 0.6))
        elif "Enumeration" in output.name:
            assert (before, after) == (1.0, 2.0)
        else:
            assert (before, after) == (0.0, 1.0), output.name  # rounded; a boolean is true
    assert any("String" in name for name in block.facts.left_out)


def test_arrays_are_vectors_and_matrices() -> None:
    block = fx.FMUBlock("fmu", reference("StateSpace"), kind="me")
    assert [(port.name, port.size) for port in block.output_ports] == [("y", 3)]
    context = block.create_default_context()
    A = np.array([[-1.0, 2.0, 0.0], [0.0, -2.0, 0.0], [0.5, 0.0, -3.0]])
    context.set("A", A)
    context.set("states", [1.0, -1.0, 0.5])
    result = fx.simulate(block, 1.0, context=context, **TIGHT)
    own = fx.StateSpace("own", A, np.eye(3), np.eye(3), np.eye(3), [1.0, -1.0, 0.5])
    start = own.create_default_context()
    start.set("u", [1.0, 2.0, 3.0])
    expected = fx.simulate(own, 1.0, context=start, **TIGHT)
    np.testing.assert_allclose(result["y"][-1], expected["y"][-1], rtol=1e-7)
    model = fx.linearize(block, context, inputs=["u"], outputs=["y"])
    np.testing.assert_allclose(model.A, A, atol=1e-7)
    assert model.how.startswith("central differences, because cannot trace 'fmu'")


@every_version
@pytest.mark.parametrize("kind", ["me", "cs"])
def test_copies_of_contexts_do_not_see_each_other(version: str, kind: Any) -> None:
    """An FMU has hidden state: here whether the ball rests, and the whole motion with "cs"."""
    path = reference("BouncingBall", version)
    block = fx.FMUBlock("ball", path, kind=kind, period=0.01 if kind == "cs" else None)
    whole = fx.simulate(block, 2.0)
    half = fx.simulate(block, 1.0)
    kept = half.context.clone()
    fx.simulate(block, 3.0, context=half.context)  # rests at the end
    other = pickle.loads(pickle.dumps(block))
    for system in (block, other):
        context = kept if system is block else _moved(kept, other)
        again = fx.simulate(system, 2.0, context=context)
        np.testing.assert_allclose(again["h"][-1], whole["h"][-1], rtol=1e-6)
    assert half.sample("h", [0.7]) == pytest.approx(whole.sample("h", [0.7]), rel=1e-6)


def _moved(context: fx.Context, system: fx.FMUBlock) -> fx.Context:
    """Save a context, and load it for a copy of the block."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        context.save(Path(folder) / "ball.json")
        return system.load_context(Path(folder) / "ball.json")


def last_x0(result: fx.results.SimulationResult) -> float:
    return float(result["x0"][-1])


@pytest.mark.full
def test_workers_run_fmus() -> None:
    block = fx.FMUBlock("fmu", reference("VanDerPol"), kind="me")
    plan = fx.plans.grid({"mu": [0.0, 0.5, 1.0]})
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        found = fx.sweep(block, plan, 1.0, metrics={"last": last_x0}, executor=executor)
    assert found.metrics["last"][0] == pytest.approx(2.0 * math.cos(1.0), rel=1e-4)


def test_clocks_are_refused_by_name() -> None:
    with pytest.raises(DeclarationError, match=r"without clocks.*inClock1"):
        fx.FMUBlock("fmu", reference("Clocks"))


def test_isolated_fmus_give_the_same_numbers() -> None:
    path = reference("BouncingBall")
    here = fx.simulate(fx.FMUBlock("ball", path), 1.0)
    there = fx.simulate(fx.FMUBlock("ball", path, isolated=True), 1.0)
    np.testing.assert_array_equal(here["h"], there["h"])


def without(path: Path, folder: Path, *capabilities: str) -> Path:
    """Return a copy of an FMU whose description denies some capabilities."""
    copy = folder / f"{'-'.join(capabilities)}.fmu"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name == "modelDescription.xml":
                for each in capabilities:
                    text = text.replace(f'{each}="true"'.encode(), f'{each}="false"'.encode())
            new.writestr(name, text)
    return copy


@pytest.mark.parametrize("kind", ["me", "cs"])
@pytest.mark.parametrize(
    "capabilities",
    [("canSerializeFMUstate",), ("canSerializeFMUstate", "canGetAndSetFMUstate")],
    ids=["held", "none"],
)
def test_states_are_restored_as_far_as_the_fmu_can(
    kind: Any, capabilities: tuple[str, ...], tmp_path: Path
) -> None:
    path = reference("BouncingBall", "2.0")
    period = 0.01 if kind == "cs" else None
    whole = fx.simulate(fx.FMUBlock("ball", path, kind=kind, period=period), 2.0)
    less = without(path, tmp_path, *capabilities)
    block = fx.FMUBlock("ball", less, kind=kind, period=period)
    times = np.linspace(0.0, 2.0, 9)
    found = fx.simulate(block, 2.0)
    np.testing.assert_array_equal(found.sample("h", times), whole.sample("h", times))
    half = fx.simulate(block, 1.0)
    kept = half.context.clone()
    on = fx.simulate(block, 2.0, context=half.context)
    np.testing.assert_allclose(on["h"][-1], whole["h"][-1], rtol=1e-6)
    if (kind, len(capabilities)) == ("cs", 2):
        with pytest.raises(EvaluationError, match="Continue from the latest context only"):
            fx.simulate(block, 2.0, context=kept)
    else:
        again = fx.simulate(block, 2.0, context=kept)
        np.testing.assert_allclose(again["h"][-1], whole["h"][-1], rtol=1e-6)
