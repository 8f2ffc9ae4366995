"""From a diagram or a result to a page."""

from __future__ import annotations

import html
import keyword
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.blocks.multibody.plants.plant import Plant
from flexure.diagrams.checks.arguments import flag, require
from flexure.diagrams.checks.errors import TraceError, UnknownNameError, ValueRefusedError
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.ports import OutputPort
from flexure.diagrams.systems.system import System, each_system, require_system
from flexure.diagrams.values.arrays import as_number, bounded
from flexure.diagrams.values.parameters import NumericParameter
from flexure.solvers.analysis.statics.load_paths.load_path import LoadPath
from flexure.solvers.export.javascript.javascript_model import JavaScriptModel, to_javascript
from flexure.solvers.pages.diagram_data import Look, diagram_data, mechanism_data
from flexure.solvers.pages.document import document
from flexure.solvers.pages.page_content import (
    PageSignals,
    as_text,
    charts,
    foremost_parameters,
    loops,
    read_goals,
    responses,
    samples,
    tied_paths,
)
from flexure.solvers.results.mechanisms.camera import Camera, View
from flexure.solvers.results.mechanisms.flexure_shapes import ribbons
from flexure.solvers.results.mechanisms.pictures import nothing_to_color, traced_frames
from flexure.solvers.results.pictures.panels import Scales
from flexure.solvers.simulation.run_control.options import checked_tolerances
from flexure.solvers.tracing.signals import Reader, Signal, resolve

if TYPE_CHECKING:
    from flexure.solvers.results.records.result import SimulationResult

_SAMPLES = 1001
_MOST_SAMPLES = 100_000
_COUNT = f"at least two samples, and at most {_MOST_SAMPLES}"
_MOST_TIMES = 3000  # of recorded signals
_MOST_NUMBERS = 300_000
_FRAME = 'style="width: 100%; height: 760px; border: 1px solid #ccc; border-radius: 8px"'
#: Tells the page inside of a notebook whether what is around it is dark.
_ON_LOAD = (
    "let n=this,c;do{n=n.parentElement;c=n&&getComputedStyle(n).backgroundColor.match(/[0-9.]+/g)}"
    "while(n&&c[3]==='0');if(n)this.contentWindow.postMessage("
    "{colors:+c[0]+ +c[1]+ +c[2]<384?'dark':'light'},'*')"
)

#: Signals in panels: each item is a signal, or a list of those that share a panel.
Panels = Sequence[Signal | Sequence[Signal]]


@dataclass(frozen=True, repr=False)
class Page(Answer):
    """A self-contained HTML page: it needs no server, no network, no Python.

    In a notebook it shows itself.

    Attributes
    ----------
    title : str
        What stands at its head.
    html : str
        All of it.
    live : bool
        Whether the diagram runs in it; otherwise it shows signals as they were recorded.

    See Also
    --------
    page : Make one.

    Examples
    --------
    >>> import flexure as fx
    >>> page = fx.page(fx.FirstOrderLag("lag", time_constant=1.0), 1.0)
    >>> page.html[:15]
    '<!doctype html>'
    """

    title: str
    html: str
    live: bool

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self.html.encode())

    def save(self, path: str | Path) -> None:
        """Write the page to a file; an older file is replaced completely or not at all.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        with replacing(path, newline="\n") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        inside = html.escape(self.html, quote=True)
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" {_FRAME} '
            f'onload="{html.escape(_ON_LOAD)}" srcdoc="{inside}"></iframe>'
        )

    def __repr__(self) -> str:
        what = "runs by itself" if self.live else "recorded"
        return f"<Page '{self.title}', {self.size / 1e6:.1f} MB, {what}>"


@answers_other_words
def page(
    system: System,
    t_final: float = 10.0,
    *,
    context: Context | None = None,
    parameters: Sequence[Signal] | None = None,
    signals: Panels | None = None,
    goals: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
    title: str | None = None,
    view: View = "auto",
    forces: bool = False,
    stress: bool = False,
    trace: Sequence[FrameLike] | FrameLike = (),
    ground: float | None = None,
    shapes: Any = (),
    method: str = "auto",
    rtol: float | None = None,
    atol: float | None = None,
    max_step: float | None = None,
    num_samples: int = _SAMPLES,
    path: str | Path | None = None,
) -> Page:
    """Make a web page that simulates a diagram, with sliders and plots.

    The page is a single file. It holds the equations of the diagram and the loop that integrates
    them as JavaScript (see `to_javascript`), so its readers can change values and watch the
    responses, without Python, a server or a network. Values can be exported as a link, as Python or
    TOML, and signals as CSV.

    Parameters
    ----------
    system : System
        A block or diagram whose equations can be traced.
    t_final : float
        End of the run in seconds.
    context : Context, optional
        The values that the page begins with; those of a default context when omitted.
    parameters : sequence of str or Handle, optional
        Parameters, states and free inputs with sliders; all others are in a searchable list. A few
        of each block when omitted. Tied parameters, such as ``"guide.thickness"``, have one slider.
    signals : sequence, optional
        Signals of the charts, with one component, and lists of those that share a panel. When
        omitted, the inputs and outputs of controllers, or else the outputs; and energies of plants,
        with the residuals of their ledgers. Readers of the page can add others.
    goals : sequence of str
        Bounds of metrics in the units that are shown, such as ``"overshoot < 5"`` for the first
        step response, ``"settling_time of door.axis.angle < 2"``, or for the ``least``,
        ``greatest`` or ``last`` value of any signal, ``"least of leaf.safety > 1.5"``. The tile of
        a missed goal turns red, and a strip below each slider shows where all goals hold. Readers
        can add goals.
    units : dict of str to str, optional
        Units in which charts and metrics show numbers, by the units in their place, as
        ``{"rad": "deg"}``.
    title : str, optional
        The name of the system when omitted.
    view, forces, stress, trace, ground
        How mechanisms are shown, as for `animate`.
    shapes : Modes, Buckling or LoadPath, or sequence of them
        Results of `modes`, `buckling` and `load_path` of the system. Readers can choose one of the
        first twelve shapes of each, or a path, and move the mechanism with a slider.
    method : str
        As for `to_javascript`.
    rtol, atol, max_step : float, optional
        As for `simulate`, but of one number each.
    num_samples : int
        Times at equal distances at which signals are drawn. Metrics are those of the steps.
    path : str or Path, optional
        Where to save the page.

    Returns
    -------
    Page

    Raises
    ------
    TraceError
        When equations of a block cannot be read as JavaScript; the text names it. The method
        ``page`` of a result of `simulate` shows what was recorded instead.

    See Also
    --------
    report : A page that documents a run.
    inspect_block : A page of one block.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("charge")
    >>> builder.add_all(fx.Step("source", at=0.5), fx.FirstOrderLag("lag", time_constant=1.0))
    >>> builder.connect_chain("source", "lag")
    >>> fx.page(builder.build(), 5.0, parameters=["lag.time_constant"])
    <Page 'charge', ... MB, runs by itself>
    """
    require_system(system, "Cannot make a page")
    attempt = f"Cannot make a page of '{system.label}'"
    start = start_context(system, context, attempt)
    end = float(as_number(t_final, (), attempt))
    if not start.time < end < math.inf:
        raise ValueRefusedError(
            attempt, expected=f"an end after the start at {start.time:g} s", found=f"{end:g} s"
        )
    count = as_number(num_samples, (), f"{attempt} with num_samples={num_samples!r}")
    require(2 <= count <= _MOST_SAMPLES and count == int(count), num_samples, attempt, _COUNT)
    checked_tolerances(rtol, atol, 1e-6, attempt)
    run = {"rtol": rtol, "atol": atol, "maxStep": max_step}
    given = {
        name: bounded(value, f"{attempt} with {name.replace('S', '_s')}", lower=0.0, exclusive=True)
        for name, value in run.items()
        if value is not None
    }
    options: dict[str, Any] = {"method": method} if method != "auto" else {}
    options |= {name.replace("S", "_s"): value for name, value in given.items()}
    look = _look(view, forces, stress, trace, ground, attempt)
    look = look._replace(shapes=_shapes(shapes, system, attempt))
    scales = Scales(units, attempt)
    model = to_javascript(system, start, method=method)
    content = _Content(system, start, signals, scales, look, model)
    made = content.made(
        title,
        parameters,
        end,
        {"samples": int(count)} | given,
        goals=goals,
        options=[f"{name}={value!r}" for name, value in options.items()],
    )
    if path is not None:
        made.save(path)
    return made


def page_of(
    result: SimulationResult,
    path: str | Path | None = None,
    *,
    parameters: Sequence[Signal] | None = None,
    signals: Sequence[Signal | Sequence[Signal]] | None = None,
    units: Mapping[str, str] | None = None,
    title: str | None = None,
    view: View = "auto",
    forces: bool = False,
    stress: bool = False,
    trace: Sequence[FrameLike] | FrameLike = (),
    ground: float | None = None,
) -> Page:
    """Make a page of HTML that shows the run, and in which the diagram runs with other values.

    Where equations cannot be read as JavaScript, the page shows what was recorded, and says so.

    Parameters
    ----------
    path : str or Path, optional
        Where to save the page.
    parameters, signals, units, title, view, forces, stress, trace, ground
        As for `flexure.page`.

    Returns
    -------
    Page
    """
    attempt = f"Cannot make a page of '{result.system.label}'"
    look, scales = _look(view, forces, stress, trace, ground, attempt), Scales(units, attempt)
    system, start = result.system, result._begun()
    end = float(result.time[-1])
    try:
        model, why = to_javascript(system, start), ""
    except TraceError as error:
        model, why = None, " ".join([str(error), *getattr(error, "__notes__", ())])
    content = _Content(system, start, signals, scales, look, model)
    made = content.made(title, parameters, end, {"samples": _SAMPLES}, recorded=result, why=why)
    if path is not None:
        made.save(path)
    return made


class _Content:
    """The content of a page of a system, with or without a running model."""

    def __init__(
        self,
        system: System,
        context: Context,
        panels: Panels | None,
        scales: Scales,
        look: Look,
        model: JavaScriptModel | None,
    ) -> None:
        self._system, self._context, self._model = system, context, model
        self._names = names = PageSignals(system, scales)
        self._groups = charts(names, panels)
        every = [resolve(system, path) for path in self._known()]
        self._signals = {names.path(reader): names.about(reader) for reader in every}
        self._check(self._groups)
        self._responses = responses(names, self._groups, context)
        self._mechanisms = [*self._seen_mechanisms(look)]

    def _known(self) -> list[str]:
        """Return the paths of all signals of the page."""
        if self._model is not None:
            return [about["path"] for about in self._model.info["signals"]]
        return [str(path) for path in self._system.signals()["path"]]

    def _check(self, groups: list[list[str]]) -> None:
        """Refuse signals that the page does not have."""
        left_out = {} if self._model is None else self._model.info["leftOut"]
        for name in (name for group in groups for name in group):
            path = self._path(name)
            if path not in self._signals:
                raise UnknownNameError(
                    f"Cannot show '{name}' on a page of '{self._system.label}'",
                    expected="an output or a state whose equations can be traced",
                    found=left_out.get(path, "none of these"),
                )

    def _path(self, name: str) -> str:
        """Return the path of a signal without its component."""
        return _whole(name, self._signals)

    def made(
        self,
        title: str | None,
        parameters: Sequence[Signal] | None,
        end: float,
        run: dict[str, Any],
        *,
        goals: Sequence[str] = (),
        options: Sequence[str] = (),
        recorded: SimulationResult | None = None,
        why: str = "",
    ) -> Page:
        """Return the page."""
        system, model = self._system, self._model
        attempt = f"Cannot make a page of '{system.label}'"
        require(title is None or isinstance(title, str), title, attempt, "a title, a text")
        title = system.label if title is None else title
        data = {
            "name": identifier(system.name, "page"),
            "variable": identifier(system.name, "system"),
            "live": model is not None,
            "start": self._context.time,
            "tFinal": end,
            "run": run,
            "sources": [leaf.path for leaf in system.layout.leaves if leaf.has_break_times],
            "options": list(options),
            "signals": list(self._signals.values()),
            "charts": self._groups,
            "responses": self._responses,
            "goals": read_goals(goals, self._names, self._responses, attempt),
            "foremost": [],
            "tied": {},
            "changed": [],
            "recorded": None,
            "samples": [],
            "loops": [],
            "diagram": diagram_data(system),
            "mechanisms": self._mechanisms,
        }
        if model is not None:
            known = [each["path"] for kind in _KINDS for each in model.info[kind]]
            chosen = foremost_parameters(system, self._context, parameters, known)
            lacking = [
                each["path"]
                for each in model.info["inputs"]
                if each["required"] and each["value"] is None
            ]
            data["foremost"] = [*dict.fromkeys([*lacking, *chosen])]
            data["tied"] = tied_paths(system, parameters)
            rows = {row["path"] for row in self._context.describe() if row["changed"]}
            data["changed"] = [path for path in known if _whole(path, rows) in rows]
            data["loops"] = loops(self._names, self._context)
            data["samples"] = samples(system, self._context, self._needed())
        elif recorded is not None:
            data["recorded"] = self._record(recorded)
        layout = "live" if model is not None else "recorded"
        note = why and f"The diagram does not run here, so this page shows the recorded run. {why}"
        if data["mechanisms"]:
            layout += " looking"
        text = "" if model is None else model.text
        about = f"from {self._context.time:g} to {end:g} s"
        whole = document(title, about, note, layout, data, text)
        return Page(title, whole, model is not None)

    def _seen_mechanisms(self, look: Look) -> Iterator[dict[str, Any]]:
        """Go through what is shown of mechanisms, of those whose poses are known."""
        plants = [each for each in each_system(self._system) if isinstance(each, Plant)]
        traced = traced_frames(look.trace, plants, self._system.label)
        if look.stress and not any(ribbons(plant, self._context) for plant in plants):
            raise nothing_to_color(self._system.label)
        for plant, frames in zip(plants, traced, strict=True):
            shown = mechanism_data(plant, self._context, self._path_of, look, frames)
            shown["arrows"] = [each for each in shown["arrows"] if each["signal"] in self._signals]
            for inside in shown["inside"]:
                inside["signals"] = [path for path in inside["signals"] if path in self._signals]
            for ribbon in shown["ribbons"]:
                if ribbon["stress"] not in self._signals:
                    ribbon["stress"] = None
            if all(path in self._signals for path in shown["signals"] if path is not None):
                yield shown

    def _path_of(self, handle: OutputPort | NumericParameter) -> str:
        return self._names.path(Reader(handle, None))

    def _needed(self) -> list[str]:
        """Return the paths of the signals that are shown."""
        shown = [self._path(name) for group in self._groups for name in group]
        for each in self._mechanisms:
            shown += [path for path in each["signals"] if path is not None]
            shown += [arrow["signal"] for arrow in each["arrows"]]
            shown += [ribbon["stress"] for ribbon in each["ribbons"] if ribbon["stress"]]
        shown += [self._path(each["setpoint"]) for each in self._responses if each["setpoint"]]
        return list(dict.fromkeys(shown))

    def _record(self, result: SimulationResult) -> dict[str, Any]:
        """Return the signals of a result: those that are shown, and as many others as fit."""
        times = result.fine_time(_SAMPLES)
        if len(times) > _MOST_TIMES:
            times = np.linspace(times[0], times[-1], _MOST_TIMES)
        chosen = dict.fromkeys(self._needed())
        room = _MOST_NUMBERS - len(times) * sum(self._signals[path]["size"] for path in chosen)
        for path, about in self._signals.items():
            room -= 0 if path in chosen else len(times) * about["size"]
            if room < 0:
                break
            chosen[path] = None
        values = result.sample_all(list(chosen), times)
        return {
            "outcome": result.outcome,
            "message": result.message,
            "time": as_text(times),
            "signals": dict(zip(chosen, map(as_text, values), strict=True)),
            "figures": {
                each["signal"]: self._figures(each["signal"], result) for each in self._responses
            },
        }

    def _figures(self, name: str, result: SimulationResult) -> dict[str, Any]:
        """Return the metrics of a response in the unit that is shown; None for what is lacking."""
        try:
            with quietly():
                figures = asdict(result.step_info(name))
        except ValueRefusedError as error:
            return {"refused": str(error)}
        scale = self._signals[self._path(name)]["scale"]
        for each in ("initial", "final", "peak", "steady_state_error", "target", "iae"):
            figures[each] *= scale
        return {key: value if math.isfinite(value) else None for key, value in figures.items()}


_KINDS = ("parameters", "inputs", "states", "discrete")


def _whole(name: str, known: Collection[str]) -> str:
    """Return the known path that a name is, or has before its component; else the name."""
    path = name
    while path and path not in known:
        path = path.rpartition("[")[0]
    return path or name


def _look(view: Any, forces: Any, stress: Any, trace: Any, ground: Any, attempt: str) -> Look:
    """Return how mechanisms are to be shown, or refuse it."""
    if ground is not None:
        ground = float(as_number(ground, (), attempt))
        require(math.isfinite(ground), ground, attempt, "a finite height of the ground")
    Camera(view)  # refuses what is no view
    with_forces, with_stress = flag(forces, "forces", attempt), flag(stress, "stress", attempt)
    return Look(view, with_forces, trace, ground, with_stress)


def _shapes(shapes: Any, system: System, attempt: str) -> list[Any]:
    """Return modes, critical loads and paths of a system, or refuse others."""
    found = list(shapes) if isinstance(shapes, list | tuple) else [shapes]
    for each in found:
        is_path = isinstance(each, LoadPath)
        fits = is_path or hasattr(each, "_shape_of")
        fits = fits and (each.system if is_path else each.context.system) is system
        wanted = f"shapes= results of modes, buckling and load_path of '{system.label}'"
        require(fits, each, attempt, wanted)
    return found


def identifier(name: str, otherwise: str) -> str:
    """Return a name that Python takes."""
    return name if name.isidentifier() and not keyword.iskeyword(name) else otherwise
