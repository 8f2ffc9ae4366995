"""Pages that are open in a browser, and what people do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import flexure as fx
from tests.support.pages.browser import Visit, visiting

if TYPE_CHECKING:
    from playwright.sync_api import Browser


class OpenPage:
    """A page in a browser.

    Parameters
    ----------
    visit : Visit
        Where it is open; charts are drawn and the first run is done.
    folder : Path
        For what it downloads.
    """

    def __init__(self, visit: Visit, folder: Path) -> None:
        self.visit = visit
        self.page = visit.page
        self._folder = folder

    def row(self, path: str) -> Any:
        """Return the first row of controls of a value."""
        return self.page.locator(f'.control[data-path="{path}"]').first

    def enter(self, path: str, text: str) -> None:
        """Type into the number field of a value, and wait for the run."""
        with self.running():
            field = self.row(path).locator("input.number")
            field.fill(text)
            field.press("Enter")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Wait until a run is done that something starts."""
        before = int(self.page.locator("body").get_attribute("data-runs") or 0)
        yield
        self.page.locator(f'body:not([data-runs="{before}"])').wait_for()

    def until(self, ask: str, holds: Callable[[Any], bool]) -> None:
        """Wait until something holds for what JavaScript gives, however busy the machine is."""
        for _ in range(300):
            found = self.page.evaluate(ask)
            if holds(found):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"still {found}")

    def press(self, name: str) -> None:
        """Press the button of a name."""
        self.page.get_by_role("button", name=name, exact=True).click()

    def text(self, name: str) -> str:
        """Return the text that a button shows, and close it again."""
        self.press(name)
        dialog = self.page.locator("dialog[open]")
        found = dialog.locator("pre").inner_text()
        dialog.get_by_role("button", name="Close").click()
        return found

    def table(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns of the table that it downloads."""
        with self.page.expect_download() as download:
            self.press("CSV")
        file = self._folder / "table.csv"
        download.value.save_as(file)
        names = file.read_text(encoding="utf-8").splitlines()[0].split(",")
        columns = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)
        return dict(zip(names, columns.T, strict=True))

    def figures(self) -> dict[str, float]:
        """Return the figures of the first step response."""
        tiles = self.page.locator(".tiles").first.locator(".tile").all()
        return {
            str(tile.get_attribute("data-figure")): float(
                tile.get_attribute("data-number") or "nan"
            )
            for tile in tiles
        }


@contextmanager
def opened(
    browser: Browser, page: fx.results.Page, folder: Path, **options: Any
) -> Iterator[OpenPage]:
    """Open a page, wait until it is drawn, and fail if it has complained or asked for anything."""
    file = folder / "page.html"
    page.save(file)
    with visiting(browser, file, **options) as visit:
        visit.page.locator("body[data-drawn][data-runs]").wait_for()
        yield OpenPage(visit, folder)
