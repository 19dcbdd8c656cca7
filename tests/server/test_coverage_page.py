"""The page about coverage: a table of cells where suites are few, and counts by suite or by agent where they are many."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from fastapi import Request
from tests.past import NOON, Past, suite_of

from assay.errors import LookupFailed
from assay.model.coverage import CoverageAges
from assay.server.analyst import Analyst
from assay.server.context import CALLER, RequestCaller, ServerContext
from assay.server.pages.operations import show_coverage
from assay.server.queue import RunQueue
from assay.spec.settings import Settings
from assay.store.store import Store

OLD, NEW = NOON - timedelta(days=31), NOON - timedelta(hours=2)
AGES = CoverageAges(
    ("a", "b", "c"),
    ("all", "never", "some"),
    {"all": {"a": NEW, "b": NEW, "c": NEW}, "some": {"b": NEW, "c": OLD}},
    NOON,
)
"""`a` has a fresh result on `all` alone, and `c` one on `some` that is stale."""


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ServerContext]:
    """`careful` has run the suites s0, s1 and s2, and `fast` s0 alone."""
    db = f"sqlite:///{tmp_path / 'assay.db'}"
    with Store.open(db) as store:
        for number in range(3):
            Past(store, "careful", suite_of("refunds", name=f"s{number}"), made=number).run()
        Past(store, "fast", suite_of("refunds", name="s0"), made=3).run()
        yield ServerContext(
            Settings(tmp_path, db), store, RunQueue(store, db, 1), Analyst(db, "default"), db=db
        )


def read_page(context: ServerContext, **asked: str) -> str:
    request = Request({"type": "http", "headers": [], CALLER: RequestCaller(context)})
    return bytes(show_coverage(request, context, **asked).body).decode()  # type: ignore[arg-type]


def read_rows(page: str) -> list[list[str]]:
    """The texts of the cells, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", page.partition("<tbody>")[2], re.DOTALL)
    cells = (re.findall(r"<td.*?</td>", row, re.DOTALL) for row in rows)
    return [[" ".join(re.sub(r"<[^>]*>", " ", cell).split()) for cell in row] for row in cells]


def test_what_has_most_to_do_comes_first() -> None:
    assert AGES.count_states() == {"fresh": 4, "stale": 1, "never": 4}
    by_suite = [(row.name, row.fresh, row.stale, row.never) for row in AGES.counts_by_suite]
    assert by_suite == [("never", 0, 0, 3), ("some", 1, 1, 1), ("all", 3, 0, 0)]
    by_agent = [(row.name, row.fresh, row.stale, row.never) for row in AGES.count_by_agent()]
    assert by_agent == [("a", 1, 0, 2), ("c", 1, 1, 1), ("b", 2, 0, 1)]
    assert AGES.counts_by_suite[0].latest_days is None
    assert AGES.counts_by_suite[2].latest_days == pytest.approx(2 / 24)
    assert AGES.list_by_need("some", None) == {"a": None, "c": 31.0, "b": pytest.approx(2 / 24)}
    assert list(AGES.list_by_need("some", None)) == ["a", "c", "b"]
    assert list(AGES.list_by_need(None, "c")) == ["never", "some", "all"]


def test_few_suites_are_columns_and_many_are_counted(
    context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = read_page(context)
    assert [row[0] for row in read_rows(matrix)] == ["careful", "fast"]
    assert [row[0] for row in read_rows(read_page(context, only="never"))] == ["fast"]

    monkeypatch.setattr("assay.server.pages.operations._COLUMNS", 2)
    counted = read_page(context)
    # Stale, since all of it ran long ago.
    assert [row[:4] for row in read_rows(counted)] == [
        ["s1", "0", "1", "1"],
        ["s2", "0", "1", "1"],
        ["s0", "0", "2", "0"],
    ]
    assert 'href="/ui/coverage?suite=s1"' in counted
    assert [row[0] for row in read_rows(read_page(context, only="never"))] == ["s1", "s2"]
    by_agent = read_rows(read_page(context, by="agent"))
    assert [row[:4] for row in by_agent] == [["fast", "0", "1", "2"], ["careful", "0", "3", "0"]]


def test_a_suite_lists_its_agents_and_an_agent_its_suites(context: ServerContext) -> None:
    assert [row[:2] for row in read_rows(read_page(context, suite="s1"))] == [
        ["fast", "never"],
        ["careful", "stale"],
    ]
    assert [row[0] for row in read_rows(read_page(context, suite="s1", only="stale"))] == ["careful"]
    assert [row[0] for row in read_rows(read_page(context, agent="fast"))] == ["s1", "s2", "s0"]
    for asked in ({"suite": "s9"}, {"agent": "nobody"}):
        with pytest.raises(LookupFailed):
            read_page(context, **asked)


def test_the_parts_of_a_long_list_follow_each_other(
    context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.server.pages.operations._COLUMNS", 2)
    monkeypatch.setattr("assay.server.pages.operations._ROWS", 1)
    found, asked = [], {"by": "agent"}
    while True:
        page = read_page(context, **asked)
        found += [row[0] for row in read_rows(page)]
        following = re.search(r'rel="next" href="/ui/coverage\?by=agent&amp;after=(\w+)"', page)
        if following is None:
            break
        asked["after"] = following[1]
    assert found == ["fast", "careful"]
    assert 'rel="prev" href="/ui/coverage?by=agent"' in page


def test_only_suites_that_have_changed_are_read_again(
    context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Collection[str] | None] = []
    read = Store.latest_by_suite

    def count_reads(self: Store, suites: Collection[str] | None = None) -> dict[str, dict[str, datetime]]:
        reads.append(suites)
        return read(self, suites)

    monkeypatch.setattr(Store, "latest_by_suite", count_reads)
    first = context.latest_by_suite()
    assert (context.latest_by_suite(), reads) == (first, [None])
    Past(context.store, "slow", suite_of("refunds", name="s1"), made=4).run()
    second = context.latest_by_suite()
    assert (set(second["s1"]), second["s2"]) == ({"careful", "slow"}, first["s2"])
    context.store.delete("run003")
    assert context.latest_by_suite().keys() == {"s0", "s1"}
    assert reads == [None, {"s1"}, {"s2"}]
