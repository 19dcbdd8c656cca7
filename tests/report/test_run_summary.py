"""How a run ends: one table with a verdict for each benchmark, the warnings that matter, who leads and why."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import pytest
from rich.console import Console
from tests.command import AssayInline
from tests.report.suites import (
    CLOUD,
    COMPLETE,
    EXACT,
    GREEDY,
    TINY,
    Made,
    benchmark,
    cases,
    suite_report,
    talks,
)

from assay.analysis.ranking.leaderboard import leaderboard
from assay.cli.terminal import QuietTerminal
from assay.model import Doubt, Environment, Report, Status
from assay.model.standing import Boards, Contender
from assay.report.console.sections import print_page
from assay.report.console.summary import print_summary
from assay.report.documents.result import run_document
from assay.report.leads import board_sentence, lead_sentence, main_lead, reason_text
from assay.report.pages.board import leaderboard_page
from assay.report.warnings import rank_warnings, run_warnings, split_warnings

TWIN = Made("twin", 1.0, 0.042)
TWO = (benchmark("refunds", cases(40)), benchmark("talks", talks()))


def shown(report: Report, width: int = 80, **options: object) -> str:
    stream = io.StringIO()
    print_summary(report, Console(file=stream, width=width, color_system=None, **options))  # type: ignore[arg-type]
    return stream.getvalue()


def contender(report: Report, name: str) -> Contender:
    own = [trial for trial in report.trials if trial.stored.trial.agent.name == name]
    return Contender(name, "", {t.stored.trial.benchmark: t.ratings for t in own}, False, None)  # type: ignore[misc]


def test_the_better_agent_leads_with_its_margin_and_what_it_is_better_in():
    (lead, _) = suite_report(agents=(GREEDY, EXACT, CLOUD, replace(CLOUD, name="cloud-2"))).leads
    assert lead.leaders == ("exact-search",)
    assert list(lead.scores) == ["exact-search", "greedy"]
    assert lead.margin is not None
    assert lead.margin == pytest.approx(lead.scores["exact-search"] - lead.scores["greedy"])
    assert lead.low is not None
    assert lead.high is not None
    assert 0 < lead.low < lead.margin < lead.high
    assert "accuracy" in lead.ahead_in
    assert lead.behind_in == ("speed",)
    assert "leads" in lead_sentence(lead)
    assert "worse in speed" in reason_text(lead)


def test_agents_of_the_same_quality_are_tied_and_the_difference_includes_zero():
    lead = main_lead(suite_report(agents=(EXACT, TWIN, GREEDY)))
    assert lead is not None
    assert set(lead.leaders) == {"exact-search", "twin"}
    assert lead.low is not None
    assert lead.high is not None
    assert lead.low < 0 < lead.high
    assert "are tied" in lead_sentence(lead)


def test_a_difference_of_ratings_is_never_said_to_exceed_one():
    agents = Made("quick", 0.5, 0.001), Made("slow", 0.5, 0.9)
    (lead,) = suite_report(agents=agents, benchmarks=(benchmark("few", cases(2)),), repetitions=3).leads
    assert (lead.low, lead.high) == (-1, 1)


def test_equal_differences_on_few_cases_are_not_shown_as_an_interval_of_zero_width(
    assay_inline: AssayInline,
) -> None:
    suite = {
        "suite": "few",
        "agents": [{"name": "right", "type": "oracle"}, {"name": "silent", "type": "nop"}],
        "benchmarks": [
            {
                "id": "echo",
                "cases": [{"id": str(number), "input": "?", "expected": "yes"} for number in range(9)],
                "scorer": "exact",
                "rubric": {
                    "weights": {"accuracy": 1, "speed": 0, "efficiency": 0, "cost": 0, "reliability": 0}
                },
            }
        ],
    }
    (assay_inline.folder / "few.yaml").write_text(json.dumps(suite))

    (lead,) = assay_inline("run", "few.yaml", "--json").json["leads"]

    assert lead["margin"] == 1
    assert lead["margin_interval"] is None


def test_each_benchmark_has_its_own_verdict_and_the_suite_one_of_both():
    good_at_talks = Made("talker", 0.3, 0.042)
    report = suite_report(agents=(EXACT, good_at_talks), benchmarks=TWO)
    assert [lead.benchmark for lead in report.leads] == ["refunds", "talks", ""]
    assert main_lead(report) is report.leads[-1]


def test_simulated_agents_never_lead_measured_ones():
    report = suite_report(agents=(GREEDY, TINY, CLOUD, replace(CLOUD, name="cloud-2", quality=1.0)))
    measured, simulated = report.leads
    assert set(measured.scores) == {"greedy", "tiny-llm"}
    assert simulated.is_simulated
    assert simulated.leaders == ("cloud-2",)
    assert main_lead(report) is measured


def test_a_single_agent_leads_nobody():
    assert suite_report(agents=(EXACT,)).leads == ()
    assert "leads" not in shown(suite_report(agents=(EXACT,)))


@pytest.mark.parametrize("width", [80, 120])
def test_a_run_ends_with_one_table_that_fits_the_screen(width):
    text = shown(suite_report(benchmarks=TWO), width)
    lines = text.splitlines()
    assert max(len(line) for line in lines) <= width
    assert len(lines) < 35
    assert text.count("Accuracy [interval]") == 1
    rows = [line for line in lines if re.match(r"  (exact-search|greedy|tiny-llm|cloud-sim)", line)]
    assert len(rows) == 8
    assert len({len(line.rstrip()) for line in rows}) == 1  # columns line up


def test_agents_are_listed_leader_first_with_accuracy_time_cost_and_failures():
    text = shown(suite_report(agents=(EXACT, COMPLETE, TINY, CLOUD)))
    row = next(line for line in text.splitlines() if line.startswith("  greedy"))
    assert row.split()[1:2] == ["0.743"]
    assert "0.62 [0.51, 0.73]" in row
    assert "1.13 ms" in row
    assert "free" in row
    assert row.split()[-1] == "5"
    assert text.index("  exact-search") < text.index("  greedy") < text.index("  tiny-llm")


def test_of_very_many_agents_the_first_are_shown_and_the_others_counted():
    many = [Made(f"agent-{number:02d}", 0.5, 0.1) for number in range(30)]
    text = shown(suite_report(agents=many, repetitions=1))
    assert "22 more agents" in text
    assert len(text.splitlines()) < 30


def test_long_names_wrap_and_numbers_stay_whole():
    named = (replace(EXACT, name="a-very-long-name-of-an-agent-that-does-not-fit"), GREEDY)
    text = shown(suite_report(agents=named))
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "1.00 [0.91, 1.00]" in text


def test_three_warnings_are_shown_and_the_others_counted_with_the_command_that_shows_them():
    report = suite_report(agents=(EXACT, GREEDY, TINY), repetitions=1, benchmarks=TWO)
    doubts = [
        *(Doubt(f"code-{number}", f"Something else, number {number}") for number in range(4)),
        Doubt("environment", "The machine was noisy at the start."),
    ]
    text = shown(replace(report, doubts=(*report.doubts, *doubts)))
    assert (
        len(re.findall(r"^! \S", text, re.MULTILINE)) == 4
    )  # three warnings and the line that counts the others
    others = len(run_warnings(replace(report, doubts=(*report.doubts, *doubts)))) - 3
    assert f"and {others} more: assay show {report.run.id}" in text


def test_warnings_that_can_change_a_conclusion_come_before_cosmetic_ones():
    codes = ["estimate", "stopped", "few", "environment", "kind", "unscored", "remark"]
    ranked = rank_warnings([Doubt(code, f"About {code}") for code in codes])
    assert [doubt.code for doubt in ranked] == [
        "unscored", "kind", "environment", "few", "stopped", "remark", "estimate",
    ]  # fmt: skip


def test_cosmetic_warnings_are_counted_and_never_shown_in_a_summary():
    shown_ones, others = split_warnings([Doubt("estimate", "seconds: 6 % of the executions are outliers")])
    assert (len(shown_ones), len(others)) == (0, 1)


def test_warnings_that_say_the_same_of_several_trials_are_said_once():
    doubts = [Doubt("failures", f"{n} of 9 executions were not ok.", trial=f"t{n}") for n in (1, 2, 3)]
    (folded,) = rank_warnings(doubts)
    assert "and 2 more" in str(folded)


def test_a_trial_without_one_ok_execution_is_the_first_warning():
    dead = Made("dead", 0.5, 0.1, faults={Status.FAILED: 1.0})
    noisy = Environment({}, doubts=("The machine was noisy at the start.",))
    first = run_warnings(suite_report(agents=(EXACT, dead), environment=noisy))[0]
    assert (first.code, first.trial) == ("nothing-ok", "refunds · dead")


def test_a_leaderboard_ends_with_who_leads_and_who_is_tied():
    slower = Made("slower", 0.62, 0.0011)
    report = suite_report(agents=(EXACT, GREEDY, slower))
    names = ("exact-search", "greedy", "slower")
    board = leaderboard("desk", [contender(report, name) for name in names], ["refunds"], "accuracy")
    told = board_sentence(board)
    assert told.startswith("exact-search leads; ")
    assert told.endswith("are tied.")


def test_a_leaderboard_of_one_agent_names_no_leader():
    report = suite_report(agents=(EXACT,))
    board = leaderboard("desk", [contender(report, "exact-search")], ["refunds"])
    assert board_sentence(board) == ""


def test_the_result_document_says_who_leads():
    document = run_document(suite_report(agents=(EXACT, COMPLETE), benchmarks=TWO), with_executions=False)
    assert [(one["benchmark"], one["leaders"], one["tied"]) for one in document["leads"]][-1] == (
        None, ["exact-search"], False,
    )  # fmt: skip
    assert document["leads"][0]["margin_interval"][0] > 0


def test_a_quiet_terminal_still_says_who_leads():
    stream = io.StringIO()
    report = suite_report(agents=(EXACT, GREEDY))
    names = ("exact-search", "greedy")
    board = leaderboard("desk", [contender(report, name) for name in names], ["refunds"], "accuracy")
    page = leaderboard_page(Boards([board], {}, "accuracy", lambda *_: None), 20)
    print_page(page, QuietTerminal(file=stream, width=80, color_system=None))
    assert "exact-search leads" in stream.getvalue()
