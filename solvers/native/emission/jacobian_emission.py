"""Jacobians as LLVM functions that compute the derivatives by several states at once.

A node has derivatives by many states, and what is computed for one of them is computed for all. So
they are taken in blocks: one operation on a vector replaces as many operations on numbers, which
makes the code several times shorter. That counts: such code is run once from its beginning to its
end, and takes longer to fetch than to execute. The products and sums of derivatives may be fused to
operations with one rounding; what they are derivatives of is rounded as in the equations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flexure.diagrams import scalars
from flexure.diagrams.scalars.derivatives.jacobians import FEW, are_apart, reach
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.values.symbolic_values import Key
from flexure.solvers.native.emission.emission import (
    CHUNK,
    SEED,
    Environment,
    Text,
    depth_first,
    emit_preparation,
    emit_with_preparation,
)
from flexure.solvers.native.emission.tangent_emission import WIDTH, WideWriter, emit_tangents
from flexure.solvers.native.llvm.library import ModuleTexts, cut
from flexure.solvers.tracing.compile_limits import WRITTEN, refuse_beyond

_FILLED = 2.0  # derivatives per vector, below which vectors do not pay
LONG = 10_000  # vectors on the way to a Jacobian, from which on one direction at a time pays

#: The keys of the inputs that stand for vectors with a one and zeros.
SEEDS: tuple[Key, ...] = tuple(((SEED, 0, 0), lane) for lane in range(WIDTH))


class JacobianText(NamedTuple):
    """The functions ``jacobian`` and ``prepare``."""

    texts: list[Text]  # as `emit` returns them
    base: int  # where the results of ``prepare`` go
    # rows, columns: where the entries are that ``jacobian`` computes.
    rows: list[int]
    columns: list[int]
    way: str  # how it does that, in words

    @property
    def code(self) -> ModuleTexts:
        """The functions on their way to a library."""
        return cut(self.texts)


def emit_jacobian(
    expressions: Sequence[Any],
    keys: Sequence[Key],
    environment: Environment,
    zeros: Collection[Key],
) -> JacobianText:
    """Write a function that computes the derivatives of expressions that are not always zero.

    They are differentiated by the inputs ``keys``, and inputs in ``zeros`` are zero.
    """
    expressions = simplify(expressions, zeros)  # without checks, which the derivatives make
    reached = reach(expressions, keys)[1] if len(keys) <= FEW else {}
    if _vectors(reached.values(), len(keys)) > LONG:
        if are_apart(expressions, reached):
            return _one_by_one(scalars.jacobian(expressions, keys), environment, zeros)
        refuse_beyond(WRITTEN, len(reached), "the Jacobian of derivatives")
        behind = [reached.get(each.index, 0) if _is_symbol(each) else 0 for each in expressions]
        return JacobianText(
            *emit_tangents(expressions, keys, behind, environment, zeros), "one direction at a time"
        )
    found = scalars.block_jacobian(expressions, keys, SEEDS)
    if found.filling < _FILLED:
        return _one_by_one(scalars.jacobian(expressions, keys), environment, zeros)
    vectors = simplify(found.vectors, zeros)
    prepare, base = emit_preparation(vectors, environment)
    writer = _JacobianWriter(environment, vectors, found.lanes)
    refuse_beyond(WRITTEN, len(writer.wide), "a Jacobian")
    texts = [prepare, writer.write(vectors, CHUNK)]
    return JacobianText(texts, base, found.rows, found.columns, f"by {WIDTH} states at once")


def _one_by_one(
    found: scalars.Jacobian, environment: Environment, zeros: Collection[Key]
) -> JacobianText:
    """Write every entry by itself."""
    entries = simplify(found.entries, zeros)
    refuse_beyond(WRITTEN, len(depth_first(entries, {})), "a Jacobian")
    functions = {"jacobian": entries}
    texts, base = emit_with_preparation(functions, environment)
    return JacobianText([*texts.values()], base, found.rows, found.columns, "one by one")


def _is_symbol(value: Any) -> bool:
    """Return whether a value is an expression and no number."""
    return isinstance(value, scalars.Symbol)


def _vectors(reached: Iterable[int], count: int) -> int:
    """Return how many vectors it takes to differentiate all nodes in blocks of keys."""
    size = -(-count // WIDTH)
    return sum(size - bits.to_bytes(size, "little").count(0) for bits in reached)


class _JacobianWriter(WideWriter):
    """Writes the entries of a Jacobian out of vectors."""

    def __init__(
        self,
        environment: Environment,
        vectors: Sequence[Any],
        lanes: Sequence[Sequence[tuple[int, int]]],
    ) -> None:
        super().__init__("jacobian", environment, vectors)
        self._wanted = lanes

    def _seed(self, position: int) -> str:
        """Return a vector of zeros and a one."""
        return "<" + ", ".join(f"double {float(k == position)}" for k in range(WIDTH)) + ">"

    def _give(self, position: int, output: Any, handed: Mapping[int, int]) -> None:
        self.set_lanes(WIDTH)
        vector = self._as_number(output, handed)
        kind = self.number
        self.set_lanes(1)
        for lane, place in self._wanted[position]:
            one = self._set(f"extractelement {kind} {vector}, i64 {lane}")
            self._store("out", place, one)
