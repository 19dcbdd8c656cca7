"""`assay serve`: the dashboard and the REST API of the project in the current folder, until Ctrl-C ends it."""

from __future__ import annotations

import os

import click

from assay.cli.output import echo
from assay.cli.session import Session, common


@click.command()
@click.option("--host", metavar="ADDRESS", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Port to listen on; 0 picks a free one.  [default: 8765]",
)
@common
def serve(session: Session, host: str | None, port: int | None) -> None:
    """Serve the dashboard and the REST API: run suites on the agents of this project, and see all results.

    It runs only agents and suites that assay.toml names or that are registered in the database. Host and port can be set
    under [server] in assay.toml.
    """
    from assay.errors import MissingExtra

    try:
        from assay.server.launch import HOST, PORT
        from assay.server.launch import serve as serve_until_signal
    except ImportError as error:
        raise MissingExtra(f"The server needs {error.name}: pip install 'assay-bench[server]'") from None

    def announce(url: str) -> None:
        if session.is_json:
            session.emit({"url": url, "pid": os.getpid(), "options": {}})
        else:
            echo(f"Assay serves {url} (schema: {url}/openapi.json). Ctrl-C ends it.")

    settings = session.settings
    chosen = settings.server
    with session.store() as store:
        serve_until_signal(
            settings,
            store,
            session.db or settings.db,
            host or chosen.get("host", HOST),
            chosen.get("port", PORT) if port is None else port,
            announce,
        )
