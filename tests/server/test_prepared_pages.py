"""Pages that rest on the comparison of many agents are worked out beside the server, and say how old they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import Request
from tests.past import Past
from tests.server.waiting import wait_for
from tests.store.examples import small_suite
from tests.store.test_store_standings import play, rated

from assay.errors import LookupFailed
from assay.model.codec import to_json
from assay.model.page import (
    Bar,
    Cell,
    Chart,
    Charts,
    Lane,
    ListItem,
    PageSection,
    Points,
    Table,
    Timeline,
)
from assay.model.rating import Rating
from assay.pipeline.ratings import rate_trials
from assay.report.pages.page import Page, page_from_plain
from assay.server.analyst import Analyst
from assay.server.cache import KeptByState
from assay.server.context import CALLER, BeingComputed, Contexts, Prepared, RequestCaller, ServerContext
from assay.server.pages.dashboard import show_dashboard
from assay.server.questions import AnalysisQuestion, _shorten, answer_from_plain, answer_question
from assay.server.queue import RunQueue
from assay.spec.settings import Settings
from assay.store.store import Store

BOARD = AnalysisQuestion("board", "small", {})


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerContext]:
    """A server that takes two agents for many."""
    monkeypatch.setattr("assay.server.context._FEW_AGENTS", 0)
    monkeypatch.chdir(tmp_path)
    db = f"sqlite:///{tmp_path / 'assay.db'}"
    with Store.open(db) as store:
        play(store, "run1", {"a": rated(accuracy=0.5), "b": rated(accuracy=0.9)})
        made = ServerContext(
            Settings(tmp_path, db), store, RunQueue(store, db, 1), Analyst(db, "default"), db=db
        )
        try:
            yield made
        finally:
            Contexts(made).close()


def try_to_prepare(context: ServerContext, question: AnalysisQuestion) -> Prepared | None:
    try:
        return context.prepare(question)
    except BeingComputed:
        return None


def test_a_process_works_out_what_the_server_would_say_and_old_figures_say_their_age(
    context: ServerContext,
) -> None:
    assert try_to_prepare(context, BOARD) is None
    found = wait_for(lambda: try_to_prepare(context, BOARD), bool)
    assert found is not None
    assert found.outdated_seconds is None
    assert to_json(found.answer) == to_json(answer_question(context.store, BOARD))
    assert set(found.answer.agents) == {"a", "b"}

    play(context.store, "run2", {"c": rated(accuracy=0.7)})
    old = context.prepare(BOARD)
    assert old.answer == found.answer
    assert old.outdated_seconds is not None
    new = wait_for(lambda: context.prepare(BOARD), lambda one: one.outdated_seconds is None)
    assert set(new.answer.agents) == {"a", "b", "c"}


def test_results_of_another_suite_leave_figures_as_they_are(context: ServerContext) -> None:
    kept = wait_for(lambda: try_to_prepare(context, BOARD), bool)
    play(context.store, "run2", {"c": rated(accuracy=0.7)}, suite=small_suite("other"))
    assert context.prepare(BOARD) == kept


def test_what_is_wrong_with_a_question_is_reported_as_if_the_server_had_looked(
    context: ServerContext,
) -> None:
    def ask() -> str:
        try:
            context.prepare(AnalysisQuestion("cost", "small", {"agents": ["nobody"]}))
        except BeingComputed:
            return ""
        except LookupFailed as error:
            return str(error)
        raise AssertionError

    assert "'nobody'" in wait_for(ask, bool)


def test_the_dashboard_waits_neither_for_the_best_agents_nor_for_newer_results_on_them(
    context: ServerContext,
) -> None:
    pasts = [Past(context.store, agent, made=10 * number) for number, agent in enumerate(("good", "bad"))]
    for past in pasts:
        for version in ("1", "2"):
            rate_trials(context.store, past.run(version, wrong=5 * (past.agent == "bad")), past.suite)
    request = Request({"type": "http", "headers": [], CALLER: RequestCaller(context)})
    figures = ("Metrics over runs", "Overall")

    def read_dashboard(**asked: str) -> str:
        return bytes(show_dashboard(request, context, suite="desk", **asked).body).decode()  # type: ignore[arg-type]

    assert "data-computing" in (first := read_dashboard())
    assert not any(title in first for title in figures)
    whole = wait_for(read_dashboard, lambda page: "data-computing" not in page)
    assert "Timeline of good" in whole
    assert all(title in whole for title in figures)

    rate_trials(context.store, pasts[0].run("3"), pasts[0].suite)
    old = read_dashboard()
    assert "data-computing" in old
    assert all(title in old for title in figures)
    assert "newest 2" in old
    assert "newest 3" in wait_for(read_dashboard, lambda page: "data-computing" not in page)


def test_agents_that_somebody_chose_are_compared_at_once(context: ServerContext) -> None:
    pair = AnalysisQuestion("head to head", "small", {"a": "a", "b": "b"})
    assert context.prepare(pair, at_once=True).outdated_seconds is None
    play(context.store, "run2", {"a": rated(accuracy=0.7)})
    assert context.prepare(pair, at_once=True).outdated_seconds is not None


def test_a_process_that_dies_is_not_asked_the_same_at_once(
    context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.server.processes.sys.executable", "/bin/false")
    assert try_to_prepare(context, BOARD) is None
    wait_for(lambda: len(context.analyst._failed), bool)
    assert try_to_prepare(context, BOARD) is None
    assert not context.analyst._waiting


def test_a_page_of_every_block_is_the_same_after_its_way_through_a_pipe() -> None:

    cell = Cell("0.5", Rating("accuracy", 0.5, 0.4, 0.6), note="2", sort=0.5)
    blocks: list[Table | Points | Charts | Timeline | PageSection] = [
        Table(["Agent"], [[cell]], words=[0], breaks=frozenset({1}), caption=Cell("how"), minor=[1]),
        Points([ListItem("text", "good", "title")]),
        Charts([Chart("radar", {"mark": "line"})]),
        Timeline([Lane("g", "n", [Bar(0.0, 1.0)])], 2.0, "caption"),
        PageSection("Inner", [Points([ListItem("within")])]),
    ]
    page = Page(
        "Title", "board", ["fact"], [PageSection("Outer", blocks, anchor="outer")], "yes", True, ["why"]
    )
    data = json.loads(to_json({"page": page, "agents": ["a"], "document": ""}))
    assert to_json(page_from_plain(data["page"])) == to_json(page)
    assert answer_from_plain(data).agents == ["a"]


def test_what_is_kept_has_one_bound_and_the_oldest_goes_first() -> None:
    kept = KeptByState[bytes](10, len)
    for name in ("one", "two", "one", "three"):
        kept.get((name, "page"), 0, lambda: b"1234")
    assert kept.recall(("two", "page")) is None
    assert kept.find(("one", "page"), 0) == b"1234"
    assert kept.find(("one", "page"), 1) is None


def test_a_page_about_costs_has_as_many_rows_and_pieces_of_advice_as_asked_for() -> None:
    advice = Points([ListItem(f"agent {n}") for n in range(5)])
    section = PageSection("Costs", [Table(["Agent"], [[Cell(f"{n}")] for n in range(4)]), advice])
    table, points = (found := _shorten(section, 3)).blocks
    assert isinstance(table, Table)
    assert isinstance(points, Points)
    assert (len(table.rows), [one.text for one in points.points]) == (3, ["agent 0", "agent 1", "agent 2"])
    assert [note.split()[0] for note in found.notes] == ["3"]
