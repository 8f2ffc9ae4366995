"""The check of passivity sees power that comes from nowhere, and energy that goes unaccounted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.tiers import for_each


class Book(fx.multibody.JointForceElement):
    """A spring of 3 N/m and a damper of 2 N s/m, whose powers are written down as one likes."""

    def __init__(self, kept: float = 1.0, lost: float = 1.0, pushed: float = 1.0) -> None:
        joint = fx.PrismaticJoint("rail", fx.Body("bench"), fx.Body("cart"), axis=(1, 0, 0))
        super().__init__("book", joint)
        self.kept, self.lost, self.pushed = kept, lost, pushed

    def calc_generalized_force(self, context: Any) -> Any:
        return -3.0 * self.position(context) - 2.0 * self.pushed * self.velocity(context)

    def calc_stored_energy(self, context: Any) -> Any:
        return 1.5 * self.position(context) ** 2

    def calc_conservative_power(self, context: Any) -> Any:
        return -3.0 * self.kept * self.position(context) * self.velocity(context)

    def calc_non_conservative_power(self, context: Any) -> Any:
        return -2.0 * self.lost * self.velocity(context) ** 2


class Lift(fx.multibody.BodyForceElement):
    """A weight of 1 N of a point on a body, whose energy may be counted times a factor."""

    def __init__(self, frame: Any, factor: float = 1.0) -> None:
        super().__init__("lift", {"A": frame})
        self.factor = factor

    def calc_spatial_forces(self, context: Any) -> Any:
        weight = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -1.0])
        return [self.attachments[0].motion(context).force_on_body(weight)]

    def calc_stored_energy(self, context: Any) -> Any:
        return self.factor * self.attachments[0].pose_of_frame(context).p[2]

    def calc_conservative_power(self, context: Any) -> Any:
        return -self.attachments[0].motion(context).V_WF[5]

    def calc_non_conservative_power(self, context: Any) -> Any:
        return 0.0


def test_an_honest_book_balances() -> None:
    report = fx.check_passivity(Book())
    assert report.is_passive
    assert report.greatest_mismatch < 1e-9 * report.power_scale
    assert report.greatest_unaccounted < 1e-14 * report.power_scale


def test_a_wrong_conservative_power_is_a_mismatch() -> None:
    report = fx.check_passivity(Book(kept=-1.0))
    assert not report.is_passive  # such books hide where energy comes from
    assert report.greatest_mismatch > 0.5 * report.power_scale


def test_a_damper_that_gives_power_is_not_passive() -> None:
    report = fx.check_passivity(Book(lost=-1.0, pushed=-1.0))
    assert not report.is_passive
    assert report.greatest_mismatch < 1e-9 * report.power_scale
    assert report.worst is not None
    (rate,) = report.worst.get("velocity")
    assert report.greatest_power == pytest.approx(2.0 * rate**2)


@pytest.mark.parametrize("pushed", [-1.0, 0.999, np.nan])
def test_a_force_whose_power_is_not_in_the_books_is_not_passive(pushed: float) -> None:
    report = fx.check_passivity(Book(pushed=pushed))
    assert not report.is_passive
    assert not report.greatest_unaccounted <= 1e-5 * report.power_scale


@pytest.mark.parametrize("book", [{"kept": np.nan}, {"lost": np.nan}, {"lost": np.inf}])
def test_powers_that_are_no_numbers_are_not_passive(book: dict[str, float]) -> None:
    report = fx.check_passivity(Book(**book))
    assert not report.is_passive
    assert report.worst is not None


def test_a_force_that_never_acts_is_not_called_passive_without_a_warning() -> None:
    ends = [fx.Body(name, fx.SpatialInertia.point_mass(1.0)) for name in ("ball", "wall")]
    points = (ends[0], (0, 0, 0), ends[1], (0, 0, 0))
    bumper = fx.Bumper("bumper", *points, free_length=1e-9, stiffness=1.0)
    with pytest.warns(UserWarning, match="'bumper' exerts no force in 500 motions"):
        fx.check_passivity(bumper)


def test_the_energy_changes_with_the_turning_of_a_body() -> None:
    frame = fx.Frame("tip", fx.Body("arm"), (0.0, 3.0, 0.0))
    honest, cheated = fx.check_passivity(Lift(frame)), fx.check_passivity(Lift(frame, 1.1))
    assert honest.greatest_mismatch < 1e-8 * honest.power_scale
    assert cheated.greatest_mismatch == pytest.approx(0.1 * cheated.power_scale, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_the_balance_is_seen_at_all_scales(scale: float) -> None:
    settings: list[dict[str, Any]] = [{"length": scale}, {"speed": scale}]
    for options in settings:
        report = fx.check_passivity(Book(), num_motions=50, **options)
        assert report.greatest_mismatch < 1e-6 * report.power_scale


@for_each("name", ["length", "speed"])
@for_each("scale", [0.0, -1.0, np.inf, None])
def test_scales_are_positive(name: str, scale: Any) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=f"passivity with {name}"):
        fx.check_passivity(Book(), **{name: scale})


def test_a_report_says_in_one_line_what_was_found() -> None:
    assert repr(fx.check_passivity(Book(lost=0.0, pushed=0.0), num_motions=7)).startswith(
        "<PassivityReport: passive in 7 motions, P_nc <= 0 W, |P_c + dV/dt| <= "
    )
    assert "not passive" in repr(fx.check_passivity(Book(lost=-1.0), num_motions=7))
