"""Rotations: matrices, roll-pitch-yaw angles, quaternions, rotation vectors and rigid transforms.

Equations may call these functions: they accept floats as well as symbols, and check nothing.
`flexure.blocks.math` explains the notation and has the functions on spatial vectors and inertia.
"""

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.blocks.math.quaternions import (
        canonical_quaternion as canonical_quaternion,
        nearest_quaternion as nearest_quaternion,
        normalized_quaternion as normalized_quaternion,
        quaternion_conjugate as quaternion_conjugate,
        quaternion_from_rotation as quaternion_from_rotation,
        quaternion_product as quaternion_product,
        rotation_from_quaternion as rotation_from_quaternion,
    )
    from flexure.blocks.math.roll_pitch_yaw import (
        rotation_from_rpy as rotation_from_rpy,
        rpy_from_quaternion as rpy_from_quaternion,
        rpy_from_rotation as rpy_from_rotation,
    )
    from flexure.blocks.math.rotation_vectors import (
        axis_angle_from_quaternion as axis_angle_from_quaternion,
        axis_angle_from_rotation as axis_angle_from_rotation,
        quaternion_from_axis_angle as quaternion_from_axis_angle,
        quaternion_from_rotation_vector as quaternion_from_rotation_vector,
        rotation_from_rotation_vector as rotation_from_rotation_vector,
        rotation_vector_from_quaternion as rotation_vector_from_quaternion,
        rotation_vector_from_rotation as rotation_vector_from_rotation,
    )
    from flexure.blocks.math.transforms import (
        RigidTransform as RigidTransform,
        compose_transforms as compose_transforms,
        invert_transform as invert_transform,
        rotation_about as rotation_about,
        x_rotation as x_rotation,
        y_rotation as y_rotation,
        z_rotation as z_rotation,
    )
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, "flexure"), root="flexure")
