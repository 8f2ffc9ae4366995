"""Random linear diagrams against a dense linear solve, and their loops against networkx."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import event, given, settings, strategies as st

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import AlgebraicLoopError
from tests.support.tiers import by_tier

#: A port of a block: number of the block, number of the port.
Place = tuple[int, int]


class Linear(fx.LeafSystem):
    """x' = A x + B u, y = k (C x + D u), with one scalar port for each entry of u and y."""

    def __init__(self, name: str, numbers: Numbers, declared: bool) -> None:
        super().__init__(name)
        self.numbers = numbers
        self.k = self.declare_numeric_parameter("k", 1.0)
        size = len(numbers.A)
        self.state = self.declare_continuous_state(z=size) if size else None
        self.u = [
            self.declare_vector_input(f"u{i}", 1, default=numbers.default[i])
            for i in range(numbers.D.shape[1])
        ]
        for j, row in enumerate(numbers.D):
            read = [self.u[i] for i in np.flatnonzero(row)]
            needs = read if self.state is None else [self.state, *read]
            self.declare_vector_output(
                f"y{j}", 1, Row(self, j), prerequisites=needs if declared else None
            )

    def calc_y(self, context: Any, j: int) -> Any:
        y: Any = 0.0
        if self.state is not None:
            y = y + self.numbers.C[j] @ self.state(context)
        for i in np.flatnonzero(self.numbers.D[j]):
            y = y + self.numbers.D[j, i] * self.u[i](context)
        return self.k(context) * y

    def calc_time_derivatives(self, context: Any) -> Any:
        u = scalars.array([u(context)[0] for u in self.u])
        assert self.state is not None
        return self.numbers.A @ self.state(context) + self.numbers.B @ u


@dataclass(frozen=True)
class Row:
    """The calculation of one output of a linear block."""

    block: Linear
    j: int

    def __call__(self, context: Any) -> Any:
        return self.block.calc_y(context, self.j)


@dataclass(frozen=True)
class Numbers:
    """The matrices of a linear block and the defaults of its inputs."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    default: np.ndarray


@dataclass(frozen=True)
class Plan:
    """A random diagram on paper.

    ``wires`` gives the output that feeds an input; inputs in ``open_inputs`` stay unconnected,
    all others come from outside. ``groups`` says in which nested diagram each block is.
    """

    blocks: Sequence[Numbers]
    wires: dict[Place, Place]
    open_inputs: frozenset[Place]
    groups: Sequence[tuple[str, ...]]
    declared: Sequence[bool]

    @property
    def inputs(self) -> list[Place]:
        return [(b, i) for b, block in enumerate(self.blocks) for i in range(block.D.shape[1])]

    @property
    def outputs(self) -> list[Place]:
        return [(b, j) for b, block in enumerate(self.blocks) for j in range(block.D.shape[0])]

    @property
    def exported_inputs(self) -> list[Place]:
        return [
            place
            for place in self.inputs
            if place not in self.wires and place not in self.open_inputs
        ]

    @property
    def dependence(self) -> nx.DiGraph:
        """Which port needs which other port at the same instant."""
        graph = nx.DiGraph()
        graph.add_nodes_from(("u", place) for place in self.inputs)
        graph.add_nodes_from(("y", place) for place in self.outputs)
        graph.add_edges_from((("y", source), ("u", to)) for to, source in self.wires.items())
        for b, block in enumerate(self.blocks):
            graph.add_edges_from((("u", (b, i)), ("y", (b, j))) for j, i in np.argwhere(block.D))
        return graph


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw a diagram of up to nine blocks; a good part of them has algebraic loops."""
    count = draw(st.sampled_from(range(1, 10)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    blocks = []
    for _ in range(count):
        states, inputs, outputs = (
            draw(st.sampled_from(sizes)) for sizes in ([0, 0, 1, 2], [0, 1, 2, 3], [0, 1, 1, 2, 3])
        )
        pattern = rng.random((outputs, inputs)) < 0.5
        blocks.append(
            Numbers(
                A=rng.uniform(-1, 1, (states, states)),
                B=rng.uniform(-1, 1, (states, inputs)),
                C=rng.uniform(-1, 1, (outputs, states)),
                D=np.where(pattern, rng.uniform(0.5, 1.5, (outputs, inputs)), 0.0),
                default=rng.uniform(-1, 1, inputs),
            )
        )
    plan = Plan(blocks, {}, frozenset(), [()] * count, [True] * count)
    forwards_only = draw(st.booleans())
    wires: dict[Place, Place] = {}
    open_inputs = set()
    for place in plan.inputs:
        sources = [
            source
            for source in plan.outputs
            if source[0] < place[0]
            or not forwards_only
            or not blocks[place[0]].D[:, place[1]].any()
            or not blocks[source[0]].D[source[1]].any()
        ]
        choice = draw(st.sampled_from(["wire"] * 4 + ["outside", "open"]))
        if choice == "wire" and sources:
            wires[place] = draw(st.sampled_from(sources))
        elif choice == "open":
            open_inputs.add(place)
    group = st.lists(st.sampled_from(["g", "h"]), max_size=3).map(tuple)
    return Plan(
        blocks,
        wires,
        frozenset(open_inputs),
        draw(st.lists(group, min_size=count, max_size=count)),
        draw(st.lists(st.booleans(), min_size=count, max_size=count)),
    )


# Building --------------------------------------------------------------------------------------


def build(plan: Plan, order: Iterable[int]) -> tuple[fx.Diagram, dict[int, Linear]]:
    """Build a plan as nested diagrams, adding the blocks in the given order."""
    blocks = {b: Linear(f"b{b}", plan.blocks[b], plan.declared[b]) for b in range(len(plan.blocks))}
    return assemble(plan, (), list(order), blocks), blocks


def assemble(
    plan: Plan, path: tuple[str, ...], order: list[int], blocks: dict[int, Linear]
) -> fx.Diagram:
    """Build the diagram at ``path``, which exports every port of its blocks that goes outside."""
    depth = len(path)
    members = [b for b in order if plan.groups[b][:depth] == path]
    builder = fx.DiagramBuilder("_".join(("root", *path)))
    child_of: dict[int, str] = {}
    for b in members:
        if len(plan.groups[b]) == depth:
            child_of[b] = builder.add(blocks[b]).name
    for name in dict.fromkeys(plan.groups[b][depth] for b in members if b not in child_of):
        inner = builder.add(assemble(plan, (*path, name), order, blocks))
        child_of |= {b: inner.name for b in members if plan.groups[b][depth:][:1] == (name,)}

    def port(letter: str, place: Place) -> str:
        b, k = place
        child = child_of[b]
        return f"{child}.{letter}{k}" if child == f"b{b}" else f"{child}.b{b}_{letter}{k}"

    for place in plan.inputs:
        if place[0] not in child_of or place in plan.open_inputs:
            continue
        source = plan.wires.get(place)
        if source is None or source[0] not in child_of:
            builder.export_input(port("u", place), name=f"b{place[0]}_u{place[1]}")
        elif child_of[place[0]] != child_of[source[0]] or child_of[place[0]] == f"b{place[0]}":
            builder.connect(port("y", source), port("u", place))
    for place in plan.outputs:
        if place[0] in child_of:
            builder.export_output(port("y", place), name=f"b{place[0]}_y{place[1]}")
    return builder.build()


# The second route ------------------------------------------------------------------------------


@dataclass
class Values:
    """What a context holds, kept beside it."""

    x: dict[int, np.ndarray]
    k: dict[int, float]
    u: dict[Place, float]

    @classmethod
    def default(cls, plan: Plan) -> Values:
        numbers = dict(enumerate(plan.blocks))
        return cls(
            x={b: np.zeros(len(block.A)) for b, block in numbers.items()},
            k=dict.fromkeys(numbers, 1.0),
            u={(b, i): float(numbers[b].default[i]) for b, i in plan.inputs},
        )


def solve(plan: Plan, values: Values) -> tuple[dict[Place, float], dict[int, np.ndarray]]:
    """Solve for all outputs at once and return them with the derivatives of every block."""
    row = {place: r for r, place in enumerate(plan.outputs)}
    matrix, right = np.eye(len(row)), np.zeros(len(row))
    for (b, j), r in row.items():
        block, k = plan.blocks[b], values.k[b]
        right[r] = k * block.C[j] @ values.x[b]
        for i, d in enumerate(block.D[j]):
            source = plan.wires.get((b, i))
            if source is None:
                right[r] += k * d * values.u[b, i]
            else:
                matrix[r, row[source]] -= k * d
    solved = np.linalg.solve(matrix, right)
    y = {place: float(solved[r]) for place, r in row.items()}
    derivatives = {}
    for b, block in enumerate(plan.blocks):
        u = [
            y[plan.wires[b, i]] if (b, i) in plan.wires else values.u[b, i]
            for i in range(block.D.shape[1])
        ]
        derivatives[b] = block.A @ values.x[b] + block.B @ np.array(u).reshape(-1)
    return y, derivatives


def check_everything(
    plan: Plan,
    values: Values,
    diagram: fx.Diagram,
    blocks: dict[int, Linear],
    context: fx.Context,
) -> None:
    """Compare every output and derivative with the dense solve."""
    y, derivatives = solve(plan, values)
    for (b, j), expected in y.items():
        for port in (blocks[b].output_port(j), diagram.output_port(f"b{b}_y{j}")):
            np.testing.assert_allclose(port.eval(context), [expected], rtol=1e-9, atol=1e-9)
    for b, derivative in derivatives.items():
        found = blocks[b].eval_time_derivatives(context)
        np.testing.assert_allclose(found, derivative, rtol=1e-9, atol=1e-9)


# Properties ------------------------------------------------------------------------------------


@settings(max_examples=by_tier(fast=60, full=300))
@given(plan=plans(), data=st.data())
def test_loops_are_refused_exactly_when_there_are_any(plan: Plan, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(plan.blocks))))
    graph = plan.dependence
    if nx.is_directed_acyclic_graph(graph):
        event("no loop")
        diagram, _ = build(plan, order)
        assert diagram.feedthrough == {
            (f"b{b}_u{i}", f"b{c}_y{j}")
            for b, i in plan.exported_inputs
            for c, j in plan.outputs
            if nx.has_path(graph, ("u", (b, i)), ("y", (c, j)))
        }
        return
    event("a loop")
    with pytest.raises(AlgebraicLoopError) as caught:
        build(plan, order)
    ports = [path.split(".")[-2:] for path in caught.value.loop]
    loop = [(port[0], (int(block[1:]), int(port[1:]))) for block, port in ports]
    assert len(set(loop)) == len(loop)
    for before, after in zip([loop[-1], *loop[:-1]], loop, strict=True):
        assert graph.has_edge(before, after)


@pytest.mark.full
@settings(max_examples=by_tier(fast=30, full=150))
@given(plan=plans(), data=st.data())
def test_values_follow_every_change_and_equal_the_dense_solve(
    plan: Plan, data: st.DataObject
) -> None:
    if not nx.is_directed_acyclic_graph(plan.dependence):
        plan = Plan(plan.blocks, {}, plan.open_inputs, plan.groups, plan.declared)
    diagram, blocks = build(plan, range(len(plan.blocks)))
    context, values = diagram.create_default_context(), Values.default(plan)
    for b, i in plan.exported_inputs:
        diagram.input_port(f"b{b}_u{i}").fix(context, values.u[b, i])
    check_everything(plan, values, diagram, blocks, context)
    number = st.floats(-2.0, 2.0)
    free = [place for place in plan.inputs if place not in plan.wires]
    for _ in range(data.draw(st.integers(1, 8))):
        b = data.draw(st.sampled_from(range(len(plan.blocks))))
        state = blocks[b].state
        kind = data.draw(st.sampled_from(["k", "x", "u", "motion", "clone"]))
        if kind == "k":
            values.k[b] = data.draw(number)
            blocks[b].k.set(context, values.k[b])
        elif kind == "x" and state is not None:
            values.x[b] = np.array([data.draw(number) for _ in range(state.size)])
            state.set(context, values.x[b])
        elif kind == "u" and free:
            b, i = place = data.draw(st.sampled_from(free))
            values.u[place] = data.draw(number)
            blocks[b].u[i].fix(context, values.u[place])
        elif kind == "motion":
            x = np.random.default_rng(b).uniform(-1, 1, context.continuous_state.size)
            context.store.set_motion(1.0, x)
            values.x = {c: context[blocks[c].path].continuous_state for c in blocks}
        else:
            context = context.clone()
        if data.draw(st.booleans()):
            check_everything(plan, values, diagram, blocks, context)
    check_everything(plan, values, diagram, blocks, context)


@settings(max_examples=by_tier(fast=12, full=50))
@given(plan=plans(), data=st.data())
def test_neither_the_order_of_adding_nor_the_nesting_changes_a_bit(
    plan: Plan, data: st.DataObject
) -> None:
    if not nx.is_directed_acyclic_graph(plan.dependence):
        plan = Plan(plan.blocks, {}, plan.open_inputs, plan.groups, plan.declared)
    count = len(plan.blocks)
    flat = Plan(plan.blocks, plan.wires, plan.open_inputs, [()] * count, plan.declared)
    found = []
    for each, order in (
        (plan, range(count)),
        (plan, data.draw(st.permutations(range(count)))),
        (flat, data.draw(st.permutations(range(count)))),
    ):
        diagram, blocks = build(each, order)
        context = diagram.create_default_context()
        rng = np.random.default_rng(0)
        for _, block in sorted(blocks.items()):
            block.k.set(context, rng.uniform(0.5, 1.5))
            if block.state is not None:
                block.state.set(context, rng.uniform(-1, 1, block.state.size))
        for b, i in plan.exported_inputs:
            diagram.input_port(f"b{b}_u{i}").fix(context, rng.uniform(-1, 1))
        outputs = [blocks[b].output_port(j).eval(context)[0] for b, j in plan.outputs]
        derivatives = [list(blocks[b].eval_time_derivatives(context)) for b in sorted(blocks)]
        found.append((outputs, derivatives))
    assert found[0] == found[1] == found[2]
