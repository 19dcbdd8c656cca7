"""Computes leaderboards to keep: those of suites that have changed, one by one, and those across suites.

A board of a few agents takes milliseconds, one of 200 agents seconds, since every two of them are compared. What was computed
stays right until a result of its suites changes, which the store counts, or until one gets old.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from assay.model.board import BoardKey, StoredBoard
from assay.pipeline.leaderboard import rank_across, rank_suite
from assay.plugin.json_data import format_strict_json, to_json_data
from assay.report.documents.specification import across_suites_document, suite_board_document
from assay.store.store import Store

_NEVER = timedelta(days=36_500)
_AGES_ARE_RIGHT_TO = timedelta(hours=1)
"""The trials of a run end seconds apart: a board is not computed anew whenever one of them is a day older."""


def find_boards(store: Store, category: str, metric: str) -> dict[BoardKey, int]:
    """The boards that answer a question, with the count of changes that each should have; an empty category means all.

    The suite that ran last comes first, and the board across all of them last.
    """
    changes = store.changes()
    suites = [name for name, own in store.categories().items() if category in ("", own)]
    found = {BoardKey(suite, "", metric): changes.get(suite, 0) for suite in suites}
    # Counted for all suites, also those without runs: a sum that shrank with a deleted suite would take the board for an old one.
    return {**found, BoardKey("", category, metric): sum(changes.values())}


def compute_boards(
    store: Store, wanted: dict[BoardKey, int], known: Collection[StoredBoard], now: datetime
) -> Iterator[StoredBoard]:
    """Those of the wanted boards that are missing or out of date.

    `wanted` comes from `find_boards`, so changes were counted before results are read: whatever happens in between is in the board
    although it is not in its count, and has it computed once more.
    """
    current = {board.key for board in known if board.is_current(wanted.get(board.key, -1), now)}
    for key, changes in wanted.items():
        if key not in current:
            yield _compute(store, key, changes, now)


def _compute(store: Store, key: BoardKey, changes: int, now: datetime) -> StoredBoard:
    if key.suite:
        found = rank_suite(store, key.suite, key.metric, now)
        document = suite_board_document(found) if found else None
        expires = max(found.expires, now + _AGES_ARE_RIGHT_TO) if found else now + _NEVER
    else:
        document = across_suites_document(rank_across(store, key.category or None, key.metric, now))
        expires = now + _NEVER
    return StoredBoard(key, changes, now, expires, format_strict_json(to_json_data(document)))
