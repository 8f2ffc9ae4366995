"""Divided beams as single elements, to look at their law alone."""

from __future__ import annotations

from flexure.blocks.flexures.beams.beam import Beam


def undivided(beam: Beam) -> Beam:
    """Return a beam like this one in new contexts, of a single segment and in no plant."""
    end, curvature, damping = beam.end_section, beam.curvature, beam.damping_time
    return Beam(
        beam.name,
        beam.frame_a,
        beam.frame_c,
        section=beam.section.default,
        material=beam.material.default,
        end_section=None if end is None else end.default,
        length=beam.length.default,
        shear=beam.shear,
        curvature=None if curvature is None else curvature.default,
        damping_time=None if damping is None else damping.default,
        plate=beam.plate,
        clamped_warping=beam.clamped_warping,
        prestressed=beam.prestressed,
    )


__all__ = ["undivided"]
