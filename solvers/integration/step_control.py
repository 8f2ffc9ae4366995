"""How one-step methods choose their next step: the constants of the rules, for every loop."""

from __future__ import annotations

#: Part that is taken of the step by which the error would just be tolerable.
SAFETY = 0.9
#: By which a step may be shorter, or longer, than the one before.
LEAST_FACTOR, LARGEST_FACTOR = 0.2, 10.0
#: That of Rosenbrock methods, in which a step is more work.
LARGEST_ROSENBROCK_FACTOR = 6.0
#: Weight of the error before the last for `DormandPrince`, and the least error that it remembers.
BETA, SMALLEST_ERROR = 0.04, 1e-4
