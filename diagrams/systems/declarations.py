"""Declarations of a block: its parameters, state, ports, cache entries and events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.systems.ports import (
    CacheEntry,
    Calculation,
    InputPort,
    LeafOutputPort,
    Prerequisite,
)
from flexure.diagrams.systems.state_projection import Projection, Tally
from flexure.diagrams.systems.system import MadeByBase, System
from flexure.diagrams.values.arrays import Distribution, FloatArray, Problem, check_name, check_size
from flexure.diagrams.values.events import Event, EventKind, PublishHandler, Recorder, Trigger
from flexure.diagrams.values.handles import Handle, put_first
from flexure.diagrams.values.parameters import (
    AbstractParameter,
    Comparison,
    NumericParameter,
    Relation,
)
from flexure.diagrams.values.state import (
    AbstractState,
    ContinuousState,
    DiscreteState,
    UpdateHandler,
)

_H = TypeVar("_H", bound=Handle)

_ITEMS = (
    "numeric_parameters",
    "abstract_parameters",
    "discrete_states",
    "abstract_states",
    "_input_ports",
    "_output_ports",
    "cache_entries",
    "events",
    "record_makers",
    "relations",
)


class DeclaringSystem(System):
    """The part of a block that keeps what it declares.

    Every declaration, except of events and records, has a unique name within the block and returns
    a handle. A block cannot declare anything after it is in use.
    """

    numeric_parameters: list[NumericParameter]
    abstract_parameters: list[AbstractParameter]
    continuous_state: ContinuousState | None
    projection: Projection | None
    tally: Tally | None
    discrete_states: list[DiscreteState]
    abstract_states: list[AbstractState]
    cache_entries: list[CacheEntry]
    events: list[Event]
    record_makers: list[Callable[[], Any]]
    relations: list[Relation]
    _frozen: bool
    _names: dict[str, Handle]
    _input_ports: list[InputPort]
    _output_ports: list[LeafOutputPort]

    if not TYPE_CHECKING:
        _frozen, _names, continuous_state, record_makers = (MadeByBase() for _ in range(4))
        projection, tally = MadeByBase(), MadeByBase()
        numeric_parameters, abstract_parameters, discrete_states = (MadeByBase() for _ in range(3))
        abstract_states, cache_entries, events = (MadeByBase() for _ in range(3))
        relations = MadeByBase()
        _input_ports, _output_ports = MadeByBase(), MadeByBase()

    def __init__(self, name: str) -> None:
        super().__init__(name)
        put_first(self, "_frozen", False)
        put_first(self, "_names", {})
        put_first(self, "continuous_state", None)
        put_first(self, "projection", None)
        put_first(self, "tally", None)
        for items in _ITEMS:
            put_first(self, items, [])

    @property
    def input_ports(self) -> Sequence[InputPort]:
        """The input ports in the order of their declaration."""
        return self._input_ports

    @property
    def output_ports(self) -> Sequence[LeafOutputPort]:
        """The output ports in the order of their declaration."""
        return self._output_ports

    @property
    def handles(self) -> tuple[Handle, ...]:
        """All declared items, in the order of their declaration."""
        return tuple(self._names.values())

    # Parameters ---------------------------------------------------------------------------------

    def declare_numeric_parameter(
        self,
        name: str,
        default: npt.ArrayLike,
        *,
        unit: str = "",
        lower: npt.ArrayLike = -np.inf,
        upper: npt.ArrayLike = np.inf,
        exclusive: bool = False,
        allow_infinite: bool = False,
        doc: str = "",
        problem: Problem | None = None,
        sparse: bool = False,
        distribution: Distribution | None = None,
    ) -> NumericParameter:
        """Declare a real scalar or array that lives in the context.

        Parameters
        ----------
        name : str
            Name within the block.
        default : float or array_like
            Value in new contexts; its shape is the shape of the parameter.
        unit : str
            Physical SI unit.
        lower, upper : float or array_like
            Bounds, element by element.
        exclusive : bool
            Whether the bounds themselves are rejected.
        allow_infinite : bool
            Whether infinities are accepted.
        doc : str
            One line of documentation.
        problem : callable, optional
            ``problem(value) -> str | None`` describes what is wrong with a value within the
            bounds, for rules that bounds cannot express.
        sparse : bool
            Whether zeros in it are usually constant, as in a matrix; native code then omits the
            terms that they make zero.
        distribution : callable, optional
            ``distribution(rng) -> value`` for random contexts.

        Returns
        -------
        NumericParameter
            The handle.
        """
        return self._register(
            self.numeric_parameters,
            name,
            lambda index: NumericParameter(
                self,
                name,
                index,
                default,
                unit=unit,
                lower=lower,
                upper=upper,
                exclusive=exclusive,
                allow_infinite=allow_infinite,
                doc=doc,
                problem=problem,
                sparse=sparse,
                distribution=distribution,
            ),
        )

    def declare_relation(
        self, left: NumericParameter, comparison: Comparison, right: NumericParameter
    ) -> None:
        """Declare that a parameter is below another one, element by element.

        You can set both values in any order: constructors, evaluations, runs, analyses, loaded
        contexts and pages reject a contradiction when they use the values.

        Parameters
        ----------
        left, right : NumericParameter
            Parameters of this block; a scalar applies to every element of the other one.
        comparison : {"<", "<="}
            As in ``declare_relation(self.lower, "<=", self.upper)``.

        Raises
        ------
        DeclarationError
            If the defaults contradict each other, or an argument is no parameter of this block.
        """
        self._refuse_when_frozen(f"a relation of '{self.label}'")
        self.relations.append(Relation.checked(self, left, comparison, right))

    def declare_abstract_parameter(
        self, name: str, default: Any, *, doc: str = ""
    ) -> AbstractParameter:
        """Declare a parameter that is not a number; see `AbstractParameter`."""
        return self._register(
            self.abstract_parameters,
            name,
            lambda index: AbstractParameter(self, name, index, default, doc),
        )

    # State --------------------------------------------------------------------------------------

    @answers_other_words
    def declare_continuous_state(
        self,
        *,
        q: int = 0,
        v: int = 0,
        z: int = 0,
        default: npt.ArrayLike | None = None,
        name: str = "x",
        element_names: Sequence[str] | None = None,
        problem: Problem | None = None,
        normalize: Callable[[FloatArray], FloatArray] | None = None,
        distribution: Distribution | None = None,
        doc: str = "",
    ) -> ContinuousState:
        """Declare the continuous state; at most once per block.

        Parameters
        ----------
        q, v, z : int
            Numbers of positions, velocities and other components.
        default : array_like, shape (q + v + z,), optional
            Value in new contexts; zeros when omitted.
        name : str
            Name within the block.
        element_names : sequence of str, optional
            One name per component.
        problem : callable, optional
            ``problem(vector) -> str | None`` describes the fault of finite numbers.
        normalize : callable, optional
            ``normalize(vector) -> vector`` returns the normal form of an equivalent state.
        distribution : callable, optional
            ``distribution(rng) -> vector`` for random contexts.
        doc : str
            One line of documentation.

        Returns
        -------
        ContinuousState
            The handle.
        """
        earlier = self.continuous_state
        found = "" if earlier is None else f"'{earlier.full_name}'"
        self._refuse_second("continuous state", earlier, "Give all sizes in one call", found)
        state = self._register(
            [],
            name,
            lambda _: ContinuousState(
                self,
                name,
                q=q,
                v=v,
                z=z,
                default=default,
                element_names=element_names,
                problem=problem,
                normalize=normalize,
                distribution=distribution,
                doc=doc,
            ),
        )
        self.continuous_state = state
        return state

    def declare_projection(
        self,
        deviations: Callable[[Any], Any],
        projected: Callable[[Any], Any],
        *,
        size: int = 1,
        describe: Callable[[Any], str] | None = None,
    ) -> None:
        """Declare where the continuous state belongs; at most once per block.

        Integration errors accumulate in quantities that the derivatives keep constant, such as the
        closure of a loop, an energy or the length of a quaternion. If a step ends with a deviation
        above 1, the simulation projects the state, repeatedly if necessary, and continues from
        there.

        Parameters
        ----------
        deviations : callable
            ``deviations(context) -> vector``: errors of the constraints on the state, in multiples
            of their tolerances. Signs do not matter.
        projected : callable
            ``projected(context) -> vector`` returns the state (q, v, z) with smaller errors, such
            as after one step of Newton's method.
        size : int
            Number of deviations.
        describe : callable, optional
            ``describe(context) -> str`` says what is not where it belongs, with names and values,
            for the text of an error.

        Notes
        -----
        The first two are equations that are traced and compiled, see `LeafSystem`. Deviations are
        computed after every step, so they should be cheap.
        """
        self._refuse_when_frozen("a projection")
        remedy = "Return all deviations from one function"
        self._refuse_second("projection", self.projection, remedy)
        self.projection = Projection(self, size, deviations, projected, describe)

    def declare_tally(self, calc: Callable[[Any], Any], *, size: int = 1) -> None:
        """Declare states that accumulate the effect of projections; at most once.

        When a simulation projects the states of any block (`declare_projection`), the change of the
        vector ``calc(context)`` is added to the last states z of this block.

        Parameters
        ----------
        calc : callable
            ``calc(context) -> vector``: a quantity to compare before and after each projection,
            such as an energy. It must not depend on the states that accumulate it.
        size : int
            Number of its components, and of the states z that accumulate their changes. The block
            computes the time derivatives of these states, which are usually zero.
        """
        self._refuse_when_frozen("a tally")
        self._refuse_second("tally", self.tally, "Return all quantities from one function")
        self.tally = Tally(self, size, calc)

    def declare_discrete_state(
        self,
        name: str,
        default: npt.ArrayLike,
        *,
        element_names: Sequence[str] | None = None,
        distribution: Distribution | None = None,
        doc: str = "",
    ) -> DiscreteState:
        """Declare a group of discrete state; its default gives the size."""
        return self._register(
            self.discrete_states,
            name,
            lambda index: DiscreteState(
                self,
                name,
                index,
                default,
                element_names=element_names,
                distribution=distribution,
                doc=doc,
            ),
        )

    def declare_abstract_state(self, name: str, default: Any, *, doc: str = "") -> AbstractState:
        """Declare a state that is no vector; see `AbstractState`."""
        return self._register(
            self.abstract_states, name, lambda index: AbstractState(self, name, index, default, doc)
        )

    # Ports and cache entries --------------------------------------------------------------------

    def declare_vector_input(
        self,
        name: str,
        size: int,
        *,
        default: npt.ArrayLike | None = None,
        unit: str = "",
        element_names: Sequence[str] | None = None,
        doc: str = "",
    ) -> InputPort:
        """Declare an input port that takes a vector.

        Parameters
        ----------
        name : str
            Name within the block.
        size : int
            Number of components.
        default : array_like, optional
            Value while nothing is connected. Without it the port must be connected.
        unit : str
            Physical SI unit.
        element_names : sequence of str, optional
            One name per component.
        doc : str
            One line of documentation.

        Returns
        -------
        InputPort
            The handle.
        """
        return self._register(
            self._input_ports,
            name,
            lambda index: InputPort(
                self,
                name,
                index,
                check_size(size, f"input port '{self.label}.{name}'"),
                default=default,
                unit=unit,
                element_names=element_names,
                doc=doc,
            ),
        )

    def declare_abstract_input(self, name: str, *, default: Any = None, doc: str = "") -> InputPort:
        """Declare an input port that takes any object."""
        return self._register(
            self._input_ports,
            name,
            lambda index: InputPort(self, name, index, None, default=default, doc=doc),
        )

    def declare_vector_output(
        self,
        name: str,
        size: int,
        calc: Calculation,
        *,
        prerequisites: Iterable[Prerequisite] | None = None,
        shows: slice | None = None,
        unit: str = "",
        element_names: Sequence[str] | None = None,
        doc: str = "",
    ) -> LeafOutputPort:
        """Declare an output port that gives a vector.

        Parameters
        ----------
        name : str
            Name within the block.
        size : int
            Number of components.
        calc : callable
            ``calc(context) -> vector``; state handles can serve directly.
        prerequisites : iterable of handles and TIME, optional
            States, inputs, cache entries and time that the calculation reads; parameters need
            not be listed. When omitted, they are found by tracing the calculation, or, where
            that is impossible, everything is assumed.
        shows : slice, optional
            The components of the continuous state that it shows as they are; its path sets them.
        unit : str
            Physical SI unit.
        element_names : sequence of str, optional
            One name per component.
        doc : str
            One line of documentation.

        Returns
        -------
        LeafOutputPort
            The handle.
        """
        return self._register(
            self._output_ports,
            name,
            lambda index: LeafOutputPort(
                self,
                name,
                index,
                check_size(size, f"output port '{self.label}.{name}'"),
                calc,
                prerequisites,
                shows=shows,
                unit=unit,
                element_names=element_names,
                doc=doc,
            ),
        )

    def declare_abstract_output(
        self,
        name: str,
        calc: Calculation,
        *,
        prerequisites: Iterable[Prerequisite] | None = None,
        doc: str = "",
    ) -> LeafOutputPort:
        """Declare an output port that gives any object; readers must not modify it."""
        return self._register(
            self._output_ports,
            name,
            lambda index: LeafOutputPort(self, name, index, None, calc, prerequisites, doc=doc),
        )

    def declare_cache_entry(
        self,
        name: str,
        calc: Calculation,
        *,
        prerequisites: Iterable[Prerequisite] | None = None,
        doc: str = "",
    ) -> CacheEntry:
        """Declare an intermediate result that is computed once and read by several methods."""
        return self._register(
            self.cache_entries,
            name,
            lambda index: CacheEntry(self, name, index, calc, prerequisites, doc),
        )

    # Events and records -------------------------------------------------------------------------

    def declare_publish(
        self,
        handler: PublishHandler,
        trigger: Trigger,
        *,
        signal: InputPort | None = None,
        record: Recorder | None = None,
    ) -> None:
        """Declare a handler that looks at the context: ``handler(context)``.

        It may return `Terminate` to end the simulation. A handler that does nothing but to record
        the time and one input, like that of a log, may say so by giving this input as ``signal``
        and a function ``record(context, times, values)`` for many samples, with one row of
        ``values`` per time. A fast simulation then hands over the samples of many instants at once.
        """
        self._declare_event("publish", trigger, handler, signal, record)

    def declare_discrete_update(self, handler: UpdateHandler, trigger: Trigger) -> None:
        """Declare an update of discrete state: ``handler(context) -> {discrete state: value}``.

        Handlers due at the same instant all see the context as it was before; when two of them
        write the same group, the later one wins.
        """
        self._declare_event("discrete", trigger, handler)

    def declare_unrestricted_update(self, handler: UpdateHandler, trigger: Trigger) -> None:
        """Declare an update of any state: ``handler(context) -> {state: value}``."""
        self._declare_event("unrestricted", trigger, handler)

    def declare_record(self, make: Callable[[], Any]) -> int:
        """Declare storage for what publish handlers write, such as a log; return its index.

        Every context gets its own, made by ``make()``, at ``context.records[index]``.
        """
        self._refuse_when_frozen("a record")
        self.record_makers.append(make)
        return len(self.record_makers) - 1

    def _declare_event(
        self,
        kind: EventKind,
        trigger: Trigger,
        handler: Callable[[Any], Any],
        signal: InputPort | None = None,
        record: Recorder | None = None,
    ) -> None:
        self._refuse_when_frozen(f"a {kind} event")
        self.events.append(Event(self, kind, trigger, handler, signal, record))

    # What all declarations have in common -------------------------------------------------------

    def _register(self, items: list[_H], name: str, make: Callable[[int], _H]) -> _H:
        """Append a declared item after checking its name."""
        label = self.label
        if self._frozen:
            self._refuse_when_frozen(f"'{name}' of '{label}'")
        check_name(name, f"an item of '{label}'")
        if name in self._names:
            raise DeclarationError(
                f"Cannot declare '{name}' of '{label}'",
                expected="a name that is used once in the block",
                found=f"the {self._names[name].what} of the same name",
            )
        item = make(len(items))
        items.append(item)
        self._names[name] = item
        return item

    def _refuse_second(
        self, what: str, earlier: object, remedy: str, found: str = "two of them"
    ) -> None:
        if earlier is not None:
            attempt = f"Cannot declare a second {what} in '{self.label}'"
            raise DeclarationError(attempt, expected="one declaration", found=found, remedy=remedy)

    def _refuse_when_frozen(self, subject: str) -> None:
        if self._frozen:
            raise DeclarationError(
                f"Cannot declare {subject}",
                expected="declarations in the constructor, before the block is used",
                found="a block that is in a diagram or has contexts already",
            )
