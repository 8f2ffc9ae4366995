"""Laws of force elements: their equations as functions of positions, velocities and constants.

They are used alone, for plots, fits and tests; they take symbols as well as numbers, and check
nothing. ``element.law(context)`` is the law of an element with the constants of a context.
"""

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.blocks.flexures.beams.beam_law import BeamLaw as BeamLaw
    from flexure.blocks.flexures.hinges.notch_law import (
        NotchCompliance as NotchCompliance,
        NotchLaw as NotchLaw,
        ParosWeisbord as ParosWeisbord,
        paros_weisbord as paros_weisbord,
    )
    from flexure.blocks.flexures.hinges.pseudo_rigid import PseudoRigidBody as PseudoRigidBody
    from flexure.blocks.forces.between_points.one_sided_spring import (
        OneSidedSpringLaw as OneSidedSpringLaw,
    )
    from flexure.blocks.forces.between_points.spring_damper import (
        SpringDamperLaw as SpringDamperLaw,
    )
    from flexure.blocks.forces.bushings.bushing_law import (
        BushingLaw as BushingLaw,
        GeneralBushingLaw as GeneralBushingLaw,
        RollPitchYawBushingLaw as RollPitchYawBushingLaw,
        RotationVectorBushingLaw as RotationVectorBushingLaw,
    )
    from flexure.blocks.forces.bushings.halfway_law import HalfwayLaw as HalfwayLaw
    from flexure.blocks.forces.bushings.mount_branches import (
        FrictionBranch as FrictionBranch,
        MaxwellBranch as MaxwellBranch,
    )
    from flexure.blocks.forces.on_joints.compliant_coupling import (
        CompliantCouplingLaw as CompliantCouplingLaw,
    )
    from flexure.blocks.forces.on_joints.coordinate_law import (
        CoordinateLaw as CoordinateLaw,
        hunt_crossley_damping as hunt_crossley_damping,
    )
    from flexure.blocks.forces.on_joints.door_hinge import HingeLaw as HingeLaw
    from flexure.blocks.forces.on_joints.joint_friction import (
        FrictionLaw as FrictionLaw,
        SlidingLaw as SlidingLaw,
    )
    from flexure.blocks.forces.on_joints.joint_springs import (
        SpringLaw as SpringLaw,
        TabulatedSpringLaw as TabulatedSpringLaw,
    )
    from flexure.blocks.forces.on_joints.joint_stop import StopLaw as StopLaw
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, "flexure"), root="flexure")
