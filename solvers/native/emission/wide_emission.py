"""Functions that compute with numbers and with vectors of eight numbers.

An expression that depends on a *seed* is a vector, any other one is a number. The products and sums
of vectors may be fused to operations with one rounding; numbers are rounded as in the equations.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from flexure.diagrams import scalars
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.scalars.expressions.vocabulary import CONDITIONS
from flexure.solvers.native.emission.emission import SEED, Environment, Node, Writer, key_of

WIDTH = 8  # numbers in a vector; LLVM splits it where registers are shorter
_FUSED = ("fadd", "fsub", "fmul")


def depending_on_seeds(nodes: Sequence[Node]) -> set[int]:
    """Return the indices of the nodes, each after its operands, that depend on a seed."""
    wide: set[int] = set()
    for node in nodes:
        seed = node.op == "input" and key_of(node)[0][0] == SEED
        if seed or any(arg.index in wide for arg in node.args):
            wide.add(node.index)
    return wide


def operands_of(nodes: Sequence[Node], wide: Container[int]) -> list[Node]:
    """Return what does not depend on seeds, and is an operand of what does; no constants."""
    found = {arg.index: arg for node in nodes if node.index in wide for arg in node.args}
    return [found[k] for k in sorted(found) if k not in wide and found[k].op != "constant"]


class WideWriter(Writer):
    """Writes a function whose outputs are vectors: expressions that depend on seeds."""

    def __init__(self, name: str, environment: Environment, vectors: Sequence[Any]) -> None:
        super().__init__(name, environment, 1, {})
        self.nodes = reachable(each for each in vectors if isinstance(each, scalars.Symbol))
        self.wide = depending_on_seeds(self.nodes)  # the nodes that are vectors

    def operands(self) -> list[Node]:
        """Return the numbers that vectors are computed from."""
        return operands_of(self.nodes, self.wide)

    def _arranged(self, part: list[Node]) -> list[Node]:
        return part  # depth first, since few vectors fit into registers

    def _copies(self, outputs: Sequence[Any]) -> dict[int, int]:
        return {}  # no vector is in the environment

    def _operation(self, node: Node, handed: Mapping[int, int]) -> str:
        self.set_lanes(self._room(node))
        return super()._operation(node, handed)

    def _set(self, instruction: str) -> str:
        operation, rest = instruction.split(" ", 1)
        if self.lanes > 1 and operation in _FUSED:
            instruction = f"{operation} contract {rest}"
        return super()._set(instruction)

    def _value(self, node: Node, handed: Mapping[int, int]) -> str:
        if self.lanes == 1 or node.op == "constant":
            return super()._value(node, handed)
        if node.index in self.wide:
            if node.op == "input":
                return self._seed(key_of(node)[1])
            return super()._value(node, handed)
        if ~node.index not in self.names:
            self.set_lanes(1)
            value = super()._value(node, handed)
            self.set_lanes(WIDTH)
            self.names[~node.index] = self._spread(value, node.op in CONDITIONS)
        return self.names[~node.index]

    def _seed(self, position: int) -> str:
        """Return how a seed is written."""
        raise NotImplementedError

    def _spread(self, value: str, truth: bool) -> str:
        """Put a number into all lanes."""
        kind, single = (self.truth, "i1") if truth else (self.number, "double")
        first = self._set(f"insertelement {kind} poison, {single} {value}, i64 0")
        zeros = f"<{WIDTH} x i32> zeroinitializer"
        return self._set(f"shufflevector {kind} {first}, {kind} poison, {zeros}")

    def _room(self, node: Node) -> int:
        return WIDTH if node.index in self.wide else 1

    def _address(self, array: str, position: int) -> str:
        return self._set(f"getelementptr inbounds double, ptr %{array}, i64 {position}")
