"""TLS over a channel, with the kernel's times of arrival.

Python's TLS sockets do not give access to the kernel's timestamps, so bytes are read from the plain socket and decrypted in
memory (`ssl.MemoryBIO`).
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time

from assay.load.channel import READ_BYTES, Channel, KernelClock, State, TlsError


def trusting(ca_file: str | None, is_checked: bool = True, trusted: str | None = None) -> ssl.SSLContext:
    """A context that trusts the certificates of the file, or those of a text in PEM format, else those of the system, or any;
    OSError where the file is no use."""
    context = ssl.create_default_context(cafile=ca_file, cadata=trusted)
    if not is_checked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


_REASONS = {
    "WRONG_VERSION_NUMBER": "the server does not speak TLS on this port",
    "HTTP_REQUEST": "the server does not speak TLS on this port",
    "TLSV1_ALERT_PROTOCOL_VERSION": "no common TLS protocol version",
    "UNSUPPORTED_PROTOCOL": "no common TLS protocol version",
    "NO_PROTOCOLS_AVAILABLE": "no common TLS protocol version",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the server refused the handshake (no common cipher or protocol)",
    "NO_SHARED_CIPHER": "the server refused the handshake (no common cipher or protocol)",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the server requires a client certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "the server does not accept the client certificate",
}
"""OpenSSL's names of failures, in words."""


def failure_reason(error: ssl.SSLError) -> str:
    """Why a handshake failed: OpenSSL's verdict on the certificate, or its reason in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message.rstrip(".")
    name = error.reason or ""
    return _REASONS.get(name, name.replace("_", " ").lower() or "the handshake failed")


class TlsChannel(Channel):
    """A channel whose bytes are encrypted; the state stays CONNECTING until the handshake is done.

    Encrypted bytes go from the socket to `_incoming` and from `_outgoing` to the socket. Whatever is asked of `_tls` may
    write to `_outgoing`, as an answer to a renegotiation or a key update, so each such call is followed by `_push`.
    """

    __slots__ = ("_fault", "_incoming", "_is_shaking_hands", "_outgoing", "_tls")

    def __init__(
        self,
        address: tuple[socket.AddressFamily, object],
        clock: KernelClock | None,
        context: ssl.SSLContext,
        name: str,
    ) -> None:
        super().__init__(address, clock)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._is_shaking_hands = False
        self._fault: TlsError | None = None
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)

    def finish_connecting(self) -> None:
        failed = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, "")
        self._is_shaking_hands = True
        self._shake_hands()

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            # It is the server's turn; the handshake continues with what it sends.
            self._push()
            return
        except ssl.SSLError as error:
            raise TlsError(failure_reason(error)) from None
        # The client's last message of the handshake must leave before the request that may already be waiting.
        self._push()
        self.state = State.IDLE
        if self.number >= 0:
            self.state = State.BUSY
            self._send_all()

    @property
    def wants_to_write(self) -> bool:
        return len(self._unsent) > 0 or (self.state is State.CONNECTING and not self._is_shaking_hands)

    def _send_all(self) -> None:
        self._tls.write(self.payload)
        self.sent = time.monotonic()
        self._push()

    def _push(self) -> None:
        self._unsent = memoryview(bytes(self._unsent) + self._outgoing.read())
        self.send_rest()

    def read(self) -> tuple[bytes, float] | None:
        """As of a plain channel: decrypted bytes, with the time at which the last encrypted ones of them arrived.

        A read from the socket may hold several records, parts of one, or only what the handshake needs, in which case there
        is nothing to return. All records are taken at once: what stayed in `_incoming` would wait for the next event of the
        socket, which may never come. A fault that follows good data is raised by the next read, after the data.
        """
        arrived = super().read()
        if arrived is None:
            return None
        data, at = arrived
        if not data:
            if self._fault is not None:
                raise self._fault
            return arrived
        self._incoming.write(data)
        if self.state is State.CONNECTING:
            self._shake_hands()
            return None
        pieces = []
        try:
            while piece := self._tls.read(READ_BYTES):
                pieces.append(piece)
            # Nothing without an error is the end that TLS itself announces (close_notify).
            self._stop_reading()
            return b"".join(pieces), at
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self._fault = TlsError(failure_reason(error))
            if not pieces:
                raise self._fault from None
            self._stop_reading()
            return b"".join(pieces), at
        self._push()
        return (b"".join(pieces), at) if pieces else None

    def _stop_reading(self) -> None:
        """The other side says no more, whether or not it closes the connection: the next read finds its end."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
