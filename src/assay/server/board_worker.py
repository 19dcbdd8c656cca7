"""Computes boards that are out of date and keeps them in the store: `python -m assay.server.board_worker METRIC CATEGORY`.

In a process of its own: with hundreds of agents it takes minutes and hundreds of megabytes, which the server does without.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

from assay.pipeline.boards import compute_boards, find_boards
from assay.spec.settings import find_settings
from assay.store.store import Store

_NICE = 10
"""Requests that wait for the server come first."""


def main(metric: str, category: str) -> None:
    os.nice(_NICE)
    Thread(target=_end_with_server, daemon=True).start()
    settings = find_settings(Path.cwd())
    with Store.open(settings.db, workspace=settings.workspace) as store:
        wanted = find_boards(store, category, metric)
        for board in compute_boards(store, wanted, store.boards(metric), datetime.now(UTC)):
            store.keep_board(board)


def _end_with_server() -> None:
    # Whatever is half done is computed again by the next one.
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
