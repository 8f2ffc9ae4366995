"""Plans of samples: values drawn from intervals, distributions and tolerances, by one seed.

Samples are points u of a unit cube, drawn in one of three ways, and each path takes the quantile of
its distribution at its component of u. Where paths are correlated, the components first go through
a Gaussian copula: u' = Φ(L Φ⁻¹(u)) with the Cholesky factor L of the matrix of correlations.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import flag, generator, is_whole, require, shown
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, quoted, warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way, find_place, path_of, several
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, as_numbers, freeze, show
from flexure.solvers.sweeps.plans.plans import SAMPLE, Axis, Plan

#: What samples are drawn of: a distribution for each path, or paths that all have one tolerance.
Sampled: TypeAlias = Mapping[Any, Any] | Way | Iterable[Way]
#: Correlations by paths: a number for two of them, a matrix for more.
Correlations: TypeAlias = Mapping[Any, npt.ArrayLike]
#: A seed of random numbers, or a generator of them.
Seed: TypeAlias = int | np.random.Generator

_HALF_WIDTH = re.compile(r"\s*(?:±|\+-|\+/-)\s*(\d\S*|\.\d\S*)\s*")
_PERCENT = re.compile(r"\s*(?:±|\+-|\+/-)?\s*(\d+\.?\d*|\.\d+)\s*%\s*")
_LEAST, _GREATEST = 2.0**-54, 1.0 - 2.0**-53  # within which quantiles are finite
_BITS = 30  # of the coordinates of Sobol points
_MOST = 2**_BITS  # samples


class Options(NamedTuple):
    """Options of the sampling methods."""

    plus_minus: float | str | None
    correlation: Correlations | None
    context: Context | System | None
    seed: Seed

    @property
    def nominal(self) -> Context | None:
        """The context with the nominal values: that of a system is made at each call."""
        context = self.context
        return context.create_default_context() if isinstance(context, System) else context


@answers_other_words
def latin_hypercube(
    values: Sampled,
    num_samples: int,
    *,
    plus_minus: float | str | None = None,
    correlation: Correlations | None = None,
    context: Context | System | None = None,
    seed: Seed = 0,
) -> Plan:
    """Plan runs by Latin hypercube sampling: one sample in each of n strata.

    That holds for each path by itself, so means and quantiles come out with far less scatter than
    from as many independent samples.

    Parameters
    ----------
    values : mapping, or paths
        Distributions of the values, by path or handle. For each, one of

        - ``(low, high)``: uniform between two numbers, or arrays with bounds of each component;
        - a frozen distribution of ``scipy.stats``, such as ``norm(3.0, 0.2)``;
        - a tolerance, such as ``"5 %"``, or ``"± 2e-5"`` in the unit of the value: uniform around
          the nominal value in ``context``;
        - for several paths as a key, ``scipy.stats.multivariate_normal(mean, cov)``.

        A path or a list of paths, instead, all take the tolerance ``plus_minus``.
    num_samples : int
        How many samples, at least one.
    plus_minus : float or str, optional
        Tolerance of the paths in a list, relative to their nominal values: 0.05 or ``"5 %"``.
    correlation : mapping, optional
        Correlations ρ of paths with one number each: ``{("a", "b"): 0.8}``, or a matrix for more
        than two. They are those of the normal variables of a Gaussian copula. The
        correlation of normal distributions is then ρ, too; that of uniform ones is 6/π asin(ρ/2).
    context : Context or System, optional
        Where the nominal values are; of a system its defaults.
    seed : int or numpy.random.Generator
        The same seed gives the same plan, wherever it is made.

    Returns
    -------
    Plan

    Raises
    ------
    UnknownNameError
        When the context has no such path.
    ValueRefusedError
        When something is no distribution, a nominal value is zero, or correlations contradict each
        other.

    See Also
    --------
    sobol : Plan runs by points of a Sobol sequence.

    Examples
    --------
    >>> import flexure as fx
    >>> from scipy.stats import norm
    >>> plan = fx.plans.latin_hypercube(
    ...     {"spring.stiffness": norm(40.0, 2.0), "mass": (1.0, 2.0)}, 100
    ... )
    >>> np.sort(np.floor(100.0 * (plan["mass"] - 1.0)))[:4]
    array([0., 1., 2., 3.])
    """

    def draw(rng: np.random.Generator, correlated: Copula, size: int) -> FloatArray:
        strata = rng.permuted(np.tile(np.arange(num_samples), (size, 1)), axis=1).T
        within = rng.random((num_samples, size))
        points = _inside((strata + within) / num_samples)
        if correlated is uncorrelated:
            return points
        moved = correlated(points)  # so that the ranks of these are the strata
        strata = np.argsort(np.argsort(moved, axis=0, kind="stable"), axis=0, kind="stable")
        return _inside((strata + within) / num_samples)

    options = Options(plus_minus, correlation, context, seed)
    return sampled("Cannot make a Latin hypercube", values, num_samples, draw, options)


@answers_other_words
def sobol(
    values: Sampled,
    num_samples: int,
    *,
    scramble: bool = True,
    plus_minus: float | str | None = None,
    correlation: Correlations | None = None,
    context: Context | System | None = None,
    seed: Seed = 0,
) -> Plan:
    """Plan runs by points of a Sobol sequence, which fill space evenly.

    Parameters
    ----------
    values, num_samples, plus_minus, correlation, context, seed
        As for `latin_hypercube`. Samples are balanced where ``num_samples`` is a power of two.
    scramble : bool
        Whether the points are scrambled, by the seed. Without that, the first one is the lower end
        of all intervals, which distributions without bounds do not have.

    Returns
    -------
    Plan

    Warns
    -----
    UserWarning
        When ``num_samples`` is no power of two.

    Raises
    ------
    UnknownNameError, ValueRefusedError
        As for `latin_hypercube`.

    See Also
    --------
    latin_hypercube : Plan runs by Latin hypercube sampling.

    Examples
    --------
    >>> import flexure as fx
    >>> fx.plans.sobol({"mass": (1.0, 2.0)}, 4, scramble=False)["mass"]
    array([1.  , 1.5 , 1.75, 1.25])
    """
    attempt = "Cannot make a plan of Sobol points"
    scrambled = flag(scramble, "scramble", attempt)

    def draw(rng: np.random.Generator, correlated: Copula, size: int) -> FloatArray:
        return correlated(sobol_points(rng, size, num_samples, scramble=scrambled))

    return sampled(
        attempt, values, num_samples, draw, Options(plus_minus, correlation, context, seed)
    )


@answers_other_words
def random(
    values: Sampled,
    num_samples: int,
    *,
    plus_minus: float | str | None = None,
    correlation: Correlations | None = None,
    context: Context | System | None = None,
    seed: Seed = 0,
) -> Plan:
    """Plan runs by independent random samples.

    Parameters
    ----------
    values, num_samples, plus_minus, correlation, context, seed
        As for `latin_hypercube`.

    Returns
    -------
    Plan

    Raises
    ------
    UnknownNameError, ValueRefusedError
        As for `latin_hypercube`.

    See Also
    --------
    latin_hypercube : Plan runs by Latin hypercube sampling.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", 2.0)
    >>> fx.plans.random("time_constant", 1000, plus_minus="5 %", context=lag)[
    ...     "time_constant"
    ... ].round(3)[:4]
    array([2.027, 1.954, 1.908, 1.903])
    """

    def draw(rng: np.random.Generator, correlated: Copula, size: int) -> FloatArray:
        return correlated(_inside(rng.random((num_samples, size))))

    options = Options(plus_minus, correlation, context, seed)
    return sampled("Cannot make a plan of random samples", values, num_samples, draw, options)


#: Correlates the columns of an array of points of the unit cube.
Copula: TypeAlias = Callable[[FloatArray], FloatArray]


def uncorrelated(points: FloatArray) -> FloatArray:
    """Leave points as they are, where nothing is correlated."""
    return points


def sobol_points(
    rng: np.random.Generator, size: int, n: int, *, scramble: bool = True
) -> FloatArray:
    """Return points of a Sobol sequence, shape ``(n, size)``; warn where they are not balanced."""
    from scipy.stats import qmc

    power = int(n - 1).bit_length()
    if n != 1 << power:
        warn(
            f"{n} Sobol points are not balanced, since their number is not a power of two: use "
            f"{1 << (power - 1)} or {1 << power}"
        )
    taken = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"
    made: Any = qmc.Sobol
    points = made(size, scramble=scramble, bits=_BITS, **{taken: rng}).random_base2(power)[:n]
    # Scrambled points are the lower corners of cells: in their middle, none is at an end.
    return np.asarray(points + (0.5 ** (_BITS + 1) if scramble else 0.0))


def _inside(points: FloatArray) -> FloatArray:
    """Keep points off the ends, where quantiles may be infinite and rounding may have led."""
    return np.clip(points, _LEAST, _GREATEST)


def sampled(
    attempt: str,
    values: Sampled,
    n: Any,
    draw: Callable[[np.random.Generator, Copula, int], FloatArray],
    options: Options,
) -> Plan:
    """Return the plan of samples that are drawn in some way: one for each row of what is drawn."""
    fits = is_whole(n) and 1 <= n <= _MOST
    require(fits, n, attempt, f"num_samples to be an integer in [1, {_MOST}]")
    context = options.context
    if not (context is None or isinstance(context, (Context, System))):
        raise ValueRefusedError(
            attempt, expected="context= to be a context or a system", found=shown(context)
        )
    rng = generator(options.seed, attempt)
    drawn, given = marginals(values, attempt, options)
    correlated = _copula(drawn, [*given, *_pairs(options.correlation, attempt)], attempt)
    points = draw(rng, correlated, sum(each.size for each in drawn))
    columns, start = {}, 0
    for each in drawn:
        part = points[:, start : start + each.size].reshape(len(points), *each.shape)
        columns[each.path] = each.values(part, attempt)
        start += each.size
    return Plan([Axis(SAMPLE, columns)])


# What is drawn -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Marginal:
    """The distribution of one path."""

    path: str
    shape: tuple[int, ...]  # of its value
    # Values for points of the unit cube, whose last axes are those of the shape.
    quantile: Callable[[FloatArray], Any]

    @property
    def size(self) -> int:
        """Number of components."""
        return math.prod(self.shape)

    def values(self, points: FloatArray, attempt: str) -> FloatArray:
        """Return the values at points, shape ``(n, *shape)``."""
        with np.errstate(all="ignore"):
            found = np.asarray(self.quantile(points), dtype=float)
        good = np.isfinite(found)
        if not good.all():
            row = int(np.argwhere(~good)[0][0])
            raise ValueRefusedError(
                f"{attempt} for '{self.path}'",
                expected="a distribution with finite quantiles",
                found=f"{show(found[row])} in the sample at index {row}",
            )
        return np.asarray(freeze(found))


_Matrix: TypeAlias = tuple[tuple[str, ...], FloatArray]


def marginals(values: Any, attempt: str, options: Options) -> tuple[list[Marginal], list[_Matrix]]:
    """Return what is drawn from, and the correlations that joint distributions bring."""
    if not isinstance(values, Mapping):
        if options.plus_minus is None:
            raise ValueRefusedError(
                attempt,
                expected="a mapping from paths to intervals or distributions, or paths with the "
                "tolerance plus_minus=",
                found=shown(values),
            )
        values = dict.fromkeys(map(path_of, several(values)), options.plus_minus)
    elif options.plus_minus is not None:
        raise ValueRefusedError(
            attempt,
            expected="plus_minus= with a list of paths",
            found="a mapping, which has a distribution for each path",
            remedy="Write the tolerance into the mapping, as in {'spring.stiffness': '5 %'}",
        )
    options = options._replace(context=options.nominal)
    found: list[Marginal] = []
    joint: list[_Matrix] = []
    for key, source in values.items():
        if isinstance(key, tuple):
            parts, matrix = _joint(tuple(map(path_of, key)), source, attempt)
            found += parts
            joint.append(matrix)
        else:
            path = path_of(key)
            found.append(_marginal(path, source, f"{attempt} for '{path}'", options))
    paths = [each.path for each in found]
    if not paths or len(set(paths)) < len(paths):
        twice = {path for path in paths if paths.count(path) > 1}
        raise ValueRefusedError(
            attempt,
            expected="at least one path, and each of them once",
            found=f"{quoted(sorted(twice))} more than once" if twice else "none",
        )
    return found, joint


def _marginal(path: str, source: Any, attempt: str, options: Options) -> Marginal:
    """Return what one path is drawn from."""
    if isinstance(source, (str, float, int)) and not isinstance(source, bool):
        return _uniform(path, *_around(path, source, attempt, options.context), attempt)
    if isinstance(source, (tuple, list)) and len(source) == 2:
        low, high = (as_numbers(end, attempt) for end in source)
        return _uniform(path, low, high, attempt)
    quantile = getattr(source, "ppf", None) or getattr(source, "icdf", None)
    if callable(quantile) and not isinstance(source, type):
        try:
            return Marginal(path, np.shape(quantile(0.5)), quantile)
        except Exception as error:
            raise ValueRefusedError(
                attempt,
                expected="a distribution with all of its parameters, such as norm(3.0, 0.2)",
                found=f"{type(source).__name__}, whose quantiles raise {error!r:.200}",
            ) from error
    raise ValueRefusedError(
        attempt,
        expected="(low, high), a frozen distribution of scipy.stats, or a tolerance such as '5 %'",
        found=shown(source),
    )


def _uniform(path: str, low: Any, high: Any, attempt: str) -> Marginal:
    """Return a uniform distribution between two ends."""
    try:
        shape = np.broadcast_shapes(np.shape(low), np.shape(high))
    except ValueError:
        shape = (0,)
    if 0 in shape or not np.all((low < high) & np.isfinite(low) & np.isfinite(high)):
        raise ValueRefusedError(
            attempt,
            expected="(low, high), two finite numbers, or arrays of one shape, in this order",
            found=f"({show(low)}, {show(high)})",
        )
    # The sum of parts does not overflow, and ends where it should.
    return Marginal(path, shape, lambda points: low * (1.0 - points) + high * points)


def _around(path: str, tolerance: Any, attempt: str, context: Any) -> tuple[Any, Any]:
    """Return the interval around a nominal value."""
    width = _half_width(tolerance)
    share = _share(tolerance, attempt) if width is None else 1.0
    nominal = nominal_value(path, context, attempt)
    if width is not None:
        return nominal - width, nominal + width
    if not np.all(nominal):
        raise ValueRefusedError(
            attempt,
            expected="a nominal value without zeros, since a tolerance is a fraction of it",
            found=show(nominal),
            remedy="Give the interval itself, as in {'spring.offset': (-0.1, 0.1)}",
        )
    return nominal - share * np.abs(nominal), nominal + share * np.abs(nominal)


def nominal_value(path: str, context: Any, attempt: str) -> FloatArray:
    """Return the value of a path in a context."""
    if not isinstance(context, Context):
        raise ValueRefusedError(
            attempt,
            expected="context=, the context or system that has its nominal value",
            found=shown(context),
        )
    place = find_place(context.system, path)
    if place.shape is None:
        raise UnknownNameError(
            attempt, expected="a value of numbers", found=f"the {place.handle.what} '{path}'"
        )
    return np.asarray(place.read(context), dtype=float).reshape(place.shape)


def _half_width(tolerance: Any) -> float | None:
    """Return a tolerance in the unit of the value; None where it is not one."""
    found = _HALF_WIDTH.fullmatch(tolerance) if isinstance(tolerance, str) else None
    with suppress(ValueError):
        width = float(found[1]) if found else 0.0
        return width if 0.0 < width < math.inf else None
    return None


def _share(tolerance: Any, attempt: str) -> float:
    """Return a tolerance as a share of one."""
    share = math.nan
    if isinstance(tolerance, str):
        found = _PERCENT.fullmatch(tolerance)
        share = float(found[1]) / 100.0 if found else math.nan
    elif isinstance(tolerance, (float, int)) and abs(tolerance) < 1e300:
        share = float(tolerance)
    if not 0.0 < share < math.inf:
        raise ValueRefusedError(
            attempt, expected="a tolerance, such as 0.05, '5 %' or '± 2e-5'", found=shown(tolerance)
        )
    return share


# What is correlated ------------------------------------------------------------------------


def _joint(paths: tuple[str, ...], source: Any, attempt: str) -> tuple[list[Marginal], _Matrix]:
    """Return the normal distributions of several paths, and their correlations."""
    from scipy.special import ndtri

    attempt = f"{attempt} for {quoted(paths)}"
    expected = f"scipy.stats.multivariate_normal(mean, cov) of {len(paths)} variables"
    if not (hasattr(source, "mean") and hasattr(source, "cov")) or isinstance(source, type):
        raise ValueRefusedError(attempt, expected=expected, found=shown(source))
    mean, cov = as_numbers(source.mean, attempt), as_numbers(source.cov, attempt)
    size = len(paths)
    if mean.shape != (size,) or cov.shape != (size, size) or not np.all(np.diag(cov) > 0.0):
        raise ValueRefusedError(
            attempt, expected=expected, found=f"a mean of shape {mean.shape} and cov {show(cov)}"
        )
    deviations = np.sqrt(np.diag(cov))

    def quantile_of(k: int) -> Callable[[FloatArray], Any]:
        return lambda points: mean[k] + deviations[k] * ndtri(points)

    parts = [Marginal(path, (), quantile_of(k)) for k, path in enumerate(paths)]
    return parts, (paths, cov / np.outer(deviations, deviations))


def _pairs(correlation: Any, attempt: str) -> Iterable[_Matrix]:
    """Return the correlations that are given, as matrices."""
    if correlation is None:
        return
    tuples = isinstance(correlation, Mapping) and all(isinstance(k, tuple) for k in correlation)
    if not tuples:
        raise ValueRefusedError(
            attempt,
            expected="correlation= to be a mapping such as {('a', 'b'): 0.8}",
            found=shown(correlation),
        )
    for key, given in correlation.items():
        paths = tuple(map(path_of, key))
        of_these = f"{attempt} with the correlation of {quoted(paths)}"
        matrix = as_numbers(given, of_these)
        if matrix.ndim == 0 and len(paths) == 2:
            matrix = np.array([[1.0, matrix[()]], [matrix[()], 1.0]])
        size = len(set(paths))
        fits = matrix.shape == (len(paths), len(paths)) and size == len(paths)
        if not fits or not np.allclose(matrix, matrix.T) or not np.allclose(np.diag(matrix), 1.0):
            raise ValueRefusedError(
                of_these,
                expected="a number for two different paths, or for each pair of them in a "
                "symmetric matrix with ones on its diagonal",
                found=show(matrix),
            )
        yield paths, matrix


def _copula(
    marginals: list[Marginal], correlations: list[_Matrix], attempt: str
) -> Callable[[FloatArray], FloatArray]:
    """Return the function that correlates points."""
    if not correlations:
        return uncorrelated
    from scipy.special import ndtr, ndtri

    ends = np.cumsum([each.size for each in marginals])
    column = {each.path: int(end) - 1 for each, end in zip(marginals, ends, strict=True)}
    single = {each.path for each in marginals if each.shape == ()}
    whole = np.eye(int(ends[-1]))
    for paths, matrix in correlations:
        strange = [path for path in paths if path not in single]
        if strange:
            raise ValueRefusedError(
                f"{attempt} with the correlation of {quoted(paths)}",
                expected=f"paths that are sampled and take one number: {quoted(sorted(single))}",
                found=quoted(strange),
            )
        places = [column[path] for path in paths]
        whole[np.ix_(places, places)] = matrix
    try:
        factor = np.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        factor = np.full_like(whole, np.nan)
    if not np.isfinite(factor).all():
        raise ValueRefusedError(
            attempt,
            expected="compatible correlations, a positive definite matrix",
            found=show(whole),
        )
    return lambda points: ndtr(ndtri(points) @ factor.T)
