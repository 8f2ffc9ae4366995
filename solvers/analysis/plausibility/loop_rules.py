"""Rules about loops: gains per sample, and sampling, delays and limits beside the motions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from flexure.blocks.multibody.joints import Joint
from flexure.diagrams.contexts.context import LeafContext
from flexure.diagrams.contexts.updates import run_updates
from flexure.diagrams.systems.ports import OutputPort
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.events import Event, Periodic
from flexure.diagrams.values.kinds import CONTINUOUS
from flexure.solvers.analysis.plausibility.diagnosed_system import DiagnosedSystem
from flexure.solvers.analysis.plausibility.findings import Finding, exceeded

_NYQUIST = math.pi
_IDLE = 1e-6  # of the time constant of the fastest motion
_LONG = 1e4  # times that of the slowest
_TICKS = 1000
_NEARLY = 1e-4
_WEAK, _STRONG = 3e-3, 1e6
_OSCILLATES = 0.1
_GROWTH = 1e3
_LARGEST = 60  # numbers in states
_INCREMENTS = (1e-6, 1e-4)


def slow_sampling(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find sampling periods longer than half a period of the sampled motion.

    By the sampling theorem such samples cannot represent the motion; controllers usually sample ten
    times faster. The reference is the slowest vibration without the sampled loops, or the fastest
    motion that grows, which grows by a factor of 23 in π time constants.
    """
    growing = [mode for mode in diagnosed.modes if mode.pole.real > mode.error]
    waves = [mode for mode in diagnosed.modes if mode.pole.imag > _OSCILLATES * abs(mode.pole)]
    mode = growing[0] if growing else waves[-1] if waves else None
    masks = diagnosed.context.store.layout.masks
    for leaf, period in diagnosed.sampled if mode else ():
        follows = any(masks[slot] & CONTINUOUS for slot in leaf.sources)
        if mode and follows and period * abs(mode.pole) > _NYQUIST:
            path = diagnosed.system_path(leaf.system)
            yield exceeded(
                "slow sampling",
                (path, *diagnosed.moving(mode)),
                f"a period of {period:g} s beside a motion at {mode.frequency:.3g} Hz",
                (period * abs(mode.pole), "", _NYQUIST),
                "Samples this far apart cannot represent that motion",
                "Check the unit of the period (s, not ms) and stiffnesses and masses",
            )


def idle_sampling(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find periods and delays far shorter than all motions.

    A millionth of the fastest time constant has no effect except on the run time.
    """
    if not diagnosed.modes:
        return
    fastest = abs(diagnosed.modes[0].pole)
    for path, time in _times(diagnosed):
        if 0.0 < time * fastest < _IDLE:
            yield exceeded(
                "idle sampling",
                (path,),
                f"{time:g} s",
                (time * fastest, "", _IDLE),
                f"The fastest motion has a time constant of {1.0 / fastest:.2g} s",
                "Check its unit (s, not ms), or remove it",
            )


def long_delay(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find delays far longer than all motions.

    After ten thousand time constants even the slowest motion has long settled.
    """
    if not diagnosed.modes:
        return
    slowest = abs(diagnosed.modes[-1].pole)
    for path, handle, value in diagnosed.values():
        time = float(np.max(value, initial=0.0))
        if handle.name == "delay" and handle.unit == "s" and time * slowest > _LONG:
            yield exceeded(
                "long delay",
                (path,),
                f"{time:g} s",
                (time * slowest, "", _LONG),
                f"The slowest motion has a time constant of {1.0 / slowest:.2g} s",
                "Check its unit (s, not ms)",
            )


def _times(diagnosed: DiagnosedSystem) -> Iterator[tuple[str, float]]:
    """Yield periods and delays with their paths, each block once."""
    seen = {diagnosed.system_path(leaf.system): period for leaf, period in diagnosed.sampled}
    yield from seen.items()
    for path, handle, value in diagnosed.values():
        if handle.name == "delay" and handle.unit == "s":
            yield path, float(np.max(value, initial=0.0))


def periods(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find two sampling periods whose ratio is nearly, but not exactly, a simple fraction.

    0.1 s and 0.0333 s look like three samples in one, but their phase drifts: eventually one block
    reads values that are a whole period old. The rule checks fractions with denominators up to 10
    and numerators up to 1000, within 1e-4. Unrelated periods are not reported.
    """
    first = {period: diagnosed.system_path(leaf.system) for leaf, period in diagnosed.sampled}
    ordered = sorted(first)
    for k, short in enumerate(ordered):
        for long in ordered[k + 1 :]:
            ratio = long / short
            simple = Fraction(ratio).limit_denominator(10)
            error = abs(ratio / float(simple) - 1.0)
            if simple.numerator <= _TICKS and 1e-12 < error < _NEARLY:
                yield exceeded(
                    "periods",
                    (first[short], first[long]),
                    f"periods of {short!r} s and {long!r} s, nearly {simple.denominator} : "
                    f"{simple.numerator}",
                    (error, "", 1e-12),
                    "The phase between their samples drifts",
                    "Define one as a fraction or a multiple of the other",
                )


def actuator_limits(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find motors whose limit is far too small for their load, or so large that it never acts.

    The load is the weight of all bodies outboard of the joint times their reach, or their weight
    alone for a sliding joint. A motor usually has about that strength, or less with a
    counterbalance or a vertical axis. Below 1/300 it cannot even accelerate the bodies with g/300,
    as with N mm instead of N m. Above a million times the load, the limit never acts.
    """
    for leaf, tree in diagnosed.trees:
        solids = {solid.name: solid for solid in diagnosed.solids if solid.tree is leaf}
        names = [body.name for body in tree.topology.bodies]
        pull = float(np.linalg.norm(tree.gravity(leaf))) or 9.81
        for force in tree.force_inputs:
            joint = force.target
            if force.is_internal or not isinstance(joint, Joint) or joint.num_velocities != 1:
                continue
            mobilizer = tree.topology.mobilizer_of(joint)
            outside = [
                solids[names[number]]
                for number in range(1, len(names))
                if mobilizer in tree.topology.path_to(number) and names[number] in solids
            ]
            port = tree.input_port(force.name)
            turns = tree.output_port(f"{joint.name}_q").unit == "rad"
            lever = sum(solid.reach + float(solid.size[-1]) / 2.0 for solid in outside)
            load = pull * sum(solid.mass for solid in outside) * (lever if turns else 1.0)
            limit, path = _limit(diagnosed, port, force.limit)
            if load > 0.0 and not _WEAK * load <= limit <= _STRONG * load and limit < np.inf:
                weak = limit < load
                yield exceeded(
                    "actuator limit",
                    (path, diagnosed.path_of(port)),
                    f"a limit of {limit:.3g} {'N m' if turns else 'N'} beside a load of about "
                    f"{load:.3g}",
                    (limit / load, "", _WEAK if weak else _STRONG),
                    "It always acts: the motor cannot move this load" if weak else "It never acts",
                    "Check its unit (N m, not N mm)" if weak else "Remove the limit",
                )


def _limit(diagnosed: DiagnosedSystem, port: object, own: float) -> tuple[float, str]:
    """Return the smallest limit of a motor and the block that feeds it, with its path."""
    found = own, diagnosed.path_of(port)
    source = diagnosed.source_of(port)  # type: ignore[arg-type]
    if isinstance(source, OutputPort):
        limits = {each.name: each for each in source.system.numeric_parameters}
        for name in ("lower", "upper"):
            if name in limits:
                limit = float(np.max(np.abs(limits[name](diagnosed.context))))
                found = min(found, (limit, diagnosed.path_of(limits[name])))
    return found


def closed_limits(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find equal lower and upper limits, which block every signal."""
    for leaf in diagnosed.leaves:
        named = {each.name: each for each in leaf.system.numeric_parameters}
        if {"lower", "upper"} <= named.keys():
            low, high = (np.ravel(named[name](leaf)) for name in ("lower", "upper"))
            closed = low[low == high]
            if closed.size:
                yield exceeded(
                    "closed limits",
                    (diagnosed.path_of(named["upper"]), diagnosed.path_of(named["lower"])),
                    f"both limits are {closed[0]:g}",
                    (0.0, "", 0.0),
                    "The output is constant",
                    "Check both limits",
                )


def sampled_gain(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find sampled loops in which a deviation grows a thousandfold from one sample to the next.

    The map of a deviation over one period is the product of the updates, linearized by finite
    differences, and the matrix exponential of the motion between them. The growth is its spectral
    radius, divided by that without updates. A stable loop has less than 1; at 1000 a gain is far
    too large or a period too long. A jump, as at the edge of a quantizer, is no gain: the rule
    takes the smaller growth of two increments.
    """
    layout = diagnosed.context.store.layout
    by_period: dict[float, list[tuple[LeafContext, Event]]] = {}
    for leaf in diagnosed.leaves:
        for event in leaf.system.events:
            if event.kind != "publish" and isinstance(event.trigger, Periodic):
                by_period.setdefault(event.trigger.period, []).append((leaf, event))
    for period, due in by_period.items():
        leaves = list({leaf.system: leaf for leaf, _ in due}.values())
        groups = [state for leaf in leaves for state in leaf.system.discrete_states]
        size = layout.num_states + sum(state.size for state in groups)
        if size > _LARGEST:
            diagnosed.unchecked.append(f"sampled loops, because of {size} states at {period:g} s")
            continue
        if not layout.num_states or diagnosed.equations is None:
            continue
        growth = partial(_growth, diagnosed, period, due, leaves)
        found, least = min((growth(increment), increment) for increment in _INCREMENTS)
        if found > _GROWTH:
            blocks = tuple(diagnosed.system_path(leaf.system) for leaf in leaves)
            yield exceeded(
                "sampled gain",
                (*diagnosed.governing(partial(growth, least)), *blocks),
                f"deviations grow {found:.2g} times within one period of {period:g} s",
                (found, "", _GROWTH),
                "A stable loop has a growth below 1",
                "Check the gains of the sampled blocks and the unit of the period (s, not ms)",
            )


def _growth(
    diagnosed: DiagnosedSystem,
    period: float,
    due: Sequence[tuple[LeafContext, Event]],
    leaves: Sequence[LeafContext],
    increment: float,
) -> float:
    """Return the growth of a deviation in a period with updates over that without updates."""
    from scipy.linalg import expm

    store = diagnosed.context.store
    n = store.layout.num_states
    memories = [list(leaf.abstract) for leaf in leaves]
    states = [(leaf, state) for leaf in leaves for state in leaf.system.discrete_states]

    def read() -> FloatArray:
        return np.concatenate([store.x, *(state(leaf) for leaf, state in states)])

    def write(point: FloatArray) -> None:
        store.set_motion(store.time, freeze(point[:n].copy()))
        start = n
        for leaf, state in states:
            leaf.write_discrete_state(state.index, freeze(point[start : start + state.size].copy()))
            start += state.size
        for leaf, memory in zip(leaves, memories, strict=True):
            leaf.abstract = list(memory)  # so that noise is the same each time

    def updated(point: FloatArray) -> FloatArray:
        write(point)
        run_updates(due)
        return read()

    def rates(point: FloatArray) -> FloatArray:
        write(point)
        return np.array(store.time_derivatives())

    start = read()
    update, flow = [], []
    for k in range(len(start)):
        ahead, behind = start.copy(), start.copy()
        ahead[k] += increment
        behind[k] -= increment
        with np.errstate(all="ignore"):
            update.append((updated(ahead) - updated(behind)) / (2.0 * increment))
            if k >= n:
                flow.append((rates(ahead) - rates(behind)) / (2.0 * increment))
    write(start)
    generator = np.zeros((len(start), len(start)))
    generator[:n, :n] = diagnosed.matrix()
    if flow:
        generator[:n, n:] = np.transpose(flow)
    drift = expm(generator * period)
    step = drift @ np.transpose(update)
    if not (np.isfinite(drift).all() and np.isfinite(step).all()):
        return 0.0
    with_updates, without = (np.max(np.abs(np.linalg.eigvals(each))) for each in (step, drift))
    return float(with_updates / max(without, 1.0))


RULES = (
    sampled_gain,
    slow_sampling,
    idle_sampling,
    long_delay,
    periods,
    actuator_limits,
    closed_limits,
)
