"""The plan of a system's native code, with reasons: the second step, after `system_trace`.

Whether code is shared decides whether all blocks are traced together, so `make_plan` lets them be
traced. The thresholds are here, each with its reason; those of what is too long to compile at all,
for native code as for Python, are in `flexure.solvers.tracing.compile_limits`. What is decided is
printed by ``print(plan)``; `program` compiles it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexure.diagrams.systems.layout import Layout
from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.native.programs.method_programs import METHODS, NativeMethod
from flexure.solvers.native.programs.system_trace import SystemTrace
from flexure.solvers.tracing.compile_limits import SHARED, WRITTEN, refuse_beyond
from flexure.solvers.tracing.trace import SymbolicStore, trace

if TYPE_CHECKING:
    from flexure.solvers.native.emission.sparse_factors import BlockFactors, SparseFactors
    from flexure.solvers.native.sharing.jobs.shared_derivatives import SharedDerivatives

#: From this many calculations of blocks on, what is alike shares code: chains of masses compile
#: faster so, and one block of each kind is traced. What sharing has to save is in its room.
_MANY = 200
#: With fewer calculations, from this many operations on: for free bodies it pays from there.
_LONG = 3000
#: With so many blocks of one kind and so many states, as the segments of beams have, there usually
#: are that many. Then sharing is tried before everything is traced together.
_ALIKE, _STATES = 8, 80
_IS_LONG = f"they are {_LONG} operations or more"
#: Characters of derivatives, about 3000 operations, beyond which one explicit step serves all
#: systems: a step of its own is translated and compiled anew for each.
_LARGE = 200_000
#: Operations of all stages, up to which a step gains by having them in one piece with it; beyond, a
#: call of the derivatives costs next to nothing.
_INLINED = 2000
#: States, up to which a step is faster with one number at a time, see `Library`.
_FEW = 32


@dataclass(frozen=True)
class StepPlan:
    """How the trial step of a method is made."""

    # The number of states for which it is made; None for the step that serves all systems.
    states: int | None
    is_inlined: bool  # whether the derivatives are put into it; otherwise it calls them
    is_vectorized: bool  # whether LLVM may compute several states at once
    because: str  # why

    def __str__(self) -> str:
        if self.states is None:
            return f"the one for any system, because {self.because}"
        rhs = "with the derivatives in it" if self.is_inlined else "with calls of the derivatives"
        wide = ", several at once" if self.is_vectorized else ""
        return f"specialized to {self.states} states{wide}, {rhs}, because {self.because}"


@dataclass(frozen=True)
class JacobianPlan:
    """How a Jacobian is computed, and how linear equations with it are solved."""

    entries: int  # how many are not always zero
    way: str  # how they are computed
    # What solving with sparse factors needs; None where dense ones are as fast.
    factors: SparseFactors | None
    # What solving with factors in blocks of states needs; None where sparse ones are as fast.
    blocks: BlockFactors | None = None

    def __str__(self) -> str:
        solved = "dense factors, because sparse ones would hardly be shorter"
        if self.factors is not None:
            solved = f"sparse factors, because they take {self.factors.products} products"
        if self.blocks is not None:
            assert self.factors is not None
            solved = (
                f"factors in {self.blocks.count} blocks of {self.blocks.size} states, "
                f"{self.blocks.expressed} others expressed by these, because they take "
                f"{self.blocks.products} products in tiles, and sparse ones {self.factors.products}"
            )
        return f"{self.entries} entries, computed {self.way}; {solved}"


@dataclass(frozen=True)
class Plan:
    """Which native code a system gets, and why, as far as that is decided.

    There are ``operations`` of the derivatives, of which code has ``written``; where it is shared,
    ``blocks`` of so many ``kinds`` take part, and ``because`` says why it is shared or written out,
    of ``length`` characters. ``modules`` says how what was compiled at first, all but steps and
    Jacobian, was given to LLVM. ``jacobian`` is None as long as none was requested, or for the
    reason ``no_jacobian``.
    """

    states: int
    operations: int
    because: str
    written: int
    blocks: int = 0
    kinds: int = 0
    length: int = 0
    modules: str = ""
    jacobian: JacobianPlan | None = None
    no_jacobian: str = ""

    @property
    def is_shared(self) -> bool:
        """Whether what is alike shares code."""
        return self.kinds > 0

    def step(self, name: str) -> StepPlan:
        """Return how the trial step of a method is made, by the name of the method.

        The Jacobian decides it for a method with linear equations: before there is one, one step
        serves all systems.
        """
        method = METHODS[name]
        is_own, because = self._has_own_step(method)
        is_short = self.operations * method.last <= _INLINED
        if is_own and not self.is_shared:
            stages = f"{'at most' if is_short else 'more than'} {_INLINED} operations"
            because += f", and all stages take {stages}"
        return StepPlan(
            states=self.states if is_own else None,
            is_inlined=self.length > 0 and is_short,
            is_vectorized=not method.linear and self.states > _FEW,
            because=because,
        )

    def _has_own_step(self, method: NativeMethod) -> tuple[bool, str]:
        """Return whether a system gets a step of its own, and why."""
        if method.linear:
            if self.jacobian is None:
                return False, "its Jacobian was not asked for"
            factors = self.jacobian.factors
            if factors is None:
                return False, "linear equations are dense"
            short = "short" if factors.is_short else "long"
            return factors.is_short, f"the code of their {factors.products} products is {short}"
        if self.is_shared:
            return False, "the derivatives share code"
        if self.length > _LARGE:
            return False, f"the derivatives take more than {_LARGE} characters"
        return self.length > 0, f"the derivatives take {self.length} characters of up to {_LARGE}"

    def __str__(self) -> str:
        derivatives = f"written out, {self.operations} operations"
        if self.is_shared:
            derivatives = (
                f"shared by what is alike in {self.blocks} blocks of {self.kinds} kinds, "
                f"{self.operations} -> {self.written} operations"
            )
        lines = [f"derivatives: {derivatives}, because {self.because}", f"code: {self.modules}"]
        steps: dict[str, list[str]] = {}
        for name, method in METHODS.items():
            is_open = method.linear and self.jacobian is None
            text = "decided with the Jacobian" if is_open else str(self.step(name))
            steps.setdefault(text, []).append(name)
        lines += [f"step of {', '.join(names)}: {text}" for text, names in steps.items()]
        none = f"none, because {self.no_jacobian}" if self.no_jacobian else "not asked for"
        return "\n".join([*lines, f"Jacobian: {self.jacobian or none}"])


def make_plan(
    layout: Layout, traced: SystemTrace, environment: Environment
) -> tuple[Plan, SharedDerivatives | None]:
    """Trace a root system, and decide how its derivatives become code.

    Whether code is shared is decided by the number of blocks and their kinds, before anything is
    traced, or else by the trace, which ``traced`` takes. The environment gives room to what shared
    code needs. Shared derivatives are returned with the plan. Raises `TraceError` when the
    derivatives cannot be traced, or would take too long to compile.
    """
    shared, because = None, f"fewer than {_LONG} gain nothing by sharing"
    has_many = len(layout.plan) + len(layout.dynamic) >= _MANY
    is_tried = has_many or _may_be_long(layout)
    if is_tried:
        shared, obstacle = _share(layout, traced, environment, least=0 if has_many else _LONG)
        reason = f"blocks have {_MANY} calculations or more" if has_many else _IS_LONG
        because = obstacle or reason

    def read(store: SymbolicStore) -> tuple[SharedDerivatives | None, str]:
        rates = traced.read_derivatives(store)
        found: tuple[SharedDerivatives | None, str] = None, because
        if traced.operations >= _LONG and not is_tried:
            found = _share_long(store, rates, traced, environment)
        if found[0] is None:
            refuse_beyond(WRITTEN, traced.operations, "derivatives")
        traced.read_conditions(store)
        return found

    if shared is None:
        shared, because = trace(layout, read)
    else:
        traced.operations, traced.timed = shared.operations, shared.timed
        if layout.projecting or any(leaf.events for leaf in layout.leaves):
            trace(layout, traced.read_conditions)
    if shared is None:
        return Plan(layout.num_states, traced.operations, because, traced.operations), None
    made = Plan(
        layout.num_states,
        traced.operations,
        because,
        written=shared.written,
        blocks=shared.blocks,
        kinds=shared.kinds,
    )
    return made, shared


def _share_long(
    store: SymbolicStore, rates: Sequence[Any], traced: SystemTrace, environment: Environment
) -> tuple[SharedDerivatives | None, str]:
    """Return derivatives that are long with shared code, or why that does not pay."""
    from flexure.solvers.native.sharing.jobs.shared_derivatives import may_pay

    if not may_pay(store, rates):
        return None, "one part of a block makes up too much of them"
    refuse_beyond(SHARED, traced.operations, "derivatives")
    shared, obstacle = _share(store.layout, traced, environment)
    return shared, obstacle or _IS_LONG


def _may_be_long(layout: Layout) -> bool:
    """Return whether many blocks are of one kind, and states so many that they compute much."""
    if layout.num_states < _STATES or len(layout.leaves) < _ALIKE:
        return False
    from flexure.solvers.native.sharing.families.structural_key import most_alike

    return most_alike(layout.leaves) >= _ALIKE


def _share(
    layout: Layout, traced: SystemTrace, environment: Environment, *, least: int = 0
) -> tuple[SharedDerivatives | None, str]:
    """Return the derivatives with the code of what is alike shared, or why that does not pay."""
    if environment.driven:
        return None, "inputs change with time"
    if any(leaf.abstract_parameters or leaf.abstract_states for leaf in layout.leaves):
        # Such a system is not traced as a whole, which events and Jacobians need.
        return None, "some parameters or states are no numbers"
    from flexure.solvers.native.sharing.families.diagram_walk import UnlikeError
    from flexure.solvers.native.sharing.jobs.shared_derivatives import SharedDerivatives

    try:
        return SharedDerivatives(layout, environment, traced.zeros, least), ""
    except UnlikeError as error:
        return None, str(error)
