"""New figures of Matplotlib: of pyplot, which shows them, where that is possible."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(**options: Any) -> Figure:
    """Return a new figure.

    In the main thread pyplot knows it, and shows it with ``plt.show()`` or in a notebook. Pyplot
    counts its figures for one thread only, so that elsewhere the figure is one by itself.
    """
    if threading.current_thread() is threading.main_thread():
        import matplotlib.pyplot as plt

        return plt.figure(**options)
    from matplotlib.figure import Figure

    return Figure(**options)


def forget(figure: Figure) -> None:
    """Let pyplot forget a figure, if it knows it."""
    if figure.canvas.manager is not None:
        import matplotlib.pyplot as plt

        plt.close(figure)


__all__ = ["forget", "new_figure"]
