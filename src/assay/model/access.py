"""Who may use the server: keys with a scope, and what was done with them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from assay.model.workspace import DEFAULT


class Scope(StrEnum):
    """What a key allows; each scope allows all that those before it do."""

    READ = "read"
    RUN = "run"
    """Start, cancel and resume runs, which may cost money."""
    ADMIN = "admin"

    def allows(self, needed: Scope) -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key without its secret, of which only a hash is stored."""

    prefix: str
    """The part that may be shown, which names the key."""
    name: str
    scope: Scope
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    last_used: datetime | None = None
    workspace: str = DEFAULT
    """What it opens: nothing outside of this workspace."""

    def is_valid(self, now: datetime) -> bool:
        return self.revoked is None and (self.expires is None or now < self.expires)


_NOTED_EVERY = timedelta(minutes=1)
"""The last use of a key is stored to this precision, so that reading does not mean writing."""


def is_use_due(key: ApiKey, now: datetime) -> bool:
    """Whether its last use is to be stored."""
    return key.last_used is None or now - key.last_used >= _NOTED_EVERY


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A request that changed something, or that was refused without a valid key."""

    at: datetime
    key: str
    """The prefix of the key; empty where there was none."""
    address: str
    method: str
    path: str
    status: int
