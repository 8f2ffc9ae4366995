"""Elastic bodies of any shape in plants, from finite element models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.flexures.bodies.flexible_element import FlexibleElement, ModalJoint
from flexure.blocks.flexures.bodies.plate_mesh import PlateMesh, plate_matrices
from flexure.blocks.flexures.bodies.recovery import equivalent, recovery_of
from flexure.blocks.flexures.bodies.reduction import (
    CouplingKind,
    ReducedBody,
    given_matrices,
    reduce_body,
)
from flexure.blocks.flexures.bodies.solid_mesh import (
    NodeSet,
    nodes_of,
    solid_matrices,
    warn_of_millimeters,
)
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.multibody.bodies.bodies import Body, FrameLike
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint
from flexure.blocks.multibody.plants.part_group import PartGroup
from flexure.diagrams.checks.arguments import count_of, mapping, one_of, require, require_that
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.values.arrays import FloatArray, as_numbers, bounded, check_bounds, check_name

_ISOTROPIC = 0.05  # of the shear modulus: what tables of isotropic materials differ by
_LARGE = 20_000  # nodes from which on a reduction takes less time in several threads


class FlexibleBody(PartGroup):
    """An elastic body of any shape, from a finite element model.

    It is added to a plant by `PlantBuilder.add_assembly`.

    The body has interfaces: node sets that each move with a frame, on which joints, loops, bodies
    and other flexures act. After Craig and Bampton its coordinates are the motions of the
    interfaces, and amplitudes of the lowest modes with all interfaces held. It moves by any amount
    with a floating frame at its first interface, and its kinetic energy has all terms up to the
    second order in the deformation: inertia that depends on the deformation, Coriolis, centrifugal
    and gyroscopic forces. Energy and momentum are kept to the accuracy of the integration.

    Rotations between interfaces should stay below 0.1 rad. Bodies of meshes and plates become
    shorter as they bend: they stiffen by forces on their interfaces and by spin, and buckle.
    Matrices hold no stress, so that bodies of matrices do neither: at 0.1 of the first angular
    frequency a spin changes that frequency by about 0.6 %, and above 0.3 it is refused. The output
    ``utilization`` compares rotations and such a spin with these limits, and `check_limits` and
    statics warn. Chains of several bodies stiffen, since their interfaces turn.

    Made by `from_matrices`, `from_mesh` or `from_plate`. In the plant the block ``<name>`` has the
    outputs ``deformation``, energies and ``utilization``, and the parameter ``damping_ratio`` of
    the modes with the first interface held. `stresses` and `equivalent_stress` read a context.

    Parameters
    ----------
    name : str
        Name of the assembly, the beginning of all names in it.
    reduced : ReducedBody
        The reduced model.
    frames : mapping of str to Frame or Body, optional
        Interfaces that are frames on bodies of the plant, such as the world. They are parallel to
        the axes of the mesh while it is unstressed. Other interfaces get a body without mass of
        their own, named ``<name>_<interface>``, with the origin in the middle of their nodes.
    damping_ratio : float or array_like
        Ratio >= 0 of critical damping, of all modes or of each.

    Attributes
    ----------
    interfaces : dict of str to Body
        The bodies of the interfaces that are not in ``frames``.
    element : FlexibleElement
        The block that has mass and stiffness.
    reduced : ReducedBody
        The reduced model.

    Raises
    ------
    DeclarationError
        When names are taken or a frame is missing.
    ValueRefusedError
        When matrices, interfaces or numbers do not fit.

    See Also
    --------
    Beam : A slender beam, also with large deflections.

    Examples
    --------
    A bar of three by two by two nodes, with unit masses at the nodes and springs between all:

    >>> import flexure as fx
    >>> nodes = np.array([[x, y, z] for x in (0, 1, 2) for y in (0, 1) for z in (0, 1)], float)
    >>> K = np.zeros((36, 36))
    >>> for i in range(12):
    ...     for j in range(i):
    ...         e = (nodes[i] - nodes[j]) / np.linalg.norm(nodes[i] - nodes[j])
    ...         row = np.zeros((12, 3))
    ...         row[i], row[j] = e, -e
    ...         K += 1e4 * np.outer(row, row)
    >>> ends = {"left": [0, 1, 2, 3], "right": [8, 9, 10, 11]}
    >>> bar = FlexibleBody.from_matrices("bar", np.eye(36), K, nodes, ends, modes=2)
    >>> builder = fx.PlantBuilder("bench")
    >>> _ = builder.add_assembly(bar)
    >>> hinge = fx.RevoluteJoint("hinge", builder.world, bar.interfaces["left"], axis=(0, 1, 0))
    >>> _ = builder.add_joint(hinge)
    >>> plant = builder.build()
    >>> [joint.name for joint in plant.joints]
    ['hinge', 'bar_right', 'bar_modes']
    """

    def __init__(
        self,
        name: str,
        reduced: ReducedBody,
        *,
        frames: Mapping[str, FrameLike] | None = None,
        damping_ratio: npt.ArrayLike = 0.0,
    ) -> None:
        self.name = check_name(name, "an assembly")
        attempt = f"Cannot make FlexibleBody '{name}'"
        wanted = "a ReducedBody, as from_matrices makes it"
        require(isinstance(reduced, ReducedBody), reduced, attempt, wanted)
        self.reduced = reduced
        given = mapping({} if frames is None else frames, "frames by interfaces", attempt)
        for interface in given:
            one_of(interface, reduced.interfaces, "frames", attempt)
        ratios = as_numbers(damping_ratio, attempt)
        count = len(reduced.stiffness)
        fits = ratios.shape in ((), (count,))
        wanted = f"one damping ratio, or {count} of them"
        require_that(fits, attempt, wanted, f"shape {ratios.shape}")
        check_bounds(ratios, attempt, lower=0.0)
        self.joints: list[Joint] = []
        self.bodies: list[Body] = []
        self.interfaces: dict[str, Body] = {}
        places: dict[str, FrameLike] = {}
        first = reduced.interfaces[0]
        for k, interface in enumerate(reduced.interfaces):
            if interface in given:
                places[interface] = given[interface]
                continue
            body = Body(f"{name}_{interface}", SpatialInertia.point_mass(0.0))
            self.bodies.append(body)
            self.interfaces[interface] = places[interface] = body
            if k:
                joint = QuaternionFloatingJoint(body.name, places[first], body)
                joint.default_pose = np.eye(3), reduced.points[k] - reduced.points[0]
                self.joints.append(joint)
        modal = None
        if reduced.num_modes:
            carrier = Body(f"{name}_modes")
            modal = ModalJoint(carrier.name, places[first], carrier, reduced.num_modes)
            self.bodies.append(carrier)
            self.joints.append(modal)
        self.element = FlexibleElement(name, reduced, places, modal, ratios)
        self.force_elements = [self.element]

    @classmethod
    def from_matrices(
        cls,
        name: str,
        M: Any,
        K: Any,
        nodes: npt.ArrayLike,
        interfaces: Mapping[str, npt.ArrayLike],
        *,
        modes: int = 6,
        coupling: CouplingKind = "rigid",
        recovery: tuple[npt.ArrayLike, Any] | None = None,
        frames: Mapping[str, FrameLike] | None = None,
        damping_ratio: npt.ArrayLike = 0.0,
    ) -> FlexibleBody:
        """Return the body of a mass and a stiffness matrix, reduced to its interfaces and modes.

        Parameters
        ----------
        name : str
            Name of the assembly.
        M, K : array_like or sparse array, shape (3 m, 3 m)
            Mass matrix in kg and stiffness matrix in N/m of the free body: x, y, z of each node.
        nodes : array_like, shape (m, 3)
            Positions of the nodes in m.
        interfaces : mapping of str to array_like of int
            Numbers of the nodes of each interface, at least three that are not on a line. The
            first one carries the floating frame.
        modes : int
            Number of modes with all interfaces held.
        coupling : {"rigid", "averaged"}
            Whether the nodes of an interface move as one rigid body, or the frame moves with the
            rigid motion that fits the nodes best, which does not stiffen them.
        recovery : tuple of array_like, optional
            Points (p, 3) and a matrix (6 p, 3 m), sparse or not: σx, σy, σz, τxy, τyz and τzx of
            each point by the displacements of the nodes, for `stresses`.
        frames, damping_ratio
            As for the class.

        Returns
        -------
        FlexibleBody
        """
        attempt = f"Cannot reduce '{check_name(name, 'an assembly')}'"
        known = None if recovery is None else recovery_of(recovery, np.size(nodes), attempt)
        model = *given_matrices(M, K, nodes, attempt), interfaces, known
        reduced = _reduced(name, model, modes, coupling)
        return cls(name, reduced, frames=frames, damping_ratio=damping_ratio)

    @classmethod
    def from_mesh(
        cls,
        name: str,
        mesh: Any,
        material: Material,
        interfaces: Mapping[str, NodeSet],
        *,
        modes: int = 6,
        coupling: CouplingKind = "rigid",
        frames: Mapping[str, FrameLike] | None = None,
        damping_ratio: npt.ArrayLike = 0.0,
    ) -> FlexibleBody:
        """Return the body of a mesh of tetrahedra or hexahedra, with quadratic elements.

        Parameters
        ----------
        name : str
            Name of the assembly.
        mesh : str, Path or meshio.Mesh
            A file of Gmsh, Nastran, Abaqus or another format of meshio, or a mesh, in m. Faces are
            flat: nodes in the middle of edges are put on straight lines between corners.
        material : Material
            The material, isotropic and the same everywhere.
        interfaces : mapping of str
            For each interface the name of a set of the file, a plane (point, normal), or a function
            that takes positions of shape (m, 3) and returns which of them belong to it.
        modes, coupling, frames, damping_ratio
            As for `from_matrices`.

        Returns
        -------
        FlexibleBody

        Raises
        ------
        MissingExtraError
            Without scikit-fem and meshio, the extra ``mesh``.
        ValueRefusedError
            When cells have no volume, parts are not connected, a set is unknown, or a material is
            not isotropic.

        Warns
        -----
        UserWarning
            When the mesh is larger than 100 m, since it is probably in mm.
        """
        attempt = f"Cannot mesh '{check_name(name, 'an assembly')}'"
        _check_isotropic(material, attempt)
        model = solid_matrices(mesh, material, interfaces, attempt)
        reduced = _reduced(name, model, modes, coupling)
        return cls(name, reduced, frames=frames, damping_ratio=damping_ratio)

    @classmethod
    def from_plate(
        cls,
        name: str,
        mesh: PlateMesh,
        thickness: float,
        material: Material,
        interfaces: Mapping[str, NodeSet],
        *,
        modes: int = 6,
        coupling: CouplingKind = "rigid",
        frames: Mapping[str, FrameLike] | None = None,
        damping_ratio: npt.ArrayLike = 0.0,
    ) -> FlexibleBody:
        """Return the body of a plate or membrane of constant thickness.

        It is in the plane of x and y, and stretches, bends and shears. Nodes of the mesh are pairs
        near both faces, so that an interface may be an edge.

        Parameters
        ----------
        name : str
            Name of the assembly.
        mesh : PlateMesh
            The shape of the middle surface.
        thickness : float
            Thickness > 0 in m.
        material : Material
            The material, isotropic and the same everywhere.
        interfaces : mapping of str
            For each interface the name of a set of the mesh, a plane (point, normal), or a function
            that takes positions of shape (m, 3) and returns which of them belong to it.
        modes, coupling, frames, damping_ratio
            As for `from_matrices`.

        Returns
        -------
        FlexibleBody

        Raises
        ------
        ValueRefusedError
            When a number is out of its range, a set is unknown, a material is not isotropic, or
            parts can move freely.

        Warns
        -----
        UserWarning
            When the mesh is larger than 100 m, since it is probably in mm.

        See Also
        --------
        PlateMesh : Rectangles, rings, spirals and other meshes.

        Examples
        --------
        A clamped disc of 0.1 m in radius, under a force on a hub of 10 mm:

        >>> import flexure as fx
        >>> disc = fx.PlateMesh.ring(0.01, 0.1)
        >>> steel = fx.Material.common("structural steel S235")
        >>> ends = {"rim": "outer", "hub": "inner"}
        >>> membrane = fx.FlexibleBody.from_plate("membrane", disc, 1e-3, steel, ends, modes=2)
        >>> print(f"{membrane.reduced.stiffness[5, 5] / 1e3:.1f} N/mm")
        125.9 N/mm
        """
        attempt = f"Cannot make plate '{check_name(name, 'an assembly')}'"
        require(isinstance(mesh, PlateMesh), mesh, attempt, "a PlateMesh")
        _check_isotropic(material, attempt)
        warn_of_millimeters(mesh.points)
        t = bounded(thickness, f"{attempt} with thickness", lower=0.0, exclusive=True, unit="m")
        m, K, nodes, known, T = plate_matrices(mesh, t, material)
        count, found = len(mesh.points), {}
        for key, wanted in mapping(interfaces, "node sets by interfaces", attempt).items():
            chosen = nodes_of(key, wanted, nodes, nodes, mesh.sets, attempt) % count
            found[key] = np.concatenate([chosen, chosen + count])
        reduced = _reduced(name, (m, K, nodes, found, known, T), modes, coupling)
        return cls(name, reduced, frames=frames, damping_ratio=damping_ratio)

    def stresses(self, context: Any) -> FloatArray:
        """Return the stresses at ``reduced.stress_points``, along the axes of the mesh.

        Bodies of a mesh have them at the corners of the elements, as the mean of elements that
        meet; plates at the centers of the cells on the face at t/2, and then on that at -t/2.

        Parameters
        ----------
        context : Context
            Values of the plant, or of what contains it.

        Returns
        -------
        array, shape (p, 6)
            σx, σy, σz, τxy, τyz and τzx in Pa.

        Raises
        ------
        DeclarationError
            When the body is made of matrices without ``recovery``.

        See Also
        --------
        equivalent_stress : Von Mises' stress.
        """
        if not len(self.reduced.stress_points):
            raise DeclarationError(
                f"Cannot compute stresses of '{self.name}'",
                expected="a body of a mesh, or of matrices with recovery",
                found="matrices alone",
                remedy="Give from_matrices the option recovery",
            )
        eta = self.element.strained(self.element.deformation.eval(context))
        return np.asarray(self.reduced.stress_shapes @ eta)

    def equivalent_stress(self, context: Any) -> FloatArray:
        """Return von Mises' stress at ``reduced.stress_points``.

        Parameters
        ----------
        context : Context
            Values of the plant, or of what contains it.

        Returns
        -------
        array, shape (p,)
            In Pa.

        Raises
        ------
        DeclarationError
            When the body is made of matrices without ``recovery``.

        See Also
        --------
        stresses : The components.
        """
        return equivalent(self.stresses(context))


def _reduced(name: str, model: tuple[Any, ...], modes: int, coupling: Any) -> ReducedBody:
    """Return a finite element model, the first arguments of `reduce_body`, reduced."""
    attempt = f"Cannot reduce '{name}'"
    count = count_of(modes, "modes", attempt, minimum=0)
    one_of(coupling, ("rigid", "averaged"), "coupling", attempt)
    reduce = reduce_body if len(model[2]) > _LARGE else in_one_thread(reduce_body)
    return reduce(*model, modes=count, coupling=coupling, attempt=attempt)


def _check_isotropic(material: Material, attempt: str) -> None:
    """Refuse a material whose shear modulus is not that of E and ν."""
    require(isinstance(material, Material), material, attempt, "a Material")
    G = 0.5 * material.youngs_modulus / (1.0 + material.poissons_ratio)
    expected = f"an isotropic material, with a shear modulus of E/(2 (1 + ν)) = {G:.4g} Pa"
    found = f"{material.shear_modulus:.4g} Pa of '{material.name}'"
    remedy = "Pass a Material of E and ν, or matrices of another program to from_matrices"
    is_isotropic = abs(material.shear_modulus - G) <= _ISOTROPIC * G
    require_that(is_isotropic, attempt, expected, found, remedy)
