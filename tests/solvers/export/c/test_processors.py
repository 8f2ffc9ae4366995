"""The same C on another processor and for other tools: bits on a Cortex-M7, warnings, MISRA."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import flexure as fx
from tests.solvers.export.c.systems import Ball, Pendulum, controller, strut
from tests.support.native.c_models import STRICT, needed

pytestmark = pytest.mark.full

BOARD = Path(__file__).parents[3] / "support" / "native" / "cortex_m7"
PROCESSOR = ("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16")
EMULATOR = ("-M", "mps2-an500", "-nographic", "-semihosting-config", "enable=on,target=native")
#: Rules of MISRA C:2012 that are deviated from, as docs/out_of_python.md says.
DEVIATIONS = {f"misra-c2012-{rule}" for rule in ("2.4", "8.9", "14.1", "15.4", "15.5")}
MAIN = """
#include <stdio.h>
#include <string.h>
#include "NAME.h"

static NAME m;
static uint32_t seed = 12345u;

static double noise(void)
{
  seed = seed * 1664525u + 1013904223u;
  return (double)(seed >> 8) / 16777216.0 - 0.5;
}

int main(void)
{
  NAME_reset(&m);
  for (int k = 0; k < 1000; k++) {
    REAL in[IN], out[OUT];
    unsigned char bytes[sizeof(REAL)];
    for (int i = 0; i < IN; i++) in[i] = (REAL)(4.0 * noise());
    NAME_step(&m, in, out);
    for (int j = 0; j < OUT; j++) {
      memcpy(bytes, &out[j], sizeof(REAL));
      for (int i = (int)sizeof(REAL) - 1; i >= 0; i--) printf("%02x", bytes[i]);
    }
    printf("\\n");
  }
  return 0;
}
"""


def run(*command: Any, folder: Path) -> str:
    """Run a program, whose end is waited for a minute."""
    done = subprocess.run(
        [*map(str, command)], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("make", [controller, Pendulum])
def test_a_cortex_m7_computes_the_bits_of_this_processor(
    make: Any, precision: Any, tmp_path: Path
) -> None:
    gcc, emulator = needed("arm-none-eabi-gcc"), needed("qemu-system-arm")
    system = make()
    model = fx.to_c(system, step=0.01, precision=precision)
    model.save(tmp_path)
    counts = {"IN": len(model.info["inputs"]), "OUT": sum(r["size"] for r in model.info["signals"])}
    text = MAIN.replace("NAME", model.name).replace(
        "REAL", "double" if precision == "double" else "float"
    )
    for word, count in counts.items():
        text = text.replace(f"[{word}]", f"[{count}]").replace(f"< {word};", f"< {count};")
        text = text.replace(f"{word}], out[", f"{count}], out[")
    (tmp_path / "main.c").write_text(text)
    sources = ["main.c", f"{model.name}.c"]
    plain = ("-std=c99", "-O2", "-ffp-contract=off")
    run(needed("gcc"), *plain, *sources, "-o", "here", "-lm", folder=tmp_path)
    board = ("--specs=rdimon.specs", "-T", BOARD / "memory.ld", BOARD / "start.c")
    run(gcc, *plain, *PROCESSOR, *sources, *board, "-o", "there.elf", "-lm", folder=tmp_path)
    there = run(emulator, *EMULATOR, "-kernel", "there.elf", folder=tmp_path)
    here = run("./here", folder=tmp_path)
    assert len(here.split()) == 1000
    assert there == here


def models() -> list[Any]:
    """Models with fixed and adaptive steps, clocks, events and functions, in both precisions."""
    loop = fx.DiagramBuilder("loop")
    loop.add_all(fx.FirstOrderLag("lag", time_constant=0.1), fx.Relay("relay", 0.6, 0.4))
    loop.add_all(fx.Gain("less", -1.0), fx.Constant("one", 1.0), fx.Sum("sum", signs="++"))
    loop.connect("lag.y", "relay.u")
    loop.connect("relay.y", "less.u")
    loop.connect("less.y", "sum.u1")
    loop.connect("one.y", "sum.u2")
    loop.connect("sum.y", "lag.u")
    return [
        fx.to_c(controller()),
        fx.to_c(Pendulum(), step=0.01),
        fx.to_c(Ball(), step=0.01),
        fx.to_c(loop.build(), signals="lag.y", step=0.01),
    ]


def test_no_compiler_warns_whatever_the_precision(tmp_path: Path) -> None:
    found = [(tmp_path / "double", each) for each in models()]
    found += [
        (tmp_path / "single", fx.to_c(make(), step=0.01, precision="single"))
        for make in (controller, Pendulum, Ball)
    ]
    found.append((tmp_path / "adaptive", fx.to_c(Ball(), step=0.01, method="auto")))
    for folder, model in found:
        model.save(folder)
        for compiler in ("gcc", "clang"):
            run(needed(compiler), *STRICT, "-O2", "-c", f"{model.name}.c", folder=folder)


def test_misra_finds_nothing_but_the_deviations(tmp_path: Path) -> None:
    cppcheck = needed("cppcheck")
    options = ("--addon=misra", "--std=c99", "--enable=style", "--template={id} {line}", "--quiet")
    adaptive = [(Ball(), "auto"), (Pendulum(), "ESDIRK4"), (strut(told=True), "DOP853")]
    found = [fx.to_c(system, method=method, step=0.01) for system, method in adaptive]
    for model in (*models(), *found):
        model.save(tmp_path)
        done = subprocess.run(
            [cppcheck, *options, f"{model.name}.c"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "internal error" not in done.stderr
        lines = done.stderr.splitlines()
        rules = {line for line in lines if line.startswith("misra")}
        assert {line.split()[0] for line in rules} <= DEVIATIONS, sorted(rules)
        assert rules  # the addon has run
