"""Generalized plants, and what a synthesis requires of them.

A generalized plant has the disturbances w and the controls u as inputs, and the errors z and the
measurements y as outputs::

    ẋ = A x + B₁ w + B₂ u
    z = C₁ x + D₁₁ w + D₁₂ u
    y = C₂ x + D₂₁ w + D₂₂ u

In a sampled plant, x[k+1] replaces ẋ. A controller u = K y closes the loop from w to z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from flexure.diagrams.checks.arguments import items_of
from flexure.diagrams.checks.errors import ValueRefusedError, quoted
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.poles import fate
from flexure.solvers.analysis.linear_models.realizations import HIDDEN, invariant_zeros, reduction
from flexure.solvers.design.state_space.model_requirements import (
    check_model,
    lingers,
    persists,
    require_reach,
)
from flexure.solvers.design.state_space.weights import chosen

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
