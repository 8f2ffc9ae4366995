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
from flexure.diagrams.interface.lazy_names import (
    imported_names as _imported_names,
    on_demand as _on_demand,
)
from flexure.diagrams.interface.moved_modules import MovedModules as _MovedModules

_sys.meta_path.append(_MovedModules)

if _typing.TYPE_CHECKING:
    from flexure import (
        compliance as compliance,
        constraints as constraints,
        errors as errors,
        fitting as fitting,
        laws as laws,
        metrics as metrics,
        multibody as multibody,
        plans as plans,
        results as results,
        rotations as rotations,
        sections as sections,
    )
    from flexure.blocks import *
    from flexure.diagrams import (
        TIME as TIME,
        Context as Context,
        Diagram as Diagram,
        DiagramBuilder as DiagramBuilder,
        LeafSystem as LeafSystem,
        System as System,
        array as array,
    )
    from flexure.solvers import *
else:
    __all__ = ["blocks", "diagrams", "solvers"]
    __all__ += ["compliance", "constraints", "errors", "fitting", "multibody"]
    __all__ += ["laws", "metrics", "plans", "results", "rotations", "sections"]
    _names = {**_imported_names(__file__, __name__), "blocks": " ".join(blocks.__all__)}
    _names["solvers"] = " ".join(solvers.__all__)
    __getattr__, __dir__ = _on_demand(
        __name__,
        _names,
        elsewhere=("diagrams", *__all__[3:], "blocks.math"),
        synonyms="diagrams.interface.synonyms",
    )
    __all__ += [name for names in _names.values() for name in names.split()]

if "IPython" in _sys.modules:
    from flexure.diagrams.interface.completion import offer_completion as _offer_completion

    _offer_completion()
