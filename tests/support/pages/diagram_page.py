"""A page that holds nothing but the diagram view, over signals that are made up."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import flexure as fx
from flexure.solvers.pages.diagram_data import diagram_data

_SCRIPTS = (
    "page/elements",
    "charts/scales",
    "page/app",
    "runs/runs",
    "diagram/diagram_stage",
    "diagram/diagram_words",
    "diagram/diagram_view",
)
_STYLES = ("page/page", "diagram/diagram_view")
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Diagram</title>
<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width">
<style>%s</style></head>
<body><main><section><h2>Diagram</h2><div id="place"></div></section></main><p id="told"></p>
<script type="application/json" id="data">%s</script>
<script>"use strict";
%s
const data = JSON.parse(document.getElementById("data").textContent);
const app = makeApp(data, null);
app.info = { parameters: [] };
app.values.parameters = data.parameters;
const calls = [];
for (const name of ["show", "hide", "select"]) {
  const plain = app[name];
  app[name] = (argument) => (calls.push([name, argument]), plain(argument));
}
mountDiagram(document.getElementById("place"), data.diagram, app);
app.finish({ outcome: "completed", message: "", events: [], statistics: {}, ...data.result,
  time: Float64Array.from(data.result.time) });
</script></body></html>
"""


def write_diagram_page(diagram: fx.Diagram, file: Path, recorded: dict[str, float]) -> None:
    """Write a page; each recorded signal grows from zero by its rate, for ten seconds.

    Its script has ``app``, and ``calls`` with what the view asks of it.
    """
    signals = [
        {"path": row["path"], "size": row["size"], "unit": row["unit"], "held": False}
        | {"labels": [str(k) for k in range(row["size"])]}
        for row in diagram.signals()
        if row["kind"] == "output"
    ]
    parameters = {
        row["path"]: np.nan_to_num(np.ravel(row["default"])).tolist()
        for row in diagram.parameters()
    }
    data: dict[str, Any] = {
        "diagram": diagram_data(diagram),
        "signals": signals,
        "charts": [],
        "run": {"start": 0.0, "tFinal": 10.0},
        "parameters": parameters,
        "result": {
            "time": [0.0, 10.0],
            "signals": {path: [0.0, 10.0 * rate] for path, rate in recorded.items()},
        },
    }
    assets = files("flexure.solvers.pages") / "assets"
    style = "\n".join((assets / f"{name}.css").read_text(encoding="utf-8") for name in _STYLES)
    script = "\n".join((assets / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    text = json.dumps(data).replace("<", "\\u003c")
    file.write_text(_PAGE % (style, text, script), encoding="utf-8")
