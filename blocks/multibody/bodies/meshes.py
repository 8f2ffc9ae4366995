"""Surfaces made of triangles, and STL files that hold them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import file_path, require, require_that, shown
from flexure.diagrams.checks.errors import DeclarationError, FlexureError
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.values.arrays import FloatArray, as_numbers, check_bounds

_READ, _MAKE = "Cannot read a mesh", "Cannot make a mesh"
#: Of a file: 4 million triangles, more than any picture shows.
_MOST_BYTES = 200_000_000
_HEADER, _RECORD = 84, 50  # bytes of a binary file before the triangles, and of one of them
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
#: In m: products of three lengths are still numbers.
_FARTHEST = 1e30
_NOTHING = 1e-9  # part of the volumes of tetrahedra of both signs that is no volume
#: What more triangles would add cannot be seen in a picture, and makes pages large.
MOST_TRIANGLES = 4000


class Mesh(NamedTuple):
    """A surface."""

    vertices: FloatArray  # points in m, shape (n, 3)
    # Numbers of the three corners of each triangle, counter-clockwise seen from outside,
    # shape (m, 3).
    triangles: npt.NDArray[np.intp]


def read_stl(path: str | Path) -> Mesh:
    """Read an STL file, binary or ASCII.

    Refuses what cannot be read, is no STL file, is cut off, or has no triangle or numbers that are
    not finite.
    """
    name = file_path(path, _READ)
    try:
        if Path(name).stat().st_size > _MOST_BYTES:
            raise _refusal(name, f"at most {_MOST_BYTES // 10**6} MB", "more")
        content = Path(name).read_bytes()
    except OSError as error:
        raise _refusal(name, "a file that can be read", str(error.strerror)) from error
    count = int.from_bytes(content[80:_HEADER], "little")
    if len(content) >= _HEADER and len(content) == _HEADER + _RECORD * count:
        corners = np.frombuffer(content, _TRIANGLE, count, _HEADER)["corners"].astype(float)
    elif content.lstrip()[:5].lower() == b"solid":
        corners = _ascii_corners(content, name)
    else:
        found = f"{len(content)} bytes that are neither ASCII nor {count} triangles"
        raise _refusal(name, "an STL file, with as many triangles as it says", found)
    return _joined(corners.reshape(-1, 3), name)


def read_mesh(
    source: str | Path | tuple[npt.ArrayLike, npt.ArrayLike], scale: npt.ArrayLike
) -> Mesh:
    """Return the surface of an STL file or of arrays, in meters."""
    attempt = f"{_MAKE} with scale"
    factors = as_numbers(scale, attempt)
    check_bounds(factors, attempt, lower=-1e6, upper=1e6)
    fits = factors.shape in ((), (3,)) and np.all(factors != 0.0)
    require(fits, scale, attempt, "one factor or three, which are not zero")
    factors = np.broadcast_to(factors, 3)
    if isinstance(source, tuple) and len(source) == 2:
        mesh = checked_mesh(*source)
    else:
        expected = "the name of an STL file, or (vertices, triangles)"
        is_name = isinstance(source, (str, Path))
        require(is_name, source, _MAKE, expected, error=DeclarationError)
        name = Path(str(source))
        expected = "the name of a file that ends in .stl"
        remedy = "Convert it to STL, or pass (vertices, triangles)"
        is_stl = name.suffix.lower() == ".stl"
        require(is_stl, source, _MAKE, expected, error=DeclarationError, remedy=remedy)
        mesh = read_stl(name)
    order = slice(None) if np.prod(np.sign(factors)) > 0 else slice(None, None, -1)
    return Mesh(mesh.vertices * factors, mesh.triangles[:, order])


def write_stl(path: str | Path, mesh: Mesh) -> None:
    """Write a binary STL file, with the precision of four bytes that it has."""
    records = np.zeros(len(mesh.triangles), _TRIANGLE)
    records["corners"] = mesh.vertices[mesh.triangles]
    with replacing(path, binary=True) as stream:
        stream.write(bytes(80) + len(records).to_bytes(4, "little") + records.tobytes())


def _ascii_corners(content: bytes, name: str) -> FloatArray:
    """Return the corners of all triangles of an ASCII file."""
    first, *words = content.lower().split(b"vertex")
    try:
        points = np.array([[float(word) for word in each.split(maxsplit=3)[:3]] for each in words])
    except ValueError:
        points = np.empty((1, 0))
    if b"endsolid" not in (words or [first])[-1]:
        raise _refusal(name, "an ASCII file that ends with endsolid", "one that is cut off")
    if len(points) and (points.shape[1:] != (3,) or len(points) % 3):
        raise _refusal(name, "three numbers for each vertex, and three of these", "others")
    return points


def _joined(corners: FloatArray, name: str) -> Mesh:
    """Return the mesh of triangles whose corners lie one after the other."""
    if not len(corners) or not np.all(np.abs(corners) <= _FARTHEST):
        raise _refusal(name, "triangles with finite corners", "none, or infinite ones")
    vertices, numbers = np.unique(corners, axis=0, return_inverse=True)
    return Mesh(vertices, numbers.reshape(-1, 3))


def _refusal(name: str, expected: str, found: str) -> FlexureError:
    return DeclarationError(f"{_READ} from '{name}'", expected=expected, found=found)


def checked_mesh(vertices: npt.ArrayLike, triangles: npt.ArrayLike) -> Mesh:
    """Return a mesh of arrays that people give, else raise DeclarationError."""
    try:
        points = np.array(vertices, dtype=float)
        corners = np.array(triangles)
        fits = points.shape[1:] == corners.shape[1:] == (3,) and corners.dtype.kind in "iu"
        fits = bool(fits and points.size and corners.size and np.all(abs(points) <= _FARTHEST))
        fits = fits and bool(np.all((corners >= 0) & (corners < len(points))))
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise DeclarationError(
            _MAKE,
            expected="finite vertices of shape (n, 3), and triangles of shape (m, 3) of their"
            " numbers",
            found=f"{shown(vertices)} and {shown(triangles)}",
        )
    return Mesh(points, corners.astype(np.intp))


def solid_moments(mesh: Mesh, attempt: str) -> tuple[float, FloatArray, FloatArray]:
    """Return volume, center and unit inertia about the center of what a closed surface encloses.

    They are sums over tetrahedra with a common corner, whose integral of x xᵀ is
    ``V/20 (s sᵀ + a aᵀ + b bᵀ + c cᵀ)`` with the edges a, b, c from it and s = a + b + c.
    """
    starts = mesh.triangles.ravel()
    ends = np.roll(mesh.triangles, -1, axis=1).ravel()
    one_way = starts * len(mesh.vertices) + ends
    other_way = ends * len(mesh.vertices) + starts
    numbers, which, counts = np.unique(one_way, return_inverse=True, return_counts=True)
    alone = int(np.sum(~np.isin(other_way, numbers) | (counts[which] > 1)))
    demand = partial(require_that, attempt=attempt, error=DeclarationError)
    demand(
        not alone,
        expected="a closed surface: each edge of two triangles, which pass it in opposite"
        " directions",
        found=f"{alone} of {len(starts)} sides of triangles that have no such partner",
        remedy="Repair the mesh in the program that it comes from, or give mass, com and inertia"
        " as numbers",
    )
    places = np.unique(mesh.vertices, axis=0, return_inverse=True)[1].ravel()[mesh.triangles]
    turned = (places.argmin(axis=1)[:, None] + np.arange(3)) % 3  # the least corner comes first
    once = np.unique(np.take_along_axis(places, turned, axis=1), axis=0)
    demand(
        len(once) == len(places),
        expected="each triangle once, so that nothing is counted twice",
        found=f"{len(places) - len(once)} triangles that lie where others do",
        remedy="Take out the copies",
    )
    center = 0.5 * (mesh.vertices.min(axis=0) + mesh.vertices.max(axis=0))
    edges = (mesh.vertices - center)[mesh.triangles]
    volumes = np.linalg.det(edges) / 6.0
    volume, total = float(volumes.sum()), edges.sum(axis=1)
    demand(
        volume > _NOTHING * float(np.abs(volumes).sum()),
        expected="triangles counter-clockwise seen from outside, around some volume",
        found=f"a volume of {volume:.3g} m^3",
        remedy="Reverse the order of the corners of each triangle, or look for a wrong scale",
    )
    shift = volumes @ total / (4.0 * volume)
    squares = np.einsum("k,kni,knj->ij", volumes, edges, edges)
    squares += np.einsum("k,ki,kj->ij", volumes, total, total)
    spread = squares / (20.0 * volume) - np.outer(shift, shift)
    return volume, center + shift, np.trace(spread) * np.eye(3) - spread


def simplified(mesh: Mesh, most: int = MOST_TRIANGLES) -> Mesh:
    """Return a mesh of fewer triangles that looks alike: vertices of one cell of a grid are one."""
    cells = 64
    while len(mesh.triangles) > most and cells > 2:
        low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        width = max(float(np.max(high - low)), 1e-300) / cells
        keys = np.floor((mesh.vertices - low) / width).astype(int)
        _, cell, sizes = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        cell = cell.ravel()
        sums = np.stack([np.bincount(cell, each) for each in mesh.vertices.T], axis=1)
        corners = cell[mesh.triangles]
        a, b, c = corners.T
        kept = np.unique(corners[(a != b) & (b != c) & (c != a)], axis=0)
        mesh = Mesh(sums / sizes[:, None], kept)
        cells = cells * 3 // 4
    return mesh
