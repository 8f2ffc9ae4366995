"""Derivatives of the states of mechanisms that are put together before a motion begins.

With errors φ(q, p) = 0 of constraints and rates w(q, v, p) = 0, a given state moves with
parameters, and closing it again adds the least change of what is free::

    δθ = -J⁺ (∂φ/∂q δq + ∂φ/∂p δp),    δv = -J⁺ (∂w/∂(q, v) δ(q, v) + ∂w/∂p δp)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody import MultibodyTree
from flexure.blocks.multibody.loop_closure.closing import calc_equations
from flexure.diagrams.checks.errors import quoted, warn
from flexure.diagrams.contexts.context import Context, LeafContext
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import Equations, Variable

_OPENS = 1e-9  # derivative of an error that is not rounding
_INDEPENDENT = 1e-7  # least singular value of independent equations, as a part of the largest


class AssembledSlopes:
    """The function that makes derivatives of initial states satisfy the constraints of a context.

    ``exact(equations)`` makes sure that derivatives are exact.
    """

    def __init__(
        self, context: Context, variables: Sequence[Variable], exact: Callable[[Equations], object]
    ) -> None:
        self._size = context.store.layout.num_states
        self._has_warned = False
        self._parts: list[tuple[LeafContext, MultibodyTree, Equations]] = []
        for leaf in context.leaves():
            tree = leaf.system
            if isinstance(tree, MultibodyTree) and tree.constraints:
                ports = [
                    tree.output_port(f"{each.name}_{what}")
                    for each in tree.constraints
                    for what in ("error", "error_rate")
                ]
                equations = Equations(context, variables, [Place.of(port) for port in ports])
                exact(equations)
                self._parts.append((leaf, tree, equations))

    def closed(
        self, slopes: FloatArray, steering: npt.NDArray[np.intp], names: Sequence[str]
    ) -> FloatArray:
        """Return derivatives of states that fit the constraints.

        In mechanisms that are not assembled, they stay as they are; if one of the variables opens
        such a mechanism, a warning names it. The columns ``steering`` belong to the variables,
        others to initial states; ``names`` states what each belongs to.
        """
        found = slopes.copy()
        for leaf, tree, equations in self._parts:
            matrix = equations.jacobian(equations.point())[self._size :]
            is_error = np.concatenate(
                [
                    np.arange(2 * each.num_equations) < each.num_position_equations
                    for each in tree.constraints
                ]
            )
            is_rate = np.concatenate(
                [
                    np.arange(2 * each.num_equations) >= each.num_equations
                    for each in tree.constraints
                ]
            )
            start, nq = leaf.x_slice.start, tree.topology.num_positions

            def left(rows: npt.NDArray[np.bool_], matrix: FloatArray = matrix) -> FloatArray:
                change: FloatArray = matrix[rows, : self._size] @ found
                change[:, steering] += matrix[rows, self._size :]
                return change

            if tree.start_assembly is None:
                self._tell(tree, np.max(np.abs(left(is_error)), axis=0, initial=0.0), names)
                continue
            now = calc_equations(tree, leaf)
            free = ~tree.start_assembly.held(tree, leaf)
            moved = np.zeros((tree.topology.num_velocities, slopes.shape[1]))
            inverse = np.linalg.pinv(now.J[now.of_positions][:, free], rcond=_INDEPENDENT)
            moved[free] = -inverse @ left(is_error)
            q = tree.q(leaf)
            for mobilizer in tree.topology.mobilizers:
                rows = slice(start + mobilizer.q.start, start + mobilizer.q.stop)
                for column, step in enumerate(moved[mobilizer.v].T):
                    rates = mobilizer.joint.calc_position_rates(q[mobilizer.q], step)
                    found[rows, column] += rates
            inverse = np.linalg.pinv(now.J[:, free], rcond=_INDEPENDENT)
            found[start + nq + np.flatnonzero(free)] -= inverse @ left(is_rate)
        return found

    def _tell(self, tree: MultibodyTree, opening: FloatArray, names: Sequence[str]) -> None:
        """Warn, once, of what opens a mechanism."""
        opens = dict.fromkeys(n for n, o in zip(names, opening, strict=True) if o > _OPENS)
        if opens and not self._has_warned:
            self._has_warned = True
            warn(
                f"Derivatives by {quoted(opens)} are those of motions of "
                f"'{tree.parent_plant.label}' that begin with open constraints. Call "
                "assemble_starts() of its builder to have those of motions that begin assembled"
            )
