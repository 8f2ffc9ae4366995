"""The data from which a page draws a diagram."""

from __future__ import annotations

import json
from typing import Any

import flexure as fx
from flexure.diagrams.drawing.arrangement.content import content_of
from flexure.diagrams.drawing.formats.sheet import sheet_of
from flexure.solvers.pages.diagram_data import diagram_data
from tests.support.pages.drawings import Dynamic, Static, cell, diagram_of, rig, robot


def data_of(diagram: fx.Diagram) -> dict[str, Any]:
    data = diagram_data(diagram)
    assert data is not None
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    return data


def open_paths(data: dict[str, Any]) -> list[tuple[str, set[str]]]:
    path = [thing.get("path") for thing in data["things"]]
    return [(path[view["focus"]], {path[k] for k in view["open"]}) for view in data["views"]]


def port(data: dict[str, Any], block: str, name: str) -> dict[str, Any]:
    return next(
        thing
        for thing in data["things"]
        if thing["kind"] in ("input", "output")
        and thing["name"] == name
        and data["things"][thing["block"]]["path"] == block
    )


def test_each_diagram_has_a_drawing_and_blocks_unfold_in_every_combination() -> None:
    data = data_of(robot())
    assert open_paths(data) == [
        ("", set()),
        ("shoulder", set()),
        ("elbow", set()),
        ("", {"shoulder"}),
        ("", {"elbow"}),
        ("", {"shoulder", "elbow"}),
    ]


def test_what_is_inside_of_a_block_unfolds_after_the_block() -> None:
    for _, opened in open_paths(data_of(cell())):
        assert "robot" in opened or not any(path.startswith("robot.") for path in opened)


def test_drawings_are_those_of_the_static_pictures() -> None:
    data, diagram = data_of(rig()), rig()
    for k, depth in ((0, 1), (2, 2)):
        sheet = sheet_of(content_of(diagram, depth))
        view = data["views"][k]
        assert view["box"] == [sheet.left, sheet.top, sheet.width, sheet.height]
        assert len(view["shapes"]) == len(sheet.shapes)


def test_a_page_does_not_grow_with_the_number_of_combinations() -> None:
    servos = [
        diagram_of(f"d{k}", [Dynamic("x"), Static("s")], "x.y>s.u", {"u": "x.u"}, {"y": "s.y"})
        for k in range(40)
    ]
    data = data_of(diagram_of("many", servos, " ".join(f"d{k}.y>d{k + 1}.u" for k in range(39))))
    assert [opened for _, opened in open_paths(data)[:41]] == [set()] * 41
    assert 41 < len(data["views"]) < 60
    assert sum(len(view["shapes"]) for view in data["views"]) < 6000


def test_ports_tell_which_signal_has_their_value() -> None:
    data = data_of(rig())
    assert port(data, "pid", "measurement")["signal"] == "plant.angle"
    assert port(data, "plant.tree", "q")["signal"] == "plant.angle"  # its outermost name
    assert port(data, "plant.tree", "effort")["signal"] == "pid.y"
    setpoint = port(data, "pid", "setpoint")
    assert (setpoint["signal"], setpoint["free"]) == (None, "target")
    assert port(data, "pid", "feedforward")["free"] == "pid.feedforward"


def test_lines_of_others_know_their_ports() -> None:
    data = data_of(rig())
    (fold,) = (thing for thing in data["things"] if thing["name"] == "… 7 more outputs")
    names = [data["things"][k]["name"] for k in fold["ports"]]
    assert names == ["v", "pose", "rate", "energy", "power", "momentum", "center"]


def test_paths_count_from_the_diagram_that_is_shown() -> None:
    inner = rig()["plant"]
    assert isinstance(inner, fx.Diagram)
    data = data_of(inner)
    assert port(data, "tree", "q")["path"] == "tree.q"
    assert port(data, "", "angle")["path"] == "angle"
    assert port(data, "tree", "effort")["free"] == "motor"


def test_a_single_block_has_no_diagram() -> None:
    assert diagram_data(fx.FirstOrderLag("lag", 1.0)) is None


def test_every_mark_has_a_color_by_name() -> None:
    data = data_of(robot())
    for view in data["views"]:
        for _, kind, *look in view["shapes"]:
            names = [look[5]] if kind == "text" else [name for name in look[1:3] if name]
            assert set(names) <= set(data["colors"])
