"""The controllers that solve the H2 and the H-infinity problem of a generalized plant.

Both consist of a state feedback and an observer, each from a Riccati equation (Doyle, Glover,
Khargonekar, Francis; Zhou, Doyle, Glover: Robust and Optimal Control, chapters 14, 17 and 21).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.linear_models.poles import all_decay
from flexure.solvers.design.state_space.feedback import solve_riccati
from flexure.solvers.design.synthesis.generalized_plant import GeneralizedPlant, Realization

_RESIDUAL = 1e-6  # of the largest terms of a Riccati equation
_ROUNDING = 1e-8  # of the size of a solution: how negative its eigenvalues may be


def h2_controller(plant: GeneralizedPlant, attempt: str) -> Realization:
    """Return the controller of the least H2 norm."""
    A, period = plant.A, plant.period
    B1, B2, C1, C2, D11, D12, D21, D22 = plant.parts
    R, V, across, into = D12.T @ D12, D21 @ D21.T, C1.T @ D12, B1 @ D21.T
    X = solve_riccati(A, B2, C1.T @ C1, R, period, attempt, across)
    Y = solve_riccati(A.T, C2.T, B1 @ B1.T, V, period, attempt, into)
    if period is None:
        F = -np.linalg.solve(R, B2.T @ X + across.T)
        L = -np.linalg.solve(V, C2 @ Y + into.T).T
        direct = np.zeros((len(F), len(C2)))
    else:  # the present measurement improves the estimate at once
        R, V = R + B2.T @ X @ B2, V + C2 @ Y @ C2.T
        shown = A @ Y @ C2.T + into
        F = -np.linalg.solve(R, B2.T @ X @ A + across.T)
        L = -np.linalg.solve(V, shown.T).T
        gain = B2.T @ X @ shown + D12.T @ (C1 @ Y @ C2.T + D11 @ D21.T)
        direct = -np.linalg.solve(V, np.linalg.solve(R, gain).T).T
    entries = B2 @ direct - L
    inner = A + B2 @ F - entries @ C2
    return _around(D22, (inner, entries, F - direct @ C2, direct))


def _around(D22: FloatArray, controller: Realization) -> Realization:
    """Return the controller of y that acts as a given one of y - D₂₂ u."""
    A, B, C, D = controller
    back = np.linalg.inv(np.eye(len(D)) + D @ D22)
    C, D = back @ C, back @ D
    return A - B @ D22 @ C, B @ (np.eye(len(D22)) - D22 @ D), C, D


class HinfProblem:
    """The H-infinity problem of a plant in continuous time.

    Coordinates of the signals are such that D₁₂ = [0; I] and D₂₁ = [0, I].
    """

    def __init__(self, plant: GeneralizedPlant) -> None:
        B1, B2, C1, C2, D11, D12, D21, D22 = plant.parts
        m, p = len(plant.controls), len(plant.measurements)
        u, sizes, vh = np.linalg.svd(D12)
        errors = np.roll(u, -m, axis=1)
        self._by_controls = vh.T / sizes
        u, sizes, vh = np.linalg.svd(D21)
        disturbances = np.roll(vh.T, -p, axis=1)
        self._by_measurements = (u / sizes).T
        self._A, self._D22, self._sizes = plant.A, D22, (m, p)
        self._B = np.hstack([B1 @ disturbances, B2 @ self._by_controls])
        self._C = np.vstack([errors.T @ C1, self._by_measurements @ C2])
        self._D11 = errors.T @ D11 @ disturbances
        without = (self._D11[: len(D11) - m], self._D11[:, : D11.shape[1] - p])
        # What no controller can be below, by the direct gains alone.
        self.least = max(float(np.linalg.norm(each, 2)) if each.size else 0.0 for each in without)

    def controller(self, gamma: float) -> Realization | None:
        """Return the central controller for a closed loop below a level, None if there is none."""
        A, B, C, D11, (m, p) = self._A, self._B, self._C, self._D11, self._sizes
        z, w = len(D11) - m, D11.shape[1] - p  # without the rows and columns of the identities
        if gamma <= self.least:
            return None
        row = np.hstack([D11, np.eye(z + m, m, -z)])
        column = np.vstack([D11, np.eye(p, w + p, w)])
        B1, C1 = B[:, : w + p], C[: z + m]
        R, V = row.T @ row, column @ column.T
        R[: w + p, : w + p] -= gamma**2 * np.eye(w + p)
        V[: z + m, : z + m] -= gamma**2 * np.eye(z + m)
        X = _stabilizing(A, B, C1.T @ C1, R, C1.T @ row)
        Y = _stabilizing(A.T, C.T, B1 @ B1.T, V, B1 @ column.T)
        if X is None or Y is None:
            return None
        coupled = Y @ X / gamma**2
        if np.abs(np.linalg.eigvals(coupled)).max() >= 1.0:
            return None
        F = -np.linalg.solve(R, row.T @ C1 + B.T @ X)
        L = -np.linalg.solve(V, column @ B1.T + C @ Y).T
        inside = gamma**2 * np.eye(z) - D11[:z, :w] @ D11[:z, :w].T
        direct = -D11[z:, :w] @ D11[:z, :w].T @ np.linalg.solve(inside, D11[:z, w:]) - D11[z:, w:]
        shown = C[z + m :] + F[w : w + p]
        moved = B[:, w + p :] + L[:, z : z + m]
        entries = np.linalg.solve(np.eye(len(A)) - coupled, moved @ direct - L[:, z + m :])
        inner, outer = A + B @ F - entries @ shown, F[w + p :] - direct @ shown
        into, out = self._by_measurements, self._by_controls
        return _around(self._D22, (inner, entries @ into, out @ outer, out @ direct @ into))


def _stabilizing(
    A: FloatArray, B: FloatArray, Q: FloatArray, R: FloatArray, S: FloatArray
) -> FloatArray | None:
    """Return the stabilizing solution of a Riccati equation if it is positive, else None."""
    try:
        X = solve_riccati(A, B, Q, R, None, "", S)
    except ValueRefusedError:
        return None
    moved = np.linalg.solve(R, B.T @ X + S.T)
    closed = A - B @ moved
    # SciPy returns something, too, when eigenvalues on the axis leave no solution.
    terms = [A.T @ X, X @ A, (X @ B + S) @ moved, Q]
    rest = np.abs(terms[0] + terms[1] - terms[2] + terms[3])
    if rest.max() > _RESIDUAL * sum(np.abs(term) for term in terms).max():
        return None
    values = np.linalg.eigvalsh(X)
    size = np.linalg.norm(Q) / max(float(np.linalg.norm(A)), np.finfo(float).tiny)  # X may be zero
    is_positive = values[0] >= -_ROUNDING * max(values[-1], size)
    poles = np.linalg.eigvals(closed).astype(complex)
    return X if is_positive and all_decay(poles, None) else None


def to_continuous(plant: GeneralizedPlant) -> GeneralizedPlant:
    """Return a sampled plant by the bilinear map z = (1 + s) / (1 - s), which keeps gains."""
    A, B, C, D = plant.A, plant.B, plant.C, plant.D
    unit = np.eye(len(A))
    inner = np.linalg.inv(A + unit)
    mapped = inner @ (A - unit), np.sqrt(2.0) * inner @ B, np.sqrt(2.0) * C @ inner
    A, B, C, D = *mapped, D - C @ inner @ B
    return replace(plant, A=A, B=B, C=C, D=D, period=None)


def to_sampled(controller: Realization) -> Realization:
    """Return the sampled controller of the one for the plant of `to_continuous`."""
    A, B, C, D = controller
    unit = np.eye(len(A))
    inner = np.linalg.inv(unit - A)
    mapped = inner @ (unit + A), np.sqrt(2.0) * inner @ B, np.sqrt(2.0) * C @ inner
    return *mapped, D + C @ inner @ B
