"""Frequency responses that are measured in simulations with sines, multisines or chirps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import one_of, require
from flexure.diagrams.checks.errors import EvaluationError, ValueRefusedError, warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import Way, several
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import COLORS, check_file, tidy
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_numbers, bounded, freeze, show
from flexure.solvers.analysis.frequency.frequency_curves import (
    UNITS,
    Models,
    curves_of,
    labelled,
    to_decibels,
)
from flexure.solvers.analysis.frequency.frequency_plots import (
    bode,
    frequency_ticks,
    turn_ticks,
    widen,
)
from flexure.solvers.design.measured_responses.estimates import ComplexArray
from flexure.solvers.design.measured_responses.measurements import (
    CLOSE,
    Measurement,
    MeasuringOptions,
    Responses,
    measure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Kinds of excitations.
EXCITATIONS = ("sine", "multisine", "chirp")
_HIGHEST = 1e15  # rad/s
_COHERENT = 0.98  # below, a response may be that of images
_WIDER = 1.25  # than the measured frequencies
_POINTS = 400
_DOT: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4, "zorder": 3}
_NEAR = 0.45  # of a sampling rate: images of higher frequencies overlap


@dataclass(frozen=True, eq=False)
class FrequencyResponse(Answer):
    """A frequency response that was measured in simulations.

    Attributes
    ----------
    frequency : ndarray, shape (n,)
        ω in rad/s.
    response : ndarray of complex, shape (n, p)
        Amplitudes of the p outputs per amplitude of the input; NaN where they did not settle.
    settled : ndarray of bool, shape (n, p)
        Where ``drift`` is within the tolerance.
    drift : ndarray, shape (n, p)
        Largest relative change of the response from the middle of the run, and from three quarters
        of it, to its end. Decaying transients leave a smaller error, often near its square.
    distortion : ndarray, shape (n, p)
        Total harmonic distortion: the amplitude of the harmonics 2 to 9 beside that of the
        response. For a multisine or chirp, the part of the output that is not linear in the input.
    coherence : ndarray, shape (n, p)
        The part of the power of the output that is linear in the input, from 0 to 1.
    leakage : ndarray, shape (n, p)
        The amplitude of what is at no multiple of the frequency, beside that of the response:
        transients, images of sampled signals, noise. NaN for a chirp.
    images : ndarray, shape (n, p)
        The part of it at the frequencies at which sampling inside repeats the excitation.
    amplitude : ndarray, shape (n,)
        Amplitude of the excitation.
    excitation : str
        "sine", "multisine" or "chirp".
    period : float or None
        From one sample of the outputs to the next, in s.
    input_name : str
        Where the signal was added.
    output_names : list of str
        What was measured.
    duration : float
        Length of the longest run in s.
    notes : tuple of str
        What did not settle, responds below the accuracy, or lies beyond the Nyquist frequency.

    See Also
    --------
    frequency_response : Measure one.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=0.5)
    >>> context = lag.create_default_context()
    >>> context.set("u", 1.0)
    >>> found = fx.frequency_response(lag, "u", "y", [1.0, 2.0, 4.0], context=context)
    >>> np.abs(found.response[:, 0]).round(4)
    array([0.8944, 0.7071, 0.4472])
    """

    frequency: FloatArray
    response: ComplexArray
    settled: npt.NDArray[np.bool_]
    drift: FloatArray
    distortion: FloatArray
    coherence: FloatArray
    leakage: FloatArray
    images: FloatArray
    amplitude: FloatArray
    excitation: str
    period: float | None
    input_name: str
    output_names: list[str]
    duration: float
    notes: tuple[str, ...]

    def plot(
        self,
        models: Models | None = None,
        *,
        units: str = "rad/s",
        path: str | Path | None = None,
    ) -> Figure:
        """Plot magnitude and phase, beside linear models of the same channels if you pass some.

        Parameters
        ----------
        models : LinearModel, or list or dict of them, optional
            What `linearize` returns for the same input and outputs; a dictionary gives labels.
        units : str
            ``"rad/s"`` or ``"Hz"``.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure
            A pair of axes for each output: magnitude and phase.
        """
        attempt = "Cannot draw a frequency response"
        unit = UNITS[one_of(units, UNITS, "units", attempt)]
        check_file(path, attempt)
        omega, count = self.frequency, len(self.output_names)
        low, high = omega[0] / _WIDER / unit, omega[-1] * _WIDER / unit
        references: list[Any] = []
        if models is None:
            figure = new_figure(
                figsize=(8.0, 6.0 if count == 1 else 4.4 * count), layout="constrained"
            )
            panels = list(figure.subplots(2 * count, 1, sharex=True, squeeze=False).ravel())
        else:
            for label, model in labelled(models, attempt):
                wanted = (count, 1)
                if model.D.shape != wanted:
                    raise ValueRefusedError(
                        attempt,
                        expected=f"models with 1 input and {count} outputs, as were measured",
                        found=f"{model.D.shape[1]} inputs and {model.D.shape[0]} outputs"
                        + (f" in '{label}'" if label else ""),
                    )
            periods = [model.period for _, model in labelled(models, attempt) if model.period]
            high = min([high, *(np.pi / period / unit for period in periods)])
            grid = np.geomspace(low, max(high, omega[-1] / unit), _POINTS)
            figure = bode(models, grid, units=units, margins=False)
            panels = figure.axes
            references = curves_of(models, grid, units, attempt, single=False)
        for k in range(count):
            upper, lower = panels[2 * k], panels[2 * k + 1]
            response = self.response[:, k]
            if references:
                near = np.interp(omega, references[k].omega, references[k].phase)
            else:
                known = np.isfinite(response)
                near = np.zeros(len(omega))
                near[known] = np.degrees(np.unwrap(np.angle(response[known])))
            phase = np.degrees(np.angle(response))
            phase = phase + 360.0 * np.round((near - phase) / 360.0)
            style = {**_DOT, "color": COLORS[min(len(references) // count, len(COLORS) - 1)]}
            upper.plot(omega / unit, to_decibels(np.abs(response)), label="measured", **style)
            lower.plot(omega / unit, phase, **style)
            upper.set_ylabel("magnitude [dB]")
            lower.set_ylabel("phase [°]")
            if count > 1:
                upper.set_title(f"{self.output_names[k]} / {self.input_name}", fontsize=10)
            for panel in (upper, lower):
                frequency_ticks(panel, low, max(high, omega[-1] / unit))
                tidy(panel)
            widen(upper, 1.0)
            widen(lower, 1.0)
            turn_ticks(lower.yaxis, lower)
        for old in list(figure.legends):
            old.remove()
        if references:
            first = panels[0].lines[0]
            if first.get_label().startswith("_"):
                first.set_label("linear model")
            panels[0].legend(frameon=False)
        panels[2 * count - 1].set_xlabel(f"frequency [{units}]")
        return saved(figure, path)

    def __str__(self) -> str:
        lines = []
        for k, name in enumerate(self.output_names):
            lines.append(f"{name} / {self.input_name}, by {self.excitation}")
            lines.append("  rad/s       magnitude   phase °   distortion  leakage   coherence")
            for i, omega in enumerate(self.frequency):
                size, turn = np.abs(self.response[i, k]), np.degrees(np.angle(self.response[i, k]))
                lines.append(
                    f"  {omega:<10.4g}  {size:<10.4g}  {turn:8.2f}  {self.distortion[i, k]:<10.2g}"
                    f"  {self.leakage[i, k]:<8.2g}  {self.coherence[i, k]:.4f}"
                )
        return "\n".join([*lines, *(f"note  {note}" for note in self.notes)])


@answers_other_words
def frequency_response(
    system: System,
    input: Way,
    outputs: Way | Iterable[Way],
    frequency: npt.ArrayLike,
    amplitude: npt.ArrayLike = 1.0,
    *,
    excitation: Literal["sine", "multisine", "chirp"] = "sine",
    context: Context | None = None,
    openings: Way | Iterable[Way] = (),
    period: float | None = None,
    tolerance: float = 1e-3,
    max_periods: float = 500.0,
    **options: Unpack[MeasuringOptions],
) -> FrequencyResponse:
    """Measure a frequency response in simulations of the nonlinear or sampled system.

    Parameters
    ----------
    system : System
        A block or diagram.
    input : Handle or str
        Where a test signal is added: a free input port, or a port on a wire between blocks, or a
        component of one. Behind an output port it acts on all that read it, in front of an input
        port on its block alone.
    outputs : Handle, str or iterable of them
        Ports of the system or of blocks inside, or components of them. An output port shows the
        output of its block, before anything is added; an input port what its block reads.
    frequency : array_like, shape (n,)
        Ascending frequencies ω in rad/s, above zero; with ``period`` up to π/period.
    amplitude : float or array_like, shape (n,)
        Amplitude of the sines, for a multisine that of each of them, or the largest value of the
        chirp, in units of the input.
    excitation : {"sine", "multisine", "chirp"}
        One run for each frequency with a sine; or two runs with sines of all frequencies at once
        and different phases, or with chirps that sweep up and down.
    context : Context, optional
        Operating point, a root context; it is not changed. A default context when omitted.
    openings : Handle, str or iterable of them, optional
        Ports on wires, or components of them, at which loops are opened, as for `loop_gain`. The
        block behind an opening reads the present value, and the test signal if it is ``input``.
    period : float, optional
        Read outputs only at multiples of this sampling period, in s, just after the updates due
        there. When omitted, they are continuous signals.
    tolerance : float
        The largest relative change of a response between the middle and the end of the run for
        which it counts as settled.
    max_periods : float
        Periods of a sine, or of the lowest one, after which a run is given up.
    **options
        ``method``, ``rtol``, ``atol``, ``max_step``, ``max_steps``, ``max_check_interval``,
        ``step``, ``compiled``, ``executor``, ``threads`` and ``progress``, as for `sweep`.

    Returns
    -------
    FrequencyResponse

    Warns
    -----
    UserWarning
        When some responses do not settle, or runs fail: they are NaN. When sampling inside repeats
        a chirp or a multisine at its own frequencies.

    Raises
    ------
    UnknownNameError
        When there is no such input, output or wire.
    ValueRefusedError
        When frequencies are not ascending above zero, or beyond half of the sampling rate, or an
        amplitude is not positive.
    EvaluationError
        When no response settles, as for an unstable loop.

    See Also
    --------
    linearize : The exact linear model for small motions.
    describing_function : Response of a nonlinear block over the amplitude.
    limit_cycles : Oscillations of a loop with a nonlinear block.

    Notes
    -----
    Complex amplitudes are fitted to the last periods of each run by weighted least squares,
    together with harmonics and a trend. A run is repeated with twice the length until the
    response is the same in its middle, at three quarters, and at its end. A transient of the
    relative size r at the end has about √r in the middle, so that the error is below the tolerance,
    and often near its square. Pass a smaller tolerance for lightly damped systems.

    A sampled block inside repeats a sine of frequency ω at the images k ωₛ ± ω of its sampling
    rate ωₛ. They are separated in ``images``; a frequency beyond ωₛ/2 appears as a lower one, and
    a note names it. With ``period``, the response is that of `linearize` with the same period if
    blocks that are sampled with it read the input. Where it acts on continuous dynamics, the sine
    goes on between instants, while the linear model holds it.

    Examples
    --------
    A saturation in the loop lowers the gain for large signals:

    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(
    ...     fx.Gain("controller", -5.0), fx.Saturation("motor", -1.0, 1.0), fx.Integrator("plant")
    ... )
    >>> builder.connect_chain("controller", "motor", "plant", "controller")
    >>> loop = builder.build()
    >>> for amplitude in (0.1, 1.0):
    ...     found = fx.frequency_response(loop, "controller.u", "plant.y", 5.0, amplitude)
    ...     print(f"{abs(found.response[0, 0]):.4f}")
    0.7071
    0.2528
    """
    require_system(system, "Cannot measure a frequency response")
    attempt = f"Cannot measure a frequency response of '{system.label}'"
    start = start_context(system, context, attempt)
    one_of(excitation, EXCITATIONS, "excitation", attempt)
    omega = np.atleast_1d(as_numbers(frequency, attempt, "frequency"))
    fits = bool(omega.ndim == 1 and omega.size and np.isfinite(omega).all())
    fits = fits and bool(omega[0] > 0.0 and omega[-1] < _HIGHEST and np.all(np.diff(omega) > 0.0))
    wanted = f"one or more ascending frequencies above zero and below {_HIGHEST:g} rad/s"
    require(fits, frequency, attempt, wanted)
    if period is not None:
        period = bounded(period, f"{attempt} with this period", lower=0.0, exclusive=True, unit="s")
        if omega[-1] > np.pi / period * (1.0 + 1e-12):
            raise ValueRefusedError(
                attempt,
                expected=f"frequencies up to the Nyquist frequency, {np.pi / period:.6g} rad/s",
                found=f"{omega[-1]:.6g} rad/s, which samples at period={period:g} s cannot tell "
                "from a lower frequency",
                remedy="Omit period= to measure the continuous signals",
            )
    sizes = as_numbers(amplitude, attempt, "amplitudes")
    shapes = ((), (1,)) if excitation == "chirp" else ((), (1,), omega.shape)
    fits = sizes.shape in shapes and bool(np.isfinite(sizes).all() and np.all(sizes > 0.0))
    require(fits, amplitude, attempt, "a positive amplitude, or one for each frequency of sines")
    plan = Measurement(
        start,
        omega,
        np.broadcast_to(sizes, omega.shape).copy(),
        period,
        bounded(tolerance, f"{attempt} to this tolerance", lower=0.0, upper=1.0, exclusive=True),
        bounded(max_periods, f"{attempt} in max_periods", lower=10.0),
        options,
        attempt,
    )
    shown = several(outputs)
    require(len(shown) > 0, outputs, attempt, "at least one output")
    found, excited = measure(plan, excitation, input, shown, openings)
    settled = found.drift <= plan.tolerance
    notes = _notes(plan, found, settled, excited.output_names)
    if not settled.any():
        raise EvaluationError(
            attempt,
            expected="a response that settles",
            found="; ".join(notes),
            remedy="See whether the system is stable around the context, start from an "
            "equilibrium, or pass a larger max_periods or tolerance",
        )
    if not settled.all():
        warn(f"{attempt} everywhere: {'; '.join(notes)}. The response is NaN there")
    if excitation != "sine":
        _warn_of_images(plan, found, excitation)
    return FrequencyResponse(
        frequency=freeze(omega),
        response=np.where(settled, found.response, complex(np.nan, np.nan)),
        settled=settled,
        drift=found.drift,
        distortion=found.distortion,
        coherence=found.coherence,
        leakage=found.leakage,
        images=found.images,
        amplitude=plan.amplitude,
        excitation=excitation,
        period=period,
        input_name=excited.entry_name,
        output_names=excited.output_names,
        duration=plan.duration,
        notes=tuple(notes),
    )


def _notes(
    plan: Measurement, found: Responses, settled: npt.NDArray[np.bool_], names: list[str]
) -> list[str]:
    """Say what has not settled, does not respond, or is repeated by sampling."""
    notes = [f"a run failed: {text}" for text in plan.failures]
    for k, name in enumerate(names):
        drifting = ~settled[:, k] & np.isfinite(found.drift[:, k])
        if drifting.any():
            notes.append(
                f"'{name}' is not settled at {_listed(plan.omega[drifting])} within "
                f"{plan.duration:.4g} s: its response changes by up to "
                f"{100.0 * np.max(found.drift[drifting, k]):.2g} % from the middle to the end"
            )
        if not plan.failures and np.isnan(found.drift[:, k]).any():
            unknown = plan.omega[np.isnan(found.drift[:, k])]
            notes.append(f"'{name}' is NaN or infinite at {_listed(unknown)}")
        silent = settled[:, k] & (np.abs(found.response[:, k]) <= found.level[:, k])
        if silent.any():
            notes.append(
                f"'{name}' does not respond at {_listed(plan.omega[silent])} beyond the accuracy "
                "of the runs: it does not depend on the input, or the amplitude is within a dead "
                "zone"
            )
    for each in plan.periods:
        beyond = plan.omega * each >= np.pi * (1.0 - CLOSE)
        if beyond.any():
            notes.append(
                f"updates every {each:g} s repeat {_listed(plan.omega[beyond])}, beyond their "
                f"Nyquist frequency of {np.pi / each:.6g} rad/s, at lower frequencies (aliasing)"
            )
    return notes


def _warn_of_images(plan: Measurement, found: Responses, excitation: str) -> None:
    """Say where what sampling repeats of an excitation lies on frequencies that are measured."""
    omega = plan.omega
    for each in plan.periods:
        rate = 2.0 * np.pi / each
        if excitation == "chirp":
            mixed = omega >= min(_NEAR * rate, rate - omega[-1])
        else:
            away = np.hstack([np.add.outer(omega, omega), np.subtract.outer(omega, omega)]) / rate
            turns = np.round(away)
            mixed = np.any((turns != 0.0) & (np.abs(away - turns) < CLOSE), axis=1)
        mixed &= np.any(found.coherence < _COHERENT, axis=1)
        if mixed.any():
            warn(
                f"{plan.attempt} by a {excitation} at {_listed(omega[mixed])}: updates every "
                f"{each:g} s repeat others of its frequencies there (aliasing, Nyquist frequency "
                f"{0.5 * rate:.6g} rad/s), as the coherence shows. Use excitation='sine', or other "
                "frequencies"
            )


def _listed(omega: FloatArray) -> str:
    """Show frequencies."""
    return f"{show(omega)} rad/s"
