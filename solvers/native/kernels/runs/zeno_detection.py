"""The kernel that tells events that pile up at one instant from events that are merely frequent.

Events pile up when a dozen of them happen at one instant, to within rounding. They also do when
their distances shrink steadily, and the sum of the distances still to come, if they go on to shrink
like that, is a millionth of the distance covered so far. What is known of the events of one kind is
an array of zeros at first.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import larger
from flexure.solvers.native.language.language import Floats

EVENTS = 12  # that are needed for a verdict
SAME_INSTANT = 1e-11  # relative to the time, or in seconds below one second
STILL_TO_COME = 1e-6  # as a part of what has been covered

# What is where
COUNT, LAST, DISTANCE = 0, 1, 2
BEGIN, SHRINKING = 3, 4  # of the steady shrinking of distances, and how often they have shrunk
BLURRED = 5  # in a row
TIMES = 6  # of the latest events
RATIOS = TIMES + EVENTS  # of the latest successive distances, all below 1
WATCH_SIZE = RATIOS + EVENTS


def piles_up(watch: Floats, time: float, blurred: bool) -> bool:
    """Note an event, and tell whether events pile up."""
    watch[BLURRED] = watch[BLURRED] + 1.0 if blurred else 0.0
    count = int(watch[COUNT])
    last = watch[LAST] if count > 0 else time
    distance = time - last
    if distance > 0.0 and distance < watch[DISTANCE]:
        watch[RATIOS + int(watch[SHRINKING]) % EVENTS] = distance / watch[DISTANCE]
        watch[SHRINKING] += 1.0
    else:
        watch[SHRINKING] = 0.0
        watch[BEGIN] = last
    watch[DISTANCE] = distance
    watch[TIMES + count % EVENTS] = time
    watch[LAST] = time
    watch[COUNT] += 1.0
    if watch[BLURRED] >= EVENTS:
        return True
    oldest = watch[TIMES + (count + 1) % EVENTS]
    if count + 1 >= EVENTS and time - oldest <= SAME_INSTANT * larger(1.0, abs(time)):
        return True
    return converges(watch, time)


def converges(watch: Floats, time: float) -> bool:
    """Return whether distances that shrink like this add up to next to nothing."""
    if watch[SHRINKING] < EVENTS:
        return False
    ratio = 0.0
    for k in range(EVENTS):
        ratio = larger(ratio, watch[RATIOS + k])
    covered = time - watch[BEGIN]
    still: bool = watch[DISTANCE] * ratio < STILL_TO_COME * covered * (1.0 - ratio)
    return still
