"""Piezo stacks: datasheet values, the loss of cycles by an own integration, energies, readings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import flexure as fx
from flexure.errors import FlexureError
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import FULL, by_tier

STACK: dict[str, Any] = {"free_length": 0.02, "blocking_force": 800.0, "free_stroke": 2e-5}
SLIPPING: dict[str, Any] = {"hysteresis_force": 200.0, "hysteresis_stroke": 1e-5}


def driven(source: Any, **options: Any) -> fx.Diagram:
    """Return a block that a stack pushes along x, with the drive of a source and a ledger."""
    builder = fx.PlantBuilder("plant", gravity=(0.0, 0.0, 0.0))
    block = builder.add_body("block", fx.SpatialInertia.point_mass(1.0))
    builder.add_joint(fx.PrismaticJoint("slide", builder.world, block, axis=(1, 0, 0)))
    ends: Any = (builder.world, (-0.02, 0.0, 0.0), block, (0.0, 0.0, 0.0))
    made: Any = fx.PiezoStack
    builder.add_force_element(made("stack", *ends, **STACK, **options))
    builder.add_energy_ledger()
    diagram = fx.DiagramBuilder("drive")
    diagram.add_all(builder.build(), source)
    diagram.connect(f"{source.name}.y", "plant.stack.drive")
    return diagram.build()


def test_a_stack_has_the_stroke_and_the_force_of_its_datasheet() -> None:
    for options in ({}, SLIPPING):
        system = driven(fx.Ramp("u", slope=200.0), damping=3000.0, **options)
        result = fx.simulate(system, 0.5)
        assert result["plant.stack.elongation"][-1] == pytest.approx(2e-5, rel=2e-3)
    stack = fx.PiezoStack("stack", fx.Body("a"), np.zeros(3), fx.Body("b"), np.zeros(3), **STACK)
    context = stack.create_default_context()
    for end, x in zip(stack.attachments, (0.0, 0.02), strict=True):
        assert end.pose is not None
        assert end.velocity is not None
        end.pose.fix(context, [*np.eye(3).ravel(), x, 0.0, 0.0])
        end.velocity.fix(context, np.zeros(6))
    stack.drive.fix(context, [50.0])
    assert stack.force.eval(context) == pytest.approx(400.0)


@needs_llvmlite
def test_cycles_lose_what_an_own_integration_says_and_energies_balance() -> None:
    k = (800.0 - 200.0 * 2e-5 / 3e-5) / 2e-5
    for volts in by_tier(fast=[30.0], full=[30.0, 100.0]):
        frequency, c = 100.0, 3000.0
        source = fx.Sine("u", amplitude=volts, frequency=2.0 * np.pi * frequency)
        system = driven(source, damping=c, **SLIPPING)
        times = np.linspace(1.0 / frequency, 2.0 / frequency, 801)
        lost: dict[bool, float] = {}
        for mode in (True, False) if FULL and volts == 30.0 else (True,):
            result = fx.simulate(system, times[-1], compiled=mode, rtol=1e-7)
            moved = np.ravel(result["plant.stack.elongation"])
            x = np.interp(times, result.time, moved)
            u = volts * np.sin(2.0 * np.pi * frequency * times)
            lost[mode] = 8.0 * float(np.trapezoid(u, x))
            assert np.ptp(result["plant.ledger.balance"]) < 1e-4 * lost[mode]

        def slopes(t: float, y: Any, volts: float = volts) -> list[float]:
            x, v, slip = y
            a = np.clip((x - slip) / 1e-5, -1.0, 1.0)
            push = 8.0 * volts * np.sin(2.0 * np.pi * 100.0 * t)
            gone = (1.0 - a) ** 2 if v > 0.0 else (1.0 + a) ** 2
            return [v, push - k * x - 3000.0 * v - 200.0 * a, v * (1.0 - gone)]

        own = solve_ivp(
            slopes, (0.0, times[-1]), np.zeros(3), "LSODA", times, rtol=1e-8, atol=1e-14
        ).y
        push = 8.0 * volts * np.sin(2.0 * np.pi * frequency * times)
        expected = np.trapezoid(push, own[0])
        assert lost[True] == pytest.approx(expected, rel=1e-3)
        assert lost.get(False, expected) == pytest.approx(expected, rel=1e-3)
        # Of slow cycles between ±X, and the damper's part.
        X, h = 0.5 * float(np.ptp(own[0])), 1e-5
        alpha = (np.sqrt(1.0 + 4.0 * (X / h) ** 2) - 1.0) * h / (2.0 * X)
        friction = 400.0 * (2.0 * X - h * np.log((1.0 + alpha) / (1.0 - alpha)))
        damper = np.pi * c * 2.0 * np.pi * frequency * X**2
        assert expected == pytest.approx(friction + damper, rel=5e-2)


def test_wrong_constants_are_refused() -> None:
    ends = fx.Body("a"), np.zeros(3), fx.Body("b"), np.zeros(3)
    for wrong, name in (
        ({"free_stroke": 0.0}, "free_stroke"),
        ({"hysteresis_force": 900.0}, "hysteresis_force"),
        ({"hysteresis_force": -1.0}, "hysteresis_force"),
        ({"drive_unit": "A"}, "drive_unit"),
        ({"full_drive": np.nan}, "full_drive"),
    ):
        with pytest.raises(FlexureError, match=name):
            fx.PiezoStack("stack", *ends, **(STACK | wrong))
