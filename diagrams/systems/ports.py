"""Ports and cache entries: inputs and outputs of blocks, and intermediate results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from flexure.diagrams.checks.arguments import items_of, require
from flexure.diagrams.checks.errors import ContextError, DeclarationError
from flexure.diagrams.values.arrays import (
    Array,
    as_finite,
    check_labels,
    conform,
    copied,
    equal,
    protect,
)
from flexure.diagrams.values.handles import ContextLike, Handle, require_context

#: The prerequisite "time", beside handles of states, inputs and cache entries.
TIME: Literal["time"] = "time"
#: A calculation: takes the block's context, returns a value.
Calculation: TypeAlias = Callable[[Any], Any]
#: What a calculation may be declared to depend on.
Prerequisite: TypeAlias = "Handle | Literal['time']"


class Port(Handle):
    """Common part of input and output ports.

    Attributes
    ----------
    size : int or None
        Number of components of a vector port; None for an abstract port.
    unit : str
        Physical unit, for labels and messages.
    element_names : tuple of str or None
        One name per component.
    """

    def __init__(
        self,
        system: Any,
        name: str,
        index: int,
        size: int | None,
        *,
        unit: str = "",
        element_names: Sequence[str] | None = None,
        doc: str = "",
    ) -> None:
        super().__init__(system, name, index, doc)
        subject = f"{self.what} '{self.full_name}'"
        self.size = size
        self.unit = unit
        self.element_names = check_labels(element_names, self.size or 0, subject)

    @property
    def is_abstract(self) -> bool:
        """Whether the port carries objects instead of vectors."""
        return self.size is None

    @property
    def kind(self) -> str:
        """Kind and size in words, for messages."""
        return "an abstract value" if self.size is None else f"a vector of size {self.size}"


class InputPort(Port):
    """An input of a system, made by `LeafSystem.declare_vector_input`.

    Inside equations, ``port(context)`` is its value, of shape (size,).

    Attributes
    ----------
    default : ndarray, object or None
        Value used while nothing is connected; None makes a connection obligatory.

    See Also
    --------
    OutputPort : An output of a system.

    Examples
    --------
    >>> import flexure as fx
    >>> gain = fx.Gain("gain", 4.0)
    >>> context = gain.create_default_context()
    >>> gain.u.fix(context, 2.0)
    >>> gain.u(context)
    array([2.])
    """

    what = "input port"

    def __init__(
        self,
        system: Any,
        name: str,
        index: int,
        size: int | None,
        *,
        default: Any = None,
        unit: str = "",
        element_names: Sequence[str] | None = None,
        doc: str = "",
    ) -> None:
        super().__init__(system, name, index, size, unit=unit, element_names=element_names, doc=doc)
        self.default = (
            None
            if default is None
            else self.check(default, f"Cannot declare input port '{self.full_name}'")
        )

    def __call__(self, context: ContextLike) -> Array:
        """Return the value at the port; vectors are read-only.

        Raises
        ------
        EvaluationError
            When nothing is connected to the port and no value is fixed.
        """
        own: Any = context if context.system is self.system else context.find(self.system, self)
        value: Array = own.read_input(self.index)
        return value

    eval = Handle._checked_call

    def fix(self, context: ContextLike, value: Any) -> None:
        """Fix the value of a port that no block feeds.

        Raises
        ------
        ContextError
            When the port is connected inside of the root diagram.
        ValueRefusedError
            When the value has the wrong shape or is not finite.
        """
        attempt = f"Cannot fix input port '{self.full_name}'"
        require_context(context, f"input port '{self.full_name}'")
        own = context.find(self.system, self)
        if not own.input_is_free(self.index):
            raise ContextError(
                attempt,
                expected="a port that is fed from outside of the root diagram",
                found=f"a connection from '{own.input_source_name(self.index)}'",
                remedy="Fix the ports of the root diagram, or change the wiring",
            )
        own.write_input(self.index, self.check(value, attempt))

    def check(self, value: Any, attempt: str) -> Any:
        """Return a frozen copy of ``value`` when it fits the port, else raise."""
        if self.size is None:
            return copied(value, attempt)
        return as_finite(value, (self.size,), attempt, unit=self.unit)


class Computed(Handle):
    """Something a block computes: an output or a cache entry.

    Attributes
    ----------
    calc : callable
        ``calc(context) -> value``.
    prerequisites : tuple or None
        Declared prerequisites; None means that they are found by tracing, or assumed to be
        everything. Parameters of the block are always prerequisites and need not be listed.
    needs_start : bool
        Whether the value means nothing where `check_start` of the block refuses a context. Such a
        context is refused alike when the value, or one that depends on it, is asked for.
    """

    size: int | None
    needs_start: bool = False

    def _adopt(self, calc: Calculation, prerequisites: Iterable[Prerequisite] | None) -> None:
        attempt = f"Cannot declare {self.what} '{self.full_name}'"
        wanted = "a method that takes a context"
        require(callable(calc), calc, attempt, wanted, error=DeclarationError)
        self.calc = calc
        self.prerequisites = None
        if prerequisites is not None:
            wanted = "a list of prerequisites"
            self.prerequisites = items_of(prerequisites, wanted, attempt, error=DeclarationError)
        readable = f"TIME or states, inputs and cache entries of '{self.system.name}'"
        wanted = f"prerequisites that are {readable}"
        for item in self.prerequisites or ():
            require(self._can_read(item), item, attempt, wanted, error=DeclarationError)

    def _can_read(self, item: object) -> bool:
        """Return whether an item can be a prerequisite; other outputs cannot."""
        if isinstance(item, Handle):
            return item.system is self.system and not isinstance(item, OutputPort)
        return isinstance(item, str) and item == TIME

    def compute(self, context: Any) -> Any:
        """Run the calculation and check the shape of its result."""
        return self.accept(self.calc(context))

    def accept(self, value: Any) -> Any:
        """Check and freeze a computed value."""
        if self.size is None:
            return protect(value) if isinstance(value, np.ndarray) else value
        return conform(value, self.size, self._subject)

    def _subject(self) -> str:
        return f"{self.what} '{self.full_name}'"


class CacheEntry(Computed):
    """An intermediate result that outputs, derivatives or updates of a block share.

    Made by `LeafSystem.declare_cache_entry`. The value may be any object and must not be modified
    by its readers; an array is made read-only.

    See Also
    --------
    OutputPort : A result that other blocks read.
    LeafSystem : Declares cache entries.

    Examples
    --------
    >>> import flexure as fx
    >>> class Circle(fx.LeafSystem):
    ...     def __init__(self, name):
    ...         super().__init__(name)
    ...         self.radius = self.declare_numeric_parameter("radius", 2.0)
    ...         self.square = self.declare_cache_entry("square", self.calc_square, prerequisites=[])
    ...
    ...     def calc_square(self, context):
    ...         return self.radius(context) ** 2
    >>> circle = Circle("circle")
    >>> circle.square(circle.create_default_context())
    np.float64(4.0)
    """

    what = "cache entry"
    size = None

    def __init__(
        self,
        system: Any,
        name: str,
        index: int,
        calc: Calculation,
        prerequisites: Iterable[Prerequisite] | None,
        doc: str = "",
    ) -> None:
        super().__init__(system, name, index, doc)
        self._adopt(calc, prerequisites)

    def __call__(self, context: ContextLike) -> Any:
        """Return the value, computed at most once per change of its prerequisites."""
        leaf: Any = context if context.system is self.system else self._leaf(context)
        return leaf.store.value(leaf.entry_base + self.index)

    def eval(self, context: ContextLike) -> Any:
        """Return the value in ``context``, which is the root context or the block's own."""
        is_own = getattr(context, "system", None) is self.system
        leaf: Any = context if is_own else self._leaf(context)
        return leaf.store.asked(leaf.entry_base + self.index)


class OutputPort(Port):
    """An output of a system, made by `LeafSystem.declare_vector_output`.

    See Also
    --------
    InputPort : An input of a system.

    Examples
    --------
    >>> import flexure as fx
    >>> source = fx.Step("source", at=0.5, to=3.0)
    >>> context = source.create_default_context()
    >>> context.time = 1.0
    >>> source.y.eval(context)
    array([3.])
    """

    what = "output port"

    @property
    def origin(self) -> LeafOutputPort:
        """The port of a leaf that computes the value."""
        raise NotImplementedError

    def __call__(self, context: ContextLike) -> Any:
        """Return the value of the port; vectors are read-only."""
        own: Any = context if context.system is self.system else context.find(self.system, self)
        return own.store.value(own.output_slot(self.index))

    def eval(self, context: ContextLike) -> Any:
        """Return the value in ``context``, which is the root context or the block's own.

        Raises
        ------
        EvaluationError
            When no motion can begin with the values that it depends on, as of an open loop.
        """
        require_context(context, f"{self.what} '{self.full_name}'")
        own = context.find(self.system, self)
        return own.store.asked(own.output_slot(self.index))


class LeafOutputPort(OutputPort, Computed):
    """An output port of a leaf: computed by a method of the block."""

    def __init__(
        self,
        system: Any,
        name: str,
        index: int,
        size: int | None,
        calc: Calculation,
        prerequisites: Iterable[Prerequisite] | None,
        *,
        shows: slice | None = None,
        unit: str = "",
        element_names: Sequence[str] | None = None,
        doc: str = "",
    ) -> None:
        super().__init__(system, name, index, size, unit=unit, element_names=element_names, doc=doc)
        self._adopt(calc, prerequisites)
        # The components of the continuous state that it shows, if it does nothing else.
        self.shows = shows
        self._check_shown()

    def _check_shown(self) -> None:
        """Refuse to show components that are not there."""
        state = getattr(self.system, "continuous_state", None)
        if self.shows is None or (state and len(range(state.size)[self.shows]) == self.size):
            return
        raise DeclarationError(
            f"Cannot declare {self._subject()}",
            expected=f"{self.size} components of the continuous state, which is declared before",
            found=f"{self.shows} of {state.size if state else 'no'} components",
        )

    @property
    def origin(self) -> LeafOutputPort:
        """The port itself, which computes its value."""
        return self


class ExportedInputPort(InputPort):
    """An input port of a diagram, passed on to ports of its blocks."""

    def __init__(self, system: Any, name: str, index: int, targets: Sequence[InputPort]) -> None:
        first = targets[0]
        agree = all(equal(target.default, first.default) for target in targets)
        default = first.default if agree else None
        super().__init__(
            system,
            name,
            index,
            first.size,
            default=default,
            unit=first.unit,
            element_names=first.element_names,
            doc=first.doc,
        )
        self.targets = tuple(targets)  # the ports inside of the diagram


class ExportedOutputPort(OutputPort):
    """An output port of a diagram: a port of one of its blocks under another name."""

    def __init__(self, system: Any, name: str, index: int, source: OutputPort) -> None:
        super().__init__(
            system,
            name,
            index,
            source.size,
            unit=source.unit,
            element_names=source.element_names,
            doc=source.doc,
        )
        self.source = source  # the port inside of the diagram

    @property
    def origin(self) -> LeafOutputPort:
        """The port of a leaf that computes the value."""
        port = self.source
        while isinstance(port, ExportedOutputPort):
            port = port.source
        return port.origin
