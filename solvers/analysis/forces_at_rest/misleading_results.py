"""Warnings of results that mislead: suppressed vibrations, and elements far beyond a limit.

A `PlanarJoint` between the two bodies of a flexure holds what it does not let move, rigidly. The
real stage is held there by the flexure alone, and may vibrate. Such modes are computed here as if
the body were free: from the linear stiffness of the beams at their ends and the inertia of the
body. Beams with ``planar=True`` are meant for motions in their plane, and do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from flexure.blocks.flexures.beams.beam import Beam
from flexure.blocks.math.vectors import skew
from flexure.blocks.multibody import Body, MultibodyTree, Plant
from flexure.blocks.multibody.force_elements.limits import limited_elements
from flexure.blocks.multibody.joints.planar import PlanarJoint
from flexure.diagrams.checks.errors import warn
from flexure.diagrams.contexts.context import Context, LeafContext
from flexure.diagrams.values.arrays import FloatArray

_BELOW = 0.99  # of the highest frequency that the joint leaves
_NAMED = 3  # frequencies or elements that a warning names


def warn_of_hidden_motions(context: Context, about: str) -> None:
    """Warn of planar joints that hide vibrations below the highest one that they leave.

    The flexures of the context are nearly unbent. The message begins with ``about``, as in
    ``"The modes of 'stage' are"``.
    """
    for joint, body, flexures, hidden, highest in _hidden(context):
        shown = ", ".join(map(_about, hidden[:_NAMED]))
        warn(
            f"{about} those of a body that the joint '{joint}' holds in a plane, rigidly. On"
            f" {flexures} alone, '{body}' vibrates at about {shown} Hz as well, which is below the"
            f" {_about(highest)} Hz that the joint leaves. Use a RpyFloatingJoint instead for "
            "the free stage. If only motions in the plane are meant, pass planar=True and"
            " segments= to the flexures"
        )


def _about(number: float) -> str:
    """Print a number with two digits: the beams count without shear, and without their mass."""
    return f"{float(f'{number:.2g}'):g}"


def _hidden(context: Context) -> Iterator[tuple[str, str, str, FloatArray, float]]:
    """Yield joints with the body, its flexures, the hidden frequencies, and the highest other."""
    beams: dict[tuple[Body, Body], list[tuple[Beam, LeafContext]]] = {}
    joints: dict[frozenset[Body], PlanarJoint] = {}
    for leaf in context.leaves():
        each = leaf.system
        if isinstance(each, Beam) and not each.planar:
            bodies = each.frame_a.body, each.frame_c.body
            for body, other in (bodies, bodies[::-1]):
                if not (body.is_world or body.is_node):
                    beams.setdefault((body, other), []).append((each, leaf))
        elif isinstance(each, MultibodyTree):
            for mobilizer in each.topology.mobilizers:
                joint = mobilizer.joint
                if isinstance(joint, PlanarJoint):
                    ends = joint.frame_on_parent.body, joint.frame_on_child.body
                    joints[frozenset(ends)] = joint
    seen = set()
    for (body, other), leaves in beams.items():
        found = joints.get(frozenset((body, other)))
        if found is None or found in seen:
            continue
        seen.add(found)
        hidden, highest = _frequencies(context, found, body, other, leaves)
        if hidden.size:
            names = ", ".join(f"'{beam.name}'" for beam, _ in leaves)
            yield found.name, body.name, names, hidden, highest


def _frequencies(
    context: Context,
    joint: PlanarJoint,
    body: Body,
    other: Body,
    leaves: list[tuple[Beam, LeafContext]],
) -> tuple[FloatArray, float]:
    """Return the frequencies that a joint hides, and the highest that it leaves, in Hz."""
    X_WB, M = body.pose(context), _inertia(context, body)
    K = np.zeros((6, 6))
    for beam, leaf in leaves:
        X_WC = beam.frame_c.pose(context)
        R, p = X_WC.R.T, X_WC.p - X_WB.p
        T = np.block([[R, np.zeros((3, 3))], [-R @ skew(p), R]])
        K += T.T @ _stiffness(beam, leaf) @ T
    plant = joint.parent_plant
    assert isinstance(plant, Plant)
    J = plant.calc_jacobian(context, body, measured_in=other)
    half = np.linalg.cholesky(M)
    scaled = np.linalg.solve(half, np.linalg.solve(half, K).T)
    left, sizes, _ = np.linalg.svd(half.T @ J)
    moved = left[:, : int(np.sum(sizes > 1e-9 * sizes[0]))]
    free, kept = (
        np.sqrt(np.maximum(np.linalg.eigvalsh(each), 0.0)) / (2.0 * np.pi)
        for each in (scaled, moved.T @ scaled @ moved)
    )
    for frequency in kept:
        free = np.delete(free, np.argmin(np.abs(free - frequency)))
    return free[free < _BELOW * kept[-1]], float(kept[-1])


def _inertia(context: Context, body: Body) -> FloatArray:
    """Return the spatial inertia of a body about its origin, along the axes of the world."""
    R, mass = body.pose(context).R, float(body.mass(context))
    c = skew(R @ body.com(context))
    xx, yy, zz, xy, xz, yz = body.unit_inertia(context)
    unit = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    return mass * np.block([[unit - c @ c, c], [-c, np.eye(3)]])


def _stiffness(beam: Beam, leaf: LeafContext) -> FloatArray:
    """Return the stiffness of an unbent beam at its end C, along the axes of C."""
    law = beam.law(leaf)
    L = float(law.length) * beam.num_segments
    EA, GJ = float(law.axial_stiffness), float(law.torsion_stiffness)
    e_y, e_z = float(law.bending_stiffness_y), float(law.bending_stiffness_z)
    compliance = np.diag([L / GJ, L / e_y, L / e_z, L / EA, L**3 / 3.0 / e_z, L**3 / 3.0 / e_y])
    compliance[2, 4] = compliance[4, 2] = 0.5 * L**2 / e_z
    compliance[1, 5] = compliance[5, 1] = -0.5 * L**2 / e_y
    return np.linalg.inv(compliance)


def warn_of_misleading_limits(contexts: Iterable[Context], about: str) -> None:
    """Warn of elements beyond the limits from which on their equilibria mislead.

    For each limit the worst context counts. The message begins with ``about``, as in
    ``"The equilibrium of 'stage'"``.
    """
    worst: dict[str, tuple[float, str]] = {}
    for context in contexts:
        for path, element in limited_elements(context):
            if all(limit.misleads == float("inf") for limit in element.limits):
                continue
            shares = element.utilization(context)
            for limit, share in zip(element.limits, shares, strict=True):
                excess = float(share) / limit.misleads
                if excess > max(1.0, worst.get(path, (0.0, ""))[0]):
                    bound, unit = float(limit.bound_in(context)), f" {limit.unit}".rstrip()
                    told = (
                        f"{path}: {limit.quantity} {float(share) * bound:.3g}{unit}, beyond"
                        f" {limit.misleads:g} times its limit of {bound:.3g}{unit}. {limit.look}"
                    )
                    worst[path] = excess, told
    if not worst:
        return
    ordered = sorted(worst.values(), reverse=True)
    told = "; ".join(text for _, text in ordered[:_NAMED])
    more = f"; and {len(ordered) - _NAMED} more elements" if len(ordered) > _NAMED else ""
    warn(
        f"{about} may err by several percent, or have a wrong shape, since single elements "
        f"represent too large a part. {told}{more}"
    )
