"""Conversion of linear models to objects of python-control and SciPy, and back.

python-control refuses dots in the names of signals. They become colons, and characters that would
be read as such a colon in the reverse conversion are written as in web addresses: "%3A" for ":",
"%25" for "%".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks.linear_systems.foreign_systems import kind_of, matrices_of, period_of
from flexure.diagrams.checks.arguments import import_extra, require
from flexure.diagrams.checks.errors import ValueRefusedError

if TYPE_CHECKING:
    from flexure.solvers.analysis.linear_models.linear_model import LinearModel


def to_control(model: LinearModel) -> Any:
    """Return a ``control.StateSpace``."""
    control = import_extra("control", "control", "Cannot convert the model")
    names = {
        "inputs": model.input_names,
        "outputs": model.output_names,
        "states": model.state_names,
    }
    for what, each in names.items():
        twice = sorted({name for name in each if each.count(name) > 1})
        require(
            not twice, twice, "Cannot convert the model for python-control", f"different {what}"
        )
    return control.StateSpace(
        *(model.A, model.B, model.C, model.D),
        0 if model.period is None else model.period,
        remove_useless_states=False,
        **{what: [_without_dots(name) for name in each] for what, each in names.items()},
    )


def to_scipy(model: LinearModel) -> Any:
    """Return a ``scipy.signal.StateSpace``."""
    from scipy import signal

    matrices = (model.A, model.B, model.C, model.D)
    options = {} if model.period is None else {"dt": model.period}
    return signal.StateSpace(*matrices, **options)


def parts_of(system: Any, package: str, period: float | None) -> dict[str, Any]:
    """Return the fields of the model of a linear system of a package."""
    attempt = f"Cannot make a linear model of an object of {package}"
    kind = kind_of(system)
    fits = kind is not None and kind.package == package
    require(fits, system, attempt, f"a linear system of {package}")
    A, B, C, D = matrices_of(system, attempt, ValueRefusedError)
    (p, m), n = D.shape, len(A)
    return {
        "A": A,
        "B": B,
        "C": C,
        "D": D,
        "x0": np.zeros(n),
        "u0": np.zeros(m),
        "y0": np.zeros(p),
        "xdot0": np.zeros(n),
        "time": 0.0,
        "state_names": _names(getattr(system, "state_labels", None), n, "x"),
        "input_names": _names(getattr(system, "input_labels", None), m, "u"),
        "output_names": _names(getattr(system, "output_labels", None), p, "y"),
        "how": f"as {package} has it",
        "period": period_of(system, period, attempt, ValueRefusedError),
    }


def _names(labels: Iterable[str] | None, size: int, letter: str) -> list[str]:
    """Return the names that stand behind labels, or new ones."""
    names = [] if labels is None else [_with_dots(label) for label in labels]
    return names if len(names) == size else [f"{letter}[{k}]" for k in range(size)]


def _without_dots(name: str) -> str:
    """Return a name as python-control takes it.

    >>> _without_dots("pid.x[integral]")
    'pid:x[integral]'
    """
    return name.replace("%", "%25").replace(":", "%3A").replace(".", ":")


def _with_dots(label: str) -> str:
    """Return the name behind a label.

    >>> _with_dots("pid:x[integral]"), _with_dots(_without_dots("a.x[10:30 %]"))
    ('pid.x[integral]', 'a.x[10:30 %]')
    """
    return label.replace(":", ".").replace("%3A", ":").replace("%25", "%")
