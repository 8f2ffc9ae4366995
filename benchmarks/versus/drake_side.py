"""The side of Drake: its models, each with the fastest of its settings that is accurate enough.

A run is one ``AdvanceTo`` of a new simulator after ``Initialize``. Tried are several integration
schemes, with error control at tolerances from loose to tight, and with fixed steps. Each trial runs
in a forked process under a time limit, because some settings never come to an end; for the same
reason no step is longer than 0.1 s.
"""

from __future__ import annotations

import math
import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from benchmarks.versus import reference
from benchmarks.versus.drake_models import Model, models
from benchmarks.versus.drake_plants import part
from benchmarks.versus.sides import Contender, MissingPeerError, fastest, loosest, seconds
from benchmarks.versus.workloads import Array, BouncingBall, SampledPendulum, Workload

LONGEST_STEP = 0.1
TIME_LIMIT = 20.0

_EXPLICIT = ("runge_kutta5", "runge_kutta3", "bogacki_shampine3")
_IMPLICIT = ("radau3", "radau1", "implicit_euler")
_FIXED = {"runge_kutta5": 5, "runge_kutta3": 3, "runge_kutta2": 2}  # and their orders
_TIMES = 3  # timed runs of a trial that is accurate enough

#: A workload, or a member of an ensemble, with its model.
Pair: TypeAlias = tuple[Workload, Model]


@dataclass(frozen=True)
class Setting:
    """How Drake is to integrate.

    Attributes
    ----------
    scheme : str
        Name of the integration scheme.
    accuracy : float or None
        For the error control, and for the isolation of witness functions.
    step : float or None
        The fixed step in seconds; None with error control.
    """

    scheme: str
    accuracy: float | None = None
    step: float | None = None

    def __str__(self) -> str:
        """Name what is set."""
        step = "" if self.step is None else f", fixed step {self.step:.2g} s"
        accuracy = "" if self.accuracy is None else f", accuracy {self.accuracy:.1e}"
        return self.scheme + step + accuracy


#: Settings of one kind, by tolerance.
Family: TypeAlias = Callable[[float], Setting]


def contenders(workload: Workload) -> list[Contender]:
    """Return the sides of Drake for a workload, prepared: composed, and written as one matrix.

    Raises
    ------
    MissingPeerError
        When pydrake is not installed.
    """
    members = workload.members
    for member in members:
        reference.motion(member)  # once for all forked processes
    by_member = [models(member) for member in members]
    if len(members) > 1:
        by_member = [forms[:1] for forms in by_member]  # an ensemble of composed models
    candidates: dict[str, list[Contender]] = {}
    for forms in zip(*by_member, strict=True):
        pairs = list(zip(members, forms, strict=True))
        for pair in pairs:
            check(*pair)
        candidates.setdefault(forms[0].side, []).extend(_candidates(workload, pairs))
    return [_best(workload, group) for group in candidates.values()]


def check(workload: Workload, model: Model) -> None:
    """Compare the derivatives of a model with those of the reference at a random state."""
    context = model.system.CreateDefaultContext()
    model.prepare(context)
    x = workload.probe
    context.SetTime(0.3)
    context.SetContinuousState(x)
    found = model.system.EvalTimeDerivatives(context).CopyToVector()
    expected = reference.equations(workload)(0.3, x)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


# One run ------------------------------------------------------------------------------------------


def simulator(workload: Workload, model: Model, setting: Setting) -> Any:
    """Prepare a simulator, up to its initialization."""
    analysis = part("systems.analysis")
    config = analysis.SimulatorConfig(
        integration_scheme=setting.scheme,
        max_step_size=setting.step or LONGEST_STEP,
        use_error_control=setting.step is None,
    )
    if setting.accuracy is not None:
        config.accuracy = setting.accuracy
    prepared = analysis.Simulator(model.system)
    analysis.ApplySimulatorConfig(config, prepared)
    context = prepared.get_mutable_context()
    model.prepare(context)
    context.SetContinuousState(workload.initial)
    if setting.accuracy is not None:
        context.SetAccuracy(setting.accuracy)
    return prepared


def run(workload: Workload, model: Model, setting: Setting) -> float:
    """Run once, and return the seconds."""
    prepared = simulator(workload, model, setting)
    prepared.Initialize()
    return seconds(lambda: prepared.AdvanceTo(workload.horizon))


def evaluations(workload: Workload, model: Model, setting: Setting) -> int:
    """Run once, and return how often the derivatives were evaluated."""
    prepared = simulator(workload, model, setting)
    prepared.AdvanceTo(workload.horizon)
    return int(prepared.get_integrator().get_num_derivative_evaluations())


def run_error(workload: Workload, model: Model, setting: Setting) -> float:
    """Run once while a monitor looks at the end of every step, and return the error."""
    prepared = simulator(workload, model, setting)
    times: list[float] = []
    values: list[Array] = []

    def look(context: Any) -> None:
        times.append(context.get_time())
        values.append(model.observe(context))

    if not model.logs:
        prepared.set_monitor(look)
    prepared.Initialize()
    prepared.AdvanceTo(workload.horizon)
    if not model.logs:
        return reference.error(workload, times, values)
    logs = [sink.FindLog(prepared.get_context()) for sink in model.logs]
    return reference.error(
        workload, logs[0].sample_times(), np.column_stack([log.data()[0] for log in logs])
    )


# The search for the best setting ------------------------------------------------------------------


def _best(workload: Workload, candidates: Sequence[Contender]) -> Contender:
    """Return the fastest of some settings, of which there has to be one."""
    if not candidates:
        raise MissingPeerError(
            f"{workload.title}: Drake does not reach {workload.target:g} in time"
        )
    return fastest(candidates)


def _candidates(workload: Workload, pairs: Sequence[Pair]) -> list[Contender]:
    """Return the loosest setting of each kind that is accurate enough."""
    found = []
    shortest = math.inf
    for family in _families(workload):
        trials = _Trials(workload, pairs, family, shortest)
        try:
            good = loosest(trials.error, workload.target)
        except TimeoutError:
            continue
        if good is not None:
            found.append(_contender(workload, pairs, family(good[0]), good[1]))
            shortest = min(shortest, trials.seconds[good[0]])
    return found


class _Trials:
    """Trials of one kind of settings; what takes much longer than the fastest is cut off."""

    def __init__(
        self, workload: Workload, pairs: Sequence[Pair], family: Family, shortest: float
    ) -> None:
        self.seconds: dict[float, float] = {}
        self._workload = workload
        self._pairs = pairs
        self._family = family
        self._limit = min(TIME_LIMIT, max(1.0, 3.0 * (1 + _TIMES) * shortest))
        self._patience = 2

    def error(self, tolerance: float) -> float:
        """Return the error of a setting; note the time where that is good enough."""
        setting, target = self._family(tolerance), self._workload.target
        outcome = within(self._limit, lambda: _trial(self._pairs, setting, target))
        if outcome is None:
            self._patience -= 1
            if not self._patience:
                raise TimeoutError
        error, self.seconds[tolerance] = outcome or (math.inf, math.inf)
        return float(error)


def _contender(
    workload: Workload, pairs: Sequence[Pair], setting: Setting, error: float
) -> Contender:
    model = pairs[0][1]
    note = model.form
    if workload.weight != 1.0:
        note += f"; {len(pairs)} of the members, one after the other, scaled up"
    return Contender(
        model.side,
        lambda: workload.weight * sum(run(*pair, setting) for pair in pairs),
        error,
        str(setting),
        note,
        evaluations(*pairs[0], setting),
    )


def _families(workload: Workload) -> Iterator[Family]:
    """Go through the kinds of settings that are tried."""
    for scheme in (*_IMPLICIT, *_EXPLICIT) if workload.stiff else _EXPLICIT:
        yield partial(Setting, scheme)
    for scheme, order in _FIXED.items():
        match workload:
            case Workload(stiff=True):
                return  # nothing but stability decides, which error control finds, too
            case SampledPendulum(period=period):
                yield partial(_stepwise, scheme, period, math.inf)
            case BouncingBall():
                yield partial(Setting, scheme, step=LONGEST_STEP)
            case _:
                yield partial(_stepwise, scheme, LONGEST_STEP, order)


def _stepwise(scheme: str, longest: float, order: float, tolerance: float) -> Setting:
    """Return fixed steps that shrink with the tolerance as the order of the scheme suggests."""
    return Setting(scheme, step=min(longest, tolerance ** (1.0 / order)))


def _trial(pairs: Sequence[Pair], setting: Setting, target: float) -> tuple[float, float]:
    """Return the error of a setting and, where that is good enough, the time; in one process."""
    error = max(run_error(*pair, setting) for pair in pairs)
    if not error <= target:
        return math.inf, math.inf
    return error, min(sum(run(*pair, setting) for pair in pairs) for _ in range(_TIMES))


def within(limit: float, action: Callable[[], Any]) -> Any:
    """Return what an action returns in a forked process, or None if it fails or takes too long."""
    fork = multiprocessing.get_context("fork")
    receiving, sending = fork.Pipe(duplex=False)

    def act() -> None:
        with suppress(RuntimeError):  # by which Drake says that an integration failed
            sending.send(action())

    process = fork.Process(target=act, daemon=True)
    with warnings.catch_warnings():
        # Threads of other libraries stay behind; the new process does not wait for them.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    sending.close()
    try:
        return receiving.recv() if receiving.poll(limit) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()
        receiving.close()
