"""The doctor: a plausibility check of a system, on request."""

from __future__ import annotations

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.systems.system import System, require_system
from flexure.solvers.analysis.equations.tangents import linear_notes
from flexure.solvers.analysis.plausibility import limit_rules, loop_rules, motion_rules, unit_rules
from flexure.solvers.analysis.plausibility.diagnosed_system import DiagnosedSystem
from flexure.solvers.analysis.plausibility.findings import Checkup

#: All rules: each takes a `DiagnosedSystem` and yields findings.
RULES = (
    *motion_rules.RULES,
    *loop_rules.RULES,
    *unit_rules.RULES,
    *limit_rules.RULES,
)


def doctor(system: System, context: Context | None = None) -> Checkup:
    """Check a model for implausible values, such as those in a wrong unit.

    Parameters
    ----------
    system : System
        A block or diagram.
    context : Context, optional
        The values to check, a root context; it is not changed. A default context when omitted.

    Returns
    -------
    Checkup
        The findings with paths and magnitudes; true if there are none.

    Raises
    ------
    DeclarationError
        If it is no system, such as a builder before ``build()``.
    ContextError
        If the context is not a root context of the system.

    See Also
    --------
    check_limits : Check the limits of force elements only.
    check_passivity : Check the energy of a force element.

    Notes
    -----
    Rules compare ratios if possible, and their limits are wide: a finding is almost always a
    mistake. A system without findings may still be wrong.

    - Bodies: densities, ratios of masses and of sizes, centers of mass and joints far outside their
      bodies, gravity.
    - Motions, by the poles of the linearized equations: above 1 MHz, or too fast for sound to cross
      the bodies; nine orders of magnitude apart; almost undamped; initial accelerations above
      10⁵ m/s².
    - Loops: sampling too slow for the motion, growth by 1000 within one sampling period, sampling
      periods and delays without effect or far longer than all motions, periods whose phase drifts,
      limits of motors compared with their loads.
    - Units: those that the ends of a wire declare, and angles that look like degrees.
    - Flexures: materials in which sound is slower than in soft rubber or faster than in diamond,
      leaves and wires thicker than long or wide, or longer than 10 m, and exceeded limits
      (`check_limits`).

    ``linear_notes`` lists what linear models neglect: blocks that they replace by gains, such as a
    `Quantizer`, and blocks that pass no small changes.

    A finding about a pole names first the parameters with the largest influence on it, then the
    states that it moves.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door")
    >>> size = (0.02, 0.6, 0.7)
    >>> panel = builder.add_body("panel", fx.SpatialInertia.solid_box(9000.0, size=size))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> checkup = fx.doctor(builder.build())
    >>> [(finding.path, finding.rule) for finding in checkup]
    [('panel.mass', 'density')]
    """
    require_system(system, "Cannot check a system")
    attempt = f"Cannot check '{system.label}'"
    diagnosed = DiagnosedSystem(start_context(system, context, attempt))
    findings = []
    for rule in RULES:
        try:
            findings += list(rule(diagnosed))
        except Exception as error:  # functions of users may raise anything
            diagnosed.unchecked.append(f"{rule.__name__.replace('_', ' ')}, because: {error}")
    try:
        notes = linear_notes(diagnosed.context.leaves())
    except Exception as error:  # such as an input port that is not fixed
        notes = ()
        diagnosed.unchecked.append(f"blocks that pass no small changes, because: {error}")
    return Checkup(system.label, findings, list(dict.fromkeys(diagnosed.unchecked)), notes)
