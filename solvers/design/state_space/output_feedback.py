"""Output feedback: an observer, and feedback of its estimate (LQG)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from flexure.diagrams.building.builder import DiagramBuilder
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.interface.html import Shown, heading
from flexure.diagrams.systems.diagram import Diagram
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.design.state_space.feedback import (
    FeedbackDesign,
    add_integrals,
    lqr,
    state_feedback,
)
from flexure.solvers.design.state_space.observers import ObserverDesign, lqe
from flexure.solvers.design.state_space.weights import (
    Poles,
    Weights,
    check_model,
    chosen,
    ordered,
    warn_if_read_late,
    without_inputs,
)


@dataclass(frozen=True, eq=False, repr=False)
class OutputFeedbackDesign(Shown):
    """An observer and the feedback of its estimate, for one model.

    Attributes
    ----------
    feedback : FeedbackDesign
        What becomes of the estimate.
    observer : ObserverDesign
        What makes it.

    Raises
    ------
    ValueRefusedError
        When they were designed for models that differ in states, inputs or period.

    See Also
    --------
    lqg : Design one.

    Examples
    --------
    >>> import flexure as fx
    >>> mass = fx.StateSpace("mass", [[0, 1], [0, 0]], [0, 1], [1, 0])
    >>> context = mass.create_default_context()
    >>> context.set("u", 0.0)
    >>> model = fx.linearize(mass, context)
    >>> design = fx.lqg(model, Q=[1, 0], R=1, W=[0, 1], V=1e-4)
    >>> design.poles.round(3)
    array([-0.707-0.707j, -0.707+0.707j, -7.071-7.071j, -7.071+7.071j])
    """

    feedback: FeedbackDesign
    observer: ObserverDesign

    def __post_init__(self) -> None:
        """Refuse designs for different models."""
        attempt = "Cannot join feedback and observer"
        for part, kind in ((self.feedback, FeedbackDesign), (self.observer, ObserverDesign)):
            article = "an" if kind is ObserverDesign else "a"
            require(isinstance(part, kind), part, attempt, f"{article} {kind.__name__}")
        one, other = self.feedback.model, self.observer.model
        fits = (one.period, one.state_names, one.input_names, one.output_names) == (
            (other.period, other.state_names, other.input_names, other.output_names)
        )
        if not fits:
            raise ValueRefusedError(
                attempt,
                expected="designs for one model, with the same states, inputs, outputs and period",
                found=f"{one!r} and {other!r}",
            )
        warn_if_read_late(one, one.input_names)

    @property
    def poles(self) -> Poles:
        """Poles of the closed loop, those of feedback and observer, the least stable first."""
        poles = np.concatenate([self.feedback.poles, self.observer.poles])
        return ordered(poles, self.observer.model.period)

    def to_block(self, name: str) -> Diagram:
        """Return observer and feedback as one block, for the values themselves.

        It is a diagram with the blocks "observer" and "feedback", the input "y" and the output
        "u", all outputs and inputs of the model. With integrals, it has the input "reference", the
        values that the integrated outputs are to have.

        Parameters
        ----------
        name : str
            Name of the block.

        Returns
        -------
        Diagram
        """
        builder = DiagramBuilder(name)
        observer = builder.add(self.observer.to_block("observer"))
        entries = [observer.find("y")]
        inside = builder.add(state_feedback(self.feedback, "feedback"))
        if self.feedback.integral:
            entries.append(add_integrals(self.feedback, builder, inside))
        builder.export_input(*entries, name="y")
        if self.feedback.integral:
            builder.export_input("error.u1", name="reference")
        builder.connect(observer.find("estimate"), inside.state)
        builder.connect(inside.u, observer.find("u"))
        builder.export_output(inside.u, "u")
        return builder.build()

    def _pieces(self) -> Iterator[str]:
        yield heading("OutputFeedbackDesign")
        yield from self.feedback._pieces()
        yield from self.observer._pieces()

    def __repr__(self) -> str:
        return f"<OutputFeedbackDesign: {self.feedback!r}, {self.observer!r}>"


def lqg(
    model: LinearModel,
    Q: Weights | None = None,
    R: Weights | None = None,
    W: Weights | None = None,
    V: Weights | None = None,
    *,
    largest: Mapping[str, float] | None = None,
    integral: Mapping[str, float] | None = None,
    disturbances: str | Iterable[str] = (),
    period: float | None = None,
) -> OutputFeedbackDesign:
    """Design a Kalman filter and the optimal feedback of its estimate (LQG).

    Parameters
    ----------
    model : LinearModel
        Of the plant, from `linearize` at an equilibrium; with ``period=`` for a sampled controller.
    Q, R, largest, integral
        Weights, as for `lqr`.
    W, V, disturbances
        Intensities of noise, as for `lqe`, which have to be there; inputs of disturbances are not
        controlled.
    period : float, optional
        Sampling period in s of a controller for a model in continuous time, with the same weights
        and intensities as a continuous one; see `lqr` and `lqe`.

    Returns
    -------
    OutputFeedbackDesign

    Raises
    ------
    ValueRefusedError, UnknownNameError
        As for `lqr` and `lqe`.

    Warns
    -----
    UserWarning
        When the model was not taken at an equilibrium; or when a block of a sampled model samples
        an input, see the notes.

    See Also
    --------
    lqr : The feedback alone.
    lqe : The Kalman filter alone.

    Notes
    -----
    The output of a sampled controller changes just after an instant. A block of the same clock that
    samples it, such as a `UnitDelay` or a `ZeroOrderHold`, reads it an instant later. In a model,
    inputs change just before an instant, unless it is one with ``inputs_after_updates=True``. With
    that, the loop has the poles of the design, whatever samples its inputs.

    The margins of such a loop can be small: look at `loop_gain` of the finished diagram.

    Examples
    --------
    >>> import flexure as fx
    >>> mass = fx.StateSpace("mass", [[0, 1], [0, 0]], [0, 1], [1, 0])
    >>> context = mass.create_default_context()
    >>> context.set("u", 0.0)
    >>> model = fx.linearize(mass, context)
    >>> design = fx.lqg(model, Q=[1, 0], R=1, W=[0, 1], V=1e-4)
    >>> design.poles.round(3)
    array([-0.707-0.707j, -0.707+0.707j, -7.071-7.071j, -7.071+7.071j])
    >>> controller = design.to_block("controller")
    """
    attempt = "Cannot design a linear-quadratic-Gaussian controller"
    check_model(model, attempt, inputs=True, outputs=True)
    entries = chosen(disturbances, model.input_names, "input", attempt)
    for name, value in {"W": W, "V": V}.items():
        require(value is not None, value, attempt, f"intensities {name} of noise")
    feedback = lqr(
        without_inputs(model, entries), Q, R, largest=largest, integral=integral, period=period
    )
    observer = lqe(model, W, V, disturbances=disturbances, period=period)
    return OutputFeedbackDesign(feedback, observer)
