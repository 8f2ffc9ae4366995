"""Diagrams as JavaScript: what the text says about itself, takes, gives and refuses.

That the numbers are those of the equations is in `tests/contracts/test_every_model_in_javascript`.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from docs.samples import samples_of
from flexure.diagrams.checks.errors import FlexureError, TraceError
from flexure.solvers.export import model_jacobian
from flexure.solvers.export.javascript.model_text import literal
from flexure.solvers.tracing import compile_limits
from flexure.solvers.tracing.trace import trace_derivatives
from tests.support.mechanics.mechanisms import MECHANISMS, closed_by, random_contexts
from tests.support.native.javascript import run_models
from tests.support.pages.browser import run_javascript


class Tank(fx.LeafSystem):
    """Two levels that drain into each other, with a valve that somebody opens now and then."""

    def __init__(self, name: str = "tank", doc: str = "") -> None:
        super().__init__(name)
        self.area = self.declare_numeric_parameter(
            "area", [[1.0, 2.0]], unit="m^2", lower=0.0, exclusive=True, doc=doc
        )
        self.limit = self.declare_numeric_parameter("limit", np.inf, allow_infinite=True)
        self.x = self.declare_continuous_state(
            z=2, default=[3.0, 1.0], element_names=["upper", "lower"]
        )
        self.valve = self.declare_discrete_state("valve", [0.5, 0.25])
        self.inflow = self.declare_vector_input("inflow", 1, unit="m^3/s")
        self.levels = self.declare_vector_output(
            "levels", 2, self.x, unit="m", element_names=["upper", "lower"]
        )
        self.declare_discrete_update(self.turn, fx.diagrams.Periodic(0.5, 0.25))
        self.declare_unrestricted_update(self.spill, fx.diagrams.Witness(self.calc_rim, "rising"))

    def calc_time_derivatives(self, context: Any) -> Any:
        upper, lower = self.x(context)
        flow = self.valve(context)[0] * (upper - lower)
        A = self.area(context)[0]
        return [(self.inflow(context)[0] - flow) / A[0], flow / A[1]]

    def calc_rim(self, context: Any) -> Any:
        return self.x(context)[0] - self.limit(context)

    def turn(self, context: Any) -> Any:
        return {self.valve: self.valve(context)[::-1]}

    def spill(self, context: Any) -> Any:
        return {self.x: self.x(context) * np.array([0.5, 1.0])}


def ask(model: fx.results.JavaScriptModel, text: str) -> Any:
    """Return what JavaScript gives, in which ``model`` is the model."""
    return run_javascript(
        f"{model.text}\nconst model = flexureModel();\nconst plain = (_, value) => "
        "ArrayBuffer.isView(value) ? Array.from(value) : value;\n"
        f"console.log(JSON.stringify({text}, plain));"
    )


# What it says about itself -----------------------------------------------------------------------


def test_a_model_describes_its_values_and_events() -> None:
    tank = Tank(doc="of the ground")
    context = tank.create_default_context()
    context.time = 2.0
    context.set("inflow", 0.5)
    info = fx.to_javascript(tank, context).info
    area, limit = info["parameters"]
    assert {key: area[key] for key in ("path", "unit", "doc", "lower", "upper", "exclusive")} == {
        "path": "area",
        "unit": "m^2",
        "doc": "of the ground",
        "lower": [0.0, 0.0],
        "upper": [None, None],
        "exclusive": True,
    }
    assert (area["value"], area["shape"], area["labels"]) == ([1.0, 2.0], [1, 2], ["0, 0", "0, 1"])
    assert (limit["value"], limit["shape"], limit["labels"]) == ([math.inf], [], [])
    names = [[row["path"] for row in info[table]] for table in ("states", "discrete", "inputs")]
    assert names == [["x[upper]", "x[lower]"], ["valve[0]", "valve[1]"], ["inflow"]]
    assert [row["initial"] for row in info["states"]] == [3.0, 1.0]
    assert (info["inputs"][0]["value"], info["name"], info["time"]) == ([0.5], "tank", 2.0)
    signals = {row["path"]: row for row in info["signals"]}
    assert set(signals) == {"levels", "x", "valve"}
    assert signals["levels"]["labels"] == ["upper", "lower"]
    assert [tuple(each.values()) for each in info["events"]] == [
        ("tank.turn", "discrete", "clock"),
        ("tank.spill", "unrestricted", "witness"),
    ]
    assert "2 states, 2 parameters, 3 signals" in repr(fx.to_javascript(tank))


def test_the_description_is_the_same_on_both_sides() -> None:
    model = fx.to_javascript(Tank(doc="</script> & \u2028 'quoted'"))
    finite = json.loads(json.dumps(model.info).replace("Infinity", "null"))
    assert ask(model, "model.info") == finite
    assert "</script" not in model.text


def test_paths_lead_to_the_same_values_in_a_context() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.FirstOrderLag("lag", 0.5), fx.Step("target"))
    builder.connect("target.y", "lag.u")
    builder.export_output("lag.y", "out")
    loop = builder.build()
    context = loop.create_default_context()
    info = fx.to_javascript(loop).info
    for row in info["parameters"]:
        assert np.ravel(context.get(row["path"])).tolist() == row["value"]
    assert [row["path"] for row in info["signals"]] == ["out", "lag.y", "lag.x", "target.y"]


def test_names_of_the_language_are_names_like_any_other() -> None:
    class Names(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("constructor")
            self.k = self.declare_numeric_parameter("__proto__", 2.0)
            self.declare_vector_output("toString", 1, self.calc)
            self.declare_vector_input("valueOf", 1, default=1.0)

        def calc(self, context: Any) -> Any:
            return [self.k(context) + self.input_port("valueOf")(context)[0]]

    builder = fx.DiagramBuilder("names")
    builder.add(Names())
    builder.export_output("constructor.toString", "__proto__")
    model, outer = fx.to_javascript(Names()), fx.to_javascript(builder.build())
    values = "JSON.parse('{\"__proto__\": 5}')"
    asked = f"{{ parameters: {values}, signals: ['toString'], tFinal: 1, samples: 2 }}"
    assert ask(model, f"model.simulate({asked}).signals") == {"toString": [6.0, 6.0]}
    asked = "signals: ['__proto__']"
    for call in (f"evaluate({{ {asked} }})", f"simulate({{ {asked}, tFinal: 1, times: [1] }})"):
        assert ask(outer, f"model.{call}.signals") == {"__proto__": [3.0]}


# What it takes and gives -------------------------------------------------------------------------

_GIVEN = """{
  time: 4,
  parameters: { area: [0.5, 4], limit: 2.5 },
  inputs: { inflow: [0.25] },
  initial: { "x[lower]": 2, valve: new Float64Array([0.75, 0.5]) },
  signals: ["x", "valve"],
}"""


def test_values_that_are_given_by_path_take_the_place_of_those_of_the_context() -> None:
    tank = Tank()
    context = tank.create_default_context()
    context.set("area", [[0.5, 4.0]])
    context.set("inflow", 0.25)
    context.set("valve", [0.75, 0.5])
    context.set("x[lower]", 2.0)
    model = fx.to_javascript(tank)
    found, moved = ask(
        model,
        f"[{_GIVEN}, {{ ...{_GIVEN}, state: [2, 1], signals: [] }}].map(model.evaluate)",
    )
    np.testing.assert_array_equal(found["derivatives"], tank.eval_time_derivatives(context))
    assert found["signals"] == {"x": [3.0, 2.0], "valve": [0.75, 0.5]}
    matrix = np.zeros((2, 2))
    matrix[found["jacobian"]["rows"], found["jacobian"]["columns"]] = found["jacobian"]["values"]
    np.testing.assert_array_equal(matrix, [[-1.5, 1.5], [0.1875, -0.1875]])  # 0.75 / area
    context.continuous_state = [2.0, 1.0]
    np.testing.assert_array_equal(moved["derivatives"], tank.eval_time_derivatives(context))
    assert moved["signals"] == {}


_ODD = {
    "{}": "Cannot evaluate 'tank': its input 'inflow' has no value",
    "{ inputs: { inflow: 1 }, parameters: { are: 1 } }": "Cannot set 'are': known are",
    "{ inputs: { inflow: 1 }, parameters: { area: 1 } }": "Cannot set 'area': it has 2 numbers",
    "{ inputs: { inflow: [1, 2] } }": "Cannot set 'inflow': it has 1 numbers, not 2",
    "{ inputs: { inflow: ['1'] } }": "Cannot set 'inflow': it has 1 numbers",
    "{ inputs: { inflow: 1 }, signals: ['y'] }": "Cannot read 'y': known are levels, x, valve",
    "{ inputs: { inflow: 1 }, signals: 'x' }": "Cannot read signals of 'tank': expected a list",
    "{ inputs: 1 }": "Cannot set inputs of 'tank': expected {path: numbers}",
    "{ inputs: { inflow: 1 }, state: [1] }": "Cannot evaluate 'tank': its state has 2 numbers",
    "{ inputs: { inflow: 1 }, time: '1' }": "Cannot evaluate 'tank': expected a number as time",
    "{ inputs: { inflow: 1 }, input: {} }": "Cannot evaluate 'tank': expected some of time, state",
    "{ inputs: { inflow: 1 }, initial: { toString: 1 } }": "Cannot set 'toString'",
}


def test_what_cannot_be_set_or_read_is_refused_by_name() -> None:
    said = ask(
        fx.to_javascript(Tank()),
        "["
        + ", ".join(
            f"(() => {{ try {{ return model.evaluate({each}); }} "
            "catch (error) { return error.message; } })()"
            for each in _ODD
        )
        + "]",
    )
    for message, expected in zip(said, _ODD.values(), strict=True):
        assert message.startswith(expected)


def test_signals_that_are_asked_for_may_be_handles_and_components() -> None:
    tank = Tank()
    model = fx.to_javascript(tank, signals=[tank.levels, "x[lower]"])
    assert [row["size"] for row in model.info["signals"]] == [2, 1]
    found = ask(model, "model.evaluate({ inputs: { inflow: 1 }, signals: ['x[lower]', 'levels'] })")
    assert found["signals"] == {"x[lower]": [1.0], "levels": [3.0, 1.0]}
    assert len(fx.to_javascript(tank, signals="x").info["signals"]) == 1
    assert fx.to_javascript(tank, signals=[]).info["signals"] == []


def test_a_model_needs_nothing_but_the_language() -> None:
    text = literal(f"{fx.to_javascript(Tank()).text}; flexureModel().info.name")
    assert run_javascript(
        f"console.log(JSON.stringify(require('vm').runInNewContext({text}, {{}})))"
    ) == "tank"  # fmt: skip


def test_a_saved_model_is_a_module_of_node(tmp_path: Path) -> None:
    file = tmp_path / "tank.js"
    fx.to_javascript(Tank()).save(file)
    assert run_javascript(
        f"console.log(JSON.stringify(require({literal(str(file))})().info.states.length))"
    ) == 2  # fmt: skip


def test_the_text_is_the_same_whenever_it_is_written() -> None:
    assert fx.to_javascript(Tank()).text == fx.to_javascript(Tank()).text


# Times and ends ----------------------------------------------------------------------------------


class Watch(fx.LeafSystem):
    """Ends a run at one of its ticks, when time is over."""

    def __init__(self) -> None:
        super().__init__("watch")
        self.over = self.declare_numeric_parameter("over", 2.0)
        self.seen: list[float] = []
        self.declare_publish(self.look, fx.diagrams.Periodic(0.5))
        self.declare_publish(self.note, fx.diagrams.Periodic(0.25))

    def look(self, context: Any) -> Any:
        return fx.diagrams.Terminate("time is over") if context.time >= self.over(context) else None

    def note(self, context: Any) -> None:
        self.seen.append(context.time)


def test_break_times_move_with_the_parameters() -> None:
    step = fx.Step("step", at=[1.0, 3.0], to=2.0)
    found = ask(
        fx.to_javascript(step),
        """[0.5, 1, 3].map((time) => {
          const { x, env } = model.startingValues({ parameters: { at: [1, 4] } });
          const out = new Float64Array(1);
          model.equations.breaks.values(time, x, env, out);
          return out[0];
        })""",
    )
    assert found == [1.0, 4.0, 4.0]


def test_a_publish_that_ends_runs_keeps_that_and_nothing_else() -> None:
    model = fx.to_javascript(Watch())
    (event,) = model.info["events"]
    assert event == {"path": "watch.look", "kind": "publish", "trigger": "clock"}
    found = ask(
        model,
        """[1, 2].map((time) => {
          const { x, env } = model.startingValues();
          const [event] = model.equations.events, out = new Float64Array(1);
          event.values(time, x, env, out);
          return [out[0], event.reason, model.equations.clocks[event.number].period];
        })""",
    )
    assert found == [[0.0, "time is over", 0.5], [1.0, "time is over", 0.5]]


def test_a_stop_at_a_witness_function_is_an_event() -> None:
    stop = fx.StopWhen("stop", "it is reached")
    found = ask(fx.to_javascript(stop), "model.equations.events[0]")
    assert (found["trigger"], found["number"], found["reason"]) == ("witness", 0, "it is reached")


# Long equations ----------------------------------------------------------------------------------


def test_slopes_along_directions_give_the_entries_of_the_jacobian(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant = MECHANISMS["universal joint"]()
    contexts = random_contexts(plant, 2)
    short = fx.to_javascript(plant, signals=[])
    monkeypatch.setattr(model_jacobian, "_LONG", 0)
    long = fx.to_javascript(plant, signals=[])
    assert "alongDirections({" in long.text
    found = run_models({"short": (short, contexts), "long": (long, contexts)})
    for ours, theirs in zip(found["long"], found["short"], strict=True):
        np.testing.assert_allclose(ours["jacobian"], theirs["jacobian"], rtol=1e-12, atol=1e-12)


def test_a_jacobian_along_directions_has_the_same_numbers_in_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant = MECHANISMS["universal joint"]()
    (context,) = random_contexts(plant, 1)
    store = context.store
    expected = fx.compiled_equations(plant, context).jac(context.time, store.x)
    for bound in (10**6, 0):
        monkeypatch.setattr(model_jacobian, "_LONG", bound)
        jacobian = model_jacobian.ModelJacobian.of(trace_derivatives(plant.layout))
        found = jacobian.matrix(store, context.time, store.x)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


# Refusals ----------------------------------------------------------------------------------------


def foreign(u: Any) -> Any:
    return math.sin(u[0])


class Counter(fx.LeafSystem):
    """Counts its updates beside its state."""

    def __init__(self) -> None:
        super().__init__("counter")
        self.count = self.declare_discrete_state("count", 1)
        self.calls: list[int] = []
        self.declare_discrete_update(self.tick, fx.diagrams.Periodic(0.1))

    def tick(self, context: Any) -> Any:
        self.calls.append(1)
        return {self.count: self.count(context) + 1.0}


class Bell(fx.LeafSystem):
    """Breaks at whole numbers, which a function of math finds."""

    def __init__(self) -> None:
        super().__init__("bell")

    def calc_next_break_time(self, context: Any) -> float:
        return float(math.floor(context.time) + 1)


class Guard(fx.LeafSystem):
    """Ends a run at a tick, and counts its ticks."""

    def __init__(self) -> None:
        super().__init__("guard")
        self.ticks: list[float] = []
        self.declare_publish(self.look, fx.diagrams.Periodic(0.5))

    def look(self, context: Any) -> Any:
        self.ticks.append(context.time)
        return fx.diagrams.Terminate("enough") if context.time > 2.0 else None


class Hidden(fx.LeafSystem):
    """Gives other numbers each time."""

    def __init__(self) -> None:
        super().__init__("hidden")
        self.calls = 0
        self.x = self.declare_continuous_state(z=1)

    def calc_time_derivatives(self, context: Any) -> Any:
        self.calls += 1
        return [float(self.calls) - self.x(context)[0]]


def looped() -> fx.Diagram:
    """An integrator of a function that cannot be traced."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.FunctionBlock("table", foreign), fx.Integrator("sum"))
    builder.connect("sum.y", "table.u")
    builder.connect("table.y", "sum.u")
    return builder.build()


@pytest.mark.parametrize(
    ("make", "texts"),
    [
        (looped, ["math.sin(u[0])", "Write np.sin(x)", "'table.y'"]),
        (Counter, ["'counter.tick' as JavaScript", "stores values outside of the states"]),
        (Bell, ["break times of 'bell'", "math.floor", "Compute it with NumPy"]),
        (Guard, ["'guard.look' as JavaScript", "stores values outside", "fx.StopWhen"]),
        (Hidden, ["'hidden' as JavaScript", "follow from the context alone"]),
    ],
)
def test_what_cannot_be_traced_is_refused_by_name(make: Any, texts: list[str]) -> None:
    with pytest.raises(TraceError) as refused:
        fx.to_javascript(make())
    said = "\n".join([str(refused.value), *getattr(refused.value, "__notes__", ())])
    for text in texts:
        assert text in said


@pytest.mark.parametrize("most", [300, 2000, 8000, 15000])
def test_refusals_within_the_library_name_the_block_and_none_of_its_lines(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traces may end anywhere, also in projections, when they become too long."""
    monkeypatch.setattr(compile_limits, "TRACED", most)
    with pytest.raises(TraceError) as refused:
        fx.to_javascript(closed_by("revolute"))
    said = "\n".join([str(refused.value), *getattr(refused.value, "__notes__", ())])
    assert ".py" not in said
    assert re.search("while (computing|tracing) .*'(tree|plant)", said)


def test_an_output_that_cannot_be_traced_is_left_out_unless_it_is_asked_for() -> None:
    block = fx.FunctionBlock("table", foreign)
    model = fx.to_javascript(block)
    assert model.info["signals"] == []
    assert "math.sin" in model.info["leftOut"]["y"]
    with pytest.raises(TraceError, match="math"):
        fx.to_javascript(block, signals=["y"])


def test_odd_arguments_are_refused() -> None:
    with pytest.raises(FlexureError, match="JavaScript"):
        fx.to_javascript("loop")  # type: ignore[arg-type]
    with pytest.raises(FlexureError, match="context"):
        fx.to_javascript(Tank(), Tank().create_default_context())
    with pytest.raises(FlexureError, match="to_javascript"):
        fx.results.JavaScriptModel(Tank(), None)  # type: ignore[call-arg, arg-type]
    for method in ("Radau", "rk4", None):
        with pytest.raises(FlexureError, match=r"JavaScript.*RK23, RK45, DOP853"):
            fx.to_javascript(Tank(), method=method)  # type: ignore[arg-type]
    with pytest.raises(FlexureError, match="integration method"):
        fx.to_javascript(Tank(), method="Rungekutta")


# The documentation -------------------------------------------------------------------------------


def test_the_samples_of_the_documentation_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says what they compute: v' = (force - k q (1 + (q/s)²) - c v)/m."""
    page = Path(__file__).parents[4] / "docs" / "javascript.md"
    scope: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    exec(next(samples_of(page)).code, scope)  # writes strip.js
    file, strip = tmp_path / "strip.js", scope["LeafSpring"]()
    samples = re.findall(r"```javascript\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    text = "\n".join(samples).replace("./strip.js", str(file))
    printed = re.sub(r"console\.log\((.*)\);", r"printed.push(\1);", text)
    prints = "console.log(JSON.stringify(printed.map((e) => (ArrayBuffer.isView(e) ? [...e] : e))))"
    found = run_javascript(f"const printed = [];\n{printed}\n{prints}")
    rate, position, entries, outcome, time, positions = found
    assert rate == pytest.approx((2.0 - 300.0 * 0.01 * 2.0) / 0.4, rel=1e-14)
    assert (position, entries) == (0.01, 3)
    context = strip.create_default_context()
    context.set("stiffness", 300.0)
    context.set("mass", 0.4)
    expected = fx.simulate(strip, 1.0, context=context, rtol=1e-9)
    assert (outcome, time) == ("completed", [0.0, 0.5, 1.0])
    np.testing.assert_allclose(positions, expected.sample("position", time), rtol=1e-9)
