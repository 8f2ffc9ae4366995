"""The methods with native loops, and the library of the loops of each."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexure.diagrams.concurrency.threads import once
from flexure.solvers.integration.guard import stiffness_detection
from flexure.solvers.integration.methods import tableaus
from flexure.solvers.integration.methods.step_control import (
    BETA,
    LARGEST_FACTOR,
    LARGEST_ROSENBROCK_FACTOR,
)
from flexure.solvers.native.llvm.library import Address, Library

if TYPE_CHECKING:
    from flexure.solvers.native.emission.sparse_factors import SparseFactors


_SMALL = 8  # states that fit into the registers of a processor, more or less
#: Kernels in whose loops a step with factors in tiles gains by several rounds at once. A quarter of
#: the time of compiling it went into the loops of others. With other factors all loops gain.
_UNROLLED = (
    *("add", "add_stages", "add_up", "all_finite", "eliminate", "error_norm", "find_stage"),
    *("point", "scale", "take_increment"),
)


@dataclass(frozen=True)
class NativeMethod:
    """The data of a method that the translation of its loops needs."""

    name: str  # as in `flexure.solvers.integration.methods.methods.METHOD_NAMES`
    tableau: Any  # its coefficients
    last: int  # the row of the slopes that holds the slope at the new state
    rows: int  # number of rows of slopes and stages
    bends: int  # number of rows of coefficients of the interpolant
    largest_factor: float  # by which a step may be longer than the one before
    linear: bool = False  # whether a step solves linear equations
    iterative: bool = False  # whether it does so until nonlinear ones hold
    beta: float = 0.0  # weight of the error before the last in step-size control
    threshold: float = 0.0  # of the test for stiffness; 0.0 for methods that have none
    # The difference of the last two points of a step as a sum of slopes, divided by the step.
    difference: tuple[float, ...] = ()

    @property
    def ends(self) -> tuple[float, ...]:
        """Weights of all slopes, those of the interpolant included, at the end of a step."""
        if self.iterative:
            return (*self.tableau.A[-1], self.tableau.gamma)
        return (*self.tableau.B, *[0.0] * (self.rows - len(self.tableau.B)))

    @property
    def error_order(self) -> int:
        """Order of the solution that the error estimate compares with."""
        return int(self.tableau.error_order)


def _explicit(tableau: tableaus.ExplicitTableau, name: str = "", beta: float = 0.0) -> NativeMethod:
    stages = len(tableau.B)
    return NativeMethod(
        name=name or tableau.name,
        tableau=tableau,
        last=stages,
        rows=stages + 1 + len(tableau.C_extra),
        bends=len(tableau.P[0]) if tableau.P else 7,
        largest_factor=LARGEST_FACTOR,
        beta=beta,
        threshold=stiffness_detection.THRESHOLDS.get(tableau.name, 0.0),
        difference=tableau.last_difference,
    )


METHODS: dict[str, NativeMethod] = {
    method.name: method
    for method in (
        _explicit(tableaus.RK23),
        _explicit(tableaus.RK45),
        _explicit(tableaus.DOP853),
        _explicit(tableaus.RK45, "DormandPrince", BETA),
        NativeMethod(
            name=tableaus.RODAS5P.name,
            tableau=tableaus.RODAS5P,
            last=len(tableaus.RODAS5P.alpha) + 1,
            rows=len(tableaus.RODAS5P.alpha) + 2,
            bends=4,
            largest_factor=LARGEST_ROSENBROCK_FACTOR,
            linear=True,
        ),
        NativeMethod(
            name=tableaus.ESDIRK4.name,
            tableau=tableaus.ESDIRK4,
            last=tableaus.ESDIRK4.stages + 1,
            rows=tableaus.ESDIRK4.stages + 2,
            bends=4,
            largest_factor=LARGEST_ROSENBROCK_FACTOR,
            linear=True,
            iterative=True,
        ),
    )
}


#: Methods whose steps can be differentiated: those of Rosenbrock's would need second derivatives.
DIFFERENTIABLE = tuple(
    name for name, method in METHODS.items() if method.iterative or not method.linear
)


@once
def loops(name: str, eventful: bool) -> Library:
    """Return the loop of a method, ``advance(run)``, for systems with and without events."""
    kind = "with" if eventful else "without"
    key = f"loop of {name} {kind} events, {source_identity()}"
    return Library(key, lambda: loops_text(METHODS[name], eventful), level=1)


@once
def resampling(name: str, kernel: str) -> Library:
    """Return what repeats steps of a method: ``resample_all(run, ...)``, or ``retrace_all``."""

    def text() -> str:
        from flexure.solvers.native.kernels.steps import resampling as kernels

        return _translated(getattr(kernels, kernel), {"method": METHODS[name]})

    return Library(f"{kernel} of {name}, {source_identity()}", text, level=1)


@once
def column_loops(name: str, tile: int) -> Library:
    """Return the loop of a method for states with columns of derivatives, ``follow(run)``.

    It includes the equations, ``rates_of_all`` and ``jacobian_of_states``, and the ``attempt`` of
    an implicit method, whose factors have tiles of a size, or none if it is zero.
    """
    method = METHODS[name]
    key = f"loop of {name} with columns, in tiles of {tile}, {source_identity()}"
    return Library(key, lambda: column_loops_text(method, tile), level=1)


@once
def adjoint_loops(name: str) -> Library:
    """Return the loop that goes backward through steps of a method, ``go_back``."""

    def text() -> str:
        from flexure.solvers.native.kernels.runs.adjoint_runs import go_back

        method = METHODS[name]
        return _translated(go_back, {"method": method, "ends": method.ends}, unrolled=None)

    return Library(f"adjoint of {name}, {source_identity()}", text)


@once
def generic_attempt(name: str, tile: int = 0) -> Address:
    """Return the address of the trial step of a method for any system.

    With a size of tiles, it is for those whose linear equations have factors in such tiles.
    """
    method = METHODS[name]
    key = f"attempt of {name} in tiles of {tile}, {source_identity()}"
    library = Library(key, lambda: attempt_text(method, tile))
    return library.address("attempt")


@once
def source_identity() -> str:
    """Return a hash of everything that loops are translated from."""
    digest = hashlib.blake2b(digest_size=16)
    for file in sources():
        digest.update(file.read_bytes())
    return digest.hexdigest()


def sources() -> list[Path]:
    """Return the files with everything that loops are translated from, and by."""
    solvers = Path(__file__).resolve().parents[2]
    below = (
        *("methods/projecting.py", "guard/progress_limits.py", "methods/step_control.py"),
        *("guard/stiffness_detection.py", "methods/tableaus.py"),
    )
    below_native = [solvers / "integration" / name for name in below]
    below_native.append(solvers / "results" / "measures" / "polynomials.py")
    return sorted([*(solvers / "native").rglob("*.py"), *below_native])


# The kernels are imported where they are translated: from the cache, loops come without.


def loops_text(method: NativeMethod, eventful: bool) -> str:
    """Write the loop of a method."""
    from flexure.solvers.native.kernels.runs.advance import advance

    return _translated(advance, {"method": method, "eventful": eventful})


def _translated(
    kernel: Any, statics: dict[str, Any], unrolled: tuple[str, ...] | None = (), name: str = ""
) -> str:
    """Write a kernel under its own name, or another one."""
    from flexure.solvers.native.language.translation import Module

    module = Module(unrolled=unrolled)
    module.translate(kernel, name or kernel.__name__, statics)
    return module.text


def column_loops_text(method: NativeMethod, tile: int) -> str:
    """Write the loop of a method for states with columns of derivatives."""
    from flexure.solvers.native.kernels.parts import state_derivatives
    from flexure.solvers.native.kernels.runs import sensitivity_runs
    from flexure.solvers.native.language.expressions import FUNCTION, Value
    from flexure.solvers.native.language.translation import Module

    module = Module()
    module.translate(sensitivity_runs.follow, "follow", {"method": method})
    module.translate(state_derivatives.rates_of_all, "rates_of_all")
    if method.iterative:
        module.translate(state_derivatives.jacobian, "jacobian_of_states")
        module.translate(state_derivatives.rates, "rates_of_states")
        rates = Value(FUNCTION, "@rates_of_states")
        statics = {"tableau": method.tableau, "tile": tile, "f": rates}
        module.translate(kernels_of(method).attempt_with_columns, "attempt", statics)
    return module.text


def kernels_of(method: NativeMethod) -> Any:
    """Return the module with the kernels of the trial step of a method."""
    from flexure.solvers.native.kernels.steps import esdirk, explicit, rosenbrock

    if method.iterative:
        return esdirk
    return rosenbrock if method.linear else explicit


def attempt_text(method: NativeMethod, tile: int) -> str:
    """Write the trial step of a method for any system, or any with factors in tiles of a size."""
    kernels, statics = kernels_of(method), {"tableau": method.tableau}
    if not tile:
        return _translated(kernels.attempt_any, statics, None, "attempt")
    statics["tile"] = tile
    return _translated(kernels.attempt_in_tiles, statics, _UNROLLED, "attempt")


def specialized_attempt(
    method: NativeMethod, n: int, rhs: tuple[str, set[str]], factors: SparseFactors | None
) -> str:
    """Write the trial step of a method for a number of states.

    The text of the function ``rhs`` is put into it, and so are the places of sparse factors.
    Without a text, it calls the derivatives wherever they are.
    """
    from flexure.solvers.native.language.expressions import FUNCTION, Value
    from flexure.solvers.native.language.translation import Module

    text, declarations = rhs
    statics: dict[str, Any] = {"tableau": method.tableau, "n": n}
    if method.linear:
        statics["factors"] = factors
        statics["tile"] = 0
    kernels = kernels_of(method)
    kernel = kernels.attempt_from_afar
    module = Module()
    if text:
        module.functions["rhs"] = text
        module.declarations |= declarations
        statics["f"] = Value(FUNCTION, "@rhs")
        small = n <= _SMALL and not method.linear
        kernel = kernels.attempt_small if small else kernels.attempt
    module.translate(kernel, "attempt", statics)
    return module.text
