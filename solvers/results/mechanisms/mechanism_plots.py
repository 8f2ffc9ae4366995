"""Pictures of plants in one context, with Matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flexure.blocks import Plant
from flexure.diagrams.checks.arguments import check_axes
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, saved
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.mechanisms.camera import View
from flexure.solvers.results.mechanisms.pictures import (
    Motion,
    Picture,
    checked_options,
    poses_in,
    require_plant,
    stressed,
)
from flexure.solvers.results.mechanisms.scene import force_arrows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.diagrams.contexts.context import Context


def plot_mechanism(
    plant: Plant,
    context: Context | None = None,
    *,
    view: View = "auto",
    forces: bool = False,
    stress: bool = False,
    ground: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Draw a plant: its bodies, joints and force elements.

    Parameters
    ----------
    plant : Plant
        The plant.
    context : Context, optional
        Gives the positions: a context of the plant, or of a diagram around it; a default one when
        omitted.
    view : str or tuple of float
        A side, ``"xz"`` (seen against y, z upwards), ``"yz"`` or ``"xy"``; ``"corner"`` for a view
        from above and aside; or azimuth and elevation of the viewer in degrees. ``"auto"`` is the
        side ``"xz"`` or ``"yz"`` for a mechanism that moves in this plane, else a corner.
    forces : bool
        Whether the forces of elements on bodies are drawn as arrows, with a scale; moments are not.
    stress : bool
        Whether flexures are colored by the equivalent stress along them, with a scale. It ends at
        the least yield strength, beyond which they are red, where all materials have one, and at
        the greatest stress otherwise.
    ground : float, optional
        Height of the ground in m. From a side none is drawn when omitted, and from a corner there
        is a floor below everything.
    title : str, optional
        Title of the picture.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DeclarationError
        When it is no plant, there is no such side, or no flexure that could be colored.

    See Also
    --------
    animate : The motion in a simulation.
    page : An interactive page.

    Notes
    -----
    Beams and notch hinges are drawn with their thickness and width, bent as cubic curves
    between their ends, and between the nodes of divided beams. Springs are coils, dampers are
    cylinders with a piston, and the frames of bushings their axes. The axes of joints are chain
    lines, and a `DoorHinge` has a knuckle at each end of its own. See `BodyShape` for shapes.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> door = builder.build()
    >>> axes = fx.plot_mechanism(door, view="xy")
    >>> axes.get_xlabel()
    'x in m'
    """
    require_plant(plant)
    context = plant.create_default_context() if context is None else context
    check_axes(ax, f"Cannot draw '{plant.label}'")
    with_forces, height, caption = checked_options(plant, forces, ground, title)
    poses = poses_in(plant, [context])
    acting = _forces_in(plant, context) if with_forces else None
    colored = stressed(plant, context, stress)
    stresses = None
    if colored is not None:
        stresses = [each.stress_port.eval(context)[None] for each in colored]
    motion = Motion(plant, context, poses, [caption], acting, stresses=stresses)
    own = ax is None
    ax = axes_or_new(ax)
    picture = Picture(motion, ax, view=view, ground=height)
    if own:
        ax.figure.figure.set_size_inches(*picture.inches)
    picture.show(0)
    return saved(ax, path)


def _forces_in(plant: Plant, context: Context) -> FloatArray:
    """Return the forces at all arrows of a scene, of shape (1, arrows, 3)."""
    ports = [each.element.force_ports[each.attachment] for each in force_arrows(plant, context)]
    found: FloatArray = np.array([port.eval(context)[3:] for port in ports]).reshape(1, -1, 3)
    return found
