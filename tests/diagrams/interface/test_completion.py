"""Names where somebody presses Tab; `test_notebooks.py` does it in IPython itself."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import flexure as fx
from flexure.diagrams.interface import completion
from flexure.diagrams.interface.completion import block_paths, names_for
from tests.support.mechanics.mechanics import servo
from tests.support.systems.many_blocks import chain
from tests.support.tiers import for_each


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    system = servo()
    result = fx.simulate(system, 0.1)
    return {"servo": system, "context": system.create_default_context(), "result": result}


@for_each(
    ("code", "found"),
    [
        ('servo["pid"].derivative_f', ["derivative_filter"]),
        ("servo['pid'].derivative_filter.low", ["lower"]),
        ('context["pid"].cont', ["continuous_state"]),
        ('x = 3 + servo["pid"].derivative_f', ["derivative_filter"]),
        ('context.set("pid.ki', ["pid.ki"]),
        ('context.set("pid.kp", 3.0); context.get("pid.ki', ["pid.ki"]),
        ('fx.sweep(servo,\n  {"pid.ki', ["pid.ki"]),
        ("result.plot(['pendulum.ang", ["pendulum.angle"]),
    ],
)
def test_names_are_found_behind_brackets_and_in_texts(
    names: dict[str, Any], code: str, found: list[str]
) -> None:
    assert names_for(code, names)[0] == found


@for_each(
    "code",
    [
        *('servo["nobody"].k', 'nothing["pid"].k', "servo.p", 'servo["pid"]', "", "servo[0].k"),
        *('print("pid.ki', 'servo["pid.ki', 'servo.parameters()["do', 'servo["pid"].label.up'),
        *('"some text about servo "', "a.b.c[", 'result["pid.u"].si', 'servo["pid"].kp().re'),
    ],
)
def test_nothing_is_found_where_nothing_can_be_known(names: dict[str, Any], code: str) -> None:
    assert names_for(code, names)[0] == []


def test_completion_computes_no_signal(names: dict[str, Any]) -> None:
    class Touchy(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            raise AssertionError

    assert names_for('data["pid"].k', {"data": Touchy(pid=1)})[0] == []
    assert names_for('result["pendulum.angle"].m', names)[0] == []


def test_private_names_are_there_for_who_asks_for_them(names: dict[str, Any]) -> None:
    assert all(name[0] != "_" for name in names_for('servo["pid"].', names)[0])
    assert "_completion_paths_" in names_for('servo["pid"]._', names)[0]


@pytest.mark.full
def test_long_lines_and_large_diagrams_do_not_hang_it(names: dict[str, Any]) -> None:
    for piece in ('["x"]', ".x", "((", '"', "x", '["', '",'):
        names_for(f"servo{piece * 50_000}", names)
        names_for(f"{piece * 50_000} servo", names)
    assert len(block_paths(chain(1500).build())) == 2000


def test_an_ipython_that_is_another_one_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell in (None, SimpleNamespace(), SimpleNamespace(Completer=SimpleNamespace())):
        module = SimpleNamespace(get_ipython=lambda shell=shell: shell)
        monkeypatch.setitem(sys.modules, "IPython", module)
        completion.offer_completion()
