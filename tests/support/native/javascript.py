"""Models in JavaScript in tests: everything that they compute, in one process of Node for many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.contexts.value_places import find_place
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.solvers.export.javascript.equation_functions import write_function
from flexure.solvers.export.javascript.kernel_functions import arithmetic
from flexure.solvers.export.javascript.model_text import literal
from flexure.solvers.native.emission.emission import Environment
from tests.support.native.javascript_runs import ask_models, results_of

FloatArray = npt.NDArray[np.float64]

_HARNESS = """
const differ = (one, other) => one.some((each, k) => !Object.is(each, other[k]));
const column = (f, rows, size, count, room) => {
  const env = new Float64Array(room), out = new Float64Array(size), found = [];
  for (let k = 0; k < count; k++) {
    rows.forEach((row, i) => (env[i] = row[k]));
    f(NaN, env, env, out);
    found.push(...out);
  }
  return Float64Array.from(found);
};
const asked = (f, size, { time, x, env }) => {
  const out = new Float64Array(size + 1).fill(-77);
  f(time, x, env, out);
  if (out[size] !== -77) throw new Error("a function writes beyond its results");
  return out.subarray(0, size);
};
const everything = (model, options) => {
  const { equations, info } = model;
  const paths = info.signals.map((each) => each.path);
  const { derivatives, signals, jacobian } = model.evaluate({ ...options, signals: paths });
  const values = model.startingValues(options);
  const found = {
    derivatives: Float64Array.from(derivatives),
    witnesses: asked(equations.witnesses.values, equations.witnesses.count, values),
    breaks: asked(equations.breaks.values, equations.breaks.count, values),
  };
  const alone = info.signals.map((each) => model.evaluate({ ...options, signals: [each.path] }));
  info.signals.forEach(({ path, size }, k) => {
    found[`signal ${path}`] = Float64Array.from(signals[path]);
    if (differ(found[`signal ${path}`], alone[k].signals[path])) {
      throw new Error(`${path} is another one when it is asked for alone`);
    }
  });
  if (jacobian !== null) {
    const n = derivatives.length;
    const matrix = new Float64Array(n * n);
    jacobian.values.forEach((value, k) => {
      matrix[jacobian.rows[k] * n + jacobian.columns[k]] = value;
    });
    found.jacobian = matrix;
  }
  equations.events.forEach((event, k) => {
    if (event.values === null) return;
    const states = [...values.x, ...values.env.subarray(0, equations.discrete)];
    const count = event.kind === "publish" ? 1 : event.targets.length;
    const out = new Float64Array(count);
    event.values(values.time, values.x, values.env, out);
    event.targets.forEach((target, i) => (states[target] = out[i]));
    found[`event ${k}`] = event.kind === "publish" ? out : Float64Array.from(states);
  });
  return found;
};
"""


def run_models(
    asked: Mapping[str, tuple[fx.results.JavaScriptModel, Sequence[fx.Context]]],
) -> dict[str, list[dict[str, FloatArray]]]:
    """Compute everything that models compute, with the values of contexts."""
    options = {
        name: (model, [options_of(model, each) for each in contexts])
        for name, (model, contexts) in asked.items()
    }
    return ask_models(options, "everything(model, options)", _HARNESS)


def run_expressions(
    asked: Mapping[str, tuple[Sequence[Any], Mapping[Any, FloatArray]]], chunk: int = 1000
) -> dict[str, FloatArray]:
    """Compute expressions of traces in many columns of values: a row for each expression.

    Parameters
    ----------
    asked : mapping
        Expressions, and the values of their inputs in all columns, by name.
    chunk : int
        Operations per function.
    """
    parts = []
    for name, (outputs, values) in asked.items():
        environment = Environment()
        rows = []
        for node in reachable(each for each in outputs if isinstance(each, scalars.Symbol)):
            if node.op == "input":
                environment.places[node.index] = ("env", environment.reserve())
                rows.append(values[node.key].tolist())
        count = len(next(iter(values.values()))) if values else 1
        function = write_function(outputs, environment, chunk)
        parts.append(
            f"{literal(name)}: column({function}, {literal(rows)}, {len(outputs)}, "
            f"{count}, {environment.size})"
        )
    found = results_of(f"{{ {', '.join(parts)} }}", arithmetic() + _HARNESS)
    return {name: found[name].reshape(-1, len(asked[name][0])).T.copy() for name in asked}


def options_of(model: fx.results.JavaScriptModel, context: fx.Context) -> dict[str, Any]:
    """Return the options with which a model has the values of a context."""

    def values(*tables: str) -> dict[str, Any]:
        paths = [row["path"] for table in tables for row in model.info[table]]
        places = {path: find_place(context.system, path).settable for path in paths}
        return {path: np.ravel(place.read(context)).tolist() for path, place in places.items()}

    return {
        "time": context.time,
        "parameters": values("parameters"),
        "inputs": values("inputs"),
        "initial": values("states", "discrete"),
    }
