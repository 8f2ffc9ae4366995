"""Where signals are known in pieces of time, from -1 to 1, and how well these pieces know them."""

from __future__ import annotations

from math import prod

_HALF = 0.5**0.5
#: Lobatto points of Chebyshev.
NODES = (-1.0, -_HALF, 0.0, _HALF, 1.0)
#: What makes the polynomials that are zero at all nodes but one there 1.
NORMS = tuple(1.0 / prod(node - other for other in NODES if other != node) for node in NODES)
#: By how much of the range of its values at the nodes a polynomial goes beyond them at most: half
#: of what the Lebesgue constant of the nodes, 1.7988, exceeds 1 by, and a margin for rounding.
OVERSHOOT = 0.42
#: Where it is seen whether the polynomial through the nodes is the signal, and by which weights.
CHECK = 0.4
CHECK_WEIGHTS = tuple(
    norm * prod(CHECK - other for other in NODES if other != node)
    for node, norm in zip(NODES, NORMS, strict=True)
)
#: By which a polynomial may miss a signal, in units of its largest magnitude.
TOLERANCE = 1e-11
#: The shortest piece, as a part of its step.
SHORTEST = 2.0**-30
