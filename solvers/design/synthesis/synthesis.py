"""Synthesis of controllers: the least H2 or H-infinity norm of a generalized plant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexure.blocks.linear_systems.state_space import AffineSystem, StateSpace
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.interface.html import Shown, fold, heading
from flexure.diagrams.values.arrays import bounded, freeze
from flexure.solvers.analysis.frequency.frequency_search import peak_gain
from flexure.solvers.analysis.frequency.norms import norms
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.linear_model_tables import poles
from flexure.solvers.analysis.linear_models.poles import stability
from flexure.solvers.analysis.linear_models.realizations import is_regular
from flexure.solvers.design.state_space.weights import (
    Poles,
    unsolvable,
    warn_if_read_late,
    warn_unless_at_rest,
)
from flexure.solvers.design.synthesis.generalized_plant import (
    GeneralizedPlant,
    HinfProblem,
    Realization,
    generalized_plant,
    h2_controller,
    to_continuous,
    to_sampled,
)

_SLACK = 1e-6  # relative: by how much the norm of a loop may be above its level
_ZERO = 1e-10  # of the first level: what counts as a norm of zero


@dataclass(frozen=True, eq=False, repr=False)
class SynthesisDesign(Shown):
    """A controller ``u = K y`` of a generalized plant, and the closed loop.

    Attributes
    ----------
    model : LinearModel
        The generalized plant.
    controller : LinearModel
        K, from the measurements to the controls, around the point of the model.
    closed_loop : LinearModel
        From the disturbances to the errors. It is stable.
    norm : float
        Its H2 or H-infinity norm, as `norms` computes it.
    least_norm : float
        No controller reaches a lower one.

    See Also
    --------
    hinf_synthesis : Minimize the H-infinity norm.
    h2_synthesis : Minimize the H2 norm.
    model_reduction : Reduce the order of the controller.

    Examples
    --------
    >>> import flexure as fx
    >>> plant = fx.StateSpace(
    ...     "plant",
    ...     -1.0,
    ...     [[1.0, 0.0, 1.0]],
    ...     [[1.0], [0.0], [1.0]],
    ...     [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
    ... )
    >>> context = plant.create_default_context()
    >>> context.set("u", [0.0, 0.0, 0.0])
    >>> design = fx.h2_synthesis(fx.linearize(plant, context), "u[2]", "y[2]")
    >>> design.controller.A.round(3)
    array([[-1.828]])
    """

    model: LinearModel
    controller: LinearModel
    closed_loop: LinearModel
    norm: float
    least_norm: float

    @property
    def poles(self) -> Poles:
        """Poles of the closed loop, the least stable ones first."""
        return self.closed_loop.poles

    def to_block(self, name: str) -> StateSpace | AffineSystem:
        """Return the controller as a block, for the values themselves and not for deviations.

        Its input "u" takes the measurements, and its output "y" yields the controls. A sampled one
        has one more state for each control, which holds its output from one sample to the next.

        Parameters
        ----------
        name : str
            Name of the block.

        Returns
        -------
        StateSpace or AffineSystem
            An `AffineSystem` when measurements or controls are not zero at the point of the model.
        """
        model = self.controller
        if model.period is not None:
            A, B, C, D = model.A, model.B, model.C, model.D
            (n, m), count = B.shape, len(C)
            model = replace(
                model,
                A=np.block([[A, np.zeros((n, count))], [C, np.zeros((count, count))]]),
                B=np.vstack([B, D]),
                C=np.hstack([np.zeros((count, n)), np.eye(count)]),
                D=np.zeros((count, m)),
                x0=np.zeros(n + count),
                xdot0=np.zeros(n + count),
                state_names=[*model.state_names, *model.output_names],
            )
        if model.u0.any() or model.y0.any():
            return model.to_affine_system(name)
        return model.to_state_space(name)

    def _pieces(self) -> Iterator[str]:
        yield heading("SynthesisDesign", remark=f"norm {self.norm:.4g} ≥ {self.least_norm:.4g}")
        yield fold("Poles", poles(self.poles, self.model.period), len(self.poles))

    def __repr__(self) -> str:
        p, m = self.controller.D.shape
        return (
            f"<SynthesisDesign: controller n={len(self.controller.A)}, m={m}, p={p}, norm "
            f"{self.norm:.4g}, at least {self.least_norm:.4g}>"
        )


@in_one_thread
def h2_synthesis(
    model: LinearModel, controls: str | Iterable[str], measurements: str | Iterable[str]
) -> SynthesisDesign:
    """Design the controller of the least H2 norm of a generalized plant.

    Parameters
    ----------
    model : LinearModel
        The generalized plant, from `linearize` of a diagram with its weights; with ``period=`` for
        a sampled controller. Its inputs are disturbances and controls, its outputs errors and
        measurements.
    controls : str or iterable of str
        Inputs that the controller determines: names of ports or of their components. All others
        are disturbances, white noise of intensity 1, or of covariance 1 at each sample.
    measurements : str or iterable of str
        Outputs that the controller reads, in the same form. All others are errors, the mean square
        of whose sum is minimized.

    Returns
    -------
    SynthesisDesign

    Raises
    ------
    ValueRefusedError
        When no controller stabilizes the plant, when the errors do not weigh all controls or the
        disturbances do not reach all measurements at all frequencies, or when disturbances reach
        errors directly in continuous time. The message names the signals and states.
    UnknownNameError
        When an input or output is not in the model.

    Warns
    -----
    UserWarning
        When the model was not taken at an equilibrium, or when a block of a sampled model samples a
        control, see `lqg`.

    See Also
    --------
    hinf_synthesis : Minimize the peak gain instead.
    lqg : The same problem, by weights of states and intensities of noise.

    Examples
    --------
    A mass whose position is measured with noise; position and force are the errors:

    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("problem")
    >>> builder.add_all(
    ...     fx.Constant("push", 0.0),
    ...     fx.Constant("noise", 0.0),
    ...     fx.Constant("force", 0.0),
    ...     fx.Sum("total", "++"),
    ...     fx.TransferFunction("mass", [1.0], [1.0, 0.0, 0.0]),
    ...     fx.Gain("sensor_noise", 0.1),
    ...     fx.Sum("sensor", "++"),
    ...     fx.Gain("effort", 1.0),
    ... )
    >>> builder.connect("push.y", "total.u1")
    >>> builder.connect("force.y", "total.u2")
    >>> builder.connect_chain("force", "effort")
    >>> builder.connect_chain("total", "mass", "sensor.u1")
    >>> builder.connect_chain("noise", "sensor_noise", "sensor.u2")
    >>> model = fx.linearize(
    ...     builder.build(),
    ...     inputs=["push.y", "noise.y", "force.y"],
    ...     outputs=["mass.y", "effort.y", "sensor.y"],
    ... )
    >>> design = fx.h2_synthesis(model, "force.y", "sensor.y")
    >>> round(design.norm, 4)
    1.6236
    """
    attempt = "Cannot design an H2 controller"
    plant = generalized_plant(model, controls, measurements, attempt)
    direct = plant.parts[4]
    if model.period is None and direct.any():
        row, column = np.argwhere(direct)[0]
        one = model.input_names[plant.disturbances[column]]
        other = model.output_names[plant.errors[row]]
        raise ValueRefusedError(
            attempt,
            expected="no direct gain from disturbances to errors, which lets white noise through",
            found=f"one from '{one}' to '{other}'",
            remedy="Filter one of them, such as by a FirstOrderLag, or use hinf_synthesis",
        )
    found = _design(model, plant, h2_controller(plant, attempt), "H2", attempt)
    return replace(found, least_norm=found.norm)


@in_one_thread
def hinf_synthesis(
    model: LinearModel,
    controls: str | Iterable[str],
    measurements: str | Iterable[str],
    *,
    gamma: float | None = None,
    rtol: float = 1e-2,
) -> SynthesisDesign:
    """Design a controller of small H-infinity norm of a generalized plant.

    Parameters
    ----------
    model : LinearModel
        The generalized plant, from `linearize` of a diagram with its weights; with ``period=`` for
        a sampled controller. Its inputs are disturbances and controls, its outputs errors and
        measurements.
    controls : str or iterable of str
        Inputs that the controller determines: names of ports or of their components. All others
        are disturbances.
    measurements : str or iterable of str
        Outputs that the controller reads, in the same form. All others are errors.
    gamma : float, optional
        A norm that the closed loop must not exceed. When omitted, nearly the least one.
    rtol : float, optional
        How close to the least norm, relative to it. Closer controllers have faster poles.

    Returns
    -------
    SynthesisDesign

    Raises
    ------
    ValueRefusedError
        When no controller stabilizes the plant, when the errors do not weigh all controls or the
        disturbances do not reach all measurements at all frequencies, or when no controller
        reaches ``gamma``. The message names the signals and states.
    UnknownNameError
        When an input or output is not in the model.

    Warns
    -----
    UserWarning
        When the model was not taken at an equilibrium, or when a block of a sampled model samples a
        control, see `lqg`.

    See Also
    --------
    h2_synthesis : Minimize the mean square instead.
    model_reduction : Reduce the order of the controller.
    norms : The norm of any linear model.

    Notes
    -----
    A controller for a level γ exists if two Riccati equations have positive stabilizing solutions X
    and Y whose product has no eigenvalue of γ² or above. Bisection finds the least such level, from
    the H-infinity norm with the H2 controller downwards. The central controller of the final level
    is returned, with as many states as the plant. The norm of its closed loop is computed without
    these equations, by `norms`. A sampled plant is mapped to continuous time by
    ``z = (1 + s) / (1 - s)``, which keeps the norm.

    Examples
    --------
    Mixed sensitivity of an integrator, with weights for the sensitivity and for the control:

    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("problem")
    >>> builder.add_all(
    ...     fx.Constant("target", 0.0),
    ...     fx.Constant("control", 0.0),
    ...     fx.Sum("error", "+-"),
    ...     fx.TransferFunction("plant", [1.0], [1.0, 0.01]),
    ...     fx.TransferFunction("W_S", [0.5, 1.0], [1.0, 0.001]),
    ...     fx.Gain("W_u", 0.2),
    ... )
    >>> builder.connect_chain("control", "plant", "error.u2")
    >>> builder.connect("target.y", "error.u1")
    >>> builder.connect_chain("error", "W_S")
    >>> builder.connect_chain("control", "W_u")
    >>> model = fx.linearize(
    ...     builder.build(), inputs=["target.y", "control.y"], outputs=["W_S.y", "W_u.y", "error.y"]
    ... )
    >>> design = fx.hinf_synthesis(model, "control.y", "error.y")
    >>> round(design.norm, 2)
    0.6
    """
    attempt = "Cannot design an H-infinity controller"
    close = bounded(rtol, f"{attempt} with this rtol", lower=0.0, upper=1.0, exclusive=True)
    if gamma is not None:
        gamma = bounded(gamma, f"{attempt} with this gamma", lower=0.0, exclusive=True)
    plant = generalized_plant(model, controls, measurements, attempt)
    mapped = plant
    if plant.period is not None:
        if not is_regular(plant.A + np.eye(len(plant.A))):
            raise ValueRefusedError(
                attempt, expected="a sampled plant without a pole at z = -1", found=f"{plant.A}"
            )
        mapped = to_continuous(plant)
    problem = HinfProblem(mapped)
    start = _norm(mapped, h2_controller(mapped, attempt))
    if not math.isfinite(start):
        raise unsolvable(attempt, "a loop that is not stable with the H2 controller")
    lower, upper = _levels(problem, start * (1.0 + _SLACK), close)
    level = upper if gamma is None else gamma
    if gamma is not None and problem.controller(gamma) is None:
        raise ValueRefusedError(
            attempt,
            expected=f"a gamma that a controller reaches, here above {lower:.4g}",
            found=f"{gamma:g}",
            remedy="Reduce the weights, or leave gamma out",
        )
    controller = problem.controller(level)
    while controller is None or _norm(mapped, controller) > level * (1.0 + _SLACK):
        level *= 1.0 + close
        if gamma is not None or level > 2.0 * max(start, upper):
            raise unsolvable(attempt, f"a loop above the level {level:g} of its equations")
        controller = problem.controller(level)
    if plant.period is not None:
        controller = to_sampled(controller)
    found = _design(model, plant, controller, "H-infinity", attempt)
    return replace(found, least_norm=min(lower, found.norm))


def _levels(problem: HinfProblem, upper: float, rtol: float) -> tuple[float, float]:
    """Return a level that no controller reaches, and one that is reached, close to each other."""
    lower, end = problem.least, _ZERO * upper
    while upper - lower > rtol * upper and upper > end:
        middle = max(math.sqrt(lower * upper), 0.1 * upper)
        if problem.controller(middle) is None:
            lower = middle
        else:
            upper = middle
    return lower, upper


def _norm(plant: GeneralizedPlant, controller: Realization) -> float:
    """Return the H-infinity norm of a closed loop, inf for an unstable one."""
    A, B, C, D = plant.closed(controller)
    if not (np.isfinite(A).all() and stability(A, plant.period)[0]):
        return math.inf
    return peak_gain(A, B, C, D, plant.period)[0]


def _design(
    model: LinearModel, plant: GeneralizedPlant, controller: Realization, kind: str, attempt: str
) -> SynthesisDesign:
    """Return the design of a controller whose closed loop is stable, with its norm."""
    warn_unless_at_rest(model, f"This {kind} controller is designed")
    warn_if_read_late(model, [model.input_names[k] for k in plant.controls])
    how = f"{kind} synthesis"
    control = _model(model, controller, plant.measurements, plant.controls, how, turned=True)
    loop = _model(model, plant.closed(controller), plant.disturbances, plant.errors, how)
    found = norms(loop)
    if not found.is_stable:
        raise unsolvable(attempt, f"a loop with poles at {loop.poles[:4]}")
    norm = found.h2 if kind == "H2" else found.h_infinity
    return SynthesisDesign(model, control, loop, norm, 0.0)


def _model(
    model: LinearModel,
    matrices: Realization,
    inputs: Sequence[int],
    outputs: Sequence[int],
    how: str,
    *,
    turned: bool = False,
) -> LinearModel:
    """Return a linear model between signals of a plant, or, turned, from its outputs to inputs."""
    A, B, C, D = (freeze(each) for each in matrices)
    ends = [(model.input_names, model.u0), (model.output_names, model.y0)]
    (sources, u0), (ends_there, y0) = reversed(ends) if turned else ends
    return LinearModel(
        *(A, B, C, D),
        x0=np.zeros(len(A)),
        u0=u0[[*inputs]],
        y0=y0[[*outputs]],
        xdot0=np.zeros(len(A)),
        time=model.time,
        state_names=[f"z{k}" for k in range(1, len(A) + 1)],
        input_names=[sources[k] for k in inputs],
        output_names=[ends_there[k] for k in outputs],
        how=how,
        period=model.period,
        notes=model.notes,
    )
