"""A process that forks while one of its threads compiles: a program, run by the tests.

Children simulate what the parent has simulated and something else. A child that hangs is ended by
its own alarm, which its status tells.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from typing import Any

import numpy as np

import flexure as fx
from tests.support.processes.many_threads import make, simulate

METHODS = ("RK45", "DOP853", "RK23", "Rodas5P", "DormandPrince")


def child(shared: fx.Diagram) -> None:
    """Simulate."""
    signal.alarm(100)
    simulate(shared, 0.7)
    simulate(make(0.5, ticking=True), 0.5)


def compile_until(stop: threading.Event, shared: fx.Diagram) -> None:
    """Compile one thing after the other."""
    k = 0
    while not stop.is_set():
        n = 2 + k // len(METHODS)
        plant = fx.StateSpace("plant", np.eye(n), np.zeros((n, 1)), np.zeros((1, n)))
        fx.simulate(plant, 0.1, method=METHODS[k % len(METHODS)])
        simulate(shared, 0.7)
        k += 1


def fork(shared: fx.Diagram) -> int:
    """Fork once; return the status of the child."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            child(shared)
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(process, 0)[1]


if __name__ == "__main__":
    how, count = sys.argv[1], int(sys.argv[2])
    shared, stop = make(0.7, ticking=False), threading.Event()
    compiler = threading.Thread(target=compile_until, args=(stop, shared))
    compiler.start()
    statuses = []
    context: Any = multiprocessing.get_context(how)
    for k in range(count):
        time.sleep(0.15 * (k > 0))
        if how == "fork":
            statuses.append(fork(shared))
        process = context.Process(target=child, args=(shared,))
        process.start()
        process.join()
        statuses.append(process.exitcode or 0)
    stop.set()
    compiler.join()
    print(sum(map(bool, statuses)), "of", len(statuses), "children failed")
