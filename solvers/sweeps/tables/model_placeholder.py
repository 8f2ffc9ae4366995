"""A placeholder of a model of which only the contents of a file are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flexure.diagrams.checks.errors import ContextError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.sweeps.store.study_tables import Outline


class AbsentModel:
    """The system and the runs of a study that was loaded without its model.

    Attributes
    ----------
    label : str
        What the system is called.
    plan : Plan
        What the runs differ in.
    varied : dict
        What is known of it, by path.
    values : dict
        The same as `plan`, as arrays of shape ``(N, *shape)``.
    states : list of str
        Names of the continuous states.
    """

    def __init__(self, outline: Outline, path: str) -> None:
        self.label = outline.label
        self.plan = outline.plan
        self.varied = outline.varied
        self.states = outline.states
        self.values = {
            name: column.reshape(len(column), *outline.varied[name].shape)
            for name, column in outline.plan.columns().items()
        }
        self._path = path

    def __getattr__(self, name: str) -> Any:
        """Refuse what the model would know."""
        if name.startswith("__") or "_path" not in self.__dict__:
            raise AttributeError(name)
        raise ContextError(
            f"Cannot ask '{self.label}' for its {name.strip('_')}",
            expected="a study that was loaded with its model",
            found="one that was loaded without",
            remedy=f"Load it with fx.load_study({self._path!r}, system=...)",
        )

    def __repr__(self) -> str:
        return f"<model '{self.label}', which was not loaded>"


class AbsentMetrics(NamedTuple):
    """What is known of measurements without the functions that made them.

    Attributes
    ----------
    readers : mapping
        What is known of the signals that were kept, by path.
    times : ndarray, shape (K,)
        When they were sampled.
    units : mapping
        Units of the metrics by name.
    """

    readers: Mapping[str, Any]
    times: FloatArray
    units: Mapping[str, str]
