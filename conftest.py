"""What all tests run under, the doctests of the package included."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial

import pytest

# Figures go to files, also on a machine that has a screen.
os.environ["MPLBACKEND"] = "Agg"


def pytest_configure(config: pytest.Config) -> None:
    """Say which tier runs before tests are imported, and compile each Python file once in a run.

    Batteries choose their cases by the tier (`tests/support/tiers.py`). The processes that run the
    tests, and those that tests start, share what is compiled, also where bytecode is not to be kept
    beside its source.
    """
    os.environ["FLEXURE_TIER"] = "fast" if "not full" in config.option.markexpr else "full"
    if sys.dont_write_bytecode:
        folder = tempfile.mkdtemp(prefix="bytecode")
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


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
