"""Breaks the modules that decide verdicts, one small change at a time, and runs their tests.

A change that no test notices (a *survivor*) points at a missing test, or is one that makes no
difference. Changes are drawn with a fixed seed; survivors that make no difference are explained
in ``survivors.tsv``. Everything happens in a copy of the files that git tracks.

    python .ci/mutants.py                     all modules, about three quarters of an hour
    python .ci/mutants.py zeno witnesses      some of them
    python .ci/mutants.py native/sharing      those with files in a folder
    python .ci/mutants.py --each 20 --seed 7  other and more changes

It runs the fast tier of the tests. What the full tier notices, the fast one notices in at least
nine of ten cases; the second command tries nothing but what the first one has noticed.

    python .ci/mutants.py zeno guard --full > full.tsv
    python .ci/mutants.py zeno guard --before full.tsv

Rewritten tests are compared with the old ones in the same way, on the same sources.
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
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENOUGH = 0.9  # of the changes have to be noticed, and all others explained
SLOWER = 4.0  # times as long, and a minute more: then a change counts as noticed

#: The files of each module, and the tests that concern it, the fast ones first.
MODULES: dict[str, tuple[list[str], list[str]]] = {
    "pace": (
        ["solvers/integration/guard/progress_limits.py"],
        [
            "solvers/integration/test_progress_limits.py",
            "solvers/integration/test_resumed_step.py",
            "faults/test_time_resolution.py",
            "faults/test_chattering.py",
        ],
    ),
    "zeno": (
        [
            "solvers/native/kernels/runs/zeno_detection.py",
            "solvers/simulation/events/missed_crossings.py",
        ],
        [
            "solvers/simulation/events/test_missed_crossings.py",
            "solvers/simulation/events/test_zeno_detection.py",
            "solvers/simulation/events/test_witnesses.py",
        ],
    ),
    "witnesses": (
        ["solvers/simulation/events/witnesses.py"],
        [
            "solvers/simulation/events/test_witnesses.py",
            "solvers/simulation/events/test_fast_witnesses.py",
            "solvers/simulation/events/test_missed_crossings.py",
            "solvers/simulation/events/test_zeno_detection.py",
            "solvers/simulation/events/test_simultaneous_events.py",
            "faults/test_chattering.py",
            "solvers/native/kernels/test_kernels.py",
        ],
    ),
    "advance": (
        ["solvers/native/kernels/runs/advance.py", "solvers/native/kernels/parts/clocks.py"],
        [
            "solvers/native/kernels/test_kernels.py",
            "solvers/simulation/native_runs/test_native_simulation.py",
        ],
    ),
    "events": (
        [
            "solvers/native/kernels/runs/run_events.py",
            "solvers/native/kernels/parts/run_samples.py",
        ],
        [
            "solvers/native/kernels/test_kernels.py",
            "solvers/simulation/events/test_missed_crossings.py",
            "solvers/simulation/run_control/test_termination.py",
        ],
    ),
    "fixed_step": (
        ["solvers/integration/methods/fixed_step.py"],
        ["solvers/integration/test_fixed_step.py"],
    ),
    "side_effects": (
        ["solvers/tracing/side_effects.py"],
        ["solvers/tracing/test_side_effects.py"],
    ),
    "guard": (
        ["solvers/integration/guard/guard.py"],
        [
            "solvers/integration/test_integration.py",
            "solvers/simulation/test_projection.py",
            "faults/test_integration_faults.py",
            "faults/test_chattering.py",
        ],
    ),
    "agenda": (
        ["solvers/simulation/events/agenda.py"],
        [
            "diagrams/values/test_events.py",
            "solvers/simulation/test_simulator.py",
            "solvers/simulation/events/test_break_times.py",
            "faults/test_time_resolution.py",
        ],
    ),
    "stiffness": (
        ["solvers/integration/guard/stiffness_detection.py"],
        [
            "solvers/integration/test_stiffness_detection.py",
            "solvers/simulation/run_control/test_automatic_method.py",
        ],
    ),
    "due_events": (
        ["solvers/simulation/events/due_events.py", "solvers/simulation/step_phases.py"],
        [
            "diagrams/values/test_events.py",
            "solvers/simulation/test_simulator.py",
            "solvers/simulation/test_interventions.py",
            "solvers/simulation/run_control/test_termination.py",
            "solvers/simulation/events/test_settling.py",
            "solvers/simulation/events/test_missed_crossings.py",
            "solvers/simulation/events/test_zeno_detection.py",
            "solvers/simulation/events/test_witnesses.py",
        ],
    ),
    "agreement": (
        ["solvers/tracing/trace_check.py"],
        ["solvers/tracing/test_agreement.py"],
    ),
    "preconditions": (
        [
            "solvers/native/programs/programs.py",
            "solvers/simulation/native_runs/native_eligibility.py",
        ],
        [
            "solvers/native/test_preconditions.py",
            "solvers/simulation/native_runs/test_native_simulation.py",
            "solvers/native/test_scipy_adapter.py",
            "solvers/native/test_zeros.py",
        ],
    ),
}

_SHARING = {
    "jobs": ("shared_derivatives", "code_levels", "jobs", "repetition", "job_loops"),
    "families": ("diagram_walk", "families", "structural_key", "value_columns"),
}
#: A wrong number of any of them shows in the numbers of all.
MODULES |= {
    name: ([f"solvers/native/sharing/{room}/{name}.py"], ["solvers/native/sharing"])
    for room, names in _SHARING.items()
    for name in names
}

#: Why survivors make no difference: module, function and change, a tab, the reason.
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


def changes_of(node: ast.AST) -> Iterator[tuple[str, str, Change]]:
    """Give all small changes of one node: the kind of each, what it is called, and itself."""
    if isinstance(node, ast.Compare):
        for k, operator in enumerate(node.ops):
            other = _COMPARISONS.get(type(operator))
            if other is not None:
                name = f"{other.__name__} for {type(operator).__name__}"
                yield "comparison", name, _swap("ops", k, other)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield "branch", "branches swapped", _set("test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.BoolOp):
        other_kind = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield "logic", other_kind.__name__, _set("op", other_kind())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "logic", "without not", _set("op", ast.UAdd())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _OPERATIONS:
        new = _OPERATIONS[type(node.op)]
        yield "arithmetic", new.__name__, _set("op", new())
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "logic", repr(not node.value), _set("value", not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value: float = node.value  # type: ignore[assignment]
        new_value = value + 1 if abs(value) < 4 and value == int(value) else 2 * value
        yield "number", f"{new_value!r} for {value!r}", _set("value", new_value)
    if _can_be_missing(node):
        yield "statement", "removed", _set("__class__", ast.Pass)


def _can_be_missing(node: ast.AST) -> bool:
    """Return whether a node is a statement without which names have values all the same."""
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        return not any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Delete | ast.Break | ast.Continue)


def _set(name: str, value: object) -> Change:
    return lambda node: setattr(node, name, value)


def _swap(name: str, k: int, kind: type[ast.cmpop]) -> Change:
    return lambda node: getattr(node, name).__setitem__(k, kind())


def places(tree: ast.Module) -> list[ast.AST]:
    """List the nodes of what decides.

    Left out are annotations, decorators, texts, what an error says, ``strict=True``, and numbers
    that have a name in a module or a class: those are choices.
    """
    found: list[ast.AST] = []
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr, ast.arg)):
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        found.append(node)
        if isinstance(node, ast.Raise):
            continue
        skipped = {id(getattr(node, name, None)) for name in ("annotation", "returns")}
        skipped |= {id(each) for each in getattr(node, "decorator_list", [])}
        if isinstance(node, ast.Module | ast.ClassDef):
            skipped |= {id(each) for each in node.body if _names_a_number(each)}
        stack.extend(each for each in ast.iter_child_nodes(node) if id(each) not in skipped)
    return found


def _names_a_number(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(
        statement.value, ast.Constant
    )


def mutants(
    sources: dict[str, str], count: int, generator: random.Random
) -> list[tuple[str, str, str]]:
    """Draw changes, of every file and kind in turn: file, what is changed where, and new source."""
    trees = {path: ast.parse(source) for path, source in sources.items()}
    kinds: dict[tuple[str, str], list[tuple[str, int, int]]] = {}
    for path, tree in trees.items():
        for k, node in enumerate(places(tree)):
            for number, (kind, _, _) in enumerate(changes_of(node)):
                kinds.setdefault((path, kind), []).append((path, k, number))
    piles = [kinds[kind] for kind in sorted(kinds)]
    for pile in piles:
        generator.shuffle(pile)
    generator.shuffle(piles)
    turns = [each for turn in zip_longest(*piles) for each in turn if each is not None]
    drawn = []
    for path, k, number in sorted(turns[:count]):
        changed = copy.deepcopy(trees[path])
        node = places(changed)[k]
        number_of_line: int = node.lineno  # type: ignore[attr-defined]
        line = sources[path].splitlines()[number_of_line - 1].strip()
        where = function_at(trees[path], number_of_line)
        _, name, change = list(changes_of(node))[number]
        change(node)
        source = ast.unparse(ast.fix_missing_locations(changed))
        drawn.append((path, f"{where}: {line}  ->  {name}", source))
    return drawn


def function_at(tree: ast.Module, line: int) -> str:
    """Name the innermost function or class around a line."""
    around = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef | ast.ClassDef)
        and each.lineno <= line <= (each.end_lineno or line)
    ]
    return max(around, key=lambda each: each.lineno).name if around else "module"


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


def failure(
    folder: Path, tests: list[str], seconds: float | None = None, *, full: bool = False
) -> str:
    """Run tests in a copy; return which one fails first, or nothing if all pass in time."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-m", ""] if full else []
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "FLEXURE_CACHE": str(folder / "cache"),
    }
    try:
        done = subprocess.run(
            [*command, *in_tests(tests)],
            cwd=folder,
            env=environment,
            capture_output=True,
            timeout=seconds,
            check=False,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return "takes too long"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "" if done.returncode == 0 else (failed or [f"ends with {done.returncode}"])[0]


def misfits() -> list[str]:
    """List files of the table that do not exist, and explanations of lines that do not."""
    named = [path for paths, tests in MODULES.values() for path in (*paths, *in_tests(tests))]
    found = [path for path in dict.fromkeys(named) if not (ROOT / path).exists()]
    for explained in EXPLAINED:
        name, _, text = explained.partition(": ")
        line = text.partition(": ")[2].rpartition("  ->  ")[0]
        paths, _ = MODULES.get(name, ([], []))
        if not any(line in (ROOT / path).read_text() for path in paths if path not in found):
            found.append(explained)
    return found


def in_tests(tests: list[str]) -> list[str]:
    """Name files and folders of tests from the root."""
    return [f"tests/{test}" for test in tests]


def chosen(words: list[str]) -> list[str]:
    """Return the modules that have one of some names, or a file in one of some folders."""
    folders = [f"{word.rstrip('/')}/" for word in words]
    return [
        name
        for name, (paths, _) in MODULES.items()
        if not words or name in words or any(each in path for each in folders for path in paths)
    ]


def noticed_in(table: Path) -> set[str]:
    """Return the changes that an earlier run has noticed, as it has printed them."""
    rows = [line.split("\t") for line in table.read_text().splitlines() if "\t" in line]
    missed = {row[1] for row in rows if row[0] != "killed"}
    return {row[1] for row in rows} - missed  # some lines hold two places for changes of one name


class TestsFailError(Exception):
    """The tests fail without any change."""


def tried(
    names: list[str], count: int, seed: int, only: set[str] | None, *, full: bool
) -> Iterator[tuple[str, str, float]]:
    """Change modules and run their tests; give each change, what failed first, and seconds."""
    limits: dict[tuple[str, ...], float] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        copy_of_the_tree(folder)
        for name in names:
            paths, tests = MODULES[name]
            originals = {path: (folder / path).read_text() for path in paths}
            drawn = mutants(originals, count, random.Random(f"{seed} {name}"))
            if tuple(tests) not in limits:
                begin = time.monotonic()
                if failed := failure(folder, tests, full=full):
                    raise TestsFailError(f"{name}: the tests fail without any change: {failed}")
                limits[tuple(tests)] = 60.0 + SLOWER * (time.monotonic() - begin)
            for path, text, source in drawn:
                change = f"{name}: {text}"
                if only is None or change in only:
                    begin = time.monotonic()
                    (folder / path).write_text(source)
                    failed = failure(folder, tests, limits[tuple(tests)], full=full)
                    (folder / path).write_text(originals[path])
                    yield change, failed, time.monotonic() - begin


def main() -> int:
    """Run all mutants; return 0 when enough are noticed and the others are explained."""
    parser = argparse.ArgumentParser(description="Check the tests by small changes of the code.")
    parser.add_argument("modules", nargs="*", metavar="module")
    parser.add_argument("--each", type=int, default=6, help="changes of each module")
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--full", action="store_true", help="run both tiers of the tests")
    parser.add_argument("--before", type=Path, help="what an earlier run has printed")
    arguments = parser.parse_args()
    if wrong := misfits():
        parser.error("these are not in the tree (any more): " + ", ".join(wrong))
    if unknown := [word for word in arguments.modules if not chosen([word])]:
        parser.error(f"no module is called {', '.join(unknown)}; there are {', '.join(MODULES)}")
    only = noticed_in(arguments.before) if arguments.before else None
    found: list[bool] = []
    open_questions = 0
    try:
        for change, failed, seconds in tried(
            chosen(arguments.modules), arguments.each, arguments.seed, only, full=arguments.full
        ):
            verdict = "killed" if failed else "survived" if only is None else "LOST"
            why = failed or EXPLAINED.get(change, "")
            print(verdict, change, why, f"{seconds:.0f} s", sep="\t", flush=True)
            found.append(bool(failed))
            open_questions += not why and only is None
    except TestsFailError as error:
        print(error)
        return 2
    print(f"{sum(found)} of {len(found)} changes were noticed; {open_questions} are not explained")
    return 0 if sum(found) >= ENOUGH * len(found) and not open_questions else 1


if __name__ == "__main__":
    sys.exit(main())
