"""The kernel that judges whether a run will reach its end, for all integration loops.

It looks back over strides of equally many steps. The times at which the latest strides ended are
the *marks*, an array in which the stride of number k has the place ``k % MARKS``; stride 0 is the
start.
"""

from __future__ import annotations

from flexure.diagrams.values.arrays import FloatArray as Floats

APART = True

STRIDE = 1000  # steps
MARKS = 20
CHATTERING = 1000.0  # by which fewer steps may be needed at a jump of the equations


def makes_slow_progress(
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


def is_conspicuous(
    marks: Floats, strides: int, stride: int, time: float, end: float, most: float, wanted: float
) -> bool:
    """Return whether a jump of the equations may be what makes the latest stride slow.

    That is asked after 1, 2, 4, 8, ... strides, of one by whose pace a thousandth of ``most`` steps
    does not lead to the end.
    """
    power = 1
    while power < strides:
        power *= 2
    if power != strides:
        return False
    advance: float = time - marks[(strides - 1) % MARKS]
    steps = 1.0 * stride
    return advance < 0.5 * steps * wanted and CHATTERING * steps * (end - time) > most * advance
