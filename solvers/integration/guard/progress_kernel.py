"""Kernels of all integration loops: whether a run will reach its end, and the step after a stop.

The first looks back over strides of equally many steps. The times at which the latest strides ended
are the *marks*, an array in which the stride of number k has the place ``k % MARKS``; stride 0 is
the start.
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


def carried_step(
    following: float, wanted: float, given: float, steps: int, begin: float, end: float, stop: float
) -> float:
    """Return the step with which the next motion may start, in seconds.

    A motion that ends at a stop, such as the tick of a clock, usually ends with a step that is
    shorter than the method meant to take. The step that the method would try after such a stub is
    unrelated to the one that the equations allow.

    ``following`` is what the method would try after the last of the good ``steps``, from ``begin``
    to ``end``; ``wanted`` what it meant to try in that, before anything made it shorter. ``given``
    is with what the motion was told to start, which its first step may not show, or zero. The
    motion had to end at ``stop`` at the latest.

    Examples
    --------
    A step of 0.3 s was cut to 0.1 s, after which the method dares no more than 0.2 s:

    >>> carried_step(0.2, 0.3, 0.0, 5, begin=0.9, end=1.0, stop=1.0)
    0.3
    >>> carried_step(0.2, 0.3, 0.0, 5, begin=0.6, end=0.9, stop=1.0)
    0.2
    """
    whole = given if steps == 1 and given > 0.0 else wanted
    if end == stop and begin + whole > stop and whole > following:
        return whole
    return following
