"""Pages in a real Chromium without a window, and JavaScript without a page.

The browser is that of the system; playwright only drives it, and brings a Node of its own. Where
one of them is missing, tests are skipped with the reason, but fail where the environment variable
``FLEXURE_BROWSER`` is ``required``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@dataclass
class Visit:
    """A page that is open, and what it has done so far.

    Attributes
    ----------
    page : playwright.sync_api.Page
        To click and to ask.
    errors : list of str
        Errors and warnings of its console, and exceptions of its scripts.
    requests : list of str
        What it has asked for, apart from its own file and what it made itself.
    """

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


def need(what: str | None, name: str) -> str:
    """Return what a test needs, or skip the test."""
    if what is not None:
        return what
    if os.environ.get("FLEXURE_BROWSER") == "required":
        pytest.fail(f"{name} is required and not there")
    pytest.skip(f"{name} is not there")


def chromium_path() -> str:
    """Return where the Chromium of the system is."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if find_spec("playwright") is None:
        found = None
    return need(found, "Chromium, or the package playwright that drives it,")


def node_path() -> str:
    """Return where Node is: that of the system, or the one that playwright brings."""
    found = shutil.which("node")
    package = find_spec("playwright")
    if found is None and package is not None and package.origin is not None:
        ours = Path(package.origin).with_name("driver") / "node"
        found = str(ours) if ours.exists() else None
    return need(found, "Node")


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run a Chromium without a window."""
    path = chromium_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=[*_QUIET])
        try:
            yield chromium
        finally:
            chromium.close()


@contextmanager
def visiting(
    browser: Browser, file: Path, *, width: int = 1280, height: int = 900, fragment: str = ""
) -> Iterator[Visit]:
    """Open a file in a window of a size; it ends with an error when the page made one."""
    size: ViewportSize = {"width": width, "height": height}
    context = browser.new_context(viewport=size, accept_downloads=True)
    page = context.new_page()
    visit = Visit(page)
    address = file.resolve().as_uri()
    page.on("pageerror", lambda error: visit.errors.append(str(error)))
    page.on(
        "console",
        lambda message: (
            visit.errors.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on(
        "request",
        lambda request: (
            None
            if request.url.split("#")[0] == address or request.url.startswith(("data:", "blob:"))
            else visit.requests.append(request.url)
        ),
    )
    try:
        page.goto(address + fragment)
        yield visit
    finally:
        context.close()
    assert not visit.errors, visit.errors
    assert not visit.requests, visit.requests


def run_javascript(text: str, *, timeout: float = 60.0) -> Any:
    """Run JavaScript in Node, and return what it prints as JSON.

    Numbers that JSON does not know are to be written by ``text`` as strings.
    """
    command = [node_path(), "--input-type=commonjs", "-"]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
