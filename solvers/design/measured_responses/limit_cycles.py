"""Limit cycles of a loop with a nonlinear block, by harmonic balance and by simulation.

The block answers ``u = b + A sin(ωt)`` with the mean m(A, b) and the fundamental N(A, b) A. The
linear rest G of the loop leads it back to u. Both balance where ``N G(jω) = 1`` and where the means
of the whole loop are constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.nonlinear import Relay
from flexure.diagrams.checks.arguments import flag, require
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.drawing.formats.new_figures import Plotted
from flexure.diagrams.drawing.formats.style import COLORS, tidy
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_numbers, bounded, freeze
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.design.measured_responses.describing_functions import DescribingFunction
from flexure.solvers.design.measured_responses.harmonic_balance import HarmonicBalance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 4000  # of a curve


@dataclass(frozen=True, eq=False)
class LimitCycles(Answer, Plotted):
    """The limit cycles that harmonic balance predicts, and what simulations show.

    Their picture has the loop gain L(jω) of the rest and -1/N(A) in the complex plane, and the
    crossings of both.

    Attributes
    ----------
    amplitudes : ndarray, shape (n,)
        Predicted amplitudes at the input of the block, ascending; empty when there is no cycle.
    frequencies : ndarray, shape (n,)
        Predicted frequencies in rad/s.
    biases : ndarray, shape (n,)
        Mean values at the input of the block.
    is_stable : ndarray of bool, shape (n,)
        Whether the balance predicts that the motion returns to the cycle.
    simulated_amplitudes, simulated_frequencies : ndarray, shape (n,)
        Amplitude of the fundamental, and frequency, that simulations reach from 70 % and from
        130 % of the predicted cycle; NaN where they do not reach the same one.
    is_confirmed : ndarray of bool, shape (n,)
        Whether simulations reach a cycle that is predicted to be stable, or leave an unstable one
        on both sides. False where nothing was simulated.
    describing_function : DescribingFunction
        Of the block, at the amplitudes that were searched, with the mean of the first one.
    model : LinearModel
        G, the linear rest of the loop: from the output of the block to its input.
    notes : tuple of str
        Where simulations disagree, which blocks of the rest pass no small changes, and what was not
        looked for.

    See Also
    --------
    limit_cycles : Predict them.

    Examples
    --------
    A saturation in a loop that is unstable for small motions:

    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(
    ...     fx.Gain("minus", -12.0),
    ...     fx.Saturation("motor", -1.0, 1.0),
    ...     fx.TransferFunction("plant", [1.0], [1.0, 3.0, 3.0, 1.0]),
    ... )
    >>> builder.connect_chain("minus", "motor", "plant", "minus")
    >>> loop = builder.build()
    >>> found = fx.limit_cycles(loop, "motor", np.geomspace(0.5, 20.0, 20), confirm=False)
    >>> len(found), found.frequencies.round(6)
    (1, array([1.732051]))
    """

    amplitudes: FloatArray
    frequencies: FloatArray
    biases: FloatArray
    is_stable: npt.NDArray[np.bool_]
    simulated_amplitudes: FloatArray
    simulated_frequencies: FloatArray
    is_confirmed: npt.NDArray[np.bool_]
    describing_function: DescribingFunction
    model: LinearModel
    notes: tuple[str, ...]

    _figsize = (7.0, 6.0)

    def _draw(self, ax: Axes) -> None:
        gains = self.describing_function.gains
        inverse = -1.0 / gains[gains != 0.0]
        centers = -self.model.frequency_response(self.frequencies)[:, 0, 0]
        reach = 2.5 * np.max(np.abs(centers)) if len(centers) else 2.0 * np.min(np.abs(inverse))
        period = self.model.period
        end = np.inf if period is None else np.pi / period
        slow = np.abs(self.model.poles[:1]) + 1e-300 if period is None else np.array([0.1 * end])
        around = self.frequencies if len(self) else slow
        highest = min(1e2 * np.max(around), end)
        grid = np.geomspace(1e-2 * np.min(around), highest, _POINTS)
        curve = -self.model.frequency_response(grid)[:, 0, 0]
        ax.plot(curve.real, curve.imag, color=COLORS[0], label="L(jω), the linear rest")
        ax.plot(inverse.real, inverse.imag, color=COLORS[1], label="-1/N(A)")
        for k, center in enumerate(centers):
            text = f"A = {self.amplitudes[k]:.3g}, {self.frequencies[k]:.3g} rad/s"
            text += ", stable" if self.is_stable[k] else ", unstable"
            filled = COLORS[2] if self.is_stable[k] else "white"
            style: dict[str, Any] = {"color": COLORS[2], "markerfacecolor": filled, "zorder": 3}
            ax.plot([center.real], [center.imag], "o", markersize=7, label=text, **style)
        ax.set_xlim(-reach, 0.5 * reach)
        ax.set_ylim(-0.75 * reach, 0.75 * reach)
        ax.set_xlabel("real part")
        ax.set_ylabel("imaginary part")
        tidy(ax)
        ax.legend(frameon=False, loc="best")

    def __len__(self) -> int:
        return len(self.amplitudes)

    def __str__(self) -> str:
        searched = self.describing_function.amplitudes
        name = self.describing_function.name
        lines = [
            f"no limit cycle at '{name}' at amplitudes {searched[0]:.4g} to {searched[-1]:.4g}"
        ]
        if len(self):
            lines = [
                f"limit cycles at the input of '{name}'",
                "  amplitude   rad/s       stable  simulated amplitude, rad/s  confirmed",
            ]
        for k, amplitude in enumerate(self.amplitudes):
            shown = f"{self.simulated_amplitudes[k]:.4g}, {self.simulated_frequencies[k]:.4g}"
            lines.append(
                f"  {amplitude:<10.4g}  {self.frequencies[k]:<10.4g}  "
                f"{'yes' if self.is_stable[k] else 'no':<6}  {shown:<26}  "
                f"{'yes' if self.is_confirmed[k] else 'no'}"
            )
        return "\n".join([*lines, *(f"note  {note}" for note in self.notes)])


@answers_other_words
def limit_cycles(
    system: Diagram,
    block: System | str,
    amplitude: npt.ArrayLike,
    *,
    context: Context | None = None,
    period: float | None = None,
    confirm: bool = True,
) -> LimitCycles:
    """Predict limit cycles of a loop with a nonlinear block, and simulate them.

    Parameters
    ----------
    system : Diagram
        A diagram with a loop through the block.
    block : System or str
        The nonlinear block, or its path: with one input and one output of one component.
    amplitude : array_like, shape (n,)
        Ascending amplitudes at its input, between which cycles are looked for, such as
        ``np.geomspace(0.1, 10.0, 60)``. Between two neighbors the describing function should bend
        little.
    context : Context, optional
        Operating point, about which the rest of the loop is linear; a root context, which is not
        changed. A default context when omitted.
    period : float, optional
        Sampling period in s of a sampled loop, as for `linearize`. Input or output of the block are
        held from one instant to the next, and amplitudes are those of samples.
    confirm : bool
        Whether to simulate from both sides of each cycle.

    Returns
    -------
    LimitCycles
        Empty when there is none at these amplitudes.

    Raises
    ------
    UnknownNameError
        When there is no such block.
    ValueRefusedError
        When amplitudes are not ascending above zero, or the block has other ports.
    EvaluationError
        When the describing function depends on the frequency; when the loop is sampled and there is
        no ``period``, input and output of the block move between the instants, or a sampler beside
        it has another period.

    See Also
    --------
    describing_function : The describing function alone.
    loop_gain : The linear rest of the loop, up to its sign.

    Notes
    -----
    Harmonic balance neglects what harmonics return through the rest of the loop. It is accurate
    where the rest is a low-pass filter, and can predict cycles that do not exist, or miss some. So
    each cycle is simulated; ``notes`` says where simulation and prediction differ by more than
    10 %.

    The mean value of the loop is part of the balance, for relays between 0 and 1 or loads that
    push to one side. A cycle is stable if the poles of the loop with the gain N(A), but those of
    the cycle itself, decay, and if a larger amplitude makes the cycle decay (Loeb's criterion).

    A sampled loop is balanced with the response of its rest from sample to sample. Cycles of a
    `Relay` then have whole numbers of samples. Up to 200 samples, they are exact: the output that
    repeats goes through the rest with all harmonics, and a cycle exists where the input
    switches the relay at just these samples (Tsypkin), on and off once in a cycle; others, in which
    it does so more often, are not looked for. Several cycles can exist side by side. They
    are stable if all motions of the rest decay, except the mean behind an integrator, which is free
    within bounds: ``biases`` are the middle of these. Runs begin next to an exact cycle, and
    confirm it if all samples stay there.

    Examples
    --------
    A relay with the plant 1 / (s (s + 1)²). The phase of the plant is -180° at 1 rad/s:

    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(
    ...     fx.Gain("minus", -1.0),
    ...     fx.Relay("relay", 0.001, -0.001, on_value=1.0, off_value=-1.0),
    ...     fx.TransferFunction("plant", [1.0], [1.0, 2.0, 1.0, 0.0]),
    ... )
    >>> builder.connect_chain("minus", "relay", "plant", "minus")
    >>> found = fx.limit_cycles(builder.build(), "relay", np.geomspace(0.1, 2.0, 20))
    >>> found.amplitudes.round(3), found.frequencies.round(3), found.is_stable
    (array([0.639]), array([0.998]), array([ True]))
    >>> found.simulated_amplitudes.round(2), found.simulated_frequencies.round(2)
    (array([0.67]), array([0.98]))
    """
    require_system(system, "Cannot find limit cycles")
    attempt = f"Cannot find limit cycles of '{system.label}'"
    require(isinstance(system, Diagram), system, attempt, "a diagram with a loop")
    start = start_context(system, context, attempt)
    sizes = as_numbers(amplitude, attempt, "amplitude")
    fits = bool(sizes.ndim == 1 and sizes.size > 1 and np.isfinite(sizes).all())
    fits = fits and bool(sizes[0] > 0.0 and np.all(np.diff(sizes) > 0.0))
    require(fits, amplitude, attempt, "two or more ascending amplitudes above zero")
    simulated = flag(confirm, "confirm", attempt)
    nonlinear: Any = system.get_system(block) if isinstance(block, str) else block
    require_system(nonlinear, attempt)
    start.find(nonlinear)  # refuses blocks of other systems
    if period is not None:
        period = float(bounded(period, f"{attempt} with this period", lower=0.0, exclusive=True))
    search = HarmonicBalance(start, nonlinear, attempt, period)
    curve = search.curve(sizes)
    if not curve:
        raise EvaluationError(
            attempt,
            expected="an amplitude at which the mean values of the loop balance",
            found="none, so that the loop drifts away",
            remedy="Start from an equilibrium, or pass other amplitudes",
        )
    cycles = search.cycles(curve, sizes)
    rows = [(c.balance.amplitude, c.omega, c.balance.bias) for c in cycles]
    found = np.array(rows).reshape(-1, 3)
    own = f"'{nonlinear.label}' "
    notes = [note for note in search.model.notes if not note.startswith(own)]
    if period is not None and isinstance(nonlinear, Relay) and not cycles:
        notes.append(f"cycles in which {own}switches on more than once are not looked for")
    reached = np.full((len(cycles), 2), np.nan)
    confirmed = np.zeros(len(cycles), dtype=bool)
    if simulated:
        for k, cycle in enumerate(cycles):
            reached[k], confirmed[k], said = search.confirmed(cycle)
            notes += said
    return LimitCycles(
        amplitudes=freeze(found[:, 0].copy()),
        frequencies=freeze(found[:, 1].copy()),
        biases=freeze(found[:, 2].copy()),
        is_stable=np.array([cycle.is_stable for cycle in cycles], dtype=bool),
        simulated_amplitudes=freeze(reached[:, 0].copy()),
        simulated_frequencies=freeze(reached[:, 1].copy()),
        is_confirmed=confirmed,
        describing_function=DescribingFunction(
            np.array([each.amplitude for each in curve]),
            np.array([each.gain for each in curve]),
            np.array([each.mean for each in curve]),
            curve[0].bias,
            nonlinear.label,
        ),
        model=search.model,
        notes=tuple(dict.fromkeys(notes)),
    )
