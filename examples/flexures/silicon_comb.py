"""A comb drive on folded silicon leaves: stroke, sideways pull-in, resonance, thermal drift.

Fingers of a comb pull a shuttle along y, on eight leaves of silicon that are etched along <110>.
The same fingers pull it sideways once it is off the middle of their gaps, and the leaves hold it
less and less there, so that it snaps in at a stroke of about the root of L g.

- R. Legtenberg, A. W. Groeneveld and M. Elwenspoek (J. Micromech. Microeng. 6 (1996) 320-329) have
  the sideways stiffness 200 EI/(3 L y²) at the stroke y, from which pull-in follows by hand.
- M. Olfatnia, S. Sood, J. J. Gorman and S. Awtar (J. Microelectromech. Syst. 22 (2013) 483-494)
  measured a stroke of 50 um with leaves of 1 mm and gaps of 3 um, the dimensions here.
- W. C. Tang, T.-C. H. Nguyen, M. W. Judy and R. T. Howe (Sensors and Actuators A 21 (1990) 328-331)
  have the resonance, which drifts by about -30e-6 per kelvin, as the modulus of silicon does.

On glass instead of silicon, the anchors of the leaves move away from the shuttle when it gets warm.
Half of the leaves are pulled and the others pushed, so that the resonance falls much more.

Run it with ``python examples/flexures/silicon_comb.py``. It saves ``silicon_comb.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import flexure as fx

SILICON = fx.Material.silicon((1, 1, 0), width=(0, 0, 1))
ALPHA, ALPHA_GLASS = 2.6e-6, 3.25e-6  # expansion in 1/K, of borosilicate glass for the latter
LENGTH, THICKNESS, HEIGHT = 1e-3, 3e-6, 50e-6  # of the leaves
GAP, OVERLAP, FINGERS = 3e-6, 5e-6, 100  # gap on both sides, overlap at rest, and number
VACUUM = 8.8541878e-12  # permittivity in F/m
PLATE, TRUSS = (8e-4, 6e-4, HEIGHT), (4e-5, 5e-4, HEIGHT)
WARMER = 30.0  # in K

FloatArray = npt.NDArray[np.float64]


class CombDrive(fx.multibody.BodyForceElement):
    """Fingers on a body between those on another one, with a voltage.

    With the number n of fingers, their height h, the gap g, the overlap b + y at the stroke y and
    the shift x across, C = 2 n ε h (b + y) g/(g² - x²) pulls by ½ V² ∂C/∂y and ½ V² ∂C/∂x.
    """

    def __init__(self, name: str, fixed: fx.Body, moving: fx.Body) -> None:
        voltage = {"voltage": {"unit": "V"}}
        super().__init__(name, {"A": fixed, "C": moving}, dissipates=False, drives=voltage)
        self.gap = self.declare_numeric_parameter("gap", GAP, unit="m")

    def _pull(self, context: Any) -> tuple[Any, Any]:
        """Return the energy -½ C V², and the force."""
        x, y, _ = self.attachments[1].pose_of_frame(context).p
        (voltage,), g = self.drive_ports[0](context), self.gap(context)
        scale = FINGERS * VACUUM * HEIGHT * g * voltage**2
        room = g * g - x * x
        sideways = 2.0 * scale * (OVERLAP + y) * x / room**2
        return -scale * (OVERLAP + y) / room, np.stack([sideways, scale / room, 0.0 * x])

    def calc_spatial_forces(self, context: Any) -> list[Any]:
        """Return the forces on both bodies, without the moment of fingers that are turned."""
        _, force = self._pull(context)
        moving = self.attachments[1].at_rest(context)
        on_moving = moving.force_on_body(np.concatenate([np.zeros(3), force]))
        return [-on_moving, on_moving]

    def calc_stored_energy(self, context: Any) -> Any:
        """Return the energy of the field and of the source that holds the voltage, in J."""
        return self._pull(context)[0]

    def calc_conservative_power(self, context: Any) -> Any:
        """Return the power of the forces in W."""
        return self._pull(context)[1] @ self.attachments[1].motion(context).V_WF[3:]

    def calc_non_conservative_power(self, context: Any) -> Any:
        """Return zero: the voltage is held."""
        return 0.0


def plate(size: tuple[float, float, float]) -> fx.SpatialInertia:
    """Return a plate of silicon."""
    return fx.SpatialInertia.solid_box(SILICON.density * float(np.prod(size)), size=size)


def build(wafer: float = ALPHA) -> fx.Plant:
    """Hang a shuttle with fingers on a compound guide, over a wafer that expands."""
    builder = fx.PlantBuilder("comb", gravity=(0.0, 0.0, 0.0))
    shuttle = builder.add_body("shuttle", plate(PLATE))
    builder.world.add_thermal_expansion(wafer)
    shuttle.add_thermal_expansion(ALPHA)
    guide = fx.CompoundGuide(
        "guide",
        builder.world,
        shuttle,
        root_distance=PLATE[0],
        outer_distance=4e-4,
        inner_distance=2e-4,
        shuttle=plate(TRUSS).shifted((LENGTH + 0.5 * TRUSS[0], 0.0, 0.0)),
        length=LENGTH,
        width=HEIGHT,
        thickness=THICKNESS,
        material=SILICON,
        shear=False,
        reference_temperature=SILICON.temperature,
    )
    builder.add_assembly(guide)
    builder.add_force_element(CombDrive("drive", builder.world, shuttle))
    return builder.build()


def pull_in_by_hand(stiffness: float) -> tuple[float, float]:
    """Return stroke and voltage at which the fingers pull as the leaves hold sideways.

    Of both, over n ε h V²/g = k y: 2 k y (b + y)/g² and 200 EI/(3 L y²) = 25 k L²/(9 y²).
    """
    roots = np.roots([1.0, OVERLAP, 0.0, 0.0, -25.0 / 18.0 * (LENGTH * GAP) ** 2])
    stroke = float(np.max(roots[np.abs(roots.imag) < 1e-9].real))
    return stroke, float(np.sqrt(stiffness * stroke * GAP / (FINGERS * VACUUM * HEIGHT)))


def glass_by_hand() -> float:
    """Return the resonance on glass when warm over that before, of leaves that are beam columns.

    The shift of an anchor strains two leaves in a row. The outer one is pushed, so that the truss
    between them moves by more than half of the stroke.
    """
    shift = 0.5 * PLATE[0] * (ALPHA_GLASS - ALPHA) * WARMER
    force = 0.5 * SILICON.youngs_modulus * THICKNESS * HEIGHT * shift / LENGTH
    half = 0.5 * LENGTH * np.sqrt(force / (SILICON.youngs_modulus * HEIGHT * THICKNESS**3 / 12.0))
    pushed, pulled = np.tan(half) / half - 1.0, 1.0 - np.tanh(half) / half
    softer = 1.5 * (pushed + pulled) / half**2
    heavier = moving(pushed / (pushed + pulled)) / moving(0.5)
    return float(1.0 / np.sqrt(softer * heavier))


def moving(part: float) -> float:
    """Return the mass of the resonance, by Rayleigh, where the trusses move by a part of it."""
    outer, left = 13.0 / 35.0 * part**2, 1.0 - part
    inner = part**2 + part * left + 13.0 / 35.0 * left**2
    leaves = 4.0 * SILICON.density * LENGTH * THICKNESS * HEIGHT * (outer + inner)
    return plate(PLATE).mass + 2.0 * part**2 * plate(TRUSS).mass + leaves


def frequency(comb: fx.Plant, change: float) -> float:
    """Return the resonance in Hz of a comb that is warmer."""
    context = comb.create_default_context()
    leaves = [each.name for each in comb.force_elements if isinstance(each, fx.LeafSpring)]
    for name in [*leaves, "world", "shuttle"]:
        context.set(f"{name}.temperature", SILICON.temperature + change)
    context = fx.equilibrium(comb, context, tolerance=1e-12).context
    return float(fx.modes(comb, context).frequencies[0])


def main() -> None:
    """Compare stiffness, pull-in, resonance and drift with papers, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    comb, on_glass = build(), build(ALPHA_GLASS)

    stiffness = 2.0 * SILICON.youngs_modulus * HEIGHT * (THICKNESS / LENGTH) ** 3
    stroke, volts = pull_in_by_hand(stiffness)
    path = fx.load_path(comb, {"drive.voltage": np.linspace(0.0, 1.1 * volts, 12)})
    at = float(np.ravel(path.branch_points[0].values["drive.voltage"])[0])
    voltages, strokes = np.ravel(path["drive.voltage"]), path["shuttle.position"][:, 1]
    found = float(np.interp(at, voltages, strokes))
    print(f"pull-in at {1e6 * found:.1f} um and {at:.2f} V,")
    print(f"by hand at {1e6 * stroke:.1f} um and {volts:.2f} V; measured at 50 um")

    first = frequency(comb, 0.0)
    beams = 8.0 * SILICON.density * LENGTH * THICKNESS * HEIGHT
    moved = plate(PLATE).mass + 0.25 * 2.0 * plate(TRUSS).mass + 0.3714 * beams
    tang = np.sqrt(stiffness / moved) / (2.0 * np.pi)
    print(f"resonance at {first:.1f} Hz, formula of Tang et al. {tang:.1f} Hz")

    drift, ratio = (frequency(comb, WARMER) / first - 1.0) / WARMER, glass_by_hand()
    fallen = frequency(on_glass, WARMER) / first
    print(f"drift {1e6 * drift:.1f}e-6/K; {WARMER:.0f} K warmer on glass, the resonance is")
    print(f"{fallen:.4f} of what it was, by hand {ratio:.4f}")
    draw(comb, path, (at, found), folder / "silicon_comb.png")

    slope = np.gradient(voltages**2, strokes)[1] * FINGERS * VACUUM * HEIGHT / GAP
    assert abs(slope / stiffness - 1.0) < 1e-2, "the stiffness is not that of folded leaves"
    assert abs(at / volts - 1.0) < 1e-2, "pull-in at another voltage than by hand"
    assert abs(found / stroke - 1.0) < 1e-2, "pull-in at another stroke than by hand"
    assert abs(found / 50e-6 - 1.0) < 0.2, "pull-in far from what was measured"
    assert abs(first / tang - 1.0) < 5e-3, "the resonance is not that of the formula"
    assert abs(drift + 31e-6) < 5e-6, "the resonance drifts otherwise"
    assert abs(fallen / ratio - 1.0) < 1e-2, "glass strains the leaves otherwise"


def draw(
    comb: fx.Plant,
    path: fx.results.LoadPath,
    pull_in: tuple[float, float],
    file: Path,
) -> None:
    """Save the bent comb, and its stroke over the voltage."""
    import matplotlib.pyplot as plt

    figure, (picture, chart) = plt.subplots(1, 2, figsize=(10.0, 4.5), layout="constrained")
    last = int(np.argmax(path.num_unstable > 0)) - 1
    fx.plot_mechanism(comb, path.context(last), view="xy", stress=True, ax=picture)
    volts, strokes = np.ravel(path["drive.voltage"]), 1e6 * path["shuttle.position"][:, 1]
    stable = path.num_unstable == 0
    chart.plot(volts[stable], strokes[stable])
    chart.plot(volts[~stable], strokes[~stable], ":", color="C0")
    chart.plot(pull_in[0], 1e6 * pull_in[1], "o", color="C1")
    chart.text(pull_in[0] - 1.0, 1e6 * pull_in[1], "sideways pull-in", ha="right")
    chart.set(xlabel="voltage in V", ylabel="stroke in um")
    chart.grid(True, color="#dddddd")
    chart.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
