"""An instance of an FMU that follows the values of contexts, whatever it was asked last.

An FMU has hidden state, and a context is a value. Every question to an instance therefore states
the whole point in a `Setting`, and the instance is brought there first: where a step was tried, a
context was copied, or an earlier instant of a result is read, no trace is left of it.

Time, states and inputs can be set. The rest of an FMU is its *memory*, which changes at events
(Model Exchange) and steps (Co-Simulation). Contexts hold it: as the serialized state of the FMU if
it can serialize one; else, for Model Exchange, as the record of its events, which are played again;
else as the number of a state that the instance holds itself. A state that cannot be restored is
refused.
"""

from __future__ import annotations

import ctypes
import functools
import secrets
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from flexure.blocks.models.fmu.description import Facts, Variable
from flexure.diagrams.checks.arguments import import_extra
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import FloatArray

_MOST_ITERATIONS = 1000  # of an event
_MOST_HELD = 1000  # states that an instance holds itself
_DISCARD, _TERMINATED = 2, 3  # of FMI 2.0
_MOST_MESSAGES = 3  # of the log in an error

#: What a context keeps of an FMU: plain values by name. None before the initialization.
Memory: TypeAlias = dict[str, Any]
Numbers: TypeAlias = tuple[tuple[Any, ...], ...]
#: Value references of variables, with their sizes.
Sized: TypeAlias = Sequence[tuple[int, int]]


class Setting(NamedTuple):
    """A point at which an FMU is asked."""

    memory: Memory | None  # what the context keeps
    # parameters, discrete: values of all parameters, and of the inputs that are not continuous.
    parameters: Numbers
    discrete: Numbers
    time: float  # in s
    x: tuple[float, ...]  # continuous states
    # Continuous inputs, by position, as far as the question depends on them.
    inputs: tuple[tuple[int, tuple[Any, ...]], ...]


class Instance:
    """An instance, in this process, of an FMU that is unpacked in a folder."""

    _ended = False
    _next = np.inf
    _completed: tuple[float, tuple[float, ...] | None] | None = None  # time and states

    def __init__(self, folder: str, facts: Facts) -> None:
        self._facts, self._folder = facts, folder
        self.log: list[str] = []
        self._fmu: Any = None
        self._is_there = False
        self._key: Any = None  # memory, parameters and discrete inputs that it has
        self._held: dict[bytes, Any] = {}  # by a name that no other one has in any process
        self._discrete = [each for each in facts.inputs if not each.is_continuous]
        self._forget()

    def close(self) -> None:
        """Free the instance and the binary."""
        self._free()
        if self._fmu is not None:
            fmu, self._fmu = self._fmu, None
            fmu.freeLibrary()

    def _free(self) -> None:
        if self._is_there:
            self._is_there = False
            self._held.clear()
            getattr(self._fmu, f"fmi{self._facts.version[0]}FreeInstance")(self._fmu.component)

    # Questions -----------------------------------------------------------------------------------

    def start(self, setting: Setting, keeps_states: bool) -> tuple[Memory, FloatArray, list[Any]]:
        """Initialize; return memory, states and outputs. States are those of the FMU if not kept.

        ``setting.inputs`` holds all continuous inputs.
        """
        self._begin(setting, keeps_states)
        return self._outcome(setting, "start", keeps_states)

    def derivatives(self, setting: Setting) -> FloatArray:
        """Return the time derivatives of the states."""
        self._go(setting)
        name = "getDerivatives" if self._is_2 else "getContinuousStateDerivatives"
        return self._read(name, len(setting.x))

    def output(self, setting: Setting, k: int) -> FloatArray:
        """Return an output."""
        self._go(setting)
        return self._get_output(self._facts.outputs[k], setting.time)

    def indicators(self, setting: Setting) -> FloatArray:
        """Return the event indicators."""
        self._go(setting)
        return self._read("getEventIndicators", self._facts.indicators)

    def slopes(self, setting: Setting, unknowns: Sized, knowns: Sized) -> FloatArray:
        """Return the derivatives of scalars or arrays by others, exact ones of the FMU."""
        self._go(setting)
        references = [reference for reference, _ in unknowns]
        slope = self._fmu.getDirectionalDerivative
        count = () if self._is_2 else (sum(size for _, size in unknowns),)
        columns = [
            slope(references, [reference], [float(k == i) for i in range(size)], *count)
            for reference, size in knowns
            for k in range(size)
        ]
        return np.array(columns).T

    def event(self, setting: Setting) -> tuple[Memory, FloatArray, list[Any]]:
        """Handle an event; return memory, states and outputs after it."""
        self._go(setting)
        self._handle_event(setting)
        return self._outcome(setting, "event")

    def completed_step(self, setting: Setting) -> bool:
        """Notify the FMU that a step is completed; return whether it asks for an event.

        What it notes for itself then, such as the past of a delay, is not part of its memory.
        """
        self._go(setting)
        return self._complete()

    def step(self, setting: Setting) -> tuple[Memory, FloatArray, list[Any]]:
        """Take a step of Co-Simulation from the time of the memory to that of the setting."""
        self._load(setting)
        self._set_inputs(setting)
        assert setting.memory is not None
        start = setting.memory["time"]
        self._key = None  # a step that fails leaves an unknown state
        self._ended = self._do_step(start, setting.time - start)
        return self._outcome(setting, "step")

    def _do_step(self, start: float, length: float) -> bool:
        """Take a step; return whether the FMU asks to end the simulation."""
        if not self._is_2:
            _, ends, is_early, reached = self._fmu.doStep(start, length)
            if is_early and not ends:
                raise EvaluationError(
                    "Cannot take a step of an FMU",
                    expected=f"a step from {start:g} s to {start + length:g} s",
                    found=f"an early return at {reached:g} s, which was not allowed",
                )
            return bool(ends)
        try:
            self._fmu.doStep(start, length)
        except Exception as error:
            discarded = getattr(error, "status", None) == _DISCARD
            if discarded and self._fmu.getBooleanStatus(_TERMINATED):
                return True
            raise
        return False

    # Getting there -------------------------------------------------------------------------------

    @property
    def _is_2(self) -> bool:
        return self._facts.version == "2.0"

    def _go(self, setting: Setting) -> None:
        self._load(setting)
        self._move(setting)

    def _load(self, setting: Setting) -> None:
        """Bring the hidden state to that of a setting, if it is another one."""
        memory = setting.memory
        base = ("start", setting.time) if memory is None else memory
        key = (base, setting.parameters, setting.discrete)
        if self._key is not None and key == self._key:
            return
        if memory is None:
            self._initialize(setting)
            self._key = key
            return
        kept = (memory["parameters"], memory["discrete"])
        if self._key is None or (memory, *kept) != self._key:
            self._restore(memory)
        self._key = key
        if (setting.parameters, setting.discrete) != kept:
            if self._facts.kind == "cs":
                self._set_values(setting)
            else:
                self._move(setting)
                self._handle_event(setting)

    def _restore(self, memory: Memory) -> None:
        self._forget()
        self._key = None
        kept = memory["state"]
        if isinstance(kept, str):
            if not self._is_there:
                self._instantiate()
                if self._is_2:  # some FMUs allocate in this state only
                    self._fmu.setupExperiment(startTime=memory["time"])
            state = self._fmu.deserializeFMUState(kept.encode("latin-1"))
            self._fmu.setFMUState(state)
            self._fmu.freeFMUState(state)
        elif memory["events"]:
            for what, keeps_states, each in memory["events"]:
                setting = Setting(*each)
                if what == "start":
                    self._begin(setting, keeps_states)
                else:
                    self._move(setting)
                    self._handle_event(setting)
        elif self._is_there and kept in self._held:
            self._fmu.setFMUState(self._held[kept])
        else:
            raise EvaluationError(
                "Cannot go back to an earlier state of an FMU",
                expected="the attribute canGetAndSetFMUstate in its description, and, in another "
                "process or after 1000 steps, canSerializeFMUstate",
                found="an FMU without them",
                remedy="Continue from the latest context only, or export the FMU with them",
            )

    def _instantiate(self) -> None:
        """Make an instance, and load the binary for the first one; an older one is freed."""
        fmi = import_extra(f"fmpy.fmi{self._facts.version[0]}", "fmi", "Cannot run an FMU")
        self._free()
        self._key = None
        self._forget()
        self.log.clear()
        if self._fmu is None:
            name = f"FMU{self._facts.version[0]}{'Model' if self._facts.kind == 'me' else 'Slave'}"
            self._fmu = getattr(fmi, name)(
                guid=self._facts.token,
                unzipDirectory=self._folder,
                modelIdentifier=self._facts.identifier,
                instanceName=self._facts.identifier,
            )
        if self._is_2:
            callbacks = type(_callbacks_2()).from_buffer_copy(_callbacks_2())
            callbacks.componentEnvironment = id(self)
            _LISTENERS[id(self)] = self
            self._fmu.instantiate(callbacks=callbacks)
        else:
            self._fmu.instantiate(logMessage=self._note_3)
        self._is_there = True

    def _begin(self, setting: Setting, keeps_states: bool) -> None:
        self._initialize(setting)
        if keeps_states and setting.x:
            self._move(setting)

    def _initialize(self, setting: Setting) -> None:
        """Make a new instance and initialize it with the values of a setting."""
        self._instantiate()
        fmu = self._fmu
        for variable, value in zip(self._facts.parameters, setting.parameters, strict=True):
            if value != variable.numbers(variable.start):  # others may not be settable
                self._set(variable, value)
        if self._is_2:
            fmu.setupExperiment(startTime=setting.time)
            fmu.enterInitializationMode()
        else:
            fmu.enterInitializationMode(startTime=setting.time)
        for variable, value in zip(self._discrete, setting.discrete, strict=True):
            self._set(variable, value)
        self._set_inputs(setting)
        fmu.exitInitializationMode()
        if self._facts.kind == "me":
            self._iterate()
            fmu.enterContinuousTimeMode()

    def _handle_event(self, setting: Setting) -> None:
        """Handle an event at the present point, at which parameters and inputs may jump."""
        self._complete()
        self._key = None  # an event that fails leaves an unknown state
        self._fmu.enterEventMode()
        self._set_values(setting)
        self._iterate()
        self._fmu.enterContinuousTimeMode()
        self._forget()

    def _complete(self) -> bool:
        """Notify the FMU of a completed step, once at a point: FMUs may compare two steps."""
        point = (self._time, self._x)
        if not self._facts.notes_steps or self._completed == point:
            return False
        asks, ends = self._fmu.completedIntegratorStep()
        self._completed = point
        return bool(asks or ends)

    def _iterate(self) -> None:
        """Update discrete states until they stay."""
        update = self._fmu.newDiscreteStates if self._is_2 else self._fmu.updateDiscreteStates
        self._ended = False
        for _ in range(_MOST_ITERATIONS):
            again, ends, _, _, has_next, time = update()
            self._ended |= bool(ends)
            self._next = float(time) if has_next else np.inf
            if not again:
                return
        raise EvaluationError(
            "Cannot handle an event of an FMU",
            expected=f"discrete states that settle within {_MOST_ITERATIONS} iterations",
            found="more of them",
        )

    def _forget(self) -> None:
        """Forget where the instance is, so that all of it is set again."""
        self._time = np.nan
        self._x: tuple[float, ...] | None = None
        self._inputs: dict[int, tuple[Any, ...]] = {}
        self._completed = None

    def _move(self, setting: Setting) -> None:
        """Set time, states and continuous inputs as far as they differ."""
        if setting.time != self._time:
            self._fmu.setTime(setting.time)
            self._time = setting.time
        if setting.x != self._x and setting.x:
            count = len(setting.x)
            self._fmu.setContinuousStates((ctypes.c_double * count)(*setting.x), count)
            self._x = setting.x
        self._set_inputs(setting)

    def _set_inputs(self, setting: Setting) -> None:
        for k, value in setting.inputs:
            if self._inputs.get(k) != value:
                self._set(self._facts.inputs[k], value)
                self._inputs[k] = value

    def _set_values(self, setting: Setting) -> None:
        """Set tunable parameters and discrete inputs."""
        kept = setting.memory["parameters"] if setting.memory else None
        for k, variable in enumerate(self._facts.parameters):
            value = setting.parameters[k]
            if not variable.is_fixed and (kept is None or kept[k] != value):
                self._set(variable, value)
        for variable, value in zip(self._discrete, setting.discrete, strict=True):
            self._set(variable, value)

    # What comes back -----------------------------------------------------------------------------

    def _outcome(
        self, setting: Setting, what: str, keeps_states: bool = True
    ) -> tuple[Memory, FloatArray, list[Any]]:
        """Return the memory, the states and the outputs, and know the memory as the present one."""
        x = self._read("getContinuousStates", len(setting.x))
        state: Any = None
        events: list[Any] = []
        if "serialize" in self._facts.can and "restore" in self._facts.can:
            held = self._fmu.getFMUState()
            state = self._fmu.serializeFMUState(held).decode("latin-1")
            self._fmu.freeFMUState(held)
        elif self._facts.kind == "cs":
            state = secrets.token_bytes(8)
            if "restore" in self._facts.can:
                self._held[state] = self._fmu.getFMUState()
                if len(self._held) > _MOST_HELD:
                    self._fmu.freeFMUState(self._held.pop(next(iter(self._held))))
        else:
            before = setting.memory["events"] if setting.memory else []
            events = [*before, (what, keeps_states, tuple(setting._replace(memory=None)))]
        memory = {
            "state": state,
            "events": events,
            "parameters": setting.parameters,
            "discrete": setting.discrete,
            "time": setting.time,
            "next": self._next,
            "signs": (self._read("getEventIndicators", self._facts.indicators) > 0.0).tolist(),
            "ended": self._ended,
        }
        self._key = (memory, setting.parameters, setting.discrete)
        return memory, x, [self._get_output(each, setting.time) for each in self._facts.outputs]

    def _read(self, name: str, count: int) -> FloatArray:
        """Return numbers of Model Exchange, of which there may be none."""
        found = (ctypes.c_double * count)()
        if count:
            getattr(self._fmu, name)(found, count)
        return np.array(found, dtype=float)

    def _get_output(self, variable: Variable, time: float) -> FloatArray:
        """Return the value of an output, or refuse what is no number."""
        read: Callable[..., Any] = getattr(self._fmu, f"get{variable.access}")
        arguments = () if self._is_2 else (variable.size,)
        value = np.array(read([variable.reference], *arguments), dtype=float)
        if np.isnan(value).any():
            raise EvaluationError(
                "Cannot use an output of an FMU",
                expected=f"numbers of '{variable.name}'",
                found=f"NaN at {time:g} s",
            )
        return value

    def _set(self, variable: Variable, value: tuple[Any, ...]) -> None:
        getattr(self._fmu, f"set{variable.access}")([variable.reference], list(value))

    def _note_3(self, _: Any, status: int, __: Any, message: bytes) -> None:
        """Keep the latest warnings and errors of the log."""
        if status > 0 and message:
            self.log.append(message.decode("utf-8", "replace").strip()[:300])
            del self.log[:-_MOST_MESSAGES]


#: Instances of FMI 2.0 by their identity, which comes with their messages.
_LISTENERS: WeakValueDictionary[int, Instance] = WeakValueDictionary()


@functools.cache
def _callbacks_2() -> Any:
    """Return callbacks for FMI 2.0: FMPy has one logger for all instances, which must stay."""
    fmi = import_extra("fmpy.fmi2", "fmi", "Cannot run an FMU")
    callbacks = fmi.fmi2CallbackFunctions()
    callbacks.logger = fmi.fmi2CallbackLoggerTYPE(_note_2)
    callbacks.allocateMemory = fmi.fmi2CallbackAllocateMemoryTYPE(fmi.calloc)
    callbacks.freeMemory = fmi.fmi2CallbackFreeMemoryTYPE(fmi.free)
    logging = import_extra("fmpy.logging", "fmi", "Cannot run an FMU")
    logging.addLoggerProxy(ctypes.byref(callbacks))
    return callbacks


def _note_2(number: int | None, _: Any, status: int, __: Any, message: bytes) -> None:
    """Hand a message to its instance; those of instances that others made are left to FMPy."""
    instance = _LISTENERS.get(number or 0)
    if instance is not None:
        instance._note_3(None, status, None, message)
    else:
        import_extra("fmpy.fmi1", "fmi", "Cannot run an FMU").printLogMessage(
            None, b"", status, b"", message
        )
