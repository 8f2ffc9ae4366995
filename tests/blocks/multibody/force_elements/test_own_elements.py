"""Force elements that users write between frames on bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx

BALL = fx.SpatialInertia.solid_sphere(2.0, radius=0.1)


class Constant(fx.multibody.BodyForceElement):
    """The same spatial force about the origins of as many bodies as it is told to."""

    def __init__(self, name: str, frames: dict[str, Any], count: int) -> None:
        super().__init__(name, frames)
        self.count = count

    def calc_spatial_forces(self, context: Any) -> list[Any]:
        return [[0.0, 0.0, 0.0, 3.0, 0.0, 0.0]] * self.count

    def calc_stored_energy(self, context: Any) -> float:
        return 0.0

    calc_conservative_power = calc_non_conservative_power = calc_stored_energy


def made(count: int) -> tuple[fx.Plant, Constant]:
    builder = fx.PlantBuilder("plant", gravity=(0, 0, 0))
    ball = builder.add_body("ball", BALL, model_instance="toys")
    frames = {"A": builder.world, "B": ball}
    element = builder.add_force_element(Constant("push", frames, count))
    return builder.build(), element


def test_the_force_of_each_frame_acts_on_its_body() -> None:
    plant, _ = made(2)
    vdot = plant.calc_vdot(plant.create_default_context())
    np.testing.assert_allclose(vdot, [0.0, 0.0, 0.0, 1.5, 0.0, 0.0], rtol=1e-15)


def test_an_element_belongs_to_the_model_instance_of_its_last_body() -> None:
    assert made(2)[1].model_instance == "toys"


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_and_too_many_forces_are_refused(count: int) -> None:
    plant, _ = made(count)
    words = f"spatial forces of 'push': expected 2, one for each of its frames; found {count}"
    with pytest.raises(fx.errors.EvaluationError, match=words):
        plant.calc_vdot(plant.create_default_context())


class Push(Constant):
    """A force of 3 N along x at the origins of its frames."""

    def calc_spatial_forces(self, context: Any) -> list[Any]:
        at_frame = np.array([0.0, 0.0, 0.0, 3.0, 0.0, 0.0])
        return [each.motion(context).force_on_body(at_frame) for each in self.attachments]


def test_a_force_on_a_frame_has_a_moment_about_the_origin_of_its_body() -> None:
    builder = fx.PlantBuilder("plant", gravity=(0, 0, 0))
    ball = builder.add_body("ball", BALL)
    push = builder.add_force_element(
        Push("push", {"A": builder.add_frame("f", ball, (0, 2, 0))}, 1)
    )
    context = builder.build().create_default_context()
    np.testing.assert_array_equal(push.force_ports[0].eval(context), [0, 0, -6.0, 3.0, 0, 0])
