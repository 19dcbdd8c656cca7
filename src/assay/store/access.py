"""Keys of the server, the sessions of browsers that logged in with one, and the audit log.

A key is `assay_PREFIX_SECRET` with a secret of 256 random bits, so a plain SHA-256 of it cannot be reversed by trying: no salt and
no slow hash are needed. The prefix finds the row, and the hashes are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import UTC, datetime

import sqlalchemy as sa

from assay.errors import LookupFailed, format_unknown_name
from assay.model.access import ApiKey, AuditEntry, Scope
from assay.model.codec import from_plain
from assay.store.tables import api_keys, audit_log, sessions, workspaces
from assay.store.workspaces import is_own, workspace_of

_WORD = "assay"
_FIELDS = [
    workspaces.c.name.label(name) if name == "workspace" else api_keys.c[name]
    for name in ApiKey.__dataclass_fields__
]
_keys = sa.select(*_FIELDS).join(workspaces, workspaces.c.id == api_keys.c.workspace_id)
_ENTRY = [audit_log.c[name] for name in AuditEntry.__dataclass_fields__]


def create_key(
    connection: sa.Connection,
    name: str,
    scope: Scope,
    expires: datetime | None = None,
    now: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A new key, and its secret text, which is stored nowhere."""
    prefix = secrets.token_hex(4)
    token = f"{_WORD}_{prefix}_{secrets.token_urlsafe(32)}"
    row = {"prefix": prefix, "name": name, "scope": scope.value, "expires": expires}
    own = {
        "hash": _hash(token),
        "workspace_id": workspace_of(connection),
        "created": now or datetime.now(UTC),
    }
    connection.execute(api_keys.insert(), {**row, **own})
    return _read_key(connection, prefix), token


def exists(connection: sa.Connection) -> bool:
    """Whether there is a key of any workspace, revoked or not: from then on a server answers only requests with one."""
    return connection.scalar(sa.select(api_keys.c.prefix).limit(1)) is not None


def find_key(connection: sa.Connection, token: str) -> ApiKey | None:
    """The key that a text is, of whatever workspace and whether or not it is valid now; None if it is none."""
    parts = token.split("_", 2)
    prefix = parts[1] if len(parts) == 3 and parts[0] == _WORD and parts[1].isalnum() else ""
    query = _keys.add_columns(api_keys.c.hash).where(api_keys.c.prefix == prefix)
    row = connection.execute(query).mappings().one_or_none()
    # Compared also where there is no such key: an answer takes as long either way.
    is_right = hmac.compare_digest(_hash(token), row["hash"] if row else _hash(""))
    return from_plain(ApiKey, {k: v for k, v in row.items() if k != "hash"}) if row and is_right else None


def note_use(connection: sa.Connection, key: ApiKey, now: datetime) -> None:
    connection.execute(api_keys.update().where(api_keys.c.prefix == key.prefix).values(last_used=now))


def read_keys(connection: sa.Connection) -> list[ApiKey]:
    """Return the keys of the workspace, revoked ones included, the oldest first."""
    query = _keys.where(is_own(connection, api_keys)).order_by(api_keys.c.created, api_keys.c.prefix)
    return [from_plain(ApiKey, dict(row)) for row in connection.execute(query).mappings()]


def _read_key(connection: sa.Connection, prefix: str) -> ApiKey:
    row = connection.execute(_keys.where(api_keys.c.prefix == prefix)).mappings().one()
    return from_plain(ApiKey, dict(row))


def revoke_key(connection: sa.Connection, prefix: str, now: datetime | None = None) -> ApiKey:
    """Revoke a key; one that was revoked before keeps its time."""
    keys = {key.prefix: key for key in read_keys(connection)}
    if prefix not in keys:
        raise LookupFailed(format_unknown_name(prefix, "keys", keys))
    chosen = api_keys.c.prefix == prefix, api_keys.c.revoked.is_(None)
    connection.execute(api_keys.update().where(*chosen).values(revoked=now or datetime.now(UTC)))
    return _read_key(connection, prefix)


def create_session(
    connection: sa.Connection, key: ApiKey, expires: datetime, now: datetime | None = None
) -> str:
    """The secret text of a new session of this key, which is stored nowhere. Sessions that have ended are forgotten."""
    now = now or datetime.now(UTC)
    connection.execute(sessions.delete().where(sessions.c.expires <= now))
    token = secrets.token_urlsafe(32)
    own = sa.select(api_keys.c.workspace_id).where(api_keys.c.prefix == key.prefix).scalar_subquery()
    row = {
        "hash": _hash(token),
        "workspace_id": own,
        "prefix": key.prefix,
        "created": now,
        "expires": expires,
    }
    connection.execute(sessions.insert().values(row))
    return token


def find_session(connection: sa.Connection, token: str, now: datetime | None = None) -> ApiKey | None:
    """The key that a session was opened with, whether or not it is valid now; None if there is no such session, or it has ended.

    The hash of 256 random bits is looked up as it is: how long that takes tells nothing about another session's text.
    """
    query = _keys.join(sessions, sessions.c.prefix == api_keys.c.prefix)
    query = query.where(sessions.c.hash == _hash(token), sessions.c.expires > (now or datetime.now(UTC)))
    row = connection.execute(query).mappings().one_or_none()
    return from_plain(ApiKey, dict(row)) if row else None


def end_session(connection: sa.Connection, token: str) -> None:
    connection.execute(sessions.delete().where(sessions.c.hash == _hash(token)))


def write_entry(connection: sa.Connection, entry: AuditEntry) -> None:
    row = {field: getattr(entry, field) for field in AuditEntry.__dataclass_fields__}
    connection.execute(audit_log.insert(), {**row, "workspace_id": workspace_of(connection)})


def read_entries(
    connection: sa.Connection, before: int | None = None, limit: int = 100
) -> list[tuple[int, AuditEntry]]:
    """Return entries of the audit log with their numbers, the newest first; with `before`, only those with a smaller number."""
    own = is_own(connection, audit_log)
    query = sa.select(audit_log.c.id, *_ENTRY).where(own).order_by(audit_log.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(audit_log.c.id < before)
    rows = connection.execute(query).mappings()
    return [(row["id"], from_plain(AuditEntry, {k: v for k, v in row.items() if k != "id"})) for row in rows]


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
