"""FMUs that are damaged, hostile, changed, or that fail: each is named; nothing stays behind."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.errors import DeclarationError, EvaluationError, NativeCodeError, SimulationError
from tests.support.processes.foreign_fmus import DESCRIPTION, small_fmu

TIGHT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary folders are made; what FMUs unpack there is gone with them."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place

    gc.collect()
    assert list(place.iterdir()) == []


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_fmu(tmp_path_factory.mktemp("small"))


def archive(path: Path, **files: str | bytes) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, content in files.items():
            made.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return path


def truncated(path: Path) -> None:
    archive(path, modelDescription_xml=DESCRIPTION * 20)
    path.write_bytes(path.read_bytes()[:-30])


def corrupted(path: Path) -> None:
    archive(path, modelDescription_xml=DESCRIPTION)
    text = bytearray(path.read_bytes())
    text[300] ^= 0xFF
    path.write_bytes(text)


def climbing(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("modelDescription.xml", DESCRIPTION)
        made.writestr("../../harm.txt", "harm")


def linking(path: Path) -> None:
    entry = zipfile.ZipInfo("resources/link")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("modelDescription.xml", DESCRIPTION)
        made.writestr(entry, "/etc/passwd")


def described(text: str) -> Callable[[Path], Any]:
    return lambda path: archive(path, modelDescription_xml=text)


ENTITIES = DESCRIPTION.replace("<fmi", '<!DOCTYPE x [<!ENTITY a "b">]>\n<fmi', 1)
BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no archive": (lambda path: path.write_text("no zip"), "a zip archive .*BadZipFile"),
    "truncated": (truncated, "a zip archive .*BadZipFile"),
    "corrupted": (corrupted, "a zip archive .*CRC"),
    "no file": (lambda path: None, "No such file"),
    "climbing": (climbing, r"'../../harm.txt', which leads out of it"),
    "a link": (linking, "'resources/link', a link"),
    "no description": (lambda path: archive(path, other="x"), "modelDescription.xml; found none"),
    "entities": (described(ENTITIES), "without a document type"),
    "no XML": (described("<fmi"), "XMLSyntaxError"),
    "version 1.0": (described(DESCRIPTION.replace('"2.0"', '"1.0"')), "found version '1.0'"),
    "no version": (described(DESCRIPTION.replace('fmiVersion="2.0"', "")), "a valid"),
    "invalid": (described(DESCRIPTION.replace('causality="input"', 'causality="in"')), "line 10"),
    "other platform": (
        lambda path: archive(path, modelDescription_xml=DESCRIPTION, binaries__win64__x="x"),
        "a binary for '.*', the platform of this computer; found binaries for win64",
    ),
    "no binary": (
        lambda path: archive(
            path, modelDescription_xml=DESCRIPTION, binaries__linux64__small_so=""
        ),
        "a binary for",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_by_name(name: str, tmp_path: Path) -> None:
    pytest.importorskip("fmpy")
    make, found = BAD[name]
    path = tmp_path / "bad.fmu"
    make(path)
    with pytest.raises(DeclarationError, match=found):
        fx.FMUBlock("motor", path)
    assert not (tmp_path.parent / "harm.txt").exists()


def test_a_temporary_folder_that_cannot_be_written_is_named(
    small: Path, monkeypatch: pytest.MonkeyPatch, folders: Path
) -> None:
    block, nowhere = fx.FMUBlock("motor", small), folders / "nowhere"
    monkeypatch.setattr(tempfile, "tempdir", str(nowhere))
    with pytest.raises(DeclarationError, match="a temporary folder that can be written"):
        fx.FMUBlock("motor", small)
    with pytest.raises(NativeCodeError, match=r"in a temporary folder.*nowhere"):
        fx.to_fmu(fx.FirstOrderLag("lag", 2.0))
    monkeypatch.setattr(tempfile, "tempdir", str(folders))
    assert fx.simulate(block, 0.1).outcome == "completed"


def test_a_kind_that_is_not_there_is_refused(small: Path) -> None:
    with pytest.raises(DeclarationError, match=r"of the kind 'cs', .*found 'me'"):
        fx.FMUBlock("motor", small, kind="cs")
    with pytest.raises(DeclarationError, match="no period with Model Exchange"):
        fx.FMUBlock("motor", small, period=0.1)


def test_ports_and_parameters_are_those_of_the_description(small: Path) -> None:
    block = fx.FMUBlock("motor", small)
    port = block.named_port("force_u")
    assert port is not None
    assert (port.unit, port.doc) == ("m/s", "push")
    assert block.feedthrough == {("force_u", "y")}
    (a, _) = block.numeric_parameters
    assert (a.name, a.unit, a.default, a.lower, a.upper) == ("a", "1/s", 1.0, 0.0, 10.0)


def test_fmus_without_saved_states_repeat_their_events(small: Path) -> None:
    """The state falls to 0.5 and jumps by 1, again and again: times are those of a logarithm."""
    block = fx.FMUBlock("motor", small)
    result = fx.simulate(block, 5.0, **TIGHT)
    times = math.log(4.0) + math.log(3.0) * np.arange(4)
    jumps = result.time[:-1][np.diff(result.time) == 0.0]
    np.testing.assert_allclose(jumps[-4:], times, atol=1e-7)
    at = np.array([0.5, 2.0, 3.0, 4.0])
    past = np.array([0.0, times[0], times[1], times[2]])
    start = np.array([2.0, 1.5, 1.5, 1.5])
    np.testing.assert_allclose(result.sample("y", at), start * np.exp(past - at), rtol=1e-6)
    np.testing.assert_array_equal(result.sample("n", at), [0.0, 1.0, 2.0, 3.0])
    again = pickle.loads(pickle.dumps(result.context))
    for context in (result.context, again, copy.deepcopy(result.context)):
        assert fx.simulate(context.system, 6.0, context=context)["n"][-1] == 5.0


def test_jumping_inputs_and_parameters_are_events(small: Path) -> None:
    builder = fx.DiagramBuilder("d")
    builder.add_all(fx.Step("push", at=1.0, to=3.0), fx.FMUBlock("motor", small))
    builder.connect("push.y", "motor.force_u")
    diagram = builder.build()
    result = fx.simulate(diagram, 2.0, **TIGHT)
    x = 3.0 + (2.0 * math.exp(-1.0) - 3.0) * math.exp(-1.0)
    assert result["motor.y"][-1] == pytest.approx(x + 6.0, rel=1e-7)
    context = fx.simulate(diagram, 0.5).context
    context.set("motor.a", 2.0)
    after = fx.simulate(diagram, 0.9, context=context, **TIGHT)
    x = 2.0 * math.exp(-0.5) * math.exp(-2.0 * 0.4)
    assert after["motor.y"][-1] == pytest.approx(x, rel=1e-5)
    context.set("motor.trouble", 4.0)
    with pytest.raises(EvaluationError, match=r"fixed parameters .* other values of trouble"):
        fx.simulate(diagram, 1.0, context=context)


@pytest.mark.parametrize(
    ("trouble", "found"),
    [
        (1.0, "the end of its process, with SIGABRT"),
        (2.0, "numbers of 'y'; found NaN at"),
        (3.0, "fmi2GetDerivatives.*error.*its log says: the pump is broken"),
    ],
)
def test_fmus_that_fail_are_named_and_can_be_used_again(
    small: Path, trouble: float, found: str
) -> None:
    block = fx.FMUBlock("motor", small, isolated=trouble == 1.0)
    builder = fx.DiagramBuilder("d")
    builder.add_all(block, fx.Integrator("sum"))
    builder.connect("motor.y", "sum.u")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.set("motor.trouble", trouble)
    kind = SimulationError if trouble == 1.0 else EvaluationError
    with pytest.raises(kind, match=f"FMU 'motor'.*{found}"):
        fx.simulate(diagram, 1.0, context=context)
    fine = fx.simulate(diagram, 1.0, **TIGHT)
    assert fine["motor.y"][-1] == pytest.approx(2.0 * math.exp(-1.0), rel=1e-7)


def test_messages_reach_the_instance_that_they_are_from(small: Path) -> None:
    """FMPy hands all messages of FMI 2.0 to one function, which must outlive every instance."""
    first = fx.FMUBlock("first", small)
    assert fx.simulate(first, 0.5)["y"][-1] == pytest.approx(2.0 * math.exp(-0.5), rel=1e-5)
    second = fx.FMUBlock("second", small)
    fx.simulate(second, 0.5)
    del second
    gc.collect()
    context = first.create_default_context()
    context.set("trouble", 3.0)
    with pytest.raises(EvaluationError, match=r"FMU 'first'.*its log says: the pump is broken"):
        fx.simulate(first, 1.0, context=context)


def test_a_changed_file_is_refused(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "copy.fmu"
    path.write_bytes(small.read_bytes())
    block = fx.FMUBlock("motor", path)
    sent = pickle.dumps(block)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("extra.txt", "other")
    fx.simulate(block, 0.1)  # which is loaded
    with pytest.raises(DeclarationError, match="the file with which the block was made"):
        fx.simulate(pickle.loads(sent), 0.1)
