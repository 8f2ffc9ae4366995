"""C gives the numbers of the equations: blocks and mechanisms, without a warning.

One variety of each kind of block goes through one call of the compiler, and some of the
mechanisms through another compiler, which takes a third of the time for long sources: others have
the same kinds of equations, and `test_elementary.py` has every operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.contexts.value_places import find_place
from flexure.diagrams.scalars.derivatives.jacobians import directional
from flexure.solvers.export.c.c_model import CModel
from flexure.solvers.export.c.c_source import Part, Wanted
from flexure.solvers.tracing.exact_jacobian import numbers_behind, state_keys
from flexure.solvers.tracing.trace import trace_derivatives
from tests.contracts.catalog import CATALOG, ONE_OF_EACH
from tests.contracts.equations import filled
from tests.contracts.test_every_model_in_javascript import close, events_of, expected_numbers
from tests.support.mechanics.mechanisms import MECHANISMS, WRITTEN_MECHANISMS, random_contexts
from tests.support.native.c_models import Running, compile_all
from tests.support.tiers import for_each

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
FloatArray = npt.NDArray[np.float64]
PARTS: frozenset[Part] = frozenset(("exchange", "slopes"))
#: For each name a model, its contexts, and an instance of what is compiled.
Compiled = dict[str, tuple[CModel, Sequence[fx.Context], Running]]


def compiled(
    found: Mapping[str, tuple[CModel, Sequence[fx.Context]]], folder: Path, compiler: str
) -> Compiled:
    models = [model for model, _ in found.values()]
    library = compile_all(models, folder, "-O0", compiler=compiler)
    return {k: (model, each, Running(model, library)) for k, (model, each) in found.items()}


def take(running: Running, context: fx.Context) -> None:
    """Give an instance the values of a context."""
    model = running.model
    running.call("set_time", float(context.time))
    for table in ("states", "discrete", "parameters", "inputs"):
        for row in model.info[table]:
            place = model.places[row["path"]]
            values = np.ravel(find_place(context.system, row["path"]).settable.read(context))
            name = "set_state" if place["array"] == "x" else "set"
            for k, value in enumerate(values):
                running.call(name, place["at"] + k, float(value))


def check(model: CModel, contexts: Sequence[fx.Context], running: Running) -> None:
    """Compare everything that a model computes with the equations."""
    n, count = len(model.info["states"]), sum(row["size"] for row in model.info["signals"])
    for context in contexts:
        running.call("reset")
        take(running, context)
        expected = expected_numbers(cast("Any", model), context)
        found = {"derivatives": running.numbers("derivatives", n)}
        found["witnesses"] = running.numbers("witnesses", len(model.equations.witnesses))
        signals = running.signals
        assert len(signals) == count
        for row in model.info["signals"]:
            found[f"signal {row['path']}"], signals = signals[: row["size"]], signals[row["size"] :]
        update = 0
        for k, (_, event) in enumerate(events_of(context)):
            if event.kind != "publish":
                found[f"event {k}"] = updated(running, context, update)
                update += 1
        for name, numbers in found.items():
            wanted = expected[name]
            if wanted is None:
                assert np.isnan(numbers).any(), name
            else:
                close(numbers, wanted, name)
    if n:
        check_slopes(contexts[-1], running)


def updated(running: Running, context: fx.Context, number: int) -> FloatArray:
    """Return all states and discrete values after one update."""
    model, store = running.model, context.store
    discrete = [value for leaf in context.leaves() for value in leaf.discrete]
    values = np.hstack([store.x, *discrete])
    event = [each for each in model.equations.events if each.kind != "publish"][number]
    values[event.targets] = running.numbers("update", len(event.targets), number)
    return values


def check_slopes(context: fx.Context, running: Running) -> None:
    """Compare slopes along random directions with those of the trace, forward and backward."""
    store, layout = context.store, context.store.layout
    n, rng = layout.num_states, np.random.default_rng(5)
    direction, weights = rng.normal(size=n), rng.normal(size=n)
    seeds = [("seed", k) for k in range(n)]
    derivatives = trace_derivatives(layout)
    slopes = directional(derivatives, state_keys(store), seeds)
    numbers: dict[Any, float] = dict(zip(seeds, direction.tolist(), strict=True))
    numbers |= numbers_behind(store, derivatives, store.time, store.x)
    with np.errstate(all="ignore"):
        expected = np.array(scalars.evaluate(slopes, numbers), float)
    inputs, count = len(running.model.drives), len(running.signals)
    ahead = np.hstack([direction, np.zeros(inputs)])
    every = running.numbers("directional", n + count, ahead)
    found, finite = every[:n], np.isfinite(expected)
    close(found[finite], expected[finite], "directional")
    if finite.all() and np.isfinite(every).all():  # signals without slopes spoil the sum
        back = running.numbers("adjoint", n + inputs, np.hstack([weights, np.zeros(count)]))[:n]
        close(np.array([back @ direction]), np.array([weights @ expected]), "adjoint")


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Every block of the catalog with contexts."""
    found = {}
    for k, label in enumerate(ONE_OF_EACH):
        block = CATALOG[label]()
        context = block.create_default_context()
        contexts = [context.clone() for _ in filled(context, seeds=2)]
        found[label] = CModel(context, Wanted(name=f"block{k}", parts=PARTS)), contexts
    return compiled(found, tmp_path_factory.mktemp("blocks"), "gcc")


@for_each("label", ONE_OF_EACH)
def test_every_block_computes_the_same(label: str, blocks: Compiled) -> None:
    check(*blocks[label])


@pytest.fixture(scope="module")
def mechanisms(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Every mechanism with contexts."""
    found = {}
    for k, name in enumerate(WRITTEN_MECHANISMS):
        plant = MECHANISMS[name]()
        contexts = random_contexts(plant, 2)
        some = list(plant.output_ports)[::5]  # all of them take long to write
        wanted = Wanted(some, name=f"plant{k}", parts=PARTS)
        found[name] = CModel(contexts[0], wanted), contexts
    return compiled(found, tmp_path_factory.mktemp("mechanisms"), "clang")


@for_each("name", WRITTEN_MECHANISMS)
def test_every_mechanism_computes_the_same(name: str, mechanisms: Compiled) -> None:
    check(*mechanisms[name])
