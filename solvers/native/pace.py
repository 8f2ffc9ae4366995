"""The kernel that judges whether steps bring a run to its end, for every way of taking steps.

It looks back over strides of equally many steps. The times at which the latest strides ended are
the *marks*, an array in which the stride of number k has the place ``k % MARKS``; stride 0 is the
start.
"""

from __future__ import annotations

from flexure.solvers.native.language import Floats

STRIDE = 1000  # steps
MARKS = 20


def slow_strides(
    marks: Floats, strides: int, stride: int, time: float, end: float, most: float, wanted: float
) -> int:
    """Return how many of the latest strides are too slow together; 0 if none are.

    Strides that advance as slowly as ever since the start, and by that pace need more than ``most``
    steps up to the end, are too slow when there are `MARKS` of them; of strides that are m times
    slower, an m-th of that number will do. Steps of half of the wanted length never are.
    """
    back = 0
    while back < strides and back < MARKS:
        back += 1
        steps = 1.0 * back * stride
        advance = time - marks[(strides - back) % MARKS]
        needed = steps * steps * (end - time)
        if advance < 0.5 * steps * wanted and needed > most * MARKS * stride * advance:
            return back
    return 0
