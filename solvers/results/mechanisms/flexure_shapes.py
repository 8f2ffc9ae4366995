"""Flexures as they are drawn: slabs along a center line that bends, in colors of stresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks import Plant
from flexure.blocks.multibody.force_elements.presentation import Ribbon as Shape
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.drawing.formats.style import COLOR_MAP, GREY, RED
from flexure.diagrams.systems.ports import LeafOutputPort
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.parameters import NumericParameter
from flexure.solvers.results.mechanisms.facets import Faces, Piece, face_normals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEAM = "#dc9558"
_SLABS = 16  # of an element that is not divided
_FEWEST = 2  # of a segment: stresses are known at both ends and in the middle
_LINE = 1.2  # around faces, in points, so that thin leaves are seen from the side
_UNITS = (("MPa", 1e6), ("kPa", 1e3), ("Pa", 1.0))
_ENOUGH = 0.1  # of a unit
_COUNT = 64  # colors of a page


@dataclass(frozen=True)
class Ribbon:
    """A flexure between frames on bodies."""

    bodies: tuple[int, ...]  # numbers of the bodies of its frames, from A to C, at least two
    # For each of them the position on its body, and the directions of the center line and of the
    # width there, shape (k, 3, 3).
    frames: FloatArray
    length: float  # length of the line between two frames in m
    # Corners of the sections along y and z, counter-clockwise seen from C; of each of them, or of
    # all when n = 1, shape (n, q, 2).
    outlines: FloatArray
    slabs: int  # how many slabs are between two frames
    # The output with what is known of its stress: along it, or the greatest.
    stress_port: LeafOutputPort
    strength: NumericParameter | None  # where its material yields, if that is known

    @property
    def num_slabs(self) -> int:
        """How many slabs it consists of."""
        return (len(self.bodies) - 1) * self.slabs

    def corners(self, poses: FloatArray) -> FloatArray:
        """Return the corners of all sections in the world, of shape (..., sections, q, 3).

        The center line is a cubic curve from each frame to the next one, and the width turns
        evenly. ``poses`` of all bodies are of shape (..., bodies, 12).
        """
        numbers = list(self.bodies)
        R = poses[..., numbers, :9].reshape(*poses.shape[:-2], len(numbers), 3, 3)
        turned = np.einsum("...kij,kdj->...kdi", R, self.frames)
        p, t, z = np.moveaxis(turned, -2, 0)
        p = (p + poses[..., numbers, 9:])[..., :, None, :]
        t, z = self.length * t[..., :, None, :], z[..., :, None, :]
        s = np.linspace(0.0, 1.0, self.slabs + 1)[:, None]
        first, last = np.s_[..., :-1, :, :], np.s_[..., 1:, :, :]
        step = p[last] - p[first]
        line = p[first] + (3.0 - 2.0 * s) * s * s * step
        line = line + s * (1.0 - s) * ((1.0 - s) * t[first] - s * t[last])
        along = 6.0 * s * (1.0 - s) * step + (1.0 - s) * (1.0 - 3.0 * s) * t[first]
        along = _unit(along - s * (2.0 - 3.0 * s) * t[last])
        across = (1.0 - s) * z[first] + s * z[last]
        across = _unit(across - along * np.sum(along * across, axis=-1, keepdims=True))
        line, along, across = (_joined(each) for each in (line, along, across))
        y, outline = np.cross(across, along), self.outlines[..., None]
        return (
            line[..., :, None, :]
            + outline[:, :, 0] * y[..., :, None, :]
            + outline[:, :, 1] * across[..., :, None, :]
        )

    def yield_strength(self, context: Context) -> float | None:
        """Return where its material yields, in Pa, if that is known."""
        strength = self.strength
        return None if strength is None else float(strength.get(context))

    def pieces(self, poses: FloatArray, colors: Sequence[str] | None = None) -> Iterator[Piece]:
        """Yield its slabs as pieces that are fixed on the world, for poses of all bodies.

        Slabs with colors of their own are not shaded.
        """
        sections = self.corners(poses)
        count, around = self.num_slabs, sections.shape[1]
        ring = range(around)
        start: tuple[int, ...] = tuple(reversed(ring))
        end = tuple(around + k for k in ring)
        sides: Faces = [(k, (k + 1) % around, around + (k + 1) % around, around + k) for k in ring]
        for number, (near, far) in enumerate(pairwise(sections)):
            points = np.concatenate([near, far])
            normals = face_normals(points, [*sides, start, end])
            planes = np.column_stack([normals, np.max(points @ normals.T, axis=0)])
            caps = [start] * (number == 0) + [end] * (number == count - 1)
            color, is_shaded = (BEAM, True) if colors is None else (colors[number], False)
            faces = [*sides, *caps]
            yield Piece(0, points, faces, 0, color, planes, points, line=_LINE, is_shaded=is_shaded)

    def along(self, stresses: FloatArray) -> FloatArray:
        """Return the stress of each slab, of shape (..., slabs), from values of the `stress_port`.

        For a beam it is known at both ends and in the middle of each segment.
        """
        if stresses.shape[-1] == 1:
            return np.repeat(stresses, self.num_slabs, axis=-1)
        known = stresses.reshape(*stresses.shape[:-1], len(self.bodies) - 1, -1)
        last = known.shape[-1] - 1
        places = last * (np.arange(self.slabs) + 0.5) / self.slabs
        low = np.minimum(places.astype(int), last - 1)
        share = places - low
        found: FloatArray = (1.0 - share) * known[..., low] + share * known[..., low + 1]
        return found.reshape(*stresses.shape[:-1], -1)


def _joined(parts: FloatArray) -> FloatArray:
    """Return points of all segments in one row, in which those between two are once."""
    rest = parts[..., 1:, :].reshape(*parts.shape[:-3], -1, 3)
    return np.asarray(np.concatenate([parts[..., 0, :1, :], rest], axis=-2))


def _unit(vectors: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0.0, lengths, 1.0))


def ribbons(plant: Plant, context: Context, slabs: int = _SLABS) -> list[Ribbon]:
    """Return the flexures of a plant in so many slabs, with the dimensions in a context."""
    shapes = [element.ribbon(context) for element in plant.force_elements]
    return [_ribbon(shape, slabs) for shape in shapes if shape is not None]


def _ribbon(shape: Shape, slabs: int) -> Ribbon:
    """Return a flexure in slabs, at least two between frames."""
    intervals = len(shape.frames) - 1
    slabs = max(_FEWEST, -(-slabs // intervals))
    places = []
    for frame, (p, *directions) in shape.frames:
        R, origin = frame.X_BF
        places.append(np.vstack([origin + R @ p, directions @ R.T]))
    return Ribbon(
        tuple(frame.body.number or 0 for frame, _ in shape.frames),
        np.array(places),
        shape.length,
        shape.outlines(np.linspace(0.0, 1.0, slabs * intervals + 1)),
        slabs,
        shape.stress,
        shape.strength,
    )


def color_table() -> dict[str, Any]:
    """Return the colors from no stress to the limit, and that beyond, for pages."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    shares = np.linspace(0.0, 1.0, _COUNT)
    return {"colors": [to_hex(color) for color in colormaps[COLOR_MAP](shares)], "beyond": RED}


class StressColors:
    """One color for each stress, red beyond the least yield strength.

    Without a yield strength of each material the colors end at the greatest stress that is shown.

    The context gives the yield strengths; ``stresses`` are all stresses of each of the beams.
    """

    def __init__(
        self, beams: Sequence[Ribbon], context: Context, stresses: Sequence[FloatArray]
    ) -> None:
        strengths = [ribbon.yield_strength(context) for ribbon in beams]
        known = [strength for strength in strengths if strength is not None]
        self.by_yield = len(known) == len(strengths)  # whether that is where a material yields
        greatest = max((float(np.max(each, initial=0.0)) for each in stresses), default=0.0)
        self.upper = min(known) if self.by_yield else greatest or 1.0  # where colors end, in Pa

    def __call__(self, stresses: FloatArray) -> list[str]:
        """Return the color of each stress as ``"#rrggbb"``."""
        from matplotlib.colors import to_hex

        colors, norm = self._map()
        return [to_hex(color) for color in colors(norm(stresses))]

    def draw_bar(self, ax: Axes) -> None:
        """Say beside axes what the colors mean."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.ticker import FuncFormatter

        colors, norm = self._map()
        unit, size = next((each for each in _UNITS if self.upper >= _ENOUGH * each[1]), _UNITS[-1])
        extend = "max" if self.by_yield else "neither"
        bar = ax.figure.colorbar(
            ScalarMappable(norm, colors), ax=ax, pad=0.02, shrink=0.7, extend=extend
        )
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda stress, _: f"{stress / size:.4g}"))
        bar.set_label(f"stress in {unit}{', up to yield' if self.by_yield else ''}", color=GREY)
        bar.ax.tick_params(colors=GREY, labelsize="small")
        bar.outline.set_visible(False)

    def _map(self) -> tuple[Any, Any]:
        from matplotlib import colormaps
        from matplotlib.colors import Normalize

        return colormaps[COLOR_MAP].with_extremes(over=RED), Normalize(0.0, self.upper)
