"""Segments of beams that are tapered: the law of each, and how many a curved leaf needs.

The law of a tapered beam takes mean values for what twist and bending have to do with each other.
In an arc, a force across its plane twists most where it is clamped, so that it matters where the
torsion stiffness is. One segment is as stiff there as its mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from flexure.blocks.flexures.beams.beam_law import BeamLaw, num_constants
from flexure.blocks.flexures.beams.beam_segment import BeamSegment
from flexure.blocks.flexures.beams.tapered_beam_law import STATIONS, TaperedBeamLaw
from flexure.blocks.flexures.sections.flexure_parameters import MaterialConstants, blend
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.sections import Section
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.checks.errors import warn
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
        self, name: str, frame_a: FrameLike, frame_c: FrameLike, *, taper: Taper, **options: Any
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


_ENOUGH = 0.01
#: Error of the stiffness across, times the square of the number of segments, over the logarithm of
#: the ratio of both torsion stiffnesses, of an arc that gives way by twist alone. Found by
#: integrals along arcs of 0.2 to 1.6 rad, with tapers to half and to 0.8 of the thickness.
_BY_TAPER = 0.35


def error_across(
    first: Section, last: Section, material: Material, turn: tuple[float, float], segments: int
) -> float:
    """Return about how wrong the stiffness across the plane of a curved and tapered leaf is.

    It turns by the angles ``turn`` in rad about y and z along its length, while it is unstressed.
    """
    part = _part(first, last, material, turn) / segments**2
    return part / (1.0 + part)


def segments_across(
    first: Section, last: Section, material: Material, turn: tuple[float, float]
) -> int:
    """Return how many segments make the error of the stiffness across about 1 %."""
    return max(1, math.ceil(math.sqrt(_part(first, last, material, turn) / _ENOUGH)))


def _part(first: Section, last: Section, material: Material, turn: tuple[float, float]) -> float:
    """Return the error, times the square of many segments."""
    ratio = float(first.torsion_constant / last.torsion_constant)
    twist = material.shear_modulus * math.sqrt(first.torsion_constant * last.torsion_constant)
    greatest = 0.0
    for angle, name in zip(turn, ("second_moment_z", "second_moment_y"), strict=True):
        bend = math.sqrt(getattr(first, name) * getattr(last, name)) * material.youngs_modulus
        by_twist = 0.15 * angle**2 * bend / twist  # over what bending gives way, at the end
        greatest = max(greatest, by_twist / (1.0 + by_twist))
    return _BY_TAPER * abs(math.log(ratio)) * greatest


def warn_of_curved_taper(
    name: str,
    sections: tuple[Section, Section],
    material: Material,
    turn: tuple[float, float],
    segments: int,
) -> None:
    """Warn of a beam that takes more segments for what it does across its plane."""
    needed = segments_across(*sections, material, turn)
    if needed <= segments:
        return
    error = error_across(*sections, material, turn, segments)
    count = "one segment" if segments == 1 else f"{segments} segments"
    warn(
        f"Beam '{name}' is tapered and curved: with {count}, its out-of-plane stiffness errs by "
        f"about {100.0 * error:.2g} %, since twist uses mean values of the sections. Pass"
        f" segments={needed} for 1 %, or planar=True if it moves in its plane only"
    )
