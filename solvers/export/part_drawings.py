"""Drawings of flexures to scale, for cutting and printing: SVG, DXF and STL."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from flexure.blocks import Plant
from flexure.blocks.multibody.bodies.meshes import Mesh, write_stl
from flexure.diagrams.checks.arguments import (
    file_path,
    flag,
    import_extra,
    is_one_of,
    one_of,
    shown,
)
from flexure.diagrams.checks.errors import (
    UnknownNameError,
    ValueRefusedError,
    quoted,
    suggestion,
    warn,
)
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.arrays import FloatArray, bounded
from flexure.solvers.results.mechanisms.facets import pieces_of
from flexure.solvers.results.mechanisms.flexure_shapes import ribbons
from flexure.solvers.results.mechanisms.pictures import poses_in, require_plant

#: The plane of a drawing: to the right, then up.
Plane: TypeAlias = Literal["xy", "xz", "yz"]
_PLANES: dict[str, list[int]] = {"xy": [0, 1], "xz": [0, 2], "yz": [1, 2]}
_SLABS = 2000  # of a flexure, before points on straight lines are left out
_EDGE_ON = 0.05  # of the length: what is seen shorter than this is seen along its length
_INCLINED = 1e-4, 1e-2  # what is seen shorter by this, or turned about its length, is inclined
_BENT = 1e6  # stress in Pa above which a flexure is not drawn as it is made
_MM = 1e3  # in a meter
_MARGIN = 5.0  # around drawings, in mm
_LETTERS, _LEAST_LETTERS = 0.02, 0.5  # their height: part of the drawing, and in mm
_COLORS = {"bodies": "#7a8594", "flexures": "#b5471b", "dimensions": "#333333"}
_DXF_COLORS = {"bodies": 8, "flexures": 1, "dimensions": 7}


@dataclass(frozen=True, eq=False, repr=False)
class PartDrawing(Answer):
    """The outlines of flexures and bodies in a plane, to scale.

    Attributes
    ----------
    flexures : dict of ndarray, each of shape (n, 2)
        By name, the closed outline of each flexure in m, counter-clockwise.
    bodies : list of ndarray, each of shape (n, 2)
        The convex outlines of the parts of bodies in m.
    sizes : dict of tuple of float
        By name, length, least thickness in the plane, and width across it, in m.
    solids : dict of Mesh
        By name, the closed surface of each flexure.

    See Also
    --------
    part_drawing : Draw the flexures of a plant.
    """

    flexures: dict[str, FloatArray]
    bodies: list[FloatArray]
    sizes: dict[str, tuple[float, float, float]]
    solids: dict[str, Mesh]
    _title: str

    def area(self, name: str) -> float:
        """Return the area of the outline of a flexure in m².

        Raises
        ------
        UnknownNameError
            When there is no flexure of this name.
        """
        if not is_one_of(name, self.flexures):
            raise UnknownNameError(
                f"Cannot find the outline of {shown(name)}",
                expected=f"one of the flexures {quoted(self.flexures)}",
                remedy=suggestion(str(name), self.flexures),
            )
        x, y = self.flexures[name].T
        return float(0.5 * (x @ np.roll(y, -1) - y @ np.roll(x, -1)))

    def save(self, path: str | Path) -> None:
        """Write a file: ``.svg`` and ``.dxf`` in millimeters, ``.stl`` in meters.

        Raises
        ------
        MissingExtraError
            When a DXF file is to be written without ezdxf.
        ValueRefusedError
            When the name of the file ends otherwise.
        """
        attempt = f"Cannot save the drawing of '{self._title}'"
        suffix = Path(file_path(path, attempt)).suffix.lower()
        if suffix == ".svg":
            with replacing(path) as stream:
                stream.write(self._svg())
        elif suffix == ".dxf":
            self._write_dxf(path)
        elif suffix == ".stl":
            write_stl(path, _joined(list(self.solids.values())))
        else:
            raise ValueRefusedError(
                attempt,
                expected="a file that ends in .svg, .dxf or .stl",
                found=repr(str(path)),
                remedy="CAD programs read the DXF outlines, and make STEP solids of them",
            )

    def _labels(self, height: float) -> list[tuple[FloatArray, str]]:
        """Return where the labels have their middle at the bottom, in mm, and the labels."""
        found = []
        for name, outline in self.flexures.items():
            low, high = _MM * outline.min(axis=0), _MM * outline.max(axis=0)
            place = np.array([0.5 * (low[0] + high[0]), high[1] + 0.5 * height])
            sizes = " x ".join(f"{_MM * size:.4g}" for size in self.sizes[name])
            found.append((place, f"{name}: {sizes}"))
        return found

    def _letter_height(self) -> float:
        """Return the height of letters in mm."""
        extent = np.ptp(np.vstack([*self.flexures.values(), *self.bodies]), axis=0)
        return max(_LETTERS * _MM * float(extent.max()), _LEAST_LETTERS)

    def _svg(self) -> str:
        """Return the drawing as SVG; its sizes are those of the parts."""
        size = self._letter_height()
        labels = self._labels(size)
        spans = [
            place + 0.6 * size * np.array([sign * 0.5 * len(label), sign + 1.0])
            for place, label in labels
            for sign in (-1.0, 1.0)
        ]
        points = np.vstack(
            [*(_MM * each for each in (*self.flexures.values(), *self.bodies)), spans]
        )
        low, high = points.min(axis=0) - _MARGIN, points.max(axis=0) + _MARGIN
        width, height = high - low

        def group(layer: str, content: list[str], more: str) -> list[str]:
            return [f'<g id="{layer}" {more}>', *content, "</g>"] if content else []

        def polygon(outline: FloatArray) -> str:
            corners = np.column_stack([outline[:, 0], -outline[:, 1]]) * _MM
            return f'<polygon points="{" ".join(f"{x:.5f},{y:.5f}" for x, y in corners)}"/>'

        texts = [
            f'<text x="{x:.3f}" y="{-y:.3f}">{html.escape(label)}</text>'
            for (x, y), label in labels
        ]
        lines = (f'fill="none" stroke-width="0.1" stroke="{_COLORS[name]}"' for name in _COLORS)
        color, font = _COLORS["dimensions"], f'font-family="sans-serif" font-size="{size:.3g}"'
        letters = f'text-anchor="middle" {font} fill="{color}"'
        box = f"{low[0]:.4f} {-high[1]:.4f} {width:.4f} {height:.4f}"
        sizes = f'width="{width:.4f}mm" height="{height:.4f}mm" viewBox="{box}"'
        rows = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {sizes}>',
            f"<title>{html.escape(self._title)}, in mm</title>",
            *group("bodies", [polygon(each) for each in self.bodies], next(lines)),
            *group("flexures", [polygon(each) for each in self.flexures.values()], next(lines)),
            *group("dimensions", texts, letters),
            "</svg>",
        ]
        return "\n".join(rows) + "\n"

    def _write_dxf(self, path: str | Path) -> None:
        """Write the outlines as closed polylines in mm, on a layer for each kind."""
        ezdxf: Any = import_extra("ezdxf", "drawings", "Cannot write a DXF file")
        enums: Any = import_extra("ezdxf.enums", "drawings", "Cannot write a DXF file")
        document = ezdxf.new("R2010", setup=True, units=4)
        for layer, color in _DXF_COLORS.items():
            document.layers.add(layer, color=color)
        space = document.modelspace()
        for layer, outlines in (("bodies", self.bodies), ("flexures", self.flexures.values())):
            for outline in outlines:
                space.add_lwpolyline(
                    (_MM * outline).tolist(), close=True, dxfattribs={"layer": layer}
                )
        height = self._letter_height()
        for place, label in self._labels(height):
            text = space.add_text(label, height=height, dxfattribs={"layer": "dimensions"})
            text.set_placement(place.tolist(), align=enums.TextEntityAlignment.BOTTOM_CENTER)
        with replacing(path) as stream:
            document.write(stream)

    def __repr__(self) -> str:
        return f"<PartDrawing of {quoted(self.flexures)}>"


@answers_other_words
def part_drawing(
    plant: Plant,
    path: str | Path | None = None,
    *,
    context: Context | None = None,
    view: Plane = "xy",
    bodies: bool = True,
    tolerance: float = 1e-6,
) -> PartDrawing:
    """Draw the flexures of a plant to scale, as SVG, DXF or STL.

    Parameters
    ----------
    plant : Plant
        A plant with flexures.
    path : str or Path, optional
        A file to write: ``.svg`` or ``.dxf`` in millimeters, ``.stl`` in meters.
    context : Context, optional
        The dimensions and poses to draw; a root context. A default context when omitted. Flexures
        are drawn as they are there, so take one without load.
    view : {"xy", "xz", "yz"}
        The plane of the drawing in the world.
    bodies : bool
        Whether to draw the shapes of bodies, too, each part by its convex outline.
    tolerance : float
        By how much outlines may miss curved contours, in m.

    Returns
    -------
    PartDrawing

    Raises
    ------
    DeclarationError
        When it is no plant.
    ValueRefusedError
        When it has no flexures, or a flexure is seen along its length.
    MissingExtraError
        When a DXF file is to be written without ezdxf, of the extra ``drawings``.

    Warns
    -----
    UserWarning
        When a flexure is drawn bent, with a stress above 1 MPa, or is inclined to the plane, so
        that its outline is not the one to cut.

    See Also
    --------
    ParallelGuide : Leaves of equal dimensions between two bodies.
    save_urdf : Write the bodies and joints of a plant.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("hinge")
    >>> arm = builder.add_body("arm", fx.SpatialInertia.point_mass(0.1))
    >>> joint = builder.add_joint(fx.RpyFloatingJoint("pose", builder.world, arm))
    >>> joint.default_pose = np.eye(3), (0.05, 0.0, 0.0)
    >>> steel = fx.Material.common("stainless steel 301")
    >>> size = {"length": 0.05, "width": 0.01, "thickness": 4e-4}
    >>> leaf = fx.LeafSpring("leaf", builder.world, arm, material=steel, **size)
    >>> _ = builder.add_force_element(leaf)
    >>> drawing = fx.part_drawing(builder.build())
    >>> 1e6 * drawing.area("leaf")  # of 50 mm by 0.4 mm
    20.0
    """
    require_plant(plant)
    attempt = f"Cannot draw the parts of '{plant.label}'"
    start = start_context(plant, context, attempt)
    one_of(view, tuple(_PLANES), "view", attempt)
    with_bodies = flag(bodies, "bodies", attempt)
    error = bounded(tolerance, attempt, lower=0.0, exclusive=True, unit="m")
    found = {each.stress_port.system.name: each for each in ribbons(plant, start, _SLABS)}
    if not found:
        raise ValueRefusedError(
            attempt, expected="a plant with flexures, such as LeafSpring", found="none"
        )
    poses = poses_in(plant, [start])[0]
    outlines, sizes, solids, inclined = {}, {}, {}, []
    for name, ribbon in found.items():
        corners = ribbon.corners(poses)
        if _is_inclined(corners, _PLANES[view], attempt, name):
            inclined.append(name)
        outlines[name], thickness = _outline(corners[..., _PLANES[view]], error)
        across = np.ptp(np.delete(corners, _PLANES[view], axis=2), axis=1).max()
        sizes[name] = _length(corners), thickness, float(across)
        solids[name] = _surface(corners)
    stresses = {
        name: float(np.max(np.abs(each.stress_port.eval(start)))) for name, each in found.items()
    }
    bent = [name for name, stress in stresses.items() if stress > _BENT]
    if bent:
        warn(
            f"Flexures drawn bent: {quoted(bent)}, by up to {1e-6 * max(stresses.values()):.3g} "
            "MPa. Pass a context in which flexures carry no load"
        )
    if inclined:
        warn(
            f"Flexures inclined to the plane {view}: {quoted(inclined)}. Their outlines are what "
            "is seen, not what to cut. Choose another view=, or save the solids as .stl"
        )
    drawing = PartDrawing(
        outlines,
        _bodies(plant, poses, _PLANES[view]) if with_bodies else [],
        sizes,
        solids,
        plant.label,
    )
    if path is not None:
        drawing.save(path)
    return drawing


def _length(corners: FloatArray) -> float:
    """Return the length of the center line."""
    return float(np.linalg.norm(np.diff(corners.mean(axis=1), axis=0), axis=1).sum())


def _is_inclined(corners: FloatArray, plane: list[int], attempt: str, name: str) -> bool:
    """Return whether sections in a row are seen shorter, or turned, in a plane."""
    steps = np.diff(corners.mean(axis=1), axis=0)
    seen = np.linalg.norm(steps[:, plane], axis=1) / np.linalg.norm(steps, axis=1)
    if not np.all(seen > _EDGE_ON):
        raise ValueRefusedError(
            attempt,
            expected="flexures that lie in the plane of the drawing",
            found=f"'{name}', which is seen along its length",
            remedy="Choose another view=",
        )
    x, y = steps[:, plane].T
    rest = corners[1:] - corners[1:].mean(axis=1, keepdims=True)
    places = np.einsum("kqd,kd->kq", rest[..., plane], np.column_stack([-y, x]))
    across = np.delete(rest, plane, axis=2)[..., 0]
    sizes = np.sum(places**2, axis=1) * np.sum(across**2, axis=1)
    turned = np.abs(np.sum(places * across, axis=1)) > _INCLINED[1] * np.sqrt(sizes)
    return bool(np.min(seen) < 1.0 - _INCLINED[0] or turned.any())


def _outline(corners: FloatArray, error: float) -> tuple[FloatArray, float]:
    """Return the outline of projected sections, counter-clockwise, and its least thickness."""
    along = np.gradient(corners.mean(axis=1), axis=0)
    length = np.linalg.norm(along, axis=1, keepdims=True)
    normal = np.column_stack([-along[:, 1], along[:, 0]]) / length
    places = np.einsum("kqd,kd->kq", corners, normal)
    rows = np.arange(len(corners))
    upper, lower = corners[rows, places.argmax(axis=1)], corners[rows, places.argmin(axis=1)]
    sides = [_simplified(lower, error), _simplified(upper, error)[::-1]]
    return np.vstack(sides), float(np.ptp(places, axis=1).min())


def _simplified(line: FloatArray, error: float) -> FloatArray:
    """Return the points of a line from which no other one is farther than an error."""
    kept, pending = {0, len(line) - 1}, [(0, len(line) - 1)]
    while pending:
        first, last = pending.pop()
        chord, between = line[last] - line[first], line[first + 1 : last] - line[first]
        if not len(between):
            continue
        size = float(np.linalg.norm(chord))
        crossed = between[:, 0] * chord[1] - between[:, 1] * chord[0]
        away = np.abs(crossed) / size if size > 0.0 else np.linalg.norm(between, axis=1)
        k = int(away.argmax())
        if away[k] > error:
            middle = first + 1 + k
            kept.add(middle)
            pending += [(first, middle), (middle, last)]
    return line[sorted(kept)]


def _surface(corners: FloatArray) -> Mesh:
    """Return the closed surface of sections in a row."""
    count, around, _ = corners.shape
    k, q = np.meshgrid(np.arange(count - 1), np.arange(around), indexing="ij")
    here, there = k * around + q, k * around + (q + 1) % around
    sides = [np.stack(rows, axis=-1).reshape(-1, 3) for rows in (
        (here, there, there + around), (here, there + around, here + around)
    )]  # fmt: skip
    fan = np.array([[0, k + 1, k] for k in range(1, around - 1)])
    last = fan[:, ::-1] + (count - 1) * around
    return Mesh(corners.reshape(-1, 3), np.vstack([*sides, fan, last]))


def _joined(meshes: list[Mesh]) -> Mesh:
    """Return all surfaces as one mesh."""
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    triangles = [mesh.triangles + start for mesh, start in zip(meshes, starts, strict=False)]
    return Mesh(np.vstack([mesh.vertices for mesh in meshes]), np.vstack(triangles))


def _bodies(plant: Plant, poses: FloatArray, plane: list[int]) -> list[FloatArray]:
    """Return the convex outlines of the parts of all bodies."""
    from scipy.spatial import ConvexHull

    found = []
    for number, body in enumerate(plant.bodies):
        R, p = poses[number, :9].reshape(3, 3), poses[number, 9:]
        for piece in pieces_of(body.shape, number, ""):
            points = (piece.vertices @ R.T + p)[:, plane]
            if np.linalg.matrix_rank(points - points.mean(axis=0)) == len(plane):
                found.append(points[ConvexHull(points).vertices])
    return found
