"""Figures and axes of Matplotlib that a notebook shows once; imported when something is drawn."""

from __future__ import annotations

import importlib
from typing import Any

from matplotlib import _pylab_helpers, axes, figure

from flexure.diagrams.drawing.formats.new_figures import forget, has_windows


class Axes(axes.Axes):
    """Axes that a notebook shows as their picture."""

    def _ipython_display_(self) -> None:
        _show(self.figure.figure)


class Figure(figure.Figure):
    """A figure whose axes, too, a notebook shows as a picture, and only once."""

    def add_subplot(self, *args: Any, **options: Any) -> Any:
        """Add axes, of the class above unless they exist or another kind is asked for."""
        return super().add_subplot(*args, **_with_class(args, options))

    def add_axes(self, *args: Any, **options: Any) -> Any:
        """Add axes, as `add_subplot` does."""
        return super().add_axes(*args, **_with_class(args, options))

    def _ipython_display_(self) -> None:
        _show(self)


def _with_class(args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    exist = bool(args) and isinstance(args[0], axes.Axes)
    kinds = {"axes_class", "projection", "polar"} & options.keys()
    return options if exist or kinds else options | {"axes_class": Axes}


def _show(drawn: Any) -> None:
    """Show a figure in a notebook, at which pyplot forgets it; nothing if it has a window."""
    # Pyplot shows the figures of a cell after it, and does so by this function.
    managers = _pylab_helpers.Gcf.get_all_fig_managers()
    if any(manager.canvas.figure is drawn for manager in managers):
        if has_windows():
            return
        forget(drawn)
    core: Any = importlib.import_module("IPython")
    formats = core.get_ipython().display_formatter.formatters
    shown = {kind: make(drawn) for kind, make in formats.items() if kind.startswith("image/")}
    found = {kind: image for kind, image in shown.items() if image is not None}
    core.display.display(found or {"text/plain": repr(drawn)}, raw=True)
