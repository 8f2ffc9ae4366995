"""Values and breaks of sources, which depend on time alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

KNOTS = [-1.0, 0.1, 0.5, 2.0, 3.3]
POINTS = np.array([[1.0, 0.0], [3.0, -1.0], [2.0, 5.0], [-4.0, 2.0], [0.5, 0.7]])
GRID = np.linspace(-1.5, 4.0, 23)
times = st.floats(-1e3, 1e3)


def value_at(source: Any, time: float, **parameters: Any) -> Any:
    context = source.create_default_context()
    for name, value in parameters.items():
        context.set(name, value)
    context.time = time
    return source.y(context)


def values_at(source: Any, instants: Any) -> Any:
    context = source.create_default_context()
    found = []
    for time in instants:
        context.time = time
        found.append(source.y(context))
    return np.array(found)


def breaks_of(source: Any, start: float, stop: float) -> list[float]:
    """Walk from break to break as an integrator does."""
    context = source.create_default_context()
    context.time = start
    found: list[float] = []
    while (later := source.calc_next_break_time(context)) <= stop:
        assert later > context.time
        found.append(later)
        context.time = later
    return found


def before(time: float) -> float:
    return float(np.nextafter(time, -np.inf))
