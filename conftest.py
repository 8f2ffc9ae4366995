"""What all tests run under, the doctests of the package included."""

from __future__ import annotations

import gc
import hashlib
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Figures go to files, also on a machine that has a screen.
os.environ["MPLBACKEND"] = "Agg"
# Draws of hypothesis do not depend on the constants in all modules that happen to be imported.
with suppress(ImportError):  # versions without these
    from hypothesis.internal.conjecture import providers
    from hypothesis.internal.constants_ast import Constants

    NO_CONSTANTS = Constants()
    vars(providers)["_get_local_constants"] = lambda: NO_CONSTANTS


def pytest_configure(config: pytest.Config) -> None:
    """Say which tier runs before tests are imported, and compile each Python file once in a run.

    Batteries choose their cases by the tier (`tests/support/tiers.py`). Where bytecode is not to be
    kept beside its source, the folder of pytest keeps it: processes of this run share it, those
    that tests start included, and so do later runs.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in jobs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # and what tests start heeds it
    tier = os.environ["FLEXURE_TIER"] = "fast" if "not full" in config.option.markexpr else "full"
    # The same draws in every run, and no verdict that depends on how busy the machine is.
    settings.register_profile(
        "repeatable",
        derandomize=True,
        deadline=None,
        max_examples={"fast": 20, "full": 100}[tier],
    )
    settings.load_profile("repeatable")
    if sys.dont_write_bytecode:
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = _kept_folder(config, "bytecode")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_cmdline_main(config: pytest.Config) -> None:
    """Give each file to one of several processes, as its tests share what fixtures have made."""
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "loadfile"
        config.option.loadscopereorder = False  # the files at the end are short
        # Threads of linear algebra in each of them would only wait for each other.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _kept_folder(config: pytest.Config, name: str) -> str:
    """Return a folder that later runs find again, or a temporary one where none can be kept."""
    with suppress(AttributeError, OSError):  # without the plugin, and without rights
        return str(config.cache.mkdir(name))
    folder = tempfile.mkdtemp(prefix=name)
    config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from passing over modules and tests again and again."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    gc.enable()
    return collected


@pytest.fixture(scope="session", autouse=True)
def native_code(pytestconfig: pytest.Config) -> Iterator[None]:
    """Compile into a folder of the tests, neither reading nor filling the one of the user.

    The folder is that of the tier, since LLVM optimizes loops a little and equations not at all in
    the fast one, and of the code that calls LLVM; on everything else, the names of its files
    depend. The full tier compiles as users do.
    """
    from flexure.solvers.native.llvm import library

    tier = os.environ["FLEXURE_TIER"]
    callers = [Path(__file__), *sorted(Path(library.__file__).parent.glob("*.py"))]
    digest = hashlib.blake2b(b"".join(each.read_bytes() for each in callers), digest_size=8)
    machine, name = library._Machine, f"native_code_of_the_{tier}_tier_{digest.hexdigest()}"
    compile_fully = machine.compile

    def compile_quickly(self: Any, text: str, level: int, passes: int, vectorized: bool) -> bytes:
        # Loops and lanes give the same numbers only where LLVM may contract operations of both;
        # lanes need its passes, since they would be misaligned on the stack.
        lanes = re.search(r"<\d+ x ", text) is not None
        level = min(level, lanes or " contract " in text)
        return compile_fully(self, text, level, min(passes, lanes), vectorized)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEXURE_CACHE", _kept_folder(pytestconfig, name))
        if tier == "fast":
            patch.setattr(machine, "compile", compile_quickly)
        yield
