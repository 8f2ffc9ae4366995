"""Loops over the rows of jobs that compute derivatives along eight directions beside the numbers.

Numbers are computed anew in every turn of eight directions: they are fewer than their derivatives.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flexure.solvers.native.emission.emission import CHUNK, SEED, Environment, Node, Text
from flexure.solvers.native.emission.wide_emission import WIDTH, WideWriter
from flexure.solvers.native.sharing.families.value_columns import IntArray
from flexure.solvers.native.sharing.jobs.job_loops import Loop, Repetition

_VECTOR = f"<{WIDTH} x double>"


@dataclass
class TangentRepetition(Repetition):
    """Expressions that are computed for many instances, and derivatives beside them."""

    # The nodes of the derivatives of inputs, and the places of these in the environment.
    seeds: list[tuple[Node, IntArray]]
    # The derivatives of results, and where these go in the environment.
    tangents: list[tuple[Any, IntArray]]


class TangentLoop(Loop):
    """A loop that reads and writes vectors of derivatives behind its numbers."""

    repetition: TangentRepetition
    _may_skip = False

    def _take_in(self, own: Environment, wanted: Container[int] | None = None) -> list[str]:
        lines = super()._take_in(own, wanted)
        self._first_seed = own.size
        for k, (seed, places) in enumerate(self.repetition.seeds):
            own.places[seed.index] = SEED, k
            at = own.reserve(WIDTH)
            lines += [
                *self._address(f"seed.{k}.from", "env", places),
                f"  %seed.{k} = load {_VECTOR}, ptr %seed.{k}.from, align 8",
                f"  %seed.{k}.to = getelementptr inbounds double, ptr %inputs, i64 {at}",
                f"  store {_VECTOR} %seed.{k}, ptr %seed.{k}.to, align 8",
            ]
        return lines

    def _body(self, own: Environment) -> Text:
        numbers = self.repetition.expressions
        vectors = [vector for vector, _ in self.repetition.tangents]
        writer = _BodyWriter(f"{self.name}.body", own, vectors, len(numbers), self._first_seed)
        return writer.write([*numbers, *vectors], CHUNK)

    def _take_out(self) -> tuple[int, list[str]]:
        size, lines = super()._take_out()
        for k, (_, places) in enumerate(self.repetition.tangents):
            lines += [
                f"  %tangent.{k}.from = getelementptr inbounds double, ptr %results, i64 {size}",
                f"  %tangent.{k} = load {_VECTOR}, ptr %tangent.{k}.from, align 8",
                *self._address(f"tangent.{k}.to", "env", places),
                f"  store {_VECTOR} %tangent.{k}, ptr %tangent.{k}.to, align 8",
            ]
            size += WIDTH
        return size, lines


class _BodyWriter(WideWriter):
    """Writes numbers, and vectors behind them."""

    def __init__(
        self,
        name: str,
        environment: Environment,
        vectors: Sequence[Any],
        numbers: int,
        first_seed: int,
    ) -> None:
        super().__init__(name, environment, vectors)
        self._numbers = numbers
        self._first_seed = first_seed

    def _seed(self, position: int) -> str:
        return self._load("env", self._first_seed + WIDTH * position)

    def _give(self, position: int, output: Any, handed: Mapping[int, int]) -> None:
        behind = position - self._numbers
        self.set_lanes(1 if behind < 0 else WIDTH)
        place = position if behind < 0 else self._numbers + WIDTH * behind
        self._store("out", place, self._as_number(output, handed))
        self.set_lanes(1)
