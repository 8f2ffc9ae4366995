"""Calls of what analyzes loops and designs their control, for every test that needs some."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np

import flexure as fx
from tests.support.calls.odd_arguments import Call
from tests.support.calls.public_calls import (
    Make,
    driven,
    lag,
    mass_model,
    method,
    of_lag,
    of_mass,
    whole,
)

_FILTER: dict[str, Any] = {
    "model": fx.FirstOrderLag("lag", time_constant=0.5),
    "period": 0.1,
    "W": 0.1,
    "V": 0.01,
    "initial_covariance": 1.0,
    "inputs": "u",
    "outputs": "y",
    "parameters": "time_constant",
    "initial": [0.0, 0.5],
    "every": 2,
    "substeps": 2,
    "offset": 0.05,
}
_OF_X: dict[str, Any] = {
    "model": fx.Integrator("x"),
    "parameters": (),
    "initial": 0.0,
    "every": 1,
}


_PROBLEM = {"controls": "force", "measurements": ["position"]}


def weighted_mass() -> fx.LinearModel:
    """A generalized plant: a mass that is pushed, and whose position is measured with noise."""
    mass = mass_model()
    names: dict[str, Any] = {
        "input_names": ["push", "noise", "force"],
        "output_names": ["z", "work", "position"],
    }
    return dataclasses.replace(
        mass,
        B=mass.B @ [[1.0, 0.0, 1.0]],
        C=np.vstack([mass.C, 0.0 * mass.C, mass.C]),
        D=np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.1, 0.0]]),
        u0=np.zeros(3),
        y0=np.zeros(3),
        **names,
    )


def lag_loop() -> fx.LinearModel:
    """A loop gain."""
    return fx.loop_gain(lag()[0], "lag.u")


def relay_loop() -> fx.Diagram:
    """A relay that drives a motor to and fro."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Gain("minus", -1.0),
        fx.Relay("relay", 0.1, -0.1, off_value=-1.0),
        fx.TransferFunction("plant", [1.0], [1.0, 2.0, 1.0, 0.0]),
    )
    builder.connect_chain("minus", "relay", "plant", "minus")
    return builder.build()


def sampled_mass() -> fx.LinearModel:
    """A sampled model of two states."""
    model = mass_model()
    return dataclasses.replace(model, A=np.eye(2) + 0.1 * model.A, B=0.1 * model.B, period=0.1)


def tuned() -> Call:
    diagram, context = lag()
    arguments = {
        "system": diagram,
        "parameters": {"lag.time_constant": (0.1, 10.0)},
        "goals": [fx.metrics.decay_rate() >= 2.0],
        "contexts": [context],
        "period": 0.1,
        "logarithmic": "lag.time_constant",
        "starts": 1,
    }
    return Call(fx.tune, arguments, context.to_dict)


def filtered() -> Call:
    """A result with a filter."""
    builder = fx.DiagramBuilder("filtered")
    builder.add_all(
        fx.Constant("sensor", 1.0),
        fx.ExtendedKalmanFilter("ekf", **(_FILTER | _OF_X)),
    )
    builder.connect_chain("sensor", "ekf.y")
    builder.connect("sensor.y", "ekf.u")
    result = fx.simulate(builder.build(), 3.0)
    arguments = {"result": result, "filter": "ekf", "start": 0.5, "confidence": 0.9}
    return Call(fx.filter_consistency, arguments)


def planning() -> Call:
    """A lag that is to reach a value."""
    system, context = driven()
    arguments: dict[str, Any] = {
        "t_final": 1.0,
        "inputs": {"u": (-2.0, 2.0)},
        "start": {"x": 0.0},
        "end": {"y": 0.5},
        "path": {"y": (-1.0, 1.0)},
        "cost": {"u": 1.0},
        "final_cost": {"y": 0.1},
        "targets": {"u": 0.1},
        "intervals": 2,
        "method": "radau",
        "kind": "linear",
        "guess": "straight",
        "tolerance": 1e-2,
        "max_refinements": 1,
        "max_iterations": 100,
        "progress": False,
    }
    return Call(
        fx.optimal_motion, {"system": system, "context": context, **arguments}, context.to_dict
    )


@cache
def motion() -> tuple[Any, Any]:
    call = planning()
    return call.function(**call.arguments), lambda: None


def control_calls() -> dict[str, Make]:
    """The functions of control engineering."""
    return {
        **{
            each: of_lag(getattr(fx, each), location="lag.u", openings=(), period=0.1)
            for each in ("loop_gain", "sensitivity_function", "complementary_sensitivity")
        },
        "margins": lambda: Call(fx.margins, {"loop": lag_loop()}),
        "frequency_response": of_lag(
            fx.frequency_response,
            input="lag.u",
            outputs="lag.y",
            frequency=[1.0, 2.0],
            amplitude=0.1,
            excitation="sine",
            openings=(),
            period=None,
            tolerance=1e-3,
            max_periods=50.0,
        ),
        "describing_function": lambda: Call(
            fx.describing_function,
            {
                "block": fx.Saturation("limit", -1.0, 1.0),
                "amplitude": [1.0, 2.0],
                "bias": 0.0,
                "frequency": 1.0,
                "context": None,
            },
        ),
        "limit_cycles": lambda: Call(
            fx.limit_cycles,
            {
                "system": relay_loop(),
                "block": "relay",
                "amplitude": [0.2, 0.6, 2.0],
                "context": None,
                "period": None,
                "confirm": False,
            },
        ),
        "norms": lambda: Call(fx.norms, {"model": lag_loop()}),
        "passivity_indices": lambda: Call(
            fx.passivity_indices, {"model": lag_loop(), "sector": (0.0, 2.0)}
        ),
        "lqr": of_mass(fx.lqr, Q=[1.0, 0.0], R=1.0, integral={"y": 1.0}, period=0.1),
        "lqe": of_mass(fx.lqe, W=1.0, V=1.0, disturbances="u", period=0.1),
        "lqg": of_mass(
            fx.lqg,
            largest={"x[0]": 1.0, "u": 1.0},
            W=np.eye(2),
            V=1.0,
            integral={"y": 1.0},
            disturbances=(),
            period=0.1,
        ),
        "h2_synthesis": lambda: Call(fx.h2_synthesis, _PROBLEM | {"model": weighted_mass()}),
        "hinf_synthesis": lambda: Call(
            fx.hinf_synthesis, _PROBLEM | {"model": weighted_mass(), "gamma": 50.0, "rtol": 0.1}
        ),
        "model_reduction": of_mass(
            fx.model_reduction, order=2, method="modal", keep_static_gain=True
        ),
        "KalmanFilter": lambda: Call(
            fx.KalmanFilter,
            {
                "name": "kalman",
                "model": sampled_mass(),
                "W": 0.1,
                "V": 1.0,
                "initial_covariance": np.eye(2),
                "initial": [0.0, 1.0],
                "every": 2,
                "offset": 0.05,
            },
        ),
        "ExtendedKalmanFilter": whole(fx.ExtendedKalmanFilter, name="ekf", **_FILTER),
        "UnscentedKalmanFilter": whole(
            fx.UnscentedKalmanFilter, name="ukf", alpha=0.5, beta=2.0, kappa=1.0, **_FILTER
        ),
        "ModelPredictiveController": lambda: Call(
            fx.ModelPredictiveController,
            {
                "name": "mpc",
                "model": sampled_mass(),
                "Q": [1.0, 0.0],
                "R": 1.0,
                "horizon": 3,
                "tracked": "y",
                "input_limits": {"u": (-1.0, 1.0)},
                "change_limits": {"u": 0.5},
                "output_limits": {"y": (-1.0, 2.0)},
                "violation_weight": 10.0,
                "disturbance_gain": 0.2,
                "delay": 1,
                "deadline": 1.0,
                "max_iterations": 50,
                "offset": 0.05,
            },
        ),
        "NonlinearPredictiveController": whole(
            fx.NonlinearPredictiveController,
            name="mpc",
            model=fx.Integrator("x"),
            period=0.1,
            horizon=2,
            inputs={"u": (-1.0, 1.0)},
            cost={"y": 1.0},
            targets={"y": 0.5},
            tracked=(),
            path={"y": (-1.0, 1.0)},
            change_cost={"u": 0.1},
            change_limits={"u": 0.5},
            final_weight=0.1,
            violation_weight=10.0,
            substeps=2,
            steps=2,
            disturbance_gain=0.2,
            delay=1,
            deadline=1.0,
            max_iterations=50,
            offset=0.05,
        ),
        "tune": tuned,
        "filter_consistency": filtered,
        "optimal_motion": planning,
        "OptimalMotion.__getitem__": lambda: Call(motion()[0].__getitem__, {}, lambda: None),
        "OptimalMotion.sample": method(motion, "sample", signal="y", times=[0.1, 0.2]),
        "OptimalMotion.to_block": method(motion, "to_block", name="plan", signals="y"),
        "OptimalMotion.plot": method(motion, "plot", path="motion.png"),
        "place": of_mass(fx.place, poles=[-1.0, -2.0, -3.0], integral="y"),
        "place_observer": of_mass(fx.place_observer, poles=[-1.0, -2.0], disturbances="u"),
    }
