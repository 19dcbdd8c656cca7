"""Alerts, and the outbox that they are in until they are delivered.

An attempt is claimed by moving `due` on before the request is made. So two servers do not send the same alert, and one whose server
was killed in the middle is sent again later.
"""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from assay.model.alert import Alert, AlertState
from assay.model.codec import from_plain
from assay.store.tables import alerts
from assay.store.workspaces import is_own, workspace_of

_NAMES = tuple(Alert.__dataclass_fields__)
_FIELDS = [alerts.c[name] for name in _NAMES]


def add_alert(connection: sa.Connection, alert: Alert) -> bool:
    """Put an alert into the outbox; False if one with its key was raised before."""
    from sqlalchemy.dialects import postgresql, sqlite

    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    insert = dialect.insert(alerts).on_conflict_do_nothing().returning(alerts.c.id)
    row = {name: getattr(alert, name) for name in _NAMES if name != "id"}
    row |= {"workspace_id": workspace_of(connection), "kind": alert.kind.value, "state": alert.state.value}
    row |= {"due": alert.due or alert.created}
    return connection.execute(insert.values(row)).scalar() is not None


def claim_alert(connection: sa.Connection, now: datetime, until: datetime) -> Alert | None:
    """The alert that is due longest, which no other server sends before `until`; None if none is due."""
    query = sa.select(*_FIELDS).where(_is_due(connection, now)).order_by(alerts.c.due, alerts.c.id).limit(1)
    row = connection.execute(query.with_for_update(skip_locked=True)).mappings().one_or_none()
    if row is None:
        return None
    connection.execute(
        alerts.update().where(alerts.c.id == row["id"]).values(due=until, attempts=alerts.c.attempts + 1)
    )
    return from_plain(Alert, {**row, "attempts": row["attempts"] + 1})


def has_due_alerts(connection: sa.Connection, now: datetime) -> bool:
    return connection.scalar(sa.select(alerts.c.id).where(_is_due(connection, now)).limit(1)) is not None


def _is_due(connection: sa.Connection, now: datetime) -> sa.ColumnElement[bool]:
    own = is_own(connection, alerts)
    return sa.and_(own, alerts.c.state == AlertState.PENDING.value, alerts.c.due <= now)


def settle_alert(connection: sa.Connection, alert: Alert) -> None:
    """Store how an attempt ended."""
    values = {
        "state": alert.state.value,
        "due": alert.due or alert.created,
        "sent": alert.sent,
        "error": alert.error,
    }
    connection.execute(alerts.update().where(alerts.c.id == alert.id).values(values))


def read_alerts(
    connection: sa.Connection, before: int | None = None, limit: int = 100, state: AlertState | None = None
) -> list[Alert]:
    """Return the newest first; with `before`, only those with a smaller id."""
    query = sa.select(*_FIELDS).where(is_own(connection, alerts))
    if before is not None:
        query = query.where(alerts.c.id < before)
    if state is not None:
        query = query.where(alerts.c.state == state.value)
    rows = connection.execute(query.order_by(alerts.c.id.desc()).limit(limit)).mappings()
    return [from_plain(Alert, dict(row)) for row in rows]
