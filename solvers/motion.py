"""One run of the integrator between two stops of the simulator."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.errors import SimulationError
from flexure.diagrams.values import FloatArray, freeze
from flexure.solvers.agenda import Entry
from flexure.solvers.diagnosis import explain_non_finite, fastest_state
from flexure.solvers.methods import is_fixed_step, option_names
from flexure.solvers.witnesses import find_crossing

if TYPE_CHECKING:
    from flexure.solvers.integration import Segment, Step, Stop
    from flexure.solvers.simulator import Simulator


class Motion:
    """Carries the continuous state of a simulator's context up to a stop.

    Parameters
    ----------
    simulator : Simulator
        Whose context moves.
    stop : float
        The time to reach, unless a witness event or the end of a single step comes first.
    dense_publishes : bool
        Whether periodic publishes read the interpolants of steps.
    boundary : float
        Where the user wants to get, which is the horizon for judging stiffness.
    """

    def __init__(
        self, simulator: Simulator, stop: float, *, dense_publishes: bool, boundary: float
    ) -> None:
        self._simulator = simulator
        self._store = simulator.context.store
        self._stop = stop
        self._dense_publishes = dense_publishes
        self._boundary = boundary
        self._accepted: tuple[float, FloatArray] = (self._store.time, self._store.x)
        self._published_until = self._store.time
        self._crossed: list[Entry] = []
        self._first: FloatArray | None = None

    def run(self, *, left_limit: bool, stretch: bool) -> list[Entry]:
        """Integrate and return the witness events at the end.

        Parameters
        ----------
        left_limit : bool
            Whether equations jump at the stop, so that they are evaluated just before it.
        stretch : bool
            Whether the last fixed step may be slightly longer to land on the stop.
        """
        from flexure.solvers.integration import integrate

        simulator, store = self._simulator, self._store
        method = simulator.method_for(simulator.derivatives, self._boundary)
        options = dict(simulator.solver_options)
        if not stretch and "stretch" in option_names(method):
            options["stretch"] = 0.0
        if simulator.agenda.witnesses:
            self._first = simulator.first_witness_values()
        start, x = self._accepted
        first_step = simulator.next_step
        try:
            segment = integrate(
                simulator.derivatives,
                start,
                np.array(x),
                self._stop,
                method=method,
                rtol=simulator.rtol,
                atol=simulator.atol,
                max_step=simulator.max_step,
                first_step=None if first_step is None else min(first_step, self._stop - start),
                options=options,
                on_step=self._on_step,
                blame=self._blame,
                pace=simulator.pace,
                t_clip=math.nextafter(self._stop, -math.inf) if left_limit else math.inf,
            )
        except BaseException as error:
            store.set_motion(*self._accepted)
            if isinstance(error, SimulationError):
                self._name_fastest(error)
            raise
        store.set_motion(*self._accepted)
        self._count(segment)
        return self._crossed

    def _blame(self, time: float, x: FloatArray, _: FloatArray | None) -> Exception:
        return explain_non_finite(self._store, float(time), freeze(np.array(x)))

    def _name_fastest(self, error: SimulationError) -> None:
        """Add to an error which state moves fastest, where that may help."""
        scale = self._simulator.atol + self._simulator.rtol * np.abs(self._store.x)
        try:
            fastest = fastest_state(self._store, self._store.x, scale)
        except Exception:
            return
        error.add_note(f"the fastest state at t = {self._store.time:.9g} s is {fastest}")

    def _count(self, segment: Segment) -> None:
        """Add to the statistics and remember the step size for the next motion."""
        simulator = self._simulator
        statistics = simulator.statistics
        statistics.restarts += 1
        statistics.evaluations += segment.nfev
        statistics.jacobians += segment.njev
        statistics.factorizations += segment.nlu
        if not is_fixed_step(simulator.method):
            simulator.next_step = segment.next_step

    # Accepted steps ------------------------------------------------------------------------

    def _on_step(self, step: Step) -> Stop | None:
        """Look at one accepted step: witnesses, publishes, history; end the motion or not."""
        from flexure.solvers.integration import Stop

        simulator = self._simulator
        simulator.statistics.steps += 1
        end, x = self._cross(step)
        last = end == self._stop or bool(self._crossed) or simulator.stiffness_appeared(step)
        if self._dense_publishes:
            self._publish_before(step, end, last)
        self._accepted = (end, freeze(np.array(x)))
        if simulator.history is not None:
            simulator.history.extend(*self._accepted, step.dense())
        if last:
            return Stop(end, x)
        if simulator.stepwise:
            self._store.set_motion(*self._accepted)
            if simulator.finish_step():
                self._accepted = (end, self._store.x)
                return Stop(end, x)
        return None

    def _publish_before(self, step: Step, end: float, last: bool) -> None:
        """Run periodic publishes inside of a step; those at the very end wait for its landing."""
        agenda, store = self._simulator.agenda, self._store
        while (time := agenda.next_time(self._published_until)) < end or (time == end and not last):
            store.set_motion(time, freeze(np.array(step.dense()(time))))
            self._simulator.publish(agenda.due(time), monitor=False)
            self._published_until = time

    def _cross(self, step: Step) -> tuple[float, FloatArray]:
        """Return where the step ends: at the earliest witness event inside of it, if any."""
        simulator, store = self._simulator, self._store
        if self._first is None:
            return step.t, step.x
        entries = simulator.agenda.witnesses

        def evaluate(time: float) -> FloatArray:
            x = step.x if time == step.t else step.dense()(time)
            store.set_motion(time, freeze(np.array(x)))
            return simulator.witness_values()

        if not simulator.isolate:
            values = evaluate(step.t)
            crossed = [
                entry
                for entry, before, after in zip(entries, self._first, values, strict=True)
                if entry.event.trigger.triggers(float(before), float(after))  # type: ignore[union-attr]
            ]
            self._first = values
            if crossed:
                self._crossed = simulator.note_crossing(crossed, values)
            return step.t, step.x
        crossing = find_crossing(entries, evaluate, step.t_old, step.t, self._first)
        if crossing is None:
            self._first = evaluate(step.t)
            return step.t, step.x
        self._crossed = simulator.note_crossing(crossing.entries, crossing.values)
        if crossing.time == step.t:
            return step.t, step.x
        return crossing.time, np.array(step.dense()(crossing.time))


__all__ = ["Motion"]
