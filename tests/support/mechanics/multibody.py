"""Random mechanisms that are physically possible, and what the algorithms say about one state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from flexure.blocks.math import MassProperties, RigidTransform, rotation_from_rotation_vector
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.joints.weld import WeldJoint
from flexure.blocks.multibody.trees.articulated_body import articulate
from flexure.blocks.multibody.trees.coupled_articulation import mass_matrix
from flexure.blocks.multibody.trees.inverse_dynamics import inverse_dynamics
from flexure.blocks.multibody.trees.kinematics import calc_motions, calc_placements, world_inertias
from flexure.blocks.multibody.trees.topology import Topology, make_topology
from tests.support.mechanics.joints import JOINTS

#: Makes a joint of its name between two frames.
MakeJoint = Callable[[str, Frame | Body, Frame | Body, np.random.Generator], Joint]


def random_pose(rng: np.random.Generator) -> RigidTransform:
    """Draw a pose that is turned by less than 2 rad and moved by less than 2 m."""
    R = rotation_from_rotation_vector(rng.uniform(-1.1, 1.1, 3))
    return RigidTransform(R, rng.uniform(-1.1, 1.1, 3))


def _maker(name: str) -> MakeJoint:
    kind = JOINTS[name]
    return lambda name, F, M, rng: kind.make(name, F, M, **kind.draw(rng))


#: Every kind of joint.
KINDS: Mapping[str, MakeJoint] = {
    **{name: _maker(name) for name in JOINTS},
    "weld": lambda name, F, M, rng: WeldJoint(name, F, M, random_pose(rng)),
}


def random_inertia(rng: np.random.Generator) -> SpatialInertia:
    """Draw a cloud of points that is rigid, and return its inertia."""
    masses, points = rng.uniform(0.1, 0.6, 5), rng.uniform(-0.6, 0.6, (5, 3))
    com = masses @ points / masses.sum()
    arms = points - com
    moments = [m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, arms, strict=True)]
    return SpatialInertia(float(masses.sum()), com, sum(moments, np.zeros((3, 3))))


@dataclass(frozen=True)
class State:
    """A tree that moves, with everything the algorithms take."""

    topology: Topology
    q: Any
    v: Any
    placements: list[Placement]
    motions: list[BodyMotion]
    inertias: list[MassProperties]
    mass_properties: Sequence[MassProperties]

    def mass_matrix(self) -> Any:
        """Return M."""
        return mass_matrix(self.topology, self.placements, self.inertias)

    def no_forces(self) -> list[Any]:
        """Return zero for each body."""
        return [np.zeros(6)] * len(self.topology.bodies)

    def inverse_dynamics(self, vdot: Any, forces: Sequence[Any] | None = None) -> Any:
        """Return the generalized forces that accelerations need."""
        return inverse_dynamics(
            self.topology,
            self.placements,
            self.motions,
            self.inertias,
            self.no_forces() if forces is None else forces,
            vdot,
        )

    def forward_dynamics(
        self,
        tau: Any,
        forces: Sequence[Any] | None = None,
        mobile: Any | None = None,
        reflected: Any | None = None,
        gravity: Any | None = None,
    ) -> Any:
        """Return the accelerations under forces."""
        count = len(self.topology.mobilizers)
        return articulate(
            self.topology,
            self.placements,
            self.mass_properties,
            self.q,
            self.v,
            np.zeros(3) if gravity is None else gravity,
            dict(enumerate(self.no_forces() if forces is None else forces)),
            tau,
            np.ones(count) if mobile is None else mobile,
            [0.0] * count if reflected is None else list(reflected),
        ).rates()


@dataclass(frozen=True)
class Tree:
    """A topology with the mass properties of its bodies but the world."""

    topology: Topology
    mass_properties: Sequence[MassProperties]

    def at(self, q: Any, v: Any) -> State:
        """Return the state with given positions and velocities."""
        placements = calc_placements(self.topology, q)
        motions = calc_motions(self.topology, placements, v, q)
        inertias = world_inertias(placements, self.mass_properties)
        return State(self.topology, q, v, placements, motions, inertias, self.mass_properties)

    def position_rates(self, q: Any, v: Any) -> Any:
        """Return q̇."""
        rates = [
            mobilizer.joint.calc_position_rates(q[mobilizer.q], v[mobilizer.v])
            for mobilizer in self.topology.mobilizers
        ]
        return np.concatenate([np.zeros(0), *rates])

    def random_positions(self, rng: np.random.Generator) -> Any:
        """Draw positions away from gimbal lock."""
        parts = [
            mobilizer.joint.nearest_positions(random_pose(rng))
            for mobilizer in self.topology.mobilizers
        ]
        return np.concatenate([np.zeros(0), *parts])

    def random_state(self, rng: np.random.Generator) -> State:
        """Draw a state."""
        q = self.random_positions(rng)
        return self.at(q, rng.normal(size=self.topology.num_velocities))


def make_tree(bodies: Sequence[Body], joints: Sequence[Joint]) -> Tree:
    """Make a tree of a world and bodies that have inertias."""
    properties = [body.inertia.about_origin() for body in bodies[1:] if body.inertia is not None]
    return Tree(make_topology(bodies, joints), properties)


def random_tree(
    rng: np.random.Generator,
    count: int,
    *,
    kinds: Sequence[str] = tuple(KINDS),
    base_kinds: Sequence[str] | None = None,
    random_frames: bool = True,
) -> Tree:
    """Draw a forest of bodies and joints, some of them reversed, and none in its natural order.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws everything.
    count : int
        Number of bodies beside the world.
    kinds : sequence of str
        Kinds of joints to choose from, keys of `KINDS`.
    base_kinds : sequence of str, optional
        Those of the joints that are on the world; ``kinds`` when omitted.
    random_frames : bool
        Whether joints are at random frames on the bodies; otherwise at the frames of the bodies.
    """
    names = [f"body{k}" for k in range(count)]
    drawn = [Body(name, random_inertia(rng)) for name in names]
    connected = [Body("world")]
    connected[0].number = 0
    joints: list[Joint] = []
    for k, body in enumerate(drawn):
        # Most bodies hang on one of the last three, so that some branches become long.
        other = connected[-int(rng.integers(1, min(len(connected), 3) + 1))]
        if rng.random() < 0.15:
            other = connected[0]
        ends = [body, other] if rng.random() < 0.5 else [other, body]
        F, M = (
            Frame(f"{end.name}_frame{k}", end, random_pose(rng)) if random_frames else end
            for end in ends
        )
        choice = base_kinds if base_kinds and other.is_world else kinds
        kind = str(rng.choice(list(choice)))
        joints.append(KINDS[kind](f"{kind}{k}", F, M, rng))
        connected.append(body)
    order = rng.permutation(count)
    bodies = [connected[0], *(drawn[k] for k in order)]
    return make_tree(bodies, [joints[k] for k in rng.permutation(count)])


def any_tree(most: int, examples: int = 30) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test of ``(seed, count, random_frames)``, as `drawn` takes them, on many trees."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        numbers = {"seed": st.integers(0, 2**32 - 1), "count": st.integers(1, most)}
        return settings(max_examples=examples)(given(**numbers, random_frames=st.booleans())(test))

    return decorate


def drawn(
    seed: int, count: int, random_frames: bool = True
) -> tuple[Tree, State, np.random.Generator]:
    """Draw a tree and a state of it, and return them with the generator."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, count, random_frames=random_frames)
    return tree, tree.random_state(rng), rng


def random_forces(state: State, rng: np.random.Generator) -> list[Any]:
    """Draw a force on each body, also on the world, which it does not move."""
    return [rng.normal(size=6) for _ in state.topology.bodies]


def scale_of(values: Any) -> float:
    """Return the size of the greatest of some values, or one."""
    return max(1.0, float(np.max(np.abs(values), initial=0.0)))
