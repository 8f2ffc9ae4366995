"""`flexure page`: a file with a page, of the values and signals that were asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Command

pytest.importorskip("plotly")


def test_a_page_is_saved_with_the_values_that_were_set(flexure: Command) -> None:
    words = ("--to", "3", "--set", "lag.time_constant=0.125", "--signals", "lag.y")
    code, out, err = flexure("page", "charge.py", *words, "--title", "A charge", "--out", "pages")
    file = Path("pages", "charge.html")
    assert (code, out, err) == (0, f"saved {file}\n", "")
    text = file.read_text(encoding="utf-8")
    assert "<h1>A charge</h1>" in text
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert data["charts"] == [["lag.y"]]
    assert data["changed"] == ["lag.time_constant"]
    assert data["tFinal"] == 3.0


def test_what_cannot_be_shown_is_refused(flexure: Command) -> None:
    code, _, err = flexure("page", "charge.py", "--to", "3", "--parameters", "lag.nothing")
    assert code == 1
    assert "Cannot find 'nothing' in 'lag'" in err
    assert not Path("charge.html").exists()
