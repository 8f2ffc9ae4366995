"""What loops conserve, over many periods."""

from __future__ import annotations

import numpy as np
import pytest

import flexure as fx
from tests.blocks.multibody.constraints.test_closed_loops import four_bar


@pytest.mark.full
def test_a_linkage_that_swings_for_long_neither_opens_nor_loses_energy() -> None:
    linkage, context = four_bar()
    linkage.joint("shaft").damping.set(context, 0.0)
    result = fx.simulate(linkage, 50.0, context=context, method="DOP853", rtol=1e-10, atol=1e-10)
    energy = result["mechanical_energy"]
    assert np.ptp(result["kinetic_energy"]) > 1.0
    assert np.max(np.abs(energy - energy[0])) < 1e-6
    assert np.max(np.abs(result["pin.error"])) < 1e-9


@pytest.mark.full
def test_a_ring_that_floats_keeps_its_momentum_and_its_energy() -> None:
    builder = fx.PlantBuilder("ring", gravity=(0.0, 0.0, 0.0))
    rod = fx.SpatialInertia.solid_box(mass=1.0, size=(1.0, 0.2, 0.1))
    bars = [builder.add_body(f"bar{k}", rod) for k in range(4)]
    corners = [builder.add_frame(f"corner{k}", bar, (0.5, 0.0, 0.0)) for k, bar in enumerate(bars)]
    starts = [builder.add_frame(f"start{k}", bar, (-0.5, 0.0, 0.0)) for k, bar in enumerate(bars)]
    for k in range(3):
        axis = (0, 0, 1)
        builder.add_joint(fx.RevoluteJoint(f"hinge{k}", corners[k], starts[k + 1], axis=axis))
    builder.add_loop_joint(fx.RevoluteJoint("pin", corners[3], starts[0], axis=(0, 0, 1)))
    plant = builder.build()
    context = plant.create_default_context()
    for k, angle in enumerate((1.2, np.pi - 1.2, 1.2)):
        plant.joint(f"hinge{k}").positions.set(context, [angle])
    plant.set_velocities(context, np.linspace(1.0, -2.0, plant.num_velocities))
    plant.assemble(context)
    result = fx.simulate(plant, 5.0, context=context, method="DOP853", rtol=1e-10, atol=1e-10)
    momentum, energy = result["momentum"], result["kinetic_energy"]
    assert np.ptp(result["hinge0.angle"]) > 0.5
    assert momentum == pytest.approx(np.tile(momentum[0], (len(momentum), 1)), abs=1e-7)
    assert energy == pytest.approx(np.full(len(energy), energy[0]), rel=1e-7)
