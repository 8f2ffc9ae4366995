"""Motions with derivatives in Python, by any integration method, and warnings of long ones."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.checks.errors import warn
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.analysis.equations.equations import Equations, Variable
from flexure.solvers.analysis.linear_models.linear_inputs import Drive
from flexure.solvers.analysis.sensitivities.sampled_slopes import infinite_slope
from flexure.solvers.integration.guard.progress_limits import Pace
from flexure.solvers.integration.guard.stiffness_detection import NONSTIFF_METHOD, assess
from flexure.solvers.integration.methods.methods import is_implicit, method_name
from flexure.solvers.simulation.run_control.diagnosis import explain_non_finite
from flexure.solvers.simulation.run_control.method_selection import Method
from flexure.solvers.tracing.derivatives import Derivatives
from flexure.solvers.tracing.exact_jacobian import ExactJacobian

if TYPE_CHECKING:
    from scipy.sparse import csc_array

# Rodas5P solves with the Jacobian once and would be far off with one that is not exact.
_STIFF_METHOD = "Radau"
_LONG = 60.0  # seconds, beyond which somebody is told,
_STRETCH = 3.0  # looked at for so many at a time: the first steps may be short


class LongMotions:
    """Looks at the motions of one study, and warns once."""

    def __init__(self, attempt: str) -> None:
        self._attempt = attempt
        self._has_warned = False
        self._why = ""
        self._begun = self._start = self._end = 0.0
        self._mark = 0.0, 0.0
        self._stretches = 0

    def begin(self, start: float, end: float, why: str) -> None:
        """Note that a motion begins, its begin and end in seconds, and why it is not native."""
        self._start, self._end, self._why = start, end, why
        self._begun = perf_counter()
        self._mark = self._begun, start  # where the present stretch began
        self._stretches = 0

    def look(self, reached: float) -> None:
        """Look how far the motion is; warn, once, if the study takes more than a minute."""
        now, (before, there) = perf_counter(), self._mark
        if self._has_warned or now - before < _STRETCH or not reached > there:
            return
        self._mark = now, reached
        self._stretches += 1
        whole = now - self._begun + (self._end - reached) * (now - before) / (reached - there)
        if self._stretches > 1 and whole > _LONG:
            self._has_warned = True
            lasting = f"{whole / 60.0:.2g} minutes" if whole < 6e3 else f"{whole / 3600:.2g} hours"
            warn(
                f"{self._attempt.replace('Cannot', 'It takes long to', 1)}: after "
                f"{now - self._begun:.0f} s, {reached - self._start:.3g} s of "
                f"{self._end - self._start:g} s are done, and at this pace the motion takes about "
                f"{lasting}. Its derivatives are computed in Python, because {self._why}. "
                f"{self._way_out()}"
            )

    def _way_out(self) -> str:
        """Say what to do."""
        if "not installed" in self._why:
            return "Install that extra"
        if "no native loop" in self._why:
            return "Leave the method open, or use method='ESDIRK4', which runs in compiled loops"
        return "Shorten the motion, loosen rtol, or divide fewer beams"


class InterpretedMotion:
    """Python for the motion of a context with its derivatives, for any number of runs.

    The context has the values that the motion begins with; the free input ports ``drives`` change
    along it. Raises TraceError when there are no exact derivatives.
    """

    def __init__(
        self,
        context: Context,
        variables: Sequence[Variable],
        outputs: Sequence[Place],
        drives: Sequence[Drive],
        rates: Derivatives,
        watch: LongMotions,
        attempt: str,
    ) -> None:
        self._store = context.store
        self._size = context.store.layout.num_states
        self._drives = drives
        self._rates = rates
        self._watch = watch
        self._attempt = attempt
        self._settled: Method | None = None
        self._slopes = exact_jacobian(Equations(context, variables))
        self._shown: Equations | None = None
        if outputs:
            self._shown = Equations(context, variables, outputs)
            exact_jacobian(self._shown)

    def begin(
        self,
        time: float,
        x: FloatArray,
        weights: FloatArray,
        t_final: float,
        method: Method,
        tolerances: tuple[float, float],
        why: str,
    ) -> None:
        """Begin a motion, as `NativeMotion.begin` does, at a time; say why it is not native."""
        self._time, self._x, self._weights = time, x, weights
        self._tolerances = tolerances
        self._pace = Pace(time, t_final)
        self._first_step: float | None = None
        self._watch.begin(time, t_final, why)
        if isinstance(method, str) and method == "auto":
            method = self._chosen(t_final)
        self._method = method

    @in_one_thread
    def _chosen(self, t_final: float) -> Method:
        """Choose a method where the user left it open; the choice of the first run serves all."""
        if self._settled is None:

            def jacobian(time: float, x: FloatArray) -> FloatArray:
                return self._slopes(time, x)[:, : self._size]

            states, span = self._x[: self._size], t_final - self._time
            verdict = assess(self._rates, self._time, states, span, jac=jacobian)
            self._settled = _STIFF_METHOD if verdict.stiff else NONSTIFF_METHOD
        return self._settled

    def hold(self, x: FloatArray, weights: FloatArray) -> None:
        """Go on with other states, columns and discrete values, as `NativeMotion.hold` does."""
        self._x, self._weights = x, weights

    def advance(
        self, stop: float, clip: float, times: FloatArray, *, anew: bool
    ) -> tuple[list[FloatArray], float, FloatArray]:
        """Go on to a stop, as `NativeMotion.advance` does."""
        from flexure.solvers.integration.guard.integration import integrate

        rtol, atol = self._tolerances
        # Rodas5P does not make do with a Jacobian from which some coupling is left out.
        iterates = is_implicit(self._method) and method_name(self._method) != "Rodas5P"
        segment = integrate(
            self._derivatives,
            self._time,
            self._x,
            stop,
            method=self._method,
            rtol=rtol,
            atol=atol,
            jac=self._jacobian if iterates else None,
            first_step=None if anew else self._first_step,
            keep_dense=True,
            on_step=lambda step: self._watch.look(step.t),
            blame=self._blame,
            pace=self._pace,
            t_clip=clip,
        )
        samples = []
        for time in times:
            index = int(np.searchsorted(segment.t, time)) - 1
            exact = time == segment.t[index + 1]
            samples.append(segment.x[index + 1] if exact else segment.interpolants[index](time))
        self._time, self._x, self._first_step = stop, segment.x[-1], segment.next_step
        return samples, stop, self._x

    def _drive(self, time: float) -> None:
        for drive in self._drives:
            drive.apply(self._store, time)

    def _derivatives(self, time: float, x: FloatArray) -> FloatArray:
        n = self._size
        self._drive(time)
        states, columns = x[:n], x[n:].reshape(-1, n)
        slopes = self._slopes(time, states)
        motion = columns @ slopes[:, :n].T
        motion += (slopes[:, n:] @ self._weights).T
        return np.concatenate([self._rates(time, states), motion.ravel()])

    def _jacobian(self, time: float, x: FloatArray) -> csc_array:
        """Return the blocks on the diagonal; those beside them only couple one way."""
        from scipy.sparse import csc_array, eye_array, kron

        self._drive(time)
        block = csc_array(self._slopes(time, x[: self._size])[:, : self._size])
        return csc_array(kron(eye_array(x.size // self._size), block))

    def _blame(self, time: float, x: FloatArray, xdot: FloatArray | None) -> Exception:
        """Make the error for something that is not finite."""
        n = self._size
        if np.isfinite(x[:n]).all() and (xdot is None or np.isfinite(xdot[:n]).all()):
            return infinite_slope(f"{self._attempt} at t = {float(time):.9g} s")
        return explain_non_finite(self._store, float(time), freeze(np.array(x[:n])))

    def shown(
        self, times: FloatArray, states: FloatArray, columns: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the outputs at some times, and their derivatives, as `NativeMotion.shown` does."""
        shown, n, store = self._shown, self._size, self._store
        assert shown is not None
        end, x_end = store.time, store.x
        parameters = shown.point()[n:]
        values, slopes = [], []
        for time, x, column in zip(times.tolist(), states, columns, strict=True):
            self._drive(time)
            store.set_motion(time, freeze(x.copy()))
            point = np.concatenate([x, parameters])
            values.append(shown.values(point)[n:])
            matrix = shown.jacobian(point)[n:]
            slope = matrix[:, :n] @ column + matrix[:, n:] @ weights
            slopes.append(slope)
        self._drive(end)
        store.set_motion(end, x_end)
        return np.array(values), np.array(slopes)


def exact_jacobian(equations: Equations) -> ExactJacobian:
    """Return the exact Jacobian, or raise what is in its way."""
    if equations.exact is None:
        assert equations.obstacle is not None
        raise equations.obstacle
    return equations.exact
