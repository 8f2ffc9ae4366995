"""Rows of figures with their bars, printed for people and written for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Row:
    """One figure: what was run, what was measured, and the bar it is held against."""

    workload: str
    metric: str
    value: float
    bar: float | None = None
    better: Literal["higher", "lower"] = "lower"
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the bar is met, in a word; empty without a bar."""
        if self.bar is None:
            return ""
        met = self.value >= self.bar if self.better == "higher" else self.value <= self.bar
        return "pass" if met else "FAIL"


def formatted(rows: Sequence[Row]) -> str:
    """Return rows as an aligned table, one line each."""
    cells = [("workload", "metric", "value", "bar", "", "note")]
    for row in rows:
        sign = ">=" if row.better == "higher" else "<="
        bar = "" if row.bar is None else f"{sign} {row.bar:g}"
        cells.append((row.workload, row.metric, f"{row.value:.4g}", bar, row.verdict, row.note))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for workload, metric, value, *rest in cells:
        texts = [workload.ljust(widths[0]), metric.ljust(widths[1]), value.rjust(widths[2])]
        texts += [text.ljust(width) for text, width in zip(rest, widths[3:], strict=True)]
        lines.append("  ".join(texts).rstrip())
    return "\n".join(lines)


def show(groups: Iterable[Sequence[Row]], path: Path | None) -> None:
    """Print each group of rows as soon as it is there; write all rows at the end, if wanted."""
    rows: list[Row] = []
    for group in groups:
        print(formatted(group), flush=True)
        rows += group
    if path is not None:
        write(rows, path)


def write(rows: Sequence[Row], path: Path) -> None:
    """Write rows as a list of objects."""
    content = [asdict(row) | {"verdict": row.verdict} for row in rows]
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
