"""Norms of linear models: H2, H-infinity and peak gain, with the frequency of the peak."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.frequency.frequency_search import QuadraticSearch, peak_gain
from flexure.solvers.analysis.linear_models.linear_model import LinearModel, refuse_systems
from flexure.solvers.analysis.linear_models.poles import fate, stability
from flexure.solvers.analysis.linear_models.realizations import HIDDEN, Reduction, reduction


@dataclass(frozen=True, eq=False)
class Norms(Answer):
    """Norms of the transfer from inputs to outputs.

    Attributes
    ----------
    is_stable : bool
        Whether all poles decay that inputs move and outputs show, and no hidden state grows.
    h2 : float
        H2 norm: the root mean square of all outputs together for white noise of intensity 1 at all
        inputs, or the root of the energy of all impulse responses. It is inf for an unstable model,
        and for a continuous one with direct feedthrough.
    h_infinity : float
        H-infinity norm: the peak gain of a stable model, else inf.
    peak_gain : float
        The largest singular value over all frequencies, also of an unstable model.
    peak_frequency : float
        Where, in rad/s; inf if it is approached at the highest frequencies.
    input_direction, output_direction : ndarray of complex, shapes (m,) and (p,)
        Amplitudes of inputs and outputs at the peak, of length 1: the inputs by which the gain is
        largest, and what the outputs answer. NaN where the gain is inf.
    notes : tuple of str
        Those of the model.

    See Also
    --------
    norms : Compute them.

    Examples
    --------
    >>> import flexure as fx
    >>> from scipy.signal import TransferFunction
    >>> found = fx.norms(fx.LinearModel.from_scipy(TransferFunction([2.0], [1.0, 1.0])))
    >>> round(found.h2, 6), found.h_infinity, found.peak_frequency  # of 2 / (s + 1)
    (1.414214, 2.0, 0.0)
    """

    is_stable: bool
    h2: float
    h_infinity: float
    peak_gain: float
    peak_frequency: float
    input_direction: npt.NDArray[np.complex128]
    output_direction: npt.NDArray[np.complex128]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"stable      {'yes' if self.is_stable else 'no'}",
            f"H2          {self.h2:.4g}",
            f"H-infinity  {self.h_infinity:.4g}",
            f"peak gain   {self.peak_gain:.4g} at {self.peak_frequency:.4g} rad/s",
        ]
        return "\n".join([*lines, *(f"note        {note}" for note in self.notes)])


@in_one_thread
def norms(model: LinearModel) -> Norms:
    """Return H2 norm, H-infinity norm and peak gain of a linear model.

    Parameters
    ----------
    model : LinearModel
        From inputs to outputs, continuous or sampled, such as `linearize`, `sensitivity_function`
        and `complementary_sensitivity` return it.

    Returns
    -------
    Norms

    Raises
    ------
    ValueRefusedError
        When it is no such model, or has no inputs or no outputs.

    See Also
    --------
    singular_values : Plot the gains over frequency.
    margins : Stability margins of a loop gain.
    passivity_indices : Excess or shortage of passivity.

    Notes
    -----
    The H2 norm is ``√ trace(C P Cᵀ)`` with the controllability Gramian P; of a sampled model
    ``√ trace(C P Cᵀ + D Dᵀ)``, for noise of the covariance 1 at each sample. The peak gain is not
    that of a grid: between eigenvalues of the Hamiltonian matrix of a level, the gain does not
    cross this level, however sharp a resonance is (Boyd, Balakrishnan, Bruinsma and Steinbuch).

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(fx.Gain("controller", -3.0), fx.Integrator("plant"))
    >>> builder.connect_chain("controller", "plant", "controller")
    >>> print(fx.norms(fx.complementary_sensitivity(builder.build(), "plant.u")))  # 3 / (s + 3)
    stable      yes
    H2          1.225
    H-infinity  1
    peak gain   1 at 0 rad/s
    """
    model, seen = require_transfer(model, "Cannot compute norms")
    A, B, C, D, period = seen.A, seen.B, seen.C, model.D, model.period
    is_stable, neutral = stability(A, period)
    whole = np.linalg.eigvals(model.A).astype(complex)
    is_stable = is_stable and fate(seen.hidden_poles, whole, period) != "grow"
    if neutral.size:
        turns = neutral.imag if period is None else np.angle(neutral) / period
        peak, where = math.inf, float(np.abs(turns).min())
    else:
        peak, where = peak_gain(A, B, C, D, period)
    outward, inward = (np.full(len(each), complex(math.nan)) for each in (D, D.T))
    if np.isfinite(peak):
        search = QuadraticSearch(A, B, C, D, period)
        known = len(A) and np.isfinite(where)
        response = search.responses(np.array([where]))[0] if known else D.astype(complex)
        u, _, vh = np.linalg.svd(response)
        outward, inward = u[:, 0], vh[0].conj()
    return Norms(
        is_stable=is_stable,
        h2=_h2(A, B, C, D, period) if is_stable else math.inf,
        h_infinity=peak if is_stable else math.inf,
        peak_gain=peak,
        peak_frequency=where,
        input_direction=inward,
        output_direction=outward,
        notes=model.notes,
    )


def require_transfer(model: LinearModel, attempt: str) -> tuple[LinearModel, Reduction]:
    """Return a model with inputs and outputs on its tangent, and its part that is not hidden."""
    wanted = "a LinearModel with inputs and outputs"
    refuse_systems(model, attempt, wanted)
    require(isinstance(model, LinearModel), model, attempt, wanted)
    require(model.D.size > 0, model, attempt, wanted, remedy="Name inputs and outputs in linearize")
    model = model.on_tangent()
    return model, reduction(model.A, model.B, model.C, HIDDEN)


def _h2(A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray, period: float | None) -> float:
    """Return the H2 norm of a stable realization."""
    if period is None and D.any():
        return math.inf
    P = gramian(A, B, period)
    return math.sqrt(max(float(np.trace(C @ P @ C.T) + np.sum(D**2)), 0.0))


def gramian(A: FloatArray, B: FloatArray, period: float | None) -> FloatArray:
    """Return the controllability Gramian of a stable model; of Aᵀ and Cᵀ the observability one."""
    from scipy.linalg import solve_continuous_lyapunov, solve_discrete_lyapunov

    if not len(A):
        return np.zeros((0, 0))
    solve = solve_continuous_lyapunov if period is None else solve_discrete_lyapunov
    return np.asarray(solve(A, -B @ B.T if period is None else B @ B.T), dtype=float)
