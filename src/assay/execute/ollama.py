"""Where Ollama is, by its own variable."""

from __future__ import annotations

LOCAL_URL = "http://127.0.0.1:11434"


def local_url(host: str | None) -> str:
    """
    >>> local_url("0.0.0.0"), local_url("gpu:9000"), local_url(None)
    ('http://127.0.0.1:11434', 'http://gpu:9000', 'http://127.0.0.1:11434')
    """
    if not host:
        return LOCAL_URL
    scheme, _, rest = host.rpartition("://")
    name, _, port = rest.rstrip("/").partition(":")
    # The server listens on 0.0.0.0, which is nowhere to connect to.
    name = "127.0.0.1" if name in ("0.0.0.0", "") else name  # noqa: S104
    return f"{scheme or 'http'}://{name}:{port or 11434}"
