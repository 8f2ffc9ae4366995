"""What is run, as plain data: the one place for every number that the sides share.

Each class says in its docstring which equations it stands for and what is compared with the
reference. The order of the states is the same for all sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One system, how long it runs, and how accurate a run has to be.

    Attributes
    ----------
    horizon : float
        Every run leads from zero to this time, in seconds.
    target : float
        Largest error that counts, relative to the largest compared number.
    stiff : bool
        Whether it takes implicit methods.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    stiff: ClassVar[bool] = False

    horizon: float
    target: float = 1e-6

    @property
    def initial(self) -> Array:
        """The initial state."""
        raise NotImplementedError

    @property
    def probe(self) -> Array:
        """A state like any other, at which the derivatives of all sides are compared."""
        rng = np.random.default_rng(1)
        return self.initial + 0.1 * rng.normal(size=self.initial.size)

    @property
    def members(self) -> Sequence[Workload]:
        """The runs that are measured one after the other."""
        return [self]

    @property
    def weight(self) -> float:
        """How many runs each of the members stands for."""
        return 1.0


@dataclass(frozen=True, kw_only=True)
class ControlledMass(Workload):
    """A PID controller moves a mass on a spring and a damper along a sine.

    With e = amplitude sin(frequency t) − q, and the states integral, filtered, q, v::

        integral′ = e
        filtered′ = (e − filtered) / filter_time
        m v′ = kp e + ki integral + kd filtered′ − d v − k q,    q′ = v

    All states are compared. In blocks: a source, the difference, P, I and D, their sum, the mass.
    """

    name: ClassVar = "pid"
    title: ClassVar = "PID on a mass"

    kp: float = 50.0
    ki: float = 20.0
    kd: float = 8.0
    filter_time: float = 0.01
    m: float = 1.0
    k: float = 4.0
    d: float = 0.2
    amplitude: float = 1.0
    frequency: float = 2.0
    horizon: float = 20.0

    @property
    def initial(self) -> Array:
        """All at rest."""
        return np.zeros(4)


@dataclass(frozen=True, kw_only=True)
class MassChain(Workload):
    """Point masses on a rail, with a spring and a damper between neighbors and to the wall.

    With the displacements q of masses that stand ``spacing`` apart at first, the spring before mass
    i pulls with fᵢ = k (spacing + qᵢ − qᵢ₋₁ − rest_length) + d (vᵢ − vᵢ₋₁), where the wall has q =
    v = 0, and m vᵢ′ = fᵢ₊₁ − fᵢ, where the last mass has no spring behind it. The states are all q,
    then all v; all are compared.
    """

    name: ClassVar = "chain"
    title: ClassVar = "chain of masses"

    count: int = 100
    m: float = 1.0
    k: float = 100.0
    d: float = 0.5
    rest_length: float = 0.8
    spacing: float = 1.0
    horizon: float = 10.0

    @property
    def initial(self) -> Array:
        """At rest, all springs stretched."""
        return np.zeros(2 * self.count)


@dataclass(frozen=True, kw_only=True)
class SampledPendulum(Workload):
    """A PD controller with a zero-order hold on a damped pendulum.

    m l² q″ = u − b q′ − m g l sin q, where u is sampled at the multiples of ``period`` as
    −(kp q + kd q′) and is zero before the first sample. The angle and the torque are logged with
    the same period, the torque as it was before the sample of the instant; the logs are compared.
    """

    name: ClassVar = "pendulum"
    title: ClassVar = "pendulum under 1 kHz PD"

    m: float = 1.0
    length: float = 0.5
    b: float = 0.1
    g: float = 9.81
    kp: float = 2.0
    kd: float = 0.1
    period: float = 1e-3
    angle: float = 1.0
    horizon: float = 10.0

    @property
    def initial(self) -> Array:
        """Deflected, at rest."""
        return np.array([self.angle, 0.0])

    @property
    def ticks(self) -> Array:
        """The times of the samples and of the logs."""
        return np.arange(round(self.horizon / self.period) + 1) * np.float64(self.period)


@dataclass(frozen=True, kw_only=True)
class BouncingBall(Workload):
    """A ball falls and bounces: q″ = −g, and at q = 0 the speed v becomes −restitution v.

    The horizon lies between the impacts 15 and 16. The states are q and v; the height is compared,
    since the speed jumps at instants that differ by rounding.
    """

    name: ClassVar = "ball"
    title: ClassVar = "bouncing ball"

    g: float = 9.81
    height: float = 1.0
    restitution: float = 0.9
    impacts: int = 15
    horizon: float = 6.8

    @property
    def initial(self) -> Array:
        """Above the floor, at rest."""
        return np.array([self.height, 0.0])


@dataclass(frozen=True, kw_only=True)
class StiffOscillator(Workload):
    """A mass on a hard spring with heavy damping, pushed slowly: m q″ + d q′ + k q = F sin(ω t).

    Its rates, −50 and −20000 per second, are 400 apart, and the push has 2 rad/s. Both states,
    q and v, are compared.
    """

    name: ClassVar = "stiff"
    title: ClassVar = "stiff oscillator"
    stiff: ClassVar = True

    m: float = 1.0
    k: float = 1e6
    d: float = 2e4
    amplitude: float = 1e6
    frequency: float = 2.0
    horizon: float = 10.0

    @property
    def initial(self) -> Array:
        """Deflected, at rest."""
        return np.array([0.5, 0.0])


@dataclass(frozen=True, kw_only=True)
class Ensemble(Workload):
    """Many controlled masses with other gains, each between half and 1.5 times its default.

    Who runs them one after the other gains nothing from their number, so ``sample`` of them are
    run, and the time is scaled up.
    """

    name: ClassVar = "ensemble"
    title: ClassVar = "ensemble of PIDs"

    count: int = 1000
    sample: int = 10
    seed: int = 7
    base: ControlledMass = ControlledMass()
    horizon: float = base.horizon

    @cached_property
    def everyone(self) -> list[ControlledMass]:
        """All members."""
        draws = np.random.default_rng(self.seed).uniform(0.5, 1.5, size=(self.count, 3)).tolist()
        base = self.base
        return [
            replace(base, kp=base.kp * p, ki=base.ki * i, kd=base.kd * d, horizon=self.horizon)
            for p, i, d in draws
        ]

    @property
    def initial(self) -> Array:
        """That of each member."""
        return self.base.initial

    @property
    def members(self) -> Sequence[Workload]:
        """The sample."""
        return self.everyone[: self.sample]

    @property
    def weight(self) -> float:
        """The share of the sample, inverted."""
        return self.count / len(self.members)


@dataclass(frozen=True, kw_only=True)
class Mechanism(Workload):
    """Bodies, joints and force elements, under gravity along −z.

    The states are all positions, then all velocities; all are compared. The largest number among
    them is between one and ten, while the stiffest spring sags by 1e-5 m under the weight that it
    carries. So that forces are right to two or three digits, the accuracy is 1e-8. That favors
    methods of high order: at 1e-6, ratios to Drake are between a third and two thirds of those.
    """

    g: float = 9.81
    target: float = 1e-8


@dataclass(frozen=True, kw_only=True)
class LinkChain(Mechanism):
    """Five rods hang from the world and from each other by joints with springs and dampers.

    The joint k is at the upper end of its rod and turns it by the angle θₖ about the axis of the
    rod above that ``axes`` names; its torque is −k θₖ − d θₖ′. The rods, of uniform density, hang
    straight down at θ = 0. The positions are the angles.
    """

    axes: ClassVar[str]

    length: float = 0.5
    m: float = 1.0
    radius: float = 0.05
    k: float = 2.0
    d: float = 0.1
    start: tuple[float, ...] = (0.8, 0.5, -0.3, 0.6, 0.4)
    horizon: float = 10.0

    @property
    def initial(self) -> Array:
        """Deflected, at rest."""
        return np.concatenate([self.start, np.zeros(len(self.start))])

    @property
    def moments(self) -> Array:
        """Moments of inertia of a rod about its center, across and across and along."""
        across = self.m * (3.0 * self.radius**2 + self.length**2) / 12.0
        return np.array([across, across, 0.5 * self.m * self.radius**2])


@dataclass(frozen=True, kw_only=True)
class PlanarLinks(LinkChain):
    """All joints of the rods turn about y, so that the motion stays in a plane."""

    name: ClassVar = "links"
    title: ClassVar = "five links in a plane"
    axes: ClassVar = "yyyyy"


@dataclass(frozen=True, kw_only=True)
class SpatialLinks(LinkChain):
    """The joints of the rods turn about y and x by turns."""

    name: ClassVar = "links3d"
    title: ClassVar = "five links in space"
    axes: ClassVar = "yxyxy"


@dataclass(frozen=True, kw_only=True)
class MountedBody(Mechanism):
    """A free body on Drake's LinearBushingRollPitchYaw, whose equations `mechanics` has.

    The bushing joins the origins of the world and of the body, which is the center of mass. All of
    its stiffnesses and dampings are equal, those of torques and those of forces. The states are
    the quaternion and the position of the body, then its angular velocity and its velocity in the
    world.
    """

    name: ClassVar = "bushing"
    title: ClassVar = "body on a bushing"

    m: float = 1.0
    moments: tuple[float, float, float] = (0.02, 0.03, 0.04)
    torsional_k: float = 100.0
    torsional_d: float = 1.0
    k: float = 1e4
    d: float = 1e2
    horizon: float = 1.0

    @property
    def initial(self) -> Array:
        """Displaced, turned by 17 degrees, and in motion."""
        quaternion = np.array([1.0, 0.1, 0.05, -0.1])
        position, angular, linear = [0.01, 0.02, -0.01], [0.5, 0.3, -0.2], [0.1, 0.2, 0.1]
        return np.concatenate([quaternion / np.linalg.norm(quaternion), position, angular, linear])


@dataclass(frozen=True, kw_only=True)
class StifflyMountedBody(MountedBody):
    """The same body on a hard bushing with heavy damping, whose rates are from −10 to −20000."""

    name: ClassVar = "stiff-bushing"
    title: ClassVar = "body on a stiff bushing"
    stiff: ClassVar = True

    torsional_k: float = 1e3
    torsional_d: float = 1e2
    k: float = 1e6
    d: float = 2e4


@dataclass(frozen=True, kw_only=True)
class BodyChain(Mechanism):
    """Free bodies, each joined to the one before by a spring with a damper, the first to the world.

    Springs act between the centers of the bodies, which are balls, with the force k (ℓ − length) +
    d ℓ′ at the distance ℓ. The states are the quaternions and positions of all bodies, body by
    body, then the angular velocities and velocities in the world.
    """

    name: ClassVar = "bodies"
    title: ClassVar = "chain of free bodies"

    count: int = 100
    m: float = 0.1
    radius: float = 0.01
    k: float = 1000.0
    d: float = 1.0
    length: float = 0.1
    seed: int = 3
    horizon: float = 0.5

    @property
    def initial(self) -> Array:
        """In a horizontal line with relaxed springs, at rest but for some spin."""
        q = np.zeros((self.count, 7))
        q[:, 0] = 1.0
        q[:, 4] = self.length * np.arange(1, self.count + 1)
        v = np.zeros((self.count, 6))
        v[:, :3] = np.random.default_rng(self.seed).uniform(-1.0, 1.0, size=(self.count, 3))
        return np.concatenate([q.ravel(), v.ravel()])

    @property
    def probe(self) -> Array:
        """Distances change by a few percent only, so that no two bodies meet."""
        rng = np.random.default_rng(1)
        return self.initial + 0.02 * rng.normal(size=self.initial.size)


@dataclass(frozen=True, kw_only=True)
class HingedDoor(Mechanism):
    """A door with Drake's DoorHinge, whose constants are the defaults, and a vertical axis.

    It is a panel of uniform density with its hinge at one edge, ``width`` wide. With the moment of
    inertia J about the hinge, s(x) = tanh(x) and p(x) = 2 s(x) (1 − s(x)²), J q″ is the sum of::

        −spring_k (q − spring_angle)                    spring
        catch_torque p(2 q / catch_width − 1)           catch
        −dynamic s(q′/threshold)                        friction
        −static p(q′/threshold)
        −viscous q′

    The spring closes the door, until friction is stronger than the spring and the door only creeps:
    there the rate is about −6000 per second.
    """

    name: ClassVar = "door"
    title: ClassVar = "door on a hinge"
    stiff: ClassVar = True

    m: float = 9.0
    width: float = 0.6
    thickness: float = 0.02
    spring_k: float = 1.5
    spring_angle: float = -1.5
    catch_torque: float = 15.0
    catch_width: float = 0.02
    dynamic: float = 3.0
    static: float = 2.0
    viscous: float = 1.0
    threshold: float = 1e-3
    angle: float = 1.5
    horizon: float = 5.0

    @property
    def initial(self) -> Array:
        """Open, at rest."""
        return np.array([self.angle, 0.0])

    @property
    def probe(self) -> Array:
        """In the catch, about as slow as the threshold."""
        return np.array([0.3 * self.catch_width, 0.7 * self.threshold])

    @property
    def inertia(self) -> float:
        """Moment of inertia J about the hinge."""
        return self.m * (self.width**2 / 3.0 + self.thickness**2 / 12.0)


def all_workloads(*, quick: bool = False) -> list[Workload]:
    """Return the workloads; shorter ones, and fewer members of the ensemble, to be quick."""
    if not quick:
        return [
            ControlledMass(),
            MassChain(),
            SampledPendulum(),
            BouncingBall(),
            StiffOscillator(),
            Ensemble(),
            PlanarLinks(),
            SpatialLinks(),
            MountedBody(),
            StifflyMountedBody(),
            BodyChain(),
            HingedDoor(),
        ]
    return [
        ControlledMass(horizon=10.0),
        MassChain(horizon=5.0),
        SampledPendulum(horizon=5.0),
        BouncingBall(),
        StiffOscillator(horizon=5.0),
        Ensemble(horizon=10.0, sample=3),
        PlanarLinks(horizon=2.0),
        SpatialLinks(horizon=2.0),
        MountedBody(),
        StifflyMountedBody(),
        BodyChain(count=20, horizon=0.2),
        HingedDoor(),
    ]
