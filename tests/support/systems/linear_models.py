"""Linear models by their transfer functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import flexure as fx


def transfer_model(
    numerator: Sequence[float], denominator: Sequence[float], period: float | None = None
) -> fx.LinearModel:
    """Return the model of a transfer function in s, or with a period in z."""
    model = free_model(fx.TransferFunction("block", numerator, denominator))
    return replace(model, period=period)


def free_model(block: fx.System) -> fx.LinearModel:
    """Return the model of a block from its inputs to its outputs."""
    context = block.create_default_context()
    for port in block.input_ports:
        context.set(port.name, np.zeros(port.size or 0))
    return fx.linearize(block, context)
