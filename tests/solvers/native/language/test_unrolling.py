"""Loops of kernels that LLVM is to leave as they are."""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from flexure.solvers.native.language.language import Floats
from flexure.solvers.native.language.translation import Module
from flexure.solvers.native.llvm.library import Library
from tests.support.native.native import needs_llvmlite


def add_up(n: int, a: Floats) -> float:
    """Add numbers up, and double them up to the first that is negative."""
    total = 0.0
    for i in range(n):
        total += a[i]
    k = 0
    while k < n:
        if a[k] < 0.0:
            return total
        a[k] = 2.0 * a[k]
        k += 1
    return total


@needs_llvmlite
@pytest.mark.full  # LLVM unrolls nothing in the fast tier
def test_loops_that_are_left_as_they_are_take_less_code_for_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    results: list[list[float]] = []
    for unrolled in (None, ("add_up",), ()):
        folder = tmp_path / str(len(sizes))
        monkeypatch.setenv("FLEXURE_CACHE", str(folder))
        module = Module(unrolled=unrolled)
        module.translate(add_up, "add_up")
        library = Library(module.text, partial(str, module.text))
        function = library.function("add_up", ctypes.c_double, ctypes.c_int64, ctypes.c_void_p)
        a = np.arange(37.0)
        results.append([function(a.size, a.ctypes.data), *a])
        sizes.append(sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()))
    assert results[0] == results[1] == results[2] == [36 * 37 / 2, *np.arange(0.0, 74.0, 2.0)]
    assert sizes[0] == sizes[1] > 1.1 * sizes[2]
