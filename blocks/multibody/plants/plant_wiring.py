"""The completion of a plant: missing joints, and wires between tree, elements and energy ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from flexure.blocks.math import compose_transforms
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.constrained_dynamics.tree import MultibodyTree
from flexure.blocks.multibody.constraints import (
    Constraint,
    FrameConstraint,
    PrescribedMotion,
    StickingConstraint,
    SwitchedConstraint,
    UnilateralConstraint,
)
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement, ForceElement
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint
from flexure.blocks.multibody.plants.energy_ledger import EnergyLedger, EnergyTotals
from flexure.blocks.multibody.trees.coupled_articulation import CouplingInput
from flexure.blocks.multibody.trees.topology import JointGraph, bodies_in_plane, default_poses
from flexure.blocks.multibody.trees.tree_inputs import Actuator, ForceInput, InertiaInput
from flexure.diagrams.building.builder import DiagramBuilder
from flexure.diagrams.checks.errors import DeclarationError, WiringError, quoted


def completed_joints(
    graph: JointGraph,
    bodies: Sequence[Body],
    given: Sequence[Joint],
    elements: Iterable[ForceElement],
    inside: Iterable[Any],
) -> list[Joint]:
    """Return all joints of a plant, with those of bodies that float and of nodes of elements.

    The graph is that of the given joints. All force elements check how they are assembled and make
    joints for their nodes. ``inside`` is what elements have inside: nodes, which are bodies, and
    segments.
    """
    world = bodies[0]
    nodes = [part for part in inside if isinstance(part, Body)]
    joints = [*given, *_floating_joints(graph, bodies, given, nodes)]
    default = BodyForceElement.check_assembly
    asking = [
        each
        for each in elements
        if isinstance(each, BodyForceElement) and type(each).check_assembly is not default
    ]
    if asking:
        graph = JointGraph(bodies, joints)
        poses = default_poses(graph, world)
    for element in asking:
        ends = [(poses[each.body], each.frame.X_BF) for each in element.attachments]
        at = [compose_transforms(*each) for each in ends]
        element.check_assembly(at)
        made = element.make_joints(world, at, partial(bodies_in_plane, graph, poses))
        for joint in made:
            graph.add_joint(joint)
        if made:
            poses = default_poses(graph, world)
        joints += made
    for index, joint in enumerate(joints[len(given) :], start=len(given)):
        joint.index = index
        joint.complete()
    return joints


def _floating_joints(
    graph: JointGraph, bodies: Sequence[Body], joints: Collection[Joint], anchors: Iterable[Body]
) -> list[Joint]:
    """Make a floating joint for one body of each group that no joint or anchor connects."""

    def connected(body: Body) -> set[Body]:
        return {body, *(outboard for _, _, outboard in graph.outwards(body))}

    children, names = {each.child_body for each in joints}, {each.name for each in joints}
    world = bodies[0]
    reached = set[Body]().union(*map(connected, [world, *anchors]))
    made: list[Joint] = []
    for body in sorted(bodies, key=children.__contains__):  # no child of a joint first
        if body not in reached:
            reached |= connected(body)
            name = body.name
            while name in names:
                name += "_free"
            made.append(QuaternionFloatingJoint(name, world, body))
    return made


#: Names of the blocks that a plant has in any case.
TREE, TOTALS = "tree", "totals"
#: Their outputs that are outputs of every plant.
OUTPUTS = {
    TREE: (
        *("positions", "velocities", "accelerations", "kinetic_energy", "input_power"),
        *("momentum", "center_of_mass", "center_of_mass_velocity"),
    ),
    TOTALS: (
        *("potential_energy", "mechanical_energy"),
        *("conservative_power", "non_conservative_power"),
    ),
}
#: What totals and ledgers call energies and powers that are not those of force elements.
TERMS = ("gravity", "damping", "input", "input_impacts", "kinetic", "potential", "mechanical")
#: Ends the names of inputs of the tree, so that they are not those of anything else in it.
_EFFORT, _INERTIA, _COUPLING = "_effort", "_inertia", "_coupling"


def force_inputs(
    elements: Iterable[ForceElement], motors: Iterable[Actuator], external: Mapping[str, Body]
) -> list[ForceInput]:
    """Return the inputs of the tree through which forces come in."""
    inputs = []
    for element in elements:
        inputs += [
            ForceInput(f"{element.name}_on_{end.joint.name}", end.joint, is_internal=True)
            for end in element.joint_ends
        ]
        if isinstance(element, BodyForceElement):
            inputs += [
                ForceInput(f"{acting.name}_on_{each.label}", each.body, is_internal=True)
                for acting in element.acting
                for each in acting.attachments
                if not each.body.is_world
            ]
    inputs += [
        ForceInput(f"{each.name}{_EFFORT}", each.joint, limit=each.effort_limit) for each in motors
    ]
    return inputs + [ForceInput(f"{name}{_EFFORT}", body) for name, body in external.items()]


def inertia_inputs(elements: Iterable[ForceElement]) -> list[InertiaInput | CouplingInput]:
    """Return the inputs of the tree for elements that have mass."""
    elements = tuple(elements)
    couplings = [
        CouplingInput(f"{element.name}{_COUPLING}", element.coupled, element.name)
        for element in elements
        if element.coupled
    ]
    return couplings + [
        InertiaInput(f"{acting.name}_on_{each.label}{_INERTIA}", each.body)
        for element in elements
        if isinstance(element, BodyForceElement)
        for acting in element.acting
        if acting.inertia_ports
        for each in acting.attachments
        if not each.body.is_world
    ]


def wire_element(wiring: DiagramBuilder, element: ForceElement) -> None:
    """Add a force element, or all blocks of one that is divided, and connect it with the tree."""
    wiring.add(element)
    for end in element.joint_ends:
        wiring.connect(f"{TREE}.{end.joint.name}_q", end.position)
        wiring.connect(f"{TREE}.{end.joint.name}_v", end.velocity)
        wiring.connect(end.force, f"{TREE}.{element.name}_on_{end.joint.name}")
    if element.coupled:
        wiring.connect(element.coupled_inertia, f"{TREE}.{element.name}{_COUPLING}")
    if isinstance(element, BodyForceElement):
        for segment in element.inside.segments:
            wiring.add(segment)
        for each in (element, *element.inside.segments):
            _wire_motions(wiring, each)
        for each in element.acting:
            _wire_forces(wiring, each)
        for source, target in element.inside.wires:
            wiring.connect(source, target)


def _wire_motions(wiring: DiagramBuilder, element: BodyForceElement) -> None:
    """Pass an element the motion of the bodies that it is attached to."""
    for each in element.attachments:
        expansion = each.body.expansion
        if expansion is not None and each.strain is not None:
            wiring.connect(expansion.strain, each.strain)
        elif expansion is not None:
            raise DeclarationError(
                f"Cannot let body '{each.body.name}' expand",
                expected="add_thermal_expansion before elements are attached",
                found=f"'{element.name}', which was attached before",
            )
        if each.pose is not None and each.velocity is not None:
            wiring.connect(f"{TREE}.{each.body.name}_pose", each.pose)
            wiring.connect(f"{TREE}.{each.body.name}_spatial_velocity", each.velocity)


def add_expansions(wiring: DiagramBuilder, tree: MultibodyTree) -> None:
    """Add the thermal strains of bodies; refuse joints and constraints that do not follow them."""
    holding = [each for each in tree.joints if each.num_velocities < 6]
    joints = [each for each in holding if not each.child_body.is_node]
    for body in tree.topology.bodies:
        if body.expansion is None:
            continue
        moved: list[Joint | Constraint] = [each for each in tree.constraints if body in each.bodies]
        for joint in joints:
            frames = joint.frame_on_parent, joint.frame_on_child
            if any(each.body is body and np.any(each.X_BF.p) for each in frames):
                moved.append(joint)
        if moved:
            raise DeclarationError(
                f"Cannot let body '{body.name}' expand",
                expected="joints at its origin only, and no constraints",
                found=f"{quoted(each.name for each in moved)}, which does not follow",
                remedy="Put the origin of the body there, or hold it by flexures",
            )
        wiring.add(body.expansion)
        wiring.export_input(body.expansion.temperature, name=f"{body.name}.temperature")


def _wire_forces(wiring: DiagramBuilder, element: BodyForceElement) -> None:
    """Let an element act on the bodies that it is attached to, and add to their inertia."""
    for ports, ending in ((element.force_ports, ""), (element.inertia_ports, _INERTIA)):
        for each, port in zip(element.attachments, ports, strict=False):
            if not each.body.is_world:
                wiring.connect(port, f"{TREE}.{element.name}_on_{each.label}{ending}")


def wire_energies(
    wiring: DiagramBuilder,
    elements: Iterable[ForceElement],
    tree: MultibodyTree,
    ledger: str | None,
) -> None:
    """Add the block with the totals, and the ledger if there is one."""
    constraints = tree.constraints
    names = [element.name for element in elements]
    frictions: dict[str, Constraint] = {
        each.name: each for each in constraints if isinstance(each, StickingConstraint)
    }
    frictions |= {  # beside what impacts dissipate
        f"{each.name}_sliding": each
        for each in constraints
        if isinstance(each, UnilateralConstraint) and each.has_friction
    }
    stops = [each.name for each in constraints if isinstance(each, UnilateralConstraint)]
    if tree.input_impacts is not None:
        stops.append("input_impacts")
    stores, drains = ["gravity", *names], [*names, "damping", *frictions]
    totals = wiring.add(EnergyTotals(TOTALS, stores, drains))
    blocks: list[tuple[Any, str]] = [(totals, "loss")]
    if ledger is not None:
        made = wiring.add(
            EnergyLedger(
                ledger, stores, [*drains, "input"], stops, projections=tree.projection is not None
            )
        )
        blocks.append((made, "work_rate"))
    for block, loss in blocks:
        wiring.connect(f"{TREE}.kinetic_energy", f"{block.name}.kinetic_energy")
        wiring.connect(f"{TREE}.gravity_energy", f"{block.name}.gravity_energy")
        wiring.connect(f"{TREE}.gravity_power", f"{block.name}.gravity_power")
        wiring.connect(f"{TREE}.damping_power", f"{block.name}.damping_{loss}")
        for name, each in frictions.items():
            power = f"{TREE}.{each.name}_non_conservative_power"
            wiring.connect(power, f"{block.name}.{name}_{loss}")
        for element in elements:
            name = f"{block.name}.{element.name}"
            wiring.connect(element.stored_energy, f"{name}_energy")
            wiring.connect(element.conservative_power, f"{name}_power")
            wiring.connect(element.non_conservative_power, f"{name}_{loss}")
    if ledger is not None:
        wiring.connect(f"{TREE}.input_power", f"{ledger}.input_work_rate")
        for name in stops:
            wiring.connect(f"{TREE}.{name}_dissipated_energy", f"{ledger}.{name}_dissipated")


def export_ports(
    wiring: DiagramBuilder,
    tree: MultibodyTree,
    elements: Iterable[ForceElement],
    inputs: Sequence[str],
) -> None:
    """Export the ports that users of the plant see; those of nodes and segments are not."""
    for name in inputs:
        wiring.export_input(f"{TREE}.{name}{_EFFORT}", name=name)
    wiring.export_input(f"{TREE}.generalized_force", name="generalized_force")
    for joint in tree.joints:
        if not joint.child_body.is_node:
            _export_joint(wiring, tree, joint)
    for body in tree.topology.bodies[1:]:
        if body.is_node:
            continue
        for quantity in ("pose", "position", "spatial_velocity", "spatial_acceleration"):
            name = f"{body.name}.{quantity}"
            wiring.export_output(f"{TREE}.{body.name}_{quantity}", name)
    for constraint in tree.constraints:
        _export_constraint(wiring, constraint)
    for element in elements:
        _export_element(wiring, element)
    for block, names in OUTPUTS.items():
        for name in names:
            wiring.export_output(f"{block}.{name}", name)


def _export_element(wiring: DiagramBuilder, element: ForceElement) -> None:
    """Export the outputs of a force element, and the inputs that drive it."""
    for port in element.output_ports:
        wiring.export_output(port, f"{element.name}.{port.name}")
    for drive in element.drive_ports if isinstance(element, BodyForceElement) else ():
        wiring.export_input(drive, name=f"{element.name}.{drive.name}")


def _export_joint(wiring: DiagramBuilder, tree: MultibodyTree, joint: Joint) -> None:
    """Export reaction, positions and velocities of a joint."""
    wiring.export_output(tree.reaction_of(joint), f"{joint.name}.reaction")
    if joint.num_velocities:
        position, velocity = joint.PORT_NAMES
        wiring.export_output(f"{TREE}.{joint.name}_q", f"{joint.name}.{position}")
        wiring.export_output(f"{TREE}.{joint.name}_v", f"{joint.name}.{velocity}")


def _export_constraint(wiring: DiagramBuilder, constraint: Constraint) -> None:
    """Export error and forces of a constraint, and the input by which it prescribes a motion."""
    name = constraint.name
    if isinstance(constraint, PrescribedMotion):
        wiring.export_input(f"{TREE}.{constraint.input_name}", name=name)
    shown = ["error", "multipliers"]
    if constraint.contact_equation is not None:
        shown += ["contact_force", "lift_off"]
    if isinstance(constraint, FrameConstraint):
        shown.append("reaction")
    if isinstance(constraint, SwitchedConstraint):
        shown = [*constraint.outputs, "multipliers"]
    for what in shown:
        wiring.export_output(f"{TREE}.{name}_{what}", f"{name}.{what}")
    if isinstance(constraint, PrescribedMotion):
        wiring.export_output(f"{TREE}.{name}_multipliers", f"{name}.effort")


def refuse_taken(attempt: str, name: str, taken: Mapping[str, Any]) -> None:
    """Refuse a name that is taken; those that belong to None are used by the plant itself."""
    if name in taken:
        is_own = taken[name] is None
        raise WiringError(
            attempt,
            expected="a name that is not taken",
            found=f"'{name}', which "
            + ("the plant itself uses" if is_own else f"is the name of {taken[name]!r}"),
            remedy="Choose another name" if is_own else "Give one of them another name",
        )
