"""FMUs of other tools as blocks: Model Exchange and Co-Simulation, of FMI 2.0 and 3.0."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from flexure.blocks.models.fmu.description import Variable, free_name
from flexure.blocks.models.fmu.instance import Memory, Numbers, Setting
from flexure.blocks.models.fmu.runtime import Runtime
from flexure.blocks.signals.argument_shapes import flag, one_of, refusal, single
from flexure.diagrams.checks.arguments import file_path
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import TIME, LeafOutputPort
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import (
    Initialization,
    Periodic,
    PerStep,
    Settling,
    Terminate,
    Witness,
)
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import ContinuousState

Kind: TypeAlias = Literal["auto", "me", "cs"]
_MOST_FIXED = 5  # parameters that a text names


class FMUBlock(LeafSystem):
    """An FMU of another tool: ``xdot = f(t, x, u), y = g(t, x, u)``, or sampled.

    FMUs for co-simulation are sampled: ``y[k+1] = step(y[k], u)``.

    An FMU is a program that is run: use files from those you trust.

    With Model Exchange, the states of the FMU are continuous states, which the integrator of the
    diagram advances, and its time events, state events and re-initializations are located like
    those of other blocks. With Co-Simulation, the FMU brings its own integrator: the block is a
    sampled one, which takes a step at each multiple of its period, with the inputs just before that
    instant, and holds its outputs in between.

    Inputs, outputs and parameters have the names, units, bounds and descriptions of the FMU, with
    ``_`` for characters that names cannot have. Integers are rounded, booleans are 0 or 1, and an
    array of FMI 3.0 is a vector, row by row.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    path : str or Path
        The file, of version 2.0 or 3.0.
    kind : {"auto", "me", "cs"}
        Model Exchange, Co-Simulation, or the first of both that the FMU offers.
    period : float, optional
        Period of Co-Simulation in s; the step size that the FMU suggests when omitted.
    isolated : bool
        Whether the FMU runs in a process of its own, so that a crash of its binary becomes an
        error. That is slower: each evaluation is a message.

    Attributes
    ----------
    file : str
        The absolute path.
    facts : Facts
        What the FMU says of itself; ``facts.left_out`` names the variables without numbers, such as
        texts, which stay as they are.
    x : ContinuousState or None
        The states of Model Exchange.
    memory : AbstractState
        The hidden state of the FMU, which changes at events and steps.

    Raises
    ------
    DeclarationError
        When the file is no FMU, is damaged, leads out of its folder, is of another version or kind,
        has no binary for this platform, or cannot be initialized.
    EvaluationError
        In runs, when the FMU refuses an evaluation, cannot go back to an earlier state, or a fixed
        parameter was changed after the start.
    SimulationError
        In runs, when the FMU crashes in its own process.
    MissingExtraError
        When FMPy is not installed.

    See Also
    --------
    to_fmu : Write a diagram as an FMU.

    Notes
    -----
    The block is interpreted; other blocks of the diagram are compiled around it. Contexts hold the
    whole state: the FMU is brought to the point of each evaluation, so that trial steps, copies of
    contexts and results never see each other. FMUs that can serialize their state are restored
    from it. For others with Model Exchange, the block repeats the events since the start. For
    others with Co-Simulation, only the latest context can continue, and an older one is refused.

    A run starts with the states of the context; where these are the defaults, with those that the
    FMU computes from its parameters. Fixed parameters count at the start of a run.

    Pickled blocks, also those sent to workers, contain the path of the file and its hash. A file
    that has changed is refused.

    Examples
    --------
    >>> ball = FMUBlock("ball", "BouncingBall.fmu")  # doctest: +SKIP
    >>> fx.simulate(ball, 3.0)["h"].min()  # doctest: +SKIP
    0.0
    """

    def __init__(
        self,
        name: str,
        path: str | Path,
        *,
        kind: Kind = "auto",
        period: float | None = None,
        isolated: bool = False,
    ) -> None:
        super().__init__(name)
        self.file = str(Path(file_path(path, f"Cannot make the FMUBlock '{name}'")).absolute())
        one_of(self, "kind", kind, ("auto", "me", "cs"))
        flag(self, "isolated", isolated)
        self._runtime = Runtime(name, self.file, kind, isolated)
        self.facts = self._runtime.facts
        try:
            self._declare(period)
        except BaseException:
            self._runtime.close()
            raise

    # Declarations --------------------------------------------------------------------------------

    def _declare(self, period: float | None) -> None:
        facts = self.facts
        self._parameters = [self._parameter(each) for each in facts.parameters]
        self._inputs = [
            self.declare_vector_input(
                each.port, each.size, default=each.start.ravel(), unit=each.unit, doc=each.doc
            )
            for each in facts.inputs
        ]
        starts = [(k, each, each.numbers(each.start)) for k, each in enumerate(facts.inputs)]
        beginning = Setting(
            None,
            tuple(each.numbers(each.start) for each in facts.parameters),
            tuple(start for _, each, start in starts if not each.is_continuous),
            0.0,
            (0.0,) * sum(size for _, size, *_ in facts.states),
            tuple((k, start) for k, each, start in starts if each.is_continuous),
        )
        _, x, outputs = self._runtime.ask("start", beginning, False)
        self._taken = set(self._names) | {each.port for each in facts.outputs}
        self.memory = self.declare_abstract_state(
            free_name("memory", self._taken), None, doc="hidden state of the FMU"
        )
        self.x: ContinuousState | None = None
        if facts.kind == "me":
            if period is not None:
                raise refusal(self, "no period with Model Exchange", f"{period!r}")
            self._declare_model(x)
        else:
            self._declare_steps(period, outputs)
        self.declare_publish(self._look, PerStep())

    def _parameter(self, each: Variable) -> NumericParameter:
        return self.declare_numeric_parameter(
            each.port, each.start, unit=each.unit, lower=each.lower, upper=each.upper, doc=each.doc
        )

    def _output(self, each: Variable, calc: Any, needs: list[Any]) -> LeafOutputPort:
        return self.declare_vector_output(
            each.port, each.size, calc, prerequisites=needs, unit=each.unit, doc=each.doc
        )

    def _declare_model(self, x: FloatArray) -> None:
        """Declare continuous states, and what happens at events."""
        facts = self.facts
        if x.size:
            names = [
                state if size == 1 else f"{state}[{k}]"
                for state, size, *_ in facts.states
                for k in range(size)
            ]
            self.x = self.declare_continuous_state(
                z=x.size, default=x, element_names=names, name=free_name("states", self._taken)
            )
        needs: list[Any] = [TIME, self.memory, *([self.x] if self.x else [])]
        for k, each in enumerate(facts.outputs):
            read = range(len(self._inputs)) if each.needs is None else each.needs
            calc = partial(self._calc_output, k, tuple(read))
            self._output(each, calc, [*needs, *(self._inputs[i] for i in read)])
        self.indicators = self.declare_cache_entry(
            free_name("indicators", self._taken),
            self._calc_indicators,
            prerequisites=[*needs, *self._inputs],
        )
        self.declare_unrestricted_update(self._start, Initialization())
        for k in range(facts.indicators):
            self.declare_unrestricted_update(self._event, Witness(partial(self._indicator, k)))
        self.declare_unrestricted_update(self._event, Witness(self._since_next, "rising"))
        self.declare_unrestricted_update(self._settle, Settling())
        if facts.notes_steps:
            self.declare_unrestricted_update(self._note_step, PerStep())

    def _declare_steps(self, period: float | None, outputs: list[FloatArray]) -> None:
        """Declare outputs that are held, and the steps."""
        step = self.facts.step if period is None else single(self, "period", period)
        if step is None:
            raise refusal(self, "a period in s, as the FMU suggests none", "None")
        self.period = step
        start = np.concatenate([np.zeros(0), *outputs])
        self.held = self.declare_discrete_state(
            free_name("held", self._taken), start, doc="outputs after the last step"
        )
        first = 0
        for each in self.facts.outputs:
            part = slice(first, first + each.size)
            self._output(each, partial(self._calc_held, part), [self.held])
            first += each.size
        self.declare_unrestricted_update(self._start, Initialization())
        self.declare_unrestricted_update(self._step, Periodic(step))

    # Equations -----------------------------------------------------------------------------------

    def calc_time_derivatives(self, context: Any) -> Any:
        """Return the derivatives that the FMU computes."""
        return self._runtime.ask("derivatives", self._setting(context))

    def calc_next_break_time(self, context: Any) -> float:
        """Return the time of the next time event of the FMU."""
        memory: Memory | None = self.memory(context)
        following = math.inf if memory is None else float(memory["next"])
        return following if following > context.time else math.inf

    def calc_slopes(
        self, context: Any, output: LeafOutputPort | None
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the directional derivatives of the FMU, if it has them."""
        facts = self.facts
        if "derivatives" not in facts.can or facts.kind != "me":
            return None
        sizes = np.array([each.size for each in facts.inputs], dtype=int)
        moving = np.repeat(np.array([each.is_continuous for each in facts.inputs], bool), sizes)
        knowns = [(reference, size) for _, size, reference, _ in facts.states]
        count = sum(size for _, size in knowns)
        knowns += [(each.reference, each.size) for each in facts.inputs if each.is_continuous]
        if output is None:
            unknowns = [(derivative, size) for _, size, _, derivative in facts.states]
            rows = count
        else:
            variable = next(each for each in facts.outputs if each.port == output.name)
            unknowns, rows = [(variable.reference, variable.size)], variable.size
            if not variable.is_continuous:
                return np.zeros((rows, count)), np.zeros((rows, moving.size))
        found = self._runtime.ask("slopes", self._setting(context), unknowns, knowns)
        matrix = np.reshape(found, (rows, count + np.count_nonzero(moving)))
        by_inputs = np.zeros((rows, moving.size))
        by_inputs[:, moving] = matrix[:, count:]
        return matrix[:, :count], by_inputs

    def _calc_output(self, k: int, read: tuple[int, ...], context: Any) -> Any:
        return self._runtime.ask("output", self._setting(context, read), k)

    def _calc_held(self, part: slice, context: Any) -> Any:
        return self.held(context)[part]

    def _calc_indicators(self, context: Any) -> Any:
        return self._runtime.ask("indicators", self._setting(context))

    def _indicator(self, k: int, context: Any) -> Any:
        return self.indicators(context)[k]

    def _since_next(self, context: Any) -> float:
        memory = self.memory(context)
        return -1.0 if memory is None else max(context.time - memory["next"], -1.0)

    def _setting(self, context: Any, read: tuple[int, ...] | None = None) -> Setting:
        """Return the point at which the FMU is asked, with the inputs that the question needs."""
        memory: Memory | None = self.memory(context)
        facts = self.facts
        parameters = tuple(
            each.numbers(handle(context))
            for each, handle in zip(facts.parameters, self._parameters, strict=True)
        )
        if memory is not None and memory["parameters"] != parameters:
            self._refuse_fixed(parameters, memory["parameters"])
        discrete: list[tuple[Any, ...]] = []
        continuous: list[tuple[int, tuple[Any, ...]]] = []
        for k, (each, port) in enumerate(zip(facts.inputs, self._inputs, strict=True)):
            is_read = read is None or k in read
            if each.is_continuous and is_read:
                continuous.append((k, each.numbers(port(context))))
            elif not each.is_continuous:
                kept = memory["discrete"][len(discrete)] if memory else each.numbers(each.start)
                discrete.append(each.numbers(port(context)) if is_read else kept)
        x = tuple(self.x(context).tolist()) if self.x is not None else ()
        return Setting(
            memory, parameters, tuple(discrete), float(context.time), x, tuple(continuous)
        )

    def _refuse_fixed(self, now: Numbers, then: Numbers) -> None:
        """Refuse fixed parameters that changed since the FMU was initialized."""
        changed = [
            each.port
            for each, new, old in zip(self.facts.parameters, now, then, strict=True)
            if each.is_fixed and new != old
        ]
        if changed:
            raise EvaluationError(
                f"Cannot ask the FMU '{self.label}'",
                expected="fixed parameters as they were when it was initialized",
                found=f"other values of {', '.join(changed[:_MOST_FIXED])}",
                remedy="Set them in a context that has not run",
            )

    # Events --------------------------------------------------------------------------------------

    def _updated(self, answer: tuple[Memory, FloatArray, list[FloatArray]]) -> dict[Any, Any]:
        """Return new values from what the FMU answered."""
        memory, x, outputs = answer
        found: dict[Any, Any] = {self.memory: memory}
        if self.x is not None:
            found[self.x] = x
        if self.facts.kind == "cs":
            found[self.held] = np.concatenate([np.zeros(0), *outputs])
        return found

    def _start(self, context: Any) -> dict[Any, Any]:
        """Initialize the FMU, unless the context continues a run."""
        if self.memory(context) is not None:
            return {}
        keeps = self.x is not None and not np.array_equal(self.x(context), self.x.default)
        return self._updated(self._runtime.ask("start", self._setting(context), keeps))

    def _event(self, context: Any) -> dict[Any, Any]:
        if self.memory(context) is None:
            return {}
        return self._updated(self._runtime.ask("event", self._setting(context)))

    def _settle(self, context: Any) -> dict[Any, Any]:
        """Handle the event that a jump of an input or parameter is, if it is one."""
        memory = self.memory(context)
        if memory is None:
            return {}
        setting = self._setting(context)
        is_new = (setting.parameters, setting.discrete) != (
            memory["parameters"],
            memory["discrete"],
        )
        if is_new or (self.indicators(context) > 0.0).tolist() != memory["signs"]:
            return self._updated(self._runtime.ask("event", setting))
        return {}

    def _note_step(self, context: Any) -> dict[Any, Any]:
        """Notify the FMU that a step is completed."""
        if self.memory(context) is not None:
            setting = self._setting(context)
            if self._runtime.ask("completed_step", setting):
                return self._updated(self._runtime.ask("event", setting))
        return {}

    def _step(self, context: Any) -> dict[Any, Any]:
        """Take a step from the time of the memory to the present one."""
        memory = self.memory(context)
        if memory is None:
            return self._start(context)
        length = context.time - memory["time"]
        if length <= 0.0:
            return {}
        if "vary" not in self.facts.can and not math.isclose(length, self.period, rel_tol=1e-9):
            raise EvaluationError(
                f"Cannot take a step of the FMU '{self.label}'",
                expected=f"steps of {self.period:g} s, as it cannot vary them",
                found=f"one of {length:g} s",
                remedy="Start at a multiple of the period",
            )
        return self._updated(self._runtime.ask("step", self._setting(context)))

    def _look(self, context: Any) -> Terminate | None:
        """End the run if the FMU asks for it."""
        memory = self.memory(context)
        ends = memory is not None and memory["ended"]
        return Terminate(f"the FMU '{self.label}' asks to end the simulation") if ends else None
