"""Files of contexts from anywhere: refused by one kind of error, at the cost of their size."""

from __future__ import annotations

import errno
import json
import math
import os
import random
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flexure as fx
from flexure.diagrams.checks.errors import ContextFileError
from tests.support.systems.blocks import Gain, Lag, diagram_of
from tests.support.tiers import by_tier

ROOT = Path(__file__).resolve().parents[2]


class Everything(fx.LeafSystem):
    """One of everything that a context holds."""

    def __init__(self) -> None:
        super().__init__("all")
        self.declare_numeric_parameter("k", np.eye(2))
        self.declare_numeric_parameter("limit", math.inf, allow_infinite=True)
        self.declare_abstract_parameter("table", [{"a": (1, math.nan)}, None, True, "text"])
        self.declare_continuous_state(q=1, v=1, default=[1.5, -0.25])
        self.declare_discrete_state("n", [5.0, 6.0])
        self.declare_abstract_state("mode", np.arange(4, dtype=np.int16).reshape(2, 2))
        self.declare_vector_input("u", 2, default=[1.0, 2.0])
        self.declare_abstract_input("message")

    def calc_time_derivatives(self, context: Any) -> Any:
        return np.zeros(2)


SYSTEM = diagram_of(Everything(), Lag("lag"), name="outer")
CONTEXT = SYSTEM.create_default_context()
CONTEXT.set("all.message", ["go", 1])
CONTEXT.set("lag.u", 3.0)
GOOD = json.dumps(CONTEXT.to_dict()).encode()


def load(data: bytes, path: Path) -> fx.Context | None:
    """Load a file; None when it is refused as it should be."""
    path.write_bytes(data)
    try:
        return SYSTEM.load_context(path)
    except ContextFileError:
        return None


def check(data: bytes, path: Path) -> bool:
    """Load a file; what is accepted is a context that can be saved and used."""
    context = load(data, path)
    if context is None:
        return False
    assert np.isfinite(context.continuous_state).all()
    again = SYSTEM.context_from_dict(json.loads(json.dumps(context.to_dict())))
    assert again.to_dict() == context.to_dict()
    SYSTEM.eval_time_derivatives(context.clone())
    return True


# Any file ----------------------------------------------------------------------------------------

TOKENS = [
    *(b"1e999", b"NaN", b"-Infinity", b"9" * 500, b"9" * 5000, b"[", b"{", b"]", b"}", b"null"),
    *(b"true", b'"x"', b"[" * 3000, b'{"tuple":' * 200, b'"U300000000"', b'"object"', b'"<M8"'),
    *(b'"float16"', b"1e300", b"-1", b'{"float":"1e5"}', b'{"tuple":"ab"}', b'{"dict":[]}'),
    *(b"\xff\xfe", b"\xef\xbb\xbf", b'"\\ud800"', b"1e-400", b"-0", b",", b":", b'"array":', b"\0"),
    *(b'{"array":[],"shape":[0,9223372036854775807],"dtype":"float64"}', b'"', b"\\"),
    *(b'{"array":[1],"shape":[],"dtype":"bool"}', b'"time":', b'{"float":"inf"}'),
]
PLACES = [found.span() for found in re.finditer(rb'"[^"]*"|[-+\w.]+|[\[\]{},:]', GOOD)]


def mutated(rng: random.Random) -> bytes:
    """Return the file after a few changes."""
    data = GOOD
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        (first, last), (start, end) = rng.choice(PLACES), rng.choice(PLACES)
        place = rng.randrange(len(data) + 1)
        data = rng.choice(
            [
                data[:first] + rng.choice(TOKENS) + data[last:],
                data[:first] + GOOD[start:end] + data[last:],
                data[:first] + data[last:],
                data[:place] + rng.randbytes(1) + data[place + 1 :],
                data[:place] + data[place + rng.randrange(60) :],
                data[:place],
            ]
        )
    return data


def test_the_file_itself_is_accepted(tmp_path: Path) -> None:
    assert check(GOOD, tmp_path / "context.json")
    assert load(GOOD, tmp_path / "context.json") is not None


def test_mutated_files_are_refused_or_give_whole_contexts(tmp_path: Path) -> None:
    rng = random.Random(14)
    before = CONTEXT.clone()
    accepted = sum(check(mutated(rng), tmp_path / "context.json") for _ in range(400))
    assert 5 < accepted < 100
    assert before.to_dict() == CONTEXT.to_dict()
    assert SYSTEM.create_default_context().to_dict() != CONTEXT.to_dict()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([10**400, 2**63, "float64", "nan", "U9"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["array", "shape", "dtype", "float", "tuple", "dict", "x"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@pytest.mark.full
@settings(max_examples=by_tier(fast=15, full=60))
@given(st.data(), JSON)
def test_any_value_in_any_place_is_refused_or_kept(data: st.DataObject, value: Any) -> None:
    saved = json.loads(GOOD)
    top: Any = saved
    while isinstance(top, (dict, list)) and top:
        keys = list(top) if isinstance(top, dict) else list(range(len(top)))
        parent, key = top, data.draw(st.sampled_from(keys))
        top = parent[key]
        if data.draw(st.booleans()):
            break
    parent[key] = value
    try:
        context = SYSTEM.context_from_dict(saved)
    except ContextFileError:
        return
    assert SYSTEM.context_from_dict(context.to_dict()).to_dict() == context.to_dict()


# What is refused, and why ------------------------------------------------------------------------


def replaced(old: str, new: str) -> bytes:
    text = GOOD.decode()
    assert text.count(old) == 1, old
    return text.replace(old, new).encode()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (replaced('"limit": {"float": "inf"}', '"limit": {"float": "1e5"}'), "the float '1e5'"),
        (replaced('"limit": {"float": "inf"}', '"limit": Infinity'), "number Infinity, which is"),
        (replaced('"limit": {"float": "inf"}', '"limit": 1e999'), "the number 1e999, which is not"),
        (replaced('"limit": {"float": "inf"}', f'"limit": {10**400}'), "expected a real number"),
        (replaced('"time": 0.0', '"time": 0.0, "time": 1.0'), "found 'time' more than once"),
        (replaced('"time": 0.0', '"time": 0.0, "times": 1.0'), "found 'times'"),
        (replaced('"int16"', '"U300000000"'), "found arrays of 'U300000000'"),
        (replaced('"int16"', '["f8"]'), "found arrays of ['f8']"),
        (replaced("[0, 1, 2, 3]", "[0, 1, 2, 3.0]"), "found entries that are no int16"),
        (replaced("[0, 1, 2, 3]", "[0, 1, 2, 70000]"), "found OverflowError"),
        (replaced("[0, 1, 2, 3]", '[0, 1, 2, "3"]'), "found entries that are no int16"),
        (replaced('[2, 2], "dtype": "int16"', '[-1], "dtype": "int16"'), "found the shape [-1]"),
        (replaced('[2, 2], "dtype": "int16"', '9, "dtype": "int16"'), "without lists of its"),
        (replaced('"dtype": "int16"', '"dtype": "int16", "x": 1'), "found 'x'"),
        (replaced('"go"', "[" * 150 + "]" * 150), "more than 100 nested values"),
        (replaced('"go"', "[" * 100_000), "recursion"),
        (replaced('"go"', '{"tuple": "go"}'), "a tuple without a list"),
        (replaced('"go"', '{"dict": ["go"]}'), "a dictionary without its entries"),
        (replaced('"x": {"array": [1.5, -0.25]', '"x": {"array": [1.5, true]'), "no float64"),
        (replaced("[5.0, 6.0]", '[5.0, "6.0"]'), "entries that are no float64"),
        (replaced('"tau": 1.0', '"tau": [1.0, "3"]'), "the text '3' among numbers"),
        (
            replaced('"system": "outer"', '"system": "other"'),
            "found those of 'other'",
        ),
        (replaced('"lag": {', '"leg": {'), "found block 'leg'"),
        (re.sub(rb'"blocks": .*, "inputs"', b'"blocks": {}, "inputs"', GOOD), "no block 'all'"),
        (replaced('"parameters": {"tau": 1.0}, ', ""), "found no 'parameters'"),
        (replaced('"tau": 1.0', ""), "expected parameters 'tau' of 'lag'; found no 'tau'"),
        (b"\xef\xbb\xbf" + GOOD, "BOM"),
        (GOOD.decode().encode("utf-16"), "can't decode"),
        (GOOD + b"{}", "Extra data"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_says_what_is_wrong(data: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "context.json").write_bytes(data)
    with pytest.raises(ContextFileError, match="Cannot load a context of 'outer'") as caught:
        SYSTEM.load_context(tmp_path / "context.json")
    assert text in str(caught.value)


def test_a_file_of_another_model_is_refused(tmp_path: Path) -> None:
    Gain("gain").create_default_context().save(tmp_path / "context.json")
    for other in (Gain("other"), Lag("gain"), diagram_of(Gain("gain"), name="other")):
        with pytest.raises(ContextFileError, match="Cannot load a context of"):
            other.load_context(tmp_path / "context.json")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no devices in folders")
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/zero")):
        with pytest.raises(ContextFileError, match="something other than a file"):
            SYSTEM.load_context(path)


BOUNDED = """
import json, resource, sys, time
from tests.faults.test_hostile_contexts import SYSTEM, ContextFileError, GOOD
text, path = GOOD.decode(), sys.argv[1]
long = "x" * 200_000
bombs = [
    text.replace('"int16"', '"U300000000"'),
    text.replace('"tau": 1.0', '"tau": [' + '"a", ' * 20_000 + f'"{long}"]'),
    text.replace('[2, 2], "dtype": "int16"', '[100000, 100000, 100000], "dtype": "int16"'),
    text.replace('"go"', "[" * 500_000),
    text.replace('"go"', '"go", ' + ", ".join(["9" * 4000] * 50)),
    text.replace('"time": 0.0', ", ".join(f'"{k}": 0' for k in range(50_000)) + ', "1": 0'),
    text.replace('"tau": 1.0', '"tau": ' + "1" * 4000 + "." + "1" * 200_000),
]
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30,) * 2)
for bomb in bombs:
    assert bomb != text
    with open(path, "w") as file:
        file.write(bomb)
    begin = time.process_time()
    SYSTEM.context_from_dict(json.loads(text))
    try:
        SYSTEM.load_context(path)
    except ContextFileError:
        pass
    print(time.process_time() - begin < 5.0)
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of memory")
def test_memory_and_time_are_bounded_by_the_size_of_the_file(tmp_path: Path) -> None:
    outcome = subprocess.run(
        [sys.executable, "-c", BOUNDED, str(tmp_path / "context.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert outcome.stdout == "True\n" * 7, outcome.stderr


def test_loading_takes_time_in_proportion_to_the_file() -> None:
    """A cascade, in which every parameter concerns all blocks behind it."""
    visited: list[int] = []
    for count in (200, 400):
        builder = fx.DiagramBuilder("cascade")
        builder.add_all(*(Gain(f"g{k}") for k in range(count)))
        builder.connect_chain(*(f"g{k}" for k in range(count)))
        builder.export_input("g0.u")
        system = builder.build()
        data = system.create_default_context().to_dict()
        calls = 0

        def count_call(frame: Any, event: str, argument: Any) -> None:
            nonlocal calls
            calls += 1

        sys.setprofile(count_call)
        try:
            system.context_from_dict(data)
        finally:
            sys.setprofile(None)
        visited.append(calls)
    assert visited[1] < 2.2 * visited[0]


# Saving ------------------------------------------------------------------------------------------


def failing(number: int) -> Callable[..., None]:
    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_save_that_fails_leaves_the_good_file_and_nothing_else(
    step: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "context.json"
    path.write_bytes(GOOD)
    monkeypatch.setattr(os, step, failing(number))
    with pytest.raises(ContextFileError, match=re.escape(os.strerror(number))) as caught:
        CONTEXT.save(path)
    assert "Cannot save the context of 'outer' to" in str(caught.value)
    assert "A file of this name is unchanged." in str(caught.value)
    assert path.read_bytes() == GOOD
    assert [file.name for file in tmp_path.iterdir()] == ["context.json"]


FULL = """
import resource, signal, sys
from tests.faults.test_hostile_contexts import CONTEXT, ContextFileError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    CONTEXT.save(sys.argv[1])
except ContextFileError as error:
    print("File too large" in str(error))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of files")
def test_a_full_disk_does_not_destroy_the_good_file(tmp_path: Path) -> None:
    path = tmp_path / "context.json"
    path.write_bytes(GOOD)
    outcome = subprocess.run(
        [sys.executable, "-c", FULL, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert outcome.stdout == "True\n", outcome.stderr
    assert path.read_bytes() == GOOD
    assert [file.name for file in tmp_path.iterdir()] == ["context.json"]


@pytest.mark.parametrize("path", ["missing/context.json", "", "a\0b", "x" * 300])
def test_a_name_that_cannot_be_written_is_refused(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ContextFileError, match="Cannot save the context of 'outer' to"):
        CONTEXT.save(path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_made_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "context.json"
    with pytest.raises(ContextFileError, match=r"No such file or directory: '.*context\.json'"):
        CONTEXT.save(path)
    with pytest.raises(ContextFileError, match=r"found None \(NoneType\)\. A file of this name"):
        CONTEXT.save(None)  # type: ignore[arg-type]


def test_a_value_without_end_is_refused_with_its_path(tmp_path: Path) -> None:
    endless: list[Any] = []
    endless.append(endless)
    context = CONTEXT.clone()
    context["all"].abstract[0] = endless  # type: ignore[attr-defined]
    with pytest.raises(ContextFileError, match=r"Cannot save 'all\.mode': expected at most 100"):
        context.save(tmp_path / "context.json")
    assert list(tmp_path.iterdir()) == []


def test_long_integers_come_back_or_are_refused(tmp_path: Path) -> None:
    context = CONTEXT.clone()
    context.set("all.mode", 10**4000)
    context.save(tmp_path / "context.json")
    assert SYSTEM.load_context(tmp_path / "context.json").get("all.mode") == 10**4000
    context.set("all.mode", 10**5000)
    with pytest.raises(ContextFileError, match="digits"):
        context.save(tmp_path / "context.json")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights and links")
def test_rights_and_links_of_the_file_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "context.json", tmp_path / "link"
    link.symlink_to(path)
    before = os.umask(0o027)
    try:
        CONTEXT.save(link)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        CONTEXT.save(link)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert link.is_symlink()
    assert SYSTEM.load_context(link).to_dict() == CONTEXT.to_dict()
