"""A scene as plain data, for the canvas of a browser that turns and moves it."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.mechanisms.camera import Camera, View, chosen_view
from flexure.solvers.results.mechanisms.flexure_shapes import BEAM, Ribbon, color_table
from flexure.solvers.results.mechanisms.pictures import Motion
from flexure.solvers.results.mechanisms.scene import Scene, make_scene

_DIGITS = 7  # of lengths, as parts of the size
_MOST_NUMBERS = 400_000  # of a motion: about 3 MB


def view_data(
    motion: Motion,
    *,
    signals: Sequence[str | None],
    forces: Sequence[str] = (),
    stresses: Sequence[str] = (),
    strengths: Sequence[str] = (),
    view: View = "auto",
    ground: float | None = None,
) -> dict[str, Any]:
    """Return what ``mountMechanism`` of ``mechanism_view.js`` draws.

    The poses of the motion are those by which sizes are chosen. Paths are, for each body, that of
    its pose, None for the world (``signals``); for each arrow of the scene that of the spatial
    force, none to draw no arrows; for each ribbon that of its stress, none to draw them without its
    colors, and that of the yield strength, "" where a page has none. The result is plain data:
    pieces, strokes, ribbons, arrows and traces, each with its numbers of bodies.
    """
    scene = make_scene(motion.plant, motion.context, motion.poses)
    camera = Camera(chosen_view(view, motion.plant, motion.context))
    step = 10.0 ** (np.floor(np.log10(scene.size)) + 1 - _DIGITS)
    return {
        "name": motion.plant.name,
        "signals": list(signals),
        "pieces": _pieces(scene, step),
        "strokes": [
            {"kind": each.kind, "bodies": list(each.bodies), "points": _plain(each.points, step)}
            for each in scene.strokes
        ],
        "ribbons": [
            _ribbon(each, step) | {"stress": stresses[k] if stresses else None}
            for k, each in enumerate(scene.ribbons)
        ],
        "stress": _stress(scene.ribbons, motion.context, strengths) if stresses else None,
        "arrows": [
            {"body": each.body, "point": _plain(each.point, step), "signal": path}
            for each, path in zip(scene.arrows, forces, strict=False)
        ],
        "traces": [
            {"body": each.body.number or 0, "point": _plain(each.X_BF.p, step)}
            for each in motion.traced
        ],
        "camera": camera.angles.tolist(),
        "ground": ground,
    }


def _pieces(scene: Scene, step: float) -> list[dict[str, Any]]:
    return [
        {
            "body": each.body,
            "vertices": _plain(each.vertices, step),
            "faces": [list(face) for face in each.faces],
            "outlined": each.outlined,
            "color": each.color,
            "planes": np.column_stack(
                [each.planes[:, :3].round(9), _rounded(each.planes[:, 3], step)]
            ).tolist(),
            "hull": None if each.hull is each.vertices else _plain(each.hull, step),
            "reach": _plain(each.reach, step),
            "twoSided": each.two_sided,
        }
        for each in scene.pieces
    ]


def _ribbon(ribbon: Ribbon, step: float) -> dict[str, Any]:
    return {
        "bodies": list(ribbon.bodies),
        "frames": [[_plain(each[0], step), *each[1:].round(9).tolist()] for each in ribbon.frames],
        "length": ribbon.length,
        "outlines": ribbon.outlines.round(12).tolist(),
        "slabs": ribbon.slabs,
        "color": BEAM,
    }


def _stress(
    ribbons: Sequence[Ribbon], context: Context, strengths: Sequence[str]
) -> dict[str, Any]:
    """Return colors, and where materials yield, which is what ends them if all are known."""
    known = [each.yield_strength(context) for each in ribbons]
    yields = [] if None in known else zip(strengths or [""] * len(known), known, strict=True)
    return color_table() | {"yields": [{"path": path, "value": value} for path, value in yields]}


def _rounded(numbers: FloatArray, step: float) -> FloatArray:
    """Return numbers with as many digits as can be seen."""
    return np.asarray(np.round(numbers, int(-np.floor(np.log10(step)))) + 0.0)


def _plain(numbers: FloatArray, step: float) -> Any:
    return _rounded(numbers, step).tolist()


def player_page(motion: Motion, *, view: View, fps: float, ground: float | None) -> str:
    """Return a page that plays a motion; it needs no network, and can be turned.

    For a long motion, as many pictures are stored as fit into some megabytes.
    """
    count, bodies, _ = motion.poses.shape
    forces = motion.forces if motion.forces is not None else np.empty((count, 0, 3))
    stresses = motion.stresses or ()
    each = 12 * bodies + 6 * forces.shape[1] + sum(row[0].size for row in stresses)
    stride = -(-count * each // _MOST_NUMBERS)
    poses, forces = motion.poses[::stride], forces[::stride]
    signals = [None, *(f"body {k}" for k in range(1, bodies))]
    acting = [f"force {k}" for k in range(forces.shape[1])]
    strained = [f"stress {k}" for k in range(len(stresses))]
    data = view_data(
        motion, signals=signals, forces=acting, stresses=strained, view=view, ground=ground
    )
    size = max(float(np.max(np.abs(poses[:, :, 9:]))), 1e-9)
    step = 10.0 ** (np.floor(np.log10(size)) + 1 - _DIGITS)
    moving = np.concatenate([poses[:, :, :9].round(6), _rounded(poses[:, :, 9:], step)], axis=2)
    spatial = np.concatenate([np.zeros_like(forces), forces], axis=2)
    recorded = {
        "signals": {
            **{f"body {k}": moving[:, k].ravel().tolist() for k in range(1, bodies)},
            **{name: spatial[:, k].ravel().tolist() for k, name in enumerate(acting)},
            **{
                name: row[::stride].ravel().round().tolist()
                for name, row in zip(strained, stresses, strict=True)
            },
        },
        "captions": list(motion.captions[::stride]),
        "fps": fps / stride,
    }
    return _page(motion.plant.name, {"mechanism": data, "recorded": recorded})


def _page(title: str, data: dict[str, Any]) -> str:
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return Template(_asset("player.html")).substitute(
        title=html.escape(title),
        view=_asset("mechanism_view.js"),
        player=_asset("mechanism_player.js"),
        data=text.replace("<", "\\u003c"),
    )


def view_script() -> str:
    """Return the script that declares ``mountMechanism``."""
    return _asset("mechanism_view.js")


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
