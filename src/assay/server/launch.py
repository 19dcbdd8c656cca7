"""Starts the server: opens the socket, tells its address, and serves until a signal ends it."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import socket
from collections.abc import Callable

import uvicorn

from assay.errors import AssayError
from assay.server.app import create_app
from assay.spec.settings import Settings
from assay.store.store import Store

HOST, PORT = "127.0.0.1", 8765
_GRACE_SECONDS = 5
"""For requests that are being answered when the server ends; streams of events are cut."""


def serve(
    settings: Settings, store: Store, db: str, host: str, port: int, announce: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM; `announce` is called with the URL once the server can be reached."""
    if not is_loopback(host) and not store.has_keys():
        raise AssayError(
            f"'{host}' can be reached from other machines, but there is no key. Create one first: assay key create NAME"
        )
    listener = _listen(host, port)
    with listener:
        address, bound = listener.getsockname()[:2]
        url_host = f"[{address}]" if listener.family == socket.AF_INET6 else address
        config = uvicorn.Config(
            create_app(settings, store, db),
            log_level="warning",
            access_log=False,
            server_header=False,
            # No client may claim a different address as the source of a request.
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        # What is there by now stays: looking through all of it for garbage now and then would hold up a request for as long as a page takes.
        gc.collect()
        gc.freeze()
        announce(f"http://{url_host}:{bound}")
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except asyncio.CancelledError:
            # Ctrl-C came before asyncio counts interrupts: it has cancelled the server and forgotten why.
            raise KeyboardInterrupt from None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on; the server answers them when it has started."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise AssayError(
            f"Port {port} of '{host}' cannot be used: {error.strerror}. Choose another: --port N"
        ) from None
    listener.listen(2048)
    return listener
