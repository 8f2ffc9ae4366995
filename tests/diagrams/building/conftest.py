"""What tests of the builder share."""

from __future__ import annotations

import pytest

import flexure as fx
from tests.support.systems.blocks import Gain
from tests.support.systems.builders import Two


@pytest.fixture(params=["plain wires", "networkx"])
def builder(request: pytest.FixtureRequest) -> fx.DiagramBuilder:
    """Hold two gains "a" and "b", a block "two", and a wire from a to b; the graph seen or not."""
    builder = fx.DiagramBuilder("plant")
    builder.add_all(Gain("a"), Gain("b"), Two("two"))
    builder.connect("a.y", "b.u")
    if request.param == "networkx":
        _ = builder.graph
    return builder
