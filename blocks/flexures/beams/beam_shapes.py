"""Where the points of unstressed beams are, and whether frames stand where their ends are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from flexure.blocks.flexures.sections.strength import SECTION_FORCES
from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    relative_pose,
    rotation_from_rotation_vector,
    rotation_vector_from_rotation,
)
from flexure.blocks.multibody.bodies.bodies import Frame
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError
from flexure.diagrams.values.arrays import Array, as_number

if TYPE_CHECKING:
    from flexure.blocks.flexures.beams.beam import Beam

_FIT = 1e-6  # of the length, and in rad: frames that are farther from where a beam ends do not fit

_STRAIN = 5e-3  # where spring steel yields; heat of 100 K makes a quarter of that

#: The pose in A of the section at a distance from A along an unstressed beam.
Shape: TypeAlias = Callable[[Array], RigidTransform]


def unstressed_shape(length: Array, curvature: Array | None, pose: RigidTransform | None) -> Shape:
    """Return the shape of an unstressed beam; between the ends of a given pose, its chord."""
    if pose is not None:
        return partial(along_chord, rotation_vector_from_rotation(pose.R) / length, pose.p / length)
    return along_line if curvature is None else partial(along_arc, curvature)


def along_line(s: Array) -> RigidTransform:
    """Return the pose at a distance along a straight beam."""
    return RigidTransform(np.eye(3), scalars.array([s, 0.0, 0.0]))


def along_arc(curvature: Array, s: Array) -> RigidTransform:
    """Return the pose at a distance along an arc."""
    y, z = curvature
    half = rotation_from_rotation_vector(0.5 * s * scalars.array([0.0, y, z]))
    chord = s * scalars.sinc(0.5 * s * np.hypot(y, z))
    return RigidTransform(half @ half, half @ scalars.array([chord, 0.0, 0.0]))


def along_chord(turn: Array, step: Array, s: Array) -> RigidTransform:
    """Return the pose at a distance along a line, turned in proportion."""
    return RigidTransform(rotation_from_rotation_vector(s * turn), s * step)


def require_fit(beam: Beam, X_WA: RigidTransform, X_WC: RigidTransform) -> None:
    """Refuse frames, by their default poses in the world, between which a beam does not fit."""
    length, (begin, end) = float(beam.length.default), beam.ends
    wanted = compose_transforms(along_line(begin * length), beam.default_shape()(length))
    wanted = compose_transforms(wanted, along_line(-end * length))
    found = relative_pose(X_WA, X_WC)
    offset = float(np.linalg.norm(found.p - wanted.p))
    turn = float(np.linalg.norm(rotation_vector_from_rotation(wanted.R.T @ found.R)))
    if offset > _FIT * length or turn > _FIT:
        raise DeclarationError(
            f"Cannot fit beam '{beam.label}' of length {length:.6g} m between its frames",
            expected=f"'{beam.frame_c.name}' at {_numbers(wanted.p)} m in"
            f" '{beam.frame_a.name}' to {_FIT * length:.1e} m, where the unstressed beam ends,"
            f" and turned as it is to {_FIT:.0e} rad",
            found=f"{_numbers(found.p)} m, which is {offset:.3g} m from there, turned by"
            f" {np.rad2deg(turn):.3g} degrees against it",
            remedy="Move or turn one of the frames, or the bodies by default_pose of joints,"
            " correct the length, or pass prestressed=True",
        )


def require_length(beam: Beam, context: Any) -> None:
    """Refuse a length of a context that stretches or squeezes a beam between frames that stay."""
    length, built = float(beam.length(context)), float(beam.length.default)
    if abs(length - built) <= _STRAIN * built:
        return
    stiffness = beam.youngs_modulus(context) * beam.section_at(0.5, context).area
    tensions = beam.section_forces(context)[SECTION_FORCES.index("N") :: len(SECTION_FORCES)]
    strain = float(tensions[np.argmax(np.abs(tensions))] / stiffness)
    if abs(strain) > _STRAIN:
        raise EvaluationError(
            f"Cannot begin with '{beam.label}.length' = {length:.6g} m",
            expected=f"a length that fits between '{beam.frame_a.name}' and"
            f" '{beam.frame_c.name}', to a strain of {_STRAIN:.1%}",
            found=f"{'stretched' if strain > 0.0 else 'squeezed'} by {abs(strain):.2%}, since a"
            f" length in a context moves no body, and the plant was built for {built:.6g} m",
            remedy="Build a plant for each length, set positions of joints that fit, such as those"
            " of equilibrium(...).context, or pass prestressed=True",
        )


def default_length(
    length: float | None, frame_a: Frame, frame_c: Frame, is_straight: bool, attempt: str
) -> float:
    """Return the length that is given, or the distance of frames on one body."""
    if length is None and is_straight and frame_a.body is frame_c.body:
        return _distance_of(frame_a, frame_c, attempt)
    if length is None:
        raise DeclarationError(
            attempt,
            expected="length, since the frames are on two bodies"
            if is_straight
            else "length, since that of a curved beam does not follow from its frames",
            found="None",
            remedy="Pass the length of the unstressed beam in m",
        )
    return float(as_number(length, (), f"{attempt} with length"))


def _distance_of(frame_a: Frame, frame_c: Frame, attempt: str) -> float:
    """Return how far two frames on one body are from each other; refuse those at one place."""
    distance = float(np.linalg.norm(frame_c.X_BF.p - frame_a.X_BF.p))
    if distance == 0.0:
        raise DeclarationError(
            attempt,
            expected="frames at two places, whose distance is the length",
            found=f"'{frame_a.name}' and '{frame_c.name}', which are at one place of"
            f" '{frame_a.body.name}'",
            remedy="Add a frame where the beam ends by add_frame, or pass the length",
        )
    return distance


def _numbers(vector: Array) -> str:
    """Return a vector as people write it."""
    return "(" + ", ".join(f"{x:.9g}" for x in vector) + ")"
