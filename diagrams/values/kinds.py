"""The kinds of values that a context holds, as bits: what a computed value depends on."""

from __future__ import annotations

TIME_KIND, CONTINUOUS, DISCRETE, ABSTRACT, PARAMETER, INPUT = (1 << k for k in range(6))
ALL_KINDS = (1 << 6) - 1
#: Not a kind of value: a computed value that only contexts which may begin a motion have.
STARTABLE = 1 << 6
#: What an integrator changes.
MOTION = TIME_KIND | CONTINUOUS
