"""The context: all values of one system, that is time, state, parameters and fixed inputs.

A root context owns a `Store` with the values of everything below it; the contexts of the blocks
inside are windows onto it. Values are immutable: a change replaces a value, so that whatever was
handed out earlier stays as it was, and a clone shares what neither side has changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import ContextError
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.contexts.value_places import Way, can_be_set, find_place
from flexure.diagrams.interface.completion import Completing, block_paths
from flexure.diagrams.interface.html import Shown
from flexure.diagrams.systems.copying import Household
from flexure.diagrams.systems.system import System, each_system
from flexure.diagrams.values.arrays import Array, as_finite, bounded, equal, freeze
from flexure.diagrams.values.handles import Handle, found_twin, require_context, root_of
from flexure.diagrams.values.kinds import ABSTRACT, CONTINUOUS, DISCRETE, PARAMETER, TIME_KIND

if TYPE_CHECKING:
    from flexure.diagrams.systems.layout import Layout
    from flexure.diagrams.systems.leaf import LeafSystem
    from flexure.diagrams.values.tables import Table


class Context(Shown, Completing):
    """The values of one system; for a block in a diagram, a view of the root's values.

    Made by `System.create_default_context`, `System.create_random_context`, `clone` or loading.

    Attributes
    ----------
    system : System
        The system whose values these are.
    parent : DiagramContext or None
        Context of the diagram around it; None for a root context.

    See Also
    --------
    System : Creates contexts.
    simulate : Run a system from a context.

    Examples
    --------
    >>> import flexure as fx
    >>> context = fx.FirstOrderLag("lag", time_constant=2.0).create_default_context()
    >>> float(context.get("time_constant"))
    2.0
    """

    _opens = True
    system: System
    parent: DiagramContext | None
    store: Store

    @property
    def root(self) -> Context:
        """The context of the root system."""
        root: Context = root_of(self)
        return root

    @property
    def is_root(self) -> bool:
        """Whether this is a root context."""
        return self.parent is None

    @property
    def time(self) -> float:
        """Time in seconds; one time for everything below a root."""
        return self.store.time

    @time.setter
    def time(self, time: float) -> None:
        attempt = f"Cannot set the time of '{self.root.system.name}' [s]"
        number = bounded(time, attempt, unit="s")
        self.store.require_no_onlooker("the time")
        self.store.time = number
        self.store.changed(TIME_KIND)

    @property
    def accuracy(self) -> float | None:
        """Relative accuracy requested of integrators and event location, or None."""
        return self.store.accuracy

    @accuracy.setter
    def accuracy(self, accuracy: float | None) -> None:
        if accuracy is not None:
            attempt = f"Cannot set the accuracy of '{self.root.system.name}'"
            accuracy = bounded(accuracy, attempt, lower=0.0, exclusive=True)
        self.store.accuracy = accuracy

    # Continuous state ----------------------------------------------------------------------

    def _span(self) -> slice:
        raise NotImplementedError

    @property
    def continuous_state(self) -> Array:
        """Continuous state of everything in this system, block by block; read-only."""
        return self.store.x[self._span()]

    @continuous_state.setter
    def continuous_state(self, value: npt.ArrayLike) -> None:
        span = self._span()
        attempt = f"Cannot set the continuous state of '{self.system.label}'"
        number = as_finite(value, (span.stop - span.start,), attempt)
        for leaf in self.leaves():
            state, part = leaf.system.continuous_state, leaf.x_slice
            if state is not None and state.problem is not None:
                block = number[part.start - span.start : part.stop - span.start]
                state.check(block, f"Cannot set state '{state.full_name}'")
        self.store.replace_states(span, number)
        self.store.changed(CONTINUOUS)

    def _part(self, indices: npt.NDArray[np.intp]) -> Array:
        span = self._span()
        return freeze(self.store.x[indices[(indices >= span.start) & (indices < span.stop)]])

    @property
    def q(self) -> Array:
        """Positions of everything in this system."""
        return self._part(self.store.layout.q_indices)

    @property
    def v(self) -> Array:
        """Velocities of everything in this system."""
        return self._part(self.store.layout.v_indices)

    @property
    def z(self) -> Array:
        """The remaining continuous state of everything in this system."""
        return self._part(self.store.layout.z_indices)

    # Blocks inside -------------------------------------------------------------------------

    def leaves(self) -> Iterator[LeafContext]:
        """Go through the contexts of all leaves below, in the order of the diagram."""
        raise NotImplementedError

    def find(self, system: System, handle: Handle | None = None) -> Context:
        """Return the context of ``system`` below (or at) this one, or raise a ContextError."""
        layout = self.store.layout
        position = layout.position.get(system)
        found: Context
        if position is not None:
            found = self.store.leaves[position]
        else:
            found = self.root
            for name in _names_between(layout.root, system):
                found = found[name]
        top: Context | None = found
        while top is not None and top is not self:
            top = top.parent
        if top is None or found.system is not system:
            subject = f"{handle.what} '{handle.full_name}'" if handle else f"'{system.label}'"
            raise ContextError(
                f"Cannot use {subject} with this context",
                expected=f"the context of '{system.label}' or of a diagram that contains it",
                **(
                    found_twin(self, system)
                    or {
                        "found": f"a context of '{self.system.label}'",
                        "remedy": "Create the context from the same diagram object",
                    }
                ),
            )
        return found

    def find_leaf(self, system: System, handle: Handle | None = None) -> LeafContext:
        """Return the context of a leaf below (or at) this one."""
        return self.find(system, handle)  # type: ignore[return-value]

    def __getitem__(self, path: str) -> Context:
        """Return the context of a block by its path from this system."""
        return self.find(self.system.get_system(path))

    def get(self, path: Way) -> Any:
        """Return the value of a parameter, state or port by its path from this system, or handle.

        A component is named in brackets, by its number or element name, as in ``"arm.x[rate]"``.
        """
        return find_place(self.system, path).read(self)

    def set(self, path: Way, value: Any) -> None:
        """Set a parameter or a state, or fix an input, by its path from this system, or handle.

        A component is named in brackets, as for `get`; the others stay what they are. An output of
        components of a state, such as the angle of a joint, is accepted for these.
        """
        find_place(self.system, path, can_be_set).settable.write(self, value)

    def describe(self, pattern: str | None = None) -> Table:
        """Return a table of all values: time, states, parameters, and inputs that no block feeds.

        Parameters
        ----------
        pattern : str, optional
            Which: what is below a path, as in ``"door"``, or fits a pattern, as in
            ``"*.stiffness"``. All when omitted.

        Returns
        -------
        Table
            Its columns are path, kind, value, unit, changed, bounds and doc. Paths are those of
            `get` and `set`. What is changed, and has a star in the text, is not as in a default
            context: ``.where(changed=True)`` selects it. An input without a value is None.

        Raises
        ------
        UnknownNameError
            When nothing is at the path.
        """
        from flexure.diagrams.contexts.inventory import values_of

        return values_of(self, pattern)

    # Inputs --------------------------------------------------------------------------------

    def _input_slot(self, index: int) -> int:
        raise NotImplementedError

    def output_slot(self, index: int) -> int:
        """Return the slot behind an output port of this system."""
        raise NotImplementedError

    def read_input(self, index: int) -> Any:
        """Return the value at an input port of this system."""
        return self.store.value(self._input_slot(index))

    def input_is_free(self, index: int) -> bool:
        """Return whether an input port of this system can be fixed."""
        return self.store.layout.slot_leaf[self._input_slot(index)] < 0

    def input_source_name(self, index: int) -> str:
        """Path of the source of an input port of this system."""
        port: Handle = self.store.layout.slot_port[self._input_slot(index)]
        return port.full_name

    def write_input(self, index: int, value: Any) -> None:
        """Fix an input port of this system to a checked value."""
        self.store.fix(self._input_slot(index), value)

    # Whole contexts ------------------------------------------------------------------------

    def clone(self) -> Context:
        """Return an independent copy of a root context, with all values and logs."""
        self._require_root("clone")
        twin = make_context(self.store.layout)
        twin.copy_from(self)
        return twin

    def __copy__(self) -> Context:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Context:
        """Return a copy for the same system, or for its copy if the same call makes one."""
        system = memo.get(id(self.system), self.system)
        if not self.is_root:
            found: Context = copy.deepcopy(self.root, memo).find(system)
            return found
        _, (_, *values) = self.__reduce__()
        if system is not self.system:
            return _restored(system, *copy.deepcopy(values, memo))

        def follow(copied: Household) -> None:
            twin._move_to(_restored(copied.counterpart(system), *copy.deepcopy(values, memo)))

        twin = self.clone()
        Household.of(system).when_copied(memo, follow)
        return twin

    def _move_to(self, other: Context) -> None:
        """Become the context that another one is, of a copy of the system."""
        for leaf, its_leaf in zip(self.store.leaves, other.store.leaves, strict=True):
            leaf.__dict__.update(its_leaf.__dict__ | {"store": self.store, "parent": leaf.parent})
        self.store.__dict__.update(other.store.__dict__ | {"leaves": self.store.leaves})
        pairs: list[tuple[Any, Any]] = [(self, other)]
        for mine, its in pairs:  # which grows
            mine.system = its.system
            if isinstance(mine, DiagramContext):
                pairs += [(child, its.children[name]) for name, child in mine.children.items()]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle values alone: what was computed from them is computed again."""
        if not self.is_root:
            return Context.find, (self.root, self.system)
        store = self.store
        held = range(store.layout.input_base, len(store.cache))
        inputs = {slot: store.cache[slot] for slot in held if store.holds(slot)}
        leaves = [
            (leaf.parameters, leaf.abstract_parameters, leaf.discrete, leaf.abstract, leaf.records)
            for leaf in store.leaves
        ]
        return _restored, (self.system, store.time, store.accuracy, store.x, inputs, leaves)

    def copy_from(self, other: Context) -> None:
        """Copy all values from another root context of the same system."""
        self._require_root("copy into")
        require_context(other, f"'{self.system.label}'")
        other._require_root("copy from")
        if other.store.layout is not self.store.layout:
            raise ContextError(
                f"Cannot copy values into a context of '{self.system.name}'",
                expected="a root context of the same system object",
                **(
                    found_twin(other, self.system)
                    or {"found": f"a context of '{other.system.name}'"}
                ),
            )
        mine, theirs = self.store, other.store
        mine.require_no_onlooker("all values")
        mine.time, mine.accuracy, mine.x = theirs.time, theirs.accuracy, theirs.x
        mine.cache, mine.stamps = list(theirs.cache), list(theirs.stamps)
        mine.required, mine.clock = list(theirs.required), theirs.clock
        mine.revision += 1
        mine.unchecked = set(theirs.unchecked)
        for leaf, source in zip(mine.leaves, theirs.leaves, strict=True):
            leaf.take(source)

    def __eq__(self, other: object) -> bool:
        """Two contexts are equal when they belong to the same system and hold the same values."""
        if not isinstance(other, Context):
            return NotImplemented
        if other.system is not self.system:
            return False
        return (
            self.time == other.time
            and self.accuracy == other.accuracy
            and np.array_equal(self.continuous_state, other.continuous_state)
            and all(a.equals(b) for a, b in zip(self.leaves(), other.leaves(), strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def _require_root(self, verb: str) -> None:
        if self.parent is not None:
            raise ContextError(
                f"Cannot {verb} the context of '{self.system.label}'",
                expected="a root context",
                found="the context of a block inside of a diagram",
                remedy="Use context.root",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return all values as plain Python objects keyed by block path; see `save`."""
        from flexure.diagrams.contexts import context_files

        return context_files.to_dict(self)

    def save(self, path: str | Path) -> None:
        """Write all values to a JSON file, keyed by block path.

        Load it with `System.load_context`. Abstract values must be None, booleans, numbers,
        strings, arrays, or lists, tuples and string-keyed dictionaries of these.

        Raises
        ------
        ContextFileError
            When a value cannot be saved, or the file not be written; an older file stays as it was.
        """
        from flexure.diagrams.contexts import context_files

        context_files.save(self, path)

    def _ipython_key_completions_(self) -> list[str]:
        return block_paths(self.system)

    def _completion_paths_(self) -> Iterable[str]:
        return self.system._completion_paths_()

    def _pieces(self) -> Iterator[str]:
        from flexure.diagrams.contexts.notebook_tables import context_pieces

        return context_pieces(self)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of '{self.system.label}' at t={self.time:g}, "
            f"{self.continuous_state.size} continuous states>"
        )


class LeafContext(Context):
    """The values of one leaf system."""

    def __init__(self, system: LeafSystem, store: Store, position: int) -> None:
        layout = store.layout
        self.system: LeafSystem = system
        self.store = store
        self.position = position
        self.parent = None
        self.x_slice = layout.x_slices[position]
        self.sources = layout.sources[position]
        self.entry_base = layout.entry_base[position]
        self.output_base = layout.output_base[position]
        self.parameters = [p.default for p in system.numeric_parameters]
        self.abstract_parameters = [p.default for p in system.abstract_parameters]
        self.discrete = [d.default for d in system.discrete_states]
        self.abstract = [a.default for a in system.abstract_states]
        self.records = [make() for make in system.record_makers]

    def take(self, other: LeafContext) -> None:
        """Take over the parameters, states and logs of another context of the same block."""
        self.parameters = list(other.parameters)
        self.abstract_parameters = list(other.abstract_parameters)
        self.discrete = list(other.discrete)
        self.abstract = list(other.abstract)
        self.records = copy.deepcopy(other.records) if other.records else []

    def _span(self) -> slice:
        return self.x_slice

    def _input_slot(self, index: int) -> int:
        return self.sources[index]

    def read_input(self, index: int) -> Any:
        """Return the value at an input port of this block."""
        slot, store = self.sources[index], self.store
        if store.stamps[slot] < store.required[store.masks[slot]]:
            store.update(slot)
        return store.cache[slot]

    def output_slot(self, index: int) -> int:
        """Return the slot of an output port of this block."""
        return self.output_base + index

    def leaves(self) -> Iterator[LeafContext]:
        """Give this context alone."""
        yield self

    def write_parameter(self, index: int, number: Array) -> None:
        """Replace a checked parameter value."""
        self.parameters[index] = number
        if self.system.relations:
            self.store.unchecked.add(self.position)
        self.store.changed_in(self.position, PARAMETER)

    def write_abstract_parameter(self, index: int, value: Any) -> None:
        """Replace an abstract parameter value."""
        self.abstract_parameters[index] = value
        self.store.changed_in(self.position, PARAMETER)

    def write_continuous_state(self, number: Array) -> None:
        """Replace the checked continuous state of this block."""
        self.store.replace_states(self.x_slice, number)
        self.store.changed_in(self.position, CONTINUOUS)

    def write_discrete_state(self, index: int, number: Array) -> None:
        """Replace a checked group of discrete state."""
        self.store.require_no_onlooker(f"a discrete state of '{self.system.label}'")
        self.discrete[index] = number
        self.store.changed_in(self.position, DISCRETE)

    def write_abstract_state(self, index: int, value: Any) -> None:
        """Replace an abstract state value."""
        self.store.require_no_onlooker(f"an abstract state of '{self.system.label}'")
        self.abstract[index] = value
        self.store.changed_in(self.position, ABSTRACT)

    def equals(self, other: LeafContext) -> bool:
        """Compare everything but time and continuous state."""
        return (
            equal(self.parameters, other.parameters)
            and equal(self.abstract_parameters, other.abstract_parameters)
            and equal(self.discrete, other.discrete)
            and equal(self.abstract, other.abstract)
            and equal(self._fixed_inputs(), other._fixed_inputs())
        )

    def _fixed_inputs(self) -> list[Any]:
        """Return the values of the inputs that no block feeds, and whether they are fixed."""
        store, first = self.store, self.store.layout.input_base
        return [(store.holds(s), store.cache[s]) for s in self.sources if s >= first]


class DiagramContext(Context):
    """The values of a diagram: a window onto the contexts of its blocks."""

    def __init__(self, system: System, store: Store, children: Mapping[str, Context]) -> None:
        self.system = system
        self.store = store
        self.parent = None
        self.children = dict(children)
        for child in children.values():
            child.parent = self

    def _span(self) -> slice:
        spans = [leaf.x_slice for leaf in self.leaves()]
        return slice(spans[0].start, spans[-1].stop) if spans else slice(0, 0)

    def leaves(self) -> Iterator[LeafContext]:
        """Go through the contexts of all leaves below, in the order of the diagram."""
        stack: list[Context] = [self]
        while stack:
            top = stack.pop()
            if isinstance(top, DiagramContext):
                stack.extend(reversed(top.children.values()))
            else:
                assert isinstance(top, LeafContext)
                yield top

    def __getitem__(self, path: str) -> Context:
        """Return the context of a block by its path from this diagram."""
        child = self.children.get(path)
        return child if child is not None else super().__getitem__(path)

    def _input_slot(self, index: int) -> int:
        layout = self.store.layout
        port = self.system.input_ports[index]
        if self.system is layout.root:
            return layout.input_base + index
        return layout.slot_feeding(port)

    def output_slot(self, index: int) -> int:
        """Return the slot behind an output port of this diagram."""
        return self.store.layout.slot_of(self.system.output_ports[index])


def make_context(layout: Layout) -> Context:
    """Make a root context with all default values."""
    store = Store(layout)
    made: dict[System, Context] = {}
    for position, leaf in enumerate(layout.leaves):
        context = LeafContext(leaf, store, position)
        store.leaves.append(context)
        made[leaf] = context
    root = _wrap(layout.root, store, made)
    x = np.zeros(layout.num_states)
    for position in layout.dynamic:
        state = layout.leaves[position].continuous_state
        assert state is not None
        x[layout.x_slices[position]] = state.default
    store.x = freeze(x)
    return root


def _restored(
    system: System,
    time: float,
    accuracy: float | None,
    x: Array,
    inputs: dict[int, Any],
    leaves: list[tuple[list[Any], ...]],
) -> Context:
    """Make a root context with values that were pickled, which makes arrays writable."""
    context = make_context(system.layout)
    store = context.store
    store.time, store.accuracy, store.x = time, accuracy, freeze(x)
    for slot, value in inputs.items():
        store.hold(slot, _frozen(value))
    for leaf, (parameters, abstract_parameters, discrete, abstract, records) in zip(
        store.leaves, leaves, strict=True
    ):
        leaf.parameters = [_frozen(value) for value in parameters]
        leaf.discrete = [_frozen(value) for value in discrete]
        leaf.abstract_parameters, leaf.abstract = abstract_parameters, abstract
        leaf.records = records
    store.unchecked.update(leaf.position for leaf in store.leaves if leaf.system.relations)
    return context


def _frozen(value: Any) -> Any:
    return freeze(value) if isinstance(value, np.ndarray) else value


def _wrap(root: System, store: Store, made: dict[System, Context]) -> Context:
    """Make the contexts of the diagrams around the contexts of the leaves, innermost first."""
    for system in reversed([*each_system(root)]):
        if system.children is not None:
            children = {child.name: made[child] for child in system.children}
            made[system] = DiagramContext(system, store, children)
    return made[root]


def _names_between(root: System, system: System) -> list[str]:
    """Names from ``root`` down to ``system``; empty when it is not below."""
    names: list[str] = []
    top: System | None = system
    while top is not None and top is not root:
        names.append(top.name)
        top = top.parent
    return names[::-1] if top is root else []
