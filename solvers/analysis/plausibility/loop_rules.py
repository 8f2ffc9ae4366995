"""Rules about loops: sampling, delays and limits, compared with the motions they act on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from flexure.blocks.multibody.joints import Joint
from flexure.diagrams.systems.ports import OutputPort
from flexure.diagrams.values.kinds import CONTINUOUS
from flexure.solvers.analysis.plausibility.diagnosed_system import DiagnosedSystem
from flexure.solvers.analysis.plausibility.findings import Finding

_NYQUIST = math.pi
_IDLE = 1e-6  # of the time constant of the fastest motion
_LONG = 1e4  # times that of the slowest
_TICKS = 1000
_NEARLY = 1e-4
_WEAK, _STRONG = 3e-3, 1e6
_OSCILLATES = 0.1


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
            yield Finding(
                "slow sampling",
                (path, *diagnosed.moving(mode)),
                f"a period of {period:g} s beside a motion at {mode.frequency:.3g} Hz",
                period * abs(mode.pole),
                "",
                _NYQUIST,
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
            yield Finding(
                "idle sampling",
                (path,),
                f"{time:g} s",
                time * fastest,
                "",
                _IDLE,
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
            yield Finding(
                "long delay",
                (path,),
                f"{time:g} s",
                time * slowest,
                "",
                _LONG,
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
                yield Finding(
                    "periods",
                    (first[short], first[long]),
                    f"periods of {short!r} s and {long!r} s, nearly {simple.denominator} : "
                    f"{simple.numerator}",
                    error,
                    "",
                    1e-12,
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
                yield Finding(
                    "actuator limit",
                    (path, diagnosed.path_of(port)),
                    f"a limit of {limit:.3g} {'N m' if turns else 'N'} beside a load of about "
                    f"{load:.3g}",
                    limit / load,
                    "",
                    _WEAK if weak else _STRONG,
                    "It always acts: the motor cannot move this load" if weak else "It never acts",
                    "Check its unit (N m, not N mm)" if weak else "Remove the limit",
                )


def _limit(diagnosed: DiagnosedSystem, port: object, own: float) -> tuple[float, str]:
    """Return the smallest limit of a motor and the block that feeds it, with its path."""
    found = own, diagnosed.path_of(port)
    source = diagnosed.source_of(port)  # type: ignore[arg-type]
    if isinstance(source, OutputPort):
        limits = {each.name: each for each in source.system.numeric_parameters}  # type: ignore[attr-defined]
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
                yield Finding(
                    "closed limits",
                    (diagnosed.path_of(named["upper"]), diagnosed.path_of(named["lower"])),
                    f"both limits are {closed[0]:g}",
                    0.0,
                    "",
                    0.0,
                    "The output is constant",
                    "Check both limits",
                )


RULES = (slow_sampling, idle_sampling, long_delay, periods, actuator_limits, closed_limits)
