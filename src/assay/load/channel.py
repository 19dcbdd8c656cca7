"""A connection that carries one request at a time, with the kernel's time of arrival for each read.

The kernel stamps a segment when it arrives (SO_TIMESTAMPNS, Linux only). Read with the data, that stamp keeps the time of a
token exact even if the worker was busy with another connection at that moment. Elsewhere the time of the read is used.
"""

from __future__ import annotations

import errno
import socket
import struct
import sys
import time
from enum import Enum, auto

from assay.load.answer import Reply

READ_BYTES = 64 * 2**10
"""More than 128 kB would be fetched from the system, and given back, with every read."""
_TIMESTAMPNS = 35
_unpack_stamp = struct.Struct("qq").unpack
_STAMP_SPACE = socket.CMSG_SPACE(struct.calcsize("qq")) if sys.platform == "linux" else 0
_KINDS = {
    errno.ECONNREFUSED: "refused",
    errno.ECONNRESET: "reset",
    errno.EPIPE: "reset",
    errno.ECONNABORTED: "reset",
    errno.ETIMEDOUT: "connect_timeout",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.EMFILE: "no_descriptors",
    errno.ENFILE: "no_descriptors",
    errno.EADDRNOTAVAIL: "no_ports",
}


class TlsError(OSError):
    """TLS failed; the message says why."""


class State(Enum):
    """A channel is CONNECTING until it can send, then BUSY with a request or IDLE until it gets the next."""

    CONNECTING = auto()
    IDLE = auto()
    BUSY = auto()


# Looking a member of an enumeration up takes longer than all else that is done with it here.
_CONNECTING, _IDLE, _BUSY = State.CONNECTING, State.IDLE, State.BUSY


class KernelClock:
    """How far the wall clock, by which the kernel stamps arrivals, is ahead of the monotonic clock: whole seconds, and the rest.

    Kept in two parts, because a float of seconds since 1970 is exact only to a quarter of a microsecond.
    """

    __slots__ = ("fraction", "whole")

    def __init__(self) -> None:
        self.follow()

    def follow(self) -> None:
        """Follow the wall clock; to be called now and then, since it is corrected while the load runs."""
        before = time.monotonic_ns()
        wall = time.time_ns()
        offset = wall - (before + time.monotonic_ns()) // 2
        self.whole, rest = divmod(offset, 1_000_000_000)
        self.fraction = rest * 1e-9


class Channel:
    """A plain TCP connection; `tls.TlsChannel` adds encryption. It never blocks. Times are those of `time.monotonic`.

    The worker calls `begin` to send a request, `finish_connecting`, `send_rest` and `read` when the poller says so, and `rest`
    when the answer is whole. `number` is the request that it carries, or -1.
    """

    __slots__ = (
        "_clock", "_unsent", "begun", "due", "fd", "is_reused", "number", "payload", "reply",
        "sent", "socket", "state", "target",
    )  # fmt: skip

    def __init__(self, address: tuple[socket.AddressFamily, object], clock: KernelClock | None) -> None:
        self._clock = clock
        self.socket = socket.socket(address[0], socket.SOCK_STREAM)
        self.socket.setblocking(False)
        if address[0] != getattr(socket, "AF_UNIX", None):
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if clock is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)
        self.fd = self.socket.fileno()
        self.state = _CONNECTING
        self.is_reused = False
        self.number = -1
        self.target = 0
        self.due = self.begun = self.sent = 0.0
        self.payload = b""
        self._unsent = memoryview(b"")
        self.reply = Reply()
        # A socket that does not block connects in the background; the poller reports it as writable when that has ended.
        failed = self.socket.connect_ex(address[1])  # type: ignore[arg-type]
        if failed not in (0, errno.EINPROGRESS):
            self.socket.close()
            raise OSError(failed, "")

    def begin(
        self,
        number: int,
        payload: bytes,
        due: float,
        begun: float,
        is_close_look: bool = True,
        keeps_text: bool = False,
    ) -> None:
        """Take a request on; it is sent now, or as soon as the connection stands."""
        self.number, self.payload, self.due, self.begun = number, payload, due, begun
        self.reply = Reply(is_close_look, keeps_text)
        if self.state is _IDLE:
            self.state = _BUSY
            self._send_all()

    def finish_connecting(self) -> None:
        """The connection stands; to be called when it may first be written to."""
        failed = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, "")
        self.state = _IDLE
        if self.number >= 0:
            self.state = _BUSY
            self._send_all()

    def _send_all(self) -> None:
        # The time of sending is taken before the system call: on loopback the server may answer before that returns.
        payload = self.payload
        self.sent = time.monotonic()
        try:
            sent = self.socket.send(payload)
        except BlockingIOError:
            sent = 0
        if sent < len(payload):
            self._unsent = memoryview(payload)[sent:]
            self.send_rest()

    @property
    def wants_to_write(self) -> bool:
        return self.state is _CONNECTING or len(self._unsent) > 0

    def send_rest(self) -> None:
        while self._unsent:
            try:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
            except BlockingIOError:
                return

    def read(self) -> tuple[bytes, float] | None:
        """Bytes and when they arrived; None when there are none now; no bytes when the other side has closed."""
        clock = self._clock
        try:
            if clock is None:
                return self.socket.recv(READ_BYTES), time.monotonic()
            data, extra, _, _ = self.socket.recvmsg(READ_BYTES, _STAMP_SPACE)
        except BlockingIOError:
            return None
        # The kernel stamps segments, and the end of a connection is none.
        if not extra:
            return data, time.monotonic()
        seconds, nanoseconds = _unpack_stamp(extra[0][2])
        return data, (seconds - clock.whole) + nanoseconds * 1e-9 - clock.fraction

    def rest(self) -> None:
        """The request is done; the connection may carry another."""
        self.state = _IDLE
        self.is_reused = True
        self.number = -1
        self.payload = b""

    def close(self) -> None:
        self.socket.close()


def kind_of(error: OSError) -> str:
    """The kind of error that a report counts it as; one of this machine's own limits is told from those of the server."""
    if isinstance(error, TlsError):
        return "tls"
    return _KINDS.get(error.errno or 0, "connection")
