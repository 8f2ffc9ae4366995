"""Segments of beams that are tapered, each of which makes a law of its own."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from flexure.blocks.flexures.beams.beam_law import BeamLaw, num_constants
from flexure.blocks.flexures.beams.beam_segment import BeamSegment
from flexure.blocks.flexures.beams.tapered_beam_law import STATIONS, TaperedBeamLaw
from flexure.blocks.flexures.sections.flexure_parameters import MaterialConstants, blend
from flexure.blocks.flexures.sections.sections import Section
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.values.arrays import Array

_GIVEN = 5  # numbers that all have: length, E, ν, G, and the factor of plates


@dataclass(frozen=True)
class Taper:
    """Common data of all segments of a tapered beam."""

    section: type[Section]  # what kind of section they have
    shear: bool  # whether shear forces deflect them
    # damped, curved, strained: whether there are dampers, whether they are curved while they are
    # unstressed, and whether free strain changes that.
    damped: bool
    curved: bool
    strained: bool = False

    @property
    def num_numbers(self) -> int:
        """How many numbers make a law."""
        return self._first_dimension + 2 * len(fields(self.section))

    @property
    def _first_dimension(self) -> int:
        others = num_constants(damped=self.damped, curved=self.curved, strained=self.strained)
        return _GIVEN + others - num_constants(damped=False, curved=False)

    def law(self, numbers: Array, label: str) -> BeamLaw:
        """Return the law of a segment.

        The numbers are length, E, ν, G and the factor of plates; the time of damping and the state
        at rest, if any; the dimensions of the section at A, and those at C.
        """
        (h, E, nu, G, factor), rest = numbers[:_GIVEN], numbers[_GIVEN : self._first_dimension]
        first, last = numbers[self._first_dimension :].reshape(2, -1)
        sections = [blend(self.section, first, last, part) for part in STATIONS]
        law = TaperedBeamLaw.between(
            h, sections, MaterialConstants(E, nu, G, 0.0), shear=self.shear, plate_factor=factor
        )
        if self.damped:
            law = replace(law, damping_time=rest[0])
        return replace(law.with_rest(rest[int(self.damped) :]), label=label)


class TaperedSegment(BeamSegment):
    """A part of a `Beam` that is tapered and divided.

    It makes its law of the sections at its ends, which is long, and so the same code for all parts.
    Its ``constants`` are the numbers of `Taper.law`; ``taper`` is what all segments have in common.
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        taper: Taper,
        **options: Any,
    ) -> None:
        self._taper = taper
        super().__init__(
            name,
            frame_a,
            frame_c,
            damped=taper.damped or taper.strained,
            num_constants=taper.num_numbers,
            **options,
        )
        self._law = self.declare_cache_entry("law", self._calc_law, prerequisites=[self.constants])

    def law(self, context: Any) -> BeamLaw:
        """Return the law of the segment."""
        law: BeamLaw = self._law(context)
        return law

    def _calc_law(self, context: Any) -> BeamLaw:
        law = self._taper.law(self.constants(context), self.label)
        return replace(law, planar=self.planar)
