"""A scene as artists of Matplotlib, which move from picture to picture and are painted by depth.

Convex things are painted from behind. Two of them have a plane between them, and the one on the
viewer's side of it hides the other. For solids it is a face of one of them, which is looked for;
where they go into each other, it is the face that comes closest. Lines have no faces; they are in
front of solids that they enter, so that ends can be seen. Where nothing is between two things, or
where each hides another one in a circle, the one whose center is farther away comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.drawing.formats.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.mechanisms.camera import Camera
from flexure.solvers.results.mechanisms.facets import Piece, face_normals
from flexure.solvers.results.mechanisms.flexure_shapes import StressColors
from flexure.solvers.results.mechanisms.mechanism_lines import DIRECTIONS, ELEMENTS, Stroke, placed
from flexure.solvers.results.mechanisms.scene import Scene

BONE, SPRING, METAL, INK = BLUE, ORANGE, GREY, "#444444"
FORCE, TRACE = RED, PURPLE
_AXES = (RED, GREEN, BLUE)
_TRIAD = 0.06  # length, as a part of the size of the picture
_RADIUS = 0.018  # of coils, as a part of that size
_COILS = 8
_PIN = 0.02  # of that size: an axis that looks shorter is a pin
_LIGHT = np.array([-0.35, 0.55, 0.76])  # from there it comes: to the right, upwards, to the viewer
_DARKEST, _EDGE = 0.7, 0.7  # of a color: where no light falls, and edges of faces
ARROW = 0.22  # length of that of the largest force, as a part of the picture
_NO_PLANES = np.empty((0, 4))
_BELOW, _THINGS, _ABOVE = 1.0, 2.0, 3.0  # orders of drawing
_BETWEEN = 0.01  # two drawings behind another one, at least
_PALE = 0.3  # how opaque these are
_EDGE_ON = 1e-9  # of a normal
_TOUCHING = 1e-4  # of the size of the picture
_STYLES: dict[str, dict[str, Any]] = {
    "bone": {"color": BONE, "linewidth": 3.0, "solid_capstyle": "round"},
    "dot": {"color": BONE, "marker": "o", "markersize": 9, "linestyle": "none"},
    "spring": {"color": SPRING, "linewidth": 1.3},
    "damped spring": {"color": SPRING, "linewidth": 1.3},
    "damper": {"color": INK, "linewidth": 1.3},
    "cable": {"color": INK, "linewidth": 1.2},
    "axis": {
        "color": INK,
        "linewidth": 0.9,
        "dashes": (7, 2.5, 1.2, 2.5),
        "markersize": 6,
        "markerfacecolor": "#ffffff",
    },
    "ground": {"color": METAL, "markersize": 15, "linestyle": "none", "markerfacecolor": "none"},
}


class Seen(NamedTuple):
    """A convex thing as the camera sees it."""

    hull: FloatArray  # points to the right, upwards and to the viewer, shape (n, 3)
    # Outward normals n and distances d, n x <= d, along the same axes; k = 0 for a line,
    # shape (k, 4).
    planes: FloatArray


def painting_order(things: Sequence[Seen]) -> list[int]:
    """Return the numbers of things, those behind first."""
    count = len(things)
    if count < 2:
        return list(range(count))
    low = np.array([each.hull.min(axis=0) for each in things])
    high = np.array([each.hull.max(axis=0) for each in things])
    touching = _TOUCHING * float(np.max(high - low))
    depth = np.array([each.hull[:, 2].mean() for each in things])
    apart, sign = _separations(things)
    flat = np.array([not len(each.planes) for each in things])
    best = np.where(apart >= apart.T, apart, apart.T)
    # Whether j is in front of i (1), behind (-1), or neither (0).
    front = np.where(apart >= apart.T, sign, -sign.T)
    entered = (best < -touching) & (flat != flat[:, None])
    front = np.where(entered, np.where(flat[None, :], 1, -1), front)
    overlap = np.all(
        (low[:, None, :2] < high[None, :, :2]) & (low[None, :, :2] < high[:, None, :2]), axis=2
    )
    front = np.where(overlap & ~(flat & flat[:, None]), front, 0)
    np.fill_diagonal(front, 0)
    hidden_by = front == 1  # [i, j]: i is painted before j
    waiting = hidden_by.sum(axis=0)
    left = np.ones(count, dtype=bool)
    order: list[int] = []
    while len(order) < count:
        ready = left & (waiting == 0)
        candidates = np.flatnonzero(ready if ready.any() else left)
        chosen = int(candidates[np.argmin(depth[candidates])])
        left[chosen] = False
        waiting -= hidden_by[chosen]
        order.append(chosen)
    return order


def _separations(things: Sequence[Seen]) -> tuple[FloatArray, FloatArray]:
    """Return how far each thing lies beyond the best face of each other, and where that looks."""
    # The second array is 1 where that face looks at the viewer, -1 where it looks away, 0 if
    # neither.
    points = np.concatenate([each.hull for each in things])
    starts = np.cumsum([0, *(len(each.hull) for each in things[:-1])])
    apart = np.full((len(things), len(things)), -np.inf)
    sign = np.zeros_like(apart)
    for k, each in enumerate(things):
        if len(each.planes):
            beyond = each.planes[:, :3] @ points.T - each.planes[:, 3:]
            nearest = np.minimum.reduceat(beyond, starts, axis=1)
            best = np.argmax(nearest, axis=0)
            apart[k] = np.take_along_axis(nearest, best[None], axis=0)[0]
            toward = each.planes[best, 2]
            sign[k] = np.where(np.abs(toward) > _EDGE_ON, np.sign(toward), 0.0)
    return apart, sign


def shades(normals: FloatArray, color: str, is_shaded: bool = True) -> FloatArray:
    """Return the colors of faces of one color, by their normals as the camera sees them.

    A face that looks where the light comes from has the color itself, one across has it darker;
    all have it where there are no shades.
    """
    base = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    light = np.maximum(normals @ (_LIGHT / np.linalg.norm(_LIGHT)), 0.0)
    shade = _DARKEST + (1.0 - _DARKEST) * light if is_shaded else np.ones(len(normals))
    return np.asarray(shade[:, None] * base)


class SeenPiece:
    """A piece as the camera sees it: which of its faces, where, in which colors."""

    def __init__(self, piece: Piece, pose: FloatArray, camera: Camera) -> None:
        R, p = pose[:9].reshape(3, 3), pose[9:]
        turn = camera.axes @ R
        shift = camera.axes @ p
        points = piece.vertices @ turn.T + shift
        hull = points if piece.hull is piece.vertices else piece.hull @ turn.T + shift
        normals = piece.planes[:, :3] @ turn.T
        planes = np.column_stack([normals, piece.planes[:, 3] + normals @ shift])
        self.thing = Seen(hull, planes)  # the piece among others
        faces = [points[list(face)] for face in piece.faces]
        across = face_normals(points, piece.faces)
        if piece.two_sided:
            across = across * np.where(across[:, 2:] < 0.0, -1.0, 1.0)
            order = np.argsort([face[:, 2].mean() for face in faces], kind="stable")
        else:
            order = np.flatnonzero(across[:, 2] > 1e-9)
        # The faces that look at the viewer, those behind first, shape (k, 2).
        self.corners = [faces[k][:, :2] for k in order]
        # Their colors, shape (faces, 3).
        self.colors = shades(across[order], piece.color, piece.is_shaded)
        self.outlined = order < piece.outlined  # which of them have edges of their own
        # Widths of the lines around them in points.
        self.widths = np.where(self.outlined, 0.8, piece.line)


class Drawing:
    """The artists of a scene.

    ``size`` is the larger side of the picture in m; the largest force gets an arrow of a fifth of
    it, or 0 is given for no arrows. Traces, shape (points, count, 3), are paths in the world; that
    of each picture ends in its last point.
    """

    def __init__(
        self,
        scene: Scene,
        camera: Camera,
        ax: Any,
        *,
        size: float,
        largest: float = 0.0,
        traces: FloatArray | None = None,
        colors: StressColors | None = None,
    ) -> None:
        from matplotlib.collections import PolyCollection

        self.scene, self.camera, self.size, self._colors = scene, camera, size, colors
        count = len(scene.pieces) + sum(each.num_slabs for each in scene.ribbons)
        self._faces = [PolyCollection([], zorder=_THINGS) for _ in range(count)]
        for collection in self._faces:
            ax.add_collection(collection, autolim=False)
        self._lines = [_line(ax, stroke.kind) for stroke in scene.strokes]
        self._scale = ARROW * size / largest if largest else 0.0
        self._arrows = [_arrow(ax) for _ in scene.arrows] if largest else []
        self._paths = np.empty((0, 0, 3)) if traces is None else traces
        for path in self._paths:
            seen = camera(path)
            ax.plot(*seen[:, :2].T, color=TRACE, linewidth=1.0, alpha=0.25, zorder=_BELOW)
        self._trails = [
            ax.plot([], [], color=TRACE, linewidth=1.3, zorder=_BELOW)[0] for _ in self._paths
        ]
        self._points = [
            ax.plot([], [], color=TRACE, marker="o", markersize=4, zorder=_ABOVE)[0]
            for _ in self._paths
        ]

    def move(
        self,
        poses: FloatArray,
        forces: FloatArray | None = None,
        moment: int = 0,
        stresses: Sequence[FloatArray] | None = None,
    ) -> None:
        """Draw the scene for the poses of all bodies, one row each, with forces and stresses."""
        solids = list(self.scene.pieces)
        for number, ribbon in enumerate(self.scene.ribbons):
            colors = None
            if stresses is not None and self._colors is not None:
                colors = self._colors(ribbon.along(stresses[number]))
            solids += ribbon.pieces(poses, colors)
        pieces = [SeenPiece(each, poses[each.body], self.camera) for each in solids]
        lines = [self.camera(self._world(stroke, poses)) for stroke in self.scene.strokes]
        sorted_kinds = (*ELEMENTS, "bone", "dot")
        among = [k for k, each in enumerate(self.scene.strokes) if each.kind in sorted_kinds]
        things = [each.thing for each in pieces] + [Seen(lines[k], _NO_PLANES) for k in among]
        artists = [*self._faces, *(self._lines[k] for k in among)]
        for rank, number in enumerate(painting_order(things)):
            artists[number].set_zorder(_THINGS + rank / len(things))
        for piece, collection in zip(pieces, self._faces, strict=True):
            collection.set_verts(piece.corners)
            edges = piece.colors * np.where(piece.outlined, _EDGE, 1.0)[:, None]
            collection.set(facecolor=piece.colors, edgecolor=edges)
            collection.set(linewidth=piece.widths)
        for stroke, line, points in zip(self.scene.strokes, self._lines, lines, strict=True):
            line.set_data(*self._curve(stroke.kind, points[:, :2]).T)
            if stroke.kind == "axis":  # a pin where it is seen end-on
                is_short = np.linalg.norm(np.ptp(points[:, :2], axis=0)) < _PIN * self.size
                line.set_marker("o" if is_short else "")
        if forces is not None:
            self._move_arrows(poses, forces)
        for path, trail, point in zip(self._paths, self._trails, self._points, strict=True):
            seen = self.camera(path[: moment + 1])
            trail.set_data(*seen[:, :2].T)
            point.set_data(*seen[-1:, :2].T)

    def put_behind(self, place: float) -> None:
        """Show what was moved behind other drawings, pale but for flexures.

        The place is between 0 and 1, the larger the nearer.
        """
        for number, artist in enumerate([*self._faces, *self._lines]):
            is_ribbon = len(self.scene.pieces) <= number < len(self._faces)
            among = (artist.get_zorder() - _THINGS) % 1.0
            artist.set_zorder(_THINGS - 1.0 + 0.9 * (place + _BETWEEN * among))
            if not is_ribbon:
                artist.set_alpha(_PALE)

    def _world(self, stroke: Stroke, poses: FloatArray) -> FloatArray:
        """Return the points of a stroke in the world; an axis of a frame begins at its origin."""
        if stroke.kind not in DIRECTIONS:
            return placed(stroke, poses)
        R, p = poses[stroke.bodies[0], :9].reshape(3, 3), poses[stroke.bodies[0], 9:]
        origin = p + R @ stroke.points[0]
        tip = origin + _TRIAD * self.size * (R @ stroke.points[1])
        return np.array([origin, tip])

    def _curve(self, kind: str, ends: FloatArray) -> FloatArray:
        """Return what is drawn between the points of a stroke."""
        radius = _RADIUS * self.size
        if kind == "spring":
            return coil(ends, radius)
        if kind == "damper":
            return dashpot(ends, radius)
        if kind == "damped spring":
            apart = np.full((1, 2), np.nan)
            return np.vstack([coil(ends, radius), apart, dashpot(ends, 0.5 * radius)])
        return ends

    def _move_arrows(self, poses: FloatArray, forces: FloatArray) -> None:
        """Draw forces of shape (arrows, 3) in the world."""
        for arrow, place, force in zip(self._arrows, self.scene.arrows, forces, strict=True):
            R, p = poses[place.body, :9].reshape(3, 3), poses[place.body, 9:]
            start = p + R @ place.point
            ends = self.camera(np.array([start, start + self._scale * force]))[:, :2]
            arrow.set_positions(*ends)
            arrow.set_visible(bool(np.linalg.norm(ends[1] - ends[0]) > 0.01 * self.size))


def _line(ax: Any, kind: str) -> Any:
    style = _STYLES.get(kind) or {"color": _AXES["xyz".index(kind)], "linewidth": 1.8}
    order = {"ground": _BELOW, "axis": _ABOVE}.get(kind, _ABOVE + 0.1)
    line = ax.plot([], [], zorder=order, **style)[0]
    if kind == "ground":
        line.set_marker(_support())
    return line


def _support() -> Any:
    """Return the mark of a place on the ground: a triangle on a hatched line."""
    from matplotlib.path import Path

    triangle = [(0.0, 0.0), (-0.32, -0.5), (0.32, -0.5), (0.0, 0.0)]
    hatch = [((x, -0.5), (x - 0.16, -0.68)) for x in np.linspace(-0.36, 0.5, 6)]
    lines = [triangle, [(-0.52, -0.5), (0.52, -0.5)], *hatch]
    codes = [code for line in lines for code in [Path.MOVETO] + [Path.LINETO] * (len(line) - 1)]
    return Path([point for line in lines for point in line], codes)


def _arrow(ax: Any) -> Any:
    from matplotlib.patches import FancyArrowPatch

    style = "-|>,head_length=5,head_width=2.5"
    arrow = FancyArrowPatch(
        (0, 0), (0, 0), arrowstyle=style, color=FORCE, linewidth=1.6, shrinkA=0, shrinkB=0
    )
    arrow.set_zorder(_ABOVE + 0.2)
    ax.add_patch(arrow)
    return arrow


def coil(ends: FloatArray, radius: float) -> FloatArray:
    """Return a coil spring between two points of the picture."""
    along, across, length = _directions(ends)
    if length == 0.0:
        return ends
    share = np.linspace(0.0, 1.0, 16 * _COILS + 1)
    angle = 2.0 * np.pi * _COILS * share
    straight = 0.12 * length
    reach = min(0.6 * radius, 0.2 * length / _COILS)
    forward = straight + (length - 2.0 * straight) * share + reach * (np.cos(angle) - 1.0)
    turns = ends[0] + np.outer(forward, along) + np.outer(radius * np.sin(angle), across)
    return np.vstack([ends[0], turns, ends[1]])


def dashpot(ends: FloatArray, radius: float) -> FloatArray:
    """Return a damper between two points of the picture: a cylinder with a piston in it."""
    along, across, length = _directions(ends)
    if length == 0.0:
        return ends
    a, b, c = (share * length for share in (0.35, 0.52, 0.65))
    stop = (np.nan, np.nan)
    corners = [(0.0, 0.0), (a, 0.0), stop, (c, 1.0), (a, 1.0), (a, -1.0), (c, -1.0), stop]
    corners += [(b, 0.8), (b, -0.8), stop, (b, 0.0), (length, 0.0)]
    places = np.array(corners)
    found: FloatArray = (
        ends[0] + np.outer(places[:, 0], along) + np.outer(radius * places[:, 1], across)
    )
    return found


def _directions(ends: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the directions along and across a line of the picture, and its length."""
    along = ends[1] - ends[0]
    length = float(np.linalg.norm(along))
    if length > 0.0:
        along = along / length
    return along, np.array([-along[1], along[0]]), length
