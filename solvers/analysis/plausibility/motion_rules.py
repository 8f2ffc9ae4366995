"""Rules about motions: modes of the linearized equations, and accelerations at the start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from flexure.diagrams.contexts.context import LeafContext
from flexure.diagrams.systems.ports import OutputPort
from flexure.solvers.analysis.plausibility.diagnosed_system import DiagnosedSystem, Mode
from flexure.solvers.analysis.plausibility.findings import Finding, exceeded

_FASTEST = 1e6  # Hz
_SPREAD = 1e9
_SOUND = 12000.0  # m/s
_ABOVE_SOUND = 3.0
_OSCILLATES = 0.1  # part of a pole that is imaginary
_FAINT = 1e-7
_VIOLENT = 1e5  # m/s²


def fast_modes(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find a motion that is faster than a megahertz.

    Mechanisms vibrate at up to some 10 kHz and their controllers sample at up to some 100 kHz;
    micromechanical resonators reach 1 MHz. In a faster model, a gain or a stiffness is too large,
    or a mass, a filter or a threshold too small, by orders of magnitude. Motions of nodes inside
    divided beams do not count: their frequencies depend on the division.
    """
    inside = _of_nodes(diagnosed)
    for mode in diagnosed.modes[:1]:
        if mode.shares[inside].sum() > 0.5:
            continue
        if mode.frequency > _FASTEST:
            yield _about(
                diagnosed,
                mode,
                "fast mode",
                (mode.frequency, "Hz", _FASTEST),
                f"{_described(mode)}, far faster than mechanisms and controllers are",
            )


def _of_nodes(diagnosed: DiagnosedSystem) -> npt.NDArray[np.bool_]:
    """Return a mask of the states of nodes inside divided elements."""
    found = np.zeros(diagnosed.context.store.layout.num_states, dtype=bool)
    for leaf, tree in diagnosed.trees:
        start = leaf.x_slice.start
        for mobilizer in tree.topology.mobilizers:
            if mobilizer.joint.child_body.is_node:
                v = tree.velocities_in_state(mobilizer.joint)
                found[start + mobilizer.q.start : start + mobilizer.q.stop] = True
                found[start + v.start : start + v.stop] = True
    return found


def sound(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find rigid bodies that vibrate faster than sound can cross them.

    A bar of the length L has its first longitudinal resonance at c / (2 L). In diamond sound has
    c = 12 km/s, in steel 5 km/s; above three times that frequency no body of the mechanism is
    rigid: a stiffness or the gain of a controller is far too large, or a mass too small. The limit
    is that of the smallest body; only poles that oscillate count.
    """
    sizes = [float(solid.size[-1]) for solid in diagnosed.solids if solid.size[-1] > 0.0]
    if not sizes:
        return
    limit = _ABOVE_SOUND * _SOUND / (2.0 * min(sizes))
    of_bodies = np.zeros(diagnosed.context.store.layout.num_states, dtype=bool)
    for leaf, _ in diagnosed.trees:
        of_bodies[leaf.x_slice] = True
    for mode in diagnosed.modes:
        oscillates = abs(mode.pole.imag) > _OSCILLATES * abs(mode.pole)
        if oscillates and limit < mode.frequency <= _FASTEST and mode.shares[of_bodies].sum() > 0.5:
            yield _about(
                diagnosed,
                mode,
                "faster than sound",
                (mode.frequency, "Hz", limit),
                f"{_described(mode)}, too fast for sound to cross a body of {min(sizes):.3g} m",
            )
            return


def spread(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find a fastest and a slowest motion with a ratio of speeds above a billion.

    This is the ratio of a day to 0.1 ms. The slow motion needs a billion steps of the fast one, so
    a model of either can treat the other as constant. Poles that rounding may have moved to zero do
    not count. The poles of an overdamped mode with damping ratio ζ have the ratio 4 ζ², so ζ above
    16 000 is reported, too.
    """
    if len(diagnosed.modes) < 2:
        return
    fast, slow = diagnosed.modes[0], diagnosed.modes[-1]
    ratio = abs(fast.pole) / abs(slow.pole)
    if ratio > _SPREAD and fast.frequency <= _FASTEST:
        yield _about(
            diagnosed,
            fast,
            "spread",
            (ratio, "", _SPREAD),
            f"{_described(fast)}, {ratio:.1g} times faster than the slowest one, "
            f"in {', '.join(diagnosed.moving(slow))}",
        )


def faint_damping(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find vibrations whose damping is so small that they last for a million periods.

    The amplitude falls to 1/e in 1 / (2π ζ) periods. Steel has ζ of 10⁻⁴, quartz in a vacuum
    10⁻⁷, which is the limit. Undamped vibrations, up to rounding, are deliberate and not reported.
    """
    for mode in diagnosed.modes:
        zeta = abs(mode.pole.real) / abs(mode.pole)
        sure = abs(mode.pole.real) > mode.error
        exact = diagnosed.equations is not None and diagnosed.equations.obstacle is None
        if exact and sure and zeta < _FAINT:
            yield _about(
                diagnosed,
                mode,
                "faint damping",
                (zeta, "", _FAINT),
                f"a vibration at {mode.frequency:.3g} Hz with a damping ratio of {zeta:.1g}",
                lambda pole: pole.real,
            )


def violent_start(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find bodies that start with more than ten thousand times the acceleration of gravity.

    Shells in a gun reach 10⁵ m/s². In other models, a spring starts far from its rest position,
    or its length, angle or stiffness is in another unit.
    """
    for solid in diagnosed.solids:
        port = solid.tree.system.output_port(f"{solid.name}_spatial_acceleration")
        start = partial(_acceleration, port, float(solid.size[-1]), solid.tree)
        found = start()
        if not np.isfinite(found):
            diagnosed.unchecked.append(
                f"the acceleration of '{solid.name}' at the start, which is not finite"
            )
        if found > _VIOLENT:
            yield exceeded(
                "violent start",
                (*diagnosed.governing(start), diagnosed.path_of(port)),
                f"'{solid.name}' starts with an acceleration of {found:.3g} m/s²",
                (found, "m/s^2", _VIOLENT),
                "That is more than ten thousand times gravity",
                "Check the units of stiffnesses and lengths, and the initial state",
            )
            return  # other bodies have the same cause


def _acceleration(port: OutputPort, size: float, tree: LeafContext) -> float:
    """Return a bound for the acceleration within a body of a size."""
    turning, shifting = np.split(np.asarray(port.eval(tree)), 2)
    return float(np.linalg.norm(shifting) + size * np.linalg.norm(turning))


def _described(mode: Mode) -> str:
    """Return the speed of a mode in words."""
    if abs(mode.pole.imag) > _OSCILLATES * abs(mode.pole):
        return f"a vibration at {mode.frequency:.3g} Hz"
    growing = "grows" if mode.pole.real > 0.0 else "decays"
    return f"a motion that {growing} within {1.0 / abs(mode.pole):.2g} s"


def _about(
    diagnosed: DiagnosedSystem,
    mode: Mode,
    rule: str,
    number: tuple[float, str, float],
    what: str,
    part: Callable[[complex], complex] = complex,
) -> Finding:
    """Return a finding about a mode, with the parameters of its pole and the states it moves."""
    causes, moved = diagnosed.governing_mode(mode, part), diagnosed.moving(mode)
    return exceeded(
        rule,
        (*causes, *moved),
        what,
        number,
        f"It moves {', '.join(moved)}",
        f"Check {', '.join(causes)}"
        if causes
        else "Check the forces and gains that act on these states",
    )


RULES = (fast_modes, sound, spread, faint_damping, violent_start)
