"""Runs and kernels in JavaScript, many of them in one process of Node."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.solvers.export.javascript.javascript_model import JavaScriptModel
from flexure.solvers.export.javascript.kernel_functions import HELPERS, FunctionModule, arithmetic
from flexure.solvers.export.javascript.model_text import literal
from tests.support.pages.browser import run_javascript

FloatArray = npt.NDArray[np.float64]

#: Arrays leave Node as their bytes, and numbers that JSON does not know as text.
_PRINT = """
const plain = (key, value) => {
  if (ArrayBuffer.isView(value)) {
    return { bytes: Buffer.from(Float64Array.from(value).buffer).toString("base64") };
  }
  return typeof value === "number" && !Number.isFinite(value) ? { number: String(value) } : value;
};
const attempt = (call) => {
  try {
    return call();
  } catch (error) {
    return { error: error.message };
  }
};
"""


def results_of(text: str, before: str = "") -> Any:
    """Return the value of an expression of JavaScript, after some statements."""
    answer = f"console.log(JSON.stringify({text}, plain));"
    return _with_arrays(run_javascript(f"{_PRINT}\n{before}\n{answer}"))


def _with_arrays(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_arrays(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "bytes" in value:
        return np.frombuffer(base64.b64decode(value["bytes"]), dtype=np.float64)
    if "number" in value:
        return float(value["number"].replace("Infinity", "inf"))
    return {name: _with_arrays(each) for name, each in value.items()}


#: Models with the options of each call, by name.
Asked: TypeAlias = Mapping[str, tuple[JavaScriptModel, Sequence[Mapping[str, Any]]]]


def ask_models(asked: Asked, answer: str, before: str = "") -> dict[str, list[dict[str, Any]]]:
    """Return what an expression of ``model`` and ``options`` gives, for each options by name."""
    parts = [
        f"{literal(name)}: (() => {{ {model.text}; const model = flexureModel();\n"
        f"return {literal(list(options))}.map((options) => {answer}); }})()"
        for name, (model, options) in asked.items()
    ]
    found: dict[str, list[dict[str, Any]]] = results_of(f"{{ {', '.join(parts)} }}", before)
    return found


def simulate_all(asked: Asked) -> dict[str, list[dict[str, Any]]]:
    """Run models with options, and return their results, or the texts of errors, by name."""
    return ask_models(asked, "attempt(() => model.simulate(options))")


def simulate(model: JavaScriptModel, **options: Any) -> dict[str, Any]:
    """Run one model once."""
    return simulate_all({"": (model, [options])})[""][0]


@dataclass
class Call:
    """A call of a kernel in Python, and in JavaScript with the same arguments."""

    kernel: Callable[..., Any]
    arguments: Sequence[Any]
    statics: Mapping[str, Any]

    def text(self, number: int) -> str:
        """Write the call; its value is the result, and the arrays afterwards."""
        module = FunctionModule()
        module.translate(self.kernel, f"kernel{number}", self.statics)
        names = [f"a{k}" for k in range(len(self.arguments))]
        values = [
            f"const {n} = {_value(each)};" for n, each in zip(names, self.arguments, strict=True)
        ]
        passed = [
            f"{name}, 0" if isinstance(each, np.ndarray) else name
            for name, each in zip(names, self.arguments, strict=True)
        ]
        return (
            f"(() => {{ {module.text} {' '.join(values)}\n"
            f"const result = kernel{number}({', '.join(passed)});\n"
            f"return [result ?? null, {', '.join(names)}]; }})()"
        )

    def compare(self, found: Sequence[Any]) -> None:
        """Run the kernel in Python, and compare."""
        arguments = [e.copy() if isinstance(e, np.ndarray) else e for e in self.arguments]
        names = [name for name in signature(self.kernel).parameters if name not in self.statics]
        with np.errstate(all="ignore"):
            passed = dict(zip(names, arguments, strict=True))
            result = self.kernel(**passed, **self.statics)
        for ours, theirs in zip(found, [result, *arguments], strict=True):
            np.testing.assert_array_equal(ours, theirs, self.kernel.__name__, strict=False)


def compare_calls(calls: Sequence[Call]) -> None:
    """Make calls in both languages, and find the same numbers, to the last bit."""
    text = ", ".join(call.text(number) for number, call in enumerate(calls))
    found = results_of(f"(() => {{ {arithmetic()} {HELPERS} return [{text}]; }})()")
    for call, each in zip(calls, found, strict=True):
        call.compare(each)


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        kind = "Float64Array" if value.dtype == float else "Int32Array"
        return f"{kind}.from({literal(value.tolist())})"
    return literal(value)
