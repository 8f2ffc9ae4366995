"""Root loci: the poles of a system over the values of one of its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import Place, Way
from flexure.diagrams.interface.lazy_names import Deferred
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_numbers
from flexure.solvers.analysis.equations.equations import find_varied
from flexure.solvers.analysis.linear_models.linearization import linearized
from flexure.solvers.analysis.operating_points.equilibria import settled
from flexure.solvers.analysis.operating_points.parameter_continuation import follow

if TYPE_CHECKING:
    from flexure.solvers.analysis.frequency import pole_plots
else:
    pole_plots = Deferred("flexure.solvers.analysis.frequency.pole_plots")

_ALIKE = 0.7  # resemblance below which values in between are looked at
_HALVINGS = 7  # of the way from one value to the next, at most
_GONE = 1e-3  # magnitude of a pole in z, of which a sample later nothing is seen


@dataclass(frozen=True, eq=False)
class RootLocus(Answer):
    """The poles of a system over the values of a parameter.

    Attributes
    ----------
    system : System
        Of which.
    parameter : str
        Path of the parameter.
    values : ndarray, shape (K,)
        Its values.
    poles : ndarray of complex, shape (K, n)
        The poles at each value, in rad/s, or of a sampled model in z; a column is a branch.
    fine_values : ndarray, shape (N,)
        These values, and intermediate ones that were evaluated to distinguish the branches.
    fine_poles : ndarray of complex, shape (N, n)
        The poles there.
    period : float or None
        From one sample to the next, in seconds; None in continuous time.

    See Also
    --------
    root_locus : Compute one.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(fx.Gain("k", -1.0), fx.TransferFunction("plant", [1.0], [1.0, 2.0, 0.0]))
    >>> builder.connect_chain("k", "plant", "k")
    >>> locus = fx.root_locus(builder.build(), "k.gain", [-0.75, -2.0])
    >>> locus.poles[0].real.round(6)
    array([-0.5, -1.5])
    """

    system: System
    parameter: str
    values: FloatArray
    poles: npt.NDArray[np.complex128]
    fine_values: FloatArray
    fine_poles: npt.NDArray[np.complex128]
    period: float | None = None

    plot = pole_plots.plot_root_locus

    def __repr__(self) -> str:
        count, n = self.poles.shape
        return f"<RootLocus of '{self.system.label}': {n} poles, {count} of '{self.parameter}'>"


@answers_other_words
def root_locus(
    system: System,
    parameter: Way,
    values: npt.ArrayLike,
    *,
    context: Context | None = None,
    period: float | None = None,
) -> RootLocus:
    """Follow the poles of a system over the values of a parameter.

    Parameters
    ----------
    system : System
        A block or diagram with continuous states, such as a closed loop; with ``period``, discrete
        states will do.
    parameter : NumericParameter, InputPort, str
        What is varied, by handle or path: a parameter, a free input port, or one component.
    values : array_like, shape (K,)
        Its values, two or more, in the order in which to follow the poles.
    context : Context, optional
        All other values, and where to look for the first equilibrium; a root context, which is not
        changed. A default context when omitted.
    period : float, optional
        For a diagram with periodic updates, as for `linearize`: the poles are in z.

    Returns
    -------
    RootLocus

    Raises
    ------
    UnknownNameError
        When there is no such parameter or input.
    ValueRefusedError
        When there are less than two values, one is refused by what it is for, or locks a joint that
        was free, or the system has no continuous states.
    EvaluationError
        As for `equilibrium` and `linearize`.

    See Also
    --------
    pole_zero : Poles and zeros of one model.
    track_modes : Mode shapes over a parameter.

    Notes
    -----
    At each value, an equilibrium is found from that at the value before, and the system is
    linearized there. Branches go on by the resemblance of modes, which is the trace of the product
    of the projectors on their eigenvectors, and by the distances of poles; of all ways to pair
    them, the best in sum is taken. So branches cross without a change of places. If the resemblance
    is poor, intermediate values are evaluated. Where poles meet and turn by a right angle, which
    one goes on as which has no meaning.

    Examples
    --------
    The poles of s² + 2 s + k:

    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(fx.Gain("k", -1.0), fx.TransferFunction("plant", [1.0], [1.0, 2.0, 0.0]))
    >>> builder.connect_chain("k", "plant", "k")
    >>> locus = fx.root_locus(builder.build(), "k.gain", [-0.75, -1.0, -2.0])
    >>> locus.poles[0].real, abs(locus.poles[2].imag).round(6)
    (array([-0.5, -1.5]), array([1., 1.]))
    """
    attempt = "Cannot draw a root locus"
    require_system(system, attempt)
    attempt = f"Cannot follow the poles of '{system.label}'"
    start = start_context(system, context, attempt)
    place = find_varied(system, parameter, attempt)
    wanted = f"{attempt} over '{place.path}'"
    require(
        place.components.size == 1,
        parameter,
        wanted,
        "one number",
        remedy=f"Name one of its components, such as {place.names[0]!r}"
        if place.components.size
        else None,
    )
    numbers = as_numbers(values, wanted)
    require(numbers.ndim == 1 and len(numbers) > 1, values, wanted, "two or more values in a row")
    contexts = [_moved(start, place, number) for number in numbers]  # refuses wrong values

    def arrive(here: _Roots, value: float) -> tuple[_Roots, bool]:
        there = _modes_at(_moved(here.context, place, value), f"{wanted} at {value:g}", period)
        if len(there.poles) != len(here.poles):
            raise ValueRefusedError(
                f"{wanted} at {value:g}",
                expected=f"{len(here.poles)} poles, as before",
                found=f"{len(there.poles)}",
                remedy="Leave joints free, or locked",
            )
        order, alike = _matched(here, there)
        return there.sorted(order), alike >= _ALIKE

    way = [(float(numbers[0]), _modes_at(contexts[0], f"{wanted} at {numbers[0]:g}", period))]
    rows = [0]
    for low, high in pairwise(numbers.tolist()):
        way += follow(arrive, way[-1][1], low, high, _HALVINGS)
        rows.append(len(way) - 1)
    fine = np.array([roots.poles for _, roots in way])
    kind = "a system with continuous states" + (" or sampled ones" if period is not None else "")
    require(fine.size, system.label, attempt, kind)
    return RootLocus(
        system, place.path, numbers, fine[rows], np.array([v for v, _ in way]), fine, period
    )


def _moved(context: Context, place: Place, number: float) -> Context:
    """Return a copy of a context with another value of the parameter."""
    twin = context.clone()
    place.write(twin, np.full(place.shape or (), number))
    return twin


@dataclass(frozen=True, eq=False)
class _Roots:
    """Poles at an equilibrium, with right eigenvectors as columns and left ones as rows.

    Poles are gone where the motion ends within a sample, as in a hold. They are never apart, and
    often have one eigenvector in common, so nothing tells which is which.
    """

    context: Context
    poles: npt.NDArray[np.complex128]
    right: npt.NDArray[np.complex128]
    left: npt.NDArray[np.complex128]
    gone: npt.NDArray[np.bool_]

    def sorted(self, order: npt.NDArray[np.intp]) -> _Roots:
        parts = self.poles[order], self.right[:, order], self.left[order], self.gone[order]
        return _Roots(self.context, *parts)


def _modes_at(context: Context, attempt: str, period: float | None) -> _Roots:
    """Return the poles at the equilibrium near a context."""
    system = context.system
    at_rest = settled(system, context, attempt, period=period).context
    model = linearized(system, at_rest, [], [], attempt, period=period).on_tangent()
    poles, right = np.linalg.eig(model.A.astype(complex))
    poles = np.where(np.abs(poles.imag) < 1e-14 * np.abs(poles), poles.real, poles)
    order = np.lexsort((-poles.imag, -poles.real))
    left = np.linalg.pinv(right)  # also where eigenvectors are parallel
    gone = np.full(len(poles), period is not None) & (np.abs(poles) < _GONE)
    return _Roots(at_rest, poles, right, left, gone).sorted(order)


def _matched(here: _Roots, there: _Roots) -> tuple[npt.NDArray[np.intp], float]:
    """Return which pole there goes on from each one here, and the poorest resemblance."""
    from scipy.optimize import linear_sum_assignment

    with np.errstate(all="ignore"):
        product = (here.left @ there.right) * (there.left @ here.right).T
        apart = np.abs(here.poles[:, np.newaxis] - there.poles)
        strange = np.abs(1.0 - product)  # large where eigenvectors are nearly parallel
    alike = 1.0 - np.clip(np.nan_to_num(strange, nan=1.0), 0.0, 1.0)
    size = np.max(apart, initial=0.0) or 1.0
    rows, columns = linear_sum_assignment(apart / size - alike)
    alike = np.where(here.gone[:, np.newaxis] & there.gone, 1.0, alike)
    return columns.astype(np.intp), float(np.min(alike[rows, columns], initial=1.0))
