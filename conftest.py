"""What all tests run under, the doctests of the package included."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

# Figures go to files, also on a machine that has a screen.
os.environ["MPLBACKEND"] = "Agg"


@pytest.fixture(scope="session", autouse=True)
def cache_of_native_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile into a folder of this run, neither reading nor filling the one of the user."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # several processes run the tests, and share it
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEXURE_CACHE", str(folder / "native_code"))
        yield
