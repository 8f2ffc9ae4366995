"""Warnings of elements so far beyond a limit that static results may be wrong."""

from __future__ import annotations

from collections.abc import Iterable

from flexure.blocks.multibody.force_elements.limits import limited_elements
from flexure.diagrams.checks.errors import warn
from flexure.diagrams.contexts.context import Context

_SHOWN = 3  # elements that a warning names


def warn_of_misleading_limits(contexts: Iterable[Context], about: str) -> None:
    """Warn of elements beyond the limits from which on their equilibria mislead.

    For each limit the worst context counts. The message begins with ``about``, as in
    ``"The equilibrium of 'stage'"``.
    """
    worst: dict[str, tuple[float, str]] = {}
    for context in contexts:
        for path, element in limited_elements(context):
            if all(limit.misleads == float("inf") for limit in element.limits):
                continue
            shares = element.utilization(context)
            for limit, share in zip(element.limits, shares, strict=True):
                excess = float(share) / limit.misleads
                if excess > max(1.0, worst.get(path, (0.0, ""))[0]):
                    bound, unit = float(limit.bound_in(context)), f" {limit.unit}".rstrip()
                    told = (
                        f"{path}: {limit.quantity} {float(share) * bound:.3g}{unit}, beyond"
                        f" {limit.misleads:g} times its limit of {bound:.3g}{unit}. {limit.look}"
                    )
                    worst[path] = excess, told
    if not worst:
        return
    ordered = sorted(worst.values(), reverse=True)
    told = "; ".join(text for _, text in ordered[:_SHOWN])
    more = f"; and {len(ordered) - _SHOWN} more elements" if len(ordered) > _SHOWN else ""
    warn(
        f"{about} may err by several percent, or have a wrong shape, since single elements "
        f"represent too large a part. {told}{more}"
    )
