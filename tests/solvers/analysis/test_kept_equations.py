"""Linear models of one system again and again: each as if it were the first."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError
from flexure.solvers.tracing import compile_limits
from tests.support.mechanics.mechanics import Pendulum, servo

QUESTIONS: dict[str, Callable[[fx.Diagram, fx.Context], Any]] = {
    "the loop gain": lambda d, c: fx.loop_gain(d, "pid.u", context=c),
    "the loop gain elsewhere": lambda d, c: fx.loop_gain(d, "pendulum.angle", context=c),
    "the sensitivity": lambda d, c: fx.sensitivity_function(d, "pid.u", context=c),
    "two openings": lambda d, c: fx.linearize(
        d, c, ["pid.u", "wave.y"], ["pendulum.position"], openings=["pid.u", "pid.measurement"]
    ),
    "a parameter": lambda d, c: fx.linearize(d, c, ["pid.kp"], ["pendulum.position"]),
    "another parameter": lambda d, c: fx.linearize(d, c, ["pendulum.mass"], ["pid.u"]),
    "from sample to sample": lambda d, c: fx.linearize(d, c, ["pid.u"], ["hold.y"], period=0.1),
    "twice as far": lambda d, c: fx.linearize(d, c, ["pid.u"], ["hold.y"], period=0.2),
}
SAMPLED = ("from sample to sample", "twice as far")


def numbers(model: fx.LinearModel) -> list[bytes]:
    assert model.how == "exact derivatives"
    whole = (model.A, model.B, model.C, model.D, model.x0, model.u0, model.y0, model.xdot0)
    return [np.asarray(each).tobytes() for each in whole]


def asked(question: str) -> fx.Diagram:
    """A servo with a moving target and, where it is to be sampled, a hold beside the loop."""
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Sine("wave", amplitude=0.5, frequency=2.0),
        fx.PIDController("pid", 60.0, 20.0, 12.0, derivative_filter=0.01),
        Pendulum(),
    )
    builder.connect_chain("wave", "pid.setpoint")
    builder.connect("pid.u", "pendulum.torque")
    builder.connect_chain("pendulum.angle", "pid.measurement")
    if question in SAMPLED:
        builder.add(fx.ZeroOrderHold("hold", 0.1))
        builder.connect_chain("pendulum.angle", "hold")
    return builder.build()


def ask(question: str, system: fx.Diagram, values: dict[str, Any], time: float) -> Any:
    context = system.create_default_context()
    context.time = time
    for path, value in values.items():
        context.set(path, value)
    return numbers(QUESTIONS[question](system, context))


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "pid.kp": st.sampled_from([0.0, 60.0, 70.0]),
        "pendulum.mass": st.sampled_from([1.0, 2.5]),
        "pendulum.x": st.sampled_from([[0.0, 0.0], [0.3, -0.1]]),
        "wave.amplitude": st.sampled_from([0.0, 1.0]),
    },
)
ASKED_AGAIN = {sampled: asked(SAMPLED[0] if sampled else "") for sampled in (False, True)}


@settings(max_examples=20, deadline=None)
@given(question=st.sampled_from(sorted(QUESTIONS)), values=VALUES, time=st.sampled_from([0.0, 0.3]))
def test_whatever_was_asked_before_the_answer_is_that_of_a_new_system(
    question: str, values: dict[str, Any], time: float
) -> None:
    system = ASKED_AGAIN[question in SAMPLED]
    known = ask(question, system, values, time)
    assert known == ask(question, system, values, time)
    assert known == ask(question, asked(question), values, time)


# What is done once -------------------------------------------------------------------------------


class Watched(Pendulum):
    """A pendulum that tells how often its equations run on symbols."""

    traced = 0

    def calc_time_derivatives(self, context: Any) -> Any:
        Watched.traced += scalars.is_symbolic(context.time)
        return super().calc_time_derivatives(context)


def watched() -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.Gain("gain", -4.0), Watched())
    builder.connect_chain("gain", "pendulum.torque")
    builder.connect("pendulum.angle", "gain.u")
    return builder.build()


AGAIN: dict[str, Callable[[fx.Diagram, fx.Context], Any]] = {
    "linearize": lambda d, c: fx.linearize(d, c, ["gain.u"], ["gain.y"]),
    "linearize with an opening": lambda d, c: fx.loop_gain(d, "gain.y", context=c),
    "linearize sampled": lambda d, c: fx.linearize(d, c, ["gain.u"], ["gain.y"], period=0.1),
    "equilibrium": fx.equilibrium,
    "modes": fx.modes,
    "sensitivity": lambda d, c: fx.parameter_sensitivity(d, ["gain.gain"], 0.01, context=c),
}


@pytest.mark.parametrize("what", AGAIN)
def test_who_asks_again_traces_nothing(what: str) -> None:
    diagram = watched()
    AGAIN[what](diagram, diagram.create_default_context())
    before = Watched.traced
    assert before
    context = diagram.create_default_context()
    context.set("gain.gain", -5.0)
    AGAIN[what](diagram, context)
    assert Watched.traced == before


def test_a_locus_traces_as_often_as_one_point_of_it() -> None:
    before = Watched.traced
    fx.track_modes(watched(), {"gain.gain": [-4.0, -4.5]})
    two = Watched.traced - before
    fx.track_modes(watched(), {"gain.gain": np.linspace(-4.0, -9.0, 9)})
    assert Watched.traced - before == 2 * two > 0


# What is not pure --------------------------------------------------------------------------------


class Odd(fx.LeafSystem):
    """ẋ = -k x, with k from somewhere that no context knows; all the same at x = 0."""

    shared = 3.0

    def __init__(self, where: str) -> None:
        super().__init__("odd")
        self.where = where
        self.number = 3.0
        self.array = np.array([1.0, 3.0])
        self.items = [{"k": [3.0]}]
        self.settings = found = Settings()
        self.closure: Callable[[], float] = lambda: found.k
        self.method = found.read
        self.state = self.declare_continuous_state(z=1, default=0.0)

    def calc_time_derivatives(self, context: Any) -> Any:
        k = {
            "number": self.number,
            "array": self.array[1],
            "items": self.items[0]["k"][0],
            "settings": self.settings.k,
            "slot": self.settings.slot,
            "closure": self.closure(),
            "method": self.method(),
            "class": self.shared,
        }[self.where]
        return -k * self.state(context)


class Slotted:
    __slots__ = ("slot",)


class Settings(Slotted):
    def __init__(self) -> None:
        self.k = self.slot = 3.0

    def read(self) -> float:
        return self.k


def change(block: Odd, k: float) -> None:
    block.number = block.array[1] = block.items[0]["k"][0] = k
    block.settings.k = block.settings.slot = k


@pytest.mark.parametrize(
    "where", ["number", "array", "items", "settings", "slot", "closure", "method"]
)
@pytest.mark.parametrize("period", [None, 0.1])
def test_an_attribute_that_changes_counts_even_where_all_numbers_stay_the_same(
    where: str, period: float | None
) -> None:
    block = Odd(where)
    for k in (3.0, 5.0, 5.0, 3.0):
        change(block, k)
        expected = -k if period is None else np.exp(-k * period)
        assert pytest.approx(expected, rel=1e-14) == fx.linearize(block, period=period).A


def test_what_no_attribute_tells_is_found_by_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    block = Odd("class")
    context = block.create_default_context()
    block.state.set(context, [1.0])
    for k in (3.0, 5.0, 3.0):
        monkeypatch.setattr(Odd, "shared", k)
        for period, expected in ((None, -k), (0.1, np.exp(-0.1 * k))):
            assert pytest.approx(expected) == fx.linearize(block, context, period=period).A


class Counting(fx.LeafSystem):
    """ẋ = -x, until the equations have run too often."""

    def __init__(self) -> None:
        super().__init__("counting")
        self.left = 1000
        self.state = self.declare_continuous_state(z=1, default=1.0)

    def calc_time_derivatives(self, context: Any) -> Any:
        self.left -= 1
        return -self.state(context) if self.left > 0 else -2.0 * self.state(context)


def test_equations_with_a_hidden_state_are_never_mistaken_for_those_of_before() -> None:
    block = Counting()
    assert fx.linearize(block).A == -1.0
    block.left = 0
    assert fx.linearize(block).A == -2.0
    block.left = 1  # numbers count on from here, and the trace does not
    assert pytest.approx(-2.0, rel=1e-6) == fx.linearize(block).A


def test_an_input_without_a_value_is_named_each_time() -> None:
    pendulum = Pendulum()
    for _ in range(2):
        with pytest.raises(EvaluationError, match=r"input port 'pendulum\.torque'"):
            fx.linearize(pendulum)
        context = pendulum.create_default_context()
        pendulum.torque.fix(context, 0.0)
        assert fx.linearize(pendulum, context).how == "exact derivatives"


def test_what_could_not_be_traced_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    diagram = servo(derivative_filter=0.01)
    ports = (["target.value"], ["pendulum.angle"])
    with monkeypatch.context() as patch:
        patch.setattr(compile_limits, "TRACED", 20)
        assert fx.linearize(diagram, None, *ports).how.startswith("central differences")
    assert fx.linearize(diagram, None, *ports).how == "exact derivatives"


# Copies, threads and memory ----------------------------------------------------------------------


def test_copies_of_a_system_answer_for_themselves() -> None:
    diagram = servo(derivative_filter=0.01)
    expected = numbers(fx.loop_gain(diagram, "pid.u"))
    for twin in (copy.deepcopy(diagram), pickle.loads(pickle.dumps(diagram))):
        context = twin.create_default_context()
        assert numbers(fx.loop_gain(twin, "pid.u", context=context)) == expected
        context.set("pid.kp", 10.0)
        assert numbers(fx.loop_gain(twin, "pid.u", context=context)) != expected
    assert numbers(fx.loop_gain(diagram, "pid.u")) == expected


@pytest.mark.full
def test_threads_get_the_answers_of_their_own_contexts() -> None:
    shared = {sampled: asked(SAMPLED[0] if sampled else "") for sampled in (False, True)}
    wrong: list[str] = []
    start = threading.Barrier(4)
    gains = np.linspace(1.0, 60.0, 4)

    def context_with(gain: float) -> dict[str, Any]:
        return {"pid.kp": float(gain), "pendulum.x": [0.01 * gain, 0.0]}

    expected = [
        {name: ask(name, asked(name), context_with(gain), 0.0) for name in QUESTIONS}
        for gain in gains
    ]

    def work(number: int) -> None:
        start.wait()
        names = list(QUESTIONS)
        for name in [*names[number:], *names[:number]]:
            found = ask(name, shared[name in SAMPLED], context_with(gains[number]), 0.0)
            if found != expected[number][name]:
                wrong.append(f"{name} in thread {number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.full
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_system_that_nobody_needs_leaves_nothing_behind(question: str) -> None:
    diagram = asked(question)
    context = diagram.create_default_context()
    QUESTIONS[question](diagram, context)
    QUESTIONS[question](diagram, context)
    system, layout, values = map(weakref.ref, (diagram, diagram.layout, context))
    del context
    gc.collect()
    assert values() is None
    del diagram
    gc.collect()
    assert system() is layout() is None


@pytest.mark.full
def test_many_different_questions_take_no_more_than_some_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("flexure.diagrams.systems.layout._ROOM", 1000)
    diagram = servo(derivative_filter=0.01)

    def graphs() -> int:
        while gc.collect():  # one pass sees what holds an array of symbols, the next one these
            pass
        return sum(isinstance(each, scalars.Graph) for each in gc.get_objects())

    before = graphs()
    paths = ["target.value", "pid.kp", "pid.ki", "pid.u", "pendulum.mass"]
    for number in range(1, 32):
        chosen = [path for k, path in enumerate(paths) if number >> k & 1]
        fx.linearize(diagram, None, chosen, ["pendulum.angle"])
    assert 1 <= graphs() - before <= 12
