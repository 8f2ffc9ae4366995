"""Animations frame the whole motion, move as the poses do, and become files and pages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageSequence

import flexure as fx


def pendulum() -> tuple[fx.Plant, fx.results.SimulationResult]:
    """A rod that falls from the horizontal."""
    builder = fx.PlantBuilder("pendulum")
    rod = fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.1, 1.0))
    body = builder.add_body("rod", rod, com=(0.0, 0.0, -0.5))
    builder.add_frame("tip", body, (0.0, 0.0, -1.0))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, body, axis=(0, 1, 0)))
    builder.add_force_element(
        fx.LinearSpringDamper(
            "spring", builder.world, (0, 0, 1), body, (0, 0, -0.5), free_length=1.0,
            stiffness=2.0, damping=0.1,
        )
    )  # fmt: skip
    plant = builder.build()
    context = plant.create_default_context()
    axis.angle.set(context, np.pi / 2)
    return plant, fx.simulate(plant, 1.0, context=context)


def figure_of(animation: Any) -> Any:
    """The figure, which pyplot does not know where there are no windows."""
    return animation._fig


@pytest.fixture(scope="module")
def fallen() -> tuple[fx.Plant, fx.results.SimulationResult]:
    return pendulum()


def test_the_camera_frames_the_whole_motion(
    fallen: tuple[fx.Plant, fx.results.SimulationResult],
) -> None:
    _, result = fallen
    animation = fx.animate(result, fps=10)
    ax = figure_of(animation).axes[0]
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    corners = [(x, -1.0) for x in (-0.05, 0.05)]
    for angle in result.sample("axis.angle", np.linspace(0.0, 1.0, 11)):
        for x, z in corners:  # a positive angle about y turns z to x
            place = (x * np.cos(angle) + z * np.sin(angle), z * np.cos(angle) - x * np.sin(angle))
            assert left < place[0] < right
            assert bottom < place[1] < top
    assert right - left < 3.0  # and not much more than that
    assert animation._repr_html_()


def test_short_motions_have_times_that_differ(
    fallen: tuple[fx.Plant, fx.results.SimulationResult],
) -> None:
    plant, _ = fallen
    animation = fx.animate(fx.simulate(plant, 1e-4), fps=10000, title="falling")
    assert figure_of(animation).axes[0].get_title(loc="left") == "falling, t = 0.00000 s"
    assert "falling, t = 0.00010 s" in animation._repr_html_()


@pytest.mark.full
def test_an_animation_is_saved_as_pictures_that_move(
    fallen: tuple[fx.Plant, fx.results.SimulationResult], tmp_path: Path
) -> None:
    plant, result = fallen
    fx.animate(result, path=tmp_path / "arm.gif", fps=5, forces=True, trace=plant.frame("tip"))
    with Image.open(tmp_path / "arm.gif") as pictures:
        frames = [np.array(each.convert("L")) for each in ImageSequence.Iterator(pictures)]
    assert len(frames) == 6
    assert np.sum(frames[0] != frames[-1]) > 100
    (tmp_path / "frames").mkdir()
    fx.animate(result, path=tmp_path / "frames", fps=2, title="falls")
    assert sorted(file.name for file in (tmp_path / "frames").iterdir()) == [
        "0000.png",
        "0001.png",
        "0002.png",
    ]
    fx.animate(result, path=tmp_path / "door_{:02d}.png", fps=1)
    assert (tmp_path / "door_01.png").read_bytes().startswith(b"\x89PNG")


def test_the_plant_is_found_inside_of_a_diagram(tmp_path: Path) -> None:
    outer = fx.DiagramBuilder("outer")
    outer.add(pendulum()[0])
    result = fx.simulate(outer.build(), 0.2)
    fx.animate(result, path=tmp_path / "outer.html", fps=10)
    assert (tmp_path / "outer.html").exists()


def test_a_film_needs_ffmpeg_and_says_so(
    fallen: tuple[fx.Plant, fx.results.SimulationResult],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(fx.errors.MissingExtraError, match=r"ffmpeg; found none.*\.gif or \.html"):
        fx.animate(fallen[1], path=tmp_path / "film.mp4", fps=2)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for ffmpeg is a shell script")
def test_a_film_gets_all_its_pictures(
    fallen: tuple[fx.Plant, fx.results.SimulationResult],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text('#!/bin/sh\nfor last; do :; done\ncat > "$last"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    fx.animate(fallen[1], path=tmp_path / "film.mp4", fps=2)
    pixels = (tmp_path / "film.mp4").stat().st_size / 4 / 3  # of each of three pictures
    assert pixels == int(pixels)
    assert pixels > 10_000


def test_what_cannot_be_animated_is_refused(
    fallen: tuple[fx.Plant, fx.results.SimulationResult], tmp_path: Path
) -> None:
    _, result = fallen
    with pytest.raises(fx.errors.DeclarationError, match=r"a plant, .*; found <Gain 'gain'>"):
        fx.animate(result, fx.Gain("gain", 1.0))  # type: ignore[arg-type]
    paces: list[dict[str, Any]] = [{"fps": 0}, {"speed": 0.0}, {"speed": np.nan}]
    for pace in paces:
        with pytest.raises(fx.errors.ValueRefusedError, match="at this pace"):
            fx.animate(result, **pace)
    for name in ("arm.avi", "arm"):
        with pytest.raises(fx.errors.DeclarationError, match=r"\.gif or \.html"):
            fx.animate(result, path=tmp_path / name)
    for name in ("arm.png", "{}/arm.png", "nowhere/{}.png", "{name}.png", "{:q}.png"):
        with pytest.raises(fx.errors.DeclarationError, match="a field for the number"):
            fx.animate(result, path=tmp_path / name)
    with pytest.raises(fx.errors.UnknownNameError, match="of this plant"):
        fx.animate(result, trace=[pendulum()[0].body("rod")])
    with pytest.raises(fx.errors.ValueRefusedError, match="frames or bodies"):
        fx.animate(result, trace="tip")  # type: ignore[arg-type]
    empty = fx.simulate(fx.Gain("gain", 1.0), 0.1)
    with pytest.raises(fx.errors.UnknownNameError, match="exactly one"):
        fx.animate(empty)


@pytest.mark.full
def test_what_a_notebook_shows_is_small_however_long_the_motion() -> None:
    builder = fx.PlantBuilder("many")
    for k in range(20):
        builder.add_body(f"grain{k}", fx.SpatialInertia(1.0, inertia=[0.01] * 3))
    result = fx.simulate(builder.build(), 40.0)
    shown = fx.animate(result, fps=50)._repr_html_()
    assert shown.startswith("<iframe")
    assert len(shown) < 8e6
