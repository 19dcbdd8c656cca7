"""Answers with leaderboards: kept ones at once, and new ones as soon as they are computed.

A board is looked up again once a second at most, by the count of changes of its suites. With few results, what has changed is
computed there and then. With many, a process of its own computes it and meanwhile the boards from before are shown, which the
answer says: requests wait for the very first board only.
"""

from __future__ import annotations

import gzip
import json
import logging
import subprocess
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Lock
from time import monotonic, sleep
from typing import Any

from anyio import CapacityLimiter
from fastapi import Response

from assay.errors import LookupFailed, format_unknown_name
from assay.model.board import BoardKey, StoredBoard
from assay.pipeline.boards import compute_boards, find_boards
from assay.server.answers import respond
from assay.server.cache import KeptByState
from assay.server.processes import start_worker
from assay.store.store import Store

_log = logging.getLogger(__name__)

FRESH_SECONDS = 1.0
_FEW_RATED = 2_000
"""Maximum rated trials for which boards are computed in this process."""
_FIRST_SECONDS = 20.0
"""Seconds a request waits for the very first board before it gets a 503."""
_RETRY_SECONDS = 30.0
"""Before a process is started again after one that ended with an error."""
_STEP_SECONDS = 0.25
_MOST_ANSWERS = 64
_MOST_BYTES = 32 << 20
_WAITING = 2
_VARIES = {"vary": "Accept-Encoding"}

Question = tuple[str, str, int]
"""Category, metric and limit."""


@dataclass(frozen=True, slots=True)
class BoardAnswer:
    """The text of an answer; compressed once for everybody, as it may have a megabyte, and hold no secret that its length could tell."""

    plain: bytes
    compressed: bytes

    def respond(self, accepted: str) -> Response:
        """Send the document compressed or plain, as the client's header Accept-Encoding allows."""
        if "gzip" not in accepted.lower():
            return Response(self.plain, media_type="application/json", headers=_VARIES)
        headers = {**_VARIES, "content-encoding": "gzip"}
        return Response(self.compressed, media_type="application/json", headers=headers)


@dataclass(frozen=True, slots=True)
class PackedBoard:
    """A board whose document is compressed: that of 500 agents has half a megabyte, and is opened only when it has changed."""

    board: StoredBoard
    """Without its document."""
    content: bytes

    def read(self, limit: int) -> Any:
        """The document with so many agents; None for a suite without results."""
        document = json.loads(zlib.decompress(self.content))
        for side in ("standings", "simulated") if document else ():
            document[side] = document[side][:limit]
        return document


def pack_board(board: StoredBoard) -> PackedBoard:
    return PackedBoard(replace(board, document=""), zlib.compress(board.document.encode()))


class BoardMemory(KeptByState[dict[BoardKey, PackedBoard]]):
    """Boards by workspace and metric, those of all workspaces within one bound."""

    def __init__(self) -> None:
        super().__init__(
            _MOST_BYTES, lambda boards: sum(len(packed.content) for packed in list(boards.values()))
        )


class BoardsNotReady(Exception):
    """The first boards are still being computed."""


class BoardKeeper:
    """The leaderboards of this server, and the process that computes them.

    A board is stored with the number of changes that it takes into account, so it is known when it is
    outdated. Readers get what is stored at once, marked as outdated if it is, while a process computes
    the newer ones; those of a small database are computed at once. Only the very first board is waited for,
    and only for a while.
    """

    def __init__(self, store: Store, db: str, memory: BoardMemory | None = None) -> None:
        self._store = store
        self._db = db
        self._lock = Lock()
        self._memory = memory or BoardMemory()
        self._answers: dict[Question, tuple[float, object, BoardAnswer]] = {}
        """When each was looked up last, the boards that it was made of, and its text."""
        self.limiter = CapacityLimiter(_WAITING)
        """Requests that wait for a board leave the threads of all other requests alone."""
        self._worker: subprocess.Popen[bytes] | None = None
        self._retry_at = 0.0

    def recent(self, question: Question) -> BoardAnswer | None:
        """An answer that was looked up a moment ago; never waits for anything."""
        at, _, written = self._answers.get(question, (0.0, None, None))
        return written if monotonic() - at < FRESH_SECONDS else None

    def read(self, question: Question) -> BoardAnswer:
        """The answer by what is stored now; BoardsNotReady while nothing of it has been computed."""
        deadline = monotonic() + _FIRST_SECONDS
        while True:
            with self._lock:
                if (written := self.recent(question)) is not None:
                    return written
                if (written := self._look_up(question)) is not None:
                    return written
            if monotonic() > deadline:
                raise BoardsNotReady
            sleep(_STEP_SECONDS)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker.communicate()

    def _look_up(self, question: Question) -> BoardAnswer | None:
        """Answer a question from the boards that are known; None while there is no board of any suite.

        The text is written again only if a board that it is made of has changed.
        """
        category, metric, _ = question
        at, now = monotonic(), datetime.now(UTC)
        wanted_category, by = (
            ("" if category == "overall" else category),
            ("overall" if metric == "all" else metric),
        )
        wanted = find_boards(self._store, wanted_category, by)
        if wanted_category and len(wanted) == 1:
            known = {"overall", *self._store.categories().values()}
            raise LookupFailed(format_unknown_name(wanted_category, "categories with results", known))
        kept = self._refresh(wanted, wanted_category, by, now)
        boards = {key: kept[key] for key in wanted if key in kept}
        suites = [key for key in wanted if key.suite]
        if suites and not any(key in boards for key in suites):
            return None
        outdated = [
            key for key, n in wanted.items() if key not in boards or not boards[key].board.is_current(n, now)
        ]
        made_of = (tuple(packed.board for packed in boards.values()), tuple(outdated))
        _, before, written = self._answers.get(question, (0.0, None, None))
        if written is None or before != made_of:
            written = _write_answer(question, wanted, boards, outdated)
        if len(self._answers) >= _MOST_ANSWERS:
            self._answers.clear()
        self._answers[question] = (at, made_of, written)
        return written

    def _refresh(
        self, wanted: dict[BoardKey, int], category: str, metric: str, now: datetime
    ) -> Mapping[BoardKey, PackedBoard]:
        """Return all boards by this metric that are known, after a look at what has changed.

        Boards that are still current are taken from memory without a query. Small databases are computed
        at once in this process, large ones by the worker.
        """
        place = (self._store.workspace, metric)
        before = self._memory.recall(place)
        kept = dict(before.value) if before is not None else {}

        def has_all() -> bool:
            return all(key in kept and kept[key].board.is_current(n, now) for key, n in wanted.items())

        if has_all():
            return kept
        known = [packed.board for packed in kept.values()]
        is_small = self._store.count_rated(_FEW_RATED + 1) <= _FEW_RATED
        new = (
            compute_boards(self._store, wanted, known, now) if is_small else self._store.boards(metric, known)
        )
        kept |= {board.key: pack_board(board) for board in new}
        if not is_small:
            self._bury_worker()
            if not has_all() and self._worker is None and monotonic() >= self._retry_at:
                self._worker = start_worker("board_worker", self._db, self._store.workspace, metric, category)
        self._memory.put(place, None, kept)
        return kept

    def _bury_worker(self) -> None:
        if self._worker is None or self._worker.poll() is None:
            return
        if self._worker.stdin is not None:
            self._worker.stdin.close()
        if self._worker.returncode:
            _log.warning("the process that computes leaderboards ended with code %s", self._worker.returncode)
            self._retry_at = monotonic() + _RETRY_SECONDS
        self._worker = None


def _write_answer(
    question: Question,
    wanted: Mapping[BoardKey, int],
    boards: Mapping[BoardKey, PackedBoard],
    outdated: list[BoardKey],
) -> BoardAnswer:
    category, metric, limit = question
    documents = [(key, boards[key].read(limit)) for key in wanted if key in boards]
    computed = min((packed.board.computed for packed in boards.values()), default=None)
    document = {
        "leaderboards": [document for key, document in documents if key.suite and document],
        "across_suites": next((document for key, document in documents if not key.suite), None),
        "category": category,
        "metric": metric,
        "computed_at": computed,
        "is_current": not outdated,
        "outdated_suites": [key.suite for key in outdated if key.suite],
    }
    written = bytes(respond(document).body)
    return BoardAnswer(written, gzip.compress(written, compresslevel=6, mtime=0))
