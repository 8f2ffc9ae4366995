"""Studies that are killed again and again: what is in the file at the end is what belongs there.

Run it with ``python benchmarks/sweeps/killed_studies.py [KILLS]``. A process runs a study with a
store, is killed at a random moment, from the first look at the file to the last commit, and another
process goes on, until the study is finished. Then the tables are compared, byte by byte, with those
of a study that nobody disturbed, and a new study begins, until there were as many kills as asked
for.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from flexure.solvers.sweeps.store import storing

#: What is the same however the runs came to the file.
TABLES = ("study", "provenance", "axes", "signals", "metrics", "runs", "samples")
CHUNK = 0.02  # s, so that a kill is likely to hit a commit


def run(store: str) -> None:
    """Run the study, or what is missing of it."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("target", at=0.5),
        fx.PIDController("pid", kp=4.0, ki=4.0, kd=0.8),
        fx.TransferFunction("arm", [9.0], [1.0, 1.5, 9.0]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "arm", "pid.measurement")
    plan = fx.plans.grid({"pid.kp": np.linspace(2.0, 8.0, 60), "pid.ki": np.linspace(1.0, 8.0, 50)})
    measured = {"peak": fx.metrics.maximum("arm.y"), "error": fx.metrics.iae("arm.y", target=1.0)}
    storing._SECONDS = CHUNK
    print("ready", flush=True)
    times = np.linspace(0.0, 8.0, 81)
    loop = builder.build()
    fx.sweep(loop, plan, 8.0, store=store, signals="arm.y", times=times, metrics=measured)


def digests(store: Path) -> dict[str, str]:
    """Return what is in each table as one number."""
    found = {}
    connection = sqlite3.connect(store)
    for table in TABLES:
        order = {"runs": "run", "samples": "signal, run"}.get(table, "rowid")
        rows = connection.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()
        found[table] = hashlib.blake2b(repr(rows).encode(), digest_size=16).hexdigest()
    connection.close()
    return found


def attempt(store: Path, patience: float | None) -> float | None:
    """Run in a process of its own, which is killed after some seconds.

    Returns how long it took to the end, in seconds, or None when it was killed before.
    """
    command = [sys.executable, __file__, "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        began = time.perf_counter()
        if patience is not None:
            time.sleep(patience)
            process.kill()
        process.communicate(timeout=300)
        if process.returncode > 0:
            raise RuntimeError(f"the study failed with exit code {process.returncode}")
        return None if process.returncode < 0 else time.perf_counter() - began


def survive(kills: int, seed: int = 1) -> tuple[int, list[str], int]:
    """Kill so many processes; return how many studies were finished, and what differs in them.

    The third number is how many of the kills left a transaction to be rolled back.
    """
    moments = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, store = Path(folder, "whole.study"), Path(folder, "killed.study")
        lasted, expected = attempt(whole, None) or 0.0, digests(whole)
        finished = amid = done = 0
        differing = []
        while done < kills or store.exists():
            patience = moments.uniform(0.0, lasted) if done < kills else None
            killed = attempt(store, patience) is None
            done += killed
            journal = Path(f"{store}-journal")
            amid += killed and journal.exists() and journal.stat().st_size > 0
            if not killed:
                finished += 1
                found = digests(store)
                differing += [table for table in TABLES if found[table] != expected[table]]
                store.unlink()
    return finished, differing, amid


def main() -> None:
    """Print what became of the studies."""
    parser = argparse.ArgumentParser(description="Kill studies at random moments.")
    parser.add_argument("kills", nargs="?", type=int, default=100)
    parser.add_argument("--store", help="run the study with this file, as a process to be killed")
    options = parser.parse_args()
    if options.store:
        run(options.store)
        return
    finished, differing, amid = survive(options.kills)
    print(f"{options.kills} kills, {amid} of them amid a transaction, {finished} finished studies")
    print(f"tables in which one differs from the undisturbed study: {differing or 'none'}")


if __name__ == "__main__":
    main()
