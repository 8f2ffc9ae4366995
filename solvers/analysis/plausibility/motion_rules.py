"""Rules about bodies and motions: masses, sizes, gravity, linear modes, accelerations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from flexure.diagrams.contexts.context import LeafContext
from flexure.diagrams.systems.ports import OutputPort
from flexure.solvers.analysis.plausibility.diagnosed_system import DiagnosedSystem, Mode, Solid
from flexure.solvers.analysis.plausibility.findings import Finding, exceeded

_DENSEST = 3e4  # kg/m³
_LIGHTEST = 0.01  # kg/m³
_MASSES = 1e6
_SIZES = 1e4
_ARM = 300.0
_HEAVIEST_PULL = 100.0  # m/s²
_LIGHTEST_PULL = 0.01  # m/s²
_THIN = 1e-6  # part of the longest edge that counts as no thickness


def density(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find bodies denser than any material, or far lighter than the air around them.

    The density is the mass over the volume of the uniform box with the same radii of gyration,
    within 15 % of the true one for uniform solids of other shapes. The densest element is osmium
    with 22 600 kg/m³, so the upper limit is 30 000. Air has 1.2 kg/m³, and a textbook body of 1 kg
    with moments of 1 kg m² has 0.07; the lower limit is 0.01. Grams instead of kilograms change the
    density by 10³, and millimeters instead of meters by 10⁹. Thin rods and plates have no volume:
    the upper limit treats them as thick, and the lower one does not apply.
    """
    for solid in diagnosed.solids:
        longest = float(solid.size[-1])
        if longest == 0.0:
            continue
        mass, _, inertia = solid.paths
        edges = np.where(solid.size > _THIN * longest, solid.size, longest)
        heavy = solid.mass / float(np.prod(edges))
        light = solid.mass / max(float(np.prod(solid.size)), 1e-300)
        shape = " x ".join(f"{edge:.3g}" for edge in solid.size)
        is_heavy = heavy > _DENSEST
        if is_heavy or light < _LIGHTEST:
            found, limit = (heavy, _DENSEST) if is_heavy else (light, _LIGHTEST)
            yield exceeded(
                "density",
                (mass, inertia) if is_heavy else (inertia, mass),
                f"{solid.mass:.4g} kg in about {shape} m, a density of {found:.3g} kg/m³",
                (found, "kg/m^3", limit),
                "No material is this dense" if is_heavy else "It is far lighter than air",
                "Check the mass (kg, not g) and the size of its inertia (m, not mm)",
            )


def mass_ratio(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find masses of one mechanism that differ by more than a million.

    A screw and its crane differ by 10⁷ and are seldom two bodies of one model: the light body has
    no effect except on the condition number of the mass matrix, which is about this ratio, so that
    results lose as many digits.
    """
    for heavy, light, ratio in _extremes(diagnosed, lambda solid: solid.mass):
        if ratio > _MASSES:
            yield exceeded(
                "mass ratio",
                (heavy.paths[0], light.paths[0]),
                f"{heavy.mass:.4g} kg beside {light.mass:.4g} kg, {ratio:.2g} times as much",
                (ratio, "", _MASSES),
                "Bodies of one mechanism are seldom that different",
                "Check the units of both (kg, not g), or remove the light body",
            )


def size_ratio(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find bodies of one mechanism that differ in size by more than ten thousand.

    A grain of sand and a house do. Sizes are the longest edges of the boxes of `density`.
    """
    for large, small, ratio in _extremes(diagnosed, lambda solid: float(solid.size[-1])):
        if ratio > _SIZES:
            yield exceeded(
                "size ratio",
                (large.paths[2], small.paths[2]),
                f"{large.size[-1]:.3g} m beside {small.size[-1]:.3g} m",
                (ratio, "", _SIZES),
                "Bodies of one mechanism are seldom that different",
                "Check the units of both sizes (m, not mm)",
            )


def _extremes(
    diagnosed: DiagnosedSystem, size: Callable[[Solid], float]
) -> Iterator[tuple[Solid, Solid, float]]:
    """Yield the solids of each mechanism with the largest and the least size, and the ratio."""
    for leaf, _ in diagnosed.trees:
        solids = [each for each in diagnosed.solids if each.tree is leaf and size(each) > 0.0]
        if solids:
            large, small = max(solids, key=size), min(solids, key=size)
            yield large, small, size(large) / size(small)


def arm(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find centers of mass and joints that are hundreds of body sizes away from their body.

    They are usually about one body size away; for a bob on a long rod, a hundred. Beyond 300 sizes,
    the distance is in millimeters or the inertia in another unit.
    """
    for solid in diagnosed.solids:
        longest = float(solid.size[-1])
        if longest > 0.0 and solid.reach > _ARM * longest:
            yield exceeded(
                "arm",
                solid.paths[1:],
                f"a center of mass or a joint {solid.reach:.4g} m from the origin of "
                f"'{solid.name}', which is {longest:.3g} m long by its inertia",
                (solid.reach / longest, "", _ARM),
                "It is far outside the body",
                "Check the units of both lengths (m, not mm)",
            )


def gravity(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find gravity that is stronger than on any planet, or weaker than on a small moon.

    It is 9.81 m/s² on Earth, 24.8 m/s² on Jupiter and 0.1 m/s² on moons of 100 km; the limits are
    100 and 0.01 m/s², so that 9810 and 0.00981, in mm and km, are reported. Zero is allowed.
    """
    for leaf, tree in diagnosed.trees:
        pull = float(np.linalg.norm(tree.gravity(leaf)))
        if pull > 0.0 and not _LIGHTEST_PULL <= pull <= _HEAVIEST_PULL:
            limit = _HEAVIEST_PULL if pull > _HEAVIEST_PULL else _LIGHTEST_PULL
            yield exceeded(
                "gravity",
                (diagnosed.path_of(tree.gravity),),
                f"{pull:.4g} m/s²",
                (pull, "m/s^2", limit),
                "It is 9.81 m/s² on Earth",
                "Check the unit of lengths: all are in m",
            )


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


RULES = (
    *(density, mass_ratio, size_ratio, arm, gravity),
    *(fast_modes, sound, spread, faint_damping, violent_start),
)
