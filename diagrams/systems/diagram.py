"""Diagrams: systems made of other systems and the wires between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from flexure.diagrams.checks.arguments import check_axes
from flexure.diagrams.checks.errors import UnknownNameError, suggestion
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.interface.completion import block_paths
from flexure.diagrams.systems.ports import (
    ExportedInputPort,
    ExportedOutputPort,
    InputPort,
    OutputPort,
)
from flexure.diagrams.systems.system import System, check_path
from flexure.diagrams.values.handles import Handle

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes

#: Which ports a drawing shows: those that something uses, or all.
ShownPorts: TypeAlias = Literal["used", "all"]


class Diagram(System):
    """A system of blocks and wires, made by `DiagramBuilder.build`.

    A diagram is a system like any other: it has the ports that were exported, it can be added to
    another builder, and its contexts hold the values of everything inside.

    Attributes
    ----------
    children : tuple of System
        The blocks in the order in which they were added.

    See Also
    --------
    DiagramBuilder : Build a diagram.
    LeafSystem : Write a block.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("charge")
    >>> builder.add_all(fx.Step("source", at=0.5), fx.FirstOrderLag("lag", time_constant=1.0))
    >>> builder.connect_chain("source", "lag")
    >>> charge = builder.build()
    >>> charge
    <Diagram 'charge'>
    >>> context = charge.create_default_context()
    >>> context.get("lag.time_constant")
    np.float64(1.0)
    """

    children: tuple[System, ...]

    def __init__(
        self,
        name: str,
        children: Sequence[System],
        wires: Mapping[InputPort, OutputPort],
        exported_inputs: Mapping[str, Sequence[InputPort]],
        exported_outputs: Mapping[str, OutputPort],
    ) -> None:
        super().__init__(name)
        self.children = tuple(children)
        self._by_name = {child.name: child for child in children}
        self._feeds: dict[InputPort, OutputPort | InputPort] = dict(wires)
        self._input_ports = [
            ExportedInputPort(self, port_name, index, targets)
            for index, (port_name, targets) in enumerate(exported_inputs.items())
        ]
        self._output_ports = [
            ExportedOutputPort(self, port_name, index, source)
            for index, (port_name, source) in enumerate(exported_outputs.items())
        ]
        self._named_ports: dict[str, ExportedInputPort | ExportedOutputPort] = {
            **{port.name: port for port in self._input_ports},
            **{port.name: port for port in self._output_ports},
        }
        for port in self._input_ports:
            self._feeds.update(dict.fromkeys(port.targets, port))
        self._feedthrough: frozenset[tuple[str, str]] | None = None

    @property
    def input_ports(self) -> Sequence[ExportedInputPort]:
        """The exported input ports."""
        return self._input_ports

    @property
    def output_ports(self) -> Sequence[ExportedOutputPort]:
        """The exported output ports."""
        return self._output_ports

    def named_port(self, name: str) -> ExportedInputPort | ExportedOutputPort | None:
        """Return the port of this diagram with a name, or None."""
        return self._named_ports.get(name)

    def feed_of(self, port: InputPort) -> OutputPort | InputPort | None:
        """Return what feeds an input of a block inside: an output, an exported input, or None."""
        return self._feeds.get(port)

    @property
    def wires(self) -> dict[InputPort, OutputPort]:
        """The wires between blocks, from each fed input port to the output port that feeds it."""
        return {port: feed for port, feed in self._feeds.items() if isinstance(feed, OutputPort)}

    def __getitem__(self, path: str) -> System:
        """Return the system at ``path`` below this diagram."""
        return self.get_system(path)

    def _ipython_key_completions_(self) -> list[str]:
        return block_paths(self)

    def get_system(self, path: str) -> System:
        """Return the system at ``path`` below this diagram; the empty path is the diagram."""
        system: System = self
        check_path(path, self)
        for name in path.split(".") if path else ():
            blocks = system._by_name if isinstance(system, Diagram) else {}
            if name not in blocks:
                raise UnknownNameError(
                    f"Cannot find block '{path}' in '{self.label}'",
                    found=f"no block '{name}' in '{system.label}'",
                    remedy=suggestion(name, blocks),
                )
            system = blocks[name]
        return system

    def find(self, path: str, takes: Callable[[Any], bool] | None = None) -> Any:
        """Return the parameter, state, cache entry or port at ``path`` below this diagram.

        Exported ports come first; their names may contain dots.
        """
        check_path(path, self)
        port = self.named_port(path)
        if port is not None:
            return port
        name, _, rest = path.partition(".")
        if name in self._by_name and rest:
            return self._by_name[name].find(rest, takes)
        ports = [
            port.name
            for port in (*self._output_ports, *self._input_ports)
            if not takes or takes(port)
        ]
        valid = [*ports, *(f"{block}." for block in self._by_name)]
        if name in self._by_name:
            found = f"a block '{name}', and no name of one of its items behind it"
            block = self._by_name[name]
            handles = block.handles if hasattr(block, "handles") else ()
            items = [handle.name for handle in handles if not takes or takes(handle)]
            valid = [f"{name}.{item}" for item in items] or valid
        else:
            found = f"no block or exported port '{name}'"
        raise UnknownNameError(
            f"Cannot find '{path}' in '{self.label}'", found=found, remedy=suggestion(path, valid)
        )

    def short_paths(self) -> dict[Handle, str]:
        """Return the paths in this diagram of items of its blocks that have shorter ones."""
        return {}

    def _freeze(self) -> None:
        """Do nothing: the blocks inside were frozen when they were added."""

    @property
    def periods(self) -> tuple[float, ...]:
        """The different periods of the periodic events of all blocks."""
        blocks: Iterable[Any] = self.children or ()
        return tuple(sorted({period for block in blocks for period in block.periods}))

    @property
    def feedthrough(self) -> frozenset[tuple[str, str]]:
        """Pairs (input name, output name) in which the output needs the input at once."""
        if self._feedthrough is None:
            layout = self.layout
            pairs = set()
            for port in self._output_ports:
                reached = layout.with_needs([layout.slot_of(port)])
                pairs |= {
                    (entry.name, port.name)
                    for entry in self._input_ports
                    if layout.held[entry] in reached
                }
            self._feedthrough = frozenset(pairs)
        return self._feedthrough

    # Graph and drawing ---------------------------------------------------------------------

    @property
    def graph(self) -> nx.DiGraph:
        """The wiring as a new networkx graph; see `flexure.diagrams.systems.graph`."""
        from flexure.diagrams.systems.graph import graph_of

        return graph_of(self)

    def plot(
        self,
        depth: int = 1,
        ax: Axes | None = None,
        path: str | Path | None = None,
        ports: ShownPorts = "used",
    ) -> Axes:
        """Draw the diagram with Matplotlib.

        Parameters
        ----------
        depth : int
            Levels of nested diagrams that are drawn opened.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure of fitting size when omitted.
        path : str or Path, optional
            Where to save the figure.
        ports : {"used", "all"}
            Whether two or more ports of a side that nothing uses are folded into one line, such as
            "… 23 more outputs". A port is used when a shown wire ends at it; exported ports of
            this diagram are.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from flexure.diagrams.drawing.formats.figure import plot
        from flexure.diagrams.drawing.formats.new_figures import saved

        check_axes(ax, f"Cannot draw '{self.label}'")
        return saved(plot(self, depth=depth, ax=ax, ports=ports), path)

    def to_svg(self, depth: int = 1, ports: ShownPorts = "used") -> str:
        """Return the drawing as SVG text; the options are those of `plot`."""
        from flexure.diagrams.drawing.formats.svg import to_svg

        return to_svg(self, depth=depth, ports=ports)

    def save_svg(self, path: str | Path, depth: int = 1, ports: ShownPorts = "used") -> None:
        """Write the drawing as an SVG file; the options are those of `plot`."""
        text = self.to_svg(depth, ports)
        with replacing(path) as file:
            file.write(text)

    def to_dot(self, depth: int = 1, ports: ShownPorts = "used") -> str:
        """Return the diagram in the language of Graphviz; the options are those of `plot`."""
        from flexure.diagrams.drawing.formats.dot import to_dot

        return to_dot(self, depth=depth, ports=ports)

    def to_mermaid(self, depth: int = 1, ports: ShownPorts = "used") -> str:
        """Return the diagram as a Mermaid flowchart; the options are those of `plot`."""
        from flexure.diagrams.drawing.formats.dot import to_mermaid

        return to_mermaid(self, depth=depth, ports=ports)
