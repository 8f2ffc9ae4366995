"""Systems: the common interface of blocks and diagrams, and the base class of every block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypeVar

import numpy as np

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError, suggestion
from flexure.diagrams.concurrency.threads import Lock
from flexure.diagrams.interface.completion import Completing
from flexure.diagrams.interface.html import Shown
from flexure.diagrams.systems.copying import reduced, refuse_copy
from flexure.diagrams.systems.ports import InputPort, OutputPort
from flexure.diagrams.values.arrays import Array, check_name
from flexure.diagrams.values.events import Event, EventKind, Forced
from flexure.diagrams.values.handles import Handle, HandleOwner, put_first, require_context

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context
    from flexure.diagrams.systems.diagram import Diagram
    from flexure.diagrams.systems.layout import Layout
    from flexure.diagrams.values.tables import Table

_H = TypeVar("_H", bound=Handle)
_LAYOUT_LOCK = Lock()


class MadeByBase:
    """An attribute that `System` or `LeafSystem` makes: it says when their constructor did not run.

    It stands in the class, where it is found only as long as an instance has nothing of the name.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        raise DeclarationError(
            f"Cannot use a {owner.__name__}",
            expected=f"super().__init__(name) as the first call in __init__ of {owner.__name__}",
            found=f"no such call before '{self._name}' was needed",
            remedy="Add it",
        )


class System(HandleOwner, Shown, Completing, ABC):
    """Base class of blocks and diagrams: ports, and methods that make contexts.

    A system is immutable once it is put to use (added to a builder, or asked for a context). It
    holds no values, so that one serves any number of contexts. ``copy.deepcopy`` and pickle make a
    separate one, together with the whole diagram in which it is.

    Attributes
    ----------
    name : str
        Name within the surrounding diagram.
    parent : Diagram or None
        The surrounding diagram.
    children : tuple of System or None
        The blocks of a diagram; None for a leaf.

    See Also
    --------
    LeafSystem : Write a block.
    DiagramBuilder : Wire blocks to a diagram.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=1.0)
    >>> isinstance(lag, fx.System), [port.name for port in lag.output_ports]
    (True, ['y'])
    """

    children: tuple[System, ...] | None = None
    _opens = True
    name: str
    parent: Diagram | None
    claimed_by: str | None
    _layout: Layout | None

    if not TYPE_CHECKING:
        name, parent, claimed_by, _layout = (MadeByBase() for _ in range(4))

    def __init__(self, name: str) -> None:
        put_first(self, "name", check_name(name, f"a {type(self).__name__}"))
        put_first(self, "parent", None)
        put_first(self, "claimed_by", None)
        put_first(self, "_layout", None)

    # Names ---------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """Path from the root diagram; empty for the root itself."""
        names: list[str] = []
        top = self
        while top.parent is not None:
            names.append(top.name)
            top = top.parent
        return ".".join(reversed(names))

    @property
    def label(self) -> str:
        """Path for messages; the root contributes its name."""
        return self.path or self.name

    @property
    @abstractmethod
    def input_ports(self) -> Sequence[InputPort]:
        """The input ports in the order of their declaration."""

    @property
    @abstractmethod
    def output_ports(self) -> Sequence[OutputPort]:
        """The output ports in the order of their declaration."""

    def input_port(self, name: str | int = 0) -> InputPort:
        """Return an input port by name or index."""
        return self._port(self.input_ports, name, "input port")

    def output_port(self, name: str | int = 0) -> OutputPort:
        """Return an output port by name or index."""
        return self._port(self.output_ports, name, "output port")

    @abstractmethod
    def named_port(self, name: str) -> InputPort | OutputPort | None:
        """Return the port of this system with a name, or None; there may be thousands."""

    def _port(self, ports: Sequence[_H], name: str | int, what: str) -> _H:
        for port in ports if isinstance(name, str) else ():
            if port.name == name:
                return port
        if isinstance(name, int) and -len(ports) <= name < len(ports):
            return ports[name]
        raise UnknownNameError(
            f"Cannot find {what} {name!r:.200} of '{self.label}'",
            remedy=suggestion(name, (port.name for port in ports)),
        )

    @abstractmethod
    def get_system(self, path: str) -> System:
        """Return the system at ``path`` below this one; the empty path is this system.

        Raises
        ------
        UnknownNameError
            When there is none; the text lists the valid names.
        """

    @abstractmethod
    def find(self, path: str, takes: Callable[[Any], bool] | None = None) -> Any:
        """Return the parameter, state, cache entry or port at ``path`` below this system.

        Parameters
        ----------
        path : str
            Names separated by dots.
        takes : callable, optional
            ``takes(handle) -> bool`` tells what to suggest when the path leads nowhere.

        Raises
        ------
        UnknownNameError
            When there is none; the text lists the valid names.
        """

    def find_output(self, path: str) -> OutputPort:
        """Return the output port at ``path`` below this system."""
        handle = self.find(path)
        if isinstance(handle, OutputPort):
            return handle
        raise UnknownNameError(
            f"Cannot use '{path}' of '{self.label}' as a signal",
            expected="an output port",
            found=f"the {handle.what} '{handle.full_name}'",
        )

    @property
    @abstractmethod
    def feedthrough(self) -> frozenset[tuple[str, str]]:
        """Pairs (input name, output name) in which the output needs the input at once."""

    # Tables --------------------------------------------------------------------------------

    def parameters(self, pattern: str | None = None) -> Table:
        """Return a table of the parameters of everything in this system.

        Parameters
        ----------
        pattern : str, optional
            Which: what is below a path, as in ``"door"``, or fits a pattern, as in
            ``"*.stiffness"``. All when omitted.

        Returns
        -------
        Table
            Its columns are path, default, unit, bounds and doc. Paths are counted from this system,
            as in its contexts, in sweeps and wherever else a parameter is named.

        Raises
        ------
        UnknownNameError
            When nothing is at the path.
        """
        from flexure.diagrams.contexts.inventory import parameters_of

        return parameters_of(self, pattern)

    def signals(self, pattern: str | None = None) -> Table:
        """Return a table of all signals that a result of this system contains.

        Parameters
        ----------
        pattern : str, optional
            Which, as for `parameters`; ``.where(kind="output")`` selects by kind.

        Returns
        -------
        Table
            Its columns are path, kind (output, state, discrete or input), size, unit and doc.
            Paths are counted from this system. A signal that a diagram exports has several.

        Raises
        ------
        UnknownNameError
            When nothing is at the path.
        """
        from flexure.diagrams.contexts.inventory import signals_of

        return signals_of(self, pattern)

    # Contexts ------------------------------------------------------------------------------

    @property
    def layout(self) -> Layout:
        """Places of all values in contexts of this system as a root; made when first needed."""
        from flexure.diagrams.systems.layout import Layout

        with _LAYOUT_LOCK:  # threads that make the first contexts at once share one layout
            if self._layout is None:
                self._freeze()
                self._layout = Layout(self)
        return self._layout

    @abstractmethod
    def _freeze(self) -> None:
        """Refuse further declarations from now on."""

    def create_default_context(self) -> Context:
        """Return a new root context with the default of every value."""
        from flexure.diagrams.contexts.context import make_context

        return make_context(self.layout)

    def create_random_context(self, rng: np.random.Generator) -> Context:
        """Return a new root context with values drawn from the declared distributions.

        Values without a declared distribution keep their defaults.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness; equal seeds give equal contexts.
        """
        context = self.create_default_context()
        for leaf in context.leaves():
            for handle in leaf.system.random_handles():
                handle.set(leaf, handle.distribution(rng))
        return context

    def load_context(self, path: str | Path) -> Context:
        """Return a new root context with the values that `Context.save` wrote.

        Raises
        ------
        ContextFileError
            When the file cannot be read, is of a system with another name or other values, or holds
            a value that is refused.
        """
        from flexure.diagrams.contexts import context_files

        return context_files.load(self, path)

    def context_from_dict(self, data: dict[str, Any]) -> Context:
        """Return a new root context with the values that `Context.to_dict` gave."""
        from flexure.diagrams.contexts import context_files

        return context_files.from_dict(self, data)

    def eval_time_derivatives(self, context: Context) -> Array:
        """Return the time derivative of the continuous state of everything in this system."""
        require_context(context, f"'{self.label}'")
        window = context.find(self)
        window.store.require_start()
        return window.store.time_derivatives()[window._span()]

    # Forced events -------------------------------------------------------------------------

    def forced_publish(self, context: Context) -> None:
        """Call every publish handler with the trigger `Forced`, in diagram order."""
        from flexure.diagrams.contexts.updates import run_publish

        for leaf, event in self._forced(context, "publish"):
            run_publish(leaf, event)

    def forced_discrete_update(self, context: Context) -> None:
        """Run every discrete update with the trigger `Forced`, all on the same values."""
        self._forced_update(context, "discrete")

    def forced_unrestricted_update(self, context: Context) -> None:
        """Run every unrestricted update with the trigger `Forced`, all on the same values."""
        self._forced_update(context, "unrestricted")

    def _forced(self, context: Context, kind: EventKind) -> list[tuple[Any, Event]]:
        require_context(context, f"'{self.label}'")
        return [
            (leaf, event)
            for leaf in context.find(self).leaves()
            for event in leaf.system.events
            if event.kind == kind and isinstance(event.trigger, Forced)
        ]

    def _forced_update(self, context: Context, kind: EventKind) -> None:
        from flexure.diagrams.contexts.updates import run_updates

        run_updates(self._forced(context, kind))

    def __copy__(self) -> NoReturn:
        remedy = "A system holds no values: make as many contexts of it as you need"
        refuse_copy(f"'{self.label}'", "all of its diagram", remedy)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return reduced(self)

    def __getstate__(self) -> Any:
        return {name: value for name, value in self.__dict__.items() if name != "_household"}

    def _completion_paths_(self) -> Iterator[str]:
        yield from self.parameters()["path"]
        yield from self.signals()["path"]

    def _pieces(self) -> Iterator[str]:
        from flexure.diagrams.contexts.notebook_tables import system_pieces

        return system_pieces(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.label}'>"


def each_system(system: System) -> Iterator[System]:
    """Go through a system and all that is in it, the outer ones first, in their order."""
    stack = [system]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(top.children or ()))


def check_path(path: object, system: System) -> None:
    """Refuse a path that is no text."""
    attempt = f"Cannot look into '{system.label}'"
    require(isinstance(path, str), path, attempt, "a path as text", error=UnknownNameError)


def require_system(system: object, attempt: str) -> None:
    """Refuse what is no block or diagram, with a text better than an AttributeError."""
    if not isinstance(system, System):
        raise DeclarationError(
            attempt,
            expected="a block or a diagram",
            found=repr(system),
            remedy=way_to_a_system(system),
        )


def way_to_a_system(thing: object) -> str | None:
    """Describe how to get a block or a diagram from what is none, if there is a way."""
    if isinstance(thing, type):
        return "Call the class to make a block"
    if hasattr(thing, "build"):
        return "Call build() first, and pass its result"
    return None
