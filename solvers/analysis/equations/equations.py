"""The equations of a context as functions of chosen numbers, and their Jacobian.

`linearize`, `equilibrium` and `parameter_sensitivity` share these steps: find the inputs and
parameters that the user names, set them, and differentiate by them, exactly if the equations can be
traced and by central differences otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from flexure.blocks.linear_systems.delays import TimeDelay
from flexure.diagrams.checks.errors import EvaluationError, TraceError, UnknownNameError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.contexts.value_places import Place, Way, find_place, several, shows_state
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import ExportedOutputPort, InputPort, OutputPort, Port
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.events import Periodic
from flexure.diagrams.values.handles import Handle
from flexure.diagrams.values.kinds import CONTINUOUS, INPUT as ANY_INPUT
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import ContinuousState
from flexure.diagrams.values.symbolic_values import DISCRETE, INPUT, PARAMETER, STATE, Key
from flexure.solvers.analysis.equations.foreign_slopes import ForeignSlopes
from flexure.solvers.analysis.equations.kept_equations import TracedEquations, kept_equations
from flexure.solvers.analysis.equations.shared_equations import (
    SharedEquations,
    WrittenCode,
    shared_equations,
    written_code,
)
from flexure.solvers.analysis.equations.tangents import gains
from flexure.solvers.native.programs.programs import BoundProgram, UnsuitableError, native_program
from flexure.solvers.native.sharing.families.requested_derivatives import Question
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, state_keys
from flexure.solvers.tracing.straight_line import Function
from flexure.solvers.tracing.trace import number_behind, trace
from flexure.solvers.tracing.trace_check import OTHER_NUMBERS, agree, agrees_at, sizes_of_terms

_RELATIVE_INCREMENT = float(np.finfo(float).eps ** (1 / 3))
_SMALLEST_SCALE = 1e-3
#: Values that blocks compute themselves, before code is written for them, which takes as long.
_FEW = 16
#: Number beyond which squares and products overflow.
LARGEST = 1e100


@dataclass(frozen=True)
class Variable:
    """An input, parameter or state of a context by which equations are differentiated."""

    place: Place  # of an input port, numeric parameter or state, or of one of its components
    keys: tuple[Key, ...]  # where its components are in a trace

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return self.place.shape or ()

    @property
    def is_state(self) -> bool:
        """Whether it is a continuous state, or components of one."""
        return self.keys[0][0][0] == STATE

    def read(self, store: Store) -> FloatArray:
        """Return the components in C order."""
        if self.is_state:
            return np.array([store.x[k] for _, k in self.keys])
        return np.array([number_behind(store, key) for key in self.keys])

    def write(self, store: Store, numbers: FloatArray) -> None:
        """Set the components without checking bounds."""
        (what, where, index), _ = self.keys[0]
        leaf = store.leaves[where] if what in (PARAMETER, DISCRETE) else None
        if leaf is None:
            before = store.value(where)
        else:
            before = (leaf.parameters if what == PARAMETER else leaf.discrete)[index]
        whole = np.array(before)
        whole.reshape(-1)[self.place.components] = numbers
        value = freeze(whole)[()]
        if leaf is None:
            store.fix(where, value)
        elif what == PARAMETER:
            leaf.write_parameter(index, value)
        else:
            leaf.write_discrete_state(index, value)

    def set(self, context: Context, numbers: FloatArray) -> None:
        """Set the components in a context, with all checks."""
        self.place.write(context, numbers.reshape(self.shape))


def write_variables(store: Store, variables: Iterable[Variable], numbers: FloatArray) -> None:
    """Set variables to numbers, end to end, without checking bounds; equal ones stay."""
    start = 0
    for variable in variables:
        end = start + len(variable.keys)
        if not np.array_equal(variable.read(store), numbers[start:end]):
            variable.write(store, numbers[start:end])
        start = end


def find_variables(
    context: Context, choices: Way | Iterable[Way], attempt: str, *, states: bool = False
) -> list[Variable]:
    """Find inputs, parameters and, if asked for, states below a root context by handle or path."""
    found: list[Variable] = []
    taken: set[Key] = set()
    for choice in several(choices):
        place = find_place(context.system, choice, can_start if states else can_vary)
        place = place.settable if states and shows_state(place.handle) else place
        handle = place.handle
        offset = 0
        if states and isinstance(handle, ContinuousState):
            leaf = context.find_leaf(handle.system, handle)
            origin: tuple[str, int, int] = (STATE, 0, 0)
            offset = leaf.x_slice.start
        elif isinstance(handle, NumericParameter):
            leaf = context.find_leaf(handle.system, handle)
            origin = (PARAMETER, leaf.position, handle.index)
        elif wire_at(handle) in context.store.layout.cuts:
            origin = (INPUT, context.store.layout.cuts[wire_at(handle)], 0)
        elif can_vary(handle):
            origin = (INPUT, _free_slot(context, handle, attempt), 0)
        else:
            raise UnknownNameError(
                f"{attempt} with {choice!r}",
                expected="a free input port that carries a vector, or a numeric parameter"
                + ", or a continuous state" * states,
                found=f"the {handle.what} '{handle.full_name}'"
                if isinstance(handle, Handle)
                else repr(handle),
            )
        keys = tuple((origin, offset + int(k)) for k in place.components)
        if not taken.isdisjoint(keys):
            raise UnknownNameError(
                f"{attempt} with {choice!r}", expected="every name once", found="a repetition"
            )
        if keys:
            found.append(Variable(place, keys))
            taken.update(keys)
    return found


def find_varied(system: System, way: Way, attempt: str, remedy: str | None = None) -> Place:
    """Find the numeric parameter or vector input over which something is followed.

    A remedy says what else could be done with something else.
    """
    place = find_place(system, way, can_vary)
    if not can_vary(place.handle):
        raise UnknownNameError(
            f"{attempt} over '{place.path}'",
            expected="a numeric parameter or a free vector input",
            found=f"the {place.handle.what} '{place.handle.full_name}'",
            remedy=remedy,
        )
    return place


def can_vary(handle: Any) -> bool:
    """Return whether a handle is that of a vector input or a numeric parameter."""
    vector = isinstance(handle, InputPort) and handle.size is not None
    return vector or isinstance(handle, NumericParameter)


def can_start(handle: Any) -> bool:
    """Return whether a motion can be differentiated by a handle: as a state, by its beginning."""
    return can_vary(handle) or isinstance(handle, ContinuousState) or shows_state(handle)


def _free_slot(context: Context, port: InputPort, attempt: str) -> int:
    """Return the slot of an input port that no block feeds."""
    inside = context.find(port.system, port)
    if not inside.input_is_free(port.index):
        raise UnknownNameError(
            f"{attempt} with '{port.full_name}'",
            expected="a port that is fed from outside of the root diagram",
            found=f"a connection from '{inside.input_source_name(port.index)}'",
            remedy="Name the parameter of a source instead, or export a free port",
        )
    return inside._input_slot(port.index)


def find_ports(system: System, choices: Way | Iterable[Way], use: str) -> list[Place]:
    """Find ports that carry vectors, or components of them, by handle or path."""
    places = [find_place(system, choice, carries_vector) for choice in several(choices)]
    for place in places:
        if not carries_vector(place.handle):
            raise UnknownNameError(
                f"Cannot use '{place.path}' of '{system.label}' as {use}",
                expected="a port that carries a vector",
                found=f"the {place.handle.what} '{place.handle.full_name}'",
            )
    return places


def vector_ports(ways: Way | Iterable[Way] | None, ports: Iterable[Port]) -> list[Way]:
    """Return ways to ports: to all that carry vectors where none is named."""
    return [port for port in ports if port.size] if ways is None else several(ways)


def carries_vector(handle: Any) -> bool:
    """Return whether a handle is that of a port that carries a vector."""
    return isinstance(handle, Port) and handle.size is not None


def wire_at(handle: Any) -> Any:
    """Return the port at which a wire is cut: for an output of the root, that which it shows."""
    at_root = isinstance(handle, ExportedOutputPort) and handle.system.parent is None
    return wire_at(handle.source) if at_root else handle


def slot_of(context: Context, port: Port) -> int:
    """Return the slot behind a port."""
    found = context.find(port.system, port)
    return (
        found.output_slot(port.index)
        if isinstance(port, OutputPort)
        else found._input_slot(port.index)
    )


#: A slot and components of its value, or components of the state.
Shown: TypeAlias = tuple[int | None, Sequence[int]]


def shown(context: Context, place: Place) -> Shown:
    """Return the slot and the components of an output; of a state no slot, but its place in x."""
    handle, components = place.handle, place.components
    if not isinstance(handle, ContinuousState):
        return slot_of(context, handle), components.tolist()
    first = context.find_leaf(handle.system, handle).x_slice.start
    return None, (first + components).tolist()


def read_equations(store: Store, outputs: Iterable[Shown]) -> list[Any]:
    """Read derivatives and outputs, numbers or symbols."""
    values = read_outputs(store, outputs)
    return [*store.time_derivatives(), *values]


def read_outputs(store: Store, outputs: Iterable[Shown]) -> list[Any]:
    """Read outputs, numbers or symbols."""
    values: list[Any] = []
    for slot, part in outputs:
        value = store.x if slot is None else store.value(slot)
        values += [value[k] for k in part]
    return values


def state_names(context: Context) -> list[str]:
    """Return one name per component of the continuous state of a root context."""
    layout = context.store.layout
    kept, key = layout.kept, ("names of states", layout.root.path)
    names: tuple[str, ...] | None = kept.find(key)
    if names is None:
        states = [leaf.continuous_state for leaf in layout.leaves]
        names = tuple(name for state in states if state for name in Place.of(state).names)
        kept.put(key, names, 1 + len(names))
    return list(names)


def refuse_beyond_numbers(
    numbers: FloatArray, names: Sequence[str], what: str, attempt: str
) -> None:
    """Refuse rates or forces with whose squares nothing can be computed, and name the largest."""
    sizes = np.where(np.isfinite(numbers), np.abs(numbers), 0.0)
    if sizes.size and np.max(sizes) > LARGEST:
        worst = int(np.argmax(sizes))
        raise EvaluationError(
            attempt,
            expected=f"{what} of at most {LARGEST:g}, the largest that the solver can compute with",
            found=f"{numbers[worst]:.6g} of {names[worst]}",
            remedy="Check the units of loads, masses and stiffnesses",
        )


def refuse_sampled(
    context: Context,
    attempt: str,
    remedy: str = "Replace it by a continuous block, or use the plant only",
) -> None:
    """Refuse a diagram in which sampled state follows the motion: it has no continuous equations.

    Sampled state that follows nothing, such as that of a noise source, counts as constant.
    """
    masks = context.store.layout.masks
    for leaf in context.leaves():
        system = leaf.system
        sampled = any(
            e.kind != "publish" and isinstance(e.trigger, Periodic) for e in system.events
        )
        if sampled and (
            system.continuous_state is not None
            or any(masks[slot] & (CONTINUOUS | ANY_INPUT) for slot in leaf.sources)
        ):
            if isinstance(system, TimeDelay):
                remedy = f"{remedy}. Or use a PadeDelay instead of '{system.label}'"
            raise EvaluationError(
                attempt,
                expected="equations that are continuous in time",
                found=f"the sampled block '{system.label}', which follows the motion",
                remedy=remedy,
            )


class Equations:
    """Time derivatives and outputs of a root context as functions of states and variables.

    Evaluations change the context, but for its time. Outputs are ports or continuous states, or
    components of them; values of ``slots`` come behind them. ``shares`` admits code that large
    systems share, of which there is no ``exact``. With ``as_gain``, blocks with
    ``linearize_as="gain"`` have the slopes of gains, as in linear models. Without ``rates``, there
    are no derivatives before the outputs. ``known`` is a trace that begins with these rows and
    columns, for equations that share no code.
    """

    def __init__(
        self,
        context: Context,
        variables: Sequence[Variable] = (),
        outputs: Sequence[Place] = (),
        slots: Sequence[int] = (),
        *,
        shares: bool = False,
        as_gain: bool = False,
        rates: bool = True,
        known: TracedEquations | None = None,
    ) -> None:
        self.context = context  # which evaluations change
        self._store = store = context.store
        self._num_rates = store.layout.num_states if rates else 0
        self._as_gain = as_gain and any(gains(context))
        self._variables = variables
        self._shown = [shown(context, place) for place in outputs]
        self._shown += [(slot, range(store.layout.slot_port[slot].size)) for slot in slots]
        # The Jacobian as a function of time and states, for the present variables; None when the
        # equations cannot be traced, or share code.
        self.exact: ExactJacobian | None = None
        self.obstacle: TraceError | None = None  # why they cannot
        self._compiled: BoundProgram | None = None
        self._shared: SharedEquations | None = None
        self._by_code: Function | None = None
        self._foreign: ForeignSlopes | None = None
        self._asked = 0
        self._latest: dict[Callable[..., FloatArray], tuple[int, int, FloatArray]] = {}
        # The derivatives and outputs at the values of the context when this was made.
        self.present = self.values(self.point())
        keys = [key for variable in variables for key in variable.keys]
        read = tuple([(slot, tuple(part)) for slot, part in self._shown])
        question = Question(read, tuple(keys), as_gain=self._as_gain)
        shared = shared_equations(store, question) if shares else None
        self._shared = None if shared is None else self._agreeing(shared)
        if self._shared is not None or (known and self._take(known, known_before=True)):
            return
        try:
            traced, agrees = kept_equations(
                store.layout,
                ("rates and outputs", read, tuple(keys), self._as_gain, shares, rates),
                lambda: self._traced(question, native=shares),
                lambda known: self._take(known, known_before=True),
            )
        except TraceError as error:
            self._foreign = self._found_foreign([*state_keys(store), *keys])
            if self._foreign is None:
                self.obstacle = error
                self._compiled = self._by_states() if rates else None
            return
        if not agrees and not self._take(traced, known_before=False):
            self.obstacle = TraceError(OTHER_NUMBERS.capitalize())

    def _traced(self, question: Question, *, native: bool) -> TracedEquations | WrittenCode:
        store = self._store
        expressions = trace(store.layout, self._read, as_gain=self._as_gain)
        code = written_code(store.layout, question, expressions) if native else None
        keys = [*state_keys(store), *question.varied]
        often = not self._num_rates  # as outputs alone are asked for in searches
        return code or TracedEquations(store.layout, expressions, keys, often=often)

    def _take(self, traced: TracedEquations | WrittenCode, *, known_before: bool) -> bool:
        """Use a trace if it gives the numbers of the equations; the Jacobian has its terms."""
        store = self._store
        if isinstance(traced, WrittenCode):
            self._shared = self._agreeing(SharedEquations(store, traced))
            return self._shared is not None
        by_code = traced.bound(store)
        found = by_code(store.time, store.x) if known_before else traced.evaluated(store)
        exact = ExactJacobian(store, traced.slopes)
        with np.errstate(all="ignore"):
            point = self.point()
            rows = slice(len(self.present))
            terms = sizes_of_terms(exact(store.time, store.x)[rows, : len(point)], point)
        agrees = agree(found[rows], self.present, terms)
        self.exact = exact if agrees else None
        self._by_code = by_code if agrees else None
        self._asked = _FEW if known_before else self._asked  # which has made the code
        return agrees

    def _found_foreign(self, keys: list[Key]) -> ForeignSlopes | None:
        """Return derivatives with those of blocks that cannot be traced, if these have some."""
        if all(type(k.system).calc_slopes is LeafSystem.calc_slopes for k in self._store.leaves):
            return None
        try:
            found = ForeignSlopes(self._store, self._read, keys, as_gain=self._as_gain)
        except TraceError:
            return None
        terms = sizes_of_terms(found.jacobian(), self.point())
        return found if agree(found.values(), self.present, terms) else None

    def _agreeing(self, found: SharedEquations) -> SharedEquations | None:
        """Return equations by code if they give the numbers of the equations."""
        with np.errstate(all="ignore"):
            terms = sizes_of_terms(found.jacobian(), self.point())
        return found if agree(found.computed(), self.present, terms) else None

    def _by_states(self) -> BoundProgram | None:
        """Return native code for derivatives by states, in which parts that are alike share code.

        So it has derivatives where equations are too long to be written out as a whole.
        """
        store = self._store
        try:
            found = BoundProgram(native_program(store), store)
            found.jacobian(store.time, store.x)
        except (UnsuitableError, TraceError):
            return None
        rates = self.present[: len(store.x)]
        return found if agrees_at(partial(found, store.time), store.x, rates) else None

    @property
    def is_exact_by_states(self) -> bool:
        """Whether the derivatives of the rates by the states are exact."""
        return any(
            each is not None for each in (self.exact, self._shared, self._compiled, self._foreign)
        )

    @property
    def how(self) -> str:
        """How the Jacobian is found, in words."""
        if self._foreign is not None:
            return self._foreign.how
        error = self.obstacle
        has_others = bool(self._variables or self._shown)
        if error is None or (self._compiled is not None and not has_others):
            return "exact derivatives"
        why = f"{error.attempt[0].lower()}{error.attempt[1:]}"
        why += f": {error.found}" if error.found else ""
        if self._compiled is not None:
            return f"exact derivatives of rates by states, others by central differences, as {why}"
        return f"central differences, because {why}"

    def point(self) -> FloatArray:
        """Return the present states and variables, end to end."""
        store = self._store
        return np.concatenate([store.x, *[v.read(store) for v in self._variables]])

    def values(self, point: FloatArray) -> FloatArray:
        """Return the derivatives and outputs at a point, end to end."""
        return self._once(Equations._values, point)

    def _once(
        self, compute: Callable[[Equations, FloatArray], FloatArray], point: FloatArray
    ) -> FloatArray:
        """Return what is computed at a point; by Python code, once while no value changes."""
        self._move_to(point)
        if self._shared is not None:
            return compute(self, point)
        key = self._store.clock, self._store.revision
        latest = self._latest.get(compute)
        if latest is None or latest[:2] != key:
            latest = self._latest[compute] = *key, compute(self, point)
        return latest[2].copy()

    def _values(self, point: FloatArray) -> FloatArray:
        found = self._computed()
        if found is not None and np.isfinite(found).all():
            return found  # else blocks themselves say what is refused
        with np.errstate(all="ignore"):
            return np.array(self._read(self._store))

    def _computed(self) -> FloatArray | None:
        """Return the values by code; None where there is none, or it does not pay yet."""
        if self._shared is not None:
            return self._shared.computed()
        self._asked += 1
        if self._by_code is None or self._asked <= _FEW:
            return None
        return self._by_code(self._store.time, self._store.x)[: len(self.present)]

    def jacobian(self, point: FloatArray) -> FloatArray:
        """Return the derivatives of `values` by the point."""
        return self._once(Equations._slopes, point)

    def _slopes(self, point: FloatArray) -> FloatArray:
        if self._shared is not None:
            return self._shared.jacobian()
        if self._foreign is not None:
            return self._foreign.jacobian()
        if self.exact is None:
            return self._differences(point)
        return self.exact(self._store.time, self._store.x)[: len(self.present), : len(point)]

    def _read(self, store: Store) -> list[Any]:
        """Read derivatives and outputs, numbers or symbols."""
        read = read_equations if self._num_rates else read_outputs
        return read(store, self._shown)

    def _move_to(self, point: FloatArray) -> None:
        store, n = self._store, self._store.layout.num_states
        if not np.array_equal(store.x, point[:n]):
            store.set_motion(store.time, freeze(point[:n].copy()))
        write_variables(store, self._variables, point[n:])

    def _differences(self, point: FloatArray) -> FloatArray:
        """Approximate by central differences what of the Jacobian is not known exactly."""
        n = self._num_rates
        matrix = np.zeros((n + sum(len(part) for _, part in self._shown), len(point)))
        for k in range(n if self._compiled is not None and not self._shown else 0, len(point)):
            number = point[k]
            increment = _RELATIVE_INCREMENT * max(abs(number), _SMALLEST_SCALE)
            ahead, behind = point.copy(), point.copy()
            ahead[k] += increment
            behind[k] -= increment
            with np.errstate(all="ignore"):
                rise = self.values(ahead) - self.values(behind)
            matrix[:, k] = rise / (ahead[k] - behind[k])
        self._move_to(point)
        if self._compiled is not None:
            matrix[:n, :n] = self._compiled.jacobian(self._store.time, self._store.x)
        return matrix
