"""Run the samples of the pages and the examples as other processors would.

    python .ci/other_processors.py [page or example ...]

What a page prints has to be the same on every machine. Each variant runs in a process of its own:

- ``no-fma``: native code for the oldest x86-64, without fused operations and with two lanes, NumPy
  without its vector code, one thread for BLAS and OpenBLAS's kernels of another processor;
- ``python``: without llvmlite, so that everything is interpreted or runs as Python;
- ``loaded``: as it is, beside processes that keep every core busy.

Exits with 1 if a sample prints something else than its page shows, or an example refuses its own
result. Slow (several minutes), so the tests do not run it; run it before a release.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from docs.samples import pages as all_pages  # noqa: E402

_VECTORS = "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"
_OLDEST = """
from llvmlite import binding
binding.get_host_cpu_name = lambda: "x86-64"
binding.get_host_cpu_features = binding.targets.FeatureMap
"""
VARIANTS = {
    "no-fma": (
        _OLDEST,
        {
            "NPY_DISABLE_CPU_FEATURES": _VECTORS,
            "OPENBLAS_CORETYPE": "Prescott",
            "OPENBLAS_NUM_THREADS": "1",
        },
    ),
    "python": ("import sys\nsys.modules['llvmlite'] = None\n", {}),
    "loaded": ("", {}),
}
_RUN = """
import os, pathlib, sys
sys.path.insert(0, {root!r})
os.environ["MPLBACKEND"] = "agg"
page = pathlib.Path({page!r})
if page.suffix == ".md":
    from docs.samples import run
    run(page, pathlib.Path.cwd())
else:
    import runpy
    sys.argv = [str(page)]
    runpy.run_path(str(page), run_name="__main__")
"""


def failure(page: Path, variant: str) -> str:
    """Run one page or example in a variant; return why it fails, or nothing."""
    prelude, environment = VARIANTS[variant]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", prelude + _RUN.format(root=str(ROOT), page=str(page))],
            cwd=folder,
            env=os.environ | environment | {"FLEXURE_CACHE": str(Path(folder) / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
    return "" if done.returncode == 0 else done.stderr[-1500:]


def main() -> int:
    """Run all pages and examples in all variants."""
    parser = argparse.ArgumentParser(description="Run samples as other processors would.")
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--variant", choices=VARIANTS, action="append")
    arguments = parser.parse_args()
    pages = [path.resolve() for path in arguments.pages] or [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
        *all_pages(),
        *sorted((ROOT / "examples").rglob("*.py")),
    ]
    failed = 0
    for variant in arguments.variant or VARIANTS:
        busy = [sys.executable, "-c", "while True: pass"]
        count = 2 * (os.cpu_count() or 1) if variant == "loaded" else 0
        load = [subprocess.Popen(busy) for _ in range(count)]
        try:
            for page in pages:
                why = failure(page, variant)
                print(variant, page.name, "differs" if why else "ok", why, flush=True)
                failed += bool(why)
        finally:
            for process in load:
                process.kill()
    print(f"{failed} of {len(pages) * len(arguments.variant or VARIANTS)} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
