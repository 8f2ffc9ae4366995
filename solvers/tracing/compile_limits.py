"""Limits of compilation before a run, so that it does not take longer than it can save.

Compiling takes the same few microseconds for each operation, whatever it saves: much where Python
would go through the operations one by one, nothing where one product of a matrix is 200000 of them.
So what is too long is not compiled, and runs as if it could not be traced. The bounds are numbers
of operations and not seconds: which way a run takes is the same everywhere. On a usual machine,
each of them corresponds to less than ten seconds.
"""

from __future__ import annotations

from flexure.diagrams.checks.arguments import require_that
from flexure.diagrams.checks.errors import TraceError

#: Of a trace: operations, inputs and constants, those included that turn out to be superfluous.
TRACED = 1_000_000
#: Operations of derivatives whose native code is shared by what is alike.
SHARED = 400_000
#: Operations that are written out as native code, of derivatives and of what a Jacobian is made of.
WRITTEN = 100_000
#: Statements of straight-line Python, for which Python takes longer than LLVM.
STATEMENTS = 50_000
#: Statements of straight-line Python for an exact Jacobian.
JACOBIAN_STATEMENTS = 100_000


def refuse_beyond(bound: int, count: int, what: str) -> None:
    """Refuse to compile more operations than a bound."""
    attempt = f"Cannot compile {what} of {count} operations in reasonable time"
    require_that(count <= bound, attempt, f"at most {bound}", str(count), error=TraceError)
