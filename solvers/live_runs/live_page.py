"""Pages of live runs: a local server for those who have its link, which never delays a run."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import math
import secrets
import threading
import time as wall
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from flexure.diagrams.checks.arguments import import_extra
from flexure.diagrams.checks.errors import FlexureError, ValueRefusedError
from flexure.diagrams.interface.html import escaped
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.live_runs.charts_and_sliders import own_asset, plain, script, style
from flexure.solvers.live_runs.connections.partners import checked_port
from flexure.solvers.pages.document import framed, hash_of

if TYPE_CHECKING:
    from flexure.solvers.live_runs.live_run import Live

_HOST = "127.0.0.1"
_WAITING = 1000  # samples on their way to browsers
_APART = 4e-3  # seconds between two of them
_PULSE = 0.04  # seconds between two messages
_MOST = 8  # browsers
_BACKLOG = 2**18  # bytes on their way to a browser, beyond which it gets no more
_PATIENCE = 10.0  # seconds, after which a browser that takes nothing is disconnected
_BURST, _RATE = 60.0, 60.0  # messages of a browser: at once, and per second

_SIZE = 4096  # bytes of a message of a browser


class LivePage(Answer):
    """The page of a live run on a server of this machine.

    Made by `Live.page`. It answers at the loopback address only, to those who have the link.

    Attributes
    ----------
    url : str
        The link, which contains a secret.
    port : int
        The port.

    See Also
    --------
    live : Run a diagram with the clock.
    Live.page : Open the page.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0)
    >>> page = fx.live(lag).page()  # doctest: +SKIP
    >>> page.url, page.close()  # doctest: +SKIP
    """

    _function = "live"

    def __init__(self, live: Live, port: int) -> None:
        attempt = f"Cannot serve a page of '{live.system.label}'"
        wanted = checked_port(port, attempt)
        self._server = import_extra("websockets.asyncio.server", "live", "Cannot serve a page")
        self._live, self.port = live, wanted
        self._token = secrets.token_urlsafe(24)
        self._rows: deque[list[float]] = deque(maxlen=_WAITING)
        self._offered = -math.inf
        self._clients: dict[Any, float] = {}  # and since when each takes nothing
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._failure: OSError | None = None
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(ready,), name="page of a live run", daemon=True
        )
        self._thread.start()
        ready.wait()
        if self._failure is not None:
            raise ValueRefusedError(
                attempt,
                expected="a free port of this machine",
                found=f"{wanted}: {self._failure.strerror or self._failure}",
                remedy="Give another port=, or 0 for any",
            ) from self._failure

    @property
    def url(self) -> str:
        """The link."""
        return f"http://{_HOST}:{self.port}/?token={self._token}"

    @property
    def is_closed(self) -> bool:
        """Whether the server has ended."""
        return not self._thread.is_alive()

    def close(self) -> None:
        """End the server; does nothing when it has ended."""
        with suppress(RuntimeError):  # of a loop that is closed
            self._loop.call_soon_threadsafe(self._end.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)

    def offer(self, time: float, row: FloatArray) -> None:
        """Take over a sample of a run, without ever waiting."""
        if self._clients and wall.perf_counter() - self._offered >= _APART:
            self._offered = wall.perf_counter()
            self._rows.append([time, *row.tolist()])

    def __repr__(self) -> str:
        return f"<LivePage of '{self._live.system.label}' at {self.url}>"

    def _repr_html_(self) -> str:
        return (
            f'<a href="{escaped(self.url)}" target="_blank" rel="noopener">{escaped(self.url)}</a>'
        )

    # The server --------------------------------------------------------------------------------

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve(ready))
        except OSError as error:
            self._failure = error
        finally:
            ready.set()
            self._loop.close()

    async def _serve(self, ready: threading.Event) -> None:
        silent = logging.getLogger("flexure.live")
        silent.setLevel(logging.CRITICAL)
        async with self._server.serve(
            self._talk,
            _HOST,
            self.port,
            process_request=self._answer,
            compression=None,
            max_size=_SIZE,
            max_queue=16,
            ping_interval=5,
            ping_timeout=10,
            close_timeout=1,
            server_header=None,
            logger=silent,
        ) as server:
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            stream = asyncio.create_task(self._stream())
            await self._end.wait()
            stream.cancel()

    def _answer(self, connection: Any, request: Any) -> Any:
        """Answer a request for the page, refuse strangers, and let sockets of the page open."""
        hosts = [f"{name}:{self.port}" for name in (_HOST, "localhost")]
        asked = urlsplit(request.path)
        token = parse_qs(asked.query).get("token", [""])[-1]
        wrong = not hmac.compare_digest(token.encode(), self._token.encode())
        if wrong or request.headers.get_all("Host") not in [[host] for host in hosts]:
            return connection.respond(403, "Open the whole link that Live.page gave.\n")
        if asked.path == "/ws":
            origins = [[f"http://{host}"] for host in hosts]
            if request.headers.get_all("Origin") not in origins:
                return connection.respond(403, "This is for the page itself.\n")
            if len(self._clients) >= _MOST:
                return connection.respond(503, f"There are {_MOST} pages already.\n")
            return None
        if asked.path != "/":
            return connection.respond(404, "There is nothing here.\n")
        response = connection.respond(200, self._html())
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = "text/html; charset=utf-8"
        response.headers["Cache-Control"] = "no-store"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        return response

    def _html(self) -> str:
        text = f"(() => {{\n{script()}\n{own_asset('live.js')}}})();"
        policy = {
            "default-src": "'none'",
            "script-src": f"'sha256-{hash_of(text)}'",
            "style-src": f"'sha256-{hash_of(style())}'",
            "img-src": "data:",
            "connect-src": f"ws://{_HOST}:{self.port} ws://localhost:{self.port}",
            "base-uri": "'none'",
            "form-action": "'none'",
        }
        body = f'<div id="desk"></div>\n<script>{text}</script>\n'
        return framed(self._live.system.label, policy, style(), body, schemes="light dark")

    # Browsers ----------------------------------------------------------------------------------

    async def _talk(self, connection: Any) -> None:
        """Send a browser the state of the run, and do what it asks for."""
        await connection.send(_text({"kind": "hello", **self._live.contents()}))
        self._clients[connection] = math.inf
        self._order(connection, {"kind": "seek", "share": 1.0, "span": 5.0}, replaces=True)
        left, last = _BURST, wall.monotonic()
        try:
            async for message in connection:
                now = wall.monotonic()
                left, last = min(_BURST, left + _RATE * (now - last)), now
                if left >= 1.0:
                    left -= 1.0
                    with suppress(ValueError, TypeError, KeyError, RecursionError):
                        self._order(connection, dict(json.loads(message)))
        except Exception as error:  # of a connection that broke
            logging.getLogger("flexure.live").debug("%r", error)
        finally:
            self._clients.pop(connection, None)

    def _order(self, connection: Any, message: dict[str, Any], *, replaces: bool = False) -> None:
        """Let the run do what a message asks for, and answer when it is done."""
        kind, path = message["kind"], message.get("path")
        answer = self._live.order(kind, message)

        def done(_: object) -> None:
            with suppress(RuntimeError):  # of a loop that is closed
                self._loop.call_soon_threadsafe(reply)

        def reply() -> None:
            error = answer.exception()
            if isinstance(error, FlexureError):
                text = {"kind": "refused", "path": path, "text": str(error)}
                self._send([connection], text)
            elif error is None and kind == "seek":
                rows = plain(answer.result())
                self._send([connection], {"kind": "rows", "rows": rows, "seek": not replaces})
            elif error is None and kind in ("set", "continue"):
                values = {path: message.get("value")}
                if kind == "continue":  # those of then
                    values = {e["path"]: e["value"] for e in self._live.contents()["controls"]}
                self._send(self._clients, {"kind": "values", "values": values})

        answer.add_done_callback(done)

    async def _stream(self) -> None:
        """Send new samples to all browsers, some times a second."""
        state = ""
        while True:
            await asyncio.sleep(_PULSE)
            rows: list[list[float]] = []
            with suppress(IndexError):
                while len(rows) < _WAITING:
                    rows.append(self._rows.popleft())
            if rows:
                self._send(self._clients, {"kind": "rows", "rows": plain(rows)})
            if self._clients and (now := self._live.summary()) != state:
                state = now
                self._send(self._clients, {"kind": "state", "text": state})

    def _send(self, clients: Any, message: dict[str, Any]) -> None:
        """Send to browsers that can take more; disconnect those that take nothing for long."""
        text, now, ready = _text(message), wall.monotonic(), []
        for client in [each for each in clients if each in self._clients]:  # others are gone
            if client.transport.get_write_buffer_size() < _BACKLOG:
                ready.append(client)
                self._clients[client] = math.inf
            else:
                self._clients[client] = since = min(self._clients.get(client, now), now)
                if now - since > _PATIENCE:
                    client.transport.abort()
        self._server.broadcast(ready, text)


def _text(message: dict[str, Any]) -> str:
    return json.dumps(message, allow_nan=False, separators=(",", ":"))
