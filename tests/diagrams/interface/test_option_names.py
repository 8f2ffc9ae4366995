"""Options that are called by another word: the error says what they are called here."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import flexure as fx
from flexure.diagrams.interface.option_names import OPTIONS

#: A callable, with the word and the option of it that is meant.
CALLS: list[tuple[Callable[..., Any], str, str]] = [
    (fx.compliance.settling_time, "zeta", "damping_ratio"),
    (fx.BushingConstants().with_damping_ratio, "zeta", "damping_ratio"),
    (fx.BushingConstants, "k012", "torque_stiffness"),
    (fx.BushingConstants, "d012", "torque_damping"),
    (fx.BushingConstants.weld, "kxyz", "force_stiffness"),
    (fx.BushingConstants, "dxyz", "force_damping"),
    (fx.constraints.RollingSphere, "frame_F", "frame_a"),
    (fx.constraints.KnifeEdge, "frame_M", "frame_c"),
    (fx.constraints.DistanceConstraint, "frame_F", "body_a"),
    (fx.constraints.PointOnPlane, "frame_M", "body_b"),
    (fx.plans.random, "n", "num_samples"),
    (fx.plans.sobol, "samples", "num_samples"),
    (fx.plans.latin_hypercube, "count", "num_samples"),
    (fx.sobol_indices, "n", "num_samples"),
    (fx.page, "samples", "num_samples"),
    (fx.results.SimulationResult.spectrum, "samples", "num_samples"),
    (fx.results.SimulationResult.fine_time, "points", "num_points"),
    (fx.results.LoadPath.plot_mechanism, "count", "num_equilibria"),
    (fx.check_passivity, "count", "num_motions"),
    (fx.buckling, "count", "num_factors"),
    (fx.PortSwitch, "count", "num_inputs"),
    (fx.Quantizer, "step", "interval"),
    (fx.tune_pid, "step", "step_to"),
    (fx.loop_gain, "at", "location"),
    (fx.sensitivity_function, "at", "location"),
    (fx.results.Sweep.plot_map, "at", "where"),
    *((fx.simulate, word, "t_final") for word in ("t_end", "t_stop", "tf")),
    (fx.simulate, "dt", "step"),
    *((fx.PIDController, word, "period") for word in ("dt", "Ts", "sample_time")),
    (fx.JointSpring, "k", "stiffness"),
    *((fx.JointSpring, word, "damping") for word in ("c", "d")),
    (fx.page, "outputs", "signals"),
    *((fx.tolerances, word, "executor") for word in ("workers", "n_jobs")),
    (fx.fit, "x0", "context"),
    (fx.sweep, "tf", "t_final"),
    (fx.Step, "step_time", "at"),
    (fx.Step, "final_value", "to"),
    *((fx.Sine, word, "frequency") for word in ("freq", "frequencies", "omega")),
    *((fx.frequency_response, word, "frequency") for word in ("freq", "frequencies", "omega")),
    (fx.TransferFunction, "num", "numerator"),
    (fx.TransferFunction, "den", "denominator"),
    *((fx.PIDController, word, word.lower()) for word in ("Kp", "Ki", "Kd")),
    (fx.RevoluteJoint, "limits", "position_limits"),
    (fx.LumpedHinge, "rest_angle", "nominal_position"),
    (fx.step_response, "entry", "input"),
    (fx.limit_cycles, "amplitudes", "amplitude"),
    (fx.fitting.fit_dynamic_stiffness, "amplitudes", "amplitude"),
    (fx.fitting.fit_dynamic_stiffness, "frequencies", "frequency"),
    *((fx.LinearSpringDamper, word, "free_length") for word in ("rest_length", "natural_length")),
    (fx.Material, "E", "youngs_modulus"),
    (fx.Material, "nu", "poissons_ratio"),
    (fx.Material, "rho", "density"),
]


def test_other_words_lead_to_the_option() -> None:
    for called, word, option in CALLS:
        assert option in inspect.signature(called).parameters
        with pytest.raises(TypeError) as refused:
            called(**{word: 1.0})
        expected = f"got an unexpected keyword argument '{word}': here it is '{option}'"
        assert str(refused.value).endswith(expected), called


def test_options_that_are_passed_on_are_known_by_other_words_too() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    with pytest.raises(TypeError, match=r"^sweep\(\) got .* 'workers': here it is 'executor'$"):
        fx.sweep(lag, {"time_constant": [1.0]}, 1.0, workers=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^sweep\(\) got .* 'unheard'$"):
        fx.sweep(lag, {"time_constant": [1.0]}, 1.0, unheard=2)  # type: ignore[call-arg]


def test_the_context_is_given_by_name_behind_other_arguments() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    context = lag.create_default_context()
    lag.u.fix(context, 1.0)
    with pytest.raises(TypeError, match=r"simulate\(\) takes 2 .* 3 were given: give 'context' "):
        fx.simulate(lag, 1.0, context)  # type: ignore[call-arg]
    assert fx.simulate(lag, 1.0, context=context).system is lag


def test_the_sizes_of_a_state_are_given_by_name() -> None:
    with pytest.raises(TypeError, match=r"takes 1 positional argument but 3 .*: give 'q' and "):
        fx.LeafSystem("tank").declare_continuous_state("level", 1)  # type: ignore[call-arg, arg-type]


def test_a_call_with_arguments_in_another_order_shows_the_order() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    final: Any = fx.metrics.final("y")
    calls: list[tuple[Any, tuple[Any, ...], str]] = [
        (fx.gradient, (final, lag, 1.0, "u"), "system, metric, parameters, t_final"),
        (fx.gradient, (lag, final, 1.0, ["u"]), "system, metric, parameters, t_final"),
        (fx.parameter_sensitivity, (lag, 1.0, "u"), "system, parameters, t_final"),
        (fx.simulate_many, (lag, 1.0, []), "system, contexts, t_final"),
        (fx.sweep, (lag, 1.0, {"u": [1.0]}), "system, values, t_final"),
    ]
    for function, arguments, order in calls:
        with pytest.raises(fx.errors.FlexureError) as refused:
            function(*arguments)
        assert f"{function.__name__}({order})" in str(refused.value)


def test_every_word_of_the_table_is_an_option_somewhere() -> None:
    told = {word for _, word, _ in CALLS}
    assert set(OPTIONS) <= told, set(OPTIONS) - told


def test_blocks_may_have_options_of_these_names() -> None:
    class Block(fx.LeafSystem):
        def __init__(self, name: str, *, zeta: float) -> None:
            super().__init__(name)
            self.zeta = zeta

    assert Block("block", zeta=0.5).zeta == 0.5
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'n'$"):
        Block("block", n=1)  # type: ignore[call-arg]


def test_functions_keep_their_name_and_signature() -> None:
    function = fx.compliance.settling_time
    assert pickle.loads(pickle.dumps(function)) is function
    assert next(iter(inspect.signature(function).parameters)) == "damping_ratio"
