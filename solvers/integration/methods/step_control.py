"""Step size control of one-step methods: the constants of its rules, for every loop."""

from __future__ import annotations

#: Part that is taken of the step by which the error would just be tolerable.
SAFETY = 0.9
#: By which a step may be shorter, or longer, than the one before.
LEAST_FACTOR, LARGEST_FACTOR = 0.2, 10.0
#: That of Rosenbrock and implicit methods, in which a step is more work.
LARGEST_ROSENBROCK_FACTOR = 6.0
#: Weight of the error before the last for `DormandPrince`, and the least error that it remembers.
BETA, SMALLEST_ERROR = 0.04, 1e-4

# Newton's iteration in the stages of `ESDIRK4`, where sizes are in units of the tolerance.

#: An iteration ends where what it leaves is below this part of the tolerance.
NEWTON_REST = 0.01
#: The same where only one update was made, and its ratio to the next one is that of a stage before.
FIRST_REST = 1e-5
#: Linear equations are made anew where an update is more than this part of the one before,
RENEWING_RATIO = 0.2
#: and kept for the next stage where all were less than this part of the one before.
KEEPING_RATIO = 1e-3
#: The iteration fails with an update, after the second, so many times as large as the one before,
DIVERGING_RATIO = 2.0
#: or after so many updates.
MOST_UPDATES = 8
#: What a try counts as whose iteration failed: of an error that halves the step.
FAILED_ERROR = (SAFETY / 0.5) ** 4
#: What it counts as, at least, where equations were made anew: the next step is not longer.
LABORED_ERROR = SAFETY**4
