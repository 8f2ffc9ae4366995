"""Whatever is found in the folder of the native cache: no wrong code, no crash, no file lost."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flexure.solvers.native.llvm import cache
from flexure.solvers.native.llvm.cache import cached, folder
from tests.support.native.native import needs_llvmlite

ROOT = Path(__file__).resolve().parents[2]
KEYS = [f"key {k}" for k in range(8)]

needs_users = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="only root can hand a folder to another user",
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a cache that knows the keys."""
    monkeypatch.setenv("FLEXURE_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "_told", set())
    found = folder()
    assert found is not None
    fill()
    return found


def content_of(key: str) -> bytes:
    """Return what belongs to a key."""
    return f"content of {key};".encode() * 200


def fill() -> None:
    """Ask for the contents of all keys."""
    for key in KEYS:
        assert cached(key, lambda key=key: content_of(key)) == content_of(key)  # type: ignore[misc]


def entries(place: Path) -> list[Path]:
    return sorted(place.glob("*.flexure-code"))


# Entries -----------------------------------------------------------------------------------------


def test_entries_under_the_names_of_others_are_not_used(place: Path) -> None:
    """As after a restored backup, or a program that synchronizes folders."""
    files = entries(place)
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, contents[1:] + contents[:1], strict=True):
        file.write_bytes(content)
    fill()
    assert [file.read_bytes() for file in files] == contents


def test_no_mutation_of_an_entry_is_used(place: Path) -> None:
    rng = random.Random(7)
    file = entries(place)[0]
    good = file.read_bytes()
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            first = rng.randrange(len(data) + 1)
            last = first + rng.randint(0, 40)
            data[first:last] = rng.randbytes(rng.choice([0, last - first, 5]))
        file.write_bytes(data)
        fill()
        assert file.read_bytes() == good


def test_another_content_with_a_matching_hash_of_its_own_is_not_used(place: Path) -> None:
    """What somebody without the key can compute is no entry."""
    evil = b"evil"
    for identity in (b"", b"other"):
        digest = hashlib.blake2b(evil, digest_size=32, key=identity).digest()
        for file in entries(place):
            file.write_bytes(b"flexure object 2\n" + digest + evil)
        fill()


def fifo(file: Path, _: Path) -> None:
    os.mkfifo(file)


def link(file: Path, target: Path) -> None:
    file.symlink_to(target)


def broken_link(file: Path, _: Path) -> None:
    file.symlink_to(file.parent / "nowhere")


def endless_link(file: Path, _: Path) -> None:
    file.symlink_to(file)


def device(file: Path, _: Path) -> None:
    file.symlink_to("/dev/zero")


def sparse(file: Path, _: Path) -> None:
    with file.open("wb") as stream:
        stream.write(b"flexure object 2\n")
        stream.truncate(2**40)


def writable_by_others(file: Path, target: Path) -> None:
    file.write_bytes(target.read_bytes())
    file.chmod(0o666)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes and links in folders")
@pytest.mark.parametrize(
    "make", [fifo, link, broken_link, endless_link, device, sparse, writable_by_others]
)
def test_only_regular_files_of_this_user_are_read(
    place: Path, make: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    file = entries(place)[0]
    good = file.read_bytes()
    target = tmp_path / "precious"
    target.write_bytes(good)
    file.unlink()
    make(file, target)
    assert cache._read(file, bytes(32)) is None
    fill()
    assert target.read_bytes() == good
    assert file.read_bytes() == good
    assert stat.S_ISREG(file.lstat().st_mode)


def test_a_folder_in_place_of_an_entry_stays_and_is_told(place: Path) -> None:
    file = entries(place)[0]
    file.unlink()
    file.mkdir()
    (file / "precious").write_text("kept")
    with pytest.warns(UserWarning, match="Cannot keep native code in"):
        fill()
    assert (file / "precious").read_text() == "kept"
    assert [path.suffix for path in place.iterdir()] == [".flexure-code"] * len(KEYS)


# Foreign files -----------------------------------------------------------------------------------


def test_nothing_but_entries_is_ever_deleted(place: Path, tmp_path: Path) -> None:
    """In the folder that FLEXURE_CACHE names, and in the one of the cache itself."""
    names = ["a.o", "b.tmp", "notes.txt", "0" * 32 + ".o", ".flexure-code", "x.flexure-code"]
    names += ["F" * 32 + ".flexure-code", "0" * 32 + ".tmp", "0" * 32 + ".flexure-code.bak"]
    foreign = [where / name for where in (tmp_path, place) for name in names]
    for file in foreign:
        file.write_bytes(bytes(3000))
        os.utime(file, (1000, 1000))
    (place / ("1" * 32 + ".flexure-code")).mkdir()
    (place / ("2" * 32 + ".flexure-code")).symlink_to(foreign[0])
    for key in "abc":
        cached(key, lambda: bytes(5000), bound=100)
    assert all(file.read_bytes() == bytes(3000) for file in foreign)
    assert (place / ("1" * 32 + ".flexure-code")).is_dir()
    assert (place / ("2" * 32 + ".flexure-code")).is_symlink()
    assert not [file for file in entries(place) if file.is_file() and file.stat().st_size == 5049]


# The folder --------------------------------------------------------------------------------------


def test_the_folder_is_private_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEXURE_CACHE", str(tmp_path / "new" / "cache"))
    before = os.umask(0)
    try:
        fill()
    finally:
        os.umask(before)
    found = folder()
    assert found is not None
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in entries(found)} == {0o600}


def is_not_used(place: Path, pattern: str) -> None:
    """Check that a folder is left alone, and one warning says why."""
    before = sorted(path.name for path in place.parent.rglob("*"))
    calls = []

    def make() -> bytes:
        calls.append(1)
        return b"made"

    keys = [KEYS[0], KEYS[0], "new"]
    with pytest.warns(UserWarning, match=pattern) as caught:
        assert [cached(key, make) for key in keys] == [b"made"] * 3
    assert len(calls) == 3
    assert len(caught) == 1
    assert "FLEXURE_CACHE" in str(caught[0].message)
    assert before == sorted(path.name for path in place.parent.rglob("*"))


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_not_used(place: Path, mode: int) -> None:
    place.chmod(mode)
    is_not_used(place, r"it belongs to user \d+ with the rights d")


def test_a_link_in_place_of_the_folder_is_not_used(place: Path) -> None:
    place.rename(place.parent / "elsewhere")
    place.symlink_to(place.parent / "elsewhere")
    is_not_used(place, "it is a link or a file, and no folder")


@pytest.mark.parametrize("below", ["", "below"])
def test_a_file_in_the_way_of_the_folder_is_told(
    below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").write_text("in the way")
    monkeypatch.setenv("FLEXURE_CACHE", str(tmp_path / "a file" / below))
    monkeypatch.setattr(cache, "_told", set())
    is_not_used(tmp_path / "a file", "Cannot keep native code")
    assert (tmp_path / "a file").read_text() == "in the way"


@needs_users
def test_a_folder_or_an_entry_of_another_user_is_not_used(place: Path) -> None:
    file = entries(place)[0]
    os.chown(file, 1, 1)
    assert cache._read(file, bytes(32)) is None
    fill()
    assert file.stat().st_uid == 0
    os.chown(place, 1, 1)
    is_not_used(place, "it belongs to user 1 with the rights drwx------")


@pytest.fixture
def shared() -> Iterator[Path]:
    """Return a folder that everybody can write to."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o1777)
        yield Path(name)


AS_ANOTHER = """
import os, sys, warnings
from flexure.solvers.native.llvm.cache import cached, folder
os.setuid(65534)
warnings.simplefilter("error")
assert cached("key 0", lambda: b"mine") == b"mine"
assert cached("key 0", lambda: b"never") == b"mine"
print(folder().name)
"""


@needs_users
def test_two_users_who_share_a_place_have_a_folder_each(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second can neither read the code of the first nor give it any."""
    monkeypatch.setenv("FLEXURE_CACHE", str(shared))
    fill()
    assert run(AS_ANOTHER) == "flexure-code-65534\n"
    fill()


def run(program: str) -> str:
    """Run a program of its own."""
    outcome = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


# Nothing can be written --------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_where_nothing_can_be_written_one_warning_says_so_and_nothing_is_left(
    place: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {path.name for path in place.iterdir()}

    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.warns(UserWarning, match=os.strerror(number)) as caught:
        assert [cached(key, lambda: b"made") for key in ("new", "newer")] == [b"made"] * 2
    assert len(caught) == 1
    assert {path.name for path in place.iterdir()} == names
    fill()  # what is there is still read


FULL = """
import resource, signal, warnings
from flexure.solvers.native.llvm.cache import cached, folder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        assert cached("large", lambda: bytes(100_000)) == bytes(100_000)
print(len(caught), "File too large" in str(caught[0].message))
print(cached("key 0", lambda: b"never made")[:16])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of files")
def test_a_file_that_cannot_grow_is_taken_back(place: Path) -> None:
    names = {path.name for path in place.iterdir()}
    assert run(FULL) == "1 True\nb'content of key 0'\n"
    assert {path.name for path in place.iterdir()} == names


READ_ONLY = """
import os, sys, warnings
from flexure.solvers.native.llvm.cache import cached, folder
os.setuid(65534)
cached("key", lambda: b"made")
folder().chmod(0o500)
assert cached("key", lambda: b"never") == b"made"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert [cached("new", lambda: b"new") for _ in range(2)] == [b"new"] * 2
print(len(caught), "Permission denied" in str(caught[0].message))
"""


@needs_users
def test_a_folder_that_can_only_be_read_is_read(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEXURE_CACHE", str(shared))
    assert run(READ_ONLY) == "1 True\n"


# Several at once ---------------------------------------------------------------------------------

CROWD = """
import random, sys, threading
from flexure.solvers.native.llvm.cache import cached, folder

def content(key):
    return key.encode() * 3000

def work(seed):
    rng = random.Random(seed)
    for round in range(60):
        key = f"key {rng.randrange(12)}"
        found = cached(key, lambda: content(key), bound=120_000)
        if found != content(key):
            failures.append(key)
        # And somebody spoils what is there.
        if round % 7 == 0 and (files := list(folder().glob("*.flexure-code"))):
            one, other = rng.choices(files, k=2)
            try:
                one.write_bytes(other.read_bytes()[: rng.randrange(40000)])
            except OSError:
                pass

failures = []
threads = [threading.Thread(target=work, args=(10 * int(sys.argv[1]) + k,)) for k in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(failures))
"""


@pytest.mark.full
def test_many_processes_and_threads_never_see_a_wrong_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While they write, read, spoil, and make room by deleting."""
    monkeypatch.setenv("FLEXURE_CACHE", str(tmp_path))
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", CROWD, str(k)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for k in range(8)
    ]
    outputs = [process.communicate(timeout=100) for process in processes]
    assert outputs == [("0\n", "")] * 8
    found = folder()
    assert found is not None
    assert list(found.glob("*.tmp")) == []


SWAPPED = """
from flexure.solvers.native.llvm import library
text = "define i64 @{0}() {{\\n  ret i64 {1}\\n}}\\n"
import ctypes
for name, number in (("one", 1), ("two", 2)):
    made = library.Library(name, lambda: text.format(name, number))
    print(made.function(name, ctypes.c_int64)())
"""


@needs_llvmlite
def test_swapped_object_code_is_compiled_anew_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEXURE_CACHE", str(tmp_path))
    assert run(SWAPPED) == "1\n2\n"
    found = folder()
    assert found is not None
    one, two = entries(found)
    contents = one.read_bytes(), two.read_bytes()
    one.write_bytes(contents[1])
    two.write_bytes(contents[0])
    assert run(SWAPPED) == "1\n2\n"
    assert (one.read_bytes(), two.read_bytes()) == contents


def test_threads_that_find_the_folder_missing_make_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEXURE_CACHE", str(tmp_path / "new"))
    monkeypatch.setattr(cache, "_told", set())
    found: list[bytes] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        found.append(cached("key", lambda: b"content"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [b"content"] * 8
