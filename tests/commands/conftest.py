"""Commands as a user types them, in this process, in an empty folder with model files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from flexure.commands.main import main

CHARGE = """\
import flexure as fx


def build():
    builder = fx.DiagramBuilder("charge")
    builder.add_all(fx.Step("source", at=0.5), fx.FirstOrderLag("lag", time_constant=1.0))
    builder.connect_chain("source", "lag")
    builder.export_output("lag.y", "voltage")
    return builder.build()


def started():
    system = build()
    context = system.create_default_context()
    context.set("lag.x", 3.0)
    return system, context


def single():
    return fx.FirstOrderLag("lag", 1.0)


def pushed():
    builder = fx.DiagramBuilder("pushed")
    builder.add_all(fx.Step("force", to=4.0), vector())
    builder.connect_chain("force", "arm")
    return builder.build()


def vector():
    return fx.StateSpace("arm", [[0.0, 1.0], [-4.0, -0.4]], [0.0, 1.0], [1.0, 0.0])
"""


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, which holds charge.py; what commands do to imports is undone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "charge.py").write_text(CHARGE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def flexure(folder: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Carry out a command."""

    def carry_out(*words: str) -> Outcome:
        before = set(sys.modules)
        try:
            code = main(words)
        finally:
            for name in set(sys.modules) - before:
                file = getattr(sys.modules[name], "__file__", None)
                if file and Path(file).is_relative_to(folder.resolve()):
                    del sys.modules[name]
        return Outcome(code, *capsys.readouterr())

    return carry_out
