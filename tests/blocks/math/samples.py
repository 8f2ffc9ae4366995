"""Every function of the floor with arguments to try it on, and second routes to derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from flexure.blocks import math as fm
from flexure.blocks.math import MassProperties
from flexure.blocks.math.rotation_vectors import arc_quotient, stumpff
from flexure.diagrams import scalars

EPS = float(np.finfo(float).eps)
Function: TypeAlias = Callable[..., Any]

angles = st.floats(-np.pi, np.pi)
components = st.floats(-10.0, 10.0)
vectors = st.tuples(components, components, components).map(np.array)
spatial_vectors = st.tuples(*[components] * 6).map(np.array)
#: All orientations, also those with zeros and with tiny numbers.
quaternions = (
    st.tuples(*[st.floats(-1.0, 1.0)] * 4)
    .map(np.array)
    .filter(lambda q: bool(np.linalg.norm(q) > 0.1))
    .map(lambda q: q / np.linalg.norm(q))
)


def random_rotation(rng: np.random.Generator) -> Any:
    """Draw a rotation matrix."""
    return Rotation.random(random_state=rng).as_matrix()


def random_positive_matrix(rng: np.random.Generator, n: int) -> Any:
    """Draw a symmetric positive definite matrix."""
    factor = rng.normal(size=(n, n))
    return factor @ factor.T + 0.3 * np.eye(n)


DRAWS: dict[str, Callable[[np.random.Generator], Any]] = {
    "number": lambda rng: rng.uniform(0.1, 3.0),
    "3": lambda rng: rng.normal(size=3),
    "6": lambda rng: rng.normal(size=6),
    "q": lambda rng: np.roll(Rotation.random(random_state=rng).as_quat(), 1),
    "R": random_rotation,
    "A": lambda rng: random_positive_matrix(rng, 3),
    "A6": lambda rng: random_positive_matrix(rng, 6),
}

#: Each function and the kinds of its arguments, with bodies and poses taken apart.
FUNCTIONS: dict[str, tuple[Function, str]] = {
    "arc_quotient": (arc_quotient, "number number"),
    "axis_angle_from_quaternion": (fm.axis_angle_from_quaternion, "q"),
    "axis_angle_from_rotation": (fm.axis_angle_from_rotation, "R"),
    "canonical_quaternion": (fm.canonical_quaternion, "q"),
    "compose_transforms": (
        lambda R, p, S, r: fm.compose_transforms((R, p), (S, r)),
        "R 3 R 3",
    ),
    "cos_pitch": (fm.cos_pitch, "3"),
    "cross": (fm.cross, "3 3"),
    "dot": (fm.dot, "6 6"),
    "half_rotation": (fm.half_rotation, "q"),
    "inverse_3x3": (fm.inverse_3x3, "A"),
    "invert_transform": (lambda R, p: fm.invert_transform((R, p)), "R 3"),
    "kinetic_energy": (
        lambda m, c, I, V: fm.kinetic_energy(MassProperties(m, c, I), V),
        "number 3 A 6",
    ),
    "ldl_factors": (fm.ldl_factors, "A6"),
    "ldl_solve": (fm.ldl_solve, "A6 6 6"),
    "mirrored": (fm.mirrored, "A6"),
    "modified_rodrigues": (fm.modified_rodrigues, "q"),
    "motion_cross_force": (fm.motion_cross_force, "6 6"),
    "motion_cross_motion": (fm.motion_cross_motion, "6 6"),
    "nearest_quaternion": (fm.nearest_quaternion, "q q"),
    "normalized_quaternion": (fm.normalized_quaternion, "q"),
    "quaternion_conjugate": (fm.quaternion_conjugate, "q"),
    "quaternion_from_axis_angle": (fm.quaternion_from_axis_angle, "3 number"),
    "quaternion_from_rotation": (fm.quaternion_from_rotation, "R"),
    "quaternion_from_rotation_vector": (fm.quaternion_from_rotation_vector, "3"),
    "quaternion_product": (fm.quaternion_product, "q q"),
    "quaternion_rate_from_w_A": (fm.quaternion_rate_from_w_A, "q 3"),
    "quaternion_rate_from_w_B": (fm.quaternion_rate_from_w_B, "q 3"),
    "relative_pose": (lambda R, p, S, r: fm.relative_pose((R, p), (S, r)), "R 3 R 3"),
    "relative_velocity": (
        lambda R, p, V, S, r, U: fm.relative_velocity((R, p), V, (S, r), U),
        "R 3 6 R 3 6",
    ),
    "rotate_mass_properties": (
        lambda R, m, c, I: fm.rotate_mass_properties(R, MassProperties(m, c, I)),
        "R number 3 A",
    ),
    "rotate_spatial": (fm.rotate_spatial, "R 6"),
    "rotation_about": (fm.rotation_about, "3 number"),
    "rotation_from_quaternion": (fm.rotation_from_quaternion, "q"),
    "rotation_from_rotation_vector": (fm.rotation_from_rotation_vector, "3"),
    "rotation_from_rpy": (fm.rotation_from_rpy, "3"),
    "rotation_vector_from_quaternion": (fm.rotation_vector_from_quaternion, "q"),
    "rotation_vector_from_rotation": (fm.rotation_vector_from_rotation, "R"),
    "rotation_vector_rate_matrix": (fm.rotation_vector_rate_matrix, "3"),
    "rotation_vector_velocity_matrix": (fm.rotation_vector_velocity_matrix, "3"),
    "rpy_acceleration": (fm.rpy_acceleration, "3 3 3"),
    "rpy_from_quaternion": (fm.rpy_from_quaternion, "q"),
    "rpy_from_rotation": (fm.rpy_from_rotation, "R"),
    "rpy_rate_matrix": (fm.rpy_rate_matrix, "3"),
    "rpy_velocity_matrix": (fm.rpy_velocity_matrix, "3"),
    "rpy_velocity_matrix_rate": (fm.rpy_velocity_matrix_rate, "3 3"),
    "rotate_inertia_matrix": (fm.rotate_inertia_matrix, "R A6"),
    "shift_inertia_matrix": (fm.shift_inertia_matrix, "A6 3"),
    "shift_mass_properties": (
        lambda m, c, I, p: fm.shift_mass_properties(MassProperties(m, c, I), p),
        "number 3 A 3",
    ),
    "shift_spatial_force": (fm.shift_spatial_force, "6 3"),
    "shift_spatial_momentum": (fm.shift_spatial_momentum, "6 3"),
    "shift_spatial_velocity": (fm.shift_spatial_velocity, "6 3"),
    "skew": (fm.skew, "3"),
    "solve_3x3": (fm.solve_3x3, "A 3"),
    "solve_symmetric": (fm.solve_symmetric, "A6 6"),
    "spatial_inertia_matrix": (
        lambda m, c, I: fm.spatial_inertia_matrix(MassProperties(m, c, I)),
        "number 3 A",
    ),
    "spatial_momentum": (
        lambda m, c, I, V: fm.spatial_momentum(MassProperties(m, c, I), V),
        "number 3 A 6",
    ),
    "stumpff": (lambda s: [stumpff(k, s) for k in range(5)], "number"),
    "transform_point": (lambda R, p, r: fm.transform_point((R, p), r), "R 3 3"),
    "w_A_from_quaternion_rate": (fm.w_A_from_quaternion_rate, "q q"),
    "w_B_from_quaternion_rate": (fm.w_B_from_quaternion_rate, "q q"),
    "x_rotation": (fm.x_rotation, "number"),
    "y_rotation": (fm.y_rotation, "number"),
    "z_rotation": (fm.z_rotation, "number"),
}

#: Functions that multiply matrices by ``@``, whose last bits belong to the machine.
ROUNDED = {
    "compose_transforms",
    "invert_transform",
    "kinetic_energy",
    "relative_pose",
    "relative_velocity",
    "rotate_inertia_matrix",
    "rotate_mass_properties",
    "rotate_spatial",
    "rpy_acceleration",
    "spatial_momentum",
    "transform_point",
}


def sample(name: str, seed: int) -> list[Any]:
    """Draw the arguments of a function."""
    rng = np.random.default_rng(seed)
    return [DRAWS[kind](rng) for kind in FUNCTIONS[name][1].split()]


def flat(result: Any) -> Any:
    """Lay the numbers or symbols of a result end to end."""
    parts = result if isinstance(result, (list, tuple)) else [result]
    return np.hstack([np.ravel(part) for part in parts])


def values_of(arguments: Sequence[Any]) -> dict[Any, float]:
    """Return the values of the inputs that `traced` makes, by key."""
    return {
        (position, k): float(entry)
        for position, argument in enumerate(arguments)
        for k, entry in enumerate(np.ravel(argument))
    }


def traced(function: Function, arguments: Sequence[Any]) -> Any:
    """Run a function on symbols in the shapes of its arguments."""
    graph = scalars.Graph()
    shapes = [np.shape(argument) for argument in arguments]
    return flat(function(*[scalars.symbols(graph, k, shape) for k, shape in enumerate(shapes)]))


def traced_slopes(function: Function, *arguments: Any) -> Any:
    """Return the exact derivatives by all numbers in the arguments."""
    values = values_of(arguments)
    matrix = scalars.jacobian(traced(function, arguments), list(values)).to_array()
    return scalars.evaluate(matrix, values)


def slopes_backward(function: Function, *arguments: Any) -> Any:
    """Return the same derivatives, found from the outputs to the inputs."""
    values = values_of(arguments)
    outputs = traced(function, arguments)
    rows = [scalars.gradient(output, list(values)) for output in outputs]
    return scalars.evaluate(np.stack(rows), values)


def differences(function: Function, *arguments: Any, step: float = 1e-3) -> Any:
    """Return the derivatives by all numbers in the arguments, by differences of fourth order."""
    shapes = [np.shape(argument) for argument in arguments]
    ends = np.cumsum([0, *[int(np.prod(shape)) for shape in shapes]])
    point = np.array(list(values_of(arguments).values()))

    def along(k: int, offset: float) -> Any:
        moved = point.copy()
        moved[k] += offset
        parts = [
            moved[start:end].reshape(shape)[()]
            for start, end, shape in zip(ends, ends[1:], shapes, strict=False)
        ]
        return flat(function(*parts))

    def slope(k: int) -> Any:
        near = along(k, step) - along(k, -step)
        far = along(k, 2.0 * step) - along(k, -2.0 * step)
        return (8.0 * near - far) / (12.0 * step)

    return np.stack([slope(k) for k in range(point.size)], axis=-1)


def rate(curve: Callable[[float], Any], step: float = 1e-3) -> Any:
    """Return the derivative of a curve at time 0, by differences of fourth order."""
    near, far = curve(step) - curve(-step), curve(2.0 * step) - curve(-2.0 * step)
    return (8.0 * near - far) / (12.0 * step)
