"""What beam theory says in closed form: columns, frequencies, buckled shapes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.linalg import expm
from scipy.optimize import brentq
from scipy.special import ellipe, ellipk, jv

FloatArray = npt.NDArray[np.float64]

#: What is zero at an end, of deflection, rotation, moment and shear force.
ENDS = {"clamped": (0, 1), "free": (2, 3), "pinned": (0, 2), "guided": (1, 3)}


def guided_stiffness(p: float) -> float:
    """Return k L³/EI across a leaf whose ends do not turn, under the axial force p EI/L²."""
    root = np.sqrt(complex(p))
    return float((root**3 / (root - 2.0 * np.tanh(root / 2.0))).real)


def frequencies(
    first: str,
    second: str,
    count: int,
    *,
    EI: float = 1.0,
    mass: float = 1.0,
    length: float = 1.0,
    shear: float = np.inf,
    rotary: float = 0.0,
) -> FloatArray:
    """Return the lowest natural frequencies of a beam in rad/s, after those at zero.

    Timoshenko's equations with the shear stiffness k G A and with the rotary inertia ρ I, or those
    of Euler and Bernoulli without them, are linear along the beam::

        w' = φ + Q/kGA      φ' = M/EI      M' = -Q - ρI ω² φ      Q' = -ρA ω² w

    A frequency is where what the first end leaves free cannot be told apart at the second one.
    """
    start = [k for k in range(4) if k not in ENDS[first]]

    def miss(root: float) -> float:
        square = root**4 * EI / (mass * length**4)
        A = np.zeros((4, 4))
        A[0, 1], A[0, 3], A[1, 2] = 1.0, 1.0 / shear, 1.0 / EI
        A[2, 3], A[2, 1], A[3, 0] = -1.0, -rotary * square, -mass * square
        scale = np.array([length**3, length**2, length * EI, EI]) / length**3
        across = expm(A * length) * scale / scale[:, None]
        return float(np.linalg.det(across[np.ix_(ENDS[second], start)]))

    roots: list[float] = []
    grid = np.arange(0.3, 30.0, 0.3)
    last = miss(grid[0])
    for a, b in pairwise(grid):
        new = miss(b)
        if last * new < 0.0:
            roots.append(brentq(miss, a, b, xtol=1e-12))
        if len(roots) == count:
            break
        last = new
    found: FloatArray = np.square(roots) * np.sqrt(EI / mass) / length**2
    return found


def buckled_column(angle: float) -> tuple[float, float, float]:
    """Return P L²/EI, x/L and y/L of a clamped column whose tip has turned by an angle in rad.

    With k = sin(angle/2), √P = K(k), and the tip is at x = 2 E(k)/K(k) - 1, y = 2 k/K(k).
    """
    k = np.sin(0.5 * angle)
    K, E = ellipk(k * k), ellipe(k * k)
    return float(K**2), float(2.0 * E / K - 1.0), float(2.0 * k / K)


def lateral_buckling(bending: tuple[float, float], torsion: float) -> float:
    """Return F L² at which a leaf gives way sideways that is pushed across its width at its tip.

    The first root of the Bessel function of order -1/4 belongs to a leaf that is stiff against
    EI_z. How far it bends before it buckles raises the load by the factor in the denominator.
    """
    soft, stiff = bending
    root = 2.0 * brentq(lambda x: jv(-0.25, x), 1.0, 3.0)
    return float(root * np.sqrt(soft * torsion / ((1.0 - soft / stiff) * (1.0 - torsion / stiff))))
