"""Closed loops as plain data, in the configuration in which they are closed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
DENSITY = 1.0  # kg/m of bars
GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A body whose frame is at its center of mass, and aligned with the world at the beginning."""

    position: Array
    mass: float
    moments: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Hinge:
    """A joint of the tree, whose coordinates are zero at the beginning.

    Bodies are numbers; None is the world. A ball has no axis.
    """

    kind: Literal["revolute", "prismatic", "ball"]
    parent: int | None
    child: int
    anchor: Array
    axis: Array | None = None


@dataclass(frozen=True, kw_only=True)
class Closing:
    """What closes a loop: a ball or a weld at a point, or a rod between two points."""

    kind: Literal["ball", "weld", "rod"]
    bodies: tuple[int, int]
    anchors: tuple[Array, Array]


@dataclass(frozen=True, kw_only=True)
class Spring:
    """A spring without damping between a point of the world and one of a body."""

    body: int
    anchors: tuple[Array, Array]
    free_length: float
    stiffness: float


@dataclass(frozen=True, kw_only=True)
class Loop:
    """Bodies, joints in the order of their children, what closes them, and what drives them.

    The drive is an effort along the first joint.
    """

    name: str
    bars: tuple[Bar, ...]
    hinges: tuple[Hinge, ...]
    closings: tuple[Closing, ...]
    gravity: tuple[float, float, float] = GRAVITY
    springs: tuple[Spring, ...] = ()
    drive: float = 0.0

    @property
    def axis(self) -> Array | None:
        """The axis that all hinges of a mechanism in a plane share; None for one in space."""
        axes: list[Any] = [each.axis for each in self.hinges if each.kind == "revolute"]
        level = [np.allclose(np.cross(axes[0], axis), 0.0) for axis in axes[1:]] if axes else []
        return axes[0] if level and all(level) else None


def plain(loop: Loop) -> dict[str, Any]:
    """Return a loop as what JSON can hold."""
    turned: dict[str, Any] = json.loads(json.dumps(asdict(loop), default=np.ndarray.tolist))
    return turned


def from_plain(data: Mapping[str, Any]) -> Loop:
    """Return the loop of a drawing that `plain` made data of; further entries are left alone."""

    def made(of: Any, entries: Mapping[str, Any]) -> Any:
        arrays = {
            key: np.array(value)
            for key, value in entries.items()
            if key in ("position", "anchor", "axis") and value is not None
        }
        return of(**{**entries, **arrays})

    closings = [
        each | {"bodies": tuple(each["bodies"]), "anchors": tuple(map(np.array, each["anchors"]))}
        for each in data["closings"]
    ]
    return Loop(
        name=data["name"],
        bars=tuple(made(Bar, each) for each in data["bars"]),
        hinges=tuple(made(Hinge, each) for each in data["hinges"]),
        closings=tuple(Closing(**each) for each in closings),
    )


class _Draft:
    """A mechanism that grows joint by joint."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.bars: list[Bar] = []
        self.hinges: list[Hinge] = []
        self.closings: list[Closing] = []

    def bar(self, a: Array, b: Array) -> int:
        """Add a bar between two points, thicker than a rod; return its number."""
        length = float(np.linalg.norm(b - a))
        mass = DENSITY * length
        moments = mass * (length**2 / 12.0) * self.rng.uniform(0.6, 1.0, 3)
        self.bars.append(Bar(position=0.5 * (a + b), mass=mass, moments=tuple(moments.tolist())))
        return len(self.bars) - 1

    def hinge(
        self, kind: Any, parent: int | None, child: int, anchor: Array, axis: Any = None
    ) -> None:
        """Add a joint of the tree."""
        unit = None if axis is None else np.asarray(axis) / np.linalg.norm(axis)
        self.hinges.append(Hinge(kind=kind, parent=parent, child=child, anchor=anchor, axis=unit))

    def close(self, kind: Any, a: int, b: int, at: Array, other: Array | None = None) -> None:
        """Close a loop."""
        anchors = at, at if other is None else other
        self.closings.append(Closing(kind=kind, bodies=(a, b), anchors=anchors))

    def plane(self) -> tuple[Array, Array]:
        """Return two directions of a plane that is not upright by chance, and not level."""
        R = np.linalg.qr(self.rng.normal(size=(3, 3)))[0]
        return R[0], R[1]


def _four_bar(draft: _Draft) -> None:
    """Add a crank, a coupler and a rocker in a plane in space."""
    x, y = draft.plane()
    lengths = np.array([0.3, 0.8, 0.6, 0.8]) * draft.rng.uniform(0.9, 1.1, 4)
    tip, pin, foot = _quadrangle(draft.rng, x, y, *lengths)
    axis = np.cross(x, y)
    crank, coupler = draft.bar(np.zeros(3), tip), draft.bar(tip, pin)
    rocker = draft.bar(foot, pin)
    draft.hinge("revolute", None, crank, np.zeros(3), axis)
    draft.hinge("revolute", crank, coupler, tip, axis)
    draft.hinge("revolute", None, rocker, foot, axis)
    draft.close("ball", coupler, rocker, pin)


def _quadrangle(
    rng: np.random.Generator, x: Array, y: Array, a: float, b: float, c: float, d: float
) -> tuple[Array, Array, Array]:
    """Return tip, pin and foot of a four-bar linkage whose shaft is at the origin."""
    angle = rng.uniform(0.5, 2.5)
    tip, foot = a * np.array([np.cos(angle), np.sin(angle)]), np.array([d, 0.0])
    gap = foot - tip
    far = float(np.linalg.norm(gap))
    along = (b**2 - c**2 + far**2) / (2.0 * far)
    up = np.sqrt(b**2 - along**2)
    pin = tip + (along * gap + up * np.array([-gap[1], gap[0]])) / far
    tip, pin, foot = (p[0] * x + p[1] * y for p in (tip, pin, foot))
    return tip, pin, foot


def _slider_crank(draft: _Draft) -> None:
    """Add a crank and a rod that push a slider."""
    x, y = draft.plane()
    angle, crank_length, rod_length = draft.rng.uniform([0.5, 0.25, 0.7], [2.5, 0.35, 0.9])
    tip = crank_length * (np.cos(angle) * x + np.sin(angle) * y)
    height = crank_length * np.sin(angle)
    pin = (crank_length * np.cos(angle) + np.sqrt(rod_length**2 - height**2)) * x
    axis = np.cross(x, y)
    crank, rod = draft.bar(np.zeros(3), tip), draft.bar(tip, pin)
    slider = draft.bar(pin, pin + 0.3 * x)
    draft.hinge("revolute", None, crank, np.zeros(3), axis)
    draft.hinge("revolute", crank, rod, tip, axis)
    draft.hinge("prismatic", None, slider, pin, x)
    draft.close("ball", rod, slider, pin)


def _spatial_four_bar(draft: _Draft) -> None:
    """Add a crank and a rocker on skew shafts, and a coupler with balls at its ends (RSSR)."""
    rng = draft.rng
    foot = np.array([0.9, 0.3, 0.1]) + rng.uniform(-0.1, 0.1, 3)
    tip = 0.3 * _direction(rng)
    pin = foot + np.array([0.1, 0.1, 0.5]) + rng.uniform(-0.1, 0.1, 3)
    crank, coupler = draft.bar(np.zeros(3), tip), draft.bar(tip, pin)
    rocker = draft.bar(foot, pin)
    draft.hinge("revolute", None, crank, np.zeros(3), np.cross(tip, _direction(rng)))
    draft.hinge("ball", crank, coupler, tip)
    draft.hinge("revolute", None, rocker, foot, np.cross(pin - foot, _direction(rng)))
    draft.close("ball", coupler, rocker, pin)


def _hung_chain(draft: _Draft) -> None:
    """Add two bars on balls whose end hangs on a rocker by a massless rod."""
    rng = draft.rng
    places = [np.zeros(3)]
    parent = None
    for _ in range(2):
        places.append(places[-1] + 0.5 * _direction(rng) * [1.0, 1.0, 0.3])
        bar = draft.bar(*places[-2:])
        draft.hinge("ball", parent, bar, places[-2])
        parent = bar
    top = places[-1] + np.array([0.2, -0.1, 0.7])
    foot = top + np.array([0.5, 0.2, 0.1])
    rocker = draft.bar(foot, top)
    draft.hinge("revolute", None, rocker, foot, np.cross(top - foot, _direction(rng)))
    assert parent is not None
    draft.close("rod", rocker, parent, top, places[-1])


def _seven_hinges(draft: _Draft) -> None:
    """Add a ring of the ground and six bars with seven hinges, cut through a bar."""
    rng = draft.rng
    angles = 2.0 * np.pi * np.arange(7) / 7.0
    ring = 0.5 * np.column_stack([np.cos(angles), np.sin(angles), rng.uniform(-0.4, 0.4, 7)])
    ring = ring - ring[0]
    axes = [_direction(rng) for _ in range(7)]
    middle = 0.5 * (ring[3] + ring[4])
    ends = []
    for places, hinges in (
        ([*ring[:4], middle], axes[:4]),
        ([*ring[:3:-1], middle], axes[:3:-1]),
    ):
        parent = None
        for a, b, axis in zip(places[:-1], places[1:], hinges, strict=True):
            bar = draft.bar(a, b)
            draft.hinge("revolute", parent, bar, a, axis)
            parent = bar
        assert parent is not None
        ends.append(parent)
    draft.close("weld", ends[0], ends[1], middle)


def _two_loops(draft: _Draft) -> None:
    """Add a four-bar linkage whose rocker drives a second one in the same plane."""
    _four_bar(draft)
    rng, (shaft, _, foot) = draft.rng, draft.hinges
    assert shaft.axis is not None
    pin, axis = draft.closings[0].anchors[0], shaft.axis
    x = (foot.anchor - shaft.anchor) / np.linalg.norm(foot.anchor - shaft.anchor)
    y = np.cross(axis, x)
    ground = foot.anchor + 0.8 * x
    top = ground + 0.6 * (np.cos(1.2) * x + rng.uniform(0.9, 1.0) * np.sin(1.2) * y)
    coupler, rocker = draft.bar(pin, top), draft.bar(ground, top)
    draft.hinge("revolute", foot.child, coupler, pin, axis)
    draft.hinge("revolute", None, rocker, ground, axis)
    draft.close("ball", coupler, rocker, top)


def _direction(rng: np.random.Generator) -> Array:
    vector: Array = rng.normal(size=3)
    return vector / np.linalg.norm(vector)


KINDS = {
    "four-bar": _four_bar,
    "slider-crank": _slider_crank,
    "RSSR": _spatial_four_bar,
    "chain on a rod": _hung_chain,
    "seven hinges": _seven_hinges,
    "two loops": _two_loops,
}


def random_loop(number: int) -> Loop:
    """Draw one of the loops; kinds take turns."""
    kind = list(KINDS)[number % len(KINDS)]
    draft = _Draft(np.random.default_rng(number))
    KINDS[kind](draft)
    order = sorted(draft.hinges, key=lambda hinge: hinge.child)
    return Loop(
        name=f"{kind} {number}",
        bars=tuple(draft.bars),
        hinges=tuple(order),
        closings=tuple(draft.closings),
    )
