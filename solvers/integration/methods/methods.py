"""The integration methods by name, and the SciPy solver class behind each name.

============================  =====================================================================
``RK45`` ``RK23`` ``DOP853``  explicit Runge-Kutta with error control
``DormandPrince``             RK45 with proportional-integral control of its steps
``Rodas5P``                   linearly implicit (Rosenbrock) with error control, for stiff systems
``ESDIRK4``                   diagonally implicit with error control, for stiff mechanisms
``Radau`` ``BDF``             implicit, for stiff systems
``LSODA``                     multistep, changes between a stiff and a nonstiff method by itself
``euler``                     explicit Euler, fixed step
``semi_explicit_euler``       velocities first, then positions with the new velocities, fixed step
``rk2``                       Heun's method (explicit trapezoid), fixed step
``rk4``                       the classical Runge-Kutta method, fixed step
``implicit_euler``            Newton iterations, fixed step
``generalized_alpha``         order 2 with as much damping of fast modes as wanted, fixed step
============================  =====================================================================

``DormandPrince``, ``Rodas5P`` and ``ESDIRK4`` live in
``flexure.solvers.integration.methods.dormand_prince``, ``rosenbrock`` and ``esdirk``, the
fixed-step methods in ``flexure.solvers.integration.methods.fixed_step``; the others are SciPy's
own. Importing this module does not import SciPy; resolving a name does.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, suggestion

if TYPE_CHECKING:
    from scipy.integrate import OdeSolver


_SCIPY = "scipy.integrate"
_DORMAND_PRINCE = "flexure.solvers.integration.methods.dormand_prince"
_ROSENBROCK = "flexure.solvers.integration.methods.rosenbrock"
_ESDIRK = "flexure.solvers.integration.methods.esdirk"
_FIXED_STEP = "flexure.solvers.integration.methods.fixed_step"
_CLASSES = {
    "RK45": (_SCIPY, "RK45"),
    "RK23": (_SCIPY, "RK23"),
    "DOP853": (_SCIPY, "DOP853"),
    "DormandPrince": (_DORMAND_PRINCE, "DormandPrince"),
    "Rodas5P": (_ROSENBROCK, "Rodas5P"),
    "ESDIRK4": (_ESDIRK, "ESDIRK4"),
    "Radau": (_SCIPY, "Radau"),
    "BDF": (_SCIPY, "BDF"),
    "LSODA": (_SCIPY, "LSODA"),
    "euler": (_FIXED_STEP, "ExplicitEuler"),
    "semi_explicit_euler": (_FIXED_STEP, "SemiExplicitEuler"),
    "rk2": (_FIXED_STEP, "RungeKutta2"),
    "rk4": (_FIXED_STEP, "RungeKutta4"),
    "implicit_euler": (_FIXED_STEP, "ImplicitEuler"),
    "generalized_alpha": (_FIXED_STEP, "GeneralizedAlpha"),
}
_IMPLICIT = {"Rodas5P", "ESDIRK4", "Radau", "BDF", "LSODA", "implicit_euler", "generalized_alpha"}
_FOLDED = {name.casefold(): name for name in _CLASSES}

# Constructor parameters that solve_ivp fills in, or that only a class passes to its base.
_ARGUMENTS = {"self", "fun", "t0", "y0", "t_bound", "vectorized", "support_complex"}
_OPTIONS: dict[str | type[OdeSolver], frozenset[str]] = {}

METHOD_NAMES: tuple[str, ...] = tuple(_CLASSES)
"""Every method that can be asked for by name."""


def resolve(method: str | type[OdeSolver]) -> type[OdeSolver]:
    """Return the solver class of a method: one of `METHOD_NAMES`, in upper or lower case.

    A subclass of `OdeSolver` is returned as it is. Raises `UnknownNameError` or
    `ValueRefusedError`.

    Examples
    --------
    >>> resolve("dop853").__name__
    'DOP853'
    """
    if isinstance(method, str):
        return _class_of(_canonical(method))
    from scipy.integrate import OdeSolver

    from flexure.diagrams.checks.arguments import shown

    candidate: object = method
    if not (isinstance(candidate, type) and issubclass(candidate, OdeSolver)):
        raise ValueRefusedError(
            "Cannot use this integration method",
            expected="a name or a subclass of scipy.integrate.OdeSolver",
            found=shown(method),
            remedy=suggestion(method, METHOD_NAMES),
        )
    return candidate


def method_name(method: str | type[OdeSolver]) -> str:
    """Return the name of a method as `METHOD_NAMES` spells it, or the name of a foreign class.

    >>> method_name("radau")
    'Radau'
    """
    return _canonical(method) if isinstance(method, str) else resolve(method).__name__


def option_names(method: str | type[OdeSolver]) -> frozenset[str]:
    """Return the names of the options that the solver class of a method understands.

    >>> sorted(option_names("rk4"))
    ['step', 'stretch']
    """
    solver = resolve(method)  # refuses what cannot be looked up, too
    if method not in _OPTIONS:
        _OPTIONS[method] = frozenset(_parameters(solver)) - _ARGUMENTS
    return _OPTIONS[method]


def is_fixed_step(method: str | type[OdeSolver]) -> bool:
    """Return whether a method takes steps of one length and controls no error.

    >>> is_fixed_step("rk4"), is_fixed_step("RK45")
    (True, False)
    """
    if isinstance(method, str):
        return _CLASSES[_canonical(method)][0] == _FIXED_STEP
    return "step" in option_names(method)


def is_implicit(method: str | type[OdeSolver]) -> bool:
    """Return whether a method solves equations with the Jacobian of the right-hand side.

    >>> is_implicit("Radau"), is_implicit("RK45")
    (True, False)
    """
    if isinstance(method, str):
        return _canonical(method) in _IMPLICIT
    return "jac" in option_names(method)


def _canonical(name: str) -> str:
    """Return a name as `METHOD_NAMES` spells it."""
    try:
        return _FOLDED[name.casefold()]
    except KeyError:
        raise UnknownNameError(
            f"Cannot find the integration method {name!r}", remedy=suggestion(name, METHOD_NAMES)
        ) from None


@cache
def _class_of(name: str) -> type[OdeSolver]:
    """Import the class behind a name."""
    module, attribute = _CLASSES[name]
    found: type[OdeSolver] = getattr(importlib.import_module(module), attribute)
    return found


def _parameters(solver: type[OdeSolver]) -> Iterator[str]:
    """Go through the parameters of the constructors of a class and of its bases."""
    for base in solver.__mro__:
        if "__init__" in vars(base):
            for parameter in inspect.signature(vars(base)["__init__"]).parameters.values():
                if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                    yield parameter.name
