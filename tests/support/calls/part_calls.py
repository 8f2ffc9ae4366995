"""Working calls of methods of handles, joints and plants."""

from __future__ import annotations

from typing import Any

from tests.support.calls.odd_arguments import Call
from tests.support.calls.public_calls import Make, Relaxation, plant


def handle_call(name: str, verb: str, **arguments: Any) -> Make:
    def make() -> Call:
        leaf = Relaxation()
        context = leaf.create_default_context()
        call = getattr(getattr(leaf, name), verb)
        return Call(call, {"context": context, **arguments}, context.to_dict)

    return make


def joint_call(verb: str, **arguments: Any) -> Make:
    def make() -> Call:
        made, context = plant()
        call = getattr(made.joint("axis"), verb)
        return Call(call, {"context": context, **arguments}, context.to_dict)

    return make


def plant_call(verb: str, **arguments: Any) -> Make:
    def make() -> Call:
        made, context = plant()
        return Call(getattr(made, verb), {"context": context, **arguments}, context.to_dict)

    return make


def of_plant(name: str) -> Make:
    return lambda: Call(getattr(plant()[0], name), {"name": "nobody"})
