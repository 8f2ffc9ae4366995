"""The table of blocks by task leads to all blocks, and to nothing else."""

from __future__ import annotations

import operator
import re
from pathlib import Path

import flexure as fx
from docs.names_of import groups_of

DOCS = Path(__file__).parents[2] / "docs"
#: Joints and files of models have tables on pages of their own.
PAGES = [DOCS / f"{name}.md" for name in ("which_block", "joints", "model_files")]
PAGE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
NAMED = set(re.findall(r"\{py:obj\}`[^`<]+ <flexure\.([\w.]+)>`", PAGE))


def test_every_name_in_the_table_exists() -> None:
    for name in NAMED:
        operator.attrgetter(name)(fx)


def test_every_block_of_the_reference_is_in_the_table() -> None:
    blocks = {name for names in groups_of("blocks").values() for name in names}
    assert len(blocks) > 80
    assert sorted(blocks - NAMED) == []
