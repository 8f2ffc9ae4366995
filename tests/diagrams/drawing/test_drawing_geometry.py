"""Where the blocks, ports and wires of a drawing are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import networkx as nx
import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.drawing.arrangement.content import (
    Content,
    Fold,
    caption_of,
    content_of,
    label_of,
)
from flexure.diagrams.drawing.arrangement.crossings import (
    assign_layers,
    count_crossings,
    flow_order,
    reduce_crossings,
)
from flexure.diagrams.drawing.arrangement.geometry import Block, Picture, Tag, text_width
from flexure.diagrams.drawing.arrangement.heights import Tension, minimize_strain, strain_of
from flexure.diagrams.drawing.arrangement.node_columns import GRID, Node, NodeColumns
from flexure.diagrams.drawing.arrangement.picture import block_head, picture_of
from flexure.diagrams.drawing.arrangement.wire_channels import Point
from flexure.diagrams.systems.diagram import ShownPorts
from flexure.diagrams.systems.ports import Port
from tests.support.pages.drawings import (
    PICTURES,
    Dynamic,
    Static,
    alone,
    chain,
    diagram_of,
    logged_chain,
    loop,
    rig,
    robot,
    rows,
    servo,
)
from tests.support.tiers import by_tier, by_turn


@pytest.fixture(
    params=by_tier(
        fast=by_turn(PICTURES, last=("used", "all")),
        full=[*itertools.product(PICTURES, ("used", "all"))],
    ),
    ids="-".join,
    scope="module",
)
def content(request: pytest.FixtureRequest) -> Content:
    name, ports = request.param
    make, depth = PICTURES[name]
    return content_of(make(), depth, ports)


@pytest.fixture(scope="module")
def picture(content: Content) -> Picture:
    return picture_of(content)


def drawn(diagram: fx.Diagram, depth: int = 1, ports: ShownPorts = "used") -> Picture:
    return picture_of(content_of(diagram, depth, ports))


def block_named(picture: Picture, name: str) -> Block:
    return next(block for block in picture.blocks if block.system.name == name)


def points_of(picture: Picture, source: str, target: str) -> tuple[Point, ...]:
    return next(
        wire.points
        for wire in picture.wires
        if (wire.source.full_name, wire.target.full_name) == (source, target)
    )


def pieces(points: Sequence[Point]) -> Iterator[tuple[float, float, float, float]]:
    """Yield the pieces of a wire as (left, top, right, bottom)."""
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        yield min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)


def box(block: Block | Tag) -> tuple[float, float, float, float]:
    return block.x, block.y, block.x + block.width, block.y + block.height


def intrudes(one: Sequence[float], two: Sequence[float]) -> bool:
    """Return whether a box or a line reaches into the interior of a box."""
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


# Where things are --------------------------------------------------------------------------


@pytest.mark.full
def test_blocks_of_a_diagram_do_not_overlap(picture: Picture) -> None:
    boxes: list[tuple[fx.System | None, Sequence[float]]] = [
        (block.system.parent, box(block)) for block in picture.blocks
    ]
    boxes += [(tag.port.system, box(tag)) for tag in picture.tags]
    for (owner, one), (other, two) in itertools.combinations(boxes, 2):
        assert owner is not other or not intrudes(one, two)


def test_everything_is_inside_of_the_page_and_of_its_frame(picture: Picture) -> None:
    frames = {block.system: box(block) for block in picture.blocks if block.inside is not None}
    frames[picture.system] = (0.0, 0.0, picture.width, picture.height)
    for block in picture.blocks:
        assert block.system.parent is not None
        outer, inner = frames[block.system.parent], box(block)
        assert outer[0] <= inner[0] < inner[2] <= outer[2]
        assert outer[1] < inner[1] < inner[3] <= outer[3]
    for wire in picture.wires:
        assert all(0 <= x <= picture.width and 0 <= y <= picture.height for x, y in wire.points)


def test_ports_are_on_the_edges_of_their_blocks(content: Content, picture: Picture) -> None:
    for block in picture.blocks:
        left, top, right, bottom = box(block)
        sides = content.inputs(block.system), content.outputs(block.system)
        assert {block.ports[port][0] for port in sides[0]} <= {left}
        assert {block.ports[port][0] for port in sides[1]} <= {right}
        for side in sides:
            heights = [block.ports[port][1] for port in side]
            assert len({*heights}) == len(heights)
            assert all(top < y < bottom for y in heights)
            assert block.inside is not None or heights == sorted(heights)


def test_every_link_is_one_wire_from_port_to_port(content: Content, picture: Picture) -> None:
    opened = {block.system for block in picture.blocks if block.inside is not None}
    links = [
        link
        for diagram in (picture.system, *opened)
        for link in content.links(diagram)  # type: ignore[arg-type]
    ]
    assert {(wire.source, wire.target) for wire in picture.wires} == set(links)
    assert len(picture.wires) == len(links)
    ports = {port: point for block in picture.blocks for port, point in block.ports.items()}
    tags = {tag.port: tag for tag in picture.tags}
    for wire in picture.wires:
        inside = tags.get(wire.source)
        if inside is not None and wire.target.system.parent is wire.source.system:
            start = inside.x + inside.width, inside.y + inside.height / 2
        else:
            start = ports[wire.source]
        outlet = tags.get(wire.target)
        if outlet is not None and wire.source.system.parent is wire.target.system:
            end = outlet.x, outlet.y + outlet.height / 2
        else:
            end = ports[wire.target]
        assert (wire.points[0], wire.points[-1]) == (start, end)


def test_wires_leave_and_arrive_to_the_right_with_square_corners(picture: Picture) -> None:
    for wire in picture.wires:
        (x1, y1), (x2, y2) = wire.points[:2]
        assert x1 < x2
        assert y1 == y2
        (x1, y1), (x2, y2) = wire.points[-2:]
        assert x1 < x2
        assert y1 == y2
        for k, (one, two) in enumerate(itertools.pairwise(wire.points)):
            assert one[1 - k % 2] == two[1 - k % 2]
            assert one[k % 2] != two[k % 2]


def test_no_wire_runs_through_a_block(picture: Picture) -> None:
    for wire in picture.wires:
        source, target = wire.source.system, wire.target.system
        level = source if target.parent is source else source.parent
        for block in picture.blocks:
            if block.system.parent is level:
                assert not any(intrudes(piece, box(block)) for piece in pieces(wire.points))


def test_wires_from_different_ports_never_lie_on_each_other(picture: Picture) -> None:
    lines: dict[tuple[str, float], list[tuple[float, float, Port]]] = {}
    for wire in picture.wires:
        for left, top, right, bottom in pieces(wire.points):
            if left == right:
                lines.setdefault(("x", left), []).append((top, bottom, wire.source))
            else:
                lines.setdefault(("y", top), []).append((left, right, wire.source))
    for line in lines.values():
        for one, two in itertools.combinations(line, 2):
            assert one[2] is two[2] or one[1] < two[0] or two[1] < one[0]


def test_dots_mark_exactly_the_points_where_a_wire_branches(picture: Picture) -> None:
    for source in {wire.source for wire in picture.wires}:
        wires = [wire for wire in picture.wires if wire.source is source]
        found = [piece for wire in wires for piece in pieces(wire.points)]
        for x, y in {point for wire in wires for point in wire.points} | {*picture.dots[source]}:
            here = [p for p in found if p[0] <= x <= p[2] and p[1] <= y <= p[3]]
            directions = [
                any(p[0] < x for p in here),
                any(p[2] > x for p in here),
                any(p[1] < y for p in here),
                any(p[3] > y for p in here),
            ]
            assert (sum(directions) > 2) == ((x, y) in picture.dots[source])


def test_wires_that_lead_back_pass_below_both_of_their_blocks(content: Content) -> None:
    picture = picture_of(content, rows=False)
    blocks = {block.system: block for block in picture.blocks}
    for wire in picture.wires:
        if wire.goes_back:
            for port in (wire.source, wire.target):
                assert lies_below(wire.points, blocks[port.system])


def lies_below(points: Sequence[Point], block: Block) -> bool:
    """Return whether a wire passes the middle of a block below it, and not above it."""
    middle = block.x + block.width / 2
    heights = [top for left, top, right, _ in pieces(points) if left < middle < right]
    return bool(heights) and min(heights) > block.y + block.height


def test_feedback_passes_below_every_block_of_its_loop() -> None:
    # Above the motor there would be fewer crossings.
    blocks = [
        Dynamic("pid", "setpoint measurement", "u"),
        Dynamic("motor", "voltage load", "angle rate current"),
        Static("encoder"),
        Dynamic("filter"),
    ]
    wires = "pid.u>motor.voltage motor.angle>encoder.u encoder.y>filter.u filter.y>pid.measurement"
    inputs = {"target": "pid.setpoint", "load": "motor.load"}
    outputs = {"angle": "motor.angle", "current": "motor.current"}
    picture = drawn(diagram_of("servo", blocks, wires, inputs, outputs))
    points = points_of(picture, "filter.y", "pid.measurement")
    assert all(lies_below(points, block) for block in picture.blocks)


@pytest.mark.full
@pytest.mark.parametrize(
    ("source", "target"), [("s0.y", "s35.v"), ("s0.y", "log.u0"), ("s39.y", "s4.v")]
)
def test_wire_over_very_many_columns_takes_a_lane_below_everything(
    source: str, target: str
) -> None:
    picture = picture_of(content_of(logged_chain(), 1, "used"), rows=False)
    points = points_of(picture, source, target)
    assert len(points) == 6
    assert points[2][1] == points[3][1] > max(box(block)[3] for block in picture.blocks)


def test_only_the_wire_that_closes_a_loop_leads_back_and_goes_below_the_loop() -> None:
    picture = drawn(loop())
    back = [wire for wire in picture.wires if wire.goes_back]
    assert [(w.source.full_name, w.target.full_name) for w in back] == [("plant.y", "error.u2")]
    for name in ("error", "controller", "total", "plant"):
        assert lies_below(back[0].points, block_named(picture, name))


def test_a_long_chain_wraps_into_rows_that_are_read_like_a_text() -> None:
    picture = drawn(chain(60))
    assert 1.2 < picture.width / picture.height < 4.0
    blocks = [block_named(picture, f"s{k}") for k in range(60)]
    places = [(block.y, block.x) for block in blocks]
    assert places == sorted(places)
    assert len({block.y for block in blocks}) == 6
    for wires, back in ((drawn(rows()).wires, 3), (picture.wires, 0)):  # as without rows
        assert sum(wire.goes_back for wire in wires) == back


def test_the_main_line_of_a_loop_is_straight() -> None:
    picture = drawn(loop())
    line = ["target.y", "error.u1", "error.y", "controller.u", "controller.y", "total.u1"]
    line += ["total.y", "plant.u", "plant.y", "scope.u1"]
    for source, target in zip(line[::2], line[1::2], strict=True):
        assert len(points_of(picture, source, target)) == 2


def test_a_chain_is_one_row_from_left_to_right() -> None:
    picture = drawn(chain())
    assert [block.system.name for block in sorted(picture.blocks, key=lambda b: b.x)] == [
        f"s{k}" for k in range(12)
    ]
    assert len({block.y for block in picture.blocks}) == 1
    entry, outlet = picture.tags
    assert entry.x == 0.0
    assert outlet.x + outlet.width == picture.width


def test_blocks_are_sorted_so_that_wires_need_not_cross() -> None:
    blocks = [Static("a", ""), Static("b", ""), Static("c"), Static("d")]
    picture = drawn(diagram_of("crosswise", blocks, "a.y>d.u b.y>c.u"))
    assert all(len(wire.points) == 2 for wire in picture.wires)


def test_feedback_of_an_inner_loop_stays_inside_of_the_outer_one() -> None:
    blocks = [Static("outer", "u1 u2"), Static("inner", "u1 u2"), Dynamic("rate"), Dynamic("angle")]
    wires = "outer.y>inner.u1 inner.y>rate.u rate.y>angle.u rate.y>inner.u2 angle.y>outer.u2"
    picture = drawn(diagram_of("cascade", blocks, wires))
    inner = max(y for _, y in points_of(picture, "rate.y", "inner.u2"))
    outer = max(y for _, y in points_of(picture, "angle.y", "outer.u2"))
    assert inner < outer


def columns_of(layers: Sequence[int], wires: Iterable[tuple[int, int]]) -> NodeColumns:
    """Put small blocks into layers, and wire them."""
    blocks = [Static(f"b{k}") for k in range(len(layers))]
    nodes = [
        Node(layer, height=2 * GRID, offsets={block.input_ports[0]: GRID, block.output_ports[0]: 0})
        for layer, block in zip(layers, blocks, strict=True)
    ]
    links = [(blocks[i].output_ports[0], blocks[j].input_ports[0]) for i, j in wires]
    return NodeColumns(nodes, links)


@pytest.mark.parametrize("seed", range(10))
def test_sorting_never_adds_crossings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layers = np.sort(rng.integers(0, 5, 30))
    wires = [(int(rng.integers(30)), target) for target in range(30) for _ in range(2)]
    columns = columns_of(layers.tolist(), wires)
    counts = [count_crossings(columns)]
    for _ in range(4):
        reduce_crossings(columns)
        counts.append(count_crossings(columns))
        for column in columns:
            assert [node.place for node in column] == list(range(len(column)))
    assert counts == sorted(counts, reverse=True)
    assert counts[1] < counts[0]


def test_number_of_nodes_does_not_grow_with_the_square_of_a_diagram() -> None:
    numbers = [
        sum(map(len, columns_of(range(size), [(k, size - 1) for k in range(size - 1)])))
        for size in (100, 200, 300)
    ]
    assert numbers[2] - numbers[1] == numbers[1] - numbers[0]


def test_signals_flow_in_reading_order() -> None:
    for edges, order in [
        ([(0, 1), (1, 2)], [0, 1, 2]),
        ([(2, 1), (1, 0)], [2, 1, 0]),
        ([(0, 1), (1, 0)], [0, 1]),  # no entry: the first block begins
        ([(2, 1), (1, 0), (0, 1)], [2, 1, 0]),  # entered where the reference comes in
        ([(0, 1), (1, 2), (2, 3), (3, 1), (3, 4), (4, 0)], [0, 1, 2, 3, 4]),  # nested loops
        ([(0, 0), (0, 1)], [0, 1]),
    ]:
        assert flow_order(nx.DiGraph(edges)) == order


def test_a_source_stands_beside_what_it_feeds() -> None:
    layers = assign_layers(nx.DiGraph([(0, 1), (1, 2), (2, 3), (4, 3), (5, 6), (6, 3)]))
    assert layers == {0: 0, 1: 1, 2: 2, 3: 3, 4: 2, 5: 1, 6: 2}


@pytest.mark.parametrize("seed", range(10))
def test_heights_have_the_least_strain_of_all_possible_heights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ports = Static("ports", " ".join(f"u{k}" for k in range(4))).input_ports
    nodes = [Node(k // 2, height=GRID, margin=GRID // 2, offsets={ports[k]: 0}) for k in range(4)]
    columns = NodeColumns(nodes, [])
    for node in nodes:
        node.y = 2 * GRID * node.place
    tensions = [
        Tension(one, two, int(rng.integers(-4, 5)) * GRID, int(rng.integers(1, 20)))
        for one, two in itertools.combinations(nodes, 2)
    ]
    minimize_strain(columns, tensions)
    found = strain_of(tensions)
    assert nodes[1].y - nodes[0].y >= 2 * GRID
    assert nodes[3].y - nodes[2].y >= 2 * GRID

    least = found
    for places in itertools.product(range(-9, 10), repeat=3):
        for node, place in zip(nodes[1:], places, strict=True):
            node.y = nodes[0].y + GRID * place
        if nodes[1].y - nodes[0].y >= 2 * GRID and nodes[3].y - nodes[2].y >= 2 * GRID:
            least = min(least, strain_of(tensions))
    assert found == least


# Texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bold", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "il.,'|",
        "WMm@%&",
        "proportional_gain",
        "DISCRETE_TIME",
        "0123456789",
        "Größe_[3]-x",
        "a",
        "f" * 60,
        "rstk" * 10,
    ],
)
def test_estimated_width_bounds_the_width_in_a_real_font(text: str, bold: bool) -> None:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    real = TextPath((0, 0), text, size=10.0, prop=font).get_extents().width
    assert real <= text_width(text, 10.0, bold=bold) <= 1.5 * real + 5.0


def test_wide_and_combining_characters_are_counted_as_such() -> None:
    assert text_width("角度", 10.0) > text_width("ab", 10.0)
    assert text_width("e\N{COMBINING ACUTE ACCENT}", 10.0) == text_width("e", 10.0)


@pytest.mark.parametrize("ports", ["used", "all"])
@pytest.mark.parametrize("make", [alone, robot, servo, rig])
def test_names_and_labels_fit_into_their_block_beside_or_below_each_other(
    make: Callable[[], fx.Diagram], ports: ShownPorts
) -> None:
    content = content_of(make(), 1, ports)
    for block in picture_of(content).blocks:
        system = block.system
        middle = max(text_width(system.name, 10.0, bold=True), text_width(caption_of(system), 8.0))
        sides = [
            max((text_width(label_of(port), 8.0) for port in rows), default=0.0)
            for rows in (content.inputs(system), content.outputs(system))
        ]
        head = block_head(system, content)
        assert max(sum(sides), middle) < block.width if head else sum(sides) + middle < block.width
        assert all(y - 8.0 >= block.y + head for _, y in block.ports.values())


def test_unused_ports_are_one_line_below_the_others() -> None:
    picture = drawn(rig(), 2)
    tree, frame = block_named(picture, "tree"), block_named(picture, "plant")
    names = [row.name for row in tree.ports]
    assert names == ["effort", "q", "energy", "… 6 more outputs"]
    assert {row.name for row in frame.ports} == {"motor", "angle", "… 7 more outputs"}
    (line,) = (tag for tag in picture.tags if isinstance(tag.port, Fold))
    (angle,) = (tag for tag in picture.tags if tag.port.name == "angle")
    assert line.y > angle.y


def test_a_plant_with_many_outputs_does_not_dwarf_its_loop() -> None:
    small, large = drawn(rig()), drawn(rig(), 1, "all")
    controller, plant = block_named(small, "pid"), block_named(small, "plant")
    assert plant.height <= controller.height
    assert block_named(large, "plant").height > 2 * controller.height


def test_frame_is_wide_enough_for_the_name_of_its_diagram() -> None:
    name = "a_diagram_with_a_very_long_name_around_a_tiny_block"
    outer = diagram_of("outer", [diagram_of(name, [Static("k")], "", {"u": "k.u"}, {"y": "k.y"})])
    frame = block_named(drawn(outer, 2, "all"), name)
    assert frame.width > text_width(name, 10.0, bold=True)
    assert frame.ports[frame.system.output_ports[0]][0] == frame.x + frame.width
