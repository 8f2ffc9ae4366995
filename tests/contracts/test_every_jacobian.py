"""Every block of the library has exact derivatives by states, inputs and parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.contexts.value_places import Place
from flexure.solvers.analysis.equations.equations import Equations, find_variables
from tests.contracts.catalog import CATALOG, TRIED
from tests.contracts.equations import DRAWS, fill
from tests.support.tiers import by_tier

#: Directions along which more variables are compared.
MANY = by_tier(fast=4, full=12)
FOREIGN = {"FunctionBlock of a foreign function", "TimeFunction of a foreign function"}


def equations_of(block: fx.LeafSystem, context: fx.Context) -> Equations:
    """Take all inputs and all parameters as variables, and all outputs."""
    choices = [*block.input_ports, *block.numeric_parameters]
    outputs = [Place.of(port) for port in block.output_ports if port.size]
    return Equations(context, find_variables(context, choices, "Cannot differentiate"), outputs)


def directions(point: Any) -> Any:
    """Return directions through the variables at once where there are many, else one by one."""
    sizes = np.maximum(np.abs(point), 1.0, where=np.isfinite(point), out=np.zeros_like(point))
    if point.size <= MANY or not sizes.all():
        return np.diag(np.where(sizes, sizes, 1e4))
    return sizes * np.random.default_rng(4).uniform(-1.0, 1.0, (MANY, point.size))


def central(equations: Equations, point: Any, direction: Any) -> Any:
    """Differentiate along a direction by central differences of fourth order."""
    values = [equations.values(point + k * direction) for k in (-2e-4, -1e-4, 1e-4, 2e-4)]
    with np.errstate(invalid="ignore"):  # limits may be infinite, and so may what is limited
        return np.array([1.0, -8.0, 8.0, -1.0]) @ values / 12e-4


def along(matrix: Any, vectors: Any) -> Any:
    """Multiply a Jacobian with directions; zeros of them are left out, whatever they meet."""
    with np.errstate(invalid="ignore"):
        products = matrix[:, np.newaxis, :] * vectors
    return np.where(vectors != 0.0, products, 0.0).sum(axis=-1)


@pytest.mark.parametrize("label", TRIED)
def test_exact_derivatives_agree_with_differences(label: str) -> None:
    block = CATALOG[label]()
    context = block.create_default_context()
    is_spatial = isinstance(
        block, fx.multibody.ForceElement | fx.multibody.MultibodyTree
    )  # with many inputs
    compared, wanted = 0, by_tier(fast=1, full=2 if is_spatial else 4)
    for seed in range(3 * wanted):
        if compared == wanted:
            return
        for leaf in context.leaves():
            fill(leaf, DRAWS["scattered"], np.random.default_rng(seed))
        try:
            equations = equations_of(block, context)
            point = equations.point()
            columns = [central(equations, point, direction) for direction in directions(point)]
        except fx.errors.EvaluationError:  # as of a beam that is bent too far
            continue
        if label in FOREIGN:
            assert equations.exact is None
            return
        assert equations.exact is not None
        if point.size == 0:
            return
        finite = np.isfinite(equations.values(point))
        found, expected = equations.jacobian(point)[finite], np.transpose(columns)[finite]
        found = along(found, directions(point))
        size = np.max(np.abs(expected), initial=1.0)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * size)
        compared += 1
    assert compared == wanted
