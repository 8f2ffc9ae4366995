"""Animations of plants, which show themselves in notebooks, and as files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flexure.blocks import Plant
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from flexure.diagrams.values.arrays import bounded
from flexure.solvers.results.mechanisms.camera import View
from flexure.solvers.results.mechanisms.films import play, target_of
from flexure.solvers.results.mechanisms.pictures import (
    Motion,
    checked_options,
    chosen_plant,
    stressed,
    traced_frames,
)
from flexure.solvers.results.mechanisms.scene import force_arrows
from flexure.solvers.results.records.result import SimulationResult

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation

_MOST_FRAMES = 100_000
_SLOWEST = 1e-3
_PACE = "Cannot animate at this pace"


def animate(
    result: SimulationResult,
    plant: Plant | None = None,
    *,
    path: str | Path | None = None,
    view: View = "auto",
    fps: int = 25,
    speed: float = 1.0,
    forces: bool = False,
    stress: bool = False,
    trace: Sequence[FrameLike] | FrameLike = (),
    ground: float | None = None,
    title: str | None = None,
) -> FuncAnimation:
    """Animate the motion of a plant in a simulation.

    Parameters
    ----------
    result : SimulationResult
        The simulation.
    plant : Plant, optional
        The plant; it may be omitted when the simulated diagram is one or contains exactly one.
    path : str or Path, optional
        Where to save it: ``.gif``; ``.mp4``, which needs the program ffmpeg; ``.html`` for a page
        in which it plays and can be turned; a folder that exists, for a picture ``0000.png`` of
        each frame; or such names with a field for the number, as in ``"door_{:03d}.png"``.
    view : str or tuple of float
        As in `plot_mechanism`. The picture covers the whole motion.
    fps : int
        Pictures per second.
    speed : float
        Seconds of the simulation per second of the animation.
    forces, stress, ground, title
        As in `plot_mechanism`.
    trace : Frame, Body or sequence of them
        Frames whose origins leave a trace.

    Returns
    -------
    matplotlib.animation.FuncAnimation
        In a notebook it shows itself as on the page.

    Raises
    ------
    UnknownNameError
        When there is no plant, or it is not clear which one is meant.
    DeclarationError
        When it is no result or no plant, there is no such side, or the file has another ending.
    ValueRefusedError
        When pictures or seconds per second are not positive.
    MissingExtraError
        When ffmpeg is needed and not installed.

    See Also
    --------
    plot_mechanism : One position.
    page : An interactive page.

    Examples
    --------
    >>> import tempfile
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> door = builder.build()
    >>> context = door.create_default_context()
    >>> axis.angle.set(context, 0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     film = fx.animate(fx.simulate(door, 0.04, context=context), path=folder)
    """
    if not isinstance(result, SimulationResult):
        raise DeclarationError(
            "Cannot animate",
            expected="the result of a simulation",
            found=f"{result!r} ({type(result).__name__})",
            remedy="Pass what simulate(plant, t_final) returns; plot_mechanism(plant, context) "
            "draws a single position",
        )
    plant = chosen_plant(plant, result.system, "animate(result, plant)")
    for rate in (fps, speed):
        bounded(rate, _PACE, lower=_SLOWEST)
    with_forces, height, caption = checked_options(plant, forces, ground, title)
    (traced,) = traced_frames(trace, [plant], plant.label)
    target = None if path is None else target_of(path)
    span = result.time[-1] - result.time[0]
    if not span * fps <= _MOST_FRAMES * speed:
        raise ValueRefusedError(
            _PACE,
            expected=f"at most {_MOST_FRAMES} pictures",
            found=f"{span:g} s of motion at {fps:g} pictures per second at speed {speed:g}",
            remedy="Lower fps, or raise speed",
        )
    count = max(2, 1 + round(span * fps / speed))
    times = np.linspace(result.time[0], result.time[-1], count)
    digits = 2 if span == 0.0 else max(2, 1 - math.floor(math.log10(span)))
    signals = [plant.tree.find_output(f"{body.name}_pose") for body in plant.bodies[1:]]
    arrows = force_arrows(plant, result.context) if with_forces else []
    ports = [each.element.force_ports[each.attachment] for each in arrows]
    colored = stressed(plant, result.context, stress)
    stress_ports = [each.stress_port for each in colored or ()]
    values = result.sample_all([*signals, *ports, *stress_ports], times)
    world = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    poses = np.stack([np.tile(world, (count, 1)), *values[: len(signals)]], axis=1)
    count_of_ports = len(signals) + len(ports)
    acting = [each[:, 3:] for each in values[len(signals) : count_of_ports]]
    motion = Motion(
        plant,
        result.context,
        poses,
        [f"{caption}{', ' if caption else ''}t = {time:.{digits}f} s" for time in times],
        np.stack(acting, axis=1) if acting else None,
        traced,
        values[count_of_ports:] if colored else None,
    )
    return play(motion, target=target, view=view, fps=fps, ground=height)
