"""`flexure doctor`: check the installation, or a model for implausible values."""

from __future__ import annotations

import math
import platform
import sys
from argparse import Namespace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from flexure import __version__
from flexure.commands import DONE, FAILED, FINDINGS
from flexure.commands.arguments.model_files import load_model
from flexure.commands.command_output import Report
from flexure.diagrams.checks.errors import FlexureError
from flexure.diagrams.values.tables import Table

#: Optional packages of each extra, and their purpose.
EXTRAS = {
    "fast": (("llvmlite",), "native code"),
    "progress": (("tqdm",), "progress bars"),
    "data": (("pandas", "xarray", "pyarrow"), "data frames, data sets, Parquet and Arrow"),
    "fmi": (("fmpy",), "FMUs as blocks"),
    "compiler": (("ziglang",), "FMUs for Windows, macOS and ARM"),
    "symbolic": (("sympy",), "equations for SymPy"),
    "optimal": (("casadi", "piqp"), "optimal motions and predictive control"),
    "mesh": (("scikit-fem", "meshio"), "flexible bodies from meshes"),
    "urdf": (("lxml",), "mechanisms from URDF and SDF files"),
    "drawings": (("ezdxf",), "drawings of parts as DXF"),
    "mjcf": (("mujoco",), "mechanisms from MJCF files"),
    "control": (("control",), "linear models for python-control"),
    "live": (("websockets",), "pages of live runs"),
    "notebook": (("anywidget",), "widgets in notebooks"),
    "serial": (("pyserial",), "serial lines in live runs"),
    "can": (("python-can",), "CAN in live runs"),
    "cluster": (("dask", "cloudpickle"), "studies on many machines"),
}
_CORE = ("numpy", "scipy", "networkx", "matplotlib")
_CLOSE = 1e-5  # error against the closed form, with the default tolerances


def run(report: Report, arguments: Namespace) -> int:
    """Check the installation, or a model for implausible values."""
    if arguments.model is None:
        return _installation(report)
    from flexure.solvers.analysis.plausibility.doctor import doctor

    model = load_model(arguments)
    found = doctor(model.system, model.context)
    report.say(str(found))
    report.add(
        model=model.word,
        system=model.system.label,
        ok=found.ok,
        findings=found.table(),
        unchecked=found.unchecked,
    )
    return DONE if found.ok else FINDINGS


def _installation(report: Report) -> int:
    """Report packages, compiler, cache and the results of two self tests."""
    packages = _packages()
    facts: dict[str, Any] = {
        "flexure": f"{__version__} in {_folder()}",
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.machine()}",
        "native code": _compiler(),
        "cache": _cache(),
    }
    for name, fact in facts.items():
        report.say(f"{name:<12} {fact}")
    report.say()
    report.say(packages)
    report.say()
    tests = {"as Python": _self_test("python"), "as native code": _self_test("native")}
    for how, outcome in tests.items():
        report.say(f"self test {how}: {outcome}")
    report.add(**facts, packages=packages, self_test=tests)
    return FAILED if any(each.startswith("failed") for each in tests.values()) else DONE


def _folder() -> str:
    import flexure

    return str(next(iter(flexure.__path__)))


def _packages() -> Table:
    """Return a table of the packages that Flexure uses."""
    rows = [(name, _version(name), "", "") for name in _CORE]
    for extra, (names, purpose) in EXTRAS.items():
        rows += [(name, _version(name), extra, purpose) for name in names]
    return Table(("package", "version", "extra", "for"), rows)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _compiler() -> str:
    """Return the compiler and its processor in words."""
    from flexure.solvers.native.llvm.library import available, register_width

    if not available():
        return "not available without llvmlite: pip install 'flexure[fast]'"
    try:
        from llvmlite import binding

        llvm = ".".join(map(str, binding.llvm_version_info))
        return f"LLVM {llvm} for {binding.get_host_cpu_name()}, {register_width()} numbers at once"
    except Exception as error:  # such as a library for another system
        return f"not available, because llvmlite fails: {error!r:.200}"


def _cache() -> str:
    """Return the folder of cached native code and its size in words."""
    from flexure.solvers.native.llvm import cache

    place = cache.folder()
    if place is None:
        return "off"
    try:
        sizes = [file.stat().st_size for file in place.iterdir()]
    except FileNotFoundError:
        return f"{place} (not created yet)"
    except OSError as error:
        return f"{place}, which cannot be read: {error.strerror}"
    return f"{place}, {len(sizes)} files, {sum(sizes) / 2**20:.1f} MiB"


def _self_test(compiled: Any) -> str:
    """Simulate a first-order lag, and compare it with its closed form."""
    from flexure.blocks.linear_systems.continuous import FirstOrderLag
    from flexure.solvers.native.llvm.library import available
    from flexure.solvers.simulation.simulation import simulate

    if compiled == "native" and not available():
        return "skipped, because native code is not available"
    try:
        lag = FirstOrderLag("lag", 0.5)
        context = lag.create_default_context()
        context.set("u", 1.0)
        result = simulate(lag, 1.0, context=context, compiled=compiled)
    except FlexureError as error:
        return f"failed: {error}"
    off = abs(float(result.context.continuous_state[0]) - (1.0 - math.exp(-2.0)))
    return f"{'passed' if off < _CLOSE else 'failed'}, error {off:.0e}"
