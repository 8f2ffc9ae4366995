"""Loops in MuJoCo, whose constraints give way the less, the shorter a time constant is."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.loops.random_loops import Array, Loop
from benchmarks.versus.sides import Contender, MissingPeerError, seconds

#: The stiffest impedance that MuJoCo takes.
_IMPEDANCE = "0.9999 0.9999 0.001 0.5 2"


def module() -> Any:
    """Return MuJoCo, or raise the house's error where it is missing."""
    try:
        return importlib.import_module("mujoco")
    except ImportError as error:
        raise MissingPeerError(
            "mujoco is not installed (pip install mujoco): no comparison with it"
        ) from error


def _text(numbers: Any) -> str:
    return " ".join(repr(float(number)) for number in numbers)


def xml(loop: Loop, time_constant: float, step: float, tolerance: float) -> str:
    """Return a loop as MJCF."""
    softness = f'solref="{time_constant!r} 1" solimp="{_IMPEDANCE}"'

    def place(which: int | None) -> Array:
        return np.zeros(3) if which is None else loop.bars[which].position

    def name(which: int | None) -> str:
        return "world" if which is None else f"bar{which}"

    sites: dict[int | None, list[str]] = {}
    equalities, tendons = [], []
    for k, closing in enumerate(loop.closings):
        (a, b), (p, q) = closing.bodies, closing.anchors
        pair = f'body1="{name(b)}" body2="{name(a)}"'
        if closing.kind == "ball":
            at = _text(q - place(b))
            equalities.append(f'<connect {pair} anchor="{at}" {softness}/>')
        elif closing.kind == "weld":
            at = _text(q - place(a))
            equalities.append(f'<weld {pair} anchor="{at}" {softness}/>')
        else:
            for end, which, point in (("p", a, p), ("q", b, q)):
                text = f'<site name="{end}{k}" pos="{_text(point - place(which))}"/>'
                sites.setdefault(which, []).append(text)
            tendons.append(
                f'<spatial name="rod{k}"><site site="p{k}"/><site site="q{k}"/></spatial>'
            )
            equalities.append(f'<tendon tendon1="rod{k}" polycoef="0 0 0 0 0" {softness}/>')
    for k, spring in enumerate(loop.springs):
        for end, on, point in zip("st", (None, spring.body), spring.anchors, strict=True):
            text = f'<site name="{end}{k}" pos="{_text(point - place(on))}"/>'
            sites.setdefault(on, []).append(text)
        tendons.append(
            f'<spatial springlength="{spring.free_length!r}" stiffness="{spring.stiffness!r}">'
            f'<site site="s{k}"/><site site="t{k}"/></spatial>'
        )

    def body(k: int) -> str:
        bar, hinge = loop.bars[k], loop.hinges[k]
        kind = {"revolute": "hinge", "prismatic": "slide", "ball": "ball"}[hinge.kind]
        axis = "" if hinge.axis is None else f'axis="{_text(hinge.axis)}"'
        inside = "".join(body(each.child) for each in loop.hinges if each.parent == k)
        return (
            f'<body name="bar{k}" pos="{_text(bar.position - place(hinge.parent))}">'
            f'<inertial pos="0 0 0" mass="{bar.mass!r}" diaginertia="{_text(bar.moments)}"/>'
            f'<joint name="joint{k}" type="{kind}" '
            f'pos="{_text(hinge.anchor - bar.position)}" {axis}/>'
            f"{''.join(sites.get(k, []))}{inside}</body>"
        )

    trees = "".join(body(each.child) for each in loop.hinges if each.parent is None)
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="{_text(loop.gravity)}" '
        f'timestep="{step!r}" integrator="RK4" solver="Newton" iterations="100" '
        f'tolerance="{tolerance!r}">'
        '<flag refsafe="disable" contact="disable"/></option>'
        f"<worldbody>{''.join(sites.get(None, []))}{trees}</worldbody>"
        f"<tendon>{''.join(tendons)}</tendon><equality>{''.join(equalities)}</equality></mujoco>"
    )


def prepared(
    loop: Loop,
    rates: Sequence[Sequence[float]],
    time_constant: float,
    step: float,
    tolerance: float = 0.0,
) -> tuple[Any, Any]:
    """Return a model and its data at the beginning; the tolerance is that of its solver."""
    mujoco = module()
    model = mujoco.MjModel.from_xml_string(xml(loop, time_constant, step, tolerance))
    data = mujoco.MjData(model)
    for k, rate in enumerate(rates):
        start = model.jnt_dofadr[model.joint(f"joint{k}").id]
        data.qvel[start : start + len(rate)] = rate
    return model, data


def positions(
    loop: Loop, rates: Sequence[Sequence[float]], times: Array, time_constant: float, step: float
) -> Array:
    """Return where all bars are at equidistant times."""
    mujoco = module()
    model, data = prepared(loop, rates, time_constant, step)
    found = []
    for time in times:
        mujoco.mj_step(model, data, nstep=round((time - data.time) / step))
        mujoco.mj_kinematics(model, data)
        found.append([data.body(f"bar{k}").xpos.copy() for k in range(len(loop.bars))])
    return np.array(found)


def contender(loop: Loop, horizon: float, opening: float) -> Contender:
    """Return MuJoCo with its fastest steps at which no loop opens by more than a limit, in m."""
    mujoco = module()

    def widest(steps: int, share: float) -> float:
        model, data = start(steps, share)
        found = 0.0
        for _ in range(steps):
            mujoco.mj_step(model, data)
            found = max(found, float(np.abs(data.efc_pos[: data.ne]).max()))
            if not found <= opening:
                return float("inf")
        return found

    def start(steps: int, share: float) -> tuple[Any, Any]:
        step = horizon / steps
        model, data = prepared(loop, [[0.0]] * len(loop.hinges), share * step, step, 1e-8)
        data.qfrc_applied[model.jnt_dofadr[model.joint("joint0").id]] = loop.drive
        return model, data

    def made(steps: int, share: float, opened: float) -> Contender:
        def run() -> float:
            model, data = start(steps, share)
            return seconds(lambda: mujoco.mj_step(model, data, nstep=steps))

        setting = f"RK4, {steps} steps, time constant of {share:g} steps"
        return Contender("MuJoCo", run, opened, setting, "which is how far loops open in m")

    for steps in np.rint(64 * 2.0 ** np.arange(0.0, 12.0, 0.5)).astype(int).tolist():
        for share in (2.0, 4.0, 8.0):
            if (opened := widest(steps, share)) <= opening:
                return made(steps, share, opened)
    raise MissingPeerError(f"MuJoCo does not keep the loops of '{loop.name}' within {opening:g} m")
