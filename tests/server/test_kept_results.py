"""What is kept of results, boards and ranks, is right for everybody who reads it, and computed no more often than it helps."""

from __future__ import annotations

import subprocess
from bisect import bisect_left
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import pytest
from fastapi import Request
from tests.past import Past, suite_of
from tests.store.test_store_standings import play, rated

from assay.model.board import BoardKey, StoredBoard
from assay.pipeline.boards import compute_boards, find_boards
from assay.pipeline.coverage import measure_coverage
from assay.pipeline.ratings import rate_trials
from assay.server.analyst import Analyst
from assay.server.boards import BoardKeeper, BoardsNotReady
from assay.server.context import CALLER, RequestCaller, ServerContext
from assay.server.pages.compare import show_comparison
from assay.server.pages.suites import show_suite
from assay.server.queue import RunQueue
from assay.spec.settings import Settings
from assay.store.results import ResultFilter
from assay.store.search import CoverageCell
from assay.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'assay.db'}") as opened:
        yield opened


def open_context(store: Store, folder: Path) -> ServerContext:
    db = f"sqlite:///{folder / 'assay.db'}"
    return ServerContext(Settings(folder, db), store, RunQueue(store, db, 1), Analyst(db, "default"), db=db)


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

    monkeypatch.setattr("assay.server.boards.start_worker", start_failing)
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


def test_a_comparison_and_the_cases_of_a_suite_follow_new_results_and_lost_ones(
    store: Store, tmp_path: Path
) -> None:
    context = open_context(store, tmp_path)
    request = Request({"type": "http", "headers": [], CALLER: RequestCaller(context)})

    def add_run(past: Past, wrong: int = 0) -> None:
        rate_trials(store, past.run(wrong=wrong), past.suite)

    def read_pages() -> tuple[bytes, bytes]:
        compared = show_comparison(request, context, "good", "bad", suite="desk")
        return bytes(compared.body), bytes(show_suite(request, context, "desk").body)

    add_run(Past(store, "good"))
    add_run(Past(store, "bad", made=1), wrong=10)
    before = read_pages()
    assert read_pages() == before
    add_run(Past(store, "bad", made=2), wrong=20)
    assert not set(read_pages()) & set(before)
    store.delete("run003")
    assert read_pages() == before


def test_coverage_is_read_once_until_there_is_another_run(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, reads = open_context(store, tmp_path), []
    read = Store.coverage

    def count_reads(self: Store, agents: Collection[str] | None = None) -> list[CoverageCell]:
        reads.append(agents)
        return read(self, agents)

    monkeypatch.setattr(Store, "coverage", count_reads)

    def count_runs() -> dict[str, int]:
        found = measure_coverage(store, context.settings, datetime.now(UTC), source=context)
        return {cell.suite: cell.runs for cell in found.cells}

    Past(store, "good").run()
    assert [count_runs(), count_runs(), len(reads)] == [{"desk": 1}, {"desk": 1}, 1]
    Past(store, "good", suite_of("refunds", name="other"), made=1).run()
    assert [count_runs(), len(reads)] == [{"desk": 1, "other": 1}, 2]
    store.delete("run001")
    assert [count_runs(), len(reads)] == [{"other": 1}, 3]
