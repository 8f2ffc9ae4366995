"""Rotations, spatial vectors and small linear systems: pure functions on one sample.

The functions are ordinary NumPy without branches that depend on values, so that the same lines run
on floats, on symbols and in lanes; near singular points they turn into series by ``np.where``, and
their traced derivatives are finite there. Values are not checked: what a formula does outside of
its range is said in its docstring, and refusing is left to the callers.

Names follow the monogram notation. ``R_AB`` maps components in frame B to components in A, and its
columns are the axes of B in A; ``q_AB`` is a quaternion (w, x, y, z) of ``R_AB``; ``p_AB`` is the
position of Bo from Ao; ``w_AB`` and ``alpha_AB`` are angular velocity and acceleration of B in A. A
further ``_A`` names the frame in which components are expressed; without it, both vectors of an
equation are expressed in one frame, whichever that is. Spatial vectors have six components, the
rotational part first: velocity ``V = (w, v)``, force ``F = (t, f)``, momentum ``L = (h, l)``.
Everything is in SI units and radians.
"""

from flexure.blocks.math.linear_equations import (
    inverse_3x3 as inverse_3x3,
    ldl_factors as ldl_factors,
    ldl_solve as ldl_solve,
    mirrored as mirrored,
    solve_3x3 as solve_3x3,
    solve_symmetric as solve_symmetric,
)
from flexure.blocks.math.mass_properties import (
    MassProperties as MassProperties,
    kinetic_energy as kinetic_energy,
    rotate_inertia_matrix as rotate_inertia_matrix,
    rotate_mass_properties as rotate_mass_properties,
    shift_inertia_matrix as shift_inertia_matrix,
    shift_mass_properties as shift_mass_properties,
    spatial_inertia_matrix as spatial_inertia_matrix,
    spatial_momentum as spatial_momentum,
)
from flexure.blocks.math.quaternions import (
    canonical_quaternion as canonical_quaternion,
    half_rotation as half_rotation,
    modified_rodrigues as modified_rodrigues,
    nearest_quaternion as nearest_quaternion,
    normalized_quaternion as normalized_quaternion,
    quaternion_conjugate as quaternion_conjugate,
    quaternion_from_rotation as quaternion_from_rotation,
    quaternion_product as quaternion_product,
    quaternion_rate_from_w_A as quaternion_rate_from_w_A,
    quaternion_rate_from_w_B as quaternion_rate_from_w_B,
    rotation_from_quaternion as rotation_from_quaternion,
    w_A_from_quaternion_rate as w_A_from_quaternion_rate,
    w_B_from_quaternion_rate as w_B_from_quaternion_rate,
)
from flexure.blocks.math.roll_pitch_yaw import (
    cos_pitch as cos_pitch,
    rotation_from_rpy as rotation_from_rpy,
    rpy_acceleration as rpy_acceleration,
    rpy_from_quaternion as rpy_from_quaternion,
    rpy_from_rotation as rpy_from_rotation,
    rpy_rate_matrix as rpy_rate_matrix,
    rpy_velocity_matrix as rpy_velocity_matrix,
    rpy_velocity_matrix_rate as rpy_velocity_matrix_rate,
)
from flexure.blocks.math.rotation_vectors import (
    axis_angle_from_quaternion as axis_angle_from_quaternion,
    axis_angle_from_rotation as axis_angle_from_rotation,
    quaternion_from_axis_angle as quaternion_from_axis_angle,
    quaternion_from_rotation_vector as quaternion_from_rotation_vector,
    rotation_from_rotation_vector as rotation_from_rotation_vector,
    rotation_vector_from_quaternion as rotation_vector_from_quaternion,
    rotation_vector_from_rotation as rotation_vector_from_rotation,
    rotation_vector_rate_matrix as rotation_vector_rate_matrix,
    rotation_vector_velocity_matrix as rotation_vector_velocity_matrix,
)
from flexure.blocks.math.spatial import (
    motion_cross_force as motion_cross_force,
    motion_cross_motion as motion_cross_motion,
    relative_velocity as relative_velocity,
    rotate_spatial as rotate_spatial,
    shift_spatial_force as shift_spatial_force,
    shift_spatial_momentum as shift_spatial_momentum,
    shift_spatial_velocity as shift_spatial_velocity,
)
from flexure.blocks.math.transforms import (
    RigidTransform as RigidTransform,
    compose_transforms as compose_transforms,
    invert_transform as invert_transform,
    relative_pose as relative_pose,
    rotation_about as rotation_about,
    transform_point as transform_point,
    x_rotation as x_rotation,
    y_rotation as y_rotation,
    z_rotation as z_rotation,
)
from flexure.blocks.math.vectors import cross as cross, dot as dot, skew as skew
