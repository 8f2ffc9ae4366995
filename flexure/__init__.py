"""Flexure: block diagrams of compliant mechanisms and their controllers."""

import sys as _sys
import typing as _typing
from importlib.util import find_spec as _find_spec

__version__ = "0.1.0"

if None in (_find_spec(f"{__name__}.{folder}") for folder in ("blocks", "diagrams", "solvers")):
    raise ImportError(
        "flexure/blocks, flexure/diagrams and flexure/solvers should be links to the folders next "
        "to flexure/, but this checkout was made without symbolic links. Repair it with "
        "`git config core.symlinks true` and then `git checkout -- flexure` (on Windows, switch on "
        "Developer Mode first). Files that did not come from git: clone the repository instead."
    )

from flexure import blocks as blocks, diagrams as diagrams, solvers as solvers
from flexure.diagrams.interface.lazy_names import on_demand as _on_demand

if _typing.TYPE_CHECKING:
    from flexure import (
        compliance as compliance,
        errors as errors,
        fitting as fitting,
        laws as laws,
        metrics as metrics,
        plans as plans,
        results as results,
        rotations as rotations,
    )
    from flexure.blocks import *
    from flexure.diagrams import *
    from flexure.solvers import *
else:
    __all__ = ["blocks", "diagrams", "solvers"]
    __all__ += ["compliance", "errors", "fitting", "laws", "metrics"]
    __all__ += ["plans", "results", "rotations"]
    __getattr__, __dir__ = _on_demand(
        __name__,
        {
            "blocks": " ".join(blocks.__all__),
            "diagrams": " ".join(diagrams.__all__),
            "solvers": " ".join(solvers.__all__),
        },
        elsewhere=(*__all__[3:], "blocks.math"),
        synonyms="synonyms",
    )
    __all__ += blocks.__all__
    __all__ += diagrams.__all__
    __all__ += solvers.__all__

if "IPython" in _sys.modules:
    from flexure.diagrams.interface.completion import offer_completion as _offer_completion

    _offer_completion()
