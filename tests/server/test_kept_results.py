"""What is kept of results, boards and ranks, is right for everybody who reads it, and computed no more often than it helps."""

from __future__ import annotations

import subprocess
from bisect import bisect_left
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import pytest
from tests.past import Past, suite_of
from tests.store.test_store_standings import play, rated

from assay.model.board import BoardKey, StoredBoard
from assay.pipeline.boards import compute_boards, find_boards
from assay.server.boards import BoardKeeper, BoardsNotReady
from assay.store.results import ResultFilter
from assay.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'assay.db'}") as opened:
        yield opened


def test_the_board_across_suites_follows_when_a_suite_loses_its_runs(store: Store) -> None:
    for number, name in enumerate(("desk", "old")):
        Past(store, "good", suite_of("refunds", name=name), made=number).run()
    across = BoardKey("", "", "overall")

    def keep_boards() -> None:
        for board in compute_boards(store, find_boards(store, "", "overall"), [], datetime.now(UTC)):
            store.keep_board(board)

    def read_across() -> StoredBoard:
        return next(one for one in store.boards("overall") if one.key == across)

    keep_boards()
    with_both = read_across()
    store.delete("run002")
    keep_boards()
    assert read_across().changes > with_both.changes
    assert read_across().is_current(find_boards(store, "", "overall")[across], datetime.now(UTC))


def test_a_process_that_fails_to_compute_boards_is_not_started_again_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(store, "run1", {"a": rated(accuracy=0.5)})
    monkeypatch.setattr("assay.server.boards._FEW_RATED", 0)
    monkeypatch.setattr("assay.server.boards._FIRST_SECONDS", 1.0)
    started: list[object] = []

    def start_failing(*_: object) -> subprocess.Popen[bytes]:
        started.append(None)
        return subprocess.Popen(["false"], stdin=subprocess.PIPE)

    monkeypatch.setattr(BoardKeeper, "_start_worker", start_failing)
    keeper = BoardKeeper(store, "")
    with pytest.raises(BoardsNotReady):
        keeper.read(("overall", "all", 20))
    assert len(started) == 1
    monkeypatch.setattr("assay.server.boards.monotonic", lambda: monotonic() + 31)
    with pytest.raises(BoardsNotReady):
        keeper.read(("overall", "all", 20))
    keeper.close()
    assert len(started) == 2


def test_a_page_is_ranked_among_the_same_results_whatever_others_read_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(store, "run1", {"a": rated(overall=0.9), "b": rated(overall=0.4)})
    others: list[float | None] = []

    def read_in_between(ordered: list[float], overall: float) -> int:
        monkeypatch.setattr("assay.store.results.bisect_left", bisect_left)
        play(store, "run2", {"c": rated(overall=0.95)})
        with ThreadPoolExecutor(1) as pool:
            others.extend(pool.submit(read_ranks).result())
        return bisect_left(ordered, overall)

    def read_ranks() -> list[float | None]:
        return [row["percentile_rank"] for row in store.results(ResultFilter())]

    monkeypatch.setattr("assay.store.results.bisect_left", read_in_between)
    assert read_ranks() == [0.0, 100.0]
    assert others == [100.0, 0.0, 50.0]
