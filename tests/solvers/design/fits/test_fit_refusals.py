"""What cannot be fitted is refused with its reason, and contexts stay what they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    EvaluationError,
    FlexureError,
    UnknownNameError,
    ValueRefusedError,
)
from tests.support.mechanics.mechanics import Pendulum
from tests.support.tiers import for_each

TIME = np.linspace(0.0, 1.0, 11)
GOOD = {"time": TIME, "angle": np.cos(4.0 * TIME)}


def fitted(record: Any = GOOD, parameters: Any = "length", **options: Any) -> Any:
    """Fit a pendulum, and see that its context stays what it was."""
    pendulum = Pendulum(angle=1.0)
    context = pendulum.create_default_context()
    context.set("torque", 0.2)
    before = context.clone()
    try:
        return fx.fit(pendulum, record, parameters, context=context, **options)
    finally:
        assert context == before


def changed(name: str, index: Any, value: Any) -> dict[str, Any]:
    record = {key: np.array(values) for key, values in GOOD.items()}
    record[name][index] = value
    return record


def relayed() -> Any:
    builder = fx.DiagramBuilder("relayed")
    builder.add_all(fx.Sine("sine"), fx.Relay("relay", 0.2, -0.2), fx.Integrator("sum"))
    builder.connect_chain("sine", "relay", "sum")
    return fx.fit(builder.build(), {"time": TIME, "sum.y": TIME}, "sine.amplitude")


REFUSED: dict[str, tuple[Callable[[], Any], type[FlexureError], str]] = {
    "no records": (lambda: fitted([]), ValueRefusedError, "at least one record"),
    "a number as record": (lambda: fitted(1.0), ValueRefusedError, "a mapping with 'time'"),
    "no times": (
        lambda: fitted({"angle": GOOD["angle"]}),
        ValueRefusedError,
        "a column 'time' with times in seconds; found 'angle'",
    ),
    "a gap": (
        lambda: fitted(changed("angle", [3, 7], np.nan)),
        ValueRefusedError,
        r"without gaps; found \[nan\] at 0\.3 s, in 2 rows altogether",
    ),
    "NaN among the times": (
        lambda: fitted(changed("time", 3, np.nan)),
        ValueRefusedError,
        "at least two finite times",
    ),
    "times that go back": (
        lambda: fitted(changed("time", 3, 0.15)),
        ValueRefusedError,
        r"each later than the one before; found 0\.15 s after 0\.2 s. Sort the rows",
    ),
    "another size": (
        lambda: fitted({"time": TIME, "angle": GOOD["angle"][:-1]}),
        ValueRefusedError,
        r"column 'angle': expected 11 samples; found the shape \(10,\)",
    ),
    "two components of one": (
        lambda: fitted({"time": TIME, "angle": np.zeros((11, 2))}),
        ValueRefusedError,
        r"found the shape \(11, 2\)",
    ),
    "texts": (
        lambda: fitted({"time": TIME, "angle": ["high"] * 11}),
        ValueRefusedError,
        "real numbers",
    ),
    "an unknown column": (
        lambda: fitted({**GOOD, "angel": TIME}),
        UnknownNameError,
        "Did you mean 'angle'",
    ),
    "a parameter as column": (
        lambda: fitted({**GOOD, "mass": TIME}),
        UnknownNameError,
        "a port that carries a vector, or a continuous state; found the parameter",
    ),
    "inputs alone": (
        lambda: fitted({"time": TIME, "torque": TIME}),
        UnknownNameError,
        "a measured output",
    ),
    "an unknown signal": (
        lambda: fitted(signals="angel"),
        UnknownNameError,
        "the signal 'angel'",
    ),
    "times before the context": (
        lambda: fitted({"time": TIME - 0.5, "angle": TIME}),
        ValueRefusedError,
        r"times from t = 0 s on, .*; found a record that begins at -0\.5 s",
    ),
    "inputs that begin late": (
        lambda: fitted({"time": TIME + 0.5, "angle": TIME, "torque": TIME}),
        ValueRefusedError,
        "since inputs were measured",
    ),
    "a second record that is wrong": (
        lambda: fitted([GOOD, changed("angle", 3, np.inf)]),
        ValueRefusedError,
        "Cannot fit 'pendulum' to record 1 with the column 'angle'",
    ),
    "no parameters": (lambda: fitted(parameters=[]), ValueRefusedError, "parameters to fit"),
    "an unknown parameter": (lambda: fitted(parameters="lenght"), UnknownNameError, "'length'"),
    "a parameter twice": (
        lambda: fitted(parameters=["x", "x[rate]"]),
        UnknownNameError,
        "every name once",
    ),
    "a measured input as parameter": (
        lambda: fitted({**GOOD, "torque": TIME}, parameters="torque"),
        UnknownNameError,
        "an input that was not measured",
    ),
    "bounds without the start": (
        lambda: fitted(parameters={"length": (0.6, 0.9)}),
        ValueRefusedError,
        r"a start within the bounds \[0\.6, 0\.9\]; found 0\.5",
    ),
    "bounds upside down": (
        lambda: fitted(parameters={"length": (0.9, 0.1)}),
        ValueRefusedError,
        "lower bounds below upper ones",
    ),
    "bounds twice": (
        lambda: fitted(parameters={"length": (0.1, 0.9)}, bounds={"length": (0.2, 0.8)}),
        ValueRefusedError,
        "bounds of everything once",
    ),
    "bounds of something else": (
        lambda: fitted(bounds={"mass": (0.2, 8.0)}),
        UnknownNameError,
        "bounds of 'mass'",
    ),
    "bounds as option without the start": (
        lambda: fitted(bounds={"length": (0.6, 0.9)}),
        ValueRefusedError,
        r"a start within the bounds \[0\.6, 0\.9\]; found 0\.5",
    ),
    "three bounds": (
        lambda: fitted(parameters={"length": (0.1, 0.5, 0.9)}),
        ValueRefusedError,
        "bounds of 'length'",
    ),
    "the logarithm of zero": (
        lambda: fitted(parameters="x[rate]", logarithmic="x[rate]"),
        ValueRefusedError,
        "a positive start",
    ),
    "the logarithm of something else": (
        lambda: fitted(logarithmic="mass"),
        UnknownNameError,
        "logarithmic='mass'",
    ),
    "the offset of something else": (
        lambda: fitted(offsets="position"),
        UnknownNameError,
        "an offset of 'position'",
    ),
    "more unknowns than samples": (
        lambda: fitted({"time": TIME[:2], "angle": TIME[:2]}, ["mass", "length"]),
        ValueRefusedError,
        "at least 3 samples; found 2",
    ),
    "a robust loss without deviations": (
        lambda: fitted(loss="huber"),
        ValueRefusedError,
        "deviations, which define what an outlier is",
    ),
    "an unknown loss": (lambda: fitted(loss="square"), ValueRefusedError, "'soft_l1', 'huber'"),
    "a deviation of nothing": (lambda: fitted(deviations=0.0), ValueRefusedError, "deviations"),
    "deviations of other signals": (
        lambda: fitted(deviations={"position": 1.0}),
        UnknownNameError,
        "for 'position'",
    ),
    "too few contexts": (
        lambda: fx.fit(Pendulum(), [GOOD, GOOD], "length", context=[]),
        ValueRefusedError,
        "2 contexts, one for each record; found 0",
    ),
    "a foreign context": (
        lambda: fx.fit(Pendulum(), GOOD, "length", context=Pendulum().create_default_context()),
        ContextError,
        "a root context of the same system",
    ),
    "an input that nothing drives": (
        lambda: fx.fit(Pendulum(), GOOD, "length"),
        EvaluationError,
        "pendulum.torque",
    ),
    "too few evaluations": (
        lambda: fitted(parameters=["length", "damping"], max_evaluations=1),
        EvaluationError,
        "least squares that converge",
    ),
    "a relay": (relayed, EvaluationError, "a motion without events"),
}


@for_each("name", REFUSED)
def test_refusal_says_what_is_wrong(name: str) -> None:
    attempt, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        attempt()


def test_a_parameter_without_influence_is_named() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    record = {"time": TIME, "u": np.zeros(11), "y": np.exp(-TIME)}
    context = lag.create_default_context()
    context.set("x", [0.9])
    with pytest.raises(ValueRefusedError, match="no influence of 'gain' where the search starts"):
        fx.fit(lag, record, ["time_constant", "gain"], context=context)


FILES = {
    "nothing": ("", "a row of names"),
    "a name twice": ("time,angle,angle\n0,1,2\n", "each once"),
    "a short row": (
        "time,angle\n0,1\n1\n",
        "2 entries in each row .* found 1 entries in line 3",
    ),
    "a text": ("time,angle\n0,1\n1,much\n", "numbers in the column 'angle'"),
    "an empty cell": ("time,angle\n0,1\n1,\n", r"found \[nan\] at 1 s"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_record_is_refused(name: str, tmp_path: Path) -> None:
    text, told = FILES[name]
    file = tmp_path / "record.csv"
    file.write_text(text)
    with pytest.raises(ValueRefusedError, match=told):
        fitted(file)


def test_values_in_another_unit_are_refused(tmp_path: Path) -> None:
    builder = fx.PlantBuilder("arm")
    rod = builder.add_body("rod", fx.SpatialInertia.thin_rod(1.0, length=1.0, axis="x"))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, rod, axis=(0, 0, 1)))
    file = tmp_path / "record.csv"
    file.write_text("time [s],axis.angle [deg]\n0,1\n1,1\n")
    with pytest.raises(ValueRefusedError, match="expected values in rad; found values in deg"):
        fx.fit(builder.build(), file, [axis.angle])


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueRefusedError, match="a CSV file that can be read"):
        fitted(tmp_path / "nowhere.csv")


def test_a_fit_that_does_not_fit_a_context_leaves_it_alone() -> None:
    found = fitted(parameters=["length", "x"])
    with pytest.raises(ContextError, match="Cannot apply a fit with this context"):
        found.apply(Pendulum().create_default_context())
    with pytest.raises(ValueRefusedError, match="the number of a record, 0 to 0"):
        found.apply(found.contexts[0], record=1)
    with pytest.raises(UnknownNameError, match="Cannot find 'mass' among the fitted constants"):
        found["mass"]
