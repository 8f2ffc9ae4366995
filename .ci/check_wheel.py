"""Build the wheel and prove that it is whole.

Every file of the package is inside and nothing else is, and in an empty environment, away from the
checkout, every module imports with the core dependencies alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMOKE = """
import importlib, pkgutil, flexure
names = [module.name for module in pkgutil.walk_packages(flexure.__path__, "flexure.")]
for name in names:
    importlib.import_module(name)
print(f"flexure {flexure.__version__}: {len(names)} modules import")
"""


def run(*command: str | Path, folder: Path) -> str:
    """Run ``command`` in ``folder`` and return what it prints; end with that when it fails."""
    outcome = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if outcome.returncode != 0:
        sys.exit(f"{outcome.stdout}\nfailed: {' '.join(map(str, command))}")
    return outcome.stdout


def build(folder: Path) -> Path:
    """Build the wheel from the source archive, so that both are known to be complete."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, folder=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def files_in_the_tree() -> set[str]:
    """Name every file below flexure/, links followed."""
    return {
        Path(folder, file).relative_to(ROOT).as_posix()
        for folder, _, files in os.walk(ROOT / "flexure", followlinks=True)
        for file in files
        if not folder.endswith("__pycache__")
    }


def files_in_the_wheel(wheel: Path) -> set[str]:
    """Name every file that ``wheel`` installs, its own records aside."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def main() -> None:
    """Build, compare, install, import."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        tree, packed = files_in_the_tree(), files_in_the_wheel(wheel)
        if tree != packed:
            missing, surplus = sorted(tree - packed), sorted(packed - tree)
            sys.exit(f"{wheel.name}: missing {missing}, surplus {surplus}")
        print(f"{wheel.name} holds the {len(tree)} files of the tree")

        venv.create(folder / "empty", with_pip=True)
        python = folder / "empty" / ("Scripts" if os.name == "nt" else "bin") / "python"
        run(python, "-m", "pip", "install", "--quiet", wheel, folder=folder)
        run(python, "-m", "pip", "check", folder=folder)
        print(run(python, "-c", SMOKE, folder=folder), end="")
        program = python.with_name("flexure.exe" if os.name == "nt" else "flexure")
        for words in (["--version"], ["doctor"]):
            run(program, *words, folder=folder)


if __name__ == "__main__":
    main()
