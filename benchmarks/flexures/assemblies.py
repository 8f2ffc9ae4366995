"""Bodies and beams as plain data, which every side of a comparison builds for itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Section:
    """What beams are of: geometry, and an isotropic material."""

    E: float
    G: float
    density: float
    area: float
    moments: tuple[float, float]
    torsion: float
    shear_factor: float


@dataclass(frozen=True, kw_only=True)
class RigidBody:
    """A body whose origin is its center of mass and whose frame is aligned with the world."""

    position: Array
    mass: float
    moments: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """An unstressed straight beam: where it begins, how it stands, and the bodies that it joins.

    Bodies are numbers into the list of an assembly; None is the world.
    """

    start: Array
    rotation: Array
    length: float
    section: Section
    bodies: tuple[int | None, int | None]

    @property
    def end(self) -> Array:
        """Where it ends."""
        return self.start + self.length * self.rotation[:, 0]


@dataclass(frozen=True, kw_only=True)
class Assembly:
    """Bodies on beams, with a dead force and moment on the last body."""

    name: str
    bodies: tuple[RigidBody, ...]
    leaves: tuple[Leaf, ...]
    force: Array = field(default_factory=lambda: np.zeros(3))
    moment: Array = field(default_factory=lambda: np.zeros(3))

    @property
    def planar(self) -> bool:
        """Whether nothing leaves the plane z = 0."""
        return self.name.startswith("planar")


def plain(assembly: Assembly) -> dict[str, Any]:
    """Return an assembly as what JSON can hold."""
    turned: dict[str, Any] = json.loads(json.dumps(asdict(assembly), default=np.ndarray.tolist))
    return turned


def from_plain(data: Mapping[str, Any]) -> Assembly:
    """Return the assembly that `plain` made data of; further entries are left alone."""
    bodies = [
        RigidBody(
            position=np.array(each["position"]), mass=each["mass"], moments=tuple(each["moments"])
        )
        for each in data["bodies"]
    ]
    leaves = [
        Leaf(
            start=np.array(each["start"]),
            rotation=np.array(each["rotation"]),
            length=each["length"],
            section=Section(**each["section"] | {"moments": tuple(each["section"]["moments"])}),
            bodies=tuple(each["bodies"]),
        )
        for each in data["leaves"]
    ]
    return Assembly(
        name=data["name"],
        bodies=tuple(bodies),
        leaves=tuple(leaves),
        force=np.array(data["force"]),
        moment=np.array(data["moment"]),
    )


def rectangle(thickness: float, width: float, E: float, nu: float, density: float) -> Section:
    """Return a rectangular section, with a textbook's approximation for torsion."""
    a, b = max(thickness, width), min(thickness, width)
    return Section(
        E=E,
        G=E / (2.0 * (1.0 + nu)),
        density=density,
        area=thickness * width,
        moments=(thickness * width**3 / 12.0, width * thickness**3 / 12.0),
        torsion=a * b**3 * (1.0 / 3.0 - 0.21 * b / a * (1.0 - (b / a) ** 4 / 12.0)),
        shear_factor=10.0 * (1.0 + nu) / (12.0 + 11.0 * nu),
    )


def random_assembly(seed: int, *, planar: bool) -> Assembly:
    """Draw one to three bodies, each on a beam, and some beams more, closed loops among them."""
    rng = np.random.default_rng(seed)
    size = np.array([1.0, 1.0, 0.0 if planar else 1.0])
    thickness, width = rng.uniform(0.02, 0.04, 2).tolist()
    section = rectangle(thickness, width, E=2e7, nu=0.3, density=50.0)
    bodies: list[RigidBody] = []
    leaves: list[Leaf] = []

    def add_leaf(start: Array, a: int | None, c: int) -> None:
        along = bodies[c].position + size * rng.uniform(-0.1, 0.1, 3) - start
        along = along * size
        length = float(np.linalg.norm(along))
        x = along / length
        y = np.cross([0.0, 0.0, 1.0], x)
        rotation = np.column_stack([x, y / np.linalg.norm(y), np.cross(x, y / np.linalg.norm(y))])
        if not planar:
            rotation = rotation @ Rotation.from_euler("x", rng.uniform(-1.5, 1.5)).as_matrix()
        leaves.append(
            Leaf(start=start, rotation=rotation, length=length, section=section, bodies=(a, c))
        )

    for k in range(int(rng.integers(1, 4))):
        direction = size * rng.normal(size=3) + [1.5, 0.0, 0.0]
        before = bodies[-1].position if bodies else np.zeros(3)
        position = before + direction / np.linalg.norm(direction)
        moments = tuple(rng.uniform(0.01, 0.02, 3).tolist())
        bodies.append(RigidBody(position=position, mass=rng.uniform(0.5, 2.0), moments=moments))
        start = before + size * rng.uniform(-0.1, 0.1, 3) if bodies[:-1] else np.zeros(3)
        add_leaf(start, k - 1 if k else None, k)
    for _ in range(int(rng.integers(1, 3))):
        c = int(rng.integers(len(bodies)))
        ground = bodies[c].position + size * (rng.choice([-1.0, 1.0], 3) * rng.uniform(0.4, 0.8, 3))
        add_leaf(ground, None, c)
    scale = section.E * section.moments[1]
    force, moment = scale * size * rng.normal(size=3), 0.5 * scale * rng.normal(size=3)
    if planar:
        moment = moment * [0.0, 0.0, 1.0]
    kind = "planar" if planar else "spatial"
    return Assembly(
        name=f"{kind} {seed}",
        bodies=tuple(bodies),
        leaves=tuple(leaves),
        force=1.5 * force,
        moment=moment,
    )
