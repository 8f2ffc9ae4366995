"""Equations of blocks as people write them: those in the docstrings of their classes."""

from __future__ import annotations

import inspect
import re
import textwrap


def law_of(block: object) -> str:
    """Return the equations in the docstring of the class of a block; empty if there are none.

    Examples
    --------
    >>> import flexure as fx
    >>> print(law_of(fx.PIDController("pid")).splitlines()[0])
    v = kp (b r − y) + ki z + kd d + f        sum of all parts
    """
    head = re.split(r"\n(?:Parameters|Attributes)\n-", inspect.getdoc(type(block)) or "")[0]
    blocks = re.findall(r"::\n\n((?:    .*\n|\n)+)", f"{head}\n")
    return "\n\n".join(textwrap.dedent(each).strip() for each in blocks)
