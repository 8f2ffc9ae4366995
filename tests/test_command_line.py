"""``python -m flexure`` as a user types it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import flexure as fx

ROOT = Path(__file__).parents[1]


def run_flexure(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flexure", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_version_is_the_one_of_the_package() -> None:
    outcome = run_flexure("--version")
    assert (outcome.returncode, outcome.stdout) == (0, f"flexure {fx.__version__}\n")


def test_no_arguments_print_the_help() -> None:
    outcome = run_flexure()
    assert outcome.returncode == 0
    assert outcome.stdout.startswith("usage: python -m flexure")


def test_an_unknown_option_is_refused() -> None:
    outcome = run_flexure("--unknown")
    assert outcome.returncode == 2
    assert "--unknown" in outcome.stderr
