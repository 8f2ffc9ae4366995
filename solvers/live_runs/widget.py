"""`widget`: a page, or sliders and charts, in a notebook, with the kernel behind them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import count_of, import_extra, require
from flexure.diagrams.checks.errors import FlexureError, TraceError, ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import Way, path_of, several
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import as_number, as_numbers
from flexure.solvers.live_runs.charts_and_sliders import (
    columns,
    own_asset,
    plain,
    script,
    sliders,
    style,
)
from flexure.solvers.pages.page_content import PageSignals, charts
from flexure.solvers.pages.pages import Page, page
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.simulation.run_control.method_selection import Method
from flexure.solvers.simulation.run_control.options import Tolerance
from flexure.solvers.simulation.simulation import simulate
from flexure.solvers.tracing.signals import Signal, resolve

_AT_HAND = 6  # signals that nobody has named
_MOST = 10_000  # samples
_NUMBERS = (float, int, np.number, np.ndarray)


class Widget(Answer):
    """The page of a diagram in a notebook; each change runs the kernel, too.

    Made by `widget`. Its cell shows it.

    Attributes
    ----------
    context : Context
        The values at the start of the run; sliders set them.
    result : SimulationResult
        The latest run.

    See Also
    --------
    widget : Make one.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("charge")
    >>> builder.add_all(fx.Step("source", at=0.5), fx.FirstOrderLag("lag", time_constant=1.0))
    >>> builder.connect_chain("source", "lag")
    >>> widget = fx.widget(builder.build(), 2.0)
    >>> widget.context.set("lag.time_constant", 0.1)
    >>> widget.run()
    >>> print(widget.result["lag.y"][-1].round(3))
    1.0
    """

    context: Context
    result: SimulationResult

    def __init__(
        self, context: Context, run: dict[str, Any], desk: dict[str, Any], page: Page | None
    ) -> None:
        self.context, self._options, self._desk, self._page = context, run, desk, page
        self._paths = {each["path"] for each in desk["controls"]}
        self._view = _view_class()()
        self._view.on_msg(self._receive)
        self.run()

    def run(self) -> None:
        """Run with the values of the context, and show that.

        Raises
        ------
        SimulationError
            When the run cannot go on; ``result`` is then the run up to there.
        """
        try:
            self._simulate()
        finally:
            if "result" in self.__dict__:
                self._show()

    def _simulate(self) -> None:
        try:
            self.result = simulate(self.context.system, context=self.context, **self._options)
        except FlexureError as error:
            if getattr(error, "result", None) is not None:
                self.result = error.result  # type: ignore[attr-defined]
            raise

    def _numbers(self) -> dict[str, list[float]]:
        """Return the finite values of the context by path, as a page knows them."""
        rows = [row for row in self.context.describe() if isinstance(row["value"], _NUMBERS)]
        arrays = {row["path"]: np.ravel(row["value"]) for row in rows}
        return {path: each.tolist() for path, each in arrays.items() if np.isfinite(each).all()}

    def _show(self) -> None:
        """Send values, and to a desk the signals, to the notebook."""
        if self._page is not None:
            self._view.send({"kind": "kernel", "values": self._numbers()})
            return
        values = {path: float(np.ravel(self.context.get(path))[0]) for path in self._paths}
        finite = {path: value for path, value in values.items() if math.isfinite(value)}
        self._view.send({"kind": "values", "values": finite})
        first, last = self.result.time[0], self.result.time[-1]
        times = np.linspace(first, last, self._desk["samples"])
        found = self.result.sample_all(self._desk["paths"], times)
        rows = np.column_stack([times, *(np.reshape(each, (len(times), -1)) for each in found)])
        self._view.send({"kind": "rows", "rows": plain(rows), "replaces": True})
        text = f"{self.result.outcome}, {self.result.statistics.steps} steps"
        self._view.send({"kind": "state", "text": text})

    def _receive(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer the notebook: what there is, or a run with another value."""
        kinds = ("ready", "show", "set", "values")
        if not isinstance(message, dict) or message.get("kind") not in kinds:
            return
        path = message.get("path")
        try:
            if message["kind"] == "ready" and self._page is not None:
                html = self._page.html
                self._view.send({"kind": "page", "html": html, "values": self._numbers()})
            elif message["kind"] == "ready":
                known = ("title", "live", "signals", "controls")
                # In a notebook the style is for the widget alone, the host of its elements.
                own = style().replace(":root", ":host").replace("\nbody {", "\n.desk {")
                assets = {"script": f"{script()}\nexport {{ mountDesk }};", "style": own}
                about = {name: self._desk[name] for name in known}
                self._view.send({"kind": "hello", **about, **assets})
            elif message["kind"] == "show":
                self._show()
            elif message["kind"] == "values":
                self._take(message.get("values"), message.get("t_final"))
                if not message.get("more"):
                    self._simulate()  # the page may have other values by now
            elif isinstance(path, str) and path in self._paths:
                self.context.set(path, message.get("value"))
                if not message.get("more"):
                    self.run()
        except FlexureError as error:
            self._view.send({"kind": "refused", "path": path, "text": str(error)})
        finally:
            self._view.send({"kind": "done"})

    def _take(self, values: Any, t_final: Any) -> None:
        """Set the values that a page has changed, or none of them."""
        require(isinstance(values, dict), values, "Cannot set values", "values by path")
        twin = self.context.clone()
        for path, numbers in values.items():
            shape = np.shape(twin.get(path))
            twin.set(path, np.reshape(as_numbers(numbers, f"Cannot set '{path}'"), shape))
        end = float(as_number(t_final, (), "Cannot set the end of the run"))
        self.context.copy_from(twin)
        self._options["t_final"] = end

    def _repr_mimebundle_(self, **options: Any) -> Any:
        found = self._view._repr_mimebundle_(**options)
        data = found[0] if isinstance(found, tuple) else found
        data["text/plain"] = repr(self)
        return found

    def __repr__(self) -> str:
        return f"<Widget of '{self.context.system.label}', {self.result.outcome}>"


@answers_other_words
def widget(
    system: System,
    t_final: float = 10.0,
    *,
    context: Context | None = None,
    parameters: Way | Sequence[Way] | None = None,
    signals: Signal | Sequence[Signal] | None = None,
    method: Method = "auto",
    rtol: Tolerance | None = None,
    atol: Tolerance | None = None,
    num_samples: int = 401,
) -> Widget:
    """Show the page of a diagram in a notebook, whose kernel follows its values.

    It works in Jupyter, in VS Code and wherever anywidget does. The cell shows the page of `page`;
    the kernel follows its values, and runs with them. If equations cannot be read as JavaScript,
    the cell shows charts and sliders of runs in the kernel. Values and the latest result are
    objects.

    Parameters
    ----------
    system : System
        A block or diagram.
    t_final : float
        End of the run in seconds.
    context : Context, optional
        The values that sliders begin with; those of a default context when omitted.
    parameters : str, Handle or list of them, optional
        Numbers that have a slider; a few of each block when omitted.
    signals : str, Handle or list of them, optional
        Signals of the charts; those of `page` when omitted.
    method, rtol, atol
        As for `simulate`.
    num_samples : int
        Times at equal distances at which signals are drawn.

    Returns
    -------
    Widget
        ``widget.result`` is the latest run, ``widget.context`` has its values.

    Raises
    ------
    MissingExtraError
        Without the package anywidget: ``pip install 'flexure[notebook]'``.
    SimulationError
        When the first run cannot go on.

    See Also
    --------
    page : A file that runs without Python.
    live : Run with the clock.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=1.0, initial=1.0)
    >>> context = lag.create_default_context()
    >>> context.set("u", 0.0)
    >>> fx.widget(lag, 5.0, context=context, parameters=["time_constant"])
    <Widget of 'lag', completed>
    """
    require_system(system, "Cannot make a widget")
    attempt = f"Cannot make a widget of '{system.label}'"
    start = start_context(system, context, attempt)
    end = float(as_number(t_final, (), attempt))
    if not start.time < end < math.inf:
        raise ValueRefusedError(
            attempt, expected=f"an end after the start at {start.time:g} s", found=f"{end:g} s"
        )
    count = count_of(num_samples, "num_samples", attempt, minimum=2)
    require(count <= _MOST, num_samples, attempt, f"at most {_MOST} samples")
    panels = None if signals is None else list(several(signals))
    if signals is None:
        names = [name for group in charts(PageSignals(system), None) for name in group]
        signals = list(dict.fromkeys(names))[:_AT_HAND]
    readers = {path_of(way): resolve(system, way) for way in several(signals)}
    sizes = [(path, reader.size) for path, reader in readers.items()]
    desk = {
        "title": system.label,
        "live": False,
        "signals": columns(sizes, [reader.unit for reader in readers.values()]),
        "controls": [*sliders(system, start, parameters, attempt)],
        "paths": [*readers],
        "samples": count,
    }
    options: dict[str, Any] = {"t_final": end, "method": method, "rtol": rtol, "atol": atol}
    shown: dict[str, Any] = {"parameters": parameters, "signals": panels, "num_samples": count}
    single = {"rtol": rtol, "atol": atol}  # a page has one tolerance for all states
    shown |= {name: value for name, value in single.items() if isinstance(value, float)}
    try:
        whole = page(system, end, context=start, **shown)
    except TraceError:
        whole = None
    return Widget(start, options, desk, whole)


@functools.cache
def _view_class() -> Any:
    """Return the class of what notebooks store: a script that asks the kernel for the rest."""
    anywidget = import_extra("anywidget", "notebook", "Cannot make a widget")
    return type("WidgetView", (anywidget.AnyWidget,), {"_esm": own_asset("widget.js")})
