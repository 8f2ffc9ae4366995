"""A placeholder of a model of which only the contents of a file are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flexure.diagrams.checks.errors import ContextError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.sweeps.store.study_tables import Outline


class AbsentModel:
    """The system and the runs of a study that was loaded without its model."""

    def __init__(self, outline: Outline, path: str) -> None:
        self.label = outline.label  # what the system is called
        self.plan = outline.plan  # what the runs differ in
        self.varied = outline.varied  # what is known of it, by path
        self.states = outline.states  # names of the continuous states
        # The same as `plan`, as arrays of shape ``(N, *shape)``.
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
    """What is known of measurements without the functions that made them."""

    readers: Mapping[str, Any]  # what is known of the signals that were kept, by path
    times: FloatArray  # when they were sampled, shape (K,)
    units: Mapping[str, str]  # units of the metrics by name
