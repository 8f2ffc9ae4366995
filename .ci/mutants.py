"""Breaks the modules that decide verdicts, one small change at a time, and runs their tests.

A change that no test notices (a *survivor*) points at a missing test, or is one that makes no
difference. Changes are drawn with a fixed seed; survivors that make no difference are explained
in ``survivors.tsv``. Everything happens in a copy of the files that git tracks.

    python .ci/mutants.py                     all modules, about an hour
    python .ci/mutants.py zeno witnesses      some of them
    python .ci/mutants.py --each 20 --seed 7  other and more changes
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENOUGH = 0.9  # of the changes have to be noticed, and all others explained
TIMEOUT = 240.0  # seconds, after which a change counts as noticed

#: Modules, and the tests that concern each, the fast ones first.
MODULES: dict[str, tuple[str, list[str]]] = {
    "pace": ("solvers/pace.py", ["solvers/test_pace.py"]),
    "zeno": ("solvers/zeno.py", ["solvers/test_departures.py", "solvers/test_witnesses.py"]),
    "witnesses": (
        "solvers/witnesses.py",
        ["solvers/test_witnesses.py", "solvers/test_native_kernels.py"],
    ),
    "advance": (
        "solvers/native/advance.py",
        ["solvers/test_native_kernels.py", "solvers/test_native_simulation.py"],
    ),
    "events": (
        "solvers/native/events.py",
        ["solvers/test_native_kernels.py", "solvers/test_departures.py"],
    ),
    "fixed_step": ("solvers/fixed_step.py", ["solvers/test_fixed_step.py"]),
    "purity": ("solvers/native/purity.py", ["solvers/test_native_purity.py"]),
    "guard": (
        "solvers/guard.py",
        ["solvers/test_integration.py", "faults/test_integration_faults.py"],
    ),
    "agenda": ("solvers/agenda.py", ["solvers/test_simulator.py", "diagrams/test_events.py"]),
    "stiffness": (
        "solvers/stiffness.py",
        ["solvers/test_stiffness.py", "solvers/test_automatic_method.py"],
    ),
}

#: Why survivors make no difference: module and change, a tab, the reason.
EXPLAINED = dict(
    line.split("\t") for line in (ROOT / ".ci" / "survivors.tsv").read_text().splitlines()
)

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
#: What a change does to a copy of a node.
Change = Callable[[ast.AST], None]


def changes_of(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """Give all small changes of one node, with what they are called."""
    if isinstance(node, ast.Compare):
        for k, operator in enumerate(node.ops):
            other = _COMPARISONS.get(type(operator))
            if other is not None:
                yield f"{other.__name__} for {type(operator).__name__}", _swap("ops", k, other)
    elif isinstance(node, ast.BoolOp):
        other_kind = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield other_kind.__name__, _set("op", other_kind())
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _OPERATIONS:
        new = _OPERATIONS[type(node.op)]
        yield new.__name__, _set("op", new())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "without not", _set("op", ast.UAdd())
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield repr(not node.value), _set("value", not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value: float = node.value  # type: ignore[assignment]
        new_value = value + 1 if abs(value) < 4 and value == int(value) else 2 * value
        yield f"{new_value!r} for {value!r}", _set("value", new_value)


def _set(name: str, value: object) -> Change:
    return lambda node: setattr(node, name, value)


def _swap(name: str, k: int, kind: type[ast.cmpop]) -> Change:
    return lambda node: getattr(node, name).__setitem__(k, kind())


def places(tree: ast.Module) -> list[ast.AST]:
    """List the nodes of what runs: no annotations, decorators or texts, and no ``strict=True``."""
    found: list[ast.AST] = []
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr, ast.arg, ast.Raise)):
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        found.append(node)
        skipped = {id(getattr(node, name, None)) for name in ("annotation", "returns")}
        skipped |= {id(each) for each in getattr(node, "decorator_list", [])}
        stack.extend(each for each in ast.iter_child_nodes(node) if id(each) not in skipped)
    return found


def mutants(source: str, count: int, generator: random.Random) -> list[tuple[str, str]]:
    """Draw changed sources, each with a text that says what is changed where."""
    tree = ast.parse(source)
    lines = source.splitlines()
    every = [
        (k, number, name)
        for k, node in enumerate(places(tree))
        for number, (name, _) in enumerate(changes_of(node))
    ]
    drawn = []
    for k, number, name in sorted(generator.sample(every, min(count, len(every)))):
        changed = copy.deepcopy(tree)
        node = places(changed)[k]
        line = lines[node.lineno - 1].strip()  # type: ignore[attr-defined]
        list(changes_of(node))[number][1](node)
        drawn.append((f"{line}  ->  {name}", ast.unparse(ast.fix_missing_locations(changed))))
    return drawn


def copy_of_the_tree(folder: Path) -> None:
    """Copy what git tracks."""
    archive = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    for name in archive.stdout.split("\0"):
        source, target = ROOT / name, folder / name
        if not name or not (source.is_symlink() or source.exists()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        else:
            target.write_bytes(source.read_bytes())


def passes(folder: Path, tests: list[str]) -> bool:
    """Run tests in a copy; tell whether all pass in time."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "FLEXURE_CACHE": str(folder / "cache"),
    }
    try:
        done = subprocess.run(
            [*command, *(f"tests/{test}" for test in tests)],
            cwd=folder,
            env=environment,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> int:
    """Run all mutants; return 0 when enough are noticed and the others are explained."""
    parser = argparse.ArgumentParser(description="Check the tests by small changes of the code.")
    parser.add_argument("modules", nargs="*", default=list(MODULES), metavar="module")
    parser.add_argument("--each", type=int, default=6, help="changes of each module")
    parser.add_argument("--seed", type=int, default=10)
    arguments = parser.parse_args()
    killed, survivors = 0, []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        copy_of_the_tree(folder)
        for name in arguments.modules:
            path, tests = MODULES[name]
            original = (folder / path).read_text()
            if not passes(folder, tests):
                print(f"{name}: the tests fail without any change", flush=True)
                return 2
            generator = random.Random(f"{arguments.seed} {name}")
            for text, source in mutants(original, arguments.each, generator):
                begin = time.monotonic()
                (folder / path).write_text(source)
                survived = passes(folder, tests)
                (folder / path).write_text(original)
                why = EXPLAINED.get(f"{name}: {text}", "") if survived else ""
                verdict = "SURVIVED" if survived else "killed"
                seconds = time.monotonic() - begin
                print(f"{verdict:9}{name:11}{seconds:5.0f} s  {text}  {why}", flush=True)
                killed += not survived
                survivors += [text] if survived and not why else []
    total = arguments.each * len(arguments.modules)
    print(f"{killed} of {total} changes were noticed; {len(survivors)} others are not explained")
    return 0 if killed >= ENOUGH * total and not survivors else 1


if __name__ == "__main__":
    sys.exit(main())
