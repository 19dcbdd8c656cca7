"""Leaderboards that the server keeps, so that neither a restart nor a second server computes them again."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from assay.model.board import BoardKey, StoredBoard
from assay.store.tables import boards
from assay.store.workspaces import workspace_of

_KEY = ("suite", "category", "metric")


def read_boards(
    connection: sa.Connection, metric: str, known: Collection[StoredBoard] = ()
) -> list[StoredBoard]:
    """Return stored boards by this metric that are not in `known`; only their documents, which are long, are read."""
    column = boards.c
    of_metric = column.workspace_id == workspace_of(connection), column.metric == metric
    seen = {(board.key, board.changes, board.computed) for board in known}
    query = sa.select(column.suite, column.category, column.changes, column.computed).where(*of_metric)
    missing = [
        (row.suite, row.category)
        for row in connection.execute(query)
        if (BoardKey(row.suite, row.category, metric), row.changes, row.computed) not in seen
    ]
    found = []
    for suite, category in missing:
        whole = sa.select(boards).where(*of_metric, column.suite == suite, column.category == category)
        if (row := connection.execute(whole).one_or_none()) is not None:
            key = BoardKey(suite, category, metric)
            found.append(StoredBoard(key, row.changes, row.computed, row.expires, row.document))
    return found


def write_board(connection: sa.Connection, board: StoredBoard) -> None:
    """Replace the stored board, unless another process computed that one from later results."""
    key = {"workspace_id": workspace_of(connection), **{name: getattr(board.key, name) for name in _KEY}}
    chosen = [boards.c[name] == value for name, value in key.items()]
    stored = connection.scalar(sa.select(boards.c.changes).where(*chosen))
    if stored is not None and stored > board.changes:
        return
    connection.execute(boards.delete().where(*chosen))
    figures = {name: getattr(board, name) for name in ("changes", "computed", "expires", "document")}
    connection.execute(boards.insert(), {**key, **figures})
