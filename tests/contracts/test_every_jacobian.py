"""Every block of the library has exact derivatives by states, inputs and parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.places import Place
from flexure.solvers.analysis.equations import Equations, find_variables
from tests.contracts.catalog import CATALOG
from tests.contracts.equations import DRAWS, fill

FOREIGN = {"FunctionBlock of a foreign function", "TimeFunction of a foreign function"}


def equations_of(block: fx.LeafSystem, context: fx.Context) -> Equations:
    """Take all inputs and all parameters as variables, and all outputs."""
    choices = [*block.input_ports, *block.numeric_parameters]
    outputs = [Place.of(port) for port in block.output_ports if port.size]
    return Equations(context, find_variables(context, choices, "Cannot differentiate"), outputs)


def central(equations: Equations, point: Any) -> Any:
    """Differentiate by central differences of fourth order."""
    columns = []
    for k, number in enumerate(point):
        step = 1e-4 * max(abs(number), 1.0) if np.isfinite(number) else 1.0
        offsets = np.zeros((4, point.size))
        offsets[:, k] = step * np.array([-2.0, -1.0, 1.0, 2.0])
        values = [equations.values(point + offset) for offset in offsets]
        with np.errstate(invalid="ignore"):  # limits may be infinite, and so may what is limited
            columns.append(np.array([1.0, -8.0, 8.0, -1.0]) @ values / (12.0 * step))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("label", CATALOG)
def test_exact_derivatives_agree_with_differences(label: str) -> None:
    block = CATALOG[label]()
    context = block.create_default_context()
    is_spatial = isinstance(block, fx.ForceElement | fx.MultibodyTree)  # with many inputs
    compared, wanted = 0, 2 if is_spatial else 4
    for seed in range(3 * wanted):
        if compared == wanted:
            return
        for leaf in context.leaves():
            fill(leaf, DRAWS["scattered"], np.random.default_rng(seed))
        try:
            equations = equations_of(block, context)
            point = equations.point()
            expected = central(equations, point) if point.size else np.zeros((0, 0))
        except fx.errors.EvaluationError:  # as of a beam that is bent too far
            continue
        if label in FOREIGN:
            assert equations.exact is None
            return
        assert equations.exact is not None
        if point.size == 0:
            return
        finite = np.isfinite(equations.values(point))
        found = equations.jacobian(point)[finite]
        size = np.max(np.abs(expected[finite]), initial=1.0)
        np.testing.assert_allclose(found, expected[finite], rtol=1e-6, atol=1e-7 * size)
        compared += 1
    assert compared == wanted
