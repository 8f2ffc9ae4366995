"""Pictures of what nobody hopes for: no numbers, huge ones, hostile names, axes that are none."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.drawing.formats.style import readable
from flexure.solvers.results.pictures.panels import drawable
from tests.support.tiers import for_each, thinned

Signal = Callable[[Any], Any]
#: Until 0.5 s a ramp, in which nothing is wrong.
ODD: dict[str, Signal] = {
    "constant": lambda t: 0.0 * t + 3.0,
    "NaN at last": lambda t: np.where(t < 0.5, t, np.nan),
    "infinite at last": lambda t: np.where(t < 0.5, t, np.inf),
    "never a number": lambda t: np.nan + 0.0 * t,
    "beyond all plots": lambda t: np.where(t < 0.5, t, 1.7e308 * np.sin(9.0 * t)),
    "tiny": lambda t: 5e-324 + 0.0 * t,
    "on a pedestal": lambda t: 1e9 + 1e-7 * np.sin(9.0 * t),
}


class Source(fx.LeafSystem):
    def __init__(self, signal: Signal, names: list[str] | None = None, unit: str = "") -> None:
        super().__init__("source")
        self.signal = signal
        size = 1 if names is None else len(names)
        self.declare_vector_output("y", size, self.calc, element_names=names, unit=unit)

    def calc(self, context: fx.Context) -> Any:
        return np.atleast_1d(self.signal(context.time))


def run(signal: Signal = lambda t: t, **options: Any) -> fx.results.SimulationResult:
    return fx.simulate(Source(signal, **options), 1.0)


@pytest.fixture(autouse=True)
def strictly() -> Iterator[None]:
    """No picture warns, of numbers or of its layout."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()


@pytest.mark.parametrize("name", thinned(ODD, fast=2))
def test_curves_have_gaps_where_there_are_no_numbers(name: str) -> None:
    result = run(ODD[name])
    (line,) = result.plot("y").axes[0].lines
    shown, wanted = np.asarray(line.get_ydata()), result.sample("y", result.fine_time())
    gap = ~(np.abs(wanted) < 1e300)
    assert np.isnan(shown[gap]).all()
    np.testing.assert_array_equal(shown[~gap], wanted[~gap])
    fx.compare({"one": result, "other": run()}, "y")
    ax = result.plot_phase("y", "y")
    moves = np.ptp(wanted[~gap]) > 0.0 if (~gap).any() else False
    assert len(ax.texts) == (3 if moves else 0)  # arrows


@for_each("kind", ["amplitude", "psd"])
def test_spectra_of_what_is_no_number_are_refused_with_the_time(kind: str) -> None:
    for name, found in (
        ("NaN at last", "nan at t = 0.5 s"),
        ("infinite at last", "inf at t = 0.5 s"),
        ("beyond all plots", "too large"),
    ):
        with pytest.raises(ValueRefusedError, match=found):
            run(ODD[name]).spectrum("y", kind=kind)


def test_numbers_that_can_be_drawn_are_left_as_they_are() -> None:
    values = np.array([0.0, -1e299, np.inf, -1e301, np.nan])
    np.testing.assert_array_equal(drawable(values), [0.0, -1e299, np.nan, np.nan, np.nan])


HOSTILE = ["$x_$", r"<b>\frac", "%s {y", "n" * 200]


@pytest.mark.parametrize("name", thinned(HOSTILE, fast=1))
def test_hostile_names_are_drawn_as_they_are_written(name: str, tmp_path: Path) -> None:
    result = run(lambda t: np.array([t, t * t]), names=["one", name], unit=name)
    figure = result.plot("y", path=tmp_path / "plot.svg")
    legend = figure.axes[0].get_legend()
    assert legend is not None
    first, second = [text.get_text() for text in legend.get_texts()]
    assert first == "one"
    assert second.replace(r"\$", "$")[:40] == name[:40]
    fx.compare({name: run(), "other": run(np.sin)}, "y")
    result.plot_phase("y[one]", "y[0]")


def test_dollars_are_mathematics_where_they_can_be() -> None:
    assert readable("$k_p$ = 3") == "$k_p$ = 3"
    assert readable("$x_$ = 3") == r"\$x_\$ = 3"
    assert readable("5 $") == "5 $"
    result = run()
    with pytest.raises(ValueRefusedError, match="title to be a text"):
        result.plot("y", title="$x_$")
    figure = fx.compare({"$x_$": result, "$k_p$": result}, ["y"])
    assert figure.axes[0].get_ylabel() == "y"


def test_more_panels_than_a_file_can_hold_are_refused() -> None:
    result = run(lambda t: t * np.arange(101.0), names=[f"n{k}" for k in range(101)])
    panels = [[f"y[{k}]"] for k in range(101)]
    with pytest.raises(ValueRefusedError, match="at most 100 panels; found 101"):
        result.plot(panels)
    assert len(result.plot("y").axes) == 1


def test_axes_that_are_none_are_refused() -> None:
    result, spectrum = run(), run().spectrum("y")
    figure, ax = plt.subplots()
    _, gone = plt.subplots()
    gone.remove()
    unfit: list[Any] = [figure, gone, "ax"]
    for wrong in unfit:
        for draw in (
            lambda: result.plot("y", ax=wrong),  # noqa: B023
            lambda: result.plot_phase("y", "y", ax=wrong),  # noqa: B023
            lambda: spectrum.plot(ax=wrong),  # noqa: B023
        ):
            with pytest.raises(ValueRefusedError, match="ax to be Axes of Matplotlib"):
                draw()
    assert not ax.lines


@pytest.mark.full
def test_axes_of_other_kinds_are_drawn_into() -> None:
    result = run()
    for options in ({"projection": "polar"}, {"projection": "3d"}, {"yscale": "log"}):
        result.plot("y", ax=plt.figure().add_subplot(**options))
    ax = plt.figure().add_subplot()
    ax.invert_xaxis()
    ax.invert_yaxis()
    result.spectrum("y").plot(ax=ax)
    result.plot("y", ax=plt.figure(figsize=(0.4, 0.4)).add_subplot())
