"""New figures of Matplotlib: of pyplot, which shows them, where that is possible."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from flexure.diagrams.checks.arguments import file_path, require
from flexure.diagrams.drawing.formats.style import check_file, check_target
from flexure.diagrams.files.atomic_files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Drawn = TypeVar("Drawn", "Axes", "Figure")


def new_figure(*, moving: bool = False, **options: Any) -> Figure:
    """Return a new figure.

    In the main thread pyplot knows it, and shows it with ``plt.show()`` or after the cell of a
    notebook; but not one that is ``moving``, if pyplot would show it as a still. Pyplot counts its
    figures for one thread only, so that elsewhere the figure is one by itself.
    """
    from flexure.diagrams.drawing.formats.shown_figures import Figure

    if threading.current_thread() is threading.main_thread():
        import matplotlib.pyplot as plt

        if has_windows() or not moving:
            return plt.figure(FigureClass=Figure, **options)
    return Figure(**options)


def has_windows() -> bool:
    """Return whether pyplot shows figures in windows of their own, and not after cells or never."""
    import matplotlib.pyplot as plt

    backend = plt.get_backend().lower()
    return backend != "agg" and "inline" not in backend


def axes_or_new(ax: Axes | None, **options: Any) -> Axes:
    """Return the axes passed by the user, or those of a new figure, with options for the figure."""
    return new_figure(layout="constrained", **options).subplots() if ax is None else ax


def forget(figure: Figure) -> None:
    """Let pyplot forget a figure, if it knows it."""
    if figure.canvas.manager is not None:
        import matplotlib.pyplot as plt

        plt.close(figure)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as a file, in the format that the ending of its name tells, or as PNG.

    An older file is replaced once the new one is complete.
    """
    name = file_path(path, "Cannot save a figure")
    known = figure.canvas.get_supported_filetypes()
    ending = Path(name).suffix[1:].lower()
    remedy = f"Formats that Matplotlib knows: {', '.join(known)}"
    wanted = "a name that ends in a known format"
    require(not ending or ending in known, name, "Cannot save a figure", wanted, remedy=remedy)
    ending = ending or str(figure.canvas.get_default_filetype())
    with replacing(name if Path(name).suffix else f"{name}.{ending}", binary=True) as file:
        figure.savefig(file, format=ending, dpi=150)


def saved(drawn: Drawn, path: str | Path | None) -> Drawn:
    """Return axes or a figure, after `save_figure` if a path is given; all that draw end here.

    What is in a file need not be shown: pyplot then forgets the figure, if it was made here.
    """
    if path is not None:
        from flexure.diagrams.drawing.formats.shown_figures import Figure

        try:
            save_figure(drawn.figure.figure, path)
        finally:
            if isinstance(drawn.figure.figure, Figure):
                forget(drawn.figure.figure)
    return drawn


class Plotted:
    """Base of results that one picture shows; their classes say what is in it."""

    _figsize: ClassVar[tuple[float, float] | None] = None

    def plot(self, ax: Axes | None = None, path: str | Path | None = None) -> Axes:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to plot; a new figure when omitted.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        check_target(ax, path, _attempt(self))
        ax = axes_or_new(ax, figsize=self._figsize)
        self._draw(ax)
        return saved(ax, path)

    def _draw(self, ax: Axes) -> None:
        """Draw into axes, within limits that stay."""
        raise NotImplementedError


class PlottedInPanels:
    """Base of results that a figure of several panels shows; their classes say what is in it."""

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the figure.

        Parameters
        ----------
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        check_file(path, _attempt(self))
        return saved(self._figure(), path)

    def _figure(self) -> Figure:
        """Return a new figure, drawn."""
        raise NotImplementedError


def _attempt(result: object) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(result).__name__).lower()
    return f"Cannot plot the {words}"
