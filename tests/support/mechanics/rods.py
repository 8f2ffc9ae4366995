"""The shapes of slender rods, from their differential equations and without any element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.integrate import solve_bvp, solve_ivp
from scipy.optimize import fsolve, minimize_scalar
from scipy.spatial.transform import Rotation

FloatArray = npt.NDArray[np.float64]
Triple = Sequence[float] | npt.NDArray[np.float64]


class Tip(NamedTuple):
    """How the end of a rod stands, whose beginning is at the origin and looks along x."""

    position: FloatArray
    rotation: FloatArray


def rod(
    length: float = 1.0,
    *,
    bending: tuple[float, float] = (1.0, 1.0),
    torsion: float = 1.0,
    force: Triple = (0.0, 0.0, 0.0),
    moment: Triple = (0.0, 0.0, 0.0),
    curvature: Triple = (0.0, 0.0, 0.0),
    axial: float = np.inf,
    shear: tuple[float, float] = (np.inf, np.inf),
    steps: int = 4,
) -> Tip:
    """Return the tip of a clamped rod under a force and a moment that keep their directions.

    With the orientation R(s), the position r(s), and m(s), the moment inside, all seen from the
    world, a rod of the unstressed curvature k has::

        R' = R [k + S⁻¹ Rᵀ m]×      r' = R (x + C Rᵀ f)      m' = -r' × f

    where S holds the stiffness in torsion and bending about y and z, and C the compliance along x,
    y and z. The load grows in steps, each of which begins with the shape of the one before.
    """
    stiffness = np.array([torsion, *bending])[:, None]
    compliance = 1.0 / np.array([axial, *shear])[:, None]
    unstressed, along = np.array(curvature)[:, None], np.array([[1.0], [0.0], [0.0]])

    def slopes(f: FloatArray) -> Callable[[FloatArray, FloatArray], FloatArray]:
        def of(_: FloatArray, u: FloatArray) -> FloatArray:
            R = _rotation(u[:4])
            k = unstressed + np.einsum("jik,jk->ik", R, u[7:]) / stiffness
            a, (w, v) = 0.5 * k, (u[0], u[1:4])
            turning = np.vstack([-np.sum(v * a, axis=0), w * a + np.cross(v, a, axis=0)])
            going = np.einsum("ijk,jk->ik", R, along + compliance * np.einsum("jik,j->ik", R, f))
            return length * np.vstack([turning, going, -np.cross(going, f[:, None], axis=0)])

        return of

    s = np.linspace(0.0, 1.0, 21)
    u = np.zeros((10, s.size))
    u[0], u[4] = 1.0, length * s
    for load in np.arange(1, steps + 1) / steps:
        M = load * np.array(moment)
        tolerance = 1e-9 if load == 1.0 else 1e-3

        def ends(a: FloatArray, b: FloatArray, M: FloatArray = M) -> FloatArray:
            return np.concatenate([a[:7] - np.eye(7)[0], b[7:] - M])

        found = solve_bvp(
            slopes(load * np.array(force)), ends, s, u, tol=tolerance, max_nodes=20_000
        )
        assert found.success, found.message
        s, u = found.x, found.y
    return Tip(u[4:7, -1], _rotation(u[:4, -1:])[..., 0])


def _rotation(q: FloatArray) -> FloatArray:
    """Return the matrices of quaternions w, x, y, z, one in each column."""
    w, x, y, z = q
    return np.array(
        [
            [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ]
    )


def under_moment(moment: Triple, torsion: float, bending: tuple[float, float]) -> Tip:
    """Return the tip of a rod of length 1 under a dead moment, as an initial value problem."""
    M, S = np.array(moment), np.array([torsion, *bending])

    def slopes(_: float, u: FloatArray) -> FloatArray:
        R = u[:9].reshape(3, 3)
        x, y, z = R.T @ M / S
        turning = R @ np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return np.concatenate([turning.ravel(), R[:, 0]])

    start = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    end = solve_ivp(slopes, (0.0, 1.0), start, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    return Tip(end[9:], Rotation.from_matrix(end[:9].reshape(3, 3)).as_matrix())


# Frames in a plane --------------------------------------------------------------------------------


def leg(start: FloatArray, length: float, force: Triple, EA: float, EI: float) -> FloatArray:
    """Go along a straight rod with a force inside: x, y, angle and moment at its end."""
    fx, fy = force[:2]

    def slopes(_: float, u: FloatArray) -> list[float]:
        c, s = np.cos(u[2]), np.sin(u[2])
        stretch = 1.0 + (fx * c + fy * s) / EA
        return [stretch * c, stretch * s, u[3] / EI, stretch * (s * fx - c * fy)]

    found: FloatArray = solve_ivp(
        slopes, (0.0, length), start, method="DOP853", rtol=1e-9, atol=1e-9
    ).y[:, -1]
    return found


class Toggle(NamedTuple):
    """Williams' toggle: two clamped bars that meet at a ridge, which is pushed down.

    Attributes are the horizontal length of a bar, the rise, EA and EI, in inches and pounds, as in
    F. W. Williams, An approach to the non-linear behaviour of the members of a rigid jointed plane
    framework with finite deflections, Q. J. Mech. Appl. Math. 17 (1964) 451-469.
    """

    span: float = 12.943
    rise: float = 0.386
    EA: float = 1.885e6
    EI: float = 9.274e3

    def load(self, descent: float) -> float:
        """Return the force on the ridge at a descent; each bar carries half of it."""
        length, angle = np.hypot(self.span, self.rise), np.arctan2(self.rise, self.span)

        def misses(unknown: FloatArray) -> list[float]:
            moment, *force = unknown * [100.0, 1000.0, 10.0]
            end = leg(np.array([0.0, 0.0, angle, moment]), length, force, self.EA, self.EI)
            return [end[0] - self.span, end[2] - angle, end[1] - self.rise + descent]

        found = fsolve(misses, np.zeros(3), xtol=1e-12)
        return float(-20.0 * found[2])

    def limits(self) -> tuple[float, float]:
        """Return the load at which the ridge snaps through, and the one at which it comes back."""
        up = minimize_scalar(lambda w: -self.load(w), bracket=(0.2, 0.24, 0.28), tol=1e-6)
        down = minimize_scalar(self.load, bracket=(0.36, 0.4, 0.44), tol=1e-6)
        return -float(up.fun), float(down.fun)
