"""Drawings: what they show, at which depth, and what each format says."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import flexure as fx
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.drawing.arrangement.content import (
    Content,
    content_of,
    label_of,
    role_of,
)
from flexure.diagrams.drawing.arrangement.picture import picture_of
from flexure.diagrams.drawing.formats.palette import INK, PAPER
from flexure.diagrams.drawing.formats.sheet import Path as PathMark, Text, bent_line, sheet_of
from flexure.diagrams.systems.diagram import ShownPorts
from tests.support.pages.drawings import (
    PICTURES,
    Dynamic,
    Sampled,
    Static,
    alone,
    cell,
    chain,
    diagram_of,
    logged_chain,
    loop,
    rig,
    robot,
    servo,
    swap,
)
from tests.support.tiers import for_each

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).resolve().parents[3]

# Contents ----------------------------------------------------------------------------------


def test_role_of_a_block() -> None:
    for block, role in [
        (Static("s", ""), "source"),
        (Static("s", "u", ""), "sink"),
        (Static("s"), "static"),
        (Dynamic("s"), "dynamic"),
        (Dynamic("s", ""), "source"),
        (Dynamic("s", "", ""), "dynamic"),
        (Sampled("s"), "sampled"),
        (servo(), "dynamic"),
        (diagram_of("d", [Sampled("s")], "", {"u": "s.u"}, {"y": "s.y"}), "sampled"),
        (diagram_of("d", [Static("s")], "", {"u": "s.u"}, {"y": "s.y"}), "static"),
    ]:
        assert role_of(block) == role


def test_only_a_lone_port_of_usual_name_goes_without_label() -> None:
    for block, labels in [
        (Static("k"), ["", ""]),
        (Static("k", "u1 u2"), ["u1", "u2", ""]),
        (Static("k", "y", "u"), ["y", "u"]),
        (Static("k", "u w", "y"), ["u", "w", ""]),
        (servo(), ["target", "load", "angle", "sensor.angle"]),
    ]:
        assert [label_of(port) for port in (*block.input_ports, *block.output_ports)] == labels


def names(content: Content, system: fx.System) -> list[str]:
    return [row.name for row in content.rows(system)]


def test_ports_of_a_block_that_no_wire_joins_are_folded() -> None:
    diagram = rig()
    plant = diagram["plant"]
    assert names(content_of(diagram), plant) == ["motor", "angle", "… 7 more outputs"]
    assert len(names(content_of(diagram, 1, "all"), plant)) == 9


def test_a_single_unused_port_is_shown_by_name() -> None:
    content = content_of(rig())
    assert names(content, content.diagram["pid"]) == ["setpoint", "measurement", "feedforward", "y"]


def test_where_no_port_of_a_side_is_used_the_line_says_not_more() -> None:
    content = content_of(alone())
    assert names(content, content.diagram.children[0]) == ["… 2 inputs"]


def test_exported_ports_of_the_drawn_diagram_are_used() -> None:
    plant = rig()["plant"]
    assert isinstance(plant, fx.Diagram)
    content = content_of(plant)
    assert len(names(content, plant)) == 9
    assert len(names(content, plant["tree"])) == 9


def test_wires_that_only_lead_to_unused_exported_ports_are_left_out_with_them() -> None:
    content = content_of(rig(), 2)
    plant = content.diagram["plant"]
    assert isinstance(plant, fx.Diagram)
    ends = {(source.full_name, target.full_name) for source, target in content.links(plant)}
    assert ends == {
        ("plant.motor", "plant.tree.effort"),
        ("plant.tree.q", "plant.angle"),
        ("plant.tree.energy", "plant.totals.u"),
    }
    assert names(content, plant) == ["motor", "angle", "… 7 more outputs"]


@for_each("ports", ["some", None, 1, ["used"]])
@for_each("name", ["plot", "to_svg", "to_dot", "to_mermaid"])
def test_impossible_choice_of_ports_is_refused(name: str, ports: object) -> None:
    with pytest.raises(DeclarationError, match=r"Cannot draw 'chain': expected ports to be one of"):
        getattr(chain(2), name)(ports=ports)


LINE = "… 7 more outputs"


@pytest.mark.parametrize("depth", [1, 2])
def test_every_format_folds_the_same_ports(depth: int) -> None:
    diagram = rig()
    folded, complete = content_of(diagram, depth), content_of(diagram, depth, "all")
    cases: list[tuple[Content, ShownPorts]] = [(folded, "used"), (complete, "all")]
    for content, ports in cases:
        wires = sum(len(content.links(opened)) for opened in content.opened)
        assert len(read_dot(diagram.to_dot(depth, ports))[1]) == wires
        assert len(read_mermaid(diagram.to_mermaid(depth, ports))[1]) == wires
        assert len(picture_of(content).wires) == wires
        for make in ("to_svg", "to_dot"):
            assert (LINE in getattr(diagram, make)(depth, ports)) == (ports == "used")
    assert (LINE in diagram.to_mermaid(depth)) == (depth == 2)  # closed blocks show no ports there


def test_svg_tells_which_ports_are_folded() -> None:
    titles = {element.text for element in ET.fromstring(rig().to_svg()).iter(f"{SVG}title")}
    assert "v, pose, rate, energy, power, momentum, center" in titles


def texts_of(diagram: fx.Diagram, depth: int = 1) -> list[str]:
    return [
        shape.text
        for shape in sheet_of(content_of(diagram, depth)).shapes
        if isinstance(shape, Text)
    ]


def test_legend_names_the_roles_of_larger_diagrams_only() -> None:
    roles = {"source", "dynamic", "static", "sink"}
    assert roles <= {*texts_of(loop())}
    assert roles.isdisjoint(texts_of(swap()))
    assert roles.isdisjoint(texts_of(chain()))


@pytest.mark.parametrize(
    ("make", "ports", "count"),
    [(alone, "all", 2), (alone, "used", 0), (loop, "used", 0), (robot, "used", 2), (rig, "all", 8)],
)
def test_ports_without_wire_are_open_circles(
    make: Callable[[], fx.Diagram], ports: ShownPorts, count: int
) -> None:
    shapes = sheet_of(content_of(make(), 1, ports)).shapes
    circles = [s for s in shapes if isinstance(s, PathMark) and (s.fill, s.stroke) == (PAPER, INK)]
    assert len(circles) == count


def test_bends_close_to_each_other_do_not_overlap() -> None:
    steps = bent_line([(0.0, 0.0), (10.0, 0.0), (10.0, 3.0), (20.0, 3.0)], 4.0)
    for coordinates in zip(*(point for _, points in steps for point in points), strict=True):
        assert list(coordinates) == sorted(coordinates)


def test_block_shows_its_class_and_a_closed_diagram_how_much_is_inside() -> None:
    assert {"path", "Static", "shoulder", "Diagram, 3 blocks"} <= {*texts_of(robot())}


# Depth -------------------------------------------------------------------------------------


def test_depth_opens_nested_diagrams_level_by_level() -> None:
    shown = [
        {b.system.path: b.inside is not None for b in picture_of(content_of(cell(), depth)).blocks}
        for depth in (1, 2, 3, 4)
    ]
    assert shown[0] == {"robot": False, "judge": False}
    assert shown[1] == {
        "robot": True,
        "judge": False,
        "robot.path": False,
        "robot.shoulder": False,
        "robot.elbow": False,
        "robot.arm": False,
    }
    assert shown[2]["robot.shoulder"]
    assert not shown[2]["robot.shoulder.pid"]
    assert shown[3] == shown[2]


def test_nested_diagram_can_be_drawn_on_its_own() -> None:
    whole = cell()
    inner = whole["robot.elbow"]
    assert isinstance(inner, fx.Diagram)
    assert inner.to_dot() == servo("elbow").to_dot()
    assert {block.system.name for block in picture_of(content_of(inner, 1)).blocks} == {
        "pid",
        "motor",
        "encoder",
    }


@for_each("depth", [0, -1, 1.5, "2", None, True])
@for_each("name", ["plot", "to_svg", "to_dot", "to_mermaid"])
def test_impossible_depth_is_refused(name: str, depth: object) -> None:
    with pytest.raises(DeclarationError, match=r"Cannot draw 'chain': expected a depth of 1"):
        getattr(chain(2), name)(depth=depth)


# Formats -----------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def svg_texts(text: str) -> set[str]:
    return {element.text or "" for element in ET.fromstring(text).iter(f"{SVG}text")}


def hostile() -> fx.Diagram:
    """A diagram whose class, block and port names use all that can be in such a name."""
    kind = type("Odd<\"&'`#;{|}>\\", (Static,), {})
    inner = diagram_of("graph", [kind("a[0]-b", "u[1]", "y[1]")], "", {"in.put": "a[0]-b.u[1]"})
    return diagram_of("end", [inner, kind("größe")], "", {"style": "graph.in.put"})


def test_svg_is_well_formed_and_shows_every_name() -> None:
    text = robot().to_svg(2)
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    left, top, width, height = map(float, root.get("viewBox", "").split())
    assert (root.get("width"), root.get("height")) == (f"{width:g}pt", f"{height:g}pt")
    names = {"robot", "path", "shoulder", "elbow", "arm", "pid", "motor", "encoder"}
    assert names | {"target", "setpoint", "measurement", "sensor.angle", "tip"} <= svg_texts(text)
    for path in root.iter(f"{SVG}path"):
        numbers = [float(n) for n in re.findall(r"-?[\d.]+", path.get("d", ""))]
        assert all(left <= x <= left + width for x in numbers[::2])
        assert all(top <= y <= top + height for y in numbers[1::2])


def test_svg_explains_blocks_and_wires_when_pointed_at() -> None:
    titles = {element.text for element in ET.fromstring(loop().to_svg()).iter(f"{SVG}title")}
    assert {"plant (Dynamic)", "plant.y → error.u2 (size 1)"} <= titles


def test_svg_draws_shared_pieces_of_wires_once() -> None:
    lines = [
        path.get("d")
        for path in ET.fromstring(logged_chain().to_svg()).iter(f"{SVG}path")
        if path.get("fill") == "none"
    ]
    assert len(lines) == len({*lines})


def test_svg_of_a_notebook_is_the_drawing_itself(tmp_path: Path) -> None:
    diagram = loop()
    shown = re.findall(r"<svg.*?</svg>", diagram._repr_html_() or "", re.DOTALL)[0]
    placed = r' (?:d|x|y|width|height|points)="([^"]*)"'  # colors are those around the drawing
    assert re.findall(placed, shown) == re.findall(placed, diagram.to_svg())
    assert svg_texts(shown) == svg_texts(diagram.to_svg())
    diagram.save_svg(tmp_path / "loop.svg")
    assert ET.parse(tmp_path / "loop.svg").getroot().tag == f"{SVG}svg"


def test_hostile_names_survive_in_svg() -> None:
    diagram = hostile()
    names = {"end", "größe", "a[0]-b", "Odd<\"&'`#;{|}>\\", "u[1]", "y[1]", "in.put", "style"}
    assert names <= svg_texts(diagram.to_svg(2))


STRING = r'"(?:[^"\\]|\\.)*"'


def read_dot(text: str) -> tuple[dict[str, ET.Element | None], list[tuple[str, str]], int]:
    """Read nodes (with their tables), edges and the number of clusters, and check the nesting."""
    nodes: dict[str, ET.Element | None] = {}
    edges: list[tuple[str, str]] = []
    level = clusters = 0
    for line in map(str.strip, text.splitlines()):
        if re.fullmatch(rf"(digraph|subgraph) {STRING} {{", line):
            level += 1
            clusters += line.startswith("subgraph")
        elif line == "}":
            level -= 1
        elif table := re.fullmatch(rf"({STRING}) \[label=<(<TABLE.*</TABLE>)>\];", line):
            nodes[table[1]] = ET.fromstring(table[2])
        elif tag := re.fullmatch(rf'({STRING}) \[shape="\w+", label={STRING}, .*\];', line):
            nodes[tag[1]] = None
        elif edge := re.fullmatch(
            rf"({STRING}(?::o\d+)?):e -> ({STRING}(?::i\d+)?):w;",
            line,
        ):
            edges.append((edge[1], edge[2]))
        else:
            assert re.fullmatch(r"(\w+( \[.*\]|=.*);)+", line), line
    assert level == 0
    return nodes, edges, clusters


@pytest.mark.parametrize(
    ("make", "depth", "clusters"),
    [(loop, 1, 0), (robot, 1, 0), (robot, 2, 2), (cell, 3, 3), (hostile, 2, 1), (hostile, 1, 0)],
)
def test_dot_declares_every_port_that_its_edges_use(
    make: Callable[[], fx.Diagram], depth: int, clusters: int
) -> None:
    diagram = make()
    nodes, edges, found = read_dot(diagram.to_dot(depth))
    assert found == clusters
    assert len(edges) == len(picture_of(content_of(diagram, depth)).wires)
    for end in itertools.chain.from_iterable(edges):
        match = re.fullmatch(rf"({STRING})(?::(\w+))?", end)
        assert match is not None
        table = nodes[match[1]]
        if table is None:
            assert match[2] is None
        else:
            assert match[2] in {cell.get("PORT") for cell in table.iter("TD")}


def test_dot_shows_names_classes_and_labels() -> None:
    nodes, edges, _ = read_dot(robot().to_dot())
    table = nodes['"arm"']
    assert table is not None
    assert {"arm", "Dynamic", "shoulder", "to_elbow"} <= {*table.itertext()}
    assert ('"path":o0', '"shoulder":i0') in edges
    assert ('"arm":o2', '":tip"') in edges


def test_hostile_names_survive_in_dot() -> None:
    nodes, _, _ = read_dot(hostile().to_dot(2))
    table = nodes['"graph.a[0]-b"']
    assert table is not None
    assert "Odd<\"&'`#;{|}>\\" in {*table.itertext()}
    assert '"graph:in.put"' in nodes


def read_mermaid(text: str) -> tuple[dict[str, str], list[tuple[str, str, str]], int]:
    """Read nodes (with their texts), edges (with theirs) and the number of subgraphs."""
    nodes: dict[str, str] = {}
    edges: list[tuple[str, str, str]] = []
    level = subgraphs = 0
    first, *lines = map(str.strip, text.splitlines())
    assert first == "flowchart LR"
    for line in lines:
        if node := re.fullmatch(r'(n\d+)\(?\["([^"]*)"\]\)?:::\w+', line):
            nodes[node[1]] = node[2]
        elif re.fullmatch(r'subgraph n\d+\["[^"]*"\]', line):
            level += 1
            subgraphs += 1
        elif line == "end":
            level -= 1
        elif edge := re.fullmatch(r'(n\d+) -->(?:\|"([^"]*)"\|)? (n\d+)', line):
            edges.append((edge[1], edge[3], edge[2] or ""))
        else:
            assert re.fullmatch(r"(classDef \w+ [\w#:,]+|class n\d+ frame)", line), line
        assert level >= 0
    assert level == 0
    return nodes, edges, subgraphs


@pytest.mark.parametrize(
    ("make", "depth", "subgraphs"),
    [(loop, 1, 0), (robot, 1, 0), (robot, 2, 2), (cell, 3, 3), (hostile, 2, 1)],
)
def test_mermaid_declares_every_node_that_its_edges_use(
    make: Callable[[], fx.Diagram], depth: int, subgraphs: int
) -> None:
    diagram = make()
    nodes, edges, found = read_mermaid(diagram.to_mermaid(depth))
    assert found == subgraphs
    assert len(edges) == len(picture_of(content_of(diagram, depth)).wires)
    assert {end for edge in edges for end in edge[:2]} <= {*nodes}


def test_mermaid_names_ports_on_the_wires() -> None:
    nodes, edges, _ = read_mermaid(loop().to_mermaid())
    names = {key: text.split("</b>")[0].removeprefix("<b>") for key, text in nodes.items()}
    readable = {(names[start], names[end], label) for start, end, label in edges}
    assert ("plant", "error", "→ u2") in readable
    assert ("error", "controller", "") in readable


def test_hostile_names_survive_in_mermaid() -> None:
    nodes, edges, _ = read_mermaid(hostile().to_mermaid(2))
    odd = "Odd#lt;#quot;#amp;'#96;#35;;{|}#gt;\\"
    assert f"<b>a[0]-b</b><br/><small>{odd}</small>" in nodes.values()
    assert "→ u[1]" in {label for _, _, label in edges}


@pytest.mark.full
@pytest.mark.parametrize("make", ["to_svg", "to_dot", "to_mermaid"])
def test_equal_diagrams_give_equal_texts(make: str) -> None:
    for build, depth in PICTURES.values():
        assert getattr(build(), make)(depth) == getattr(build(), make)(depth)


SCRIPT = """
import sys
import flexure as fx

class Block(fx.LeafSystem):
    def __init__(self, name):
        super().__init__(name)
        x = self.declare_discrete_state("x", [0.0])
        for k in range(3):
            self.declare_vector_input(f"u{k}", 1, default=[0.0])
            self.declare_vector_output(f"y{k}", 1, x, prerequisites=[x])

builder = fx.DiagramBuilder("texts")
builder.add_all(*(Block(f"b{k}") for k in range(9)))
for k in range(9):
    for j in range(3):
        builder.connect(f"b{(5 * k + 2 * j) % 9}.y{j}", f"b{k}.u{j}")
diagram = builder.build()
print(diagram.to_svg(), diagram.to_dot(), diagram.to_mermaid(), "matplotlib" in sys.modules)
"""


@pytest.mark.full
def test_texts_need_no_matplotlib_and_do_not_depend_on_the_run() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].endswith("False\n")


# Size --------------------------------------------------------------------------------------


def test_texts_of_thousands_of_blocks_are_complete() -> None:
    diagram = chain(3000)
    nodes, edges, _ = read_dot(diagram.to_dot())
    assert (len(nodes), len(edges)) == (3002, 3001)
    nodes_of_mermaid, edges_of_mermaid, _ = read_mermaid(diagram.to_mermaid())
    assert (len(nodes_of_mermaid), len(edges_of_mermaid)) == (3002, 3001)


def test_diagrams_nested_a_hundred_times_can_be_opened() -> None:
    diagram = diagram_of("d0", [Static("k")], "", {"u": "k.u"}, {"y": "k.y"})
    for level in range(1, 100):
        inside = diagram.name
        diagram = diagram_of(f"d{level}", [diagram], "", {"u": f"{inside}.u"}, {"y": f"{inside}.y"})
    assert read_dot(diagram.to_dot(100))[2] == 99
    assert read_mermaid(diagram.to_mermaid(100))[2] == 99
    assert len(picture_of(content_of(diagram, 100)).blocks) == 100


# Matplotlib --------------------------------------------------------------------------------


def test_plot_draws_all_marks_within_its_axes() -> None:
    diagram = robot()
    ax = diagram.plot(depth=2)
    assert len(ax.patches) == len(sheet_of(content_of(diagram, 2)).shapes)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    for patch in ax.patches:
        extent = patch.get_path().get_extents()
        assert left <= extent.x0 <= extent.x1 <= right
        assert top <= extent.y0 <= extent.y1 <= bottom
    ax.figure.canvas.draw()


def test_texts_of_a_plot_stay_inside_of_their_boxes() -> None:
    sheet = sheet_of(content_of(alone(), 1))
    patches = dict(zip(sheet.shapes, alone().plot().patches, strict=True))
    (block,) = picture_of(content_of(alone(), 1)).blocks
    for shape, patch in patches.items():
        if isinstance(shape, Text) and shape.text not in ("alone", "Diagram, 1 block"):
            extent = patch.get_path().get_extents()
            assert block.x < extent.x0 < extent.x1 < block.x + block.width
            assert block.y < extent.y0 < extent.y1 < block.y + block.height


def size_of(ax: Axes) -> tuple[float, float]:
    """Return the size of the figure of some axes, in inches."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    return width, height


def test_figure_grows_with_the_diagram_unless_axes_are_given() -> None:
    import matplotlib.pyplot as plt

    small, large, huge = (size_of(chain(count).plot()) for count in (3, 12, 200))
    assert large[0] > 3 * small[0]
    assert large[1] == small[1]
    assert huge[0] < 3 * huge[1]  # in rows
    figure, ax = plt.subplots(figsize=(4.0, 3.0))
    assert chain(12).plot(ax=ax) is ax
    assert tuple(figure.get_size_inches()) == (4.0, 3.0)


def test_dollar_signs_are_no_mathematics_in_a_plot() -> None:
    kind = type("Cost$\\nonsense$", (Static,), {})
    ax = diagram_of("money", [kind("k")]).plot()
    ax.figure.canvas.draw()
    assert len(ax.patches) == len(sheet_of(content_of(diagram_of("money", [kind("k")]))).shapes)
