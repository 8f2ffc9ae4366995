"""The samples of the site, README and CONTRIBUTING run, and print what the pages show.

A page is one script. Its blocks that begin with ```python, at the margin, run from top to bottom in
one namespace, in an empty folder; errors call the script script.py and count its lines. What a
block prints stands in the ```text block right behind it, with nothing in between but empty lines; a
block that prints nothing has none. The two are compared up to the amount of white space, and "..."
in the text matches anything, as in doctests. Commands of flexure, and what they print, stand in
```console blocks; their model is the code above them. What is not to be run goes into blocks of
another kind.

A page that shows pictures saves them in its samples, as "name.svg", and refers to them as
_generated/page/name.svg; a page in a folder, as ../_generated/folder/page/name.svg. When the site
is built, the samples of such a page run in that folder, unless its pictures are younger than the
page. If the environment variable FLEXURE_PICTURES names the folder _generated, the tests leave the
pictures there, so that they are made once for tests and site.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from docs.gallery import renew
from docs.samples import name_of, pages, pictures_of, run, samples_of
from tests.support.native.c_models import needed
from tests.support.tiers import by_tier

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages()]
QUICK_START = [ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "tutorial.md"]


def test_the_pages_hold_samples_with_output() -> None:
    samples = [sample for page in PAGES for sample in samples_of(page)]
    assert len([sample for sample in samples if sample.output]) > 20


@pytest.mark.parametrize("page", by_tier(fast=QUICK_START, full=PAGES), ids=name_of)
def test_page_prints_what_it_shows_and_saves_its_pictures(page: Path, tmp_path: Path) -> None:
    if page.stem == "out_of_python":
        needed("gcc")
    kept, folder = os.environ.get("FLEXURE_PICTURES"), tmp_path
    if kept and pictures_of(page):
        folder = Path(kept, name_of(page))
        renew(folder, page, partial(run, page))
    else:
        run(page, folder)
    assert pictures_of(page) <= {path.name for path in folder.iterdir()}


WRONG_OUTPUT = """\
```python
print(1 + 1)
```

```text
3
```
"""
UNSHOWN_OUTPUT = """\
```python
print(1 + 1)
```
"""
PRINTS_NOTHING = """\
```python
one = 1
```

```text
1
```
"""
WRONG_ANSWER = """\
```console
$ flexure --version
flexure 0.0.0
```
"""


@pytest.mark.parametrize("text", [WRONG_OUTPUT, UNSHOWN_OUTPUT, PRINTS_NOTHING, WRONG_ANSWER])
def test_a_page_that_shows_something_else_fails(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page\.md:2 shows"):
        run(page, tmp_path)


@pytest.mark.parametrize(
    "fence", ["  ```python", "```{code-block} python", "> ```python", "```console"]
)
def test_a_sample_that_would_not_be_found_is_refused(fence: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"Text.\n\n{fence}\nx = 1\n```\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"page\.md:[34]: write "):
        list(samples_of(page))
