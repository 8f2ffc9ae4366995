"""Describing functions: the response of a nonlinear block to sines of some amplitudes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.waveforms import Sine
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import EvaluationError, ValueRefusedError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.drawing.formats.new_figures import Plotted
from flexure.diagrams.drawing.formats.style import COLORS, tidy
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.copying import detached
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import Array, FloatArray, as_numbers, bounded, freeze
from flexure.solvers.design.measured_responses.estimates import ComplexArray
from flexure.solvers.design.measured_responses.excitation import ExcitedSystem
from flexure.solvers.simulation.simulation import simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CYCLES = 3  # of which the last one is integrated
_STEPS = 8  # of a period, at least
_CELLS = 32  # of a period, before they are split
_SPLIT = 0.41  # where: no jump is weighted alike in a cell and its parts
_FINEST = 60  # times
_EXACT = 1e-9  # of the largest output: what splitting a cell may change
#: Nodes of Lobatto's rule, whose ends show jumps next to them, and weights.
_INNER = np.polynomial.Legendre.basis(5).deriv().roots()
_NODES = np.array([-1.0, *_INNER, 1.0])
_WEIGHTS = 1.0 / (15.0 * np.polynomial.Legendre.basis(5)(_NODES) ** 2)
_ROUNDING = 1e-9  # of the fundamental: smaller means are shown as zero
_REPEATS = 1e-6  # of the largest output: more from cycle to cycle is no periodic answer


@dataclass(frozen=True, eq=False)
class DescribingFunction(Answer, Plotted):
    """The describing function of a nonlinear block.

    Its picture has the magnitude over the amplitude, and the phase if any.

    Attributes
    ----------
    amplitudes : ndarray, shape (n,)
        Amplitudes A of the input.
    gains : ndarray of complex, shape (n,)
        N(A): the fundamental of the output per amplitude of the input; its angle is the phase lead.
    means : ndarray, shape (n,)
        Mean values of the output.
    bias : float
        Mean value of the input.
    name : str
        The block.

    See Also
    --------
    describing_function : Compute one.

    Examples
    --------
    >>> import flexure as fx
    >>> found = fx.describing_function(fx.Saturation("limit", -1.0, 1.0), [0.5, 2.0])
    >>> found.gains.real.round(6)
    array([1.      , 0.608998])
    """

    amplitudes: FloatArray
    gains: ComplexArray
    means: FloatArray
    bias: float
    name: str

    _figsize = (8.0, 4.2)

    def _draw(self, ax: Axes) -> None:
        ax.plot(self.amplitudes, np.abs(self.gains), color=COLORS[0], label="|N|")
        ax.set_xlabel("amplitude")
        ax.set_ylabel("magnitude")
        phases = np.degrees(np.angle(self.gains))
        if np.any(np.abs(phases[self.gains != 0.0]) > 1e-6):
            ax.plot(self.amplitudes, phases / 90.0, color=COLORS[1], label="phase / 90°")
            ax.legend(frameon=False)
            ax.set_ylabel("magnitude, phase / 90°")
        tidy(ax)

    def __str__(self) -> str:
        lines = [
            f"describing function of '{self.name}'",
            "  amplitude   gain        phase °   mean",
        ]
        for amplitude, gain, mean in zip(self.amplitudes, self.gains, self.means, strict=True):
            turn = np.degrees(np.angle(gain))
            shown = mean if abs(mean) > _ROUNDING * abs(gain) * amplitude else 0.0
            lines.append(f"  {amplitude:<10.4g}  {abs(gain):<10.4g}  {turn:8.2f}  {shown:.4g}")
        return "\n".join(lines)


@answers_other_words
def describing_function(
    block: System,
    amplitude: npt.ArrayLike,
    *,
    bias: float = 0.0,
    frequency: float = 1.0,
    context: Context | None = None,
) -> DescribingFunction:
    """Compute the describing function of a nonlinear block, from its own equations.

    The input is ``u = bias + A sin(ωt)``. The describing function is the first Fourier coefficient
    of the output, ``N(A) = 2j / (T A) ∫ y exp(-jωt) dt`` over one period T.

    Parameters
    ----------
    block : System
        A block, or a diagram, with one input and one output of one component; a block in a diagram
        is used alone.
    amplitude : array_like, shape (n,)
        Amplitudes A, positive, in units of the input.
    bias : float
        Mean value of the input.
    frequency : float
        ω in rad/s. It matters for blocks with dynamics of their own.
    context : Context, optional
        Values of the parameters: a root context of the block, or of the diagram it is in; it is not
        changed. Default values when omitted.

    Returns
    -------
    DescribingFunction

    Raises
    ------
    ValueRefusedError
        When an amplitude is not positive, or the block has other ports.
    EvaluationError
        When the output is not finite, or does not repeat after a few periods.

    See Also
    --------
    limit_cycles : Oscillations that follow from it.
    frequency_response : Response of a whole system to sines.

    Notes
    -----
    The block is simulated, so that hysteresis switches at its events. The integral is adaptive:
    cells are split around kinks and jumps until the result does not change.

    Examples
    --------
    A relay without bias has the gain 4/(πA), and hysteresis delays it:

    >>> import flexure as fx
    >>> relay = fx.Relay("relay", on_threshold=0.5, off_threshold=-0.5, off_value=-1.0)
    >>> found = fx.describing_function(relay, [1.0, 2.0])
    >>> np.abs(found.gains).round(6), np.degrees(np.angle(found.gains)).round(3)
    (array([1.27324, 0.63662]), array([-30.   , -14.478]))
    """
    require_system(block, "Cannot compute a describing function")
    attempt = f"Cannot compute the describing function of '{block.label}'"
    sizes = np.atleast_1d(as_numbers(amplitude, attempt, "amplitude"))
    fits = sizes.ndim == 1 and sizes.size and np.isfinite(sizes).all() and bool(np.all(sizes > 0.0))
    require(fits, amplitude, attempt, "one or more amplitudes above zero")
    mean = bounded(bias, f"{attempt} with this bias")
    attempt_at = f"{attempt} at this frequency"
    omega = bounded(frequency, attempt_at, lower=0.0, exclusive=True, unit="rad/s")
    harmonics = Harmonics(block, context, omega, attempt)
    found = [harmonics(float(size), mean) for size in sizes]
    gains, means = (np.array(each) for each in zip(*found, strict=True))
    return DescribingFunction(freeze(sizes), gains, means, mean, block.label)


class _Oscillation(Sine):
    """A sine with a state that rests, since native loops run systems with states only."""

    def __init__(self, omega: float) -> None:
        super().__init__("sine", frequency=omega)
        self.declare_continuous_state(z=1, name="rest")

    def calc_time_derivatives(self, context: Any) -> Array:
        """Return no rate."""
        return np.zeros(1)


class Harmonics:
    """Mean and fundamental of the output of a block for sines of ``omega`` rad/s at its input."""

    def __init__(self, block: System, context: Context | None, omega: float, attempt: str) -> None:
        ports = [
            [port for port in each if port.size] for each in (block.input_ports, block.output_ports)
        ]
        if [[port.size for port in each] for each in ports] != [[1], [1]]:
            raise ValueRefusedError(
                attempt,
                expected="a block with one input and one output of one component",
                found=f"inputs {quoted(p.name for p in ports[0])} and outputs "
                f"{quoted(p.name for p in ports[1])}",
            )
        self._attempt, self._period = attempt, 2.0 * np.pi / omega
        alone = _alone(block, context, attempt)
        alone.time = 0.0
        own = alone.system
        own.input_ports[0].fix(alone, 0.0)
        sine = _Oscillation(omega)
        excited = ExcitedSystem(alone, own.input_ports[0], own.output_ports[0], (), sine, attempt)
        self._context, self._output = excited.context, excited.outputs[0]
        self._sine, self._block = sine, excited.inner
        self._known: dict[tuple[float, float], tuple[complex, float, list[Any]]] = {}

    def __call__(self, amplitude: float, bias: float) -> tuple[complex, float]:
        """Return the describing function, and the mean of the output."""
        if (amplitude, bias) not in self._known:
            self._known[amplitude, bias] = self._computed(amplitude, bias)
        gain, mean, _ = self._known[amplitude, bias]
        return gain, mean

    def discrete(self, amplitude: float, bias: float) -> list[Any]:
        """Return the discrete states of the block where its input rises through the bias."""
        self(amplitude, bias)
        return self._known[amplitude, bias][2]

    def _computed(self, amplitude: float, bias: float) -> tuple[complex, float, list[Any]]:
        context, period = self._context.clone(), self._period
        self._sine.amplitude.set(context, [amplitude])
        self._sine.offset.set(context, [bias])
        begin = (_CYCLES - 1) * period
        result = simulate(
            context.system, _CYCLES * period, context=context, max_step=period / _STEPS
        )

        sample = partial(result.sample, self._output)
        self._require_repetition(sample, begin)
        mean, first = fourier(sample, begin, period, result.time)
        own: Any = result.context_at(begin).find(self._block)
        return 2j * first / amplitude, mean.real, list(getattr(own, "discrete", ()))

    def _require_repetition(self, sample: Callable[[FloatArray], FloatArray], begin: float) -> None:
        """Refuse an output that is another one in the last two cycles."""
        phases = self._period * (np.arange(_CELLS) + 0.37) / _CELLS
        now, before = sample(begin + phases), sample(begin - self._period + phases)
        finite = np.isfinite(now).all()
        require(finite, now, self._attempt, "a finite output", error=EvaluationError)
        change = float(np.max(np.abs(now - before)))
        if change > _REPEATS * float(np.max(np.abs(now))):
            raise EvaluationError(
                self._attempt,
                expected=f"an output that repeats after {_CYCLES - 1} periods",
                found=f"one that changes by {change:.3g} from one period to the next",
                remedy="Measure blocks with slow dynamics of their own with fx.frequency_response",
            )


def fourier(
    sample: Callable[[FloatArray], FloatArray], begin: float, period: float, stops: FloatArray
) -> tuple[complex, complex]:
    """Return mean and first Fourier coefficient, ``∫ y exp(-jωt) dt / T``, of a periodic signal.

    ``sample`` returns it at ascending times. It may jump at ``stops``; cells are split around
    other jumps and kinks.
    """
    inside = stops[(stops > begin) & (stops < begin + period)]
    edges = np.unique(np.append(begin + period * np.arange(_CELLS + 1) / _CELLS, inside))
    left, right = edges[:-1], edges[1:]
    total = np.zeros(2, dtype=complex)

    def integrals(a: FloatArray, b: FloatArray) -> ComplexArray:
        a, b = a[:, np.newaxis], b[:, np.newaxis]
        times = np.clip(0.5 * (a + b) + 0.5 * (b - a) * _NODES, a, b)
        order = np.argsort(times, axis=None, kind="stable")  # ends of neighbors: before and after
        values = np.empty(times.size)
        values[order] = sample(times.ravel()[order])
        weighted = values.reshape(times.shape) * _WEIGHTS * 0.5 * (b - a) / period
        turned = weighted * np.exp(-2j * np.pi * (times - begin) / period)
        return np.array([weighted.sum(axis=1), turned.sum(axis=1)])

    whole = integrals(left, right)
    for depth in range(_FINEST):
        middle = left + _SPLIT * (right - left)
        first, second = integrals(left, middle), integrals(middle, right)
        parts = first + second
        bound = _EXACT * max(
            float(np.max(np.abs(total))), float(np.max(np.abs(parts), initial=0.0))
        )
        rough = np.max(np.abs(parts - whole), axis=0) > bound
        if depth == _FINEST - 1:
            rough[:] = False
        total += parts[:, ~rough].sum(axis=1)
        if not rough.any():
            break
        left, right = (
            np.concatenate([left[rough], middle[rough]]),
            np.concatenate([middle[rough], right[rough]]),
        )
        whole = np.concatenate([first[:, rough], second[:, rough]], axis=1)
    return complex(total[0]), complex(total[1])


def _alone(block: System, context: Context | None, attempt: str) -> Context:
    """Return a root context of a block alone, with the values that it has in a context."""
    if block.parent is None:
        return start_context(block, context, attempt)
    require(
        isinstance(block, LeafSystem), block, attempt, "a block, or a diagram that is in no other"
    )
    found = detached(block).create_default_context()
    if context is not None:
        found.take(context.find(block))
        found.store.x = context.find(block).continuous_state
    return cast("Context", found)
