"""The cache of native code: a shortcut that is never wrong and never in the way."""

from __future__ import annotations

import ast
import inspect
import itertools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flexure.solvers.native.language.translation import Module
from flexure.solvers.native.llvm import cache, library
from flexure.solvers.native.llvm.cache import cached, folder
from flexure.solvers.native.programs import method_programs
from flexure.solvers.native.programs.method_programs import METHODS, loops_text, sources
from tests.support.native.native import needs_llvmlite

ROOT = Path(__file__).resolve().parents[4]
CONTENT = bytes(range(256)) * 40


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty cache."""
    monkeypatch.setenv("FLEXURE_CACHE", str(tmp_path / "cache"))
    found = folder()
    assert found is not None
    return found


class Maker:
    """Makes a content and counts how often."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.content = content
        self.calls = 0

    def __call__(self) -> bytes:
        self.calls += 1
        return self.content


def entries(place: Path) -> list[Path]:
    return sorted(place.iterdir()) if place.exists() else []


# Entries -----------------------------------------------------------------------------------------


def test_what_was_made_once_is_read_from_then_on(place: Path) -> None:
    make = Maker()
    assert [cached("key", make) for _ in range(3)] == [CONTENT] * 3
    assert make.calls == 1
    assert len(entries(place)) == 1


def test_another_key_is_another_entry(place: Path) -> None:
    contents = {key: key.encode() for key in ("a", "b", "ä", "a\n", "")}
    for key, content in contents.items():
        assert cached(key, Maker(content)) == content
    for key, content in contents.items():
        assert cached(key, Maker(b"never made")) == content
    assert len(entries(place)) == len(contents)


SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda data: data[:-1],
    "cut to the head": lambda data: data[:20],
    "empty": lambda data: b"",
    "longer": lambda data: data + b"x",
    "one bit changed": lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],
    "another digest": lambda data: data[:20] + bytes(8) + data[28:],
    "another format": lambda data: b"flexure object 0\n" + data[17:],
    "something else": lambda data: b"\x7fELF" + bytes(1000),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_file_that_is_not_what_was_written_is_made_anew(
    place: Path, spoil: Callable[[bytes], bytes]
) -> None:
    cached("key", Maker())
    (file,) = entries(place)
    good = file.read_bytes()
    file.write_bytes(spoil(good))
    make = Maker()
    assert cached("key", make) == CONTENT
    assert make.calls == 1
    assert file.read_bytes() == good
    assert cached("key", make) == CONTENT
    assert make.calls == 1


def test_an_exception_while_making_leaves_nothing(place: Path) -> None:
    def fail() -> bytes:
        raise ValueError("no such code")

    with pytest.raises(ValueError, match="no such code"):
        cached("key", fail)
    assert entries(place) == []


# The bound ---------------------------------------------------------------------------------------


def test_the_entries_that_were_not_used_for_the_longest_time_go_first(place: Path) -> None:
    size = len(CONTENT) + 49
    for age, key in enumerate("abcd"):
        cached(key, Maker())
        newest = max(entries(place), key=lambda file: file.stat().st_mtime_ns)
        os.utime(newest, (1000 + age, 1000 + age))
    cached("a", Maker(b"never made"))  # which makes it the last used one
    cached("e", Maker(), bound=3 * size)
    assert len(entries(place)) == 3
    kept = {key: Maker() for key in "abcde"}
    for key in "ade":
        cached(key, kept[key], bound=10 * size)
    assert [kept[key].calls for key in "ade"] == [0, 0, 0]
    for key in "bc":
        cached(key, kept[key], bound=10 * size)
        assert kept[key].calls == 1


def test_files_of_interrupted_writers_count_and_go_and_those_at_work_stay(place: Path) -> None:
    cached("other", Maker())
    (entry,) = entries(place)
    left, recent = (place / f"{entry.stem}.{name}.tmp" for name in ("left", "recent"))
    left.write_bytes(bytes(20_000))
    recent.write_bytes(bytes(20_000))
    os.utime(left, (1000, 1000))
    cached("key", Maker(), bound=45_000)
    assert not left.exists()
    assert recent.exists()
    assert len(entries(place)) == 3


def test_what_is_larger_than_the_bound_is_returned_all_the_same(place: Path) -> None:
    assert cached("key", Maker(), bound=100) == CONTENT
    assert entries(place) == []


# The folder --------------------------------------------------------------------------------------


def test_the_cache_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEXURE_CACHE", "off")
    make = Maker()
    assert folder() is None
    assert [cached("key", make) for _ in range(2)] == [CONTENT] * 2
    assert make.calls == 2


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x/caches"}, "/x/caches/flexure-code-7"),
        ("linux", {"HOME": "/x/me", "XDG_CACHE_HOME": ""}, "/x/me/.cache/flexure-code-7"),
        ("darwin", {"HOME": "/x/me"}, "/x/me/Library/Caches/flexure-code-7"),
        ("win32", {"LOCALAPPDATA": "/x/local"}, "/x/local/flexure-code"),
        ("linux", {"FLEXURE_CACHE": "/x/other"}, "/x/other/flexure-code-7"),
    ],
)
def test_the_folder_is_where_caches_of_a_user_are(
    platform: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FLEXURE_CACHE", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    if platform == "win32":
        monkeypatch.delattr(os, "geteuid", raising=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 7, raising=False)
    assert folder() == Path(expected)


def test_without_numbers_of_users_the_cache_works_as_well(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "geteuid", raising=False)
    make = Maker()
    assert [cached("key", make) for _ in range(2)] == [CONTENT] * 2
    assert make.calls == 1
    assert not place.exists()


# Several at once ---------------------------------------------------------------------------------


def test_a_reader_sees_a_whole_file_or_none(place: Path) -> None:
    """Whoever reads while others write gets the content, and finds no reason to delete a file."""
    content = os.urandom(2**18)
    identity = bytes(range(32))
    file = place / ("0" * 32 + ".flexure-code")
    place.mkdir(parents=True, mode=0o700)
    made = itertools.count()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            cache._write(file, identity, content)

    def read() -> None:
        for _ in range(200):
            found = cache._read(file, identity)
            if found is None:
                next(made)
            else:
                assert found == content

    cache._write(file, identity, content)
    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        read()
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert next(made) == 0
    assert entries(place) == [file]


COMPILE = """
import sys
from flexure.solvers.native.llvm.library import Library
text = "define double @half(double %x) {{\\n  %y = fmul double %x, 0.5\\n  ret double %y\\n}}\\n"
sys.stdin.read()
library = Library("half", lambda: text)
import ctypes
print(library.function("half", ctypes.c_double, ctypes.c_double)(3.0))
""".replace("{{", "{").replace("}}", "}")


@needs_llvmlite
def test_processes_that_compile_the_same_thing_at_once_all_get_it(place: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILE],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    outputs = [process.communicate()[0] for process in processes]
    assert outputs == ["1.5\n"] * 4
    assert [file.suffix for file in entries(place)] == [".flexure-code"]


@needs_llvmlite
def test_code_for_another_processor_or_another_effort_is_another_entry(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "define i64 @one() {\n  ret i64 1\n}\n"
    machine = library._Machine.get()
    library.Library("one", lambda: text)
    library.Library("one", lambda: pytest.fail("it is in the cache"))
    library.Library("one", lambda: text, level=1)
    assert len(entries(place)) == 2
    monkeypatch.setattr(machine, "identity", machine.identity + "\nanother processor")
    library.Library("one", lambda: text)
    assert len(entries(place)) == 3


@pytest.mark.full
@needs_llvmlite
def test_neither_tests_nor_doctests_touch_the_cache_of_the_user(tmp_path: Path) -> None:
    environment = os.environ | {
        name: str(tmp_path) for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA")
    }
    environment.pop("FLEXURE_CACHE", None)
    example = "flexure/solvers/native/runs/scipy_adapter.py"  # its doctest compiles
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", example]
    outcome = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert not any(tmp_path.rglob("*flexure*"))


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize("name", METHODS)
def test_loops_are_known_by_every_file_that_they_are_translated_from(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = set()
    translate = Module.translate

    def note(module: Module, kernel: Callable[..., object], *rest: Any, **options: Any) -> None:
        files.add(Path(inspect.getfile(kernel)).resolve())
        translate(module, kernel, *rest, **options)

    monkeypatch.setattr(Module, "translate", note)
    loops_text(METHODS[name], True)
    assert {file.name for file in files} >= {"advance.py", "stepping.py", "progress_limits.py"}
    assert files <= set(sources())


def test_loops_are_known_by_the_files_of_their_constants() -> None:
    known = {file.relative_to(ROOT).with_suffix("").parts for file in sources()}
    kernels = [file for file in sources() if "kernels" in file.relative_to(ROOT).parts]
    read = set()
    for file in [*kernels, Path(method_programs.__file__)]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
                read |= {tuple(str(name).split(".")[1:]) for name in names}
    constants = {place for place in read if place[:2] == ("solvers", "integration")}
    modules = {place for place in constants if (ROOT.joinpath(*place).with_suffix(".py")).is_file()}
    assert ("solvers", "integration", "guard", "stiffness_detection") in modules
    assert modules <= known


@pytest.mark.full
@needs_llvmlite
def test_an_edited_kernel_is_compiled_anew(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for room in ("flexure", "blocks", "diagrams", "solvers"):
        shutil.copytree(
            ROOT / room, checkout / room, symlinks=True, ignore=shutil.ignore_patterns("*.pyc")
        )
    code = (
        "from flexure.solvers.native.programs.method_programs import source_identity; "
        "print(source_identity())"
    )

    def identity() -> str:
        command = [sys.executable, "-c", code]
        environment = os.environ | {"PYTHONPATH": str(checkout)}
        return subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True, check=True
        ).stdout

    found = {identity()}
    for edited in ("native/kernels/steps/explicit.py", "integration/guard/progress_limits.py"):
        with (checkout / "solvers" / edited).open("a") as file:
            file.write("\n# edited\n")
        found.add(identity())
    assert len(found) == 3
