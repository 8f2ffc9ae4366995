"""A lid that MuJoCo can express, too: a hinge with spring and damper, and a PD actuator.

The panel of mass m turns about a horizontal axis at its lower edge, upright at q = 0. With J about
the axis, and the setpoint r, which steps at ``STEP_AT``::

    J q″ = m g l sin q - k q - d q′ + kp (r - q) - kd q′

Both sides take many runs that differ in m, k, d, kp and kd. What MuJoCo's ``rollout`` needs for
that, a model for each run, is made before anything is timed.
"""

from __future__ import annotations

import copy
import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

import flexure as fx
from benchmarks.versus.sides import MissingPeerError
from benchmarks.versus.workloads import Array

END, STEP_AT, TARGET = 5.0, 0.5, 1.0
ANGLE = "lid.axis.angle"
#: Of each constant, the nominal value.
NOMINAL = {
    "lid.panel.mass": 4.0,
    "lid.spring.stiffness": 10.0,
    "lid.axis.damping[0]": 1.0,
    "p.gain": 60.0,
    "d.gain": 12.0,
}
INTEGRATORS = ("EULER", "IMPLICIT", "IMPLICITFAST", "RK4")
_GRAVITY, _SIZE, _HEIGHT = 9.81, (0.02, 0.6, 0.7), 0.35
_STATES = 100_000_000  # bytes that a rollout may take at once
_MOST = 2048  # steps up to that of the setpoint
_MODEL = """
<mujoco>
  <option gravity="0 0 {gravity}"><flag contact="disable" constraint="disable"/></option>
  <worldbody><body>
    <inertial pos="0 0 {height}" mass="{mass}" diaginertia="{inertia}"/>
    <joint name="axis" type="hinge" axis="0 1 0" stiffness="{stiffness}" damping="{damping}"/>
  </body></worldbody>
  <actuator><position joint="axis" kp="{kp}" kv="{kd}"/></actuator>
</mujoco>
"""


def build() -> fx.Diagram:
    """Return the lid as a diagram of Flexure."""
    mass, stiffness, damping, kp, kd = NOMINAL.values()
    plant = fx.PlantBuilder("lid", gravity=(0.0, 0.0, -_GRAVITY))
    inertia = fx.SpatialInertia.solid_box(mass, size=_SIZE)
    panel = plant.add_body("panel", inertia, com=(0.0, 0.0, _HEIGHT))
    axis = fx.RevoluteJoint("axis", plant.world, panel, axis=(0, 1, 0), damping=damping)
    plant.add_joint(axis)
    plant.add_force_element(fx.JointSpring("spring", axis, stiffness=stiffness))
    plant.add_actuator("motor", axis)

    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        plant.build(),
        fx.Step("target", at=STEP_AT, to=TARGET),
        fx.Sum("error", "+-"),
        fx.Gain("p", kp),
        fx.Gain("d", kd),
        fx.Sum("torque", "+-"),
    )
    builder.connect("target.y", "error.u1")
    builder.connect("lid.axis.angle", "error.u2")
    builder.connect_chain("error", "p", "torque.u1")
    builder.connect("lid.axis.rate", "d.u")
    builder.connect("d.y", "torque.u2")
    builder.connect("torque.y", "lid.motor")
    return builder.build()


class Rollouts:
    """Runs of MuJoCo's ``rollout`` over as many threads as there are processors.

    Parameters
    ----------
    plan : Plan
        What the runs differ in, by the paths of `NOMINAL`.

    Raises
    ------
    MissingPeerError
        When MuJoCo is not installed.
    """

    def __init__(self, plan: fx.plans.Plan) -> None:
        try:
            self._mujoco: Any = importlib.import_module("mujoco")
            self._rollout: Any = importlib.import_module("mujoco.rollout")
        except ImportError as error:
            raise MissingPeerError(
                "mujoco is not installed (pip install mujoco): no comparison with MuJoCo"
            ) from error
        self._threads = os.cpu_count() or 1
        nominal = self._model()
        self._data = [self._mujoco.MjData(nominal) for _ in range(self._threads)]
        self._models = []
        rows = np.column_stack([plan[path] for path in NOMINAL])
        for mass, stiffness, damping, kp, kd in rows.tolist():
            model = copy.copy(nominal)
            model.body_inertia[1] *= mass / model.body_mass[1]
            model.body_mass[1] = mass
            model.jnt_stiffness[0], model.dof_damping[0] = stiffness, damping
            model.actuator_gainprm[0, 0] = kp
            model.actuator_biasprm[0, 1:3] = -kp, -kd
            self._models.append(model)

    def run(self, integrator: str, pieces: int, runs: int | None = None) -> tuple[Array, Array]:
        """Take fixed steps, a number of them up to the step of the setpoint.

        Returns
        -------
        times : ndarray, shape (K,)
            The ends of the steps.
        angles : ndarray, shape (N, K)
            Of the last runs alone where those of all take too much memory.
        """
        mujoco, models = self._mujoco, self._models[:runs]
        step = STEP_AT / pieces
        steps = round(END / step)
        for model in models:
            model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
            model.opt.timestep = step
        control = np.full((1, steps, 1), TARGET)
        control[0, :pieces] = 0.0
        size = mujoco.mj_stateSize(models[0], mujoco.mjtState.mjSTATE_FULLPHYSICS)
        most = max(1, _STATES // (8 * steps * size))
        with self._rollout.Rollout(nthread=self._threads) as rollout:
            for first in range(0, len(models), most):
                part = models[first : first + most]
                initial = np.zeros((len(part), size))
                states, _ = rollout.rollout(part, self._data, initial, control, nstep=steps)
        times: Array = step * np.arange(1.0, steps + 1.0)
        return times, states[:, :, 1]

    def _model(self) -> Any:
        """Return the model of the nominal values."""
        mass, stiffness, damping, kp, kd = NOMINAL.values()
        a, b, c = np.square(_SIZE).tolist()
        inertia = [mass * each / 12.0 for each in (b + c, a + c, a + b)]
        text = _MODEL.format(
            gravity=-_GRAVITY,
            height=_HEIGHT,
            mass=mass,
            inertia=" ".join(map(repr, inertia)),
            stiffness=stiffness,
            damping=damping,
            kp=kp,
            kd=kd,
        )
        return self._mujoco.MjModel.from_xml_string(text)


def fewest_pieces(is_good: Callable[[int], bool], first: int = 1) -> int | None:
    """Return the least number of steps that is good; None where that takes more than `_MOST`.

    Tried are twice as many steps as before, from a first number on, and then those in between.

    >>> fewest_pieces(lambda pieces: pieces >= 37)
    37
    """
    good = first
    while not is_good(good):
        good *= 2
        if good > _MOST:
            return None
    bad = good // 2
    while good - bad > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if is_good(middle) else (good, middle)
    return good
