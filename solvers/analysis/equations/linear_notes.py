"""Notes on linear models: blocks replaced by gains, and blocks that pass no small changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flexure.diagrams.contexts.context import Context, LeafContext

#: How a note says that a block has the slope zero.
BLOCKS = "passes no small changes"


def gains(context: Context) -> Iterator[LeafContext]:
    """Return the blocks that pass as gains in linear models."""
    return (leaf for leaf in context.leaves() if leaf.system.linearize_as == "gain")


def linear_notes(leaves: Iterable[LeafContext], *, as_gain: bool = True) -> tuple[str, ...]:
    """Say which blocks pass no small changes, and which of them are linearized as gains."""
    remarks = ((leaf.system, leaf.system.linear_remark(leaf)) for leaf in leaves)
    return tuple(
        f"'{block.label}' is linearized as a gain, although {remark}"
        if as_gain and block.linearize_as == "gain"
        else f"'{block.label}' {BLOCKS}: {remark}"
        for block, remark in remarks
        if remark is not None
    )
