"""The house style of pictures: labels of axes, legends, and titles that are refused."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_hex

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.drawing.formats.style import (
    COLORS,
    LIGHT,
    check_title,
    name_axis,
    style_of,
    write_legend,
)


@pytest.mark.parametrize(
    ("name", "unit", "label"),
    [
        ("pid.u", "N m", "pid.u [N m]"),
        ("pid.u", "", "pid.u"),
        ("", "rad", "[rad]"),
        ("", "", ""),
        ("door.hinge.generalized_force", "N m", "door.hinge.\ngeneralized_force [N m]"),
        ("door.hinge.stored_energy", "J", "door.hinge.stored_energy\n[J]"),
        ("door.center_of_mass_velocity", "m/s", "door.\ncenter_of_mass_velocity\n[m/s]"),
    ],
)
def test_long_paths_are_broken_at_their_dots(name: str, unit: str, label: str) -> None:
    ax = plt.figure().subplots()
    name_axis(ax.yaxis, name, unit)
    assert ax.get_ylabel() == label


def test_a_legend_tells_several_curves_apart_above_the_axes() -> None:
    ax = plt.figure().subplots()
    ax.plot([0.0, 1.0], label="one", **style_of(0))
    assert write_legend(ax, ["one"]) == 0
    ax.plot([0.0, 2.0], label="two", **style_of(6))
    assert write_legend(ax, ["one", "two"]) == 1
    legend = ax.get_legend()
    assert legend is not None
    assert legend.get_window_extent().y0 >= ax.get_window_extent().y1
    first, second = ax.lines
    assert first.get_color() == second.get_color()
    assert first.get_linestyle() != second.get_linestyle()


def test_titles_that_cannot_be_drawn_are_refused() -> None:
    check_title(None, "")
    check_title("swing", "")
    for wrong in (3, "\ud800"):
        with pytest.raises(ValueRefusedError, match="title to be a text"):
            check_title(wrong, "Cannot plot")


def test_pictures_of_ones_own_have_the_house_style_on_request() -> None:
    with plt.style.context("flexure.pictures"):
        own = plt.figure().subplots()
        lines = [own.plot([0.0, 1.0])[0] for _ in range(len(COLORS) + 1)]
        grid = own.xaxis.get_gridlines()[0]
        assert own.spines["left"].get_visible()
        assert not own.spines["top"].get_visible()
        assert to_hex(grid.get_color()) == LIGHT
    for number, line in enumerate(lines):
        wanted = style_of(number)
        found = [to_hex(line.get_color()), line.get_linestyle(), line.get_linewidth()]
        assert found == [wanted["color"], wanted["linestyle"], wanted["linewidth"]]
