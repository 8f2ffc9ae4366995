"""FMUs for tests: the Reference FMUs beside the checkout, and a small one that is compiled here."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[3]
_PLACES = [each / "shared/reference/fmus" for each in _ROOT.parents]
#: Folder of the Reference FMUs of the Modelica Association; None where they are not there.
REFERENCE = next((each for each in _PLACES if each.is_dir()), None)

DESCRIPTION = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="small" guid="{small}" numberOfEventIndicators="1">
  <ModelExchange modelIdentifier="small" providesDirectionalDerivative="true"/>
  <UnitDefinitions><Unit name="m"/><Unit name="m/s"/><Unit name="1/s"/></UnitDefinitions>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="1" causality="local" initial="exact">
      <Real start="2" unit="m"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2" causality="local" initial="calculated">
      <Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="force.u" valueReference="3" causality="input" description="push">
      <Real start="0" unit="m/s"/></ScalarVariable>
    <ScalarVariable name="a" valueReference="4" causality="parameter" variability="tunable">
      <Real start="1" min="0" max="10" unit="1/s"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="5" causality="output" initial="calculated">
      <Real unit="m"/></ScalarVariable>
    <ScalarVariable name="n" valueReference="6" causality="output" variability="discrete"
      initial="calculated"><Integer/></ScalarVariable>
    <ScalarVariable name="trouble" valueReference="7" causality="parameter" variability="fixed">
      <Real start="0"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="5" dependencies="1 3"/><Unknown index="6" dependencies=""/></Outputs>
    <Derivatives><Unknown index="2" dependencies="1 3"/></Derivatives>
    <InitialUnknowns><Unknown index="2"/><Unknown index="5"/><Unknown index="6"/></InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>
"""


def reference(name: str, version: str = "3.0") -> Path:
    """Return the path of a Reference FMU, or skip the test."""
    if REFERENCE is None:
        pytest.skip("the Reference FMUs are not beside the checkout, in ../shared")
    pytest.importorskip("fmpy")
    return REFERENCE / version / f"{name}.fmu"


def small_fmu(folder: Path, description: str = DESCRIPTION) -> Path:
    """Compile the small FMU into a folder, or skip the test where there is no compiler."""
    pytest.importorskip("fmpy")
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    binary = folder / "small.so"
    source = Path(__file__).with_name("small_fmu.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", str(source), "-o", str(binary)], check=True
    )
    path = folder / "small.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", description)
        archive.write(binary, "binaries/linux64/small.so")
    return path
