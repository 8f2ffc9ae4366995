"""Where files are: three folders in one namespace, tests in the rooms of the code, none long."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("blocks", "diagrams", "solvers")
MOST_LINES = 600
MOST_FILES = 15
MOST_IN_A_CIRCLE = 8  # files that know each other, imports for types included
LINKS_AS_GIT_WRITES_THEM_WITHOUT_SYMLINKS = {folder: f"../{folder}" for folder in FOLDERS}

IMPORT_EVERYTHING = """
import importlib, json, pkgutil, sys
import flexure
for module in pkgutil.walk_packages(flexure.__path__, "flexure."):
    importlib.import_module(module.name)
print(json.dumps({name: getattr(module, "__file__", None) for name, module in sys.modules.items()}))
"""


def run_python(code: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def modules_in_the_tree() -> Iterator[str]:
    """Name every module below flexure/ by its path, links followed."""
    for folder, _, files in os.walk(ROOT / "flexure", followlinks=True):
        for file in files:
            if file.endswith(".py"):
                parts = Path(folder, file).relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts).removesuffix(".__init__")


@pytest.fixture
def checkout_without_links(tmp_path: Path) -> Path:
    checkout = tmp_path / "checkout"
    (checkout / "flexure").mkdir(parents=True)
    shutil.copy(ROOT / "flexure" / "__init__.py", checkout / "flexure")
    return checkout


@pytest.mark.parametrize("folder", FOLDERS)
def test_link_is_relative_and_leads_to_its_folder(folder: str) -> None:
    link = ROOT / "flexure" / folder
    assert link.readlink() == Path("..", folder)
    assert link.samefile(ROOT / folder)


@pytest.mark.parametrize("folder", FOLDERS)
def test_bare_import_is_refused_with_the_right_name(folder: str) -> None:
    outcome = run_python(f"import {folder}")
    assert outcome.returncode != 0
    assert f"ImportError: write `import flexure.{folder}`" in outcome.stderr


def test_every_package_is_listed_for_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {
        ".".join(Path(folder).relative_to(ROOT).parts)
        for folder, _, files in os.walk(ROOT / "flexure", followlinks=True)
        if any(file.endswith(".py") for file in files)
    }
    assert set(project["tool"]["setuptools"]["packages"]) == packages


@pytest.mark.full
def test_every_module_is_imported_and_under_one_name_only() -> None:
    outcome = run_python(IMPORT_EVERYTHING)
    assert outcome.returncode == 0, outcome.stderr
    sources = [ROOT / folder for folder in ("flexure", *FOLDERS)]
    ours = {
        name
        for name, file in json.loads(outcome.stdout).items()
        if file and any(Path(file).resolve().is_relative_to(source) for source in sources)
    }
    assert ours == set(modules_in_the_tree())


def test_importing_flexure_loads_no_slow_or_optional_package() -> None:
    slow = {"matplotlib", "networkx", "scipy.integrate", "pandas", "xarray", "tqdm"}
    outcome = run_python(f"import sys, flexure; print(sorted({slow} & set(sys.modules)))")
    assert outcome.stdout.strip() == "[]", outcome.stderr


@pytest.mark.full
def test_building_and_running_a_divided_leaf_loads_no_slow_package() -> None:
    slow = {"matplotlib", "networkx", "scipy", "ssl", "pandas", "xarray", "tqdm"}
    outcome = run_python(
        "import sys, flexure as fx\n"
        "builder = fx.PlantBuilder('plant')\n"
        "tip = builder.add_body('tip', fx.SpatialInertia(1.0, [0, 0, 0], [1, 1, 1]))\n"
        "joint = builder.add_joint(fx.PlanarJoint('joint', builder.world, tip))\n"
        "joint.default_positions = [0.1, 0.0, 0.0]\n"
        "section = fx.sections.RectangleSection(width=0.01, thickness=0.001)\n"
        "leaf = fx.Beam('leaf', builder.world, tip, section=section, length=0.1,\n"
        "               material=fx.Material(2e11, poissons_ratio=0.3, density=7800.0),\n"
        "               planar=True, segments=4)\n"
        "builder.add_force_element(leaf)\n"
        "fx.simulate(builder.build(), 1e-4)\n"
        f"print(sorted({slow} & set(sys.modules)))"
    )
    assert outcome.stdout.strip() == "[]", outcome.stderr


@pytest.mark.parametrize("links", [LINKS_AS_GIT_WRITES_THEM_WITHOUT_SYMLINKS, {}])
def test_checkout_without_links_fails_with_the_repair(
    links: dict[str, str], checkout_without_links: Path
) -> None:
    for name, text in links.items():
        (checkout_without_links / "flexure" / name).write_text(text, encoding="utf-8")
    outcome = run_python("import flexure", checkout_without_links)
    assert outcome.returncode != 0
    assert "ImportError: flexure/blocks, flexure/diagrams and flexure/solvers" in outcome.stderr
    assert "`git config core.symlinks true`" in outcome.stderr
    assert "`git checkout -- flexure`" in outcome.stderr


@pytest.mark.full
@pytest.mark.skipif(shutil.which("git") is None, reason="the repair is made with git")
def test_the_repair_brings_the_links_back(checkout_without_links: Path, tmp_path: Path) -> None:
    # Neither a surrounding git command (a hook, say) nor the user's own settings reach this one.
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(folder: Path, *arguments: str) -> None:
        identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org"]
        command = ["git", *identity, *arguments]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)

    origin, clone = checkout_without_links, tmp_path / "clone"
    for folder in FOLDERS:
        shutil.copytree(
            ROOT / folder, origin / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
        (origin / "flexure" / folder).symlink_to(Path("..", folder), target_is_directory=True)
    git(origin, "init")
    git(origin, "add", ".")
    git(origin, "commit", "--message", "links")
    git(origin, "clone", "--config", "core.symlinks=false", ".", str(clone))
    assert run_python("import flexure", clone).returncode != 0

    git(clone, "config", "core.symlinks", "true")
    git(clone, "checkout", "--", "flexure")
    outcome = run_python("import flexure; print(flexure.__file__)", clone)
    assert outcome.stdout.strip() == str(clone / "flexure" / "__init__.py"), outcome.stderr


# Rooms -------------------------------------------------------------------------------------------


def test_tests_are_in_a_room_of_the_code() -> None:
    """What tests/solvers/results/ holds is about solvers/results/, and so on."""
    tests = ROOT / "tests"
    rooms = {test.parent for folder in FOLDERS for test in (tests / folder).rglob("test_*.py")}
    assert len(rooms) > 10
    for room in rooms:
        assert any((ROOT / room.relative_to(tests)).glob("*.py")), f"{room} has no code"


def test_no_file_is_long() -> None:
    folders = (*FOLDERS, "flexure", "tests", "examples", "benchmarks", ".ci")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 300
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert {str(file): lines for file, lines in lengths.items() if lines > MOST_LINES} == {}


def test_no_room_is_crowded() -> None:
    folders = (*FOLDERS, "flexure", "tests", "examples", "benchmarks")
    rooms = {file.parent for folder in folders for file in (ROOT / folder).rglob("*.*")}
    rooms = {room for room in rooms if "__pycache__" not in room.parts and "data" not in room.parts}
    assert len(rooms) > 100
    files = {room: sum(file.is_file() for file in room.iterdir()) for room in rooms}
    assert {str(room): count for room, count in files.items() if count > MOST_FILES} == {}


def imports_of(module: str) -> Iterator[str]:
    """Name the modules of ours that one imports when it is loaded, or for its types."""
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    parts: list[ast.AST] = [tree]
    while parts:
        part = parts.pop()
        if isinstance(part, ast.ImportFrom) and part.module is not None and not part.level:
            yield from (f"{part.module}.{name.name}" for name in part.names)
            yield part.module
        if not isinstance(part, ast.FunctionDef):
            parts.extend(ast.iter_child_nodes(part))


def test_few_files_know_each_other() -> None:
    modules = [
        name for name in modules_in_the_tree() if (ROOT / f"{name.replace('.', '/')}.py").exists()
    ]
    known = set(modules)
    arrows = nx.DiGraph((one, other) for one in modules for other in known & {*imports_of(one)})
    assert len(arrows) > 600
    circles = [sorted(circle) for circle in nx.strongly_connected_components(arrows)]
    assert [circle for circle in circles if len(circle) > MOST_IN_A_CIRCLE] == []


def test_changes_of_the_code_that_tests_are_to_notice_name_what_is_there() -> None:
    outcome = run_python("import mutants; print(*mutants.misfits())", ROOT / ".ci")
    assert outcome.stdout.strip() == "", outcome.stdout
    assert outcome.returncode == 0, outcome.stderr
