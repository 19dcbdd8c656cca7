"""What a user sees when a scorer fails: nothing is rated by the scorers that are left."""

from __future__ import annotations

import json
import socket
from time import monotonic
from typing import Any

import pytest
from tests.command import Assay, AssayInline
from tests.suites.project import Stored, numbers, python_agent, suite
from tests.wording import Wording

ECHO = "def echo(text): return text\n"
SCORERS = """
def boom(output, expected): raise ValueError("boom")
def boom_on_zero(output, expected):
    if output == "0": raise ValueError("boom")
    return 1
def leaves(output, expected):
    raise SystemExit(3)
class OddPart:
    def score(self, judged):
        from assay.plugin.scorer import Judgement
        return Judgement(1.0, "", {"tone": float("nan")})
"""


def run(assay: Assay | AssayInline, scorer: object, cases: Any = None, agent: str = ECHO) -> Any:
    """The exit code and the JSON document of a run of one agent."""
    assay.write("agents.py", agent)
    assay.write("own.py", SCORERS)
    assay.write("s.yaml", suite(cases or numbers(4), [python_agent("echo")], benchmark={"scorer": scorer}))
    done = assay("run", "s.yaml", "--json")
    return done.code, json.loads(done.out)


def codes(document: Any) -> list[str]:
    return [warning["code"] for warning in document["warnings"]]


@pytest.mark.parametrize("scorer", ["own.py:boom", "own.py:leaves", "own.py:OddPart", "tool_calls"])
def test_a_run_whose_scorer_always_fails_is_unscored_and_exits_1(
    assay_inline: AssayInline, scorer: str
) -> None:
    code, document = run(assay_inline, ["exact", scorer])
    [trial] = document["trials"]
    assert (code, document["status"]) == (1, "failed")
    assert (trial["unscored"], trial["scoring_failed"]) == (4, True)
    assert trial["ratings"]["accuracy"]["value"] is None
    [failure] = trial["scorer_failures"]
    assert (failure["failed"], failure["of"], failure["weight"]) == (4, 4, 1.0)
    assert "unscored" in codes(document)
    assert "score.exact" in trial["metrics"]
    assert "score" not in trial["metrics"]


def test_agents_of_which_nothing_could_be_scored_are_neither_ranked_nor_tied(
    assay_inline: AssayInline, wording: Wording
) -> None:
    assay_inline.write("agents.py", ECHO + "def rude(text): return 'no'\n")
    assay_inline.write("own.py", SCORERS)
    agents = [python_agent("echo"), python_agent("rude")]
    assay_inline.write("s.yaml", suite(numbers(8), agents, benchmark={"scorer": ["exact", "own.py:boom"]}))
    document = json.loads(assay_inline("run", "s.yaml", "--json").out)
    assert [trial["overall"]["value"] for trial in document["trials"]] == [None, None]
    [basis] = {trial["overall"]["basis"] for trial in document["trials"]}
    wording(basis)
    assert not document.get("leads")
    shown = assay_inline("show", COLUMNS="200").out
    assert "tied" not in shown
    rows = [line for line in shown.splitlines() if line.startswith(("echo ", "rude "))]
    assert rows
    assert [row for row in rows if "solved" in row] == []
    [showdown] = json.loads(assay_inline("compare", "echo", "rude", "--json").out)["agents"]
    assert showdown["winner"] is None
    assert "overall" not in showdown["ratings"]
    wording(showdown["recommendations"][0])


def test_only_the_agents_with_scores_are_ranked_in_a_run(assay_inline: AssayInline) -> None:
    assay_inline.write("agents.py", ECHO + "def rude(text): return 'no'\ndef odd(text): return '0'\n")
    assay_inline.write("own.py", SCORERS)
    agents = [python_agent("echo"), python_agent("rude"), python_agent("odd")]
    assay_inline.write(
        "s.yaml", suite(numbers(9)[1:], agents, benchmark={"scorer": ["exact", "own.py:boom_on_zero"]})
    )
    document = json.loads(assay_inline("run", "s.yaml", "--json").out)
    overall = {trial["agent"]["name"]: trial["overall"]["value"] for trial in document["trials"]}
    assert overall["odd"] is None
    [lead] = document["leads"]
    assert set(lead["overall"]) == {"echo", "rude"}
    assert "accuracy" in lead["dimensions"]


def test_partial_scores_of_an_unscored_execution_are_shown(assay_inline: AssayInline) -> None:
    run(assay_inline, ["exact", "own.py:boom"])
    shown = json.loads(assay_inline("show", "--case", "c0", "--json").out)
    [entry] = shown if isinstance(shown, list) else shown["cases"]
    [execution] = entry["answers"][0]["executions"]
    assert execution["scores"] == {"exact": 1.0}
    assert "score" not in execution


def test_a_scorer_that_fails_now_and_then_leaves_those_executions_out_of_accuracy(
    assay_inline: AssayInline,
) -> None:
    cases = [{"id": "c0", "input": "0", "expected": "wrong"}, *numbers(4)[1:]]
    code, document = run(assay_inline, ["exact", "own.py:boom_on_zero"], cases)
    [trial] = document["trials"]
    assert (code, document["status"]) == (0, "completed")
    assert (trial["unscored"], trial["scoring_failed"]) == (1, False)
    assert trial["ratings"]["accuracy"]["value"] == 1.0
    assert "unscored" in codes(document)


def test_a_failing_scorer_without_weight_is_warned_about_and_leaves_the_scores(
    assay_inline: AssayInline,
) -> None:
    code, document = run(assay_inline, ["exact", {"name": "own.py:boom", "weight": 0}])
    [trial] = document["trials"]
    assert (code, trial["unscored"], trial["ratings"]["accuracy"]["value"]) == (0, 0, 1.0)
    assert [failure["weight"] for failure in trial["scorer_failures"]] == [0.0]
    assert "scorer" in codes(document)


def test_failures_of_the_agent_do_not_stand_in_for_scores_that_nobody_gave(assay_inline: AssayInline) -> None:
    agent = "def echo(text):\n    if text == '0': raise ValueError(text)\n    return text\n"
    _, document = run(assay_inline, "own.py:boom", agent=agent)
    [trial] = document["trials"]
    assert (trial["unscored"], trial["outcomes"]["agent_error"]) == (3, 1)
    assert trial["ratings"]["accuracy"]["value"] is None
    assert trial["ratings"]["cost"]["value"] in (None, 1.0)


def test_cases_without_an_expected_output_and_without_a_scorer_are_no_failure(
    assay_inline: AssayInline,
) -> None:
    assay_inline.write("agents.py", ECHO)
    assay_inline.write("s.yaml", suite([{"id": "c", "input": "x"}], [python_agent("echo")]))
    done = assay_inline("run", "s.yaml", "--json")
    document = json.loads(done.out)
    assert (done.code, document["trials"][0]["unscored"]) == (0, 1)
    assert "unscored" not in codes(document)


def test_a_turn_for_which_nothing_is_expected_leaves_a_conversation_scored(assay_inline: AssayInline) -> None:
    turns = [{"input": "a", "expected": "a"}, {"input": "b"}]
    code, document = run(assay_inline, "exact", [{"id": "talk", "turns": turns}])
    assert (code, document["trials"][0]["ratings"]["accuracy"]["value"]) == (0, 1.0)


def test_rescoring_mends_a_run_whose_scorer_was_broken(assay: Assay) -> None:
    run(assay, ["exact", "own.py:boom"])
    assert assay("rescore", "-q").code == 1
    assay.write("own.py", "def boom(output, expected): return 0.5\n")
    done = assay("rescore", "--json")
    document = json.loads(done.out)
    [trial] = document["trials"]
    assert (done.code, document["status"], trial["unscored"]) == (0, "completed", 0)
    assert trial["ratings"]["accuracy"]["value"] == 0.75
    assert Stored(assay.folder).run.state.value == "completed"


def test_a_run_without_scores_takes_nobodys_place_on_the_leaderboard(
    assay_inline: AssayInline, wording: Wording
) -> None:
    code, _ = run(assay_inline, "own.py:boom_on_zero", numbers(4)[1:])
    assert code == 0
    assay_inline.write("own.py", "def boom_on_zero(output, expected): raise ValueError('boom')\n")
    assert assay_inline("run", "s.yaml", "-q").code == 1
    [board] = json.loads(assay_inline("leaderboard", "--json").out)
    [row] = board["standings"]
    assert row["dimensions"]["accuracy"] == 1.0
    assert list(row["stale"]) == ["b"]
    [warning] = [text for text in board["warnings"] if "echo" in text]
    wording(warning)


def test_a_gate_and_a_comparison_say_that_executions_are_unscored(assay_inline: AssayInline) -> None:
    run(assay_inline, ["exact", "own.py:boom_on_zero"], numbers(4)[1:])
    assay_inline("baseline", "set", "main", "last")
    first = Stored(assay_inline.folder).run.id
    # Another size, for Python compares no more than size and second with the compiled file.
    assay_inline.write("own.py", SCORERS.replace('output == "0"', 'output in ("1",)'))
    assay_inline("run", "s.yaml", "-q")
    gate = json.loads(assay_inline("gate", "--json").out)
    assert "unscored" in codes(gate)
    compared = json.loads(assay_inline("compare", first, "last", "--json").out)
    assert "unscored" in codes(compared)


def test_a_gate_fails_when_scoring_fails_that_worked_in_the_baseline(
    assay_inline: AssayInline, wording: Wording
) -> None:
    run(assay_inline, ["exact", "own.py:boom_on_zero"], numbers(4)[1:])
    assay_inline("baseline", "set", "main", "last")
    assay_inline.write("own.py", SCORERS.replace('output == "0"', "True"))
    assay_inline("run", "s.yaml", "-q")
    done = assay_inline("gate", "--json", "--junit", "gate.xml", "--markdown", "gate.md")
    gate = json.loads(done.out)
    assert (done.code, gate["passed"], gate["unscored"]) == (1, False, ["b · echo"])
    assert 'type="unscored"' in (assay_inline.folder / "gate.xml").read_text()
    wording((assay_inline.folder / "gate.md").read_text(), near="❌ b · echo: ")
    assert assay_inline("gate", "--metric", "seconds").code == 0


def test_a_judge_that_cannot_be_reached_is_found_in_the_first_seconds(
    assay_inline: AssayInline, wording: Wording
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    judge = {
        "name": "judge",
        "agent": {"type": "openai", "model": "m", "base_url": url, "api_key": "${KEY:-k}"},
    }
    began = monotonic()
    assay_inline.write("agents.py", ECHO)
    assay_inline.write("s.yaml", suite(numbers(30), [python_agent("echo")], benchmark={"scorer": judge}))
    done = assay_inline("run", "s.yaml", "--json")
    document = json.loads(done.out)
    # With three retries for each of the 30 it would be more than a minute.
    assert monotonic() - began < 30
    assert (done.code, document["trials"][0]["unscored"]) == (1, 30)
    # First that it is asked again, then that it failed.
    told = [line for line in done.err.splitlines() if line.startswith("Warning: b · echo: ")]
    assert ["scorer 'judge'" in line for line in told] == [False, True]
    wording("\n".join(told), numbers=False)
