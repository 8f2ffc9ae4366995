"""Excitations: test signals that are added to an input or wire in a copy of a system."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from flexure.blocks.signals.waveforms import logarithmic_sweep
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import UnknownNameError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.rewiring import insert_blocks
from flexure.diagrams.contexts.value_places import Place, Way, find_place, several
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import TIME, InputPort, OutputPort
from flexure.diagrams.values.arrays import Array, FloatArray
from flexure.solvers.analysis.equations.equations import carries_vector, find_ports, wire_at
from flexure.solvers.analysis.linear_models.linear_inputs import is_fed, wire_place

_TAPER = 0.1  # part of a chirp at either end


class AddedSignal(LeafSystem):
    """Adds a test signal, the sum of ``s``, to a component of a wire, and opens components of it.

    ``y = where(is_open, base, u) + direction sum(s)``
    """

    def __init__(self, name: str, size: int, num_parts: int) -> None:
        super().__init__(name)
        none = np.zeros(size)
        self.direction = self.declare_numeric_parameter("direction", none)
        self.is_open = self.declare_numeric_parameter("is_open", none)
        self.base = self.declare_numeric_parameter("base", none, allow_infinite=True)
        self.u = self.declare_vector_input("u", size)
        self.s = self.declare_vector_input("s", num_parts, default=np.zeros(num_parts))
        self.y = self.declare_vector_output("y", size, self.calc_y, prerequisites=[self.u, self.s])
        self.signal = self.declare_vector_output(
            "signal", 1, self.calc_signal, prerequisites=[self.s]
        )

    def calc_signal(self, context: Any) -> Array:
        """Return the test signal."""
        return np.sum(self.s(context)).reshape(1)

    def calc_y(self, context: Any) -> Array:
        """Return what goes on behind the wire."""
        passed = scalars.where(self.is_open(context) > 0.5, self.base(context), self.u(context))
        return passed + self.direction(context) * np.sum(self.s(context))


class ChirpBurst(LeafSystem):
    """A sine of the frequency f0 (f1 / f0)^(t / duration) in Hz, which begins and ends smoothly."""

    def __init__(
        self, name: str, amplitude: float, f0: float, f1: float, duration: float, start: float
    ) -> None:
        super().__init__(name)
        self.amplitude = self.declare_numeric_parameter("amplitude", [amplitude])
        self.f0 = self.declare_numeric_parameter("f0", [f0], unit="Hz")
        self.f1 = self.declare_numeric_parameter("f1", [f1], unit="Hz")
        self.duration, self.start = duration, start
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[TIME])

    def calc_y(self, context: Any) -> Array:
        """Return the chirp, whose envelope rises and falls like a cosine."""
        time = np.clip(context.time - self.start, 0.0, self.duration)
        edge = np.minimum(time, self.duration - time) / (_TAPER * self.duration)
        envelope = np.sin(0.5 * np.pi * np.minimum(edge, 1.0)) ** 2
        cycles = logarithmic_sweep(time, self.duration, self.f0(context), self.f1(context))
        return self.amplitude(context) * envelope * np.sin(2.0 * np.pi * cycles)


class ExcitedSystem:
    """A copy of a system with a test signal added at one of its inputs or wires.

    The signal of ``source`` is added at a component of ``entry``, a free input port or a port on a
    wire between blocks, and loops are opened at ``openings``, ports on wires. The context, which
    is a root context, is not changed.
    """

    def __init__(
        self,
        context: Context,
        entry: Way,
        outputs: Way | Iterable[Way],
        openings: Way | Iterable[Way],
        source: LeafSystem,
        attempt: str,
    ) -> None:
        system = context.system
        place = find_place(system, entry, carries_vector)
        if not _can_be_excited(context, place.handle):
            raise UnknownNameError(
                f"{attempt} with an input at '{place.path}'",
                expected="a free input port, or a port on a wire between blocks",
                found=f"the {place.handle.what} '{place.handle.full_name}'",
                remedy="At a parameter of a source such as a Constant, name the output of the "
                "source, to which the signal is added",
            )
        if len(place.components) != 1:
            raise UnknownNameError(
                f"{attempt} with an input at '{place.path}'",
                expected="an input with one component",
                found=f"{len(place.components)} components",
                remedy=f"Name one of them, such as '{place.path}[0]'",
            )
        place.read(context)  # an input that is not fixed
        shown = find_ports(system, outputs, "an output")
        opened = [wire_place(context, w, f"{attempt} with an opening") for w in several(openings)]
        for each in (place, *shown, *opened):
            context.find(each.handle.system, each.handle)  # refuses ports of other systems
        self.entry_name = place.names[0]  # the component that is excited
        self.output_names = [name for each in shown for name in each.names]
        port = wire_at(place.handle)
        chains: dict[InputPort | OutputPort, list[LeafSystem]] = {}
        added = AddedSignal("excitation", port.size, source.output_ports[0].size or 1)
        chains[port] = [added, source]
        for each in opened:
            at = wire_at(each.handle)
            chains.setdefault(at, [AddedSignal("opening", at.size, 1)])
        handles = [_read(each.handle, port, added) for each in shown]
        own = [handle for handle in handles if handle is not added.y]
        # Of the copy; `inner` is the system there, which is in a diagram if it is a block.
        self.context, (*copies, self.inner) = insert_blocks(context, chains, [*own, system])
        whole: dict[Any, Any] = dict(zip(own, copies, strict=True)) | {added.y: added.y}
        self.outputs = [  # in the copy
            _way(replace(each, handle=whole[handle]))
            for each, handle in zip(shown, handles, strict=True)
        ]
        self.signal, self.source = added.signal, source  # the test signal in the copy
        direction = np.zeros(port.size)
        direction[place.components] = 1.0
        added.direction.set(self.context, direction)
        for each in opened:
            at = wire_at(each.handle)
            block: Any = chains[at][0]
            mask: FloatArray = np.array(block.is_open(self.context))
            mask[each.components] = 1.0
            block.is_open.set(self.context, mask)
            block.base.set(self.context, at(context))


def _can_be_excited(context: Context, handle: Any) -> bool:
    """Return whether a handle is that of a vector port at which something can be added."""
    return carries_vector(handle) and (
        isinstance(handle, OutputPort)
        or is_fed(context, handle)
        or context.find(handle.system, handle).input_is_free(handle.index)
    )


def _read(handle: Any, port: Any, added: AddedSignal) -> Any:
    """Return where an output is read: of a block before what is added, of an input behind it."""
    if isinstance(handle, OutputPort):
        return handle.origin
    return added.y if handle is port and handle.system.parent is None else handle


def _way(place: Place) -> Way:
    """Return a handle, or the path of a component."""
    return place.handle if place.part is None else replace(place, alias=None).path
