"""Whether the innovations of a filter are as large as its covariances say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.drawing.formats.new_figures import Plotted
from flexure.diagrams.drawing.formats.style import BLUE, GREY, tidy
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.arrays import FloatArray, as_number, bounded
from flexure.solvers.design.estimators.sampled_filter import SampledFilter
from flexure.solvers.results.records.result import SimulationResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEWEST = 10  # samples with which a test says something


@dataclass(frozen=True, eq=False)
class FilterConsistency(Answer, Plotted):
    """Test of the normalized innovations squared (NIS) of a filter.

    For a filter whose model, W and V are right, the sum of all NIS is chi-square distributed with
    as many degrees of freedom as there are measured components, and innovations of different
    samples are uncorrelated.

    The picture has the NIS of the samples, and the limits of single samples.

    Attributes
    ----------
    is_consistent : bool
        Whether the mean NIS and the correlation of innovations are within their bounds.
    mean_nis : float
        Mean of the NIS per measured component; 1 is expected.
    bounds : tuple of float
        Interval of the mean at the given confidence. Above it, the filter trusts its model or
        its sensors too much (W or V is too small); below it, too little.
    correlation : ndarray, shape (p,)
        Correlation of successive innovations of each output; 0 is expected. Large ones are those of
        errors of the model.
    correlation_bound : ndarray, shape (p,)
        Below which its magnitudes are with the given confidence; the larger, the fewer samples an
        output has.
    confidence : float
        Of both tests together, and of the limits in the picture.
    times, nis, num_used : ndarray, shape (k,)
        The samples with measurements, in s, their NIS, and the numbers of components in them.

    See Also
    --------
    filter_consistency : Make the test.

    Examples
    --------
    >>> import flexure as fx
    >>> constant = fx.StateSpace("constant", [[0.0]], np.zeros((1, 0)), [[1.0]])
    >>> model = fx.linearize(constant, inputs=[], outputs=["y"], period=0.1)
    >>> builder = fx.DiagramBuilder("noisy")
    >>> builder.add_all(
    ...     fx.Noise("noise", seed=1, period=0.1, standard_deviation=0.5),
    ...     fx.KalmanFilter("kalman", model, W=0.0, V=1.0, initial_covariance=1.0),
    ... )
    >>> builder.connect_chain("noise", "kalman.y")
    >>> found = fx.filter_consistency(fx.simulate(builder.build(), 100.0), "kalman")
    >>> found.is_consistent, found.mean_nis < found.bounds[0]  # V is too large
    (False, True)
    """

    is_consistent: bool
    mean_nis: float
    bounds: tuple[float, float]
    correlation: FloatArray
    correlation_bound: FloatArray
    confidence: float
    times: FloatArray
    nis: FloatArray
    num_used: FloatArray

    _figsize = (8.0, 3.6)

    def _draw(self, ax: Axes) -> None:
        from scipy.stats import chi2

        ax.plot(self.times, self.nis, ".", color=BLUE, markersize=4, label="NIS")
        rest = 0.5 * (1.0 - self.confidence)
        for share in (rest, 1.0 - rest):
            limit = chi2.ppf(share, self.num_used)
            ax.plot(self.times, limit, color=GREY, linestyle="--", linewidth=1.0)
        tidy(ax)
        ax.set_xlabel("time [s]")
        ax.set_ylabel("NIS")
        low, high = self.bounds
        ax.set_title(
            f"mean per component {self.mean_nis:.3g}, expected {low:.3g} to {high:.3g}", fontsize=10
        )

    def __str__(self) -> str:
        low, high = self.bounds
        k = int(np.argmax(np.abs(self.correlation) / self.correlation_bound))
        largest, bound = abs(self.correlation[k]), self.correlation_bound[k]
        return "\n".join(
            [
                f"consistent   {'yes' if self.is_consistent else 'no'}, {len(self.nis)} samples",
                f"mean NIS     {self.mean_nis:.4g} per component, expected {low:.4g} to {high:.4g}",
                f"correlation  {largest:.4g}, expected up to {bound:.4g}",
            ]
        )


def filter_consistency(
    result: SimulationResult, filter: Any, *, start: float = 0.0, confidence: float = 0.95
) -> FilterConsistency:
    """Test the innovations of a Kalman filter for consistency with its covariances.

    Parameters
    ----------
    result : SimulationResult
        A run of a diagram with the filter.
    filter : System or str
        The filter, or its path.
    start : float, optional
        Time in s before which samples do not count, such as those of the transient.
    confidence : float, optional
        Probability in (0, 1) with which a filter whose assumptions hold passes.

    Returns
    -------
    FilterConsistency

    Raises
    ------
    UnknownNameError
        When there is no such block.
    ValueRefusedError
        When it is no Kalman filter.
    EvaluationError
        When there are fewer than ten samples with measurements.

    See Also
    --------
    ExtendedKalmanFilter, UnscentedKalmanFilter, KalmanFilter : The filters.

    Examples
    --------
    >>> import numpy as np
    >>> import flexure as fx
    >>> constant = fx.StateSpace("constant", [[0.0]], np.zeros((1, 0)), [[1.0]])
    >>> model = fx.linearize(constant, inputs=[], outputs=["y"], period=0.1)
    >>> builder = fx.DiagramBuilder("noisy")
    >>> builder.add_all(
    ...     fx.Noise("noise", seed=1, period=0.1, standard_deviation=0.5),
    ...     fx.KalmanFilter("kalman", model, W=0.0, V=0.25, initial_covariance=1.0),
    ... )
    >>> builder.connect_chain("noise", "kalman.y")
    >>> result = fx.simulate(builder.build(), 100.0)
    >>> print(fx.filter_consistency(result, "kalman"))
    consistent   yes, 1000 samples
    mean NIS     1.03 per component, expected 0.9027 to 1.103
    correlation  0.03566, expected up to 0.07072
    """
    from scipy.stats import chi2, norm

    attempt = "Cannot test the consistency of a filter"
    require(isinstance(result, SimulationResult), result, attempt, "the result of a simulation")
    block: Any = result.system.get_system(filter) if isinstance(filter, str) else filter
    require(isinstance(block, SampledFilter), filter, attempt, "a Kalman filter or its path")
    about = f"{attempt} with this confidence"
    level = bounded(confidence, about, lower=0.0, upper=1.0, exclusive=True)
    first = float(as_number(start, (), attempt))
    times = _between_samples(block, result, first)
    nis, used, innovation = (
        result.sample(port, times).reshape(len(times), -1)
        for port in (block.nis, block.num_used, block.innovation)
    )
    fresh = used[:, 0] > 0.0
    times, nis, used, innovation = times[fresh], nis[fresh, 0], used[fresh, 0], innovation[fresh]
    if len(times) < _FEWEST:
        raise EvaluationError(
            attempt,
            expected=f"at least {_FEWEST} samples with measurements",
            found=f"{len(times)}",
            remedy="Simulate a longer time, or start earlier",
        )
    total, each = float(used.sum()), 0.5 * (1.0 - math.sqrt(level))
    low, high = (float(chi2.ppf(share, total)) / total for share in (each, 1.0 - each))
    mean = float(nis.sum()) / total
    correlation, counts = _correlation(innovation)
    share = math.sqrt(level) ** (1.0 / innovation.shape[1])
    bound = norm.ppf(0.5 * (1.0 + share)) / np.sqrt(np.maximum(counts, 1.0))
    return FilterConsistency(
        is_consistent=bool(low <= mean <= high and (np.abs(correlation) <= bound).all()),
        mean_nis=mean,
        bounds=(low, high),
        correlation=correlation,
        correlation_bound=bound,
        confidence=level,
        times=times - 0.5 * block.period,
        nis=nis,
        num_used=used,
    )


def _between_samples(block: SampledFilter, result: SimulationResult, start: float) -> FloatArray:
    """Return times halfway between samples, at which their results are held."""
    period, end = block.period, float(result.time[-1])
    first = block.offset + 0.5 * period
    count = max(math.floor((end - first) / period) + 1, 0)
    times = first + period * np.arange(count)
    return np.asarray(times[times - 0.5 * period >= max(start, float(result.time[0]))])


def _correlation(innovation: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the correlation of each column with itself one measured sample later, and counts."""
    found = []
    for column in innovation.T:
        values = column[column != 0.0]  # missing ones are zero
        power = float(values @ values)
        found.append((float(values[1:] @ values[:-1]) / power if power else 0.0, len(values)))
    correlation, counts = np.array(found, dtype=float).T
    return correlation, counts
