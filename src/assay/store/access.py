"""Keys of the server and its audit log.

A key is `assay_PREFIX_SECRET` with a secret of 256 random bits, so a plain SHA-256 of it cannot be reversed by trying: no salt and
no slow hash are needed. The prefix finds the row, and the hashes are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime

import sqlalchemy as sa

from assay.errors import LookupFailed, no_such
from assay.model.access import ApiKey, AuditEntry, Scope
from assay.model.codec import from_plain
from assay.store.tables import DEFAULT_WORKSPACE, api_keys, audit_log

_WORD = "assay"
_FIELDS = [api_keys.c[name] for name in ApiKey.__dataclass_fields__]
_ENTRY = [audit_log.c[name] for name in AuditEntry.__dataclass_fields__]


def create_key(
    connection: sa.Connection, name: str, scope: Scope, expires: datetime | None, now: datetime
) -> tuple[ApiKey, str]:
    """A new key, and its secret text, which is stored nowhere."""
    key = ApiKey(secrets.token_hex(4), name, scope, now, expires)
    token = f"{_WORD}_{key.prefix}_{secrets.token_urlsafe(32)}"
    row = {field: getattr(key, field) for field in ApiKey.__dataclass_fields__}
    row |= {"scope": scope.value, "hash": _hash(token), "workspace_id": DEFAULT_WORKSPACE}
    connection.execute(api_keys.insert(), row)
    return key, token


def find_key(connection: sa.Connection, token: str) -> ApiKey | None:
    """The key that a text is, whether or not it is valid now; None if it is none."""
    parts = token.split("_", 2)
    prefix = parts[1] if len(parts) == 3 and parts[0] == _WORD and parts[1].isalnum() else ""
    query = sa.select(api_keys.c.hash, *_FIELDS).where(api_keys.c.prefix == prefix)
    row = connection.execute(query).mappings().one_or_none()
    # Compared also where there is no such key: an answer takes as long either way.
    is_right = hmac.compare_digest(_hash(token), row["hash"] if row else _hash(""))
    return from_plain(ApiKey, {k: v for k, v in row.items() if k != "hash"}) if row and is_right else None


def note_use(connection: sa.Connection, key: ApiKey, now: datetime) -> None:
    connection.execute(api_keys.update().where(api_keys.c.prefix == key.prefix).values(last_used=now))


def read_keys(connection: sa.Connection) -> list[ApiKey]:
    """All of them, revoked ones too, the oldest first."""
    query = sa.select(*_FIELDS).order_by(api_keys.c.created, api_keys.c.prefix)
    return [from_plain(ApiKey, dict(row)) for row in connection.execute(query).mappings()]


def revoke_key(connection: sa.Connection, prefix: str, now: datetime) -> ApiKey:
    """From now on the key is refused; one that was revoked before keeps its time."""
    keys = {key.prefix: key for key in read_keys(connection)}
    if prefix not in keys:
        raise LookupFailed(no_such(prefix, "keys", keys))
    chosen = api_keys.c.prefix == prefix, api_keys.c.revoked.is_(None)
    connection.execute(api_keys.update().where(*chosen).values(revoked=now))
    return next(key for key in read_keys(connection) if key.prefix == prefix)


def write_entry(connection: sa.Connection, entry: AuditEntry) -> None:
    row = {field: getattr(entry, field) for field in AuditEntry.__dataclass_fields__}
    connection.execute(audit_log.insert(), {**row, "workspace_id": DEFAULT_WORKSPACE})


def read_entries(connection: sa.Connection, before: int | None, limit: int) -> list[tuple[int, AuditEntry]]:
    """With their numbers, the newest first."""
    query = sa.select(audit_log.c.id, *_ENTRY).order_by(audit_log.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(audit_log.c.id < before)
    rows = connection.execute(query).mappings()
    return [(row["id"], from_plain(AuditEntry, {k: v for k, v in row.items() if k != "id"})) for row in rows]


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
