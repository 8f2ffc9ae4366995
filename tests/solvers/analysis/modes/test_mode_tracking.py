"""Modes keep their places over a parameter, and pictures and tables show them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import flexure as fx
from tests.solvers.analysis.modes.test_modes import links, oscillator
from tests.support.tiers import for_each


def three_masses(coupling: float = 0.0) -> fx.Plant:
    """Masses on springs of their own: 4, 9 and 25 N/m at 1 kg."""
    builder = fx.PlantBuilder("three", gravity=(0.0, 0.0, 0.0))
    bodies = []
    for name, stiffness in (("a", 4.0), ("b", 9.0), ("c", 25.0)):
        body = builder.add_body(name, fx.SpatialInertia.point_mass(1.0))
        rail = builder.add_joint(fx.PrismaticJoint(f"on_{name}", builder.world, body, (1, 0, 0)))
        builder.add_force_element(fx.JointSpring(f"at_{name}", rail, stiffness=stiffness))
        bodies.append(body)
    none = {"torque_stiffness": (0.0,) * 3, "torque_damping": (0.0,) * 3}
    force = {"force_stiffness": (coupling, 0.0, 0.0), "force_damping": (0.0,) * 3}
    builder.add_force_element(fx.LinearBushing("between", bodies[0], bodies[1], **none, **force))
    return builder.build()


def test_modes_that_cross_keep_their_places() -> None:
    values = np.linspace(1.0, 49.0, 7)  # 9 and 25, where there is a crossing, are among them
    tracks = fx.track_modes(three_masses(), {"at_a.stiffness": values})
    expected = [np.sqrt(values), np.full(7, 3.0), np.full(7, 5.0)]
    assert 2.0 * np.pi * tracks.frequencies == pytest.approx(np.transpose(expected), rel=1e-9)
    for mode in tracks[0]:
        assert mode is not None
        assert mode.participation["on_a.translation"] == pytest.approx(1.0, abs=1e-6)
    assert len(tracks) == 3
    assert sorted(tracks.numbers[-1]) == [0, 1, 2]


def test_curves_that_turn_away_from_each_other_are_followed_between_the_values() -> None:
    plant = three_masses(coupling=0.5)
    tracks = fx.track_modes(plant, {"at_a.stiffness": [4.0, 9.0, 20.0]})
    fine = fx.track_modes(plant, {"at_a.stiffness": np.linspace(4.0, 20.0, 17)})
    assert tracks.frequencies == pytest.approx(fine.frequencies[[0, 5, -1]], rel=1e-9)
    assert np.all(np.diff(tracks.frequencies[:, :2], axis=1) > 0.0)


def test_a_mode_that_becomes_overdamped_stays_what_it_is() -> None:
    damping = np.linspace(0.0, 20.0, 11)
    tracks = fx.track_modes(oscillator(), {"spring.damping": damping})
    assert tracks.numbers.tolist() == [[0]] * 11
    assert tracks.damping_ratios[:, 0] == pytest.approx(damping / 8.0, abs=1e-9)
    assert tracks.frequencies[:, 0] == pytest.approx(np.full(11, 1.0 / np.pi), rel=1e-9)
    kinds = [mode.kind for mode in tracks[0] if mode is not None]
    assert (kinds[3], kinds[5]) == ("oscillation", "overdamped")


def test_each_value_has_the_modes_of_its_own_equilibrium() -> None:
    plant = links(2)
    masses = [0.1, 0.3]
    tracks = fx.track_modes(plant, {"link1.mass": masses})
    for k, mass in enumerate(masses):
        context = plant.create_default_context()
        context.set("link1.mass", mass)
        settled = fx.equilibrium(plant, context).context
        expected = fx.modes(plant, settled).frequencies
        assert tracks.frequencies[k] == pytest.approx(expected, rel=1e-9)


def test_several_parameters_are_varied_together() -> None:
    plant = oscillator()
    tracks = fx.track_modes(plant, {"spring.stiffness": [8.0, 18.0], "cart.mass": [2.0, 8.0]})
    assert 2.0 * np.pi * tracks.frequencies[:, 0] == pytest.approx([2.0, 1.5], rel=1e-12)
    assert list(tracks.values) == ["spring.stiffness", "cart.mass"]


def test_oscillations_that_become_decays_end_or_go_on() -> None:
    plant = links(2, gravity=0.0)
    tracks = fx.track_modes(plant, {"spring0.damping": [0.01, 1.0, 20.0]})
    assert np.sum(tracks.numbers >= 0, axis=1).tolist() == [len(each) for each in tracks.modes]
    assert np.isnan(tracks.frequencies[0, 2:]).all()
    assert tracks[-1][0] is None


@for_each(
    ("values", "error", "text"),
    [
        ({}, fx.errors.ValueRefusedError, "a mapping from paths"),
        ([1.0], fx.errors.ValueRefusedError, "a mapping from paths"),
        ({"nothing": [1.0]}, fx.errors.UnknownNameError, "nothing"),
        ({"rail.translation": [1.0]}, fx.errors.UnknownNameError, "a numeric parameter"),
        ({"spring.stiffness": [1.0, -1.0]}, fx.errors.ValueRefusedError, "stiffness"),
        ({"spring.stiffness": [1.0, np.nan]}, fx.errors.ValueRefusedError, "stiffness"),
        ({"spring.stiffness": 1.0}, fx.errors.ValueRefusedError, r"shape \(\)"),
        (
            {"spring.stiffness": [1.0], "cart.mass": [1.0, 2.0]},
            fx.errors.ValueRefusedError,
            "arrays of one length",
        ),
    ],
)
def test_values_that_cannot_be_tracked_are_refused(
    values: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        fx.track_modes(oscillator(), values)


def test_no_values_have_no_modes() -> None:
    tracks = fx.track_modes(oscillator(), {"spring.stiffness": []})
    assert tracks.frequencies.shape == (0, 0)
    assert tracks.modes == ()


# Tables and pictures --------------------------------------------------------------------------


def test_tables_say_what_moves_and_where_the_energies_are() -> None:
    found = fx.modes(three_masses())
    table = found.table()
    assert table["mode"] == [0, 1, 2]
    assert table["frequency"] == found.frequencies.tolist()
    assert table["moves"] == [f"on_{name}.translation 100 %" for name in "abc"]
    assert table["time_constant"] == [None] * 3
    assert str(found) == str(table)
    energies = found.energy_table()
    first = energies.where(mode=0)
    assert first["path"] == ["a", "at_a"]
    assert first["kinetic_energy"] == [pytest.approx(1.0), None]
    assert first["strain_energy"] == [None, pytest.approx(1.0)]
    assert energies["dissipated_energy"] == [None] * 6
    tracks = fx.track_modes(three_masses(), {"at_a.stiffness": [1.0]})
    assert tracks.table().columns == ("at_a.stiffness", "track", *table.columns)


@pytest.mark.full
def test_pictures_show_every_mode_and_every_track(tmp_path: Path) -> None:
    found = fx.modes(three_masses())
    (upper,) = found.plot(path=tmp_path / "modes.png").axes  # nothing is damped
    heights = np.concatenate([line.get_ydata() for line in upper.lines])
    assert heights == pytest.approx(found.frequencies)
    assert (upper.get_ylabel(), upper.get_xlabel()) == ("natural frequency [Hz]", "mode")
    tracks = fx.track_modes(three_masses(), {"at_a.stiffness": [1.0, 2.0]})
    upper, lower = tracks.plot(path=tmp_path / "tracks.png").axes
    assert [
        np.asarray(line.get_ydata()).tolist() for line in upper.lines
    ] == tracks.frequencies.T.tolist()
    assert lower.get_xlabel() == "at_a.stiffness [N/m]"
    assert all((tmp_path / name).stat().st_size for name in ("modes.png", "tracks.png"))


def test_an_animated_plant_swings_along_the_shape(tmp_path: Path) -> None:
    plant = links(2, gravity=0.0)
    file = tmp_path / "mode.gif"
    fx.modes(plant).animate(1, path=file, fps=4)
    with Image.open(file) as movie:
        assert movie.n_frames == 8  # type: ignore[attr-defined]
        frames = []
        for k in (0, 2, 4):
            movie.seek(k)
            frames.append(np.asarray(movie.convert("L"), dtype=float))
    assert np.any(frames[0] != frames[1])
    assert np.any(frames[0] != frames[2])
    ax = fx.modes(plant).plot_mechanism(1)
    assert ax.get_title(loc="left").startswith("oscillation, ")


def test_what_cannot_be_animated_is_refused() -> None:
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    context = lag.create_default_context()
    context.set("u", 0.0)
    with pytest.raises(fx.errors.UnknownNameError, match="Cannot find the plant in 'lag'"):
        fx.modes(lag, context).animate(0)
    builder = fx.DiagramBuilder("both")
    builder.add_all(oscillator(), fx.FirstOrderLag("lag", time_constant=1e-3))
    builder.connect("oscillator.rail.translation", "lag.u")
    with pytest.raises(fx.errors.ValueRefusedError, match="in which it does not move"):
        fx.modes(builder.build()).animate(1)
    with pytest.raises(fx.errors.ValueRefusedError, match="one of 1 modes"):
        fx.modes(oscillator()).animate(3)
    with pytest.raises(fx.errors.DeclarationError, match=r"\.gif or \.html"):
        fx.modes(oscillator()).animate(0, path="mode.avi")
