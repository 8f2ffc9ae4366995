"""Jacobians as LLVM functions that compute the derivatives by several states at once.

A node has derivatives by many states, and what is computed for one of them is computed for all. So
they are taken in blocks: one operation on a vector stands for as many operations on numbers, which
makes the code several times shorter. That counts: such code is run once from its beginning to its
end, and takes longer to fetch than to execute. The products and sums of derivatives may be fused
to operations with one rounding; what they are derivatives of is rounded as in the equations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from flexure.diagrams import scalars
from flexure.diagrams.scalars.expression import reachable
from flexure.diagrams.scalars.simplification import simplify
from flexure.diagrams.scalars.vocabulary import CONDITIONS
from flexure.solvers.native.emission import (
    CHUNK,
    SEED,
    Environment,
    Node,
    Writer,
    emit_preparation,
    emit_with_preparation,
    key_of,
)
from flexure.solvers.trace import Key

_WIDTH = 8  # numbers in a vector; LLVM splits it where registers are shorter
_FILLED = 2.0  # derivatives per vector, below which vectors do not pay
_FUSED = ("fadd", "fsub", "fmul")

#: The keys of the inputs that stand for vectors with a one and zeros.
SEEDS: tuple[Key, ...] = tuple(((SEED, 0, 0), lane) for lane in range(_WIDTH))


class JacobianText(NamedTuple):
    """The functions ``jacobian`` and ``prepare``.

    Attributes
    ----------
    texts : list
        As `emit` returns them.
    base : int
        Where the results of ``prepare`` go.
    rows, columns : list of int
        Where the entries are that ``jacobian`` computes.
    """

    texts: list[tuple[str, set[str]]]
    base: int
    rows: list[int]
    columns: list[int]


def emit_jacobian(
    expressions: Sequence[Any],
    keys: Sequence[Key],
    environment: Environment,
    zeros: Collection[Key],
) -> JacobianText:
    """Write a function that computes the derivatives of expressions that are not always zero.

    Parameters
    ----------
    expressions : sequence
        Expressions of one trace, or numbers.
    keys : sequence of Key
        The inputs of the trace by which they are differentiated.
    environment : Environment
        As for `emit`.
    zeros : collection of Key
        Inputs that are zero.
    """
    found = scalars.block_jacobian(expressions, keys, SEEDS)
    if found.filling < _FILLED:
        plain = scalars.jacobian(expressions, keys)
        functions = {"jacobian": simplify(plain.entries, zeros)}
        texts, base = emit_with_preparation(functions, environment)
        return JacobianText([*texts.values()], base, plain.rows, plain.columns)
    vectors = simplify(found.vectors, zeros)
    prepare, base = emit_preparation(vectors, environment)
    writer = _JacobianWriter(environment, vectors, found.lanes)
    return JacobianText([prepare, writer.write(vectors, CHUNK)], base, found.rows, found.columns)


class _JacobianWriter(Writer):
    """Writes a function whose outputs are vectors: expressions that depend on seeds."""

    def __init__(
        self,
        environment: Environment,
        vectors: Sequence[Any],
        lanes: Sequence[Sequence[tuple[int, int]]],
    ) -> None:
        super().__init__("jacobian", environment, 1, {})
        self._wanted = lanes
        self._wide: set[int] = set()
        for node in reachable(each for each in vectors if isinstance(each, scalars.Symbol)):
            seed = node.op == "input" and key_of(node) in SEEDS
            if seed or any(arg.index in self._wide for arg in node.args):
                self._wide.add(node.index)

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
        if node.index in self._wide:
            if node.op == "input":
                return self._unit(key_of(node)[1])
            return super()._value(node, handed)
        if ~node.index not in self.names:
            self.set_lanes(1)
            value = super()._value(node, handed)
            self.set_lanes(_WIDTH)
            self.names[~node.index] = self._spread(value, node.op in CONDITIONS)
        return self.names[~node.index]

    def _unit(self, lane: int) -> str:
        """Return a vector of zeros and a one."""
        return "<" + ", ".join(f"double {float(k == lane)}" for k in range(_WIDTH)) + ">"

    def _spread(self, value: str, truth: bool) -> str:
        """Put a number into all lanes."""
        kind, single = (self.truth, "i1") if truth else (self.number, "double")
        first = self._set(f"insertelement {kind} poison, {single} {value}, i64 0")
        zeros = f"<{_WIDTH} x i32> zeroinitializer"
        return self._set(f"shufflevector {kind} {first}, {kind} poison, {zeros}")

    def _room(self, node: Node) -> int:
        return _WIDTH if node.index in self._wide else 1

    def _address(self, array: str, position: int) -> str:
        return self._set(f"getelementptr inbounds double, ptr %{array}, i64 {position}")

    def _give(self, position: int, output: Any, handed: Mapping[int, int]) -> None:
        self.set_lanes(_WIDTH)
        vector = self._as_number(output, handed)
        kind = self.number
        self.set_lanes(1)
        for lane, place in self._wanted[position]:
            one = self._set(f"extractelement {kind} {vector}, i64 {lane}")
            self._store("out", place, one)
