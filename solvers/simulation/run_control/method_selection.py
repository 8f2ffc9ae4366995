"""The integration method of a simulation: the one asked for, or one chosen by stiffness."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from flexure.diagrams.checks.arguments import mapping, require_that
from flexure.diagrams.checks.errors import warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.solvers.integration.guard.stiffness_detection import (
    JUDGED_ANEW,
    NONSTIFF_METHOD,
    STIFF_METHOD,
    StiffnessDetector,
    assess,
)
from flexure.solvers.integration.methods.methods import (
    is_fixed_step,
    method_name,
    option_names,
    resolve,
)

if TYPE_CHECKING:
    from scipy.integrate import OdeSolver

    from flexure.solvers.integration.guard.integration import TakenStep

#: A name such as "Rodas5P", or a subclass of scipy.integrate.OdeSolver.
Method: TypeAlias = "str | type[OdeSolver]"

_log = logging.getLogger("flexure")


class MethodChoice:
    """Knows which method integrates next, with which options and first step.

    With "auto", an explicit method is used until the Jacobian at the start of a motion, or the
    steps of the method itself, show that the diagram is stiff; from then on a stiff one.
    """

    def __init__(
        self, method: Method, step: float | None, options: Mapping[str, Any] | None, layout: Layout
    ) -> None:
        self._layout = layout
        self._auto = isinstance(method, str) and method == "auto"
        # The method for the next motion.
        self.method: Method = NONSTIFF_METHOD if self._auto else method
        wanted = "options to be a mapping from the names of options of the solver class"
        self.options = {} if options is None else mapping(options, wanted, "Cannot simulate")
        if isinstance(self.method, str):
            method_name(self.method)  # refuses names that do not exist
        else:
            resolve(self.method)
        self._set_step(step, "auto" if self._auto else method_name(method))
        self.begin()

    def _set_step(self, step: float | None, name: str) -> None:
        """Check that a step is given to fixed-step methods, and to no others."""
        attempt = f"Cannot use the method '{name}'"
        if not is_fixed_step(self.method):
            found, remedy = "a method that chooses its steps", "Pass max_step= to bound them"
            attempt = f"{attempt} with step={step}"
            require_that(step is None, attempt, "a fixed-step method", found, remedy)
            return
        expected, remedy = "the length of its steps", "Pass step=, in seconds"
        require_that(step is not None, attempt, expected, "no step", remedy)
        self.options["step"] = float(as_number(step, (), f"{attempt} with this step"))
        if "positions" in option_names(self.method):
            self.options.setdefault("positions", self._layout.q_indices)

    def warn_of_long_step(self, context: Context) -> None:
        """Warn of fixed steps that cannot follow what some block does, such as an impact."""
        if not is_fixed_step(self.method):
            return
        step = self.options["step"]
        leaves = context.leaves()
        limits = [(leaf.system.longest_step(leaf), leaf.system.label) for leaf in leaves]
        limit, path = min(limits)
        if step > 2.0 * limit:
            warn(
                f"Steps of {step:g} s are too long for '{path}', where an impact lasts about "
                f"{20.0 * limit:.2g} s: the motion may gain or lose energy. Pass step={limit:.1g}, "
                "or use a method that controls its steps"
            )

    def begin(self) -> None:
        """Forget what earlier runs have shown."""
        if self._auto:
            self.method = NONSTIFF_METHOD
        self.first_step: float | None = None  # the step with which the next motion may start
        # Time and name of every method used, and why.
        self.changes: list[tuple[float, str, str]] = []
        self._judged_horizon = 0.0
        self._detector: StiffnessDetector | None = None
        self._boundary = 0.0

    def aim(self, boundary: float) -> None:
        """Say how far the next motions are to lead."""
        self._boundary = boundary
        self._detector = None

    def settle(
        self, rhs: Callable[[float, FloatArray], FloatArray], time: float, x: FloatArray
    ) -> Method:
        """Return the method for a motion that starts at a time and state."""
        horizon = self._boundary - time
        if self.undecided and horizon > JUDGED_ANEW * self._judged_horizon:
            self._judged_horizon = horizon
            verdict = assess(rhs, time, x, horizon)
            if verdict.stiff and verdict.state is not None:
                self._change(
                    time,
                    f"because the diagram is stiff: time constant {verdict.time_constant:.2g} s, "
                    f"mostly in {self._layout.state_name(verdict.state)}",
                )
        if not self.changes:
            why = "chosen because nothing is stiff at the start" if self._auto else "as asked"
            self._note(time, why)
        return self.method

    def watch(self, step: TakenStep) -> bool:
        """Look at a step of a method that was chosen here; tell whether the method changes."""
        if not self.undecided:
            return False
        if self._detector is None:
            self._detector = StiffnessDetector(self._boundary)
        if not self._detector(step):
            return False
        self.turn_stiff(float(step.t))
        return True

    def turn_stiff(self, time: float) -> None:
        """Take a stiff method from now on, since the steps have shown that it pays."""
        self._change(time, "because stability began to limit the steps")
        self.first_step = None

    def remember(self, method: Method, step: float | None) -> None:
        """Remember with which step the next motion may start, if its method is still the same."""
        self.first_step = step if method == self.method else None

    @property
    def undecided(self) -> bool:
        """Whether a stiff method may still be chosen."""
        return self._auto and self.method != STIFF_METHOD

    def _change(self, time: float, why: str) -> None:
        self.method = STIFF_METHOD
        self._note(time, why)
        _log.info("'%s': %s from t = %g s, %s", self._layout.root.label, self.method, time, why)

    def _note(self, time: float, why: str) -> None:
        self.changes.append((time, method_name(self.method), why))
