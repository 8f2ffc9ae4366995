"""Counters of a simulator."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Statistics:
    """Counts of steps, evaluations and events since a simulator's initialization.

    Attributes
    ----------
    steps : int
        Accepted integrator steps.
    native_steps : int
        Those among them that compiled loops took.
    restarts : int
        Times the integrator was started.
    evaluations : int
        Evaluations of the time derivatives, those for Jacobians included.
    jacobians, factorizations : int
        Jacobians and matrix factorizations of implicit methods.
    publishes, discrete_updates, unrestricted_updates : int
        Handlers called.
    witness_events : int
        Witness functions that triggered.
    methods : list of tuple
        Time and name of every integration method used, and why.

    See Also
    --------
    simulate : Simulate a system.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("charge")
    >>> builder.add_all(fx.Step("source", at=0.5), fx.FirstOrderLag("lag", time_constant=1.0))
    >>> builder.connect_chain("source", "lag")
    >>> charge = builder.build()
    >>> statistics = fx.simulate(charge, 1.5).statistics
    >>> statistics.steps > 0, statistics.witness_events
    (True, 0)
    """

    steps: int = 0
    native_steps: int = 0
    restarts: int = 0
    evaluations: int = 0
    jacobians: int = 0
    factorizations: int = 0
    publishes: int = 0
    discrete_updates: int = 0
    unrestricted_updates: int = 0
    witness_events: int = 0
    methods: list[tuple[float, str, str]] = field(default_factory=list)
