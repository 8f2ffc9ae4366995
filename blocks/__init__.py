"""What is wired: the library of ready-made blocks."""

from typing import TYPE_CHECKING

if __name__ != "flexure.blocks":
    raise ImportError("write `import flexure.blocks`: the folder blocks/ is not a package")

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.blocks.controllers.controllers import PIDController as PIDController
    from flexure.blocks.controllers.state_feedback import (
        LuenbergerObserver as LuenbergerObserver,
        StateFeedback as StateFeedback,
    )
    from flexure.blocks.flexures.assemblies.amplifiers import (
        BridgeAmplifier as BridgeAmplifier,
        LeverAmplifier as LeverAmplifier,
    )
    from flexure.blocks.flexures.assemblies.flexure_assemblies import (
        CompoundGuide as CompoundGuide,
        CrossPivot as CrossPivot,
        FoldedGuide as FoldedGuide,
        ParallelGuide as ParallelGuide,
    )
    from flexure.blocks.flexures.assemblies.plane_springs import (
        MembraneFlexure as MembraneFlexure,
        SpiralFlexure as SpiralFlexure,
    )
    from flexure.blocks.flexures.assemblies.remote_pivots import (
        ButterflyPivot as ButterflyPivot,
        RemoteCenterHinge as RemoteCenterHinge,
        RobertsGuide as RobertsGuide,
    )
    from flexure.blocks.flexures.assemblies.wire_assemblies import (
        Bipod as Bipod,
        Hexapod as Hexapod,
    )
    from flexure.blocks.flexures.beams.beam import Beam as Beam
    from flexure.blocks.flexures.beams.leaf_spring import (
        LeafSpring as LeafSpring,
        WireFlexure as WireFlexure,
    )
    from flexure.blocks.flexures.bodies.flexible_body import FlexibleBody as FlexibleBody
    from flexure.blocks.flexures.bodies.plate_mesh import PlateMesh as PlateMesh
    from flexure.blocks.flexures.hinges.lumped_hinge import LumpedHinge as LumpedHinge
    from flexure.blocks.flexures.hinges.notch_hinge import NotchHinge as NotchHinge
    from flexure.blocks.flexures.sections.fatigue import Fatigue as Fatigue
    from flexure.blocks.flexures.sections.materials import Material as Material
    from flexure.blocks.forces.between_points.one_sided_spring import (
        Bumper as Bumper,
        Cable as Cable,
    )
    from flexure.blocks.forces.between_points.piezo_stack import PiezoStack as PiezoStack
    from flexure.blocks.forces.between_points.spring_damper import (
        LinearSpringDamper as LinearSpringDamper,
    )
    from flexure.blocks.forces.bushings.bushing import (
        LinearBushing as LinearBushing,
        LinearBushingRollPitchYaw as LinearBushingRollPitchYaw,
    )
    from flexure.blocks.forces.bushings.general_bushing import GeneralBushing as GeneralBushing
    from flexure.blocks.forces.coefficients.mounts import BushingConstants as BushingConstants
    from flexure.blocks.forces.contacts.contact import Contact as Contact
    from flexure.blocks.forces.contacts.contact_group import ContactGroup as ContactGroup
    from flexure.blocks.forces.contacts.rigid_contact import RigidContact as RigidContact
    from flexure.blocks.forces.on_joints.bearing_friction import BearingFriction as BearingFriction
    from flexure.blocks.forces.on_joints.compliant_coupling import (
        CompliantCoupling as CompliantCoupling,
    )
    from flexure.blocks.forces.on_joints.door_hinge import (
        DoorHinge as DoorHinge,
        DoorHingeConfig as DoorHingeConfig,
    )
    from flexure.blocks.forces.on_joints.joint_friction import (
        JointFriction as JointFriction,
        StickSlipFriction as StickSlipFriction,
    )
    from flexure.blocks.forces.on_joints.joint_springs import (
        JointSpring as JointSpring,
        TabulatedSpring as TabulatedSpring,
    )
    from flexure.blocks.forces.on_joints.joint_stop import JointStop as JointStop
    from flexure.blocks.linear_systems.continuous import (
        FilteredDerivative as FilteredDerivative,
        FirstOrderLag as FirstOrderLag,
        Integrator as Integrator,
    )
    from flexure.blocks.linear_systems.delays import PadeDelay as PadeDelay, TimeDelay as TimeDelay
    from flexure.blocks.linear_systems.discrete import (
        UnitDelay as UnitDelay,
        ZeroOrderHold as ZeroOrderHold,
    )
    from flexure.blocks.linear_systems.filters import LeadLag as LeadLag, NotchFilter as NotchFilter
    from flexure.blocks.linear_systems.state_space import (
        AffineSystem as AffineSystem,
        StateSpace as StateSpace,
        TransferFunction as TransferFunction,
    )
    from flexure.blocks.models.fmu.fmu_block import FMUBlock as FMUBlock
    from flexure.blocks.models.mjcf.mjcf import load_mjcf as load_mjcf
    from flexure.blocks.models.mjcf.mjcf_writing import save_mjcf as save_mjcf
    from flexure.blocks.models.sdf.sdf import load_sdf as load_sdf
    from flexure.blocks.models.sdf.sdf_writing import save_sdf as save_sdf
    from flexure.blocks.models.urdf.urdf import load_urdf as load_urdf
    from flexure.blocks.models.urdf.urdf_writing import save_urdf as save_urdf
    from flexure.blocks.multibody import (
        Body as Body,
        BodyShape as BodyShape,
        Frame as Frame,
        GravityCompensation as GravityCompensation,
        InverseDynamics as InverseDynamics,
        MultibodyForces as MultibodyForces,
        Plant as Plant,
        PlantBuilder as PlantBuilder,
        SpatialInertia as SpatialInertia,
        check_passivity as check_passivity,
    )
    from flexure.blocks.multibody.constraints import RigidStop as RigidStop
    from flexure.blocks.multibody.joints.ball import (
        BallQuaternionJoint as BallQuaternionJoint,
        BallRpyJoint as BallRpyJoint,
    )
    from flexure.blocks.multibody.joints.cylindrical import CylindricalJoint as CylindricalJoint
    from flexure.blocks.multibody.joints.floating import (
        QuaternionFloatingJoint as QuaternionFloatingJoint,
        RpyFloatingJoint as RpyFloatingJoint,
    )
    from flexure.blocks.multibody.joints.planar import PlanarJoint as PlanarJoint
    from flexure.blocks.multibody.joints.prismatic import PrismaticJoint as PrismaticJoint
    from flexure.blocks.multibody.joints.revolute import RevoluteJoint as RevoluteJoint
    from flexure.blocks.multibody.joints.screw import ScrewJoint as ScrewJoint
    from flexure.blocks.multibody.joints.universal import UniversalJoint as UniversalJoint
    from flexure.blocks.multibody.joints.weld import WeldJoint as WeldJoint
    from flexure.blocks.signals.algebra import (
        Demultiplexer as Demultiplexer,
        FunctionBlock as FunctionBlock,
        Gain as Gain,
        MatrixGain as MatrixGain,
        Multiplexer as Multiplexer,
        PassThrough as PassThrough,
        PortSwitch as PortSwitch,
        Product as Product,
        Selector as Selector,
        Sum as Sum,
    )
    from flexure.blocks.signals.lookup_tables import (
        GainSchedule as GainSchedule,
        LookupTable as LookupTable,
    )
    from flexure.blocks.signals.noise import BandLimitedNoise as BandLimitedNoise, Noise as Noise
    from flexure.blocks.signals.nonlinear import (
        DeadZone as DeadZone,
        Quantizer as Quantizer,
        RateLimiter as RateLimiter,
        Relay as Relay,
        Saturation as Saturation,
    )
    from flexure.blocks.signals.profiles import (
        MinimumJerkProfile as MinimumJerkProfile,
        TrapezoidalProfile as TrapezoidalProfile,
    )
    from flexure.blocks.signals.recorded import Recorded as Recorded
    from flexure.blocks.signals.sinks import (
        Printer as Printer,
        StopWhen as StopWhen,
        Terminator as Terminator,
        VectorLog as VectorLog,
    )
    from flexure.blocks.signals.sources import (
        Constant as Constant,
        Ramp as Ramp,
        Step as Step,
        TimeFunction as TimeFunction,
        Trajectory as Trajectory,
    )
    from flexure.blocks.signals.waveforms import Chirp as Chirp, Sine as Sine, Square as Square
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, __name__))
