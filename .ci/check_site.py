"""Look at the built site in a browser: no request leaves, nothing fails, search finds.

Run it as ``check_site.py FOLDER``. The site is served from this machine, since browsers keep the
scripts of files from reading other files. Without a browser it says so loudly, and succeeds, except
where the environment variable ``FLEXURE_BROWSER`` is ``required``.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PAGES = (
    "index.html",
    "_generated/examples/index.html",
    "_generated/examples/compliant_door.html",
    "_generated/api/flexure.PIDController.html",
    "which_block.html",
)
#: What is searched, and the page that has to come first.
FIRST = {
    "bode": "frequency.html",
    "settling": "step_responses.html",
    "margins": "margins.html",
    "overshoot": "step_responses.html",
    "monte carlo": "studies.html",
}
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class Quiet(SimpleHTTPRequestHandler):
    """A server that does not tell of every request."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def look_at(site: Path, chromium: str) -> list[str]:
    """Return what is wrong with a site."""
    from playwright.sync_api import sync_playwright

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}/"
    wrong: list[str] = []
    where = ""

    def note(what: str) -> None:
        wrong.append(f"{where}: {what}")

    def note_request(address: str) -> None:
        if not address.startswith((home, "data:", "blob:")):
            note(f"asks for {address}")

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: note_request(request.url))
        page.on("pageerror", lambda error: note(str(error)))
        page.on(
            "console",
            lambda message: note(message.text) if message.type in ("error", "warning") else None,
        )
        for where in PAGES:
            page.goto(home + where, wait_until="load")
            if "*args" in page.locator("body").inner_text():
                note("shows a signature of any arguments")
        where = "the live door"
        page.goto(home + "index.html")
        page.locator(".live-door").scroll_into_view_if_needed()
        page.frame_locator(".live-door iframe").locator("input[type=range]").first.wait_for()
        for theme in ("dark", "light"):
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            door = page.frame_locator(".live-door iframe").locator(f"html[style*={theme}]")
            door.wait_for(state="attached", timeout=5000)
        for words, expected in FIRST.items():
            where = f"search for {words!r}"
            page.goto(f"{home}search.html?q={words.replace(' ', '+')}")
            first = page.locator("#search-results ul.search li a").first
            first.wait_for()
            page.locator("#search-results .search-summary", has_text="found").wait_for()
            found = str(first.get_attribute("href")).split("?")[0].split("#")[0]
            if found != expected:
                note(f"finds {found} first, not {expected}")
        browser.close()
    server.shutdown()
    return wrong


def main() -> None:
    """Check, and tell what is wrong."""
    chromium = next(filter(None, map(shutil.which, _NAMES)), None)
    if chromium is None or find_spec("playwright") is None:
        print("\n*** NO BROWSER: NOBODY HAS LOOKED AT THE SITE ***")
        sys.exit(os.environ.get("FLEXURE_BROWSER") == "required")
    wrong = look_at(Path(sys.argv[1]), chromium)
    print("\n".join(wrong) or "the site is as it should be")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
