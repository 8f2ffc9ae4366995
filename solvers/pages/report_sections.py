"""Sections of a report: what each of them shows of a system, a run or a sweep, as HTML.

Each function takes the `Subject`, and yields pieces; one that yields nothing has nothing to show.
"""

from __future__ import annotations

import base64
import hashlib
import io
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks.multibody.force_elements.force_element import ForceElement
from flexure.blocks.multibody.force_elements.limits import limited_elements
from flexure.blocks.multibody.plants.energy_ledger import EnergyLedger
from flexure.blocks.multibody.plants.plant import Plant
from flexure.diagrams.checks.errors import FlexureError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.notebook_tables import without_empty
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.drawing.formats.new_figures import forget
from flexure.diagrams.files.versions import versions
from flexure.diagrams.interface.html import escaped, heading, lines, note, rows_of
from flexure.diagrams.systems.copying import detached
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.system import System, each_system
from flexure.diagrams.values.tables import Table, cell_text
from flexure.solvers.analysis.linear_models.linear_model_tables import poles
from flexure.solvers.analysis.linear_models.linearization import accelerated, linearized
from flexure.solvers.analysis.plausibility.limit_rules import Usage, check_limits
from flexure.solvers.design.state_space.weights import without_states
from flexure.solvers.pages.page_content import PageSignals, charts, energies, law_of, responses
from flexure.solvers.results.mechanisms.flexure_shapes import ribbons
from flexure.solvers.results.mechanisms.pictures import plot_mechanism
from flexure.solvers.results.records.provenance import of_model
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.sweeps.sweep import Sweep
from flexure.solvers.tracing.readable_equations import Equation, brief_equation, named_parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flexure.solvers.analysis.linear_models.linear_model import LinearModel

_ENERGIES = ("kinetic_energy", "potential_energy", "mechanical_energy")
_CHOSEN = ("parameter", "state", "input")  # kinds of values that people set
_MOST_BLOCKS = 16  # of which equations are written
_MOST_EQUATIONS = 4  # of a block
_LONGEST = 6000  # characters of the text of an equation
_WIDTH = 92.0  # characters of a line of an equation in full size, on paper
_SMALLEST = 0.6  # size of an equation that is too wide; others are written as text
_MOST_COMPONENTS = 3
_ROWS = 12  # of the table of a sweep
_PICTURES = 6
_TALLEST = 5.2  # inches of a picture of signals, so that a report of a run is short
_USED = 0.01  # utilization of limits that are listed


@dataclass(frozen=True)
class Subject:
    """The subject of a report."""

    system: System  # the system of the experiment
    # The values with which it begins; None where the model of a stored sweep is not there.
    start: Context | None
    question: str  # what was asked
    signals: Sequence[Any] | None  # which signals are shown
    result: SimulationResult | None = None  # the run, if it is about one
    sweep: Sweep | None = None  # the runs, if it is about many


Section = Callable[[Subject], Iterable[str]]


def asked(subject: Subject) -> Iterator[str]:
    """Show what was asked, paragraph by paragraph, and what was done."""
    for paragraph in filter(str.strip, subject.question.split("\n\n")):
        yield f'<p class="asked">{escaped(paragraph.strip())}</p>'
    rows = [("system", subject.system.label)]
    if subject.result is not None:
        result, statistics = subject.result, subject.result.statistics
        rows.append(("run", f"from {result.time[0]:g} to {result.time[-1]:g} s"))
        rows.append(("outcome", result.outcome))
        if result.outcome != "completed":
            rows.append(("because", result.message))
        ways = ", ".join(dict.fromkeys(str(method) for _, method, *_ in statistics.methods))
        rows.append(("steps", f"{statistics.steps}" + (f" by {ways}" if ways else "")))
    if subject.sweep is not None:
        sweep = subject.sweep
        kinds, counts = np.unique(sweep.outcomes, return_counts=True)
        parts = [f"{count} {kind}" for kind, count in zip(kinds, counts, strict=True)]
        outcomes = f": {', '.join(parts)}" if parts else ""
        rows.append(("runs", f"{len(sweep)}, until {sweep.t_final:g} s{outcomes}"))
        rows += [("varied", path) for path in list(sweep.values)[:_ROWS]]
    yield rows_of(rows)


def diagram(subject: Subject) -> Iterator[str]:
    """Show the drawing of the diagram, but not of the inside of a plant."""
    if isinstance(subject.system, Diagram) and not isinstance(subject.system, Plant):
        yield f'<figure class="drawing">{subject.system.to_svg()}</figure>'


def mechanisms(subject: Subject) -> Iterator[str]:
    """Show each plant as it stands at the end of a run, or in a context, with its stresses."""
    if subject.start is None or subject.sweep is not None:
        return
    result, where = subject.result, subject.start
    about = "as the values say"
    if result is not None:
        where, about = result.context_at(float(result.time[-1])), "at the end of the run"
    for plant in (each for each in each_system(subject.system) if isinstance(each, Plant)):
        ax = plot_mechanism(plant, where, stress=bool(ribbons(plant, where)))
        drawn = picture(ax.figure.figure, f"{plant.label}, {about}")
        yield f'<div class="mechanism">{drawn}</div>'


def plant_diagram(subject: Subject) -> Iterator[str]:
    """Show the drawing of the inside of a plant."""
    if isinstance(subject.system, Plant):
        yield f'<figure class="drawing">{subject.system.to_svg()}</figure>'


def limited(subject: Subject) -> Iterator[str]:
    """Show flexures and other elements with limits: law, constants, largest utilization."""
    if subject.start is None or subject.sweep is not None:
        return
    result = subject.result
    check = check_limits(subject.system, subject.start) if result is None else check_limits(result)
    yield from (note(f"{', '.join(paths)}: {text}") for text, paths in check.notes.items())
    used: dict[str, list[Usage]] = {}
    for usage in check.usages:  # the largest first
        used.setdefault(usage.path, []).append(usage)
    alike: dict[tuple[str, ...], list[str]] = {}
    for path, element in limited_elements(subject.start):
        constants = [
            " ".join((each.name.replace("_", " "), cell_text(each.get(subject.start)), each.unit))
            for each in element.numeric_parameters
        ]
        law = law_of(element)
        alike.setdefault(
            (type(element).__name__, law, ", ".join(map(str.strip, constants))), []
        ).append(path)
    for (kind, law, known), paths in alike.items():
        yield heading(kind, ", ".join(paths))
        yield f'<pre class="law">{escaped(law)}</pre>' if law else ""
        yield note(known)
        worst: dict[str, Usage] = {}
        for usage in sorted((u for p in paths for u in used[p]), key=_unused):
            worst.setdefault(usage.quantity, usage)
        columns = ("quantity", "value", "bound", "unit", "utilization", "when", "path")
        most = [each for each in worst.values() if not each.utilization < _USED]
        listed = [[getattr(each, name) for name in columns] for each in most]
        yield without_empty(Table(columns, listed)).to_html() if listed else ""
        if len(most) < len(worst):
            yield note(f"Limits used by less than {_USED:.0%}: {len(worst) - len(most)}")


def _unused(usage: Usage) -> float:
    """Return a number by which the largest utilization, or none, comes first."""
    return -float(np.nan_to_num(usage.utilization, nan=np.inf))


def parameters(subject: Subject) -> Iterator[str]:
    """Show the parameters, states and inputs that differ from those of a default context."""
    if subject.start is None:
        yield note("The model is not available, only its record.")
        return
    columns = ("unit", "bounds", "doc")
    rows = [row for row in subject.start.describe() if row["changed"] and row["kind"] in _CHOSEN]
    if rows:
        usual = {
            row["path"]: row["value"] for row in subject.system.create_default_context().describe()
        }
        table = []
        for row in rows:
            values = _single(row["value"]), _single(usual.get(row["path"]))
            table.append((row["path"], *values, *(row[name] for name in columns)))
        yield without_empty(Table(("path", "value", "default", *columns), table)).to_html()
    else:
        yield note("All values are those of a default context.")


def _single(value: Any) -> Any:
    """Return the number that an array of one number holds, or what else it is."""
    return value.item() if isinstance(value, np.ndarray) and value.shape == (1,) else value


def signals(subject: Subject) -> Iterator[str]:
    """Show signals of a run over time."""
    result = subject.result
    if result is None:
        return
    chosen = subject.signals if subject.signals is not None else _charts(subject)
    figure = result.plot(*chosen, title="")
    figure.set_figheight(min(figure.get_figheight(), _TALLEST))
    yield picture(figure, "Signals over time")


def _charts(subject: Subject) -> list[Any]:
    """Return setpoints and measurements of controllers, and what these give."""
    known = PageSignals(subject.system)
    panels = [group for group in charts(known, None) if group not in energies(known)]
    return panels[:_PICTURES]


def steps(subject: Subject) -> Iterator[str]:
    """Show step metrics, with pictures of the responses."""
    from matplotlib.figure import Figure

    result = subject.result
    if result is None or subject.start is None:
        return
    groups = [[path_of(each) for each in _flat(subject.signals)]] if subject.signals else None
    known = PageSignals(subject.system)
    groups = groups or [list(each) for each in _charts(subject)]
    for response in responses(known, groups, subject.start)[:_PICTURES]:
        name = response["signal"]
        try:
            found = result.step_response(name)
        except FlexureError as error:
            yield note(f"{name}: {error}")
            continue
        figure = Figure(figsize=(5.6, 3.7))
        found.plot(ax=figure.subplots())
        yield '<div class="pair">'
        yield picture(figure, f"Step response of {name}")
        yield f"<div>{lines(str(found.info))}</div></div>"


def _flat(signals: Iterable[Any] | None) -> Iterator[Any]:
    for each in signals or ():
        yield from each if isinstance(each, (list, tuple)) else [each]


def linear_model(subject: Subject) -> Iterator[str]:
    """Show the poles around the end of a run, or around the values of a context."""
    if subject.sweep is not None or subject.start is None:
        return
    result = subject.result
    where = subject.start if result is None else result.context_at(float(result.time[-1]))
    if not where.system.layout.num_states:
        return
    whole = linearized(subject.system, where, None, (), "Cannot linearize")
    model, fastest = _without_ledgers(whole, subject.system), accelerated(where, whole)
    about = "at the end of the run" if result is not None else "around these values"
    stable = "asymptotically stable" if model.is_stable else "not asymptotically stable"
    yield f"<p>{len(model.A)} states, {about}: {stable}.</p>"
    if fastest is not None:
        yield note(f"not at rest: {fastest}, so that poles depend on coordinates")
    yield poles(model.poles, model.period)


def _without_ledgers(model: LinearModel, system: System) -> LinearModel:
    """Leave out what energy ledgers add up: it moves nothing, and its poles at zero are no motion.

    All other poles stay as they are, since nothing that moves depends on these states.
    """
    ledgers = tuple(
        f"{each.continuous_state.path}["
        for each in each_system(system)
        if isinstance(each, EnergyLedger) and each.continuous_state is not None
    )
    return without_states(model, lambda name: name.startswith(ledgers))


def energy(subject: Subject) -> Iterator[str]:
    """Show where the energy of plants is, with the ledger where there is one."""
    result = subject.result
    if result is None:
        return
    plants = [each for each in each_system(subject.system) if isinstance(each, Plant)]
    ledgers = [each for each in each_system(subject.system) if isinstance(each, EnergyLedger)]
    if len(ledgers) == 1:
        yield picture(result.plot_energy(title=""), "Energy over time")
    names = PageSignals(subject.system)
    for plant in plants:
        paths = [names.outermost(p) for p in plant.output_ports if p.name in _ENERGIES]
        if not paths:
            continue
        if not ledgers:
            yield picture(result.plot(paths, title=""), f"Energies of {plant.label}")
        ends = [result.sample(path, [result.time[0], result.time[-1]]).ravel() for path in paths]
        rows = [(path, *numbers) for path, numbers in zip(paths, ends, strict=True)]
        yield Table(("energy", "at first [J]", "at the end [J]"), rows).to_html()


def equations(subject: Subject) -> Iterator[str]:
    """Show the equations of the blocks, each in its own inputs, states and parameters."""
    if subject.start is None:
        return
    shown = {element for _, element in limited_elements(subject.start)}
    leaves = [
        each
        for each in each_system(subject.system)
        if isinstance(each, LeafSystem)
        and each not in shown
        and (isinstance(each, ForceElement) or not isinstance(each.parent, Plant))
    ]
    alike: dict[tuple[str, ...], list[LeafSystem]] = {}
    for leaf in leaves[:_MOST_BLOCKS]:
        written = type(leaf).__name__, *_of_block(detached(leaf))
        alike.setdefault(written, []).append(leaf)
    for (kind, *lines_of), same in alike.items():
        if lines_of:
            yield heading(kind, ", ".join(leaf.label for leaf in same))
            yield '<div class="equations">'
            yield from lines_of
            yield "</div>"
    if len(leaves) > _MOST_BLOCKS:
        yield note(f"and those of {len(leaves) - _MOST_BLOCKS} more blocks")
    if shown:
        yield note("The laws of elements with limits are above; fx.equation writes them in full.")


def _of_block(twin: LeafSystem) -> Iterator[str]:
    """Yield the equations of a block that is in no diagram."""
    wanted: list[Any] = [] if twin.continuous_state is None else [twin.continuous_state]
    parts = named_parts(twin)
    wanted += parts
    ports = [port for port in twin.output_ports if port.size and port.size <= _MOST_COMPONENTS]
    if isinstance(twin, ForceElement):  # powers are forces times rates
        ports = [port for port in ports if not port.name.endswith("_power")]
    for handle in [*wanted, *ports[:_MOST_EQUATIONS]]:
        try:
            found = brief_equation(twin, handle, parts)
        except FlexureError as error:
            yield note(f"{handle.name}: {error}")
        else:
            yield _written(found, handle.name)


def _written(found: Equation, name: str) -> str:
    """Return an equation that fits on paper, as text where it is too wide."""
    if len(found.text) > _LONGEST:
        return note(f"{name}: {len(found.text)} characters, too long to be printed")
    width = max(map(_width, found.text.splitlines()))
    if _SMALLEST * width > _WIDTH:
        return f"<pre>{escaped(found.text)}</pre>"
    return f'<div style="--size: {min(1.0, _WIDTH / width):.2f}">{found.mathml}</div>'


def _width(line: str) -> float:
    """Return about how wide a line is as mathematics, where cases and fractions are stacked."""
    return len(line) * (0.6 if " if " in line else 0.8 if "/" in line else 1.0)


def table_head(subject: Subject) -> Iterator[str]:
    """Show the first and last runs of a sweep, and the quantiles of its metrics."""
    sweep = subject.sweep
    if sweep is None:
        return
    yield sweep.table()[:_ROWS].to_html()
    if len(sweep) > _ROWS:
        yield note(f"The first {_ROWS} of {len(sweep)} runs.")
    shares = (0.05, 0.5, 0.95)
    rows = []
    for name, column in sweep.metrics.items():
        known = column[np.isfinite(column)]
        if known.size:
            numbers = [known.min(), *np.quantile(known, shares), known.max(), known.mean()]
            rows.append((name, sweep.units.get(name, ""), *map(float, numbers)))
    if rows:
        names = ("metric", "unit", "least", *(f"{share:.0%}" for share in shares))
        yield without_empty(Table((*names, "greatest", "mean"), rows)).to_html()


def distributions(subject: Subject) -> Iterator[str]:
    """Show histograms of metrics, and bands of signals over time."""
    sweep = subject.sweep
    if sweep is None:
        return
    if sweep.metrics:
        yield picture(sweep.plot_histogram(*list(sweep.metrics)[:_PICTURES]), "Histograms")
    if sweep.signals and len(sweep.times) > 1:
        yield picture(sweep.plot(*sweep.signals[:_PICTURES]), "Quantiles of signals over time")


def failures(subject: Subject) -> Iterator[str]:
    """Show why runs of a sweep have failed."""
    if subject.sweep is not None and subject.sweep.failures:
        yield subject.sweep.failure_table().to_html()


def origin(subject: Subject) -> Iterator[str]:
    """Show what the numbers come from: versions, and the fingerprint of the model."""
    rows = [(name, text) for name, text in versions().items() if text != "none"]
    if subject.start is not None:
        found = of_model(subject.start)
        kinds = ("block", "wire", "value")
        counts = [f"{sum(each.kind == kind for each in found)} {kind}s" for kind in kinds]
        text = "\n".join(f"{e.kind} {e.name}: {value}" for e, value in sorted(found.items()))
        rows.append(("model", ", ".join(counts)))
        rows.append(("fingerprint", hashlib.sha256(text.encode()).hexdigest()[:24]))
    if subject.sweep is not None:
        rows.append(("runs", subject.sweep.how))
    rows.append(("written", time.strftime("%Y-%m-%d %H:%M %Z")))
    yield rows_of(rows)


def picture(figure: Figure, about: str) -> str:
    """Return a figure of Matplotlib as an image that is part of the page."""
    import matplotlib as mpl

    stream = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "flexure"}):
        figure.savefig(stream, format="svg", bbox_inches="tight", metadata={"Date": None})
    forget(figure)
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return (
        f'<figure><img alt="{escaped(about)}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{escaped(about)}</figcaption></figure>"
    )


#: The sections of a report, in their order; details are in its annex.
SECTIONS: tuple[tuple[str, Section], ...] = (
    ("What was asked", asked),
    ("Diagram", diagram),
    ("Mechanism", mechanisms),
    ("Values other than the defaults", parameters),
    ("Elements with limits", limited),
    ("Runs", table_head),
    ("Distributions", distributions),
    ("Failures", failures),
    ("Signals", signals),
    ("Step responses", steps),
    ("Linear model", linear_model),
)
ANNEX: tuple[tuple[str, Section], ...] = (
    ("Energy", energy),
    ("Diagram of the plant", plant_diagram),
    ("Equations", equations),
    ("Where the numbers come from", origin),
)
