"""Random calls of a builder, good and bad, against a model kept beside it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import event, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import flexure as fx
from flexure.diagrams.checks.errors import AlgebraicLoopError, UnknownNameError, WiringError
from tests.support.systems.blocks import Adder, Constant, Gain, Lag, Optional
from tests.support.tiers import by_tier


class Letter(fx.LeafSystem):
    """An abstract input and an abstract output."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        message = self.declare_abstract_input("message", default="none")
        self.declare_abstract_output("news", message, prerequisites=[message])


KINDS: dict[str, Callable[[str], fx.System]] = {
    "gain": Gain,
    "wide gain": lambda name: Gain(name, size=2),
    "adder": Adder,
    "lag": Lag,
    "optional": Optional,
    "constant": Constant,
    "letter": Letter,
    "nested": lambda name: nested_as(name, Gain("inside")),
}
NAMES = ["a", "b", "c", "d", "e"]
PORTS = ["u", "y", "u1", "u2", "v", "message", "news"]
EXPORTS = ["u", "y", "p", "q.r", "", "1"]


def nested_as(name: str, system: fx.System) -> fx.Diagram:
    """Wrap a block into a diagram of the given name."""
    builder = fx.DiagramBuilder(name)
    builder.add(system)
    builder.export_input(system.input_port())
    builder.export_output(system.output_port())
    return builder.build()


class BuilderCalls(RuleBasedStateMachine):
    """A builder and what it should hold: blocks by name, wires and exports by path."""

    def __init__(self) -> None:
        super().__init__()
        self.builder = fx.DiagramBuilder("model")
        self.blocks: dict[str, fx.System] = {}
        self.wires: dict[str, str] = {}
        self.exported_inputs: dict[str, tuple[str, ...]] = {}
        self.exported_outputs: dict[str, str] = {}
        self.spare = Gain("a")
        self.diagram: fx.Diagram | None = None
        self.graph: nx.DiGraph | None = None

    # What the model knows ----------------------------------------------------------------------

    @property
    def inputs(self) -> dict[str, fx.diagrams.InputPort]:
        return {f"{b}.{p.name}": p for b, s in self.blocks.items() for p in s.input_ports}

    @property
    def outputs(self) -> dict[str, fx.diagrams.OutputPort]:
        return {f"{b}.{p.name}": p for b, s in self.blocks.items() for p in s.output_ports}

    @property
    def fed(self) -> set[str]:
        return {*self.wires, *(port for ports in self.exported_inputs.values() for port in ports)}

    def can_connect(self, source: str, target: str, fed: set[str]) -> bool:
        return (
            source in self.outputs
            and target in self.inputs
            and target not in fed
            and self.outputs[source].size == self.inputs[target].size
        )

    def name_is_free(self, name: str) -> bool:
        return name in {"u", "y", "p", "q.r"} - {*self.exported_inputs, *self.exported_outputs}

    @property
    def has_loop(self) -> bool:
        graph = nx.DiGraph((source, target) for target, source in self.wires.items())
        for name, block in self.blocks.items():
            graph.add_edges_from((f"{name}.{u}", f"{name}.{y}") for u, y in block.feedthrough)
        return not nx.is_directed_acyclic_graph(graph)

    def attempt(self, call: Callable[[], Any], accepted: bool) -> bool:
        """Make a call and check that it is accepted or refused as the model says."""
        if accepted and self.diagram is None:
            call()
            return True
        with pytest.raises((WiringError, UnknownNameError), match=r"\(at [\w.]+\.py:\d+\)"):
            call()
        return False

    def pick(self, data: st.DataObject, ports: dict[str, Any]) -> tuple[str, Any]:
        """Draw a port, mostly one of those given, as its path and as handle or string."""
        wild = st.builds("{}.{}".format, st.sampled_from(NAMES), st.sampled_from(PORTS))
        known = bool(ports) and data.draw(st.integers(0, 4)) > 0
        path = data.draw(st.sampled_from(sorted(ports)) if known else wild)
        by_handle = path in ports and data.draw(st.booleans())
        return path, ports[path] if by_handle else path

    # Calls -------------------------------------------------------------------------------------

    @initialize(kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    def begin(self, kinds: list[str]) -> None:
        for kind, name in zip(kinds, NAMES, strict=False):
            self.blocks[name] = self.builder.add(KINDS[kind](name))

    @rule(kind=st.sampled_from(sorted(KINDS)), name=st.sampled_from(NAMES))
    def add(self, kind: str, name: str) -> None:
        block = KINDS[kind](name)
        if self.attempt(lambda: self.builder.add(block), name not in self.blocks):
            self.blocks[name] = block
        else:
            assert block.claimed_by is None

    @rule(
        kinds=st.lists(
            st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from(NAMES)), max_size=2
        )
    )
    def add_all(self, kinds: list[tuple[str, str]]) -> None:
        blocks = [KINDS[kind](name) for kind, name in kinds]
        names = [*self.blocks, *(name for _, name in kinds)]
        accepted = len(set(names)) == len(names)
        if not blocks:
            self.builder.add_all()
        elif self.attempt(lambda: self.builder.add_all(*blocks), accepted):
            self.blocks.update({block.name: block for block in blocks})
        else:
            assert all(block.claimed_by is None for block in blocks)

    @rule(data=st.data(), count=st.integers(1, 3))
    def connect_what_fits(self, data: st.DataObject, count: int) -> None:
        for _ in range(count):
            pairs = [
                (source, target)
                for source in self.outputs
                for target in self.inputs
                if self.can_connect(source, target, self.fed)
            ]
            if pairs:
                source, target = data.draw(st.sampled_from(pairs))
                if self.attempt(partial(self.builder.connect, source, target), accepted=True):
                    self.wires[target] = source

    @rule(data=st.data())
    def connect_anything(self, data: st.DataObject) -> None:
        source, given_source = self.pick(data, self.outputs)
        target, given_target = self.pick(data, self.inputs)
        accepted = self.can_connect(source, target, self.fed)
        if self.attempt(lambda: self.builder.connect(given_source, given_target), accepted):
            self.wires[target] = source

    @precondition(lambda self: self.graph is None)
    @rule()
    def look_at_the_graph(self) -> None:
        self.graph = self.builder.graph

    @rule(data=st.data())
    def misuse(self, data: st.DataObject) -> None:
        foreign: list[Any] = [self.spare.u, self.spare.y, self.spare, self.spare.k, Gain, None]
        thing = data.draw(st.sampled_from(foreign))
        again: list[Any] = [*self.blocks.values(), Gain, "a", None]
        calls: list[Callable[[], Any]] = [
            lambda: self.builder.connect(thing, next(iter(self.inputs), "a.u")),
            lambda: self.builder.connect(next(iter(self.outputs), "a.y"), thing),
            lambda: self.builder.export_input(thing),
            lambda: self.builder.export_output(thing),
            lambda: self.builder.connect_chain(*self.blocks, thing),
            lambda: self.builder.add(data.draw(st.sampled_from(again))),
        ]
        self.attempt(data.draw(st.sampled_from(calls)), accepted=False)

    @rule(data=st.data(), length=st.integers(1, 4))
    def connect_chain(self, data: st.DataObject, length: int) -> None:
        """Draw links among all names, of which the next one mostly fits."""
        names: list[str] = []
        for _ in range(length):
            fitting = [n for n in NAMES if self.wires_of_chain([*names, n]) is not None] or NAMES
            names.append(data.draw(st.sampled_from(fitting if data.draw(st.booleans()) else NAMES)))
        wires = self.wires_of_chain(names)
        accepted = wires is not None
        if self.attempt(lambda: self.builder.connect_chain(*names), accepted) and wires:
            self.wires.update(wires)

    def wires_of_chain(self, names: list[str]) -> dict[str, str] | None:
        """Return the wires of a chain of block names, or None when it must be refused."""
        wires: dict[str, str] = {}
        for before, after in itertools.pairwise(names):
            if before not in self.blocks or after not in self.blocks:
                return None
            outputs = self.blocks[before].output_ports
            inputs = [p for p in self.blocks[after].input_ports if p.default is None]
            if len(outputs) != 1 or len(inputs) != 1:
                return None
            source, target = f"{before}.{outputs[0].name}", f"{after}.{inputs[0].name}"
            if not self.can_connect(source, target, self.fed | set(wires)):
                return None
            wires[target] = source
        return wires if len(names) > 1 else None

    @rule(data=st.data(), count=st.integers(0, 3), name=st.sampled_from([None, *EXPORTS]))
    def export_input(self, data: st.DataObject, count: int, name: str | None) -> None:
        picked = [self.pick(data, self.inputs) for _ in range(count)]
        paths = tuple(path for path, _ in picked)
        given = [port for _, port in picked]
        known = [self.inputs[path] for path in paths if path in self.inputs]
        shown = name if name is not None or not known else known[0].name
        accepted = (
            0 < len(paths) == len(known) == len(set(paths))
            and not set(paths) & self.fed
            and len({port.size for port in known}) == 1
            and (self.name_is_free(shown or "") or (name is None and self.is_new(shown)))
        )
        if self.attempt(lambda: self.builder.export_input(*given, name=name), accepted):
            assert shown is not None
            self.exported_inputs[shown] = paths

    @rule(data=st.data(), name=st.sampled_from([None, *EXPORTS]))
    def export_output(self, data: st.DataObject, name: str | None) -> None:
        path, given = self.pick(data, self.outputs)
        shown = path.partition(".")[2] if name is None else name
        accepted = path in self.outputs and (
            self.is_new(shown) if name is None else self.name_is_free(shown)
        )
        if self.attempt(lambda: self.builder.export_output(given, name=name), accepted):
            self.exported_outputs[shown] = path

    def is_new(self, name: str | None) -> bool:
        return name not in {*self.exported_inputs, *self.exported_outputs}

    @property
    def missing(self) -> list[str]:
        """The inputs that keep the builder from building."""
        return [
            path
            for path, port in self.inputs.items()
            if port.default is None and path not in self.fed
        ]

    @precondition(lambda self: len(self.wires) > 1)
    @rule()
    def build(self) -> None:
        missing = self.missing
        if self.diagram is None and not missing and self.has_loop:
            event("a loop is refused")
            with pytest.raises(AlgebraicLoopError):
                self.builder.build()
            assert all(block.parent is None for block in self.blocks.values())
        elif self.attempt(self.build_now, accepted=not missing):
            event(f"a diagram with {len(self.wires)} wires is built")
            self.check_diagram()

    def teardown(self) -> None:
        """End every run with a complete builder, which builds or has a loop."""
        if self.diagram is None:
            for path in self.missing:
                self.builder.export_input(path, name=path)
                self.exported_inputs[path] = (path,)
            self.build()

    def build_now(self) -> None:
        self.diagram = self.builder.build()

    # What must hold ----------------------------------------------------------------------------

    @invariant()
    def builder_holds_what_the_model_holds(self) -> None:
        assert self.builder.systems == tuple(self.blocks.values())
        wiring = self.builder._wires if self.graph is None else self.graph
        assert set(wiring.nodes) == {*self.inputs.values(), *self.outputs.values()}
        assert set(wiring.edges) == {
            (self.outputs[source], self.inputs[target]) for target, source in self.wires.items()
        }
        assert self.spare.claimed_by is None

    def check_diagram(self) -> None:
        """Compare the finished diagram with the model."""
        diagram = self.diagram
        assert diagram is not None
        assert diagram.children == tuple(self.blocks.values())
        assert {
            target.full_name: source.full_name for target, source in diagram.wires.items()
        } == self.wires
        assert {
            port.name: tuple(target.full_name for target in port.targets)
            for port in diagram.input_ports
        } == self.exported_inputs
        assert {
            port.name: port.source.full_name for port in diagram.output_ports
        } == self.exported_outputs
        context = diagram.create_default_context()
        for port in diagram.input_ports:
            port.fix(context, "text" if port.size is None else np.ones(port.size))
        for path, output in self.outputs.items():
            value = output.eval(context)
            assert isinstance(value, str) if output.size is None else value.shape == (output.size,)
            for target in (t for t, s in self.wires.items() if s == path):
                assert self.inputs[target].eval(context) is value


TestBuilderCalls = BuilderCalls.TestCase
TestBuilderCalls.settings = settings(
    max_examples=by_tier(fast=60, full=250), stateful_step_count=30
)
