"""The diagram builder: collects blocks and wires, checks each wire, and builds a diagram."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from flexure.diagrams.building.wires import Wires
from flexure.diagrams.checks.errors import (
    FlexureError,
    UnknownNameError,
    WiringError,
    call_site,
    quoted,
    suggestion,
)
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.ports import InputPort, OutputPort, Port
from flexure.diagrams.systems.system import System, way_to_a_system
from flexure.diagrams.values.arrays import check_name
from flexure.diagrams.values.handles import Located

if TYPE_CHECKING:
    import networkx as nx

_S = TypeVar("_S", bound=System)
_P = TypeVar("_P", bound=Port)
#: An output: a port handle, that of a joint's coordinates, or a name such as ``"plant.angle"``.
Output: TypeAlias = OutputPort | Located | str
#: An input: a port handle or a name such as ``"plant.torque"``.
Input: TypeAlias = InputPort | str
#: A link of a chain: a block, a port, or the name of either.
Link: TypeAlias = System | Port | Located | str


class DiagramBuilder:
    """Collects blocks and wires, and builds one diagram from them.

    Every call is checked at once. A refused call raises ``WiringError``, says at which line it was
    made, and leaves the builder as it was.

    Parameters
    ----------
    name : str
        Name of the diagram.

    See Also
    --------
    PlantBuilder : Build a mechanism.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("lag")
    >>> _ = builder.add(fx.Constant("one", 1.0))
    >>> _ = builder.add(fx.Integrator("integrator"))
    >>> builder.connect("one.y", "integrator.u")
    >>> builder.export_output("integrator.y", "y")
    >>> lag = builder.build()
    >>> lag.eval_time_derivatives(lag.create_default_context())
    array([1.])
    """

    #: What `build` makes; a builder of special diagrams overrides it.
    diagram_type: Callable[..., Diagram] = Diagram

    def __init__(self, name: str = "diagram") -> None:
        self.name = check_name(name, "a diagram", WiringError)
        self._wires: Wires | nx.DiGraph = Wires()
        self._systems: dict[str, System] = {}
        self._sites: dict[str, str] = {}
        self._exported_inputs: dict[str, tuple[InputPort, ...]] = {}
        self._exported_outputs: dict[str, OutputPort] = {}
        self._exported: set[InputPort] = set()
        self._built_at: str | None = None

    @property
    def systems(self) -> tuple[System, ...]:
        """The blocks added so far."""
        return tuple(self._systems.values())

    @property
    def graph(self) -> nx.DiGraph:
        """The wiring: ports as nodes (the handles themselves), wires as edges to input ports.

        This is the graph that the builder goes on working with, not a copy of it.
        """
        if isinstance(self._wires, Wires):
            self._wires = self._wires.as_networkx()
        return self._wires

    # Adding --------------------------------------------------------------------------------

    def add(self, system: _S) -> _S:
        """Add a block or a diagram and return it.

        Raises
        ------
        WiringError
            When it is no system, its name is taken, or it is in a diagram or builder already.
        """
        self._refuse_after_build()
        if not isinstance(system, System):
            raise WiringError(
                f"Cannot add {system!r} to '{self.name}'{_here()}",
                expected="a block or a diagram",
                found=type(system).__name__ if not isinstance(system, type) else "a class",
                remedy=way_to_a_system(system),
            )
        site = call_site()
        attempt = f"Cannot add '{system.name}' to '{self.name}' (at {site})"
        if system.claimed_by is not None:
            raise WiringError(
                attempt,
                expected="a system that is in no diagram yet",
                found=f"one that was added {system.claimed_by}",
                remedy="Make another instance",
            )
        if system.name in self._systems:
            raise WiringError(
                attempt,
                expected="a name that is not taken",
                found=f"a {type(self._systems[system.name]).__name__} '{system.name}', "
                f"added at {self._sites[system.name]}",
                remedy="Give one of them another name",
            )
        system._freeze()
        system.claimed_by = f"to '{self.name}' at {site}"
        self._systems[system.name] = system
        self._sites[system.name] = site
        self._wires.add_nodes_from(system.input_ports)
        self._wires.add_nodes_from(system.output_ports)
        return system

    def add_all(self, *systems: System) -> None:
        """Add several blocks; either all of them or, when one is refused, none."""
        added: list[System] = []
        try:
            added.extend(map(self.add, systems))
        except Exception:
            for system in added:
                del self._systems[system.name], self._sites[system.name]
                system.claimed_by = None
                self._wires.remove_nodes_from([*system.input_ports, *system.output_ports])
            raise

    # Wiring --------------------------------------------------------------------------------

    def connect(self, source: Output, target: Input) -> None:
        """Wire an output port to an input port.

        Parameters
        ----------
        source : OutputPort or str
            A port handle, or a name such as ``"plant.angle"``.
        target : InputPort or str
            A port handle, or a name such as ``"pid.measurement"``.

        Raises
        ------
        WiringError
            When a port is foreign or the target is fed already, or when kind or size differ.
        UnknownNameError
            When a name does not exist.
        """
        self._refuse_after_build()
        try:
            output, entry = self._output(source), self._input(target)
        except FlexureError:
            self._refuse_swapped(source, target)
            raise
        attempt = f"Cannot connect '{output.full_name}' to '{entry.full_name}'{_here()}"
        self._refuse_fed(entry, attempt)
        if output.size != entry.size:
            raise WiringError(attempt, expected=entry.kind, found=output.kind)
        self._wires.add_edge(output, entry)

    def connect_chain(self, *links: Link) -> None:
        """Wire blocks one after the other, as in ``connect_chain("error", "pid", "plant")``.

        A link is a block with one output, one of its input ports (which leaves no doubt where the
        chain enters), or, as the first link, an output port. A loop closes when the last link is
        an input port of an earlier block. Either all wires are made or none.

        Parameters
        ----------
        *links : System, InputPort, OutputPort or str
            At least two.

        Examples
        --------
        >>> import flexure as fx
        >>> builder = fx.DiagramBuilder("loop")
        >>> builder.add_all(
        ...     fx.Step("target"), fx.Sum("error", "+-"), fx.Gain("k", 4.0), fx.Integrator("plant")
        ... )
        >>> builder.connect_chain("target", "error.u1", "k", "plant", "error.u2")
        >>> builder.graph.number_of_edges()
        4
        """
        self._refuse_after_build()
        if len(links) < 2:
            raise WiringError(
                f"Cannot connect a chain in '{self.name}'{_here()}",
                expected="at least two links",
                found=f"{len(links)}",
            )
        made: list[tuple[OutputPort, InputPort]] = []
        try:
            for before, after in itertools.pairwise(links):
                output = self._leaving(before)
                entry = self._entering(after)
                self.connect(output, entry)
                made.append((output, entry))
        except Exception:
            self._wires.remove_edges_from(made)
            raise

    def export_input(self, *targets: Input, name: str | None = None) -> None:
        """Make an input port of the diagram that feeds ports of its blocks.

        Parameters
        ----------
        *targets : InputPort or str
            One or more ports of equal size.
        name : str, optional
            Name of the port of the diagram; the name of the first target when omitted. Parts
            may be separated by dots.
        """
        self._refuse_after_build()
        ports = tuple(self._input(target) for target in targets)
        if not ports:
            raise WiringError(
                f"Cannot export an input of '{self.name}'{_here()}",
                expected="at least one port",
                found="none",
            )
        name = ports[0].name if name is None else name
        attempt = (
            f"Cannot export {quoted(p.full_name for p in ports)} as input '{name}' of "
            f"'{self.name}'{_here()}"
        )
        self._check_export_name(name, attempt, ports)
        for k, port in enumerate(ports):
            self._refuse_fed(port, attempt)
            if port in ports[:k]:
                raise WiringError(
                    attempt, expected="different ports", found=f"'{port.full_name}' twice"
                )
            if port.size != ports[0].size:
                raise WiringError(
                    attempt, expected=ports[0].kind, found=f"{port.kind} at '{port.full_name}'"
                )
        self._exported_inputs[name] = ports
        self._exported.update(ports)

    def export_output(self, source: Output, name: str | None = None) -> None:
        """Make an output port of the diagram from a port of one of its blocks.

        Parameters
        ----------
        source : OutputPort or str
            The port.
        name : str, optional
            Name of the port of the diagram; the name of the source when omitted. Parts may be
            separated by dots.
        """
        self._refuse_after_build()
        port = self._output(source)
        name = port.name if name is None else name
        attempt = f"Cannot export '{port.full_name}' as output '{name}' of '{self.name}'{_here()}"
        self._check_export_name(name, attempt, (port,))
        self._exported_outputs[name] = port

    # Building ------------------------------------------------------------------------------

    def build(self) -> Diagram:
        """Build the diagram; the builder cannot be used afterwards.

        Raises
        ------
        WiringError
            When there are no blocks, or an input that must be fed is not.
        AlgebraicLoopError
            When an output needs itself at the same instant.
        """
        self._refuse_after_build()
        attempt = f"Cannot build '{self.name}'{_here()}"
        if not self._systems:
            raise WiringError(attempt, expected="at least one block", found="none")
        missing = [
            f"'{port.full_name}' ({port.kind}; block added at {self._sites[system.name]})"
            for system in self._systems.values()
            for port in system.input_ports
            if port.default is None and port not in self._exported and not self._wires.pred[port]
        ]
        if missing:
            shown = ", ".join(missing[:8])
            more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
            raise WiringError(
                attempt,
                expected="every input port without a default to be connected or exported",
                found=f"no wire to {shown}{more}",
                remedy="Call connect(output, input) or export_input(input) for each",
            )
        diagram = self.diagram_type(
            self.name,
            self.systems,
            {entry: output for output, entry in self._wires.edges},
            self._exported_inputs,
            self._exported_outputs,
        )
        for system in self.systems:
            system.parent = diagram
        try:
            _ = diagram.layout
        except Exception:
            for system in self.systems:
                system.parent = None
            raise
        self._built_at = call_site()
        return diagram

    def __repr__(self) -> str:
        wires = sum(1 for _ in self._wires.edges)
        return f"<DiagramBuilder '{self.name}', {len(self._systems)} blocks, {wires} wires>"

    # Helpers -------------------------------------------------------------------------------

    def _refuse_after_build(self) -> None:
        if self._built_at is not None:
            raise WiringError(
                f"Cannot change '{self.name}'{_here()}",
                expected="a builder that has not built yet",
                found=f"one that built its diagram at {self._built_at}",
                remedy="Start a new DiagramBuilder with new blocks; the diagram itself can be "
                "added to it",
            )

    def _refuse_swapped(self, source: object, target: object) -> None:
        """Refuse wires whose ends were given the wrong way round."""
        try:
            entry, output = self._input(source), self._output(target)
        except FlexureError:
            return
        raise WiringError(
            f"Cannot connect '{entry.full_name}' to '{output.full_name}'{_here()}",
            expected="an output port first, then an input port",
            found="an input port first, then an output port",
            remedy=f"Swap the ends: connect('{output.full_name}', '{entry.full_name}')",
        )

    def _refuse_fed(self, port: InputPort, attempt: str) -> None:
        """Refuse an input port that is fed already."""
        feeds = [output.full_name for output in self._wires.pred[port]]
        if port in self._exported:
            feeds = [
                f"exported input {name}"
                for name, ports in self._exported_inputs.items()
                if port in ports
            ]
        if feeds:
            raise WiringError(
                attempt,
                expected="an input port that nothing feeds yet",
                found=f"'{port.full_name}' fed by '{feeds[0]}'",
                remedy="Use a Sum to add signals",
            )

    def _check_export_name(self, name: object, attempt: str, ports: Sequence[Port]) -> None:
        for part in name.split(".") if isinstance(name, str) else [name]:
            check_name(part, f"an exported port of '{self.name}'{_here()}", WiringError)
        if name in self._exported_inputs or name in self._exported_outputs:
            raise WiringError(
                attempt,
                expected="a name that is not taken",
                found=f"an exported port '{name}'",
                remedy="Pass another name=",
            )
        block, _, rest = str(name).partition(".")
        inside = self._systems[block].named_port(rest) if block in self._systems else None
        if inside is not None and inside not in ports:
            raise WiringError(
                attempt,
                expected="a name that is not the path of another port",
                found=f"the path of another port, '{name}'",
                remedy="Pass another name=",
            )

    def _output(self, source: object) -> OutputPort:
        if isinstance(source, str):
            return self._by_name(source, OutputPort)
        return self._own(source, OutputPort)

    def _input(self, target: object) -> InputPort:
        if isinstance(target, str):
            return self._by_name(target, InputPort)
        return self._own(target, InputPort)

    def _own(self, port: object, kind: type[_P]) -> _P:
        """Check that an object is a port of the right kind of a block of this builder."""
        if isinstance(port, Located) and port.place.part is None:  # all coordinates of a joint
            port = port.place.handle
        if not isinstance(port, kind):
            hint = None
            if isinstance(port, System) and (ports := _ports_of(port, kind)):
                hint = f"Name the port, as in '{port.name}.{ports[0].name}'"
            raise WiringError(
                f"Cannot wire {port!r} in '{self.name}'{_here()}",
                expected=f"an {kind.what}",
                found=f"the {port.what} '{port.full_name}'"
                if isinstance(port, Port)
                else type(port).__name__,
                remedy=hint or "Wires go from an output port to an input port",
            )
        if self._systems.get(port.system.name) is not port.system:
            raise WiringError(
                f"Cannot wire '{port.full_name}' in '{self.name}'{_here()}",
                expected=f"a port of a block of this builder: {quoted(self._systems)}",
                found=f"a port of '{port.system.label}', which was not added here",
                remedy="Add the block first; use the exported ports of a nested diagram",
            )
        return port

    def _by_name(self, path: str, kind: type[_P]) -> _P:
        """Find a port by a name such as ``"plant.angle"``."""
        block, _, name = path.partition(".")
        if block not in self._systems:
            raise UnknownNameError(
                f"Cannot find {kind.what} '{path}' in '{self.name}'{_here()}",
                found=f"no block '{block}'",
                remedy=suggestion(block, self._systems),
            )
        port = self._systems[block].named_port(name)
        if isinstance(port, kind):
            return port
        ports = _ports_of(self._systems[block], kind)
        found = f"no {kind.what} '{name}' of '{block}'" if name else "the name of a block only"
        if port is not None:
            found += f", but an {port.what} of that name"
        raise UnknownNameError(
            f"Cannot find {kind.what} '{path}' in '{self.name}'{_here()}",
            found=found,
            remedy=suggestion(path, (f"{block}.{port.name}" for port in ports)),
        )

    def _leaving(self, link: Link) -> OutputPort:
        """Return the port at which a chain leaves a link."""
        if isinstance(link, str) and "." in link:
            block, _, name = link.partition(".")
            system = self._systems.get(block)
            if system is not None and isinstance(system.named_port(name), InputPort):
                link = system
            else:
                return self._output(link)
        if isinstance(link, (OutputPort, Located)):
            return self._output(link)
        system = self._block(link.system if isinstance(link, InputPort) else link)
        if len(system.output_ports) != 1:
            raise WiringError(
                f"Cannot continue a chain from '{system.name}' in '{self.name}'{_here()}",
                expected="a block with one output port",
                found=f"the output ports {quoted(p.full_name for p in system.output_ports)}",
                remedy="Start a new chain at one of these ports",
            )
        return system.output_ports[0]

    def _entering(self, link: Link) -> InputPort:
        """Return the port at which a chain enters a link."""
        if isinstance(link, Port) or (isinstance(link, str) and "." in link):
            return self._input(link)
        system = self._block(link)
        wanted = [port for port in system.input_ports if port.default is None]
        if len(wanted) != 1:
            raise WiringError(
                f"Cannot continue a chain into '{system.name}' in '{self.name}'{_here()}",
                expected="a block with one input port that must be fed",
                found=f"the input ports {quoted(p.full_name for p in system.input_ports)}",
                remedy="Name the port in the chain instead of the block",
            )
        return wanted[0]

    def _block(self, block: object) -> System:
        """Return a block of this builder, given itself or its name."""
        if not isinstance(block, (System, str)):
            raise WiringError(
                f"Cannot connect a chain in '{self.name}'{_here()}",
                expected="blocks, ports, and names of either",
                found=repr(block),
            )
        name = block if isinstance(block, str) else block.name
        found = self._systems.get(name)
        if found is None or block not in (name, found):
            raise UnknownNameError(
                f"Cannot find block '{name}' in '{self.name}'{_here()}",
                found=None if found is None else "another block of the same name",
                remedy=suggestion(name, self._systems),
            )
        return found


def _ports_of(system: System, kind: type[_P]) -> list[_P]:
    """Return the input ports or the output ports of a system."""
    return [port for port in (*system.input_ports, *system.output_ports) if isinstance(port, kind)]


def _here() -> str:
    """Name the line of the user's call, for messages."""
    return f" (at {call_site()})"
