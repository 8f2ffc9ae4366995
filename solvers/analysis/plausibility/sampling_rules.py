"""The rule about sampled loops: the growth of a deviation over one sampling period."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from flexure.diagrams.contexts.context import LeafContext
from flexure.diagrams.contexts.updates import run_updates
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.events import Event, Periodic
from flexure.solvers.analysis.plausibility.diagnosed_system import DiagnosedSystem
from flexure.solvers.analysis.plausibility.findings import Finding

_GROWTH = 1e3
_LARGEST = 60  # numbers in states
_INCREMENTS = (1e-6, 1e-4)


def sampled_gain(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find sampled loops in which a deviation grows a thousandfold from one sample to the next.

    The map of a deviation over one period is the product of the updates, linearized by finite
    differences, and the matrix exponential of the motion between them. The growth is its spectral
    radius, divided by that without updates. A stable loop has less than 1; at 1000 a gain is far
    too large or a period too long. A jump, as at the edge of a quantizer, is no gain: the rule
    takes the smaller growth of two increments.
    """
    layout = diagnosed.context.store.layout
    by_period: dict[float, list[tuple[LeafContext, Event]]] = {}
    for leaf in diagnosed.leaves:
        for event in leaf.system.events:
            if event.kind != "publish" and isinstance(event.trigger, Periodic):
                by_period.setdefault(event.trigger.period, []).append((leaf, event))
    for period, due in by_period.items():
        leaves = list({leaf.system: leaf for leaf, _ in due}.values())
        groups = [state for leaf in leaves for state in leaf.system.discrete_states]
        size = layout.num_states + sum(state.size for state in groups)
        if size > _LARGEST:
            diagnosed.unchecked.append(f"sampled loops, because of {size} states at {period:g} s")
            continue
        if not layout.num_states or diagnosed.equations is None:
            continue
        growth = partial(_growth, diagnosed, period, due, leaves)
        found, least = min((growth(increment), increment) for increment in _INCREMENTS)
        if found > _GROWTH:
            blocks = tuple(diagnosed.system_path(leaf.system) for leaf in leaves)
            yield Finding(
                "sampled gain",
                (*diagnosed.governing(partial(growth, least)), *blocks),
                f"deviations grow {found:.2g} times within one period of {period:g} s",
                found,
                "",
                _GROWTH,
                "A stable loop has a growth below 1",
                "Check the gains of the sampled blocks and the unit of the period (s, not ms)",
            )


def _growth(
    diagnosed: DiagnosedSystem,
    period: float,
    due: Sequence[tuple[LeafContext, Event]],
    leaves: Sequence[LeafContext],
    increment: float,
) -> float:
    """Return the growth of a deviation in a period with updates over that without updates."""
    from scipy.linalg import expm

    store = diagnosed.context.store
    n = store.layout.num_states
    memories = [list(leaf.abstract) for leaf in leaves]
    states = [(leaf, state) for leaf in leaves for state in leaf.system.discrete_states]

    def read() -> FloatArray:
        return np.concatenate([store.x, *(state(leaf) for leaf, state in states)])

    def write(point: FloatArray) -> None:
        store.set_motion(store.time, freeze(point[:n].copy()))
        start = n
        for leaf, state in states:
            leaf.write_discrete_state(state.index, freeze(point[start : start + state.size].copy()))
            start += state.size
        for leaf, memory in zip(leaves, memories, strict=True):
            leaf.abstract = list(memory)  # so that noise is the same each time

    def updated(point: FloatArray) -> FloatArray:
        write(point)
        run_updates(due)
        return read()

    def rates(point: FloatArray) -> FloatArray:
        write(point)
        return np.array(store.time_derivatives())

    start = read()
    update, flow = [], []
    for k in range(len(start)):
        ahead, behind = start.copy(), start.copy()
        ahead[k] += increment
        behind[k] -= increment
        with np.errstate(all="ignore"):
            update.append((updated(ahead) - updated(behind)) / (2.0 * increment))
            if k >= n:
                flow.append((rates(ahead) - rates(behind)) / (2.0 * increment))
    write(start)
    generator = np.zeros((len(start), len(start)))
    generator[:n, :n] = diagnosed.matrix()
    if flow:
        generator[:n, n:] = np.transpose(flow)
    drift = expm(generator * period)
    step = drift @ np.transpose(update)
    if not (np.isfinite(drift).all() and np.isfinite(step).all()):
        return 0.0
    with_updates, without = (np.max(np.abs(np.linalg.eigvals(each))) for each in (step, drift))
    return float(with_updates / max(without, 1.0))


RULES = (sampled_gain,)
