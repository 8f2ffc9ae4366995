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
    """

    name: ClassVar[str]
    title: ClassVar[str]

    horizon: float
    target: float = 1e-6

    @property
    def initial(self) -> Array:
        """The initial state."""
        raise NotImplementedError

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
        ]
    return [
        ControlledMass(horizon=10.0),
        MassChain(horizon=5.0),
        SampledPendulum(horizon=5.0),
        BouncingBall(),
        StiffOscillator(horizon=5.0),
        Ensemble(horizon=10.0, sample=3),
    ]
