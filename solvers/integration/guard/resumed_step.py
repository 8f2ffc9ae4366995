"""Step size after a stop: the first step of a motion whose last step was cut.

A motion that ends at a stop, such as the tick of a clock, usually ends with a step that is shorter
than the method meant to take. The next step that the method would try after such a stub is
unrelated to the step that the equations allow. The rule is a kernel, which interpreted runs,
compiled loops and lanes share.
"""

from __future__ import annotations


def carried_step(
    following: float, wanted: float, given: float, steps: int, begin: float, end: float, stop: float
) -> float:
    """Return the step with which the next motion may start, in seconds.

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
