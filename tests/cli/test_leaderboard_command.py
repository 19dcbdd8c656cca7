from __future__ import annotations

import json
import re
import shlex
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from tests.command import AssayInline, Prepare
from tests.past import Past
from tests.suites.project import numbers, python_agent, suite
from tests.wording import Wording

from assay.pipeline.leaderboard import leaderboards
from assay.pipeline.ratings import rate_trials
from assay.store.store import Store

AGENTS = """
def good(text): return text
def bad(text): return text if int(text) % 4 == 0 else "?"
def broken(text): raise ValueError("no")
def sized(text, size=1): return text if int(text) % 10 < 3 * int(size) else "?"
"""
REFERENCE = {"rubric": {"reference": {"seconds": 0.001}}}


def write_project(assay: AssayInline) -> None:
    assay.write("agents.py", AGENTS)
    agents = [python_agent(name) for name in ("good", "bad")]
    assay.write("s.yaml", suite(numbers(40), agents, benchmark=REFERENCE, category="accuracy"))


def play(assay: AssayInline) -> None:
    write_project(assay)
    _run(assay, "s.yaml")


@pytest.fixture
def project(assay_inline: AssayInline) -> AssayInline:
    write_project(assay_inline)
    return assay_inline


@pytest.fixture
def played(assay_inline: AssayInline, prepare: Prepare) -> AssayInline:
    prepare(assay_inline, play)
    return assay_inline


def _run(project: AssayInline, *arguments: str) -> None:
    done = project.run_inline(*arguments, "-q")
    assert done.code == 0, done.err


def _board(project: AssayInline, *arguments: str) -> dict[str, Any]:
    [board] = project("leaderboard", *arguments, "--json").json
    return dict(board)


def _rows(board: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["agent"]: row for row in board["standings"]}


def test_an_agent_that_is_always_wrong_is_last_though_it_is_fast_and_consistent(
    project: AssayInline,
) -> None:
    project.write("agents.py", AGENTS + "def wrong(text): return '?'\n")
    agents = [python_agent(name, price="free") for name in ("wrong", "bad")]
    repeated = {**REFERENCE, "iterations": {"warmup": 0, "measured": 2}}
    project.write("s.yaml", suite(numbers(40), agents, benchmark=repeated))
    _run(project, "s.yaml")
    rows = _rows(_board(project))
    assert (rows["wrong"]["score"], rows["wrong"]["rank"]) == (0.0, [2, 2])
    assert rows["bad"]["score"] > 0.3


def test_a_partial_result_stands_until_there_is_a_whole_one_and_says_so(project: AssayInline) -> None:
    _run(project, "s.yaml", "--agent", "good", "--limit", "5")
    board = _board(project)
    assert _rows(board)["good"]["partial"] == {"b": "5 of 40"}
    assert _rows(board)["good"]["benchmarks_completed"] == "0/1"
    assert "(partial)" in project("leaderboard").out
    _run(project, "s.yaml", "--agent", "good")
    assert _rows(_board(project))["good"]["partial"] == {}


def test_cases_chosen_by_name_or_because_they_failed_do_not_replace_a_full_result(
    played: AssayInline,
) -> None:
    before = _board(played)
    _run(played, "s.yaml", "--agent", "bad", "--case", "c1")
    _run(played, "s.yaml", "--agent", "bad", "--failed", "last")
    assert _board(played) == before


def test_points_of_a_sweep_stand_beside_each_other(played: AssayInline) -> None:
    agents = [python_agent("sized")]
    played.write("sweep.yaml", f"suite: s.yaml\nagents: {agents}\nsweep: {{size: [1, 2]}}\n")
    _run(played, "sweep.yaml")
    rows = _rows(_board(played, "--metric", "accuracy"))
    assert {name: row["score"] for name, row in rows.items()} == {
        "good": 1.0,
        "sized[size=2]": 0.6,
        "sized[size=1]": 0.3,
        "bad": 0.25,
    }


def test_results_of_a_changed_benchmark_make_older_ones_stale(played: AssayInline, wording: Wording) -> None:
    changed = [{**case, "expected": f"{case['input']}!"} for case in numbers(40)]
    agents = [python_agent(name) for name in ("good", "bad")]
    played.write("s.yaml", suite(changed, agents, benchmark=REFERENCE, category="accuracy"))
    _run(played, "s.yaml", "--agent", "bad")
    board = _board(played, "--metric", "accuracy")
    rows = _rows(board)
    assert set(rows["good"]["stale"]) == {"b"}
    wording(rows["good"]["stale"]["b"])
    assert {row["tier"] for row in rows.values()} == {1}
    assert [row["agent"] for row in board["standings"]] == ["bad", "good"]
    assert "(stale)" in played("leaderboard").out


def test_a_newer_run_in_which_nothing_works_makes_the_older_one_stale(
    played: AssayInline, wording: Wording
) -> None:
    played.write("agents.py", AGENTS.replace("def good(text): return text", "def good(text): return 1 / 0"))
    assert played("run", "s.yaml", "--agent", "good", "-q").code == 1
    board = _board(played)
    stale = _rows(board)["good"]["stale"]
    assert set(stale) == {"b"}
    (told,) = (text for text in board["warnings"] if stale["b"] in text)
    assert told.startswith("good on b: ")
    wording(told)
    played.write("agents.py", AGENTS)
    assert played("run", "s.yaml", "--agent", "good", "-q").code == 0
    assert _rows(_board(played))["good"]["stale"] == {}


def test_a_newer_run_that_was_given_up_half_way_makes_the_older_one_stale(
    played: AssayInline, wording: Wording
) -> None:
    tiring = (
        "calls = []\ndef good(text):\n    calls.append(text)\n    return text if len(calls) < 10 else 1 / 0"
    )
    played.write("agents.py", AGENTS.replace("def good(text): return text", tiring))
    played("run", "s.yaml", "--agent", "good", "-q")
    [trial] = played("show", "last", "--json").json["trials"]
    assert trial["outcomes"]["pass"] > 0
    board = _board(played)
    assert _rows(board)["good"]["partial"] == {}
    stale = _rows(board)["good"]["stale"]
    assert set(stale) == {"b"}
    (told,) = (text for text in board["warnings"] if stale["b"] in text)
    assert told.startswith("good on b: ")
    wording(told)
    played.write("agents.py", AGENTS)
    assert played("run", "s.yaml", "--agent", "good", "-q").code == 0
    assert _rows(_board(played))["good"]["stale"] == {}


def test_a_board_says_whose_failures_did_not_tell_their_cost(project: AssayInline, wording: Wording) -> None:
    """Not those of `good`, which costs nothing."""
    dear = 'def bad(text): return {"output": text, "usd": 0.01} if int(text) % 4 else 1 / 0\n'
    project.write("agents.py", "def good(text): return text if int(text) % 4 else 1 / 0\n" + dear)
    project.run_inline("s.yaml", "-q", "--repetitions", "1")
    (told,) = (text for text in _board(project)["warnings"] if text.startswith(("bad: ", "good: ")))
    assert told.startswith("bad: ")
    assert "10" in told.split()
    wording(told)


def test_results_that_are_old_are_marked_stale(played: AssayInline) -> None:
    with Store.open(f"sqlite:///{played.folder / '.assay' / 'assay.db'}") as store:
        [board] = leaderboards(store, now=datetime.now(UTC) + timedelta(days=40, hours=1))
    assert [dict(row.contender.stale) for row in board.standings] == [{"b": "40 days old"}] * 2


def test_a_first_run_that_is_half_wrong_is_rated_one_half_by_its_own_cost(assay_inline: AssayInline) -> None:
    paid = 'def paid(text): return {"output": text if int(text) % 2 else "?", "usd": 0.02}'
    assay_inline.write("agents.py", paid)
    assay_inline.write("s.yaml", suite(numbers(10), [python_agent("paid")]))
    _run(assay_inline, "s.yaml")
    (trial,) = assay_inline("show", "last", "--json").json["trials"]
    assert trial["usd_per_solved"] == pytest.approx(0.04)
    assert trial["ratings"]["cost"]["value"] == pytest.approx(0.5)


def test_runs_can_be_chosen_by_tag_and_time(played: AssayInline, wording: Wording) -> None:
    run = played("runs", "list", "--json").json[0]["id"]
    assert played("runs", "tag", run, "nightly").code == 0
    assert len(_rows(_board(played, "--tag", "nightly", "--days", "1", "--since", "2020-01-01"))) == 2
    for option, value in (("--tag", "daily"), ("--since", "2999-01-01")):
        refusal = played("leaderboard", option, value).refusal
        assert value in refusal
        wording(refusal)


@pytest.mark.parametrize(
    ("option", "wrong", "meant"),
    [("--suite", "ss", "s"), ("--category", "accuracies", "accuracy"), ("--metric", "speeed", "speed")],
)
def test_a_name_that_does_not_exist_is_reported_with_the_nearest(
    played: AssayInline, option: str, wrong: str, meant: str, wording: Wording
) -> None:
    refusal = played("leaderboard", option, wrong).refusal
    assert f"'{wrong}'" in refusal
    assert f"'{meant}'" in refusal
    wording(refusal)


def test_agents_of_which_nothing_was_ok_are_named(played: AssayInline, wording: Wording) -> None:
    played.write(
        "s2.yaml", suite(numbers(40), [python_agent("broken")], benchmark=REFERENCE, category="accuracy")
    )
    assert played.run_inline("s2.yaml", "-q").code == 1
    board = _board(played)
    assert set(_rows(board)) == {"good", "bad"}
    (told,) = (text for text in board["warnings"] if "broken" in text)
    assert told.startswith("broken on b: ")
    wording(told.replace(played("runs", "list", "--json").json[0]["id"], "RUN"), numbers=False)


def test_a_store_without_one_ok_execution_has_no_board(project: AssayInline, wording: Wording) -> None:
    project.write("s.yaml", suite(numbers(3), [python_agent("broken")]))
    assert project.run_inline("s.yaml", "-q").code == 1
    refusal = project("leaderboard").refusal
    assert "broken" in refusal
    wording(refusal)


def test_a_board_without_references_ranks_by_what_there_is(
    assay_inline: AssayInline, wording: Wording
) -> None:
    """The run is not completed, because `broken` never is ok: so it is no reference."""
    assay_inline.write("agents.py", AGENTS)
    agents = [python_agent(name) for name in ("good", "bad", "broken")]
    assay_inline.write("s.yaml", suite(numbers(20), agents))
    assert assay_inline.run_inline("s.yaml", "-q").code == 1
    board = _board(assay_inline)
    assert "speed" not in board["dimensions"]
    by_speed = _board(assay_inline, "--metric", "speed")
    assert by_speed["standings"] == []
    told = [text for text in by_speed["warnings"] if "speed" in text]
    assert told
    wording("\n".join(told))
    assert assay_inline("leaderboard", "--metric", "speed").code == 0


def test_agents_are_rated_by_the_references_of_the_latest_run(played: AssayInline) -> None:
    """Only the rubric changes, which leaves results comparable: then all are measured by the new one."""
    agents = [python_agent(name) for name in ("good", "bad")]
    lenient = {"rubric": {"reference": {"seconds": 1000.0}}}
    played.write("s.yaml", suite(numbers(40), agents, benchmark=lenient, category="accuracy"))
    _run(played, "s.yaml", "--agent", "bad")
    rows = _rows(_board(played))
    assert all(row["dimensions"]["speed"] > 0.999 for row in rows.values())


def test_boards_and_matrices_only_read_ratings_also_after_the_rubric_changed(
    played: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = [python_agent(name) for name in ("good", "bad")]
    lenient = {"rubric": {"reference": {"seconds": 1000.0}}}
    played.write("s.yaml", suite(numbers(40), agents, benchmark=lenient, category="accuracy"))
    _run(played, "s.yaml", "--agent", "bad")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it is stored")

    monkeypatch.setattr("assay.pipeline.ratings.ratings_of", refuse)
    monkeypatch.setattr("assay.pipeline.report.ratings_of", refuse)
    rows = _rows(_board(played))
    assert all(row["dimensions"]["speed"] > 0.999 for row in rows.values())
    assert played("matrix", "--json").code == 0
    assert played("show", "last", "--json").code == 0
    with closing(sqlite3.connect(played.folder / ".assay" / "assay.db")) as connection:
        speeds = [
            json.loads(kept)["dimensions"]["speed"]["value"]
            for (kept,) in connection.execute("SELECT summary FROM ratings")
        ]
    assert all(speed > 0.999 for speed in speeds)


def test_ratings_that_an_older_version_kept_are_worked_out_from_executions(played: AssayInline) -> None:
    before = _board(played)
    engine = sa.create_engine(f"sqlite:///{played.folder / '.assay' / 'assay.db'}", poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE ratings SET summary = NULL, marks = NULL, case_names = NULL, digest = NULL"
        )
    assert _board(played) == before


def test_judging_again_brings_the_board_up_to_date(played: AssayInline) -> None:
    engine = sa.create_engine(f"sqlite:///{played.folder / '.assay' / 'assay.db'}", poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE ratings SET contender = 'wrong', cases = 0, ok = 0")
    assert played("rescore", "last", "-q").code == 0
    rows = _rows(_board(played))
    assert {name: row["partial"] for name, row in rows.items()} == {"good": {}, "bad": {}}


@pytest.mark.parametrize("width", ["80", "120"])
def test_the_board_fits_the_terminal(played: AssayInline, width: str) -> None:
    shown = played("leaderboard", COLUMNS=width)
    assert max(map(len, shown.out.splitlines())) <= int(width)
    assert "1/1" in shown.out
    command = "assay compare good bad"
    assert command in shown.err


def _three(project: AssayInline) -> None:
    benchmarks = [
        {"id": f"b{n}", "cases": numbers(12 + n), "iterations": {"warmup": 0, "measured": 1}, **REFERENCE}
        for n in range(3)
    ]
    agents = [python_agent(name) for name in ("good", "bad")]
    project.write("three.yaml", json.dumps({"suite": "three", "benchmarks": benchmarks, "agents": agents}))


def test_three_benchmarks_have_an_interquartile_mean_with_an_interval(project: AssayInline) -> None:
    _three(project)
    _run(project, "three.yaml")
    board, across = project("leaderboard", "--metric", "accuracy", "--json").json
    assert (board["suite"], across["suite"], across["across"]) == ("three", None, ["three"])
    first, second = across["standings"]
    assert (first["agent"], first["score"], first["rank"]) == ("good", 1.0, [1, 1])
    assert second["interval"][0] < second["score"] < second["interval"][1]
    assert "Interquartile" not in project("leaderboard").out  # of one suite the board itself says it


def test_several_suites_are_put_together_and_one_alone_is_not(played: AssayInline, wording: Wording) -> None:
    _three(played)
    _run(played, "three.yaml")
    *boards, across = played("leaderboard", "--json").json
    assert len(boards) == 2
    assert sorted(across["across"]) == ["s", "three"]
    assert across["benchmarks"] == 4
    shown = played("leaderboard").out
    (headline,) = (line for line in shown.splitlines() if re.findall(r"\d+", line) == ["2", "4"])
    wording(headline)
    assert len(played("leaderboard", "--suite", "s", "--json").json) == 1


RATED_EARLIER = """{"outcomes": {"pass": 6, "fail": 0, "agent_error": 0, "limit": 0, "harness_error": 0}, "unscored": 0,
"cases": 2, "solved": 2.0, "pass_at": {"1": 1.0, "2": 1.0, "3": 1.0}, "pass_hat": {"1": 1.0, "2": 1.0, "3": 1.0},
"doubts": ["2 cases only: the intervals are wide"], "yardstick": "seconds 1.0, pass 0.5", "attempted": 2, "unpriced": 0,
"completion": 1.0, "rounds": {"speed": [3.0, 0.01037620566479469], "efficiency": [3.0, 0.07297868922310177]},
"is_recorded": false, "dimensions": {"accuracy": {"dimension": "accuracy", "value": 1.0, "low": 0.3423802275066531,
"high": 1.0, "basis": "mean score over 2 cases"}, "speed": {"dimension": "speed", "value": 0.9636464382551682,
"low": 7.779280726543178e-05, "high": 0.9999999562140772, "basis": "median 3.772e-05 s, reference 0.001 s (rubric)"},
"efficiency": {"dimension": "efficiency", "value": 0.5, "low": 0.3848527973481938, "high": 0.7134683241951831,
"basis": "cpu_seconds"}, "cost": {"dimension": "cost", "value": null, "low": null, "high": null, "basis": "unknown"},
"reliability": {"dimension": "reliability", "value": 1.0, "low": 0.3423802275066531, "high": 1.0,
"basis": "completion 1 × consistency 1"}}, "overall": {"dimension": "overall", "value": 0.8737991619423926,
"low": 0.5281467572008655, "high": 0.9363588491734832, "basis": "without cost"}, "references": {},
"usd_per_solved": null, "tokens_per_solved": null}"""
"""The summary of a stored rating as Assay wrote it before it kept ratings by round."""


def test_ratings_of_an_earlier_version_are_worked_out_again_once_and_stored(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = assay_inline.folder / ".assay" / "assay.db"
    with Store.open(f"sqlite:///{file}") as store:
        run = Past(store).run("1")
        suite = store.suite_of(run.id)
        assert suite is not None
        rate_trials(store, run, suite)
        fresh = store.ratings([run.trials[0].id])[run.trials[0].id]
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE ratings SET summary = ?", (RATED_EARLIER,))
        connection.commit()
    assert assay_inline("leaderboard", "--json").code == 0
    with Store.open(f"sqlite:///{file}") as store:
        kept = store.ratings([run.trials[0].id])[run.trials[0].id]
    assert kept.by_round == fresh.by_round
    assert len(kept.by_round["speed"]) == 3
    assert kept.dimensions == fresh.dimensions

    def refuse(*_: object) -> None:
        raise AssertionError("it is stored")

    monkeypatch.setattr("assay.pipeline.ratings.ratings_of", refuse)
    assert assay_inline("leaderboard", "--json").code == 0


def test_names_in_the_suggested_command_are_quoted_once(project: AssayInline) -> None:
    agents = [{**python_agent("good"), "name": name} for name in ("my agent", "o'hara")]
    project.write("s.yaml", suite(numbers(8), agents))
    _run(project, "s.yaml")

    [line] = [line for line in project("leaderboard").err.splitlines() if "assay compare" in line]
    assert set(shlex.split(line.removeprefix("Next:").partition(" · ")[0])[2:]) == {"my agent", "o'hara"}
