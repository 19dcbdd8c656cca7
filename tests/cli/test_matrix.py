from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.command import AssayInline, Prepare
from tests.services import Postgres
from tests.suites.project import numbers, python_agent, suite
from tests.wording import Wording

from assay.model import DIMENSIONS

AGENTS = """
def good(text): return text
def fair(text): return text if int(text) % 2 == 0 else "?"
def bad(text): return text if int(text) % 10 == 0 else "?"
"""


def play(assay: AssayInline) -> None:
    assay.write("agents.py", AGENTS)
    agents: list[dict[str, Any]] = [python_agent(name, price="free") for name in ("bad", "fair", "good")]
    agents.append({"name": "dream", "type": "simulated", "seconds": 0.0})
    benchmark = {"rubric": {"reference": {"seconds": 0.001}}}
    assay.write("s.yaml", suite(numbers(60), agents, benchmark=benchmark))
    assert assay.run_inline("s.yaml", "-q").code == 0


@pytest.fixture
def played(assay_inline: AssayInline, prepare: Prepare) -> AssayInline:
    prepare(assay_inline, play)
    return assay_inline


def _matrix(played: AssayInline, *arguments: str) -> dict[str, Any]:
    [made] = played("matrix", *arguments, "--json").json
    return dict(made)


def test_every_agent_has_a_rank_on_every_dimension_that_it_is_rated_on(played: AssayInline) -> None:
    rows = {row["agent_id"]: row for row in _matrix(played)["agent_comparison_matrix"]}
    assert [name for name, row in rows.items() if not row["simulated"]] == ["good", "fair", "bad"]
    assert {name: row["accuracy_rank"] for name, row in rows.items()} == {
        "good": 1,
        "fair": 2,
        "bad": 3,
        "dream": 1,
    }
    assert rows["good"]["avg_accuracy"] == 100
    for row in rows.values():
        for name in DIMENSIONS:
            assert (row[f"{name}_rank"] is None) == (row[f"avg_{name}"] is None)
    assert rows["fair"]["rank_intervals"]["accuracy"] == [2, 2]
    assert rows["good"]["intervals"]["accuracy"][0] < 100
    assert rows["good"]["rank_intervals"]["cost"] == [1, 3]


def test_rows_have_the_columns_and_the_figures_of_the_view(played: AssayInline) -> None:
    engine = sa.create_engine(f"sqlite:///{played.folder / '.assay' / 'assay.db'}", poolclass=sa.NullPool)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT * FROM agent_comparison_matrix").mappings().all()
    view = {row["agent_id"]: row for row in found}
    told = _matrix(played)["agent_comparison_matrix"]
    assert set(view) == {row["agent_id"] for row in told}
    figures = [name for name in found[0] if name.startswith("avg_")]
    for row in told:
        assert set(view[row["agent_id"]]) - {"workspace_id"} <= set(row)
        for name in (*figures, "overall_score", "benchmarks_completed", "benchmarks_total"):
            assert row[name] == pytest.approx(view[row["agent_id"]][name])


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, of each kind in turn: on PostgreSQL the matrix is stored, and somebody must refresh it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'views.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.empty()


def _viewed(url: str, selected: str) -> dict[str, float | None]:
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sa.NullPool)
    with engine.connect() as connection:
        return {row[0]: row[1] for row in connection.execute(sa.text(f"SELECT agent_id, {selected}"))}


def test_views_have_the_figures_of_the_commands_before_and_after_the_reference_is_changed(
    assay_inline: AssayInline, url: str
) -> None:
    """A solved case costs 1 usd in the first run, 4 usd in the second."""
    agents = [{"name": name, "type": "simulated", "seconds": 0.0, "usd": 1.0} for name in ("one", "two")]
    assay_inline.write("s.yaml", suite(numbers(20), agents))
    dear = ("--agent", "two", "--set", "agent.usd=4.0")
    for more in ((), dear):
        assert assay_inline.run_inline("s.yaml", "-q", "--seed", "1", *more, "--db", url).code == 0

    def shown() -> dict[str, float | None]:
        rows = _matrix(assay_inline, "--db", url)["agent_comparison_matrix"]
        return {row["agent_id"]: row["avg_cost"] for row in rows}

    def viewed() -> dict[str, float | None]:
        return _viewed(url, "cost_score FROM benchmark_executions ORDER BY created_at")

    def ranked() -> dict[str, float | None]:
        return _viewed(url, "avg_cost FROM agent_comparison_matrix")

    assert shown() == viewed() == ranked() == pytest.approx({"one": 50, "two": 20})
    for baseline in (("set", "main", "last"), ("delete", "main")):
        assert assay_inline("baseline", *baseline, "--json", "--db", url).json["rated_again"] == 0
        assert shown() == viewed() == ranked() == pytest.approx({"one": 50, "two": 20})
    change = assay_inline("suite", "reference", "s.yaml", "--set", "last", "--json", "--db", url).json
    assert change["rated_again"] == 3
    assert shown() == viewed() == ranked() == pytest.approx({"one": 80, "two": 50})


def test_every_two_agents_meet_head_to_head(played: AssayInline) -> None:
    duels = {frozenset((one["a"], one["b"])): one for one in _matrix(played)["head_to_head"]}
    assert set(duels) == {frozenset(pair) for pair in (("good", "fair"), ("good", "bad"), ("fair", "bad"))}
    one = duels[frozenset(("good", "bad"))]
    assert "accuracy" in (one["wins"] if one["a"] == "good" else one["losses"])
    assert sum(len(one[side]) for side in ("wins", "losses", "undecided")) == 5


@pytest.mark.parametrize("width", ["80", "120"])
def test_the_matrix_fits_the_terminal(played: AssayInline, width: str) -> None:
    shown = played("matrix", "--head-to-head", COLUMNS=width)
    assert max(map(len, shown.out.splitlines())) <= int(width)
    assert "1/1" in shown.out
    assert "Undecided" in shown.out
    assert "Simulated" in shown.out
    command = "assay leaderboard --suite s"
    assert command in shown.err


def test_a_single_agent_meets_nobody(assay_inline: AssayInline, wording: Wording) -> None:
    assay_inline.write("agents.py", AGENTS)
    assay_inline.write("s.yaml", suite(numbers(3), [python_agent("good")]))
    assert assay_inline.run_inline("s.yaml", "-q").code == 0
    shown = assay_inline("matrix", "--head-to-head")
    assert shown.code == 0
    assert "Undecided" not in shown.out
    wording(shown.out, near="Head to head")


def test_without_results_there_is_no_matrix(assay_inline: AssayInline, wording: Wording) -> None:
    refusal = assay_inline("matrix").refusal
    assert "assay run" in refusal
    wording(refusal)


def test_a_suite_that_does_not_exist_is_reported_with_the_nearest(
    played: AssayInline, wording: Wording
) -> None:
    refusal = played("matrix", "--suite", "ss").refusal
    assert "'ss'" in refusal
    assert "Suites with results: s." in refusal
    wording(refusal)
