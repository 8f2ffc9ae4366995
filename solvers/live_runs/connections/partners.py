"""Partners of a live run that never block a step: UDP packets, functions and queues."""

from __future__ import annotations

import math
import queue
import socket
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal

from flexure.diagrams.checks.arguments import can_be_written, count_of, require, shown
from flexure.diagrams.checks.errors import FlexureError, ValueRefusedError

AT_ONCE = 64  # packets that are read in one step; more than the buffer of a socket holds
_BUFFER = 16384  # bytes of received packets that wait, so that what is read is never old
Role = Literal["input", "output"]


class Partner:
    """A sender or receiver of values while a diagram runs; base of `UDP`, `Serial` and `CAN`.

    A partner is opened when a run begins and closed when it ends. Reads and writes return at once.

    Attributes
    ----------
    refused : int
        Number of packets and values that were rejected since it was opened.
    reason : str
        What was wrong with the last of them.
    """

    refused = 0
    reason = ""

    def _open(self, role: Role, size: int) -> None:
        """Get ready to send or take so many numbers at a time."""

    def _close(self) -> None:
        """Release what `open` took; does nothing when nothing was opened."""

    def _read(self, time: float) -> Any:
        """Return the latest value, or None when none has come since."""
        raise NotImplementedError

    def _write(self, time: float, values: Sequence[float]) -> None:
        """Send a value; what cannot be sent at once raises an OSError or `queue.Full`."""
        raise NotImplementedError

    def refuse(self, reason: str) -> None:
        """Count a packet or value that is rejected."""
        self.refused, self.reason = self.refused + 1, reason


class Packets(Partner):
    """A partner that exchanges numbers as packets of bytes, in a format of the module struct."""

    _format: str | None
    codec: struct.Struct

    def take_format(self, size: int) -> None:
        """Refuse a format that has another number of values."""
        self.codec = struct.Struct(self._format or f"<{size}d")
        found = len(self.codec.unpack(bytes(self.codec.size)))
        if found != size:
            raise ValueRefusedError(
                f"Cannot exchange values with {self}",
                expected=f"a format of {size} {'number' if size == 1 else 'numbers'}",
                found=f"{self._format!r} with {found}",
            )

    def decoded(self, data: bytes) -> Sequence[float] | str:
        """Return the numbers of a packet, or what is wrong with it."""
        wrong = len(data) != self.codec.size
        return f"bytes in place of {self.codec.size}" if wrong else self.codec.unpack(data)

    def encoded(self, values: Sequence[float]) -> bytes:
        """Return a packet of numbers, those of integer formats rounded."""
        kinds = map(type, self.codec.unpack(bytes(self.codec.size)))
        try:
            rounded = [
                round(v) if kind is int else v for v, kind in zip(values, kinds, strict=True)
            ]
            return self.codec.pack(*rounded)
        except (struct.error, OverflowError) as error:  # there is less room in the packet
            raise OSError(str(error)) from error

    def latest(self, packets: Iterable[bytes]) -> Any:
        """Return the value of the last valid packet, and count the others."""
        latest = None
        for data in packets:
            value = self.decoded(data)
            if isinstance(value, str):
                self.refuse(f"{len(data)} {value}")
            elif all(map(math.isfinite, value)):
                latest = value
            else:
                self.refuse("a number that is not finite")
        return latest


def checked_port(port: int, attempt: str) -> int:
    """Return the number of a port; 0 is for any free one."""
    number = count_of(port, "port", attempt, minimum=0)
    require(number < 65536, port, attempt, "a port below 65536")
    return number


class UDP(Packets):
    """Exchange numbers as UDP packets.

    As an input of a live run it receives packets at the port; as an output it sends them there. The
    latest valid packet counts, and older ones are discarded.

    Parameters
    ----------
    port : int
        The port. As an input, 0 takes a free one; ``port`` is its number during a run.
    host : str
        The address to listen at, or to send to. The default is reached from this machine only;
        ``"0.0.0.0"`` listens on all networks, without any protection.
    format : str, optional
        How a packet is made of numbers, as for the module ``struct``; one little-endian double for
        each component when omitted. Formats of integers round.

    Raises
    ------
    ValueRefusedError
        When the port or the format is refused; in `Live.run`, when the port is in use.

    See Also
    --------
    live : Run a diagram with partners.

    Examples
    --------
    >>> import flexure as fx
    >>> fx.UDP(5005, format="<f")
    UDP(5005, '127.0.0.1', format='<f')
    """

    def __init__(self, port: int, host: str = "127.0.0.1", *, format: str | None = None) -> None:
        attempt = "Cannot use a UDP partner"
        self.port = self._wanted = checked_port(port, attempt)
        self.host = checked_text(host, "host", attempt)
        self._format = checked_format(format, attempt)
        self._socket: socket.socket | None = None
        self._address: Any = None  # names are resolved once

    def _open(self, role: Role, size: int) -> None:
        self.take_format(size)
        made = None
        try:
            found = socket.getaddrinfo(self.host, self._wanted, type=socket.SOCK_DGRAM)
            family, *_, self._address = found[0]
            made = socket.socket(family, socket.SOCK_DGRAM)
            made.setblocking(False)
            if role == "input":
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
                made.bind(self._address)
                self.port = made.getsockname()[1]
        except (OSError, UnicodeError) as error:
            if made is not None:
                made.close()
            raise not_opened(self, "a free port of this machine", error) from error
        self._socket = made

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket, self.port = None, self._wanted

    def _read(self, time: float) -> Any:
        assert self._socket is not None
        packets: list[bytes] = []
        with suppress(BlockingIOError):
            while len(packets) < AT_ONCE:
                with suppress(ConnectionError):  # Windows reports the death of another partner
                    packets.append(self._socket.recv(self.codec.size + 1))
        return self.latest(packets)

    def _write(self, time: float, values: Sequence[float]) -> None:
        assert self._socket is not None
        self._socket.sendto(self.encoded(values), self._address)

    def __repr__(self) -> str:
        return f"UDP({self.port}, {self.host!r}{shown_format(self._format)})"


class FunctionPartner(Partner):
    """A function: ``f(time)`` returns a value or None; ``f(time, values)`` takes one."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def _read(self, time: float) -> Any:
        return self._function(time)

    def _write(self, time: float, values: Sequence[float]) -> None:
        self._function(time, values)

    def __repr__(self) -> str:
        return f"the function {getattr(self._function, '__name__', type(self._function).__name__)}"


class QueuePartner(Partner):
    """A queue, of this or of another process: the latest value counts, and a full one drops one."""

    def __init__(self, of: Any) -> None:
        self._queue = of

    def _read(self, time: float) -> Any:
        latest = None
        with suppress(queue.Empty):
            for _ in range(AT_ONCE):
                latest = self._queue.get_nowait()
        return latest

    def _write(self, time: float, values: Sequence[float]) -> None:
        try:
            self._queue.put_nowait(values)
        except queue.Full:
            with suppress(queue.Empty):
                self._queue.get_nowait()
            self._queue.put_nowait(values)

    def __repr__(self) -> str:
        return "a queue"


def partner_of(thing: Any, path: str, attempt: str) -> Partner:
    """Return the partner that a user means by an object, function or queue."""
    if isinstance(thing, Partner):
        return thing
    if hasattr(thing, "get_nowait") and hasattr(thing, "put_nowait"):
        return QueuePartner(thing)
    fits = callable(thing) and not isinstance(thing, type)
    require(fits, thing, f"{attempt} with '{path}'", "fx.UDP, Serial or CAN, a function or a queue")
    return FunctionPartner(thing)


def checked_format(format: Any, attempt: str) -> str | None:
    """Return a format of struct in which every value is a number."""
    if format is None:
        return None
    fits = isinstance(format, str) and 0 < len(format) <= 100
    with suppress(struct.error, UnicodeEncodeError):
        size = struct.calcsize(format) if fits else 0
        values = struct.unpack(format, bytes(size)) if 0 < size < 65508 else ()
        if values and all(type(value) in (int, float) for value in values):
            return str(format)
    expected = "a format of the module struct with numbers only, such as '<2f'"
    raise ValueRefusedError(attempt, expected=expected, found=shown(format))


def checked_text(value: Any, what: str, attempt: str) -> str:
    """Return a text that names something."""
    fits = isinstance(value, str) and value and can_be_written(value) and "\0" not in value
    require(fits, value, attempt, f"{what} to be a text")
    return str(value)


def shown_format(format: str | None) -> str:
    """Return how a format is given as an argument."""
    return "" if format is None else f", format={format!r}"


def not_opened(partner: Partner, expected: str, error: Exception) -> FlexureError:
    """Return the error of a partner that cannot be opened."""
    found = getattr(error, "strerror", None) or str(error)
    return ValueRefusedError(f"Cannot open {partner}", expected=expected, found=found)
