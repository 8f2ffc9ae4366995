"""Jacobians of long equations: a derivative along directions, taken along eight at a time.

Written out, a Jacobian is as many times longer than the equations as there are states, and so is
the time that its compilation takes. Here the derivative along a direction is written once, with
vectors of eight numbers, one for each of eight directions. States that never meet in one equation
share a direction. The function ``jacobian``

1. computes all numbers of the equations that derivatives need, once (``jacobian.values``),
2. computes the derivatives along eight directions after the other (``jacobian.tangent``), and
   picks the entries of the Jacobian from the results.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flexure.diagrams.scalars.derivatives.jacobians import directional
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.scalars.expressions.vocabulary import CONDITIONS
from flexure.diagrams.values.symbolic_values import Key
from flexure.solvers.native.emission.emission import (
    CHUNK,
    SEED,
    Environment,
    Node,
    Text,
    Writer,
    emit,
    emit_preparation,
    key_of,
)

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
    """Writes a function whose outputs are vectors: expressions that depend on a *seed*.

    Any other expression is a number. The products and sums of vectors may be fused to operations
    with one rounding; numbers are rounded as in the equations.
    """

    def __init__(self, name: str, environment: Environment, vectors: Sequence[Any]) -> None:
        super().__init__(name, environment, 1, {})
        self.nodes = reachable(vectors)
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


class DirectionPlan(NamedTuple):
    """Which states are moved together, and what is picked from the results."""

    directions: list[int]  # the direction of each state
    # For each entry, where it is among the results: row by row, and in each row a number for each
    # of the directions that are taken at once.
    sources: list[int]
    # For each turn, in which so many directions are taken, the number of entries up to its end.
    ends: list[int]
    # rows, columns: where the entries are in the Jacobian.
    rows: list[int]
    columns: list[int]


class Sums(NamedTuple):
    """Entries that are sums of several derivatives."""

    ends: list[int]  # for each turn, the number of addends up to its end
    sources: list[int]  # for each addend, where its derivative is in the environment
    targets: list[int]  # the number of the entry
    first: list[int]  # whether it is the first one there
    weights: list[float]  # what it is multiplied by


def emit_tangents(
    expressions: Sequence[Any],
    keys: Sequence[Key],
    reached: Sequence[int],
    environment: Environment,
    zeros: Collection[Key],
) -> tuple[list[Text], int, list[int], list[int]]:
    """Write ``jacobian`` and ``prepare``; arguments and results are those of `emit_jacobian`.

    ``reached`` says of each expression, on which of the keys it depends, as the bits of a number.
    """
    plan = plan_directions(reached, len(keys), WIDTH)
    seeds = [((SEED, 0, 0), k) for k in range(len(keys))]
    found = directional(expressions, keys, seeds)
    vectors = simplify((each for each, bits in zip(found, reached, strict=True) if bits), zeros)
    prepare, base = emit_preparation(vectors, environment)
    tangent = _TangentWriter("jacobian.tangent", environment, vectors)
    places = environment.places
    numbers = [each for each in tangent.operands() if places.get(each.index, " ")[0] != "env"]
    values = emit("jacobian.values", numbers, environment)
    first = environment.reserve(len(numbers))
    copies = {each.index: ("env", first + k) for k, each in enumerate(numbers)}
    environment.places = places | copies
    texts = [prepare, values, tangent.write(vectors, CHUNK)]
    environment.places = places
    room = environment.reserve(WIDTH * len(keys)), environment.reserve(WIDTH * len(vectors))
    numbers_at = (
        f"%values = getelementptr double, ptr %env, i64 {first}\n  call void @jacobian.values"
    )
    driver = direction_driver(
        plan,
        *room,
        before=f"{numbers_at}(double %t, ptr %x, ptr %env, ptr %values)",
        turn="@jacobian.tangent(double %t, ptr %seeds, ptr %env, ptr %results)",
    )
    return [*texts, (driver, set())], base, plan.rows, plan.columns


def plan_directions(reached: Sequence[int], count: int, width: int) -> DirectionPlan:
    """Let states share a direction if no expression depends on two of them.

    ``reached`` says of each expression, on which of the ``count`` states it depends, as the bits of
    a number; there are results for those that depend on some. ``width`` directions are taken at
    once.
    """
    behind = [0] * count  # the expressions that depend on a state, as the bits of a number
    lists = [list(_ones(bits)) for bits in reached]
    for row, columns in enumerate(lists):
        for k in columns:
            behind[k] |= 1 << row
    directions: list[int] = []
    taken: list[int] = []
    for rows in behind:
        direction = next((d for d, other in enumerate(taken) if not rows & other), len(taken))
        if direction == len(taken):
            taken.append(0)
        taken[direction] |= rows
        directions.append(direction)
    entries: list[tuple[int, int, int, int]] = []
    vectors = (row for row, bits in enumerate(reached) if bits)
    for vector, row in enumerate(vectors):
        for k in lists[row]:
            turn, lane = divmod(directions[k], width)
            entries.append((turn, width * vector + lane, row, k))
    entries.sort()
    ends = [0] * (entries[-1][0] + 1 if entries else 0)
    for number, (turn, *_) in enumerate(entries, 1):
        ends[turn] = number
    _, sources, rows_of, columns_of = map(list, zip(*entries, strict=True))
    return DirectionPlan(directions, sources, ends, rows_of, columns_of)


def _ones(bits: int) -> Iterator[int]:
    """Return which bits of a number are set."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


class _TangentWriter(WideWriter):
    """Writes the derivatives along eight directions, in which the states change by ``x``."""

    def _seed(self, position: int) -> str:
        return self._load("x", WIDTH * position)

    def _give(self, position: int, output: Any, handed: Mapping[int, int]) -> None:
        self.set_lanes(WIDTH)
        self._store("out", WIDTH * position, self._as_number(output, handed))
        self.set_lanes(1)


def direction_driver(
    plan: DirectionPlan,
    seeds: int,
    results: int,
    *,
    turn: str,
    before: str = "",
    sums: Sums | None = None,
) -> str:
    """Write the function ``jacobian``, which sets seeds, and picks the entries of the results.

    ``seeds`` and ``results`` is where both are in the environment, in vectors of eight. ``turn`` is
    the function that computes eight directions, with its arguments; ``before`` is done before all
    turns. The turns of ``sums`` are those of the plan; seeds may be among what is added up.
    """
    turns = len(plan.ends)
    turn_of = [direction // WIDTH for direction in plan.directions]
    moved = sorted(range(len(turn_of)), key=turn_of.__getitem__)  # stable
    seeded = [WIDTH * k + plan.directions[k] % WIDTH for k in moved]
    functions = [_table("seeded", seeded) + _SEEDING]  # each with the tables that it alone reads
    lines = [
        _MEMSET,
        _table("seeded.ends", [bisect_right([turn_of[k] for k in moved], n) for n in range(turns)]),
        _table("ends", plan.ends),
        _table("sources", plan.sources),
    ]
    before_sums = adding = ""
    if sums is not None:
        functions.append(sums_function(sums))
        lines.append(_table("sums.ends", sums.ends))
        before_sums = "%sum.begin = phi i64 [ 0, %entry ], [ %sum.end, %turn.end ]"
        adding = _ADDING
    return (
        "\n".join([*functions, *lines])
        + f"""
define void @jacobian(double %t, ptr noalias %x, ptr noalias %env, ptr noalias %out) #0 {{
entry:
  %seeds = getelementptr double, ptr %env, i64 {seeds}
  %results = getelementptr double, ptr %env, i64 {results}
  call void @llvm.memset.p0.i64(ptr %seeds, i8 0, i64 {8 * WIDTH * len(plan.directions)}, i1 false)
  {before}
  br label %turn
turn:
  %number = phi i64 [ 0, %entry ], [ %number.next, %turn.end ]
  %begin = phi i64 [ 0, %entry ], [ %end, %turn.end ]
  %seeds.begin = phi i64 [ 0, %entry ], [ %seeds.end, %turn.end ]
  {before_sums}
  %seeds.end.at = getelementptr i32, ptr @jacobian.seeded.ends, i64 %number
  %seeds.end.short = load i32, ptr %seeds.end.at, align 4
  %seeds.end = zext i32 %seeds.end.short to i64
  call void @jacobian.seed(ptr %seeds, i64 %seeds.begin, i64 %seeds.end, double 1.0)
  br label %tangent
tangent:
  call void {turn}
  %end.at = getelementptr i32, ptr @jacobian.ends, i64 %number
  %end.short = load i32, ptr %end.at, align 4
  %end = zext i32 %end.short to i64
  %any = icmp ult i64 %begin, %end
  br i1 %any, label %pick, label %picked
pick:
  %e = phi i64 [ %begin, %tangent ], [ %e.next, %pick ]
  %source.at = getelementptr i32, ptr @jacobian.sources, i64 %e
  %source = load i32, ptr %source.at, align 4
  %source.long = zext i32 %source to i64
  %result.at = getelementptr double, ptr %results, i64 %source.long
  %result = load double, ptr %result.at, align 8
  %entry.at = getelementptr double, ptr %out, i64 %e
  store double %result, ptr %entry.at, align 8
  %e.next = add i64 %e, 1
  %e.more = icmp ult i64 %e.next, %end
  br i1 %e.more, label %pick, label %picked
picked:
  {adding}
  call void @jacobian.seed(ptr %seeds, i64 %seeds.begin, i64 %seeds.end, double 0.0)
  br label %turn.end
turn.end:
  %number.next = add i64 %number, 1
  %more = icmp ult i64 %number.next, {len(plan.ends)}
  br i1 %more, label %turn, label %done
done:
  ret void
}}
"""
    )


_MEMSET = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"

_SEEDING = """
define internal void @jacobian.seed(ptr %seeds, i64 %first, i64 %last, double %value) #0 {
entry:
  %any = icmp ult i64 %first, %last
  br i1 %any, label %one, label %done
one:
  %k = phi i64 [ %first, %entry ], [ %next, %one ]
  %place.at = getelementptr i32, ptr @jacobian.seeded, i64 %k
  %place = load i32, ptr %place.at, align 4
  %place.long = zext i32 %place to i64
  %seed = getelementptr double, ptr %seeds, i64 %place.long
  store double %value, ptr %seed, align 8
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %last
  br i1 %more, label %one, label %done
done:
  ret void
}
"""
_ADDING = """%sum.end.at = getelementptr i32, ptr @jacobian.sums.ends, i64 %number
  %sum.end.short = load i32, ptr %sum.end.at, align 4
  %sum.end = zext i32 %sum.end.short to i64
  call void @jacobian.add(ptr %env, ptr %out, i64 %sum.begin, i64 %sum.end)"""


def sums_function(sums: Sums) -> str:
    """Write the function ``jacobian.add``, which adds some of the addends to the entries."""
    size, weights = len(sums.weights), ", ".join(f"double {_exact(w)}" for w in sums.weights)
    lines = [
        _table("sums.sources", sums.sources),
        _table("sums.targets", sums.targets),
        _table("sums.first", sums.first),
        f"@jacobian.sums.weights = internal constant [{size} x double] [{weights}]",
    ]
    return "\n".join(lines) + _SUM


_SUM = """
define internal void @jacobian.add(ptr %env, ptr %out, i64 %begin, i64 %end) #0 {
entry:
  %any = icmp ult i64 %begin, %end
  br i1 %any, label %sum, label %done
sum:
  %a = phi i64 [ %begin, %entry ], [ %next, %sum ]
  %source.at = getelementptr i32, ptr @jacobian.sums.sources, i64 %a
  %source = load i32, ptr %source.at, align 4
  %source.long = zext i32 %source to i64
  %value.at = getelementptr double, ptr %env, i64 %source.long
  %value = load double, ptr %value.at, align 8
  %weight.at = getelementptr double, ptr @jacobian.sums.weights, i64 %a
  %weight = load double, ptr %weight.at, align 8
  %part = fmul double %value, %weight
  %target.at = getelementptr i32, ptr @jacobian.sums.targets, i64 %a
  %target = load i32, ptr %target.at, align 4
  %target.long = zext i32 %target to i64
  %entry.at = getelementptr double, ptr %out, i64 %target.long
  %before = load double, ptr %entry.at, align 8
  %first.at = getelementptr i32, ptr @jacobian.sums.first, i64 %a
  %first = load i32, ptr %first.at, align 4
  %is.first = icmp ne i32 %first, 0
  %known = select i1 %is.first, double 0.0, double %before
  %total = fadd double %known, %part
  store double %total, ptr %entry.at, align 8
  %next = add i64 %a, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %sum, label %done
done:
  ret void
}
"""


def _exact(number: float) -> str:
    """Write a number as LLVM reads it without rounding."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def _table(name: str, numbers: Sequence[int]) -> str:
    """Write a table of whole numbers."""
    entries = ", ".join([f"i32 {number}" for number in numbers])
    return f"@jacobian.{name} = internal constant [{len(numbers)} x i32] [{entries}]"
