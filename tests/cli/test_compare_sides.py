"""`assay compare` with agents of a suite: who wins, by which cases, and what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.command import AssayInline, Prepare
from tests.wording import Wording

from assay.model import Execution
from assay.store import rows

SUITE = """
suite: small
agents:
  - {name: good, type: oracle}
  - {name: poor, type: stub, answer: "7"}
  - {name: none, type: nop}
benchmarks:
  - id: sums
    cases: [%s]
    scorer: exact
    iterations: {warmup: 0, measured: 2}
"""


def play(assay: AssayInline) -> None:
    lines = ", ".join(f'{{id: c{n}, input: "{n}", expected: "{n}"}}' for n in range(30))
    assay.write("small.yaml", SUITE % lines)
    assert assay.run_inline("small.yaml", "-q").code in (0, 1)


@pytest.fixture
def played(assay_inline: AssayInline, prepare: Prepare) -> AssayInline:
    prepare(assay_inline, play)
    return assay_inline


def test_the_better_agent_wins_the_dimensions_that_the_cases_show(played: AssayInline) -> None:
    (found,) = played("compare", "none", "good", "--json").json["agents"]
    assert found["winners"]["accuracy"] == "good"
    assert found["winner"] == "good"
    assert found["winners"]["cost"] is None


def test_sides_without_a_common_case_get_one_answer_and_no_winner(assay_inline: AssayInline) -> None:
    lines = ", ".join(f'{{id: c{n}, input: "{n}", expected: "{n}"}}' for n in range(100, 130))
    assay_inline.write("small.yaml", SUITE % lines)
    for agent, start in (("none", 100), ("good", 115)):
        chosen = [option for n in range(start, start + 15) for option in ("--case", f"c{n}")]
        assay_inline.run_inline("small.yaml", "--agent", agent, "-q", *chosen)
    compared = assay_inline("compare", "none", "good", "--json").json
    (found,) = compared["agents"]
    verdicts = {one["metric"]: one["verdict"] for one in compared["comparisons"] if one["verdict"]}
    assert set(verdicts.values()) == {"unsure"}
    assert (found["winner"], set(found["winners"].values())) == (None, {None})
    assert (found["flips"][0]["won"], found["flips"][0]["unchanged"]) == ([], 0)
    [board] = assay_inline("leaderboard", "--json").json
    assert {tuple(row["rank"]) for row in board["standings"]} == {(1, 2)}


def test_agents_are_compared_by_columns_without_reading_whole_executions(
    played: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def read_execution(row: Sequence[Any], trial: int, measurements: Mapping[str, float]) -> Execution:
        read.append(row[4])
        return whole(row, trial, measurements)

    whole = rows.execution_from
    monkeypatch.setattr(rows, "execution_from", read_execution)
    assert played("compare", "poor", "good", "--json").json["agents"]
    assert read == []


def test_flips_name_the_cases(played: AssayInline) -> None:
    (found,) = played("compare", "none", "good", "--json").json["agents"]
    (flips,) = found["flips"]
    assert len(flips["won"]) == 30
    assert flips["lost"] == []
    assert flips["unchanged"] == 0


def test_advice_points_at_what_was_lost(played: AssayInline) -> None:
    (found,) = played("compare", "good", "none", "--json").json["agents"]
    assert any("--case c" in text for text in found["recommendations"])


def test_equal_sides_have_no_winner(played: AssayInline) -> None:
    (found,) = played("compare", "good", "good", "--json").json["agents"]
    assert found["winner"] is None
    assert set(found["winners"].values()) == {None}


def test_several_agents_are_compared_pair_by_pair(played: AssayInline) -> None:
    found = played("compare", "good", "none", "good", "--json").json
    assert found["comparison_type"] == "multi_agent"


def test_a_course_is_shown_in_the_order_given(played: AssayInline) -> None:
    found = played("compare", "none", "good", "--type", "time_series", "--metric", "score", "--json").json
    (course,) = found["courses"]
    assert course["values"] == {"none": 0.0, "good": 1.0}
    assert course["verdict"] == "better"


def test_three_sides_do_not_stand_head_to_head(played: AssayInline) -> None:
    assert "multi_agent" in played("compare", "a", "b", "c", "--type", "head_to_head").refusal


def test_an_agent_nobody_knows_is_refused(played: AssayInline) -> None:
    assert "'nobody'" in played("compare", "good", "nobody").refusal


def test_an_older_version_of_an_agent_is_still_a_side(assay_inline: AssayInline) -> None:
    for version, answer in (("1", "7"), ("2", "x")):
        assay_inline.write(
            "v.yaml",
            f"suite: v\nagents: [{{name: bot, type: stub, answer: '{answer}', version: '{version}'}}]\n"
            "benchmarks: [{id: b, scorer: exact, cases: [{id: a, input: q, expected: '7'}]}]\n",
        )
        assay_inline.run_inline("v.yaml", "--repetitions", "1", "-q")
    found = assay_inline("compare", "bot@1", "bot@2", "--metric", "score", "--json").json
    (score,) = found["comparisons"]
    assert (score["a"], score["b"]) == (1.0, 0.0)


def test_a_comparison_says_which_side_is_which_run(played: AssayInline) -> None:
    (run,) = (run["id"] for run in played("runs", "list", "--json").json)
    lines = played("compare", "none", "good").out.splitlines()
    for start in ("A  none, ", "B  good, "):
        (line,) = (line for line in lines if line.startswith(start))
        assert run in line


def test_the_score_of_the_only_scorer_is_not_told_twice_unless_asked_for(played: AssayInline) -> None:
    told = played("compare", "none", "good", "--json").json["comparisons"]
    assert [one["metric"] for one in told if one["metric"].startswith("score")] == ["score"]
    asked = played("compare", "none", "good", "--metric", "score.exact", "--json").json["comparisons"]
    assert [one["metric"] for one in asked] == ["score.exact"]


MIXED = """
suite: mixed
agents:
  - {name: real, type: oracle}
  - {name: invented, type: simulated, quality: 0.5, seconds: 0}
benchmarks:
  - id: sums
    cases: [%s]
    scorer: exact
"""


@pytest.fixture
def mixed(assay_inline: AssayInline) -> AssayInline:
    lines = ", ".join(f'{{id: c{n}, input: "{n}", expected: "{n}"}}' for n in range(30))
    assay_inline.write("mixed.yaml", MIXED % lines)
    assert assay_inline.run_inline("mixed.yaml", "--repetitions", "2", "-q").code in (0, 1)
    return assay_inline


def test_a_simulated_agent_neither_wins_nor_loses_against_a_measured_one(
    mixed: AssayInline, wording: Wording
) -> None:
    found = mixed("compare", "invented", "real", "--json").json
    assert {one["verdict"] for one in found["comparisons"]} == {"unsure"}
    (agents,) = found["agents"]
    assert agents["winner"] is None
    assert set(agents["winners"].values()) == {None}
    (told,) = agents["recommendations"]
    assert all(part in told for part in ("'invented'", "simulated", "'real'"))
    wording(told)
    (kind,) = (one for one in found["warnings"] if one["code"] == "kind")
    wording(kind["message"])


def test_among_several_agents_simulated_ones_stand_apart(mixed: AssayInline) -> None:
    found = mixed("compare", "invented", "real", "real", "--json").json
    rows = found["agent_comparison_matrix"]
    assert [one["agent_id"] for one in rows if one["simulated"]] == ["invented"]


def test_agents_are_compared_on_the_suite_that_both_did(mixed: AssayInline) -> None:
    mixed.write(
        "other.yaml",
        "suite: other\nagents: [{name: real, type: oracle}]\n"
        "benchmarks: [{id: b, scorer: exact, cases: [{id: a, input: q, expected: '7'}]}]\n",
    )
    assert mixed.run_inline("other.yaml", "-q").code == 0
    found = mixed("compare", "invented", "real", "--json").json
    assert {one["trial_b"] for one in found["comparisons"]} == {"sums · real"}


PACED = '''
import time
from pathlib import Path

paces = {}


def paced(name, waits):
    """Waits as long as the process that it runs in happens to: one pace a round."""
    if name not in paces:
        rounds = Path(__file__).with_name(name)
        rounds.touch()
        with rounds.open("r+") as file:
            paces[name] = waits[len(file.read())]
            file.write(".")
    time.sleep(paces[name])
    return "7"


def one(question):
    return paced("one", (0.002, 0.03, 0.002))


def two(question):
    return paced("two", (0.03, 0.002, 0.03))
'''


def test_a_slow_round_of_a_run_is_not_taken_for_a_slow_agent(assay_inline: AssayInline) -> None:
    assay_inline.write("pace.py", PACED)
    cases = ", ".join(f'{{id: c{n}, input: "{n}", expected: "7"}}' for n in range(12))
    assay_inline.write(
        "paced.yaml",
        "suite: paced\n"
        "agents: [{name: one, type: python, target: 'pace.py:one'}, {name: two, type: python, target: 'pace.py:two'}]\n"
        f"benchmarks: [{{id: b, scorer: exact, cases: [{cases}], limits: {{seconds: 60}}}}]\n",
    )
    assert assay_inline("run", "paced.yaml", "--repetitions", "3", "--warmup", "0", "-q").code == 0
    found = assay_inline("compare", "one", "two", "--json").json
    verdicts = {one["metric"]: one["verdict"] for one in found["comparisons"]}
    assert verdicts["seconds"] == "unsure"
    assert found["agents"][0]["winners"]["speed"] is None
    assert found["agents"][0]["winner"] is None
    (board,) = assay_inline("leaderboard", "--metric", "speed", "--json").json
    assert [one["rank"] for one in board["standings"]] == [[1, 2], [1, 2]]


@pytest.mark.parametrize("by", ["run", "file"])
def test_a_benchmark_that_was_changed_in_between_is_not_judged(
    played: AssayInline, by: str, wording: Wording
) -> None:
    lines = ", ".join(f'{{id: c{n}, input: "{n}", expected: "{n}!"}}' for n in range(30))
    played.write("small.yaml", SUITE % lines)
    played.run_inline("small.yaml", "-q")
    runs = [one["id"] for one in reversed(played("runs", "list", "--json").json)]
    for run in runs:
        assert played("report", run, "--format", "json", "--out", run, "-q").code == 0
    sides = runs if by == "run" else [f"{run}/result.json" for run in runs]
    found = played("compare", *sides, "--json").json
    assert {one["verdict"] for one in found["comparisons"]} == {"unsure"}
    (reason,) = {one["reason"] for one in found["comparisons"]}
    assert "'sums'" in reason
    wording(re.sub(r"\b[0-9a-f]{8}\b", "HASH", reason))
    assert {one["winner"] for one in found["agents"]} == {None}
    assert all(one["flips"] == [] for one in found["agents"])
    assert played("compare", *sides, "--fail-on", "worse").code == 0


def test_why_a_benchmark_is_not_compared_is_reported_once(played: AssayInline) -> None:
    text = (played.folder / "small.yaml").read_text()
    played.write("small.yaml", text.replace('expected: "3"', 'expected: "4"'))
    assert played.run_inline("small.yaml", "-q", "--agent", "good").code in (0, 1)
    first, last = (one["id"] for one in reversed(played("runs", "list", "--json").json))
    shown = " ".join(played("compare", first, last, COLUMNS="200").out.split())
    metrics, _, _ = shown.partition(" = ")
    (reason,) = {one["reason"] for one in played("compare", first, last, "--json").json["comparisons"]}
    assert metrics.count(reason) == 1


def test_a_case_that_nobody_could_judge_is_neither_won_nor_lost(assay_inline: AssayInline) -> None:
    assay_inline.write(
        "agents.py",
        "def shy(text): return text if int(text) % 2 else 'skip'\n"
        "def wrong(text): return text if int(text) % 2 else '?'\n"
        "def judge(output, expected): return None if output == 'skip' else float(output == expected)\n",
    )
    agents = "\n".join(
        f'  - {{name: {name}, type: python, target: "agents.py:{name}"}}' for name in ("shy", "wrong")
    )
    head, _, tail = SUITE.partition("agents:\n")
    written = f"{head}agents:\n{agents}\n{tail[tail.index('benchmarks:') :]}"
    lines = ", ".join(f'{{id: c{n}, input: "{n}", expected: "{n}"}}' for n in range(20))
    assay_inline.write("small.yaml", (written % lines).replace("scorer: exact", 'scorer: "agents.py:judge"'))
    assert assay_inline.run_inline("small.yaml", "-q").code == 0
    (found,) = assay_inline("compare", "shy", "wrong", "--json").json["agents"]
    (flips,) = found["flips"]
    assert (flips["won"], flips["lost"], flips["unchanged"]) == ([], [], 10)


def test_result_files_tell_agents_apart_by_the_cases_in_them(
    assay_inline: AssayInline, wording: Wording
) -> None:
    lines = ", ".join(f'{{id: c{n}, input: "{n}", expected: "{n}"}}' for n in range(30))
    assay_inline.write("small.yaml", SUITE % lines)
    for agent in ("none", "good"):
        assay_inline.run_inline("small.yaml", "--agent", agent, "-q", "--report", "json", "--out", agent)
    (found,) = assay_inline("compare", "none/result.json", "good/result.json", "--json").json["agents"]
    assert (found["winners"]["accuracy"], len(found["flips"][0]["won"])) == ("good", 30)
    assert "'good'" in found["recommendations"][0]
    assert "score" in found["recommendations"][0]
    wording(found["recommendations"][0])


FEW = """
suite: few
agents: [{name: poor, type: stub, answer: "1"}]
benchmarks:
  - id: sums
    cases: [{id: a, input: "1", expected: "1"}, {id: b, input: "2", expected: "2"}]
    scorer: exact
    iterations: {warmup: 0, measured: 2}
"""


def test_a_run_compared_with_itself_is_the_same_however_few_its_cases(assay_inline: AssayInline) -> None:
    assay_inline.write("few.yaml", FEW)
    assert assay_inline.run_inline("few.yaml", "-q").code == 0
    found = assay_inline("compare", "last", "last", "--json").json["comparisons"]
    assert {one["metric"] for one in found} >= {"score", "seconds"}
    assert {one["verdict"] for one in found} <= {"same", None}


def test_two_runs_with_the_same_scores_have_the_same_score(assay_inline: AssayInline) -> None:
    assay_inline.write("few.yaml", FEW)
    for _ in range(2):
        assert assay_inline.run_inline("few.yaml", "-q").code == 0
    first, second = (run["id"] for run in assay_inline("runs", "list", "--json").json)
    (score,) = assay_inline("compare", first, second, "--metric", "score", "--json").json["comparisons"]
    assert (score["a"], score["verdict"], score["difference_interval"]) == (0.5, "same", [0.0, 0.0])


def test_a_simulated_agent_in_one_of_two_runs_makes_no_warning_about_the_others(mixed: AssayInline) -> None:
    assert mixed.run_inline("mixed.yaml", "--agent", "real", "--repetitions", "2", "-q").code == 0
    first, second = (run["id"] for run in mixed("runs", "list", "--json").json)
    found = mixed("compare", second, first, "--json").json
    assert {one["trial_a"] for one in found["comparisons"]} == {
        one["trial_b"] for one in found["comparisons"]
    }
    assert "kind" not in {one["code"] for one in found["warnings"]}


def test_a_later_run_of_part_of_the_cases_does_not_replace_a_whole_one(
    played: AssayInline, wording: Wording
) -> None:
    (whole,) = (run["id"] for run in played("runs", "list", "--json").json)
    assert played.run_inline("small.yaml", "--agent", "good", "--limit", "2", "-q").code == 0
    part = played("runs", "list", "--json").json[0]["id"]
    found = played("compare", "none", "good", "--json").json
    assert found["runs"] == {"a": [whole], "b": [whole]}
    assert {one["units_b"] for one in found["comparisons"] if one["metric"] == "score"} == {30}
    warnings = {one["code"]: one["message"] for one in found["warnings"]}
    assert "different-hours" not in warnings
    assert part in warnings["newer-run"]
    told = warnings["newer-run"].replace(part, "PART").replace(whole, "WHOLE")
    assert {"2", "30"} <= set(re.findall(r"\d+", told))
    wording(told)
    shown = played("compare", "none", "good").out.splitlines()
    (side,) = (number for number, line in enumerate(shown) if line.startswith("B  good, "))
    assert whole in shown[side]
    assert shown[side + 1].startswith("   ")
    wording(shown[side + 1])
    several = played("compare", "none", "poor", "good", "--json").json
    assert several["runs"] == {"none": [whole], "poor": [whole], "good": [whole]}
    assert [one["code"] for one in several["warnings"]] == ["newer-run"]


TWO = """
suite: two
agents:
  - {name: bot, type: stub, answer: "%s", version: "%s"}
  - {name: other, type: stub, answer: "7", version: "1"}
benchmarks:
  - {id: one, scorer: exact, cases: [{id: a, input: q, expected: "7"}]}
  - {id: two, scorer: exact, cases: [{id: b, input: q, expected: "7"}]}
"""


def test_a_newer_version_of_an_agent_is_compared_though_another_run_has_both(
    assay_inline: AssayInline,
) -> None:
    assay_inline.write("two.yaml", TWO % ("x", "1"))
    assert assay_inline.run_inline("two.yaml", "-q").code == 0
    assay_inline.write("two.yaml", TWO % ("7", "2"))
    assert assay_inline.run_inline("two.yaml", "--agent", "bot", "-q").code == 0
    newer, older = (run["id"] for run in assay_inline("runs", "list", "--json").json)
    found = assay_inline("compare", "other", "bot", "--metric", "score", "--json").json
    assert found["runs"] == {"a": [older], "b": [newer]}
    assert {one["b"] for one in found["comparisons"]} == {1.0}
    assert "newer-run" not in {one["code"] for one in found["warnings"]}


def test_a_later_run_of_one_agent_leaves_both_in_the_run_that_they_share(assay_inline: AssayInline) -> None:
    assay_inline.write("two.yaml", TWO % ("x", "1"))
    for options in ([], ["--agent", "bot"]):
        assert assay_inline.run_inline("two.yaml", *options, "-q").code == 0
    alone, shared = (run["id"] for run in assay_inline("runs", "list", "--json").json)
    found = assay_inline("compare", "other", "bot", "--json").json
    assert found["runs"] == {"a": [shared], "b": [shared]}
    assert any(one["code"] == "newer-run" and alone in one["message"] for one in found["warnings"])
    by_run = assay_inline("compare", shared, alone, "--json").json
    assert by_run["runs"] == {"a": [shared], "b": [alone]}
    assert "different-hours" in {one["code"] for one in by_run["warnings"]}


def test_benchmarks_that_ran_apart_are_named_with_their_runs(assay_inline: AssayInline) -> None:
    assay_inline.write("two.yaml", TWO % ("7", "1"))
    whole = assay_inline.run_inline("two.yaml", "--json").json["run_id"]
    assay_inline.write("two.yaml", TWO % ("x", "2"))
    part = assay_inline.run_inline("two.yaml", "--agent", "bot", "--case", "b", "--json").json["run_id"]
    shown = assay_inline("compare", "other", "bot").out
    (side,) = (line for line in shown.splitlines() if line.startswith("A  other, "))
    assert whole in side
    _, _, side = " ".join(shown.split()).partition(" B bot, ")
    assert f"{whole} (one), {part} (two)" in side


PARTIAL = """
suite: partial
agents: [{name: x, type: stub, answer: "%s"}]
benchmarks:
  - id: words
    scorer: f1
    rubric: {pass_mark: 0.9}
    cases: [%s]
    iterations: {warmup: 0, measured: 1}
"""


def test_cases_are_won_and_lost_by_the_pass_mark_of_the_rubric(assay_inline: AssayInline) -> None:
    """Two words of three score 0.8: above one half on both sides, and a pass on neither."""
    cases = ", ".join(f'{{id: c{n}, input: "{n}", expected: "red green blue"}}' for n in range(8))
    for answer in ("red green blue", "red green"):
        assay_inline.write("p.yaml", PARTIAL % (answer, cases))
        assert assay_inline.run_inline("p.yaml", "-q").code == 0
    after, before = (run["id"] for run in assay_inline("runs", "list", "--json").json)
    (found,) = assay_inline("compare", before, after, "--json").json["agents"]
    assert len(found["flips"][0]["lost"]) == 8
    for ref in (before, after):
        assert assay_inline("report", ref, "--format", "json", "--out", ref).code == 0
    files = [str(next((assay_inline.folder / ref).glob("*.json"))) for ref in (before, after)]
    (found,) = assay_inline("compare", *files, "--json").json["agents"]
    assert len(found["flips"][0]["lost"]) == 8


def test_only_score_seconds_and_cost_have_a_verdict_unless_others_are_asked_for(
    assay_inline: AssayInline,
) -> None:
    assay_inline.write("few.yaml", FEW.replace("scorer: exact", "scorer: [exact, f1]"))
    assert assay_inline.run_inline("few.yaml", "-q").code == 0
    found = assay_inline("compare", "last", "last", "--json").json["comparisons"]
    verdicts = {one["metric"]: one["verdict"] for one in found}
    assert {name for name, verdict in verdicts.items() if verdict} <= {"score", "seconds", "usd"}
    assert (verdicts["score"], verdicts["score.exact"], verdicts["score.f1"]) == ("same", None, None)
    (asked,) = assay_inline("compare", "last", "last", "--metric", "score.f1", "--json").json["comparisons"]
    assert asked["verdict"] == "same"
    assert "--metric score.f1" in " ".join(assay_inline("compare", "last", "last").out.split())


def test_cases_with_equal_scores_are_the_same_whatever_the_number_of_repetitions(
    assay_inline: AssayInline,
) -> None:
    cases = [{"id": f"c{number}", "input": "?", "expected": "yes"} for number in range(8)]
    suite = {
        "suite": "sure",
        "agents": [{"name": "ideal", "type": "oracle"}],
        "benchmarks": [{"id": "b", "cases": cases}],
    }
    (assay_inline.folder / "sure.yaml").write_text(json.dumps(suite))
    runs = [
        assay_inline.run_inline("sure.yaml", "--repetitions", many, "--json").json["run_id"]
        for many in ("2", "3")
    ]

    (score,) = assay_inline("compare", *runs, "--metric", "score", "--json").json["comparisons"]

    assert (score["a"], score["b"], score["verdict"]) == (1, 1, "same")
