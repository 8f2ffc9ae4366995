"""A spinning blade as one flexible body: how its spin stiffens it.

The blade is a strip of plate elements on a hub that turns at a prescribed rate. Centrifugal forces
stretch it, and its stress stiffens it. The frequencies of flapping are compared with those of
Wright, Smith, Thresher and Wang (Journal of Applied Mechanics 49 (1982) 197-202), and with an own
solution of the equation of a spinning beam by polynomials, which shares no code with the model. In
the plane in which it turns, the square of the spin is taken from that of the frequency.

Run it with ``python examples/flexures/spinning_blade.py``. It saves ``spinning_blade.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

import flexure as fx

STRIP = fx.Material(210e9, poissons_ratio=0.0, density=7850.0, name="steel without contraction")
LENGTH, WIDTH, THICKNESS = 0.3, 0.02, 0.002  # in m
CELLS, MODES = (40, 2), 3
#: Reference speed √(EI/ρA)/L² in rad/s, in multiples of which speeds and frequencies are given.
SPEED = float(np.sqrt(STRIP.youngs_modulus / STRIP.density / 12.0) * THICKNESS / LENGTH**2)
#: First frequency of flapping by the speed, from Wright et al.
WRIGHT = {0.0: 3.5160, 1.0: 3.6816, 2.0: 4.1373, 4.0: 5.5850, 6.0: 7.3604, 10.0: 11.2023}

FloatArray = npt.NDArray[np.float64]


def blade() -> fx.FlexibleBody:
    """Return the strip, with its root and its tip as interfaces."""
    mesh = fx.PlateMesh.rectangle(LENGTH, WIDTH, cells=CELLS)
    ends = {"root": "left", "tip": "right"}
    return fx.FlexibleBody.from_plate("blade", mesh, THICKNESS, STRIP, ends, modes=MODES)


def rotor(*, flapping: bool = True) -> fx.Plant:
    """Put the blade on a hub, of which it flaps along the axis, or bends in the plane it turns."""
    builder = fx.PlantBuilder("rotor", gravity=(0.0, 0.0, 0.0))
    body = blade()
    builder.add_assembly(body)
    axis = (0, 0, 1) if flapping else (0, 1, 0)
    hub = fx.RevoluteJoint("hub", builder.world, body.interfaces["root"], axis=axis)
    builder.add_constraint(fx.constraints.PrescribedMotion("drive", builder.add_joint(hub)))
    return builder.build()


def build(speed: float = SPEED) -> tuple[fx.Diagram, fx.Context]:
    """Turn the rotor at a constant speed."""
    builder = fx.DiagramBuilder("turning")
    builder.add(rotor())
    builder.add(fx.TimeFunction("turn", lambda t: [speed * t, speed, 0.0], size=3))
    builder.connect("turn.y", "rotor.drive")
    turning = builder.build()
    context = turning.create_default_context()
    context.set("rotor.hub.rate", speed)
    return turning, context


def spinning(plant: fx.Plant, speed: float) -> FloatArray:
    """Return the stiffness matrix at the relative equilibrium of a speed."""
    context = plant.create_default_context()
    context.set("drive", [0.0, speed, 0.0])
    context.set("hub.rate", speed)
    element: Any = plant.get_system("blade")
    M, K = element.body.mass_matrix, element.body.stiffness
    tip, modes = plant.joint("blade_tip"), plant.joint("blade_modes")
    middle = tip.positions(context)[4:]

    def force(x: FloatArray) -> FloatArray:
        tip.positions.set(context, np.concatenate([[1.0], 0.5 * x[:3], middle + x[3:6]]))
        modes.positions.set(context, x[6:])
        return np.asarray(M @ plant.calc_vdot(context)[1:])

    x = np.zeros(len(K))
    for _ in range(4):
        x = x + np.linalg.solve(K, force(x))
    steps = np.diag(1e-6 / np.sqrt(np.diagonal(K)))
    there = [(force(x - d) - force(x + d)) / (2.0 * d.sum()) for d in steps]
    return np.stack(there, axis=1)


def by_hand(ratio: float, terms: int = 8) -> float:
    """Return the first frequency of flapping, by polynomials s², s³ and so on along the blade."""
    s, weights = np.polynomial.legendre.leggauss(40)
    s, weights = 0.5 * (s + 1.0), 0.5 * weights
    n = np.arange(2, terms + 2)[:, np.newaxis]
    w, slope, bent = s**n, n * s ** (n - 1), n * (n - 1) * s ** (n - 2)
    tension = 0.5 * ratio**2 * (1.0 - s**2)
    K = (bent * weights) @ bent.T + (slope * weights * tension) @ slope.T
    return float(np.sqrt(eigh(K, (w * weights) @ w.T, eigvals_only=True)[0]))


def main() -> None:
    """Compare the frequencies over the speed, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    found: dict[str, list[float]] = {"flapping": [], "in the plane": []}
    for name, frequencies in found.items():
        plant = rotor(flapping=name == "flapping")
        element: Any = plant.get_system("blade")
        for ratio in WRIGHT:
            K = spinning(plant, ratio * SPEED)
            squares = eigh(0.5 * (K + K.T), element.body.mass_matrix, eigvals_only=True)
            frequencies.append(float(np.sqrt(squares[0])) / SPEED)
    by_ratio = {ratio: by_hand(ratio) for ratio in WRIGHT}
    for (ratio, paper), flap, lag in zip(WRIGHT.items(), *found.values(), strict=True):
        print(
            f"speed {ratio:4.1f}: flapping {flap:7.4f}, Wright et al. {paper:7.4f}, by polynomials "
            f"{by_ratio[ratio]:7.4f}; in the plane {lag:7.4f}"
        )
    slope = found["flapping"][1] ** 2 - found["flapping"][0] ** 2
    print(f"Southwell's coefficient {slope:.3f}")
    draw(found, by_ratio, folder / "spinning_blade.png")

    flaps, papers = np.array(found["flapping"]), np.array(list(WRIGHT.values()))
    assert np.abs(flaps / papers - 1.0).max() < 2e-3, "not the frequencies of Wright et al."
    assert np.abs(flaps / list(by_ratio.values()) - 1.0).max() < 2e-3, "not those of polynomials"
    lags = np.sqrt(np.array(found["in the plane"]) ** 2 + np.array(list(WRIGHT)) ** 2)
    assert np.abs(lags / flaps - 1.0).max() < 2e-3, "the spin takes another square of itself"


def draw(found: dict[str, list[float]], by_ratio: dict[float, float], file: Path) -> None:
    """Save the frequencies over the speed."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.0, 4.5), layout="constrained")
    speeds = list(WRIGHT)
    for (name, frequencies), mark in zip(found.items(), ("o", "s"), strict=True):
        ax.plot(speeds, frequencies, mark, label=f"plate on a hub, {name}")
    fine = np.linspace(0.0, 10.0, 41)
    ax.plot(fine, [by_hand(float(each)) for each in fine], label="beam by polynomials, flapping")
    ax.plot(speeds, list(WRIGHT.values()), "k+", markersize=12, label="Wright et al. (1982)")
    ax.plot(fine, fine, "--", color="#999999", label="the speed itself")
    ax.set(xlabel="speed over the reference speed", ylabel="frequency over the reference speed")
    ax.legend(frameon=False)
    ax.grid(True, color="#dddddd")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
