"""What all tests run under, the doctests of the package included."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest

# Figures go to files, also on a machine that has a screen.
os.environ["MPLBACKEND"] = "Agg"


def pytest_configure(config: pytest.Config) -> None:
    """Say which tier runs before tests are imported, and compile each Python file once in a run.

    Batteries choose their cases by the tier (`tests/support/tiers.py`). Where bytecode is not to be
    kept beside its source, the folder of pytest keeps it: processes of this run share it, those
    that tests start included, and so do later runs.
    """
    os.environ["FLEXURE_TIER"] = "fast" if "not full" in config.option.markexpr else "full"
    if sys.dont_write_bytecode:
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = _bytecode_folder(config)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_cmdline_main(config: pytest.Config) -> None:
    """Give each file to one of several processes, as its tests share what fixtures have made."""
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "loadfile"
        config.option.loadscopereorder = False  # the files at the end are short


def _bytecode_folder(config: pytest.Config) -> str:
    """Return a folder in pytest's own, or a temporary one where that is not to be had."""
    with suppress(AttributeError, OSError):  # switched off, or not writable
        return str(config.cache.mkdir("bytecode"))
    folder = tempfile.mkdtemp(prefix="bytecode")
    config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
    return folder


def pytest_collection_finish() -> None:
    """Keep the garbage collector from passing over modules and tests again and again."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def cache_of_native_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile into a folder of this run, neither reading nor filling the one of the user."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # several processes run the tests, and share it
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEXURE_CACHE", str(folder / "native_code"))
        yield


@pytest.fixture(scope="session", autouse=True)
def effort_of_compilers() -> Iterator[None]:
    """Let LLVM run few of its passes in the fast tier; the full tier compiles as users do."""
    from flexure.solvers.native.llvm.library import _Machine

    compile_fully = _Machine.compile

    def compile_quickly(
        machine: _Machine, text: str, level: int, passes: int, vectorized: bool
    ) -> bytes:
        return compile_fully(machine, text, level, min(passes, 1), vectorized)

    with pytest.MonkeyPatch.context() as patch:
        if os.environ["FLEXURE_TIER"] == "fast":
            patch.setattr(_Machine, "compile", compile_quickly)
        yield
