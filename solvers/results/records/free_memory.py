"""How much memory is left."""

from __future__ import annotations

import math
import os
import re
from contextlib import suppress
from pathlib import Path


def free_memory() -> float:
    """Return the memory that this process could still take, in bytes; infinity where unknown."""
    found = [math.inf]
    with suppress(AttributeError, OSError, ValueError):  # Windows has no such names
        found.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    with suppress(OSError):
        available = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
        found += [1024.0 * float(available[1])] if available else []
    with suppress(OSError, ValueError):  # the limit of a container
        group = Path("/sys/fs/cgroup")
        most, used = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        found.append(float(most) - float(used))
    return max(0.0, min(found))
