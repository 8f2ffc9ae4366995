"""Symbolic tracing: NumPy code that runs on symbols records its operations as expressions.

Give a block's equations arrays of `symbols` in place of numbers, run them once, and the `Graph`
holds every operation as a node. From the nodes the equation can be read in other ways: `sources`
finds what an output depends on, `evaluate` computes it again from floats, `jacobian` and
`gradient` give its exact derivatives, and `write_python`, `write_latex` and `write_mathml` put it
into words.

Examples
--------
>>> import numpy as np
>>> graph = Graph()
>>> angle, rate = symbols(graph, "state", 2)
>>> torque = symbols(graph, "torque", 1)
>>> acceleration = torque[0] - 9.81 * np.sin(angle)
>>> sorted(sources(acceleration))
[('state', 0), ('torque', 0)]
>>> evaluate(acceleration, {("state", 0): 0.0, ("torque", 0): 2.0})
np.float64(2.0)
"""

# These three make NumPy functions known to `SymbolArray`.
from flexure.diagrams.scalars.derivatives.differentiation import gradient as gradient
from flexure.diagrams.scalars.derivatives.evaluation import (
    evaluate as evaluate,
    sources as sources,
    substitute as substitute,
)
from flexure.diagrams.scalars.derivatives.jacobians import (
    BlockJacobian as BlockJacobian,
    Jacobian as Jacobian,
    block_jacobian as block_jacobian,
    jacobian as jacobian,
)
from flexure.diagrams.scalars.expressions import (
    linear_algebra as linear_algebra,
    numpy_functions as numpy_functions,
    plain_functions as plain_functions,
)
from flexure.diagrams.scalars.expressions.array import SymbolArray as SymbolArray
from flexure.diagrams.scalars.expressions.expression import (
    Condition as Condition,
    Graph as Graph,
    Symbol as Symbol,
)
from flexure.diagrams.scalars.expressions.functions import (
    array as array,
    clip as clip,
    is_symbolic as is_symbolic,
    refuse_where as refuse_where,
    sinc as sinc,
    skip_where as skip_where,
    symbols as symbols,
    vanishing as vanishing,
    where as where,
    with_slope_of as with_slope_of,
)
from flexure.diagrams.scalars.expressions.solutions import solved as solved
from flexure.diagrams.scalars.notations.latex import (
    latex_names as latex_names,
    write_latex as write_latex,
)
from flexure.diagrams.scalars.notations.mathml import (
    mathml_names as mathml_names,
    write_mathml as write_mathml,
)
from flexure.diagrams.scalars.notations.notation import (
    Written as Written,
    write_python as write_python,
)
