"""Functional Mock-up Units: what FMPy finds in them, and how they run in it and in libcosim."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from ctypes import byref, c_double, c_int
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import Terminate, Witness
from tests.support.native.exported_fmus import (
    ALLOWED,
    Ball,
    door,
    exact_run,
    instance,
    run,
    sampled,
    saved,
    servo,
    worst_error,
)
from tests.support.tiers import by_tier

END = 2.0
RTOL = 1e-8
#: What is exported, and what is compared.
CASES: dict[str, tuple[Callable[[], fx.System], list[str]]] = {
    "servo": (servo, ["door.axis.angle", "pid.u"]),
    "ball": (Ball, ["height"]),
    "sampled": (sampled, ["door.axis.angle", "pid.u"]),
    "door": (door, ["axis.angle"]),
}


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], tuple[fx.System, str]]:
    """Return a function that exports a case once in each version."""
    made: dict[tuple[str, str], tuple[fx.System, str]] = {}

    def of(name: str, version: str = "2.0") -> tuple[fx.System, str]:
        if (name, version) not in made:
            build, signals = CASES[name]
            system = build()
            path = saved(tmp_path_factory.mktemp(name), system, signals=signals, version=version)
            made[name, version] = system, path
        return made[name, version]

    return of


fmpy = pytest.importorskip("fmpy")
FMU3Slave = pytest.importorskip("fmpy.fmi3").FMU3Slave
Units = Callable[..., tuple[Any, str]]


TRIED = [("servo", "2.0"), ("sampled", "3.0"), ("ball", "2.0"), ("servo", "3.0"), ("door", "2.0")]


@pytest.mark.parametrize(("name", "version"), by_tier(fast=TRIED[:2], full=TRIED))
def test_units_have_no_findings_and_run_as_in_flexure(
    name: str, version: str, units: Units
) -> None:
    from fmpy.validation import validate_fmu

    system, path = units(name, version)
    assert validate_fmu(path) == []
    exact = exact_run(system, system.create_default_context(), END)
    for kind, rtol in (("me", 0.1 * RTOL), ("cs", RTOL)):  # errors of CVode add up
        table, allowed = run(path, kind, END, rtol), ALLOWED[kind]
        error = worst_error(table, exact, CASES[name][1])
        assert error < allowed * RTOL, (kind, error / RTOL)


@pytest.mark.full
def test_the_ball_keeps_every_bounce(units: Units) -> None:
    ball, path = units("ball")
    exact = fx.simulate(ball, 3.0, rtol=1e-11, atol=1e-14)
    table = run(path, "me", 3.0, RTOL, record_events=True)
    bounces = np.unique(np.round(table["time"][1:][np.diff(table["time"]) == 0.0], 10))
    assert len(bounces) == exact.statistics.witness_events >= 4
    speed, times = 3.7 * np.sqrt(2.0 / 3.7), [np.sqrt(2.0 / 3.7)]
    while len(times) < len(bounces):  # in closed form
        speed *= 0.65
        times.append(times[-1] + 2.0 * speed / 3.7)
    np.testing.assert_allclose(bounces, times, rtol=1e-7)


def test_a_unit_needs_no_python(units: Units, tmp_path: Path) -> None:
    _, path = units("servo")
    with zipfile.ZipFile(path) as archive:
        archive.extract("binaries/linux64/servo.so", tmp_path)
    library = tmp_path / "binaries" / "linux64" / "servo.so"
    needed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    assert {line.split()[0].split("/")[-1].split(".")[0] for line in needed.splitlines()} <= {
        *("linux-vdso", "libm", "libc", "ld-linux-x86-64")
    }
    code = (
        "import sys, fmpy; table = fmpy.simulate_fmu(sys.argv[1], stop_time=1.0, "
        "fmi_type='CoSimulation'); print(table[-1][1])"
    )
    shown = subprocess.run(
        [sys.executable, "-I", "-c", code, path],
        env={"PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(shown.stdout) > 0.1


def test_units_without_continuous_states_run(tmp_path: Path) -> None:
    pid = fx.PIDController("pid", period=0.01, kp=2.0, ki=3.0)
    context = pid.create_default_context()
    for port, value in (("setpoint", 1.0), ("measurement", 0.4), ("feedforward", 0.0)):
        context.set(port, value)
    path = saved(tmp_path, pid, context)
    exact = exact_run(pid, context, 0.1)
    for kind in ("me", "cs"):
        assert worst_error(run(path, kind, 0.1, RTOL), exact, ["u"]) < 1e-12, kind


@pytest.mark.full
def test_libcosim_steps_a_unit(units: Units) -> None:
    reason = "libcosimpy is not installed (pip install libcosimpy)"
    execution = pytest.importorskip("libcosimpy.CosimExecution", reason=reason).CosimExecution
    from libcosimpy.CosimLogging import CosimLogLevel, log_output_level
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    log_output_level(CosimLogLevel.WARNING)
    system, path = units("servo")
    step = 0.005
    master = execution.from_step_size(int(step * 1e9))
    number = master.add_local_slave(CosimLocalSlave(path, "servo"))
    observer = CosimObserver.create_last_value()
    assert master.add_observer(observer)
    names = [each.name.decode() for each in master.slave_variables(number)]
    references = [each.reference for each in master.slave_variables(number)]
    angle = references[names.index("door.axis.angle")]
    count = int(END / step)
    assert master.step(count)
    exact = fx.simulate(system, END, rtol=1e-10)
    found = observer.last_real_values(number, [angle])[0]
    assert found == pytest.approx(exact["door.axis.angle"][-1], abs=1e-4)


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_directional_derivatives_are_those_of_linearize(
    version: str, units: Units, tmp_path: Path
) -> None:
    system, path = units("door", version)
    unit, numbers = instance(path, tmp_path)
    context = system.create_default_context()
    linear = fx.linearize(system, context, inputs=["motor"], outputs=["axis.angle"])
    states = [name for name in numbers if f"der({name})" in numbers]
    knowns = [numbers[name] for name in (*states, "motor")]
    unknowns = [numbers[name] for name in (*(f"der({s})" for s in states), "axis.angle")]
    J = np.block([[linear.A, linear.B], [linear.C, linear.D]])
    product = unit.getDirectionalDerivative
    columns = [product(unknowns, [each], [1.0]) for each in knowns]
    np.testing.assert_allclose(np.transpose(columns), J, rtol=1e-12, atol=1e-13)
    seed = [0.5, -2.0, 3.0]
    np.testing.assert_allclose(product(unknowns, knowns, seed), J @ seed, rtol=1e-12)
    if version == "3.0":
        found = unit.getAdjointDerivative(unknowns, knowns, seed)
        np.testing.assert_allclose(found, J.T @ seed, rtol=1e-12)


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_a_serialized_state_goes_on_in_another_instance(
    version: str, units: Units, tmp_path: Path
) -> None:
    _, path = units("sampled" if version == "3.0" else "servo", version)
    one, numbers = instance(path, tmp_path, "cs")
    other, _ = instance(path, tmp_path, "cs", "two")
    get = one.getReal if version == "2.0" else one.getFloat64
    see = other.getReal if version == "2.0" else other.getFloat64
    wanted = [numbers["door.axis.angle"], numbers["pid.u"]]

    def steps(unit: Any, begin: float, count: int) -> None:
        for k in range(count):
            unit.doStep(begin + 0.05 * k, 0.05)

    steps(one, 0.0, 15)
    ways = "FMUstate" if version == "2.0" else "FMUState"
    read = "deSerializeFMUstate" if version == "2.0" else "deserializeFMUState"
    state = getattr(one, f"get{ways}")()
    content = getattr(one, f"serialize{ways}")(state)
    before = get(wanted)
    steps(one, 0.75, 10)
    after = get(wanted)
    assert see(wanted)[0] == 0.0 < before[0] < after[0]  # instances share nothing
    getattr(other, f"set{ways}")(getattr(other, read)(content))
    assert see(wanted) == before
    steps(other, 0.75, 10)
    assert see(wanted) == after
    getattr(one, f"set{ways}")(state)
    assert get(wanted) == before
    getattr(one, f"free{ways}")(state)


def test_variables_say_what_they_are(tmp_path: Path) -> None:
    builder = fx.DiagramBuilder("rig")
    limit = fx.Saturation("limit", -np.inf, 2.0)
    matrix = fx.StateSpace("plant", [[0.0, 1.0], [-2.0, -3.0]], [[0.0], [1.0]], [[1.0, 0.0]])
    builder.add_all(limit, matrix)
    builder.connect("limit.y", "plant.u")
    builder.export_input("limit.u", name="force")
    builder.export_output("plant.y", name="position")
    rig = builder.build()
    description = fx.to_fmu(rig, platforms=()).files["modelDescription.xml"].decode()
    root = ET.fromstring(description)
    rows = {each.get("name"): each for each in root.iter("ScalarVariable")}
    assert rows["force"].get("causality") == "input"
    assert rows["position"].get("causality") == "output"
    assert rows["plant.y"].get("causality") == "local"
    lower = rows["limit.lower"].find("Real")
    assert lower is not None
    assert (lower.get("start"), lower.get("min")) == ("-INF", None)
    assert {f"plant.A[{i},{j}]" for i in range(2) for j in range(2)} <= set(rows)
    arrays = ET.fromstring(
        fx.to_fmu(rig, platforms=(), version="3.0").files["modelDescription.xml"].decode()
    )
    sizes = {
        each.get("name"): [part.get("start") for part in each.iter("Dimension")]
        for each in arrays.iter("Float64")
    }
    assert (sizes["plant.A"], sizes["plant.x"], sizes["force"]) == (["2", "2"], ["2"], [])
    lag = fx.to_fmu(fx.FirstOrderLag("lag", 2.0), platforms=()).files["modelDescription.xml"]
    root = ET.fromstring(lag.decode())
    constant = next(e for e in root.iter("ScalarVariable") if e.get("name") == "time_constant")
    assert constant.get("variability") == "tunable"
    real, unit = constant.find("Real"), root.find("UnitDefinitions/Unit[@name='s']/BaseUnit")
    assert real is not None
    assert unit is not None
    assert (real.get("start"), real.get("min"), unit.attrib) == ("2.0", "0.0", {"s": "1"})
    structure = root.find("ModelStructure/Derivatives/Unknown")
    assert structure is not None
    assert len(str(structure.get("dependencies")).split()) == 2  # the state and the input


def test_signals_inputs_and_parameters_are_chosen() -> None:
    plant = door()
    unit = fx.to_fmu(
        plant, signals=["axis.angle"], inputs=["motor"], parameters="hinge.spring_constant",
        platforms=(),
    )  # fmt: skip
    assert unit.inputs == ["motor"]
    assert unit.outputs == ["axis.angle"]
    assert unit.parameters == ["hinge.spring_constant"]
    again = fx.to_fmu(
        plant, signals=["axis.angle"], inputs=["motor"], parameters="hinge.spring_constant",
        platforms=(),
    )  # fmt: skip
    assert again.files == unit.files  # with the same token


def test_numbers_out_of_bounds_are_refused(units: Units, tmp_path: Path) -> None:
    _, path = units("ball")
    unit, numbers = instance(path, tmp_path)
    restitution = [numbers["restitution"]]
    for bad in (-0.1, 1.5, np.nan):
        with pytest.raises(Exception, match="fmi2SetReal"):
            unit.setReal(restitution, [bad])
    with pytest.raises(Exception, match="fmi2SetReal"):
        unit.setReal([numbers["der(x[1])"]], [1.0])
    assert unit.getReal(restitution) == [0.65]
    unit.setReal(restitution, [0.5])
    assert unit.getReal(restitution) == [0.5]


class Odd(fx.LeafSystem):
    """A block that NumPy alone cannot compute."""

    def __init__(self) -> None:
        super().__init__("odd")
        self.x = self.declare_continuous_state(q=1)

    def calc_time_derivatives(self, context: fx.Context) -> Any:
        return [float(self.x(context)[0])]


def test_what_cannot_be_exported_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = fx.DiagramBuilder("rig")
    builder.add(Odd())
    with pytest.raises(fx.errors.TraceError, match=r"test_fmu\.py:\d+(.|\n)*'odd'"):
        fx.to_fmu(builder.build(), platforms=())
    lag = fx.FirstOrderLag("lag", 2.0)
    bad: list[tuple[dict[str, Any], str]] = [
        ({"kinds": ("me", "se")}, "kinds.*'me', 'cs'"),
        ({"kinds": "me"}, "kinds"),
        ({"kinds": ()}, "at least one of the kinds"),
        ({"version": "1.0"}, "version.*'2.0'"),
        ({"version": 2.0}, "version"),
        ({"platforms": ("amiga",)}, "platforms.*'linux'"),
        ({"platforms": (), "sources": False}, "platforms to compile for"),
        ({"sources": "yes"}, "sources"),
    ]
    for options, words in bad:
        with pytest.raises(fx.errors.ValueRefusedError, match=words):
            fx.to_fmu(lag, **options)
    for name in ("signals", "inputs", "parameters"):
        unknown: dict[str, Any] = {name: ["lag.z"]}
        with pytest.raises(fx.errors.UnknownNameError, match="z"):
            fx.to_fmu(lag, platforms=(), **unknown)
    monkeypatch.setattr("shutil.which", lambda *_: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    with pytest.raises(fx.errors.MissingExtraError, match=r"flexure\[compiler\].*platforms=\(\)"):
        fx.to_fmu(lag)
    assert fx.to_fmu(lag, platforms=()).files  # sources alone need no compiler


def test_the_compiler_that_the_environment_names_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.write_text("#!/bin/sh\necho no C today >&2\nexit 1\n", encoding="utf-8")
    own.chmod(0o755)
    monkeypatch.setenv("CC", str(own))
    with pytest.raises(fx.errors.NativeCodeError, match=r"own' to compile.*no C today"):
        fx.to_fmu(fx.FirstOrderLag("lag", 2.0))


@pytest.mark.full
def test_the_command_exports_a_model(tmp_path: Path) -> None:
    model = "import flexure as fx\n\ndef build():\n    return fx.FirstOrderLag('lag', 2.0)\n"
    (tmp_path / "lag.py").write_text(model, encoding="utf-8")
    words = ["export", "lag.py", "--fmu", "lag.fmu", "--platforms", "linux", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "flexure", *words],
        env=os.environ | {"PYTHONPATH": str(Path(fx.__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["parameters"] == ["time_constant", "gain"]
    assert zipfile.is_zipfile(tmp_path / "lag.fmu")


@pytest.mark.full
def test_names_that_c_has_are_no_names_of_models(tmp_path: Path) -> None:
    """Keywords, functions of the C library, and those that every model contains."""
    cases = (("int", "2.0"), ("settle", "2.0"), ("boolean", "3.0"), ("Tür", "3.0"))
    for name, version in cases:
        files = fx.to_fmu(fx.FirstOrderLag(name, 2.0), platforms=(), version=version).files
        sources = {path[8:]: text for path, text in files.items() if path.startswith("sources/")}
        for path, text in sources.items():
            (tmp_path / path).write_bytes(text)
        command = [
            "gcc",
            "-std=c99",
            "-Wall",
            "-fsyntax-only",
            *(p for p in sources if p[-2:] == ".c"),
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), (name, done.stderr)


#: What begins a library: where a number is, how it is packed, and what it is.
PE, ELF, MACH = [(0, "2s", b"MZ")], [(0, "4s", b"\x7fELF"), (16, "<H", 3)], [(0, "<I", 0xFEEDFACF)]
FORMATS: dict[str, tuple[str, str, list[tuple[int, str, Any]]]] = {
    "windows": ("win64", "x86_64-windows/lag.dll", PE),
    "linux": ("linux64", "x86_64-linux/lag.so", [*ELF, (18, "<H", 62)]),
    "linux-arm": ("aarch64-linux", "aarch64-linux/lag.so", [*ELF, (18, "<H", 183)]),
    "macos": ("darwin64", "x86_64-darwin/lag.dylib", [*MACH, (4, "<I", 0x01000007)]),
    "macos-arm": ("darwin64", "aarch64-darwin/lag.dylib", [*MACH, (4, "<I", 0x0100000C)]),
}


def has_format(library: bytes, fields: list[tuple[int, str, Any]]) -> bool:
    return all(struct.unpack_from(kind, library, at) == (value,) for at, kind, value in fields)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_units_hold_a_library_of_the_right_format_for_each_platform() -> None:
    """Windows only with ``FLEXURE_PLATFORMS=all``: compiling its libraries takes minutes."""
    reason = "needs the compiler for other platforms (pip install 'flexure[compiler]')"
    pytest.importorskip("ziglang", reason=reason)
    lag = fx.FirstOrderLag("lag", 2.0)
    whole = os.environ.get("FLEXURE_PLATFORMS") == "all"
    formats = {name: each for name, each in FORMATS.items() if whole or name != "windows"}
    files = fx.to_fmu(lag, version="3.0", platforms=tuple(formats), sources=False).files
    for folder, path, fields in formats.values():
        library = files.pop(f"binaries/{path}")
        assert has_format(library, fields), path
        if fields is PE:
            (at,) = struct.unpack_from("<I", library, 0x3C)
            assert has_format(library, [(at, "4s", b"PE\0\0"), (at + 4, "<H", 0x8664)])
        assert b"fmi3DoStep" in library, folder
    assert not [name for name in files if "binaries" in name]
    files = fx.to_fmu(lag, platforms=("macos", "macos-arm"), sources=False).files
    assert [name for name in files if "binaries" in name] == ["binaries/darwin64/lag.dylib"]
    both = files["binaries/darwin64/lag.dylib"]  # for either processor
    assert struct.unpack_from(">2I", both) == (0xCAFEBABE, 2)
    for k, name in enumerate(("macos", "macos-arm")):
        processor, _, at, size, _ = struct.unpack_from(">5I", both, 8 + 20 * k)
        assert has_format(both[at : at + size], FORMATS[name][2])
        assert processor == FORMATS[name][2][1][2]


class Escape(fx.LeafSystem):
    """x' = x², which is infinite at t = 1, and the end of a run at x = 2."""

    def __init__(self, name: str, ends: bool) -> None:
        super().__init__(name)
        self.state = self.declare_continuous_state(q=1, default=[1.0])
        self.declare_vector_output("y", 1, self.state.q)
        if ends:
            self.declare_publish(self.stop, Witness(lambda c: self.state(c)[0] - 2.0, "rising"))

    def calc_time_derivatives(self, context: fx.Context) -> Any:
        return self.state(context) ** 2

    def stop(self, context: fx.Context) -> Terminate:
        return Terminate("x is 2")


@pytest.mark.full
def test_steps_end_and_fail_as_the_standard_says(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for ends, last in ((True, 0.5), (False, 1.0)):
        for version in by_tier(fast=("3.0" if ends else "2.0",), full=("2.0", "3.0")):
            system = Escape(f"escape_{'ends' if ends else 'fails'}", ends)
            path = saved(tmp_path, system, version=version)
            unit, numbers = instance(path, tmp_path, "cs", version)
            capfd.readouterr()
            if version == "3.0" and ends:
                _, terminate, early, time = unit.doStep(0.0, 2.0)
                assert (terminate, early) == (True, True)
                assert time == pytest.approx(last, rel=1e-6)
                continue
            with pytest.raises(Exception, match="status 2"):  # discarded
                unit.doStep(0.0, 2.0)
            if version == "2.0":
                time, ended = c_double(), c_int()
                unit.fmi2GetRealStatus(unit.component, 2, byref(time))
                unit.fmi2GetBooleanStatus(unit.component, 3, byref(ended))
                assert time.value == pytest.approx(last, rel=1e-5)
                assert bool(ended.value) == ends
            if not ends:
                assert f"Cannot simulate '{system.name}' beyond t = " in capfd.readouterr().out
            assert numbers


def test_tools_see_values_inside_of_a_step_and_return_early(units: Units, tmp_path: Path) -> None:
    system, path = units("sampled", "3.0")
    description = fmpy.read_model_description(path)
    unpacked = fmpy.extract(path, unzipdir=tmp_path / "unpacked")
    identifier = description.coSimulation.modelIdentifier
    unit = FMU3Slave(
        guid=description.guid, unzipDirectory=unpacked, modelIdentifier=identifier,
        instanceName="one",
    )  # fmt: skip
    seen: list[float] = []
    values: list[Any] = []
    references = {each.name: each.valueReference for each in description.modelVariables}

    def update(_: Any, time: float, *rest: Any) -> None:
        seen.append(time)
        values.append(unit.getFloat64([references["door.axis.angle"]])[0])
        assert rest[:4] == (False, True, True, time < 1.0)  # a finished step, where tools may stop
        if time > 0.71:
            rest[4][0] = True
            rest[5][0] = time

    unit.instantiate(earlyReturnAllowed=True, intermediateUpdate=update)
    unit.enterInitializationMode(startTime=0.0, tolerance=1e-8)
    unit.exitInitializationMode()
    _, terminate, early, time = unit.doStep(0.0, 1.0)
    assert (terminate, early) == (False, True)
    ticks = 0.02 * np.arange(1, 36)
    assert np.abs(np.subtract.outer(ticks, seen)).min(axis=1).max() < 1e-12
    assert len(seen) > len(ticks) + 3  # and steps of the integrator between them
    assert 0.71 < time == seen[-1] < 0.73
    exact = fx.simulate(system, 1.0, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(values, exact.sample("door.axis.angle", seen), atol=1e-7)
    while time < 1.0:  # on from where it returned
        time = unit.doStep(time, 1.0 - time)[3]
    angle = unit.getFloat64([references["door.axis.angle"]])[0]
    assert angle == pytest.approx(exact["door.axis.angle"][-1], abs=1e-6)
