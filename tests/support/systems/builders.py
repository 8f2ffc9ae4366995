"""Builders to try refusals on, and what a refused call must leave as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import flexure as fx
from flexure.diagrams.building.wires import Wires
from flexure.diagrams.checks.errors import FlexureError, WiringError


class Two(fx.LeafSystem):
    """Two vector inputs, two vector outputs, and an abstract one of each."""

    def __init__(self, name: str = "two") -> None:
        super().__init__(name)
        self.declare_vector_input("u1", 1)
        self.declare_vector_input("u2", 2)
        self.declare_abstract_input("message", default="none")
        self.declare_vector_output("y1", 1, abs, prerequisites=[])
        self.declare_vector_output("y2", 2, abs, prerequisites=[])
        self.declare_abstract_output("news", abs, prerequisites=[])


def contents(builder: fx.DiagramBuilder) -> dict[str, Any]:
    """Copy everything that a builder holds, its blocks' claims included."""
    held: dict[str, Any] = {
        name: (list(value.nodes), list(value.edges))
        if isinstance(value, (Wires, nx.DiGraph))
        else copy.copy(value)
        for name, value in vars(builder).items()
    }
    return held | {"claims": [system.claimed_by for system in builder.systems]}


def place_of(call: Callable[[], object]) -> str:
    """Name the file and line of the call that a lambda or a function of one line makes."""
    line = max(line for _, _, line in call.__code__.co_lines() if line is not None)
    return f"{Path(call.__code__.co_filename).name}:{line}"


def refusal(
    builder: fx.DiagramBuilder, call: Callable[[], object], kind: type[FlexureError] = WiringError
) -> str:
    """Return the text of a refusal without the place, which must be the line of the call."""
    before = contents(builder)
    with pytest.raises(kind) as caught:
        call()
    assert contents(builder) == before
    assert type(caught.value) is kind
    place = f" (at {place_of(call)})"
    assert str(caught.value).count(place) == 1, caught.value
    return str(caught.value).replace(place, "")
