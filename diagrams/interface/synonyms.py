"""Names in other programs, and the names of the same things here.

The face answers with these if a name is missing; see `flexure.diagrams.interface.lazy_names`.
Each line holds the name in Flexure and, behind the colon, what python-control, Simulink, Drake,
SciPy, SPACAR, Exudyn, MuJoCo or everyday English call it.
"""

from __future__ import annotations

_TABLE = """
StateSpace: ss StateSpaceBlock LinearSystem LTI lti dss
TransferFunction: tf zpk TransferFcn Tf transfer_function tf2ss
StateSpace(..., period=): DiscreteStateSpace dlti DiscreteLinearSystem
TransferFunction(..., period=): DiscreteTransferFunction DiscreteTransferFcn DiscreteFilter
AffineSystem: AffineBlock
LinearModel.to_control: control to_ss
LinearModel.zeros: zeros tzero zero
LinearModel.poles: poles pole eig eigenvalues
LinearModel.static_gain: dcgain dc_gain
LinearModel.minimal: minreal minimal_realization ctrb obsv ControllabilityMatrix IsControllable
linearize: Linearize linmod trim_linearize linearise jacobian Linearization
linearize: FirstOrderTaylorApproximation dlinmod linearize_model
linearize(..., period=): c2d cont2discrete discretize sample_system c2d_system
linearize(..., period=): DiscreteTimeLinearization
equilibrium: trim findop operspec find_eqpt find_operating_point steady_state FixedPoint
equilibrium: operating_point static_solve SolveStatic
Multiplexer: Mux mux BusCreator Concatenate VectorConcatenate
Demultiplexer: Demux demux BusSelector
Selector: Slice Index
PortSwitch: Switch MultiportSwitch ManualSwitch
TimeDelay: TransportDelay VariableTransportDelay Delay DiscreteTimeDelay DelayBlock transport_delay
PadeDelay: pade Pade
UnitDelay: Memory UnitDelayBlock z_inverse
ZeroOrderHold: ZOH zoh SampleAndHold Sampler Hold
Sum: Adder Add Subtract Summer SumBlock sumblk summing_junction Summation
Product: Multiply Multiplier Mul Divide
Gain: ScalarGain Amplifier P
MatrixGain: MatrixMultiply StaticGain
Constant: ConstantVectorSource ConstantValueSource Const
Sine: SineWave Sin Sinusoid SineSource
Square: Pulse PulseGenerator SquareWave
Step: StepSource StepInput Heaviside
Ramp: RampSource
Chirp: ChirpSignal SweptSine
Noise: RandomSource WhiteNoise RandomNumber UniformRandomNumber GaussianNoise
BandLimitedNoise: BandLimitedWhiteNoise ColoredNoise
Trajectory: TrajectorySource FromWorkspace TimeSeries InterpolatedSource
Recorded: FromFile FromSpreadsheet Playback CombiTimeTable RecordedSignal
TimeFunction: Clock SignalGenerator Source
FunctionBlock: MATLABFunction Function Fcn PythonFunction SymbolicVectorSystem Lambda Expression
FunctionBlock: NonlinearSystem nlsys NonlinearIOSystem
Integrator: Integrate IntegratorBlock Accumulator
Integrator(..., period=): DiscreteIntegrator DiscreteTimeIntegrator
FilteredDerivative: Derivative Differentiator DerivativeFilter
FilteredDerivative(..., period=): DiscreteDerivative DiscreteDifference Difference
FirstOrderLag: FirstOrderLowPassFilter LowPassFilter LowPass Lag PT1 FirstOrder Lowpass
LeadLag: Lead LeadLagCompensator LeadCompensator
NotchFilter: Notch_filter BandStop
PIDController: PID PidController pid PIDBlock PI PD Controller
PIDController(..., period=): SampledPIDController DiscretePIDController DiscretePID
StateFeedback: FullStateFeedback LinearQuadraticRegulator
LuenbergerObserver: Observer StateObserver Kalman Estimator SteadyStateKalmanFilter
LuenbergerObserver(..., period=): SampledLuenbergerObserver DiscreteObserver
ExtendedKalmanFilter: EKF extendedKalmanFilter
UnscentedKalmanFilter: UKF unscentedKalmanFilter MerweScaledSigmaPoints
filter_consistency: NIS nis NEES whiteness
ModelPredictiveController: MPC mpc MPCController ModelPredictiveControl PredictiveController
NonlinearPredictiveController: NMPC nlmpc NonlinearMPC RTI
lqe: kalman kalmd dlqe estim
lqr: LQR dlqr care dare lqry
lqr(..., period=): lqrd
lqg: LQG reg
h2_synthesis: h2syn H2Synthesis
hinf_synthesis: hinfsyn mixsyn HinfSynthesis mixed_sensitivity augw
model_reduction: balred modred balreal balanced_reduction balanced_truncation hsvd reduce
model_reduction: reduce_model model_order_reduction hankel_singular_values
place: acker pole_placement place_poles place_varga
Saturation: Saturate Clip Limiter Sat
DeadZone: Deadband DeadBand dead_zone
RateLimiter: SlewRate RateLimit SlewRateLimiter
RateLimiter(..., period=): DiscreteRateLimiter
Relay: Hysteresis Schmitt OnOff BangBang Comparator
Quantizer: Quantize Encoder Rounding ADC
LookupTable: Lookup LUT Lookup1D LookupTable1D nDLookupTable InterpolatedTable Interp1d interp1d
results.Log: Scope LogOutput LogVectorOutput VectorLogSink Logger ToWorkspace Sink Recorder
results.Log: SignalLogger
VectorLog: LogVector VectorLogger
Printer: Display Print
StopWhen: StopSimulation Stop Assertion
PassThrough: Identity Wire Passthrough
Diagram: BlockDiagram Model Network
DiagramBuilder: AddSystem Builder Bdsim BDSim BlockDiagramBuilder InterconnectedSystem
DiagramBuilder: interconnect connect append series parallel feedback
LeafSystem: VectorSystem Block Subsystem BasicBlock SFunction S_Function
simulate: Simulation run sim forced_response initial_response solve_ivp odeint solve ode45 lsim
simulate: AdvanceTo run_simulation input_output_response SolveDynamic simulate_system
step_response: impulse_response stepplot
step_info: stepinfo StepInformation
Simulator: IntegratorBase Solver
simulate_many: MonteCarloSimulation parsim monte_carlo parallel_simulation
inspect_block: inspect Inspect inspector
sweep: parameter_sweep ParameterVariation parametric_sweep parfor batch
simulate_many: RandomSimulation
plans.latin_hypercube: lhs LatinHypercube
margins: margin allmargin stability_margins disk_margins diskmargin gain_margin phase_margin
norms: norm system_norm linfnorm hinfnorm h2norm getPeakGain peak_gain
passivity_indices: getPassiveIndex getSectorIndex isPassive passiveplot ispassive
bode: bode_plot bodeplot Bode freqresp bodemag
frequency_response: frestimate frest sinestream measured_frequency_response
describing_function: sinusoidal_input_describing_function DescribingFunctionNonlinearity
limit_cycles: describing_function_response describing_function_plot limit_cycle
nyquist: nyquist_plot nyquistplot Nyquist nyquist_response
nichols: nichols_plot nichols_grid
root_locus: rlocus rlocfind root_locus_plot rltool
pole_zero: pzmap pole_zero_plot pzplot iopzmap pole_zero_map
singular_values: sigma singular_values_plot sigmaplot
loop_gain: loopsens getLoopTransfer open_loop
complementary_sensitivity: getCompSensitivity
sensitivity_function: getSensitivity gangof4
parameter_sensitivity(...) or sensitivity_function(...): sensitivity Sensitivity sensitivities
tune_pid: pidtune pidtool PIDTuner rootlocus_pid_designer
optimal_motion: DirectCollocation DirectTranscription trajectory_optimization solve_ocp Opti
optimal_motion: TrajectoryOptimization optimal_control collocation solve_optimal_trajectory
optimize: minimize sdo fmincon Optimize
fit: identify estimate curve_fit system_identification ident tfest parameter_estimation
modes: eigenmodes natural_frequencies modal_analysis modal damp vibration_modes
modes: ComputeODE2Eigenvalues
stiffness: compliance_matrix stiffness_matrix compliance_at
PlantBuilder: MultibodyPlant AddMultibodyPlantSceneGraph Mechanism MultibodySystem MainSystem
PlantBuilder: SystemContainer Plant_builder Assembly AddMultibodyPlant MultibodyPlantConfig
PlantBuilder.add_body: RigidBody AddRigidBody body add_link
PlantBuilder.add_joint: AddJoint
PlantBuilder.add_force_element: AddForceElement ForceElements
PlantBuilder.add_frame: FixedOffsetFrame OffsetFrame AddFrame
PlantBuilder.add_loop_joint: LoopClosure WeldConstraint BallConstraint
load_urdf: Parser URDF parse_urdf AddModels from_urdf
load_mjcf: MjModel MJCF from_xml_path
FMUBlock: load_fmu from_fmu ModelExchange CoSimulation ModelicaFMU
load_sdf: SDF
save_urdf: to_urdf write_urdf
save_sdf: to_sdf write_sdf
save_mjcf: to_mjcf write_mjcf mj_saveLastXML
rotations.rotation_about: RotationMatrix Rotation AngleAxis
rotations.rotation_from_rpy: RollPitchYaw rpy eul2rotm
rotations.rotation_from_quaternion: Quaternion quat2rotm
SpatialInertia: Inertia UnitInertia RotationalInertia InertiaTensor InertiaCuboid
WeldJoint: FixedJoint Weld Fixed Rigid RigidJoint
RevoluteJoint: HingeJoint Revolute RotaryJoint PinJoint Hinge Pivot Revolute2D GenericJoint
PrismaticJoint: SliderJoint Prismatic SlideJoint TranslationalJoint Slider
BallRpyJoint: BallJoint SphericalJoint Ball GimbalJoint Spherical
QuaternionFloatingJoint: FloatingJoint FreeJoint Floating SixDofJoint FreeBody
UniversalJoint: Cardan CardanJoint HookeJoint
ScrewJoint: HelicalJoint Screw LeadScrew
PlanarJoint: Planar
LinearSpringDamper: Spring SpringDamper Damper LinearSpring SpringDamperActuator TranslationalSpring
JointSpring: RevoluteSpring PrismaticSpring TorsionalSpring TorsionSpring RotationalSpring
JointStop: HardStop JointLimit EndStop
JointFriction: Friction CoulombFriction ViscousFriction
StickSlipFriction: StictionModel Stiction
BearingFriction: JournalFriction LoadDependentFriction
LinearBushingRollPitchYaw: Bushing RollPitchYawBushing
LinearBushing: BushingElement SixDofSpring RigidBodySpringDamper
DoorHingeConfig: HingeConfig
diagrams.Witness: WitnessFunction
Contact: ContactElement ContactForce PointContact HuntCrossley
ContactGroup: ContactPairs BroadPhase
RigidStop: Impact Restitution
RigidContact: HardContact NonsmoothContact Collision
Beam: ANCFCable2D FlexibleBeam BeamElement beam PlanarBeam ANCFCable
LeafSpring: Leaf Flexure Blade BladeFlexure LeafFlexure
WireFlexure: Wire WireSpring Rod
NotchHinge: CircularHinge FlexureHinge CircularFlexure
CrossPivot: CrossedFlexure CrossFlexurePivot CrossHinge
ParallelGuide: ParallelogramFlexure ParallelFlexure LinearGuide
constraints.GearPair: Gear GearJoint GearCoupler SimpleGear
constraints.Coupling: CoordinateCoupler JointCoupling MimicJoint
constraints.DistanceConstraint: Distance RodConstraint ObjectConnectorDistance
constraints.PrescribedMotion: MotionConstraint CoordinateConstraint PrescribedJoint
constraints.RollingDisk: RollingDiscPenalty RollingWheel Wheel
InverseDynamics: InverseDynamicsController ComputedTorque
multibody.Actuator: JointActuator Motor Torque
Context.clone: Clone
errors.FlexureError: Error FlexureException
animate: Animation MeshcatVisualizer animation Visualizer Meshcat
plot_mechanism: plot_plant draw_mechanism
results.SimulationResult: Result SimResult TimeResponseData Solution
results.SimulationResult.plot_phase: phase_plane_plot phase_plot plot_phase
results.SimulationResult.plot: plot figure Plot
results.SimulationResult.to_csv: to_csv export_csv
results.SimulationResult.to_mat: to_mat savemat
results.SimulationResult.to_parquet: to_parquet
results.SimulationResult.to_pandas: to_pandas DataFrame to_dataframe
results.SimulationResult.save: save savez
System.parameters: parameters list_parameters get_params
Diagram.plot: draw plot_diagram PlotGraphviz plot_system_graphviz show
load_result: load read_result
equation: symbolic symbolic_equations equations
to_javascript: to_js
to_fmu: export_fmu fmu FMUExport
plans.grid: meshgrid product full_factorial
doctor: check lint diagnose
"""

#: The name here, by what people type.
SYNONYMS = {
    word: here
    for line in _TABLE.strip().splitlines()
    for here, _, words in [line.rpartition(": ")]
    for word in words.split()
}
