"""Partners of a live run behind adapters: serial lines and CAN buses."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from flexure.diagrams.checks.arguments import count_of, import_extra, require
from flexure.solvers.live_runs.connections.partners import (
    AT_ONCE,
    Packets,
    Role,
    checked_format,
    checked_text,
    not_opened,
    shown_format,
)

_LINE = 4096  # bytes of an unfinished frame of a serial line


class Serial(Packets):
    """Exchange numbers over a serial line, as lines of text or as packets.

    Parameters
    ----------
    port : str
        The device, such as ``"/dev/ttyACM0"`` or ``"COM3"``.
    baudrate : int
        Bits per second.
    format : str, optional
        How a packet is made of numbers, as for the module ``struct``; each packet begins with the
        bytes ``start``. When omitted, a value is a line of text: numbers with commas or spaces
        between them. The first line that is received is discarded: it may lack its beginning.
    start : bytes
        With what packets begin, so that a receiver finds them.

    Raises
    ------
    MissingExtraError
        When a run begins without the package pyserial: ``pip install 'flexure[serial]'``.
    ValueRefusedError
        When an argument is refused; in `Live.run`, when the device cannot be opened.

    See Also
    --------
    UDP : Exchange numbers as UDP packets.

    Examples
    --------
    >>> import flexure as fx
    >>> fx.Serial("/dev/ttyACM0", 921600)
    Serial('/dev/ttyACM0', 921600)
    """

    def __init__(
        self,
        port: str,
        baudrate: int = 115200,
        *,
        format: str | None = None,
        start: bytes = b"\xa5\x5a",
    ) -> None:
        attempt = "Cannot use a serial partner"
        self.port = checked_text(port, "port", attempt)
        self.baudrate = count_of(baudrate, "baudrate", attempt, minimum=1)
        self._format = checked_format(format, attempt)
        fits = isinstance(start, bytes) and len(start) > 0  # type: ignore[redundant-expr]
        require(fits, start, attempt, "start to be some bytes")
        self._start, self._size = start, 0
        self._line: Any = None
        self._rest = self._unsent = b""

    def _open(self, role: Role, size: int) -> None:
        serial = import_extra("serial", "serial", "Cannot open a serial line")
        self._size = size
        if self._format is not None:
            self.take_format(size)
        try:
            self._line = serial.Serial(self.port, self.baudrate, timeout=0, write_timeout=0)
        except (OSError, ValueError) as error:
            raise not_opened(self, "a serial device that is free", error) from error
        self._rest = self._unsent = b""
        self._is_aligned = False

    def _close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            with suppress(OSError):  # of a device that is gone
                line.close()

    def _read(self, time: float) -> Any:
        self._rest += self._line.read(_LINE)
        if self._format is None:
            *frames, self._rest = self._rest.split(b"\n")
            if frames and not self._is_aligned:
                self._is_aligned = True
                del frames[0]
        else:
            frames = [*self._packets(len(self._start), self.codec.size)]
        self._rest = self._rest[-_LINE:]
        return self.latest(frames)

    def _packets(self, start: int, size: int) -> Iterator[bytes]:
        while (at := self._rest.find(self._start)) >= 0 and len(self._rest) >= at + start + size:
            yield self._rest[at + start : at + start + size]
            self._rest = self._rest[at + start + size :]

    def decoded(self, data: bytes) -> Sequence[float] | str:
        """Return the numbers of a packet or a line, or what is wrong with it."""
        if self._format is not None:
            return super().decoded(data)
        try:
            value = [float(number) for number in data.replace(b",", b" ").split()]
        except ValueError:
            return "bytes that are no numbers"
        return value if len(value) == self._size else f"bytes that are not {self._size} numbers"

    def _write(self, time: float, values: Sequence[float]) -> None:
        self._write_unsent()
        if self._unsent:
            raise BlockingIOError("the line takes no more")
        if self._format is None:
            self._unsent = (",".join(map(repr, map(float, values))) + "\n").encode()
        else:
            self._unsent = self._start + self.encoded(values)
        self._write_unsent()

    def _write_unsent(self) -> None:
        """Write as much as the line takes at once; pyserial would try until it takes some."""
        if self._unsent and (os.name == "nt" or select.select([], [self._line], [], 0.0)[1]):
            self._unsent = self._unsent[self._line.write(self._unsent) :]

    def __repr__(self) -> str:
        return f"Serial({self.port!r}, {self.baudrate}{shown_format(self._format)})"


class CAN(Packets):
    """Exchange numbers as frames of a CAN bus.

    Parameters
    ----------
    identifier : int
        The identifier of the frames; one above 0x7FF is an extended one.
    channel : str
        The bus, such as ``"can0"``.
    interface : str
        The kind of adapter, as for the package python-can.
    format : str, optional
        How the data of a frame are made of numbers, as for the module ``struct``; one little-endian
        double for each component when omitted. A frame has at most 8 bytes.

    Raises
    ------
    MissingExtraError
        When a run begins without the package python-can: ``pip install 'flexure[can]'``.
    ValueRefusedError
        When an argument is refused; in `Live.run`, when the bus cannot be opened.

    See Also
    --------
    UDP : Exchange numbers as UDP packets.

    Examples
    --------
    >>> import flexure as fx
    >>> fx.CAN(0x120, "can0", format="<h")
    CAN(0x120, 'can0', format='<h')
    """

    def __init__(
        self,
        identifier: int,
        channel: str,
        *,
        interface: str = "socketcan",
        format: str | None = None,
    ) -> None:
        attempt = "Cannot use a CAN partner"
        self.identifier = count_of(identifier, "identifier", attempt, minimum=0)
        require(self.identifier < 2**29, identifier, attempt, "an identifier below 2**29")
        self.channel = checked_text(channel, "channel", attempt)
        self._interface = checked_text(interface, "interface", attempt)
        self._format = checked_format(format, attempt)
        self._bus: Any = None

    def _open(self, role: Role, size: int) -> None:
        can = import_extra("can", "can", "Cannot open a CAN bus")
        self.take_format(size)
        require(self.codec.size <= 8, self._format, f"Cannot use {self}", "at most 8 bytes")
        try:
            self._bus = can.Bus(
                channel=self.channel, interface=self._interface, receive_own_messages=False
            )
        except (OSError, ValueError, can.CanError) as error:
            raise not_opened(self, "a bus of this interface", error) from error
        self._message = can.Message

    def _close(self) -> None:
        bus, self._bus = self._bus, None
        if bus is not None:
            with suppress(Exception):  # of an adapter that is gone
                bus.shutdown()

    def _read(self, time: float) -> Any:
        packets: list[bytes] = []
        for _ in range(AT_ONCE):
            message = self._bus.recv(timeout=0)
            if message is None:
                break
            if message.arbitration_id == self.identifier and not message.is_error_frame:
                packets.append(bytes(message.data))
        return self.latest(packets)

    def _write(self, time: float, values: Sequence[float]) -> None:
        extended = self.identifier > 0x7FF
        data = self.encoded(values)
        self._bus.send(
            self._message(
                arbitration_id=self.identifier, data=data, is_extended_id=extended, check=True
            ),
            timeout=0,
        )

    def __repr__(self) -> str:
        return f"CAN({self.identifier:#x}, {self.channel!r}{shown_format(self._format)})"
