"""Sends alerts to the webhook of the operator.

The URL is often a secret itself, as with Slack. It is read from the environment when it is needed, and appears in no log, no
database and no answer: what is said about a failure is its kind.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Timer
from urllib.parse import urlsplit

from assay import __version__
from assay.errors import AssayError
from assay.model.alert import Alert
from assay.model.redaction import known_secrets
from assay.report.documents.operations import webhook_document
from assay.spec.settings import Settings

_SECONDS = 10.0
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_MOST_READ = 1000


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where alerts go."""

    is_secure: bool
    host: str
    port: int | None
    path: str
    seconds: float = _SECONDS
    """For a whole request, however slowly its answer comes in."""

    def send(self, alert: Alert) -> str:
        """Send one alert; what went wrong, or nothing. Redirects are not followed: the operator named one receiver."""
        body = json.dumps(webhook_document(alert), default=str).encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"assay/{__version__}",
            # The same for every attempt, so that a receiver can tell a repetition.
            "Idempotency-Key": f"assay-alert-{alert.id}",
        }
        connection = self._connect()
        limit = Timer(self.seconds, _hang_up, [connection])
        limit.daemon = True
        limit.start()
        try:
            connection.request("POST", self.path, body, headers)
            answer = connection.getresponse()
            answer.read(_MOST_READ)
        except (OSError, http.client.HTTPException) as error:
            return f"The webhook could not be reached: {type(error).__name__}."
        finally:
            limit.cancel()
            connection.close()
        return "" if 200 <= answer.status < 300 else f"The webhook answered {answer.status}."

    def _connect(self) -> http.client.HTTPConnection:
        if self.is_secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self.host, self.port, timeout=self.seconds, context=context)
        return http.client.HTTPConnection(self.host, self.port, timeout=self.seconds)


def _hang_up(connection: http.client.HTTPConnection) -> None:
    """Shut down the raw socket so that a blocked read returns. SSLSocket.shutdown must not be called from another thread."""
    if isinstance(connection.sock, socket.socket):
        with suppress(OSError):
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)


def find_webhook(settings: Settings, environment: Mapping[str, str] = os.environ) -> Webhook | None:
    """The webhook of the settings; None where there is none. AssayError for one that cannot be used."""
    written = settings.server.get("webhook")
    if not written:
        return None
    if missing := [name for name in _VARIABLE.findall(written) if not environment.get(name)]:
        raise AssayError(
            f"server.webhook needs the variable '{missing[0]}', which is not set. Set it, or remove the setting."
        )
    url = _VARIABLE.sub(lambda match: environment[match[1]], written)
    known_secrets().learn(url, "server.webhook")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise AssayError("server.webhook must be a URL that begins with http:// or https://.")
    if parts.username is not None:
        raise AssayError("server.webhook has a user name, which is not sent. Put the secret into its path.")
    path = parts.path or "/"
    return Webhook(
        parts.scheme == "https", parts.hostname, port, f"{path}?{parts.query}" if parts.query else path
    )
