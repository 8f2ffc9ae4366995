"""Rotations: matrices, roll-pitch-yaw angles, quaternions, rotation vectors and rigid transforms.

Equations may call these functions: they accept floats as well as symbols, and check nothing.
`flexure.blocks.math` explains the notation and has the functions on spatial vectors and inertia.
"""

from flexure.blocks.math.quaternions import (
    canonical_quaternion,
    nearest_quaternion,
    normalized_quaternion,
    quaternion_conjugate,
    quaternion_from_rotation,
    quaternion_product,
    rotation_from_quaternion,
)
from flexure.blocks.math.roll_pitch_yaw import (
    rotation_from_rpy,
    rpy_from_quaternion,
    rpy_from_rotation,
)
from flexure.blocks.math.rotation_vectors import (
    axis_angle_from_quaternion,
    axis_angle_from_rotation,
    quaternion_from_axis_angle,
    quaternion_from_rotation_vector,
    rotation_from_rotation_vector,
    rotation_vector_from_quaternion,
    rotation_vector_from_rotation,
)
from flexure.blocks.math.rotations import rotation_about, x_rotation, y_rotation, z_rotation
from flexure.blocks.math.transforms import RigidTransform, compose_transforms, invert_transform

__all__ = [
    "RigidTransform",
    "axis_angle_from_quaternion",
    "axis_angle_from_rotation",
    "canonical_quaternion",
    "compose_transforms",
    "invert_transform",
    "nearest_quaternion",
    "normalized_quaternion",
    "quaternion_conjugate",
    "quaternion_from_axis_angle",
    "quaternion_from_rotation",
    "quaternion_from_rotation_vector",
    "quaternion_product",
    "rotation_about",
    "rotation_from_quaternion",
    "rotation_from_rotation_vector",
    "rotation_from_rpy",
    "rotation_vector_from_quaternion",
    "rotation_vector_from_rotation",
    "rpy_from_quaternion",
    "rpy_from_rotation",
    "x_rotation",
    "y_rotation",
    "z_rotation",
]
