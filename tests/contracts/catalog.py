"""Every block of the library in every variety: what the contracts are checked on.

A block or an option that is missing here fails a test, so that no block escapes the contracts.
"""

from __future__ import annotations

import inspect
import math
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import flexure as fx
from flexure.blocks.multibody.trees.topology import Topology
from flexure.blocks.multibody.trees.tree_inputs import InertiaInput
from flexure.multibody import EnergyLedger, EnergyTotals, MultibodyTree
from tests.contracts import parts
from tests.contracts.recipes.contact_recipes import contacts
from tests.contracts.recipes.hinge_recipes import HINGES
from tests.contracts.recipes.joint_recipes import ON_JOINTS
from tests.support.tiers import by_tier

#: Makes a fresh block; ``func``, ``args`` and ``keywords`` tell how.
Recipe: TypeAlias = "partial[fx.LeafSystem]"


def bump(time: Any) -> Any:
    return np.where(time < 1.0, 0.0, np.exp(-((time - 2.0) ** 2)))


def foreign_bump(time: Any) -> Any:
    return math.exp(-((time - 1.0) ** 2))


class Wastebasket:
    """A stream that keeps nothing."""

    def write(self, text: str) -> None:
        assert text.endswith("\n")


def recipe(kind: type[fx.LeafSystem], /, *arguments: Any, **options: Any) -> Recipe:
    return partial(kind, "block", *arguments, **options)


_BENCH = {"t": [0.0, 1.0, 3.0], "u": [0.0, 2.0, 3.0]}
_OSCILLATOR = ([[0.0, 1.0], [-4.0, -0.5]], [0.0, 1.0], [1.0, 0.0])
_TURNS = (-np.eye(3), np.ones((3, 1)), np.eye(4)[:, 1:], None)
_TWO_BY_TWO = (
    [[-0.5, 0.2], [0.1, -0.3]],
    [[1.0, 0.5], [0.0, 2.0]],
    [[1.0, 0.0], [1.0, -1.0]],
    [[0.0, 0.3], [0.1, 0.0]],
)
_LIMITS = {"lower": [-1.0, -np.inf], "upper": [2.0, 0.5]}

# Bodies know nothing of the elements between them, so all elements can be between the same ones.
_WORLD, _LEFT, _RIGHT = parts.world(), parts.lump("left"), parts.lump("right")
_ASKEW = parts.askew(_RIGHT)
_P, _Q = (0.1, 0.2, 0.3), (-0.2, 0.1, 0.4)
_ORIGIN = (0.0, 0.0, 0.0)
_BUSHING = {
    "torque_stiffness": [3.0, 4.0, 5.0],
    "torque_damping": [0.3, 0.2, 0.1],
    "force_stiffness": [30.0, 40.0, 50.0],
    "force_damping": [1.0, 2.0, 3.0],
}
_COUPLED = np.diag([3.0, 4.0, 5.0, 30.0, 40.0, 50.0])
_COUPLED[1, 3] = _COUPLED[3, 1] = 6.0
_PLAIN, _ROLLED = (
    fx.Material(9.0, poissons_ratio=0.3, density=2.0, yield_strength=5.0),
    fx.Material(9.0, poissons_ratio=0.3, shear_modulus=5.0, density=2.0),
)
_FLYING, _HALF_DRIVEN = parts.flying(), parts.half_driven()
_CARRYING = parts.slider_on_arm()
_ROPE = {"deflections": [0.1, 0.3], "forces": [5.0, 20.0]}


def tree(topology: Topology, **options: Any) -> Recipe:
    return recipe(
        MultibodyTree,
        topology,
        force_inputs=parts.forces_on(topology),
        actuators=parts.motors_on(topology),
        **options,
    )


CATALOG: dict[str, Recipe] = {
    # algebra
    "Gain": recipe(fx.Gain, 2.0),
    "Gain of a size": recipe(fx.Gain, -0.5, size=3),
    "Gain per component": recipe(fx.Gain, [2.0, -1.0]),
    "Gain with a unit": recipe(fx.Gain, 2.0, unit="N/m"),
    "MatrixGain": recipe(fx.MatrixGain, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
    "Sum": recipe(fx.Sum),
    "Sum of three vectors": recipe(fx.Sum, "-+-", size=2),
    "Product": recipe(fx.Product),
    "Product of three vectors": recipe(fx.Product, "/*/", size=2),
    "Multiplexer": recipe(fx.Multiplexer, [2, 1]),
    "Demultiplexer": recipe(fx.Demultiplexer, [2, 1]),
    "Selector": recipe(fx.Selector, 3, [2, 0, 2]),
    "PassThrough": recipe(fx.PassThrough),
    "PassThrough of a vector": recipe(fx.PassThrough, size=2),
    "PortSwitch": recipe(fx.PortSwitch),
    "PortSwitch of three vectors": recipe(fx.PortSwitch, num_inputs=3, size=2),
    "FunctionBlock": recipe(
        fx.FunctionBlock, parts.bowl, inputs={"left": 2, "right": 2}, output_size=2
    ),
    "FunctionBlock with time": recipe(
        fx.FunctionBlock, parts.spiral, inputs={"radius": 1}, output_size=2, with_time=True
    ),
    "FunctionBlock of a foreign function": recipe(fx.FunctionBlock, parts.foreign_sine),
    # continuous
    "Integrator": recipe(fx.Integrator),
    "Integrator of a vector": recipe(fx.Integrator, size=2, initial=[1.0, -1.0]),
    "Integrator with limits": recipe(fx.Integrator, size=2, **_LIMITS),
    "Integrator with reset": recipe(fx.Integrator, size=2, initial=0.5, reset=True),
    "Integrator with limits and reset": recipe(fx.Integrator, lower=-1.0, upper=1.0, reset=True),
    "FirstOrderLag": recipe(fx.FirstOrderLag, 0.5, unit="s"),
    "FirstOrderLag per component": recipe(
        fx.FirstOrderLag, [0.5, 2.0], gain=[1.0, -3.0], size=2, initial=0.5
    ),
    "FilteredDerivative": recipe(fx.FilteredDerivative, 0.1),
    "FilteredDerivative from zero": recipe(
        fx.FilteredDerivative, [0.1, 0.3], size=2, start_at_rest=False
    ),
    # controllers
    "PIDController": recipe(fx.PIDController, linearize_as="gain"),
    "PIDController with filter": recipe(
        fx.PIDController,
        [2.0, 1.0],
        [1.0, 0.0],
        [0.5, 0.1],
        size=2,
        derivative_filter=[0.05, 0.1],
        setpoint_weight=0.7,
        derivative_weight=0.3,
        tracking_time=0.5,
        **_LIMITS,
    ),
    "PIDController with rate inputs": recipe(
        fx.PIDController, 2.0, 1.0, 0.5, lower=-1.0, upper=1.0, rate_inputs=True
    ),
    "PIDController that stops to integrate": recipe(
        fx.PIDController, 2.0, 1.0, lower=-1.0, upper=1.0, anti_windup="conditional"
    ),
    "PIDController that winds up": recipe(
        fx.PIDController, 2.0, 1.0, lower=-1.0, upper=1.0, anti_windup=None
    ),
    "PIDController with gain ports": recipe(
        fx.PIDController,
        [2.0, 1.0],
        1.0,
        0.5,
        size=2,
        **_LIMITS,
        gain_ports=True,
    ),
    "PIDController with a gain port that stops to integrate": recipe(
        fx.PIDController,
        lower=-1.0,
        upper=1.0,
        anti_windup="conditional",
        gain_ports=True,
    ),
    "PIDController with a period": recipe(fx.PIDController, linearize_as="gain", period=0.1),
    "PIDController with a period with filter": recipe(
        fx.PIDController,
        [2.0, 1.0],
        [1.0, 0.0],
        [0.5, 0.1],
        size=2,
        offset=0.05,
        derivative_filter=[0.05, 0.0],
        setpoint_weight=0.7,
        derivative_weight=0.3,
        tracking_time=0.5,
        period=0.1,
        **_LIMITS,
    ),
    "PIDController with a period with rate inputs": recipe(
        fx.PIDController, 2.0, 1.0, 0.5, lower=-1.0, upper=1.0, rate_inputs=True, period=0.1
    ),
    "PIDController with a period with gain ports": recipe(
        fx.PIDController, 2.0, 1.0, 0.5, lower=-1.0, upper=1.0, gain_ports=True, period=0.1
    ),
    "PIDController with a period that stops to integrate": recipe(
        fx.PIDController, 2.0, 1.0, lower=-1.0, upper=1.0, anti_windup="conditional", period=0.1
    ),
    "StateFeedback": recipe(fx.StateFeedback, [2.0, 0.5]),
    "StateFeedback with reference gain": recipe(
        fx.StateFeedback, [[1.0, 2.0], [3.0, 4.0]], reference_gain=[0.5, 1.5]
    ),
    "LuenbergerObserver": recipe(fx.LuenbergerObserver, *_OSCILLATOR, gain=[6.0, 9.0]),
    "LuenbergerObserver of two outputs": recipe(
        fx.LuenbergerObserver, *_TWO_BY_TWO, gain=[[3.0, 1.0], [0.0, 2.0]], initial=[1.0, 0.0]
    ),
    "LuenbergerObserver with offsets": recipe(
        fx.LuenbergerObserver, *_OSCILLATOR, gain=[6.0, 9.0], f0=[0.1, -0.2], y0=0.3
    ),
    "StateFeedback around a point": recipe(fx.StateFeedback, [2.0, 0.5], x0=[1.0, -1.0], u0=3.0),
    "StateFeedback of a quaternion": recipe(
        fx.StateFeedback, [[0.0, 1.0, 2.0, 3.0, 4.0]], x0=[0.6, 0.0, 0.8, 0.0, 1.0], quaternions=[0]
    ),
    "LuenbergerObserver with a period": recipe(
        fx.LuenbergerObserver, *_OSCILLATOR, gain=[0.6, 0.9], period=0.1
    ),
    "LuenbergerObserver of a quaternion": recipe(
        fx.LuenbergerObserver,
        *_TURNS,
        gain=np.eye(4)[1:],
        y0=[1.0, 0.0, 0.0, 0.0],
        quaternions=[0],
    ),
    "LuenbergerObserver with a period of a quaternion": recipe(
        fx.LuenbergerObserver,
        *_TURNS,
        gain=0.5 * np.eye(4)[1:],
        period=0.1,
        y0=[1.0, 0.0, 0.0, 0.0],
        quaternions=[0],
    ),
    "LuenbergerObserver with a period with offsets": recipe(
        fx.LuenbergerObserver,
        *_TWO_BY_TWO,
        gain=[[0.3, 0.1], [0.0, 0.2]],
        period=0.1,
        offset=0.05,
        initial=[1.0, 0.0],
        f0=[0.1, -0.2],
        y0=[0.3, 0.4],
    ),
    # delays
    "TimeDelay": recipe(fx.TimeDelay, 0.25, 0.1),
    "TimeDelay of a vector": recipe(
        fx.TimeDelay, 0.2, 0.1, size=2, initial=[1.0, -1.0], max_delay=0.45
    ),
    "PadeDelay": recipe(fx.PadeDelay, 0.2),
    "PadeDelay of order 4": recipe(fx.PadeDelay, 0.2, order=4),
    # discrete
    "ZeroOrderHold": recipe(fx.ZeroOrderHold, 0.1, offset=0.05, size=2, initial=[1.0, 2.0]),
    "UnitDelay": recipe(fx.UnitDelay, 0.1, offset=0.05, size=2),
    "Integrator with a period, backward": recipe(
        fx.Integrator, method="backward", offset=0.05, size=2, initial=[1.0, 2.0], period=0.1
    ),
    "Integrator with a period, trapezoidal": recipe(
        fx.Integrator, method="trapezoidal", period=0.1, lower=-1.0, upper=1.0, reset=True
    ),
    "FilteredDerivative with a period": recipe(
        fx.FilteredDerivative, 0.0, offset=0.05, size=2, period=0.1
    ),
    "StateSpace with a period": recipe(fx.StateSpace, *_TWO_BY_TWO, period=0.1),
    "StateSpace with a period without input": recipe(
        fx.StateSpace,
        [[0.5]],
        [[]],
        [[1.0]],
        None,
        period=0.1,
        offset=0.05,
        initial=[1.0],
    ),
    "TransferFunction with a period": recipe(
        fx.TransferFunction, [0.2, 0.1], [1.0, -0.8, 0.1], period=0.1, offset=0.05
    ),
    "TransferFunction with a period with feedthrough": recipe(
        fx.TransferFunction, [0.2, 0.1], [-2.0, 0.8], period=0.1, unit="N"
    ),
    # linear
    "StateSpace": recipe(fx.StateSpace, *_OSCILLATOR),
    "StateSpace with feedthrough": recipe(fx.StateSpace, *_TWO_BY_TWO, initial=[1.0, -1.0]),
    "StateSpace without input": recipe(fx.StateSpace, [[-0.5]], [[]], [[2.0]], initial=[1.0]),
    "AffineSystem": recipe(fx.AffineSystem, *_OSCILLATOR[:2], [0.0, 1.0], [1.0, 0.0], None, 0.5),
    "AffineSystem with feedthrough": recipe(
        fx.AffineSystem,
        *_TWO_BY_TWO[:2],
        [0.5, 1.0],
        *_TWO_BY_TWO[2:],
        [0.1, 0.2],
        initial=[1.0, -1.0],
    ),
    "AffineSystem, sampled": recipe(
        fx.AffineSystem, 0.5, 1.0, 0.1, 2.0, None, 0.5, period=0.1, offset=0.05
    ),
    "TransferFunction": recipe(fx.TransferFunction, [2.0], [1.0, 0.5, 4.0], unit="N"),
    "TransferFunction with feedthrough": recipe(
        fx.TransferFunction, [1.0, 0.0, 4.0], [-1.0, -4.0, -4.0]
    ),
    # nonlinear
    "Saturation": recipe(fx.Saturation, -1.0, 2.0, linearize_as="gain"),
    "Saturation per component": recipe(fx.Saturation, **_LIMITS, size=2),
    "DeadZone": recipe(fx.DeadZone, -1.0, 2.0, linearize_as="gain"),
    "DeadZone per component": recipe(fx.DeadZone, **_LIMITS, size=2),
    "Quantizer": recipe(fx.Quantizer, 0.5, linearize_as="exact"),
    "Quantizer per component": recipe(fx.Quantizer, [0.5, 0.1], size=2),
    "LookupTable": recipe(fx.LookupTable, [0.0, 1.0, 2.0], [0.0, 3.0, 8.0]),
    "LookupTable that continues": recipe(
        fx.LookupTable, [0.0, 1.0, 2.0], [0.0, 3.0, 8.0], extrapolate="linear", size=2
    ),
    "RateLimiter": recipe(fx.RateLimiter, 2.0, 1.0, 0.1, linearize_as="gain"),
    "RateLimiter per component": recipe(
        fx.RateLimiter, [2.0, np.inf], 1.0, 0.1, size=2, initial=[0.5, 0.0]
    ),
    "RateLimiter with a period": recipe(fx.RateLimiter, 2.0, 1.0, linearize_as="gain", period=0.1),
    "RateLimiter with a period per component": recipe(
        fx.RateLimiter, [2.0, np.inf], 1.0, offset=0.05, size=2, initial=[0.5, 0.0], period=0.1
    ),
    "Relay": recipe(fx.Relay, 0.5, -0.5),
    "Relay that is on": recipe(
        fx.Relay, 0.5, -0.5, on_value=-2.0, off_value=3.0, initially_on=True
    ),
    "GainSchedule": recipe(fx.GainSchedule, [0.0, 1.0, 2.0], [1.0, 3.0, 8.0]),
    "GainSchedule per component": recipe(
        fx.GainSchedule,
        [0.0, 1.0, 2.0],
        [[1.0, 2.0], [3.0, -1.0], [8.0, 0.5]],
        extrapolate="linear",
        size=2,
    ),
    # filters
    "LeadLag": recipe(fx.LeadLag, 3.0, 30.0, unit="s"),
    "LeadLag per component": recipe(
        fx.LeadLag, [3.0, 5.0], [0.3, 5.0], gain=[2.0, -1.0], size=2, initial=0.5
    ),
    "NotchFilter": recipe(fx.NotchFilter, 20.0, 4.0),
    "NotchFilter per component": recipe(fx.NotchFilter, [20.0, 5.0], 4.0, depth=[0.9, 0.3], size=2),
    # forces
    **ON_JOINTS,
    "LinearSpringDamper": recipe(
        fx.LinearSpringDamper,
        _LEFT,
        _P,
        _ASKEW,
        _Q,
        free_length=0.7,
        stiffness=30.0,
        damping=2.0,
    ),
    "LinearSpringDamper to the world": recipe(
        fx.LinearSpringDamper,
        _WORLD,
        (0.0, 0.0, 1.0),
        _LEFT,
        (0.0, 0.0, 0.0),
        free_length=0.5,
        stiffness=30.0,
        damping=0.0,
    ),
    "PiezoStack": recipe(
        fx.PiezoStack,
        _LEFT,
        _P,
        _ASKEW,
        _Q,
        free_length=0.7,
        blocking_force=30.0,
        free_stroke=0.9,
        damping=2.0,
        hysteresis_force=9.0,
        hysteresis_stroke=1.5,
    ),
    "PiezoStack by charge": recipe(
        fx.PiezoStack,
        _LEFT,
        _P,
        _ASKEW,
        _Q,
        free_length=0.7,
        blocking_force=30.0,
        free_stroke=0.9,
        full_drive=2.0,
        drive_unit="C",
    ),
    "Cable": recipe(fx.Cable, _LEFT, _ORIGIN, _ASKEW, _ORIGIN, free_length=1.0, **_ROPE),
    "Cable with damping": recipe(
        fx.Cable,
        _WORLD,
        (0.1, 0.2, 0.3),
        _LEFT,
        (-0.2, 0.1, 0.4),
        free_length=0.8,
        damping=0.5,
        end_stiffness=90.0,
        **_ROPE,
    ),
    "Cable, linear": recipe(
        fx.Cable, _LEFT, _ORIGIN, _ASKEW, _ORIGIN, free_length=1.0, stiffness=90.0, damping=0.2
    ),
    "Bumper": recipe(fx.Bumper, _LEFT, _ORIGIN, _ASKEW, _ORIGIN, free_length=3.0, **_ROPE),
    "Bumper with damping": recipe(
        fx.Bumper,
        _LEFT,
        (0.1, 0.2, 0.3),
        _WORLD,
        (-0.2, 0.1, 0.4),
        free_length=2.0,
        damping=0.5,
        end_stiffness=90.0,
        **_ROPE,
    ),
    "Bumper, linear": recipe(
        fx.Bumper, _LEFT, _ORIGIN, _ASKEW, _ORIGIN, free_length=3.0, stiffness=90.0
    ),
    **contacts(_WORLD, _LEFT, _ASKEW),
    "LinearBushingRollPitchYaw": recipe(fx.LinearBushingRollPitchYaw, _LEFT, _ASKEW, **_BUSHING),
    "LinearBushingRollPitchYaw, energy-consistent": recipe(
        fx.LinearBushingRollPitchYaw, _WORLD, _RIGHT, energy_consistent=True, **_BUSHING
    ),
    **HINGES,
    "LinearBushing": recipe(fx.LinearBushing, _LEFT, _ASKEW, **_BUSHING),
    "LinearBushing on the world": recipe(fx.LinearBushing, _RIGHT, _WORLD, **_BUSHING),
    "GeneralBushing": recipe(
        fx.GeneralBushing,
        _LEFT,
        _ASKEW,
        stiffness=_COUPLED,
        damping=0.1 * _COUPLED,
        preload=[0.5, -1.0, 0.3, 4.0, -2.0, 1.0],
        tables={"x": ([-0.5, 0.2, 1.0], [-20.0, 1.0, 30.0]), "ry": ([-0.2, 0.3], [-1.0, 3.0])},
        branches=[(0.5 * _COUPLED, 0.3), ([0.0, 0.0, 2.0, 0.0, 9.0, 0.0], 0.05)],
        friction={"rx": (2.0, 0.3), "z": (5.0, 0.4)},
        friction_memory=["z"],
    ),
    "GeneralBushing on the world": recipe(
        fx.GeneralBushing, _RIGHT, _WORLD, stiffness=[3.0, 4.0, 0.0, 30.0, 40.0, 50.0]
    ),
    "Beam": recipe(
        fx.Beam,
        _LEFT,
        _RIGHT,
        section=fx.sections.RectangleSection(2.0, 0.8),
        material=_ROLLED,
        length=1.5,
        curvature=[0.2, -0.1],
        damping_time=0.05,
        plate=True,
        clamped_warping=True,
        segments=1,
        planar=True,
        ends=(-0.25, 0.5),
        fatigue=fx.Fatigue(3.0, 8.0, cycles=1e5, stress_ratio=0.1, concentration=1.5),
    ),
    "Beam that is tapered": recipe(
        fx.Beam,
        _WORLD,
        _RIGHT,
        section=fx.sections.CircleSection(1.0),
        end_section=fx.sections.CircleSection(1.5),
        material=_PLAIN,
        length=1.5,
        shear=False,
        unstressed_pose=(1.4, 0.3, 0.1),
        loss_factor=0.1,
        at_frequency=2.0,
        prestressed=True,
    ),
    "Beam with free strain": recipe(
        fx.Beam,
        _LEFT,
        _RIGHT,
        section=fx.sections.RectangleSection(2.0, 0.8),
        material=fx.Material(
            5.0,
            poissons_ratio=0.3,
            density=2.0,
            thermal_expansion=0.01,
            thermoelastic_coefficient=-0.002,
            temperature_range=(200.0, 400.0),
        ),
        length=1.5,
        reference_temperature=300.0,
        free_strain=True,
        damping_time=0.1,
    ),
    "LeafSpring": recipe(
        fx.LeafSpring,
        _LEFT,
        _RIGHT,
        length=1.5,
        width=2.0,
        thickness=0.8,
        material=_ROLLED,
        plate=True,
    ),
    "WireFlexure": recipe(
        fx.WireFlexure,
        _LEFT,
        _RIGHT,
        length=1.5,
        diameter=1.0,
        material=_PLAIN,
        shear=True,
    ),
    # multibody
    "MultibodyTree of a pendulum": tree(parts.pendulum()),
    "MultibodyTree of a slider on an arm": tree(parts.slider_on_arm(), gravity=(1.0, -2.0, -9.0)),
    "MultibodyTree of a gripper": tree(parts.gripper()),
    "MultibodyTree of a puck": tree(parts.puck()),
    "MultibodyTree of a shoulder": tree(parts.shoulder()),
    "MultibodyTree in a world that spins": tree(parts.pendulum(), spin=(0.3, -0.2, 0.5)),
    "MultibodyTree of a reversed hip": tree(parts.reversed_hip()),
    "MultibodyTree of an airplane": tree(parts.airplane()),
    "MultibodyTree of a satellite": recipe(MultibodyTree, parts.satellite()),
    "MultibodyTree with mass from outside": recipe(
        MultibodyTree,
        _CARRYING,
        inertia_inputs=[InertiaInput("rod_on_A_inertia", _CARRYING.bodies[1])],
    ),
    "InverseDynamics": recipe(fx.InverseDynamics, _FLYING),
    "InverseDynamics, underactuated": recipe(fx.InverseDynamics, _HALF_DRIVEN, underactuated=True),
    "GravityCompensation": recipe(fx.GravityCompensation, _FLYING),
    "GravityCompensation, underactuated": recipe(
        fx.GravityCompensation, _HALF_DRIVEN, underactuated=True
    ),
    "EnergyTotals": recipe(EnergyTotals, ["gravity", "spring"], ["spring", "damping"]),
    "EnergyLedger": recipe(EnergyLedger, ["gravity", "spring"], ["spring", "damping", "input"]),
    "EnergyLedger of all": recipe(EnergyLedger, ["v"], ["u"], sinks=["w"], projections=True),
    # sinks
    "VectorLog": recipe(fx.VectorLog),
    "VectorLog, sampled": recipe(fx.VectorLog, size=2, period=0.1, offset=0.05),
    "VectorLog on demand": recipe(fx.VectorLog, triggers=["forced"]),
    "Printer": recipe(fx.Printer),
    "Printer, sampled": recipe(
        fx.Printer, size=2, period=0.5, template="{path} {time} {value[1]}", stream=Wastebasket()
    ),
    "StopWhen": recipe(fx.StopWhen, "it is positive"),
    "Terminator": recipe(fx.Terminator, size=2),
    # sources
    "Constant": recipe(fx.Constant, 2.0),
    "Constant vector": recipe(fx.Constant, [2.0, -1.0]),
    "Step": recipe(fx.Step, 0.5),
    "Step per component": recipe(fx.Step, at=[0.5, 1.0], to=[2.0, 3.0], initial=-1.0),
    "Ramp": recipe(fx.Ramp),
    "Ramp per component": recipe(
        fx.Ramp, slope=[2.0, -1.0], start=[0.5, 1.0], initial=0.25, stop=[np.inf, 2.0]
    ),
    "Sine": recipe(fx.Sine),
    "Sine per component": recipe(
        fx.Sine, amplitude=[1.0, 2.0], frequency=3.0, phase=[0.5, 0.0], offset=1.0
    ),
    "Chirp": recipe(fx.Chirp, 0.5, 2.0, 3.0),
    "Chirp, logarithmic": recipe(
        fx.Chirp, f0=0.5, f1=[2.0, 0.5], duration=3.0, amplitude=[1.0, 2.0], method="logarithmic"
    ),
    "Square": recipe(fx.Square),
    "Square per component": recipe(
        fx.Square, amplitude=[1.0, 2.0], period=0.7, duty=[0.25, 0.5], delay=0.3, offset=1.0
    ),
    "Trajectory, held": recipe(fx.Trajectory, [0.0, 1.0, 3.0], [0.0, 2.0, 3.0], kind="hold"),
    "Trajectory, linear": recipe(fx.Trajectory, [0.0, 1.0, 3.0], np.eye(3)),
    "Trajectory, cubic": recipe(fx.Trajectory, [0.0, 1.0, 2.5], [0.0, 2.0, -1.0], kind="cubic"),
    "Recorded": recipe(
        fx.Recorded, _BENCH, "u", time="t", kind="linear", units={"u": "N"}, gap=5.0
    ),
    "Noise": recipe(fx.Noise, 7, 0.1),
    "Noise, uniform": recipe(
        fx.Noise, 8, 0.1, mean=0.5, standard_deviation=[1, 2], distribution="uniform", size=2
    ),
    "BandLimitedNoise": recipe(fx.BandLimitedNoise, 7, 0.1, 2.0, 0.5),
    "Noise in a band": recipe(fx.BandLimitedNoise, 8, 0.1, 2.0, [0.5, 0.1], mean=0.5, size=2),
    "TrapezoidalProfile": recipe(fx.TrapezoidalProfile),
    "TrapezoidalProfile per component": recipe(
        fx.TrapezoidalProfile,
        at=[0.5, 1.0],
        to=[3.0, -1.0],
        initial=0.5,
        max_velocity=[1.0, 5.0],
        max_acceleration=2.0,
    ),
    "MinimumJerkProfile": recipe(fx.MinimumJerkProfile),
    "MinimumJerkProfile per component": recipe(
        fx.MinimumJerkProfile, at=[0.5, 1.0], to=[3.0, -1.0], initial=0.5, duration=[1.0, 2.0]
    ),
    "TimeFunction": recipe(fx.TimeFunction, bump, breaks=[1.0]),
    "TimeFunction of a foreign function": recipe(fx.TimeFunction, foreign_bump, size=1),
}

#: The classes of all blocks of the library, but for base classes, which are no blocks.
KINDS: list[type[fx.LeafSystem]] = [
    kind
    for place in (fx.blocks, fx.multibody)
    for kind in (getattr(place, name) for name in vars(place)["__all__"] if name != "FMUBlock")
    if isinstance(kind, type) and issubclass(kind, fx.LeafSystem) and not inspect.isabstract(kind)
]

_FIRST = {make.func: label for label, make in reversed(CATALOG.items())}
#: Labels of one variety of each kind.
ONE_OF_EACH = [each for each in CATALOG if each in _FIRST.values()]
#: Labels of what a run tries: one variety of each kind in the fast tier, all in the full one.
TRIED = by_tier(fast=ONE_OF_EACH, full=[*CATALOG])
