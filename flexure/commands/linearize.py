"""`flexure linearize` and `modes`: the linear model around a point, and its natural frequencies."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.commands.arguments.model_files import Model, load_model
from flexure.commands.command_output import Report
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.values.tables import Table

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context
    from flexure.solvers.analysis.linear_models.linear_model import LinearModel

_WIDE, _LONG = 10, 30  # matrices that are printed
_MATRICES = ("A", "B", "C", "D")
_POINT = ("x0", "u0", "y0", "xdot0")
_NAMES = ("state_names", "input_names", "output_names")


def linear_model(report: Report, arguments: Namespace) -> None:
    """Linearize a model, and report its poles and matrices."""
    from flexure.solvers.analysis.linear_models.linearization import linearize

    model = load_model(arguments)
    found = linearize(
        model.system,
        _point_of(model, arguments, report),
        arguments.inputs,
        arguments.outputs,
        openings=arguments.openings or (),
        period=arguments.period,
    )
    report.say(f"{found!r}; {found.how}")
    for note in found.notes:
        report.say(f"note: {note}")
    report.say()
    report.say(_poles(found))
    wide, long = np.add(found.D.shape[::-1], len(found.A))
    if wide <= _WIDE and long <= _LONG:
        report.say()
        report.say(_matrix(found))
        for k, name in enumerate(found.input_names, 1):
            report.say(f"u{k} is {name}")
    elif not report.keeps:
        report.say(f"\nmatrices of {long} rows and {wide} columns: see --out and --json")
    report.add(
        model=model.word,
        system=model.system.label,
        how=found.how,
        period=found.period,
        stable=found.is_stable,
        notes=found.notes,
        poles=found.poles,
        **{name: getattr(found, name) for name in (*_MATRICES, *_POINT, *_NAMES)},
    )
    if report.keeps:
        report.save("linear_model.npz", lambda file: _write(found, file))


def find_modes(report: Report, arguments: Namespace) -> None:
    """Find natural frequencies, damping and shapes of a model."""
    from flexure.solvers.analysis.modes.modes import modes

    model = load_model(arguments)
    found = modes(model.system, _point_of(model, arguments, report))
    report.say(f"{found!r}; {found.how}")
    report.say()
    report.say(found.table())
    if arguments.energies:
        report.say()
        report.say(found.energy_table())
        report.add(energies=found.energy_table())
    report.add(
        model=model.word,
        system=model.system.label,
        how=found.how,
        modes=[
            row | {"poles": mode.poles, "participation": mode.participation}
            for row, mode in zip(found.table(), found, strict=True)
        ],
    )
    if arguments.plot:
        report.save(f"{model.system.name}_modes.png", lambda file: found.plot(path=file))


def _point_of(model: Model, arguments: Namespace, report: Report) -> Context:
    """Return where to look: the context, or the equilibrium next to it."""
    if not arguments.equilibrium:
        return model.context
    from flexure.solvers.analysis.operating_points.equilibria import equilibrium

    found = equilibrium(model.system, model.context, period=getattr(arguments, "period", None))
    report.say(f"equilibrium, found in {found.iterations} iterations")
    return found.context


def _poles(model: LinearModel) -> Table:
    """Return a table of the poles; of a sampled model, of what they stand for."""
    rows = []
    for pole in model.poles:
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = pole if model.period is None else np.log(pole) / model.period
        speed = abs(rate)
        damping = -rate.real / speed if speed and np.isfinite(speed) else None
        rows.append((pole.real, pole.imag, speed / (2.0 * np.pi), damping))
    return Table(("real part", "imaginary part", "frequency [Hz]", "damping ratio"), rows)


def _matrix(model: LinearModel) -> Table:
    """Return A, B, C and D as one table: what each rate and each output takes of what."""
    (p, m), n = model.D.shape, len(model.A)
    whole = np.block([[model.A, model.B], [model.C, model.D]]) + 0.0  # no -0
    rate = "dx{}/dt" if model.period is None else "next x{}"
    rows = [rate.format(k) for k in range(1, n + 1)] + [f"y{k}" for k in range(1, p + 1)]
    names = [*model.state_names, *model.output_names]
    columns = [f"x{k}" for k in range(1, n + 1)] + [f"u{k}" for k in range(1, m + 1)]
    return Table(("", "of", *columns), zip(rows, names, *whole.T, strict=True))


def _write(model: LinearModel, file: Path) -> None:
    arrays: dict[str, Any] = {
        name: np.asarray(getattr(model, name)) for name in (*_MATRICES, *_POINT, *_NAMES)
    }
    with replacing(file, binary=True) as stream:
        np.savez(stream, **arrays)
