"""Colors of stresses, from none to where the material yields, and what explains them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.drawing.formats.style import COLOR_MAP, GREY, RED
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.mechanisms.flexure_shapes import Ribbon

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.diagrams.contexts.context import Context

_UNITS = (("MPa", 1e6), ("kPa", 1e3), ("Pa", 1.0))
_ENOUGH = 0.1  # of a unit
_COUNT = 64  # colors of a page


def color_table() -> dict[str, Any]:
    """Return the colors from no stress to the limit, and that beyond, for pages."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    shares = np.linspace(0.0, 1.0, _COUNT)
    return {"colors": [to_hex(color) for color in colormaps[COLOR_MAP](shares)], "beyond": RED}


class StressColors:
    """One color for each stress, red beyond the least yield strength.

    Without a yield strength of each material the colors end at the greatest stress that is shown.

    The context gives the yield strengths; ``stresses`` are all stresses of each of the beams.
    """

    def __init__(
        self, beams: Sequence[Ribbon], context: Context, stresses: Sequence[FloatArray]
    ) -> None:
        strengths = [ribbon.yield_strength(context) for ribbon in beams]
        known = [strength for strength in strengths if strength is not None]
        self.by_yield = len(known) == len(strengths)  # whether that is where a material yields
        greatest = max((float(np.max(each, initial=0.0)) for each in stresses), default=0.0)
        self.upper = min(known) if self.by_yield else greatest or 1.0  # where colors end, in Pa

    def __call__(self, stresses: FloatArray) -> list[str]:
        """Return the color of each stress as ``"#rrggbb"``."""
        from matplotlib.colors import to_hex

        colors, norm = self._map()
        return [to_hex(color) for color in colors(norm(stresses))]

    def draw_bar(self, ax: Axes) -> None:
        """Say beside axes what the colors mean."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.ticker import FuncFormatter

        colors, norm = self._map()
        unit, size = next((each for each in _UNITS if self.upper >= _ENOUGH * each[1]), _UNITS[-1])
        extend = "max" if self.by_yield else "neither"
        bar = ax.figure.colorbar(
            ScalarMappable(norm, colors), ax=ax, pad=0.02, shrink=0.7, extend=extend
        )
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda stress, _: f"{stress / size:.4g}"))
        bar.set_label(f"stress in {unit}{', up to yield' if self.by_yield else ''}", color=GREY)
        bar.ax.tick_params(colors=GREY, labelsize="small")
        bar.outline.set_visible(False)

    def _map(self) -> tuple[Any, Any]:
        from matplotlib import colormaps
        from matplotlib.colors import Normalize

        return colormaps[COLOR_MAP].with_extremes(over=RED), Normalize(0.0, self.upper)
