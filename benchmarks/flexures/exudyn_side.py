"""Assemblies in Exudyn: geometrically exact beams between rigid bodies.

Exudyn's beams of two nodes interpolate on SE(3), so that errors fall with the square of the length
of an element; two numbers of elements give values from which that is taken away.
"""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.flexures.assemblies import Array, Assembly
from benchmarks.versus.sides import MissingPeerError


def _loaded(name: str) -> Any:
    """Return a module of Exudyn, or None where that is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


exu, items = _loaded("exudyn"), _loaded("exudyn.itemInterface")
#: What Exudyn's solvers raise where they do not converge.
SOLVER_ERRORS = (ValueError, RuntimeError)


def need_exudyn() -> None:
    """Raise the house's error where Exudyn is missing."""
    if exu is None:
        raise MissingPeerError(
            "exudyn is not installed (pip install exudyn): no comparison with it"
        )
    warnings.filterwarnings("ignore", module="exudyn")


@dataclass
class Model:
    """An assembled system, and the nodes of its bodies."""

    container: Any
    system: Any
    nodes: list[int]

    def positions(self) -> Array:
        """Return where the bodies are, one per row."""
        kind = exu.OutputVariableType.Position
        return np.array([self.system.GetNodeOutput(node, kind) for node in self.nodes])


def _pose(rotation: Array, position: Array) -> Array:
    made = np.eye(4)
    made[:3, :3], made[:3, 3] = rotation, position
    return made


def _euler_parameters(rotation: Array) -> list[float]:
    x, y, z, w = Rotation.from_matrix(rotation).as_quat()
    return [w, x, y, z]


def build(assembly: Assembly, elements: int, *, loaded: bool = True) -> Model:
    """Return an assembly with some elements in each leaf."""
    need_exudyn()
    container = exu.SystemContainer()
    system = container.AddSystem()
    ground = system.AddObject(items.ObjectGround())
    objects, nodes = [], []
    for body in assembly.bodies:
        node = system.AddNode(
            items.NodeRigidBodyEP(referenceCoordinates=[*body.position, 1.0, 0.0, 0.0, 0.0])
        )
        objects.append(
            system.AddObject(
                items.ObjectRigidBody(
                    mass=body.mass, inertia=[*body.moments, 0.0, 0.0, 0.0], nodeNumber=node
                )
            )
        )
        nodes.append(node)
    for leaf in assembly.leaves:
        section = exu.BeamSection()
        s = leaf.section
        shear, moments = s.shear_factor * s.G * s.area, np.array(s.moments)
        section.stiffnessMatrix = np.diag(
            [s.E * s.area, shear, shear, s.G * s.torsion, *(s.E * moments)]
        )
        section.massPerLength = s.density * s.area
        section.inertia = s.density * np.diag([moments.sum(), *moments])
        h, turn = leaf.length / elements, _euler_parameters(leaf.rotation)
        chain = [
            system.AddNode(
                items.NodeRigidBodyEP(
                    referenceCoordinates=[*(leaf.start + k * h * leaf.rotation[:, 0]), *turn]
                )
            )
            for k in range(elements + 1)
        ]
        for pair in pairwise(chain):
            system.AddObject(
                items.ObjectBeamGeometricallyExact(
                    nodeNumbers=list(pair), length=h, sectionData=section
                )
            )
        ends = ((chain[0], leaf.start), (chain[-1], leaf.end))
        for which, (node, place) in zip(leaf.bodies, ends, strict=True):
            origin = np.zeros(3) if which is None else assembly.bodies[which].position
            on = system.AddMarker(
                items.MarkerBodyRigid(
                    bodyNumber=ground if which is None else objects[which],
                    localHT=_pose(leaf.rotation, place - origin),
                )
            )
            end = system.AddMarker(items.MarkerNodeRigid(nodeNumber=node))
            system.AddObject(items.ObjectJointGeneric(markerNumbers=[on, end]))
    if loaded:
        marker = system.AddMarker(items.MarkerNodeRigid(nodeNumber=nodes[-1]))
        system.AddLoad(items.LoadForceVector(markerNumber=marker, loadVector=assembly.force))
        system.AddLoad(items.LoadTorqueVector(markerNumber=marker, loadVector=assembly.moment))
    system.Assemble()
    return Model(container, system, nodes)


def settings() -> Any:
    """Return settings that write no files and say nothing."""
    made = exu.SimulationSettings()
    made.solution.file.write = False
    made.staticSolver.verboseMode = made.timeIntegration.verboseMode = 0
    made.linearSolver.solverType = exu.LinearSolverType.EigenSparse
    return made


def static_positions(assembly: Assembly, elements: int) -> Array:
    """Return where the bodies stand under the load.

    Tighter tolerances than these meet rounding: Newton's method then ends as a failure.
    """
    model, set_up = build(assembly, elements), settings()
    newton = set_up.staticSolver.newton
    newton.relativeTolerance = newton.absoluteTolerance = 1e-8
    newton.maxIterations = 50
    set_up.staticSolver.numberOfLoadSteps = 20
    model.system.SolveStatic(set_up)
    return model.positions()


def eigenvalues(assembly: Assembly, elements: int, count: int) -> Array:
    """Return the lowest natural frequencies in rad/s of the unloaded assembly."""
    model = build(assembly, elements, loaded=False)
    found = model.system.ComputeODE2Eigenvalues()[0]
    rates: Array = np.sqrt(np.asarray(found[:count], dtype=float))
    return rates


def motion(assembly: Assembly, elements: int, times: Array, steps: int) -> Array:
    """Return where the bodies are at equidistant times after the load was put on at once.

    The shape is (times, bodies, 3); `steps` is the number of steps between two times.
    """
    model, set_up = build(assembly, elements), settings()
    sensors = [
        model.system.AddSensor(
            items.SensorNode(
                nodeNumber=node,
                storeInternal=True,
                writeToFile=False,
                outputVariableType=exu.OutputVariableType.Position,
            )
        )
        for node in model.nodes
    ]
    model.system.Assemble()
    set_up.solution.sensors.writePeriod = times[0]
    integration = set_up.timeIntegration
    integration.numberOfSteps, integration.endTime = steps * len(times), times[-1]
    integration.generalizedAlpha.spectralRadius = 0.9
    integration.newton.useModifiedNewton = True
    integration.newton.relativeTolerance = 1e-8
    model.system.SolveDynamic(set_up)
    columns = [model.system.GetSensorStoredData(sensor)[1:, 1:4] for sensor in sensors]
    return np.stack(columns, axis=1)


def extrapolated(of: Any, elements: int) -> tuple[Array, float]:
    """Return values without their error of second order, and how far they moved by that."""
    coarse, fine = of(elements), of(2 * elements)
    found = fine + (fine - coarse) / 3.0
    return found, float(np.abs(found - fine).max())
