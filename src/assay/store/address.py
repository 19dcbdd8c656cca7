"""Where the database is: a URL that the user wrote, parsed and made safe to show.

Every message of the store names the database by `Address.shown` or `Address.place`, so that no password ever gets into one.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from assay.errors import StoreError

_ACCEPTED = "Use sqlite:///FILE or postgresql://USER@HOST/DATABASE."
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")
_HIDDEN = "***"
_SQLITE_OPTIONS = {"timeout", "cached_statements"}


@dataclass(frozen=True, slots=True)
class Address:
    """A database URL that was parsed. Messages name it by `shown` or `place`, never by `url`, which holds the password."""

    url: sa.URL
    """With the driver that is used."""
    file: Path | None
    """SQLite's file; None for a server and in memory."""

    @property
    def is_in_memory(self) -> bool:
        return self.file is None and self.url.get_backend_name() == "sqlite"

    @property
    def shown(self) -> str:
        """The URL as a person may see it, without its password."""
        visible = self.url.set(drivername=self.url.get_backend_name())
        if "password" in visible.query:
            visible = visible.update_query_dict({"password": _HIDDEN})
        return visible.render_as_string(hide_password=True)

    @property
    def has_nothing_hidden(self) -> bool:
        """Whether `shown` opens the database: it has no password that is hidden."""
        return not self.url.password and "password" not in self.url.query

    @property
    def place(self) -> str:
        return str(self.file) if self.file else self.shown

    def redact(self, message: str) -> str:
        """A message of a driver without the password: some drivers quote the whole URL when a connection fails."""
        for secret in (self.url.password, self.url.query.get("password")):
            if isinstance(secret, str) and secret:
                message = message.replace(secret, _HIDDEN)
        return message


def read_address(written: str) -> Address:
    """The address that a URL means; StoreError for one that cannot be a database of ours.

    Whether the database exists and can be reached is not asked here.
    """
    # Not quoted: a terminal would obey control characters, and half of a character cannot be written anywhere.
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in written):
        raise StoreError(f"The database URL has characters that cannot be in one, such as NUL. {_ACCEPTED}")
    try:
        url = sa.make_url(written)
    except (sa.exc.ArgumentError, ValueError):
        # Not quoted: what cannot be taken apart may hold a password anywhere.
        hint = "" if ":" in written or not written else f" For a file: sqlite:///{written}"
        raise StoreError(f"The database URL is not valid. {_ACCEPTED}{hint}") from None
    if url.drivername == "sqlite":
        return _sqlite(url)
    if url.drivername in _POSTGRES:
        return Address(url.set(drivername="postgresql+psycopg"), None)
    raise StoreError(f"Unsupported database '{url.drivername}'. {_ACCEPTED}")


def _sqlite(url: sa.URL) -> Address:
    """A file or a database in memory. A misspelt option is refused by its name here, and not by the driver in its own words."""
    if url.database in (None, "", ":memory:"):
        return Address(url.set(database=":memory:"), None)
    # Absolute, because connections are opened later as well, when the working folder may be another.
    try:
        file = Path(str(url.database)).expanduser().absolute()
    except (OSError, RuntimeError) as error:
        raise StoreError(
            f"The path in the database URL cannot be used: {error}. Use a different one with --db"
        ) from None
    if unknown := sorted(set(url.query) - _SQLITE_OPTIONS):
        raise StoreError(
            f"A SQLite URL has no option '{unknown[0]}'. Known: {', '.join(sorted(_SQLITE_OPTIONS))}."
        )
    return Address(url.set(database=str(file)), file)
