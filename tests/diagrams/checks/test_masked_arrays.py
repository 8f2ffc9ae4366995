"""Masked arrays: what is behind a mask is no value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.forces.fits.dynamic_stiffness import as_complex
from flexure.diagrams.checks.errors import FlexureError
from tests.support.tiers import for_each


class Answering(fx.LeafSystem):
    """A block that answers whatever it was given."""

    def __init__(self, answer: Any) -> None:
        super().__init__("answering")
        self.y = self.declare_vector_output("y", 3, lambda _: answer)


def masked() -> Any:
    return np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])


def of(block: fx.System, use: Callable[[Any, fx.Context], Any]) -> Callable[[], Any]:
    return lambda: use(block, block.create_default_context())


@for_each(
    "use",
    [
        lambda: fx.Gain("gain", masked()),
        lambda: fx.Constant("constant", [[1.0, 2.0, 3.0], masked()]),
        lambda: fx.PlantBuilder("plant", gravity=masked()),
        of(fx.Constant("constant", np.ones(3)), lambda b, c: b.value.set(c, masked())),
        of(fx.Gain("gain", np.ones(3)), lambda b, c: b.u.fix(c, masked())),
        of(Answering(masked()), lambda b, c: b.y.eval(c)),
        of(Answering([1.0, masked()[1:]]), lambda b, c: b.y.eval(c)),
        lambda: as_complex(masked() * 1j, 3, "Cannot fit"),
    ],
)
def test_masked_numbers_are_refused_wherever_arrays_come_in(use: Callable[[], Any]) -> None:
    with pytest.raises(FlexureError, match=r"a masked array with 1 of [23] masked.*compressed"):
        use()


def test_a_masked_array_without_a_masked_number_is_an_array() -> None:
    block = fx.Gain("gain", np.ma.array([1.0, 2.0], mask=False))
    context = block.create_default_context()
    block.u.fix(context, np.ma.array([3.0, 4.0]))
    assert block.y.eval(context).tolist() == [3.0, 8.0]
