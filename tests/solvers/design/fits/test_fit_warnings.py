"""Records in other units, or with other signs or times, are doubted, and good ones never are."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ValueRefusedError

TIMES = np.linspace(0.0, 4.0, 61)


class Swing(fx.LeafSystem):
    """q̈ = torque - b q̇ - k sin q, with units."""

    def __init__(self) -> None:
        super().__init__("swing")
        self.damping = self.declare_numeric_parameter("damping", 0.3)
        self.stiffness = self.declare_numeric_parameter("stiffness", 9.0)
        self.state = self.declare_continuous_state(q=1, v=1, default=[0.8, 0.0])
        self.torque = self.declare_vector_input("torque", 1, unit="N m")
        self.angle = self.declare_vector_output("angle", 1, self.state.q, unit="rad")
        self.rate = self.declare_vector_output("rate", 1, self.state.v, unit="rad/s")

    def calc_time_derivatives(self, context: Any) -> Any:
        angle, rate = self.state(context)
        force = self.torque(context)[0] - self.damping(context) * rate
        return [rate, force - self.stiffness(context) * np.sin(angle)]


def measured(noise: float = 0.01, seed: int = 0, **truth: Any) -> Any:
    """Return a swing, a context beside the truth, and a record."""
    swing = Swing()
    context = swing.create_default_context()
    for name, value in truth.items():
        context.set(name, value)
    record: dict[str, Any] = {"time": TIMES}
    context.set("torque", 0.2)
    run = fx.simulate(swing, 4.0, context=context, method="DOP853", rtol=1e-9)
    rng = np.random.default_rng(seed)
    for name in ("angle", "rate"):
        exact = run.sample(name, TIMES)
        record[name] = exact + noise * np.std(exact) * rng.standard_normal(TIMES.size)
    context.set("stiffness", 1.04 * context.get("stiffness"))
    context.set("damping", context.get("damping") + 0.1)
    return swing, context, record


def fitted(swing: Any, context: Any, record: Any, **options: Any) -> fx.results.Fit:
    options = {"method": "DOP853", "rtol": 1e-6, **options}
    return fx.fit(swing, record, ["stiffness", "damping"], context=context, **options)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "degrees": ({"angle": np.rad2deg}, "'angle' looks as if it were in deg instead of rad"),
    "turns per minute": (
        {"rate": lambda v: v * 30.0 / np.pi},
        "'rate' looks as if it were in rpm instead of rad/s",
    ),
    "sign": ({"angle": np.negative}, "Check units, signs, zeros and times"),
    "gap": (
        {"time": lambda t: t + 1.5 * (t > 1.0)},
        r"The times have a gap from 1 s to 2\.5",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_record_that_is_something_else_is_doubted_and_the_reason_named(name: str) -> None:
    changes, text = WRONG[name]
    swing, context, record = measured()
    changed = {key: change(record[key]) for key, change in changes.items()}
    before = context.clone()
    bounds = {"stiffness": (8.0, 10.0), "damping": (0.0, 1.0)}
    with pytest.warns(UserWarning, match=text) as seen:
        fitted(swing, context, {**record, **changed}, bounds=bounds)
    assert "The fit explains little of '" in str(seen[-1].message)
    assert context == before


def test_what_has_an_effect_on_one_side_only_is_named() -> None:
    """Of a lag to 1, limited at 0.5: at 1 s, it just comes there with the time constant 1/ln 2."""
    builder = fx.DiagramBuilder("limited")
    builder.add_all(fx.Constant("u", 1.0), fx.FirstOrderLag("lag", 1.0))
    builder.add(fx.Saturation("limit", -0.5, 0.5))
    builder.connect_chain("u", "lag", "limit")
    limited = builder.build()
    context = limited.create_default_context()
    context.set("lag.time_constant", 3.0)
    for first, doubted in ((1.0, True), (0.2, False)):
        times = np.arange(first, 5.01, 0.2)
        record = {"time": times, "limit.y": np.minimum(1.0 - np.exp(-times), 0.5)}
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            found = fx.fit(limited, record, "lag.time_constant", context=context)
        assert found["lag.time_constant"] == pytest.approx(1.0 / np.log(2.0) if doubted else 1.0)
        assert doubted == any("values on one side fit as well" in str(w.message) for w in seen)


def test_a_signal_beside_which_nothing_counts_is_refused_by_its_size() -> None:
    swing, context, record = measured()
    record["angle"] = 1e12 * record["angle"]
    with pytest.raises(ValueRefusedError, match=r"'angle' up to .*e\+11 rad beside 0\.8"):
        fitted(swing, context, record, signals="angle")


def test_good_fits_are_never_doubted_however_noisy() -> None:
    """Random truths and noise of 0.01 % to 200 % of the signal."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        twin = measured(
            10.0 ** rng.uniform(-4.0, 0.3),
            seed,
            stiffness=rng.uniform(2.0, 20.0),
            damping=rng.uniform(0.0, 1.0),
            x=[rng.uniform(0.3, 1.5), 0.0],
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted(*twin)


def test_gaps_outliers_and_rest_are_no_reason_for_doubts() -> None:
    swing, context, record = measured()
    few = {key: np.delete(values, np.s_[10:50]) for key, values in record.items()}
    spoiled = {**record, "angle": record["angle"] + 3.0 * (np.arange(61) % 9 == 4)}
    still = swing.create_default_context()
    still.set("x", [0.2, 0.0])
    still.set("torque", 9.0 * np.sin(0.2))
    rest = {"time": TIMES, "angle": np.full(61, 0.2)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(swing, context, few)
        fitted(swing, context, spoiled, deviations={"angle": 0.01, "rate": 0.03}, loss="huber")
        fx.fit(swing, rest, "stiffness", context=still)
