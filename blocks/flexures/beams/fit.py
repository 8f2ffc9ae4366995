"""Whether frames stand where the ends of an unstressed beam are."""

from __future__ import annotations

import numpy as np

from flexure.blocks.forces.bushings.halfway_element import HalfwayElement
from flexure.blocks.math import RigidTransform, rotation_vector_from_rotation
from flexure.blocks.multibody.bodies.bodies import Frame
from flexure.diagrams.common.errors import DeclarationError
from flexure.diagrams.values.values import Array

_FIT = 1e-6  # of the length, and in rad: frames that are farther from where a beam ends do not fit


def require_fit(
    beam: HalfwayElement, length: float, *, wanted: RigidTransform, found: RigidTransform
) -> None:
    """Refuse frames between which a beam does not fit.

    Parameters
    ----------
    beam : HalfwayElement
        The beam.
    length : float
        Its length in m.
    wanted, found : RigidTransform
        The pose of C in A, of the unstressed beam and of the frames.
    """
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
            remedy="Move or turn one of the frames, or the bodies by default_positions of"
            " joints, correct the length, or pass prestressed=True",
        )


def distance_of(frame_a: Frame, frame_c: Frame, attempt: str) -> float:
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
