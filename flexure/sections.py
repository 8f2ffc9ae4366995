"""Sections: the cross sections of beams and leaves, and the notches of hinges."""

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.blocks.flexures.hinges.notches import (
        CircularNotch as CircularNotch,
        EllipticNotch as EllipticNotch,
        FilletedNotch as FilletedNotch,
        Notch as Notch,
    )
    from flexure.blocks.flexures.sections.rectangle_section import (
        RectangleSection as RectangleSection,
    )
    from flexure.blocks.flexures.sections.sections import (
        CircleSection as CircleSection,
        GeneralSection as GeneralSection,
        Section as Section,
        TubeSection as TubeSection,
    )
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, "flexure"), root="flexure")
