"""Generalized plants, and the controllers that solve their H2 and H-infinity problems.

A generalized plant has the disturbances w and the controls u as inputs, and the errors z and the
measurements y as outputs::

    ẋ = A x + B₁ w + B₂ u
    z = C₁ x + D₁₁ w + D₁₂ u
    y = C₂ x + D₂₁ w + D₂₂ u

In a sampled plant, x[k+1] replaces ẋ. A controller u = K y closes the loop from w to z.

Controllers consist of a state feedback and an observer, each from a Riccati equation (Doyle,
Glover, Khargonekar, Francis; Zhou, Doyle, Glover: Robust and Optimal Control, chapters 14, 17, 21).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from flexure.diagrams.checks.arguments import items_of
from flexure.diagrams.checks.errors import ValueRefusedError, quoted
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.poles import all_decay, fate
from flexure.solvers.analysis.linear_models.realizations import HIDDEN, invariant_zeros, reduction
from flexure.solvers.design.state_space.feedback import solve_riccati
from flexure.solvers.design.state_space.weights import (
    check_model,
    chosen,
    lingers,
    persists,
    require_reach,
)

#: A, B, C and D.
Realization: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
_RANK = 1e-10  # of the largest singular value of scaled matrices
_PART = 0.1  # of the largest component: from here on a signal takes part


@dataclass(frozen=True)
class GeneralizedPlant:
    """The matrices of a generalized plant, with the positions of its controls and measurements."""

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    controls: tuple[int, ...]
    measurements: tuple[int, ...]
    period: float | None = None

    @property
    def disturbances(self) -> list[int]:
        """Positions of the other inputs."""
        return [k for k in range(self.B.shape[1]) if k not in self.controls]

    @property
    def errors(self) -> list[int]:
        """Positions of the other outputs."""
        return [k for k in range(len(self.C)) if k not in self.measurements]

    @property
    def parts(self) -> tuple[FloatArray, ...]:
        """B₁, B₂, C₁, C₂, D₁₁, D₁₂, D₂₁ and D₂₂."""
        w, u, z, y = self.disturbances, self.controls, self.errors, self.measurements
        B, C, D = self.B, self.C, self.D
        blocks = (D[np.ix_(rows, columns)] for rows in (z, y) for columns in (w, u))
        return (B[:, w], B[:, u], C[z, :], C[y, :], *blocks)

    def closed(self, controller: Realization) -> Realization:
        """Return the closed loop from w to z."""
        B1, B2, C1, C2, D11, D12, D21, D22 = self.parts
        A, B, C, D = controller
        back = np.linalg.inv(np.eye(len(D)) - D @ D22)
        # What x, the states of the controller, and w contribute to u, and then to y.
        u = [back @ D @ C2, back @ C, back @ D @ D21]
        y = [C2 + D22 @ u[0], D22 @ u[1], D21 + D22 @ u[2]]
        return (
            np.block([[self.A + B2 @ u[0], B2 @ u[1]], [B @ y[0], A + B @ y[1]]]),
            np.vstack([B1 + B2 @ u[2], B @ y[2]]),
            np.hstack([C1 + D12 @ u[0], D12 @ u[1]]),
            D11 + D12 @ u[2],
        )


def generalized_plant(
    model: LinearModel, controls: Any, measurements: Any, attempt: str
) -> GeneralizedPlant:
    """Return the generalized plant of a model, and refuse what has no solution."""
    check_model(model, attempt, inputs=True, outputs=True)
    own = model.on_tangent()
    u = _channels(controls, own.input_names, "input", attempt)
    y = _channels(measurements, own.output_names, "output", attempt)
    groups = {
        "controls": u,
        "measurements": y,
        "disturbances (inputs that are no controls)": len(own.input_names) - len(u),
        "errors (outputs that are no measurements)": len(own.output_names) - len(y),
    }
    for what, count in groups.items():
        if not count:
            raise ValueRefusedError(attempt, expected=f"at least one of {what}", found="none")
    seen = reduction(own.A, own.B, own.C, HIDDEN)
    hides = len(seen.A) < len(own.A)
    every = np.linalg.eigvals(own.A).astype(complex)
    if fate(seen.hidden_poles, every, own.period) == "grow":
        raise ValueRefusedError(
            attempt,
            expected="no growing mode that the inputs do not move or the outputs do not show",
            found=f"poles at {seen.hidden_poles[:4]}",
        )
    A, B, C = (seen.A, seen.B, seen.C) if hides else (own.A, own.B, own.C)
    if not len(A):
        expected = "a plant with states between its inputs and outputs"
        raise ValueRefusedError(attempt, expected=expected, found=f"{model!r}")
    plant = GeneralizedPlant(A, B, C, own.D, tuple(u), tuple(y), own.period)
    names = [f"z{k}" for k in range(1, len(A) + 1)] if hides else own.state_names
    _check(plant, names, own, attempt)
    return plant


def _channels(wanted: Any, names: Sequence[str], what: str, attempt: str) -> list[int]:
    """Return positions of names; the name of a port means all of its components."""
    listed = [wanted] if isinstance(wanted, str) else wanted
    every: list[Any] = []
    for name in items_of(listed, f"names of {what}s", attempt):
        is_port = isinstance(name, str) and name not in names
        parts = [each for each in names if is_port and each.startswith(f"{name}[")]
        every += parts or [name]
    return chosen(every, names, what, attempt)


def _check(plant: GeneralizedPlant, names: list[str], model: LinearModel, attempt: str) -> None:
    """Refuse a plant without a regular solution."""
    A, period = plant.A, plant.period
    B1, B2, C1, C2, _, D12, D21, _ = plant.parts
    weights = "A weight outside of the loop must decay: replace its integrator by a slow lag"
    for matrix, entries, who, remedy in (
        (A, B2, "controls that reach", "Add an actuator"),
        (A.T, C2.T, "measurements that show", "Add a sensor"),
    ):
        expected = f"{who} every mode that does not decay"
        lasts = persists(period)
        require_reach(matrix, entries, lasts, names, attempt, expected, f"{remedy}. {weights}")
    controls = [model.input_names[k] for k in plant.controls]
    measured = [model.output_names[k] for k in plant.measurements]
    for system, signals, condition, remedy in (
        (
            (A, B2, C1, D12),
            controls,
            "errors that weigh every control up to the highest frequency (D12 of full column rank)",
            "Weigh these controls, such as by a Gain whose output is an error",
        ),
        (
            (A.T, C2.T, B1.T, D21.T),
            measured,
            "disturbances of every measurement up to the highest frequency (D21 of full row rank)",
            "Add a disturbance to these measurements, such as a small noise of the sensor",
        ),
    ):
        if missing := _without_weight(*system, signals, period):
            found = f"none of {quoted(missing)}"
            raise ValueRefusedError(attempt, expected=condition, found=found, remedy=remedy)
        stays = lingers(period)
        zeros = [zero for zero in invariant_zeros(*system) if stays(complex(zero))]
        if zeros:
            boundary = "the imaginary axis" if period is None else "the unit circle"
            path = "controls to errors" if signals is controls else "disturbances to measurements"
            raise ValueRefusedError(
                attempt,
                expected=f"no zero on {boundary} from {path}",
                found=f"a zero at {zeros[0]:.4g}",
                remedy=f"{remedy}, also at this frequency",
            )


def _without_weight(
    A: FloatArray,
    B: FloatArray,
    C: FloatArray,
    D: FloatArray,
    signals: Sequence[str],
    period: float | None,
) -> list[str]:
    """Return the inputs without a direct gain at the highest frequency, where z = -1."""
    whole = D
    if period is not None:
        whole = np.block([[A + np.eye(len(A)), B], [C, D]])
    lengths = np.linalg.norm(whole, axis=0)
    _, sizes, vh = np.linalg.svd(whole / np.where(lengths > 0.0, lengths, 1.0))
    rank = int(np.sum(sizes > _RANK * sizes[0])) if sizes.size and sizes[0] > 0.0 else 0
    parts = np.linalg.norm(vh[rank:, -len(signals) :], axis=0)
    if rank == whole.shape[1] or parts.max() < _PART:  # what is left are modes, as zeros are
        return []
    return [name for name, part in zip(signals, parts, strict=True) if part > _PART * parts.max()]


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
