"""A working call of live runs and of their methods."""

from __future__ import annotations

from typing import Any

import numpy as np

import flexure as fx
from tests.support.calls.odd_arguments import Call
from tests.support.calls.public_calls import Make, lag, of_lag, whole


def made(name: str, **arguments: Any) -> Make:
    """A method of a run that has run for a while."""

    def make() -> Call:
        system, context = lag()
        live = fx.live(system, context=context, rate="max", signals="lag.y", period=0.01)
        live.run(0.05)
        return Call(getattr(live, name), arguments, lambda: None)

    return make


def ending() -> Call:
    """A run of a diagram that ends it, for however long it is asked."""
    builder = fx.DiagramBuilder("watched")
    builder.add_all(fx.TimeFunction("ramp", lambda t: t - 0.02), fx.StopWhen("far", "it is far"))
    builder.connect("ramp.y", "far.u")
    live = fx.live(builder.build(), rate="max")
    return Call(live.run, {"duration": 0.01}, lambda: None)


def served() -> Call:
    """A page that is closed at once."""
    live = fx.live(lag()[0], rate="max")
    return Call(lambda port: live.page(port).close(), {"port": 0}, lambda: None)


def plotted() -> Call:
    report = fx.live(lag()[0], rate="max", period=0.01).run(0.05)
    return Call(report.plot, {"ax": None, "path": "live.png"}, lambda: None)


def live_calls() -> dict[str, Make]:
    """The calls by their names."""
    return {
        "live": of_lag(
            fx.live,
            rate="max",
            period=0.01,
            inputs={"lag.time_constant": np.sqrt},
            outputs={"lag.y": np.maximum},
            software={},
            signals=["lag.y"],
            timeout=1.0,
            safe={"lag.y": 0.0},
            record="live.npz",
            parameters=["lag.time_constant"],
            max_record=1e6,
            method="RK45",
            rtol=1e-3,
            atol=1e-6,
        ),
        "widget": of_lag(
            fx.widget,
            t_final=0.1,
            parameters=["lag.time_constant"],
            signals=["lag.y"],
            method="RK45",
            rtol=1e-3,
            atol=1e-6,
            num_samples=20,
        ),
        "UDP": whole(fx.UDP, port=5005, host="127.0.0.1", format="<d"),
        "Serial": whole(fx.Serial, port="/dev/null", baudrate=9600, format="<d", start=b"a"),
        "CAN": whole(fx.CAN, identifier=1, channel="can0", interface="virtual", format="<d"),
        "Live.set": made("set", path="lag.time_constant", value=2.0),
        "Live.step": made("step", num_steps=1),
        "Live.rewind": made("rewind", time=0.02),
        "Live.save": made("save", path="live.npz"),
        "Live.__getitem__": made("__getitem__", signal="lag.y"),
        "Live.run": ending,
        "Live.page": served,
        "LiveReport.plot": plotted,
    }
