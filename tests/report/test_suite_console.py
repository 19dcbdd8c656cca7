from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console
from tests.report.suites import (
    CLOUD,
    EXACT,
    GREEDY,
    SCORER_FAILED,
    TINY,
    WRONG_OUTPUT,
    WRONG_REASON,
    Made,
    benchmark,
    cases,
    suite_report,
    talks,
)
from tests.wording import Wording

from assay.analysis.ranking.leaderboard import leaderboard
from assay.errors import LookupFailed
from assay.model import Budget, Report, RunState, Status
from assay.model.standing import Boards, Contender
from assay.report.console.case import print_case
from assay.report.console.run import print_report
from assay.report.console.sections import print_page
from assay.report.pages.board import leaderboard_page
from assay.report.pages.markdown import report_page
from assay.report.side_by_side import build_contests, tokens_text, usd_text


def shown(print_it: Callable[..., None], *things: object, width: int = 80) -> str:
    stream = io.StringIO()
    print_it(*things, Console(file=stream, width=width, color_system=None))
    return stream.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def desk() -> Report:
    return suite_report()


@pytest.mark.parametrize("width", [80, 120, 160])
def test_a_suite_fits_the_width_and_shows_all_that_was_found(desk, width):
    text = shown(print_report, desk, width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    for part in (
        "suite support-desk 1.2 · reasoning · definition a1a1a1a1a1a1",
        "40 cases, 3 repetitions",
        "exact-search",
        "accuracy",
        "reliability",
        "overall",
        "harness",
        "unscored",
        "40 of 40",
        "pass^3",
        "pass@3",
        "1.88 s [1.7, 2.17]",
        "209 ms [202, 221]",
    ):
        assert part in text
    assert "process" not in text


def test_ratings_stand_with_their_intervals(desk):
    accuracy = next(t for t in desk.trials if t.name.endswith("greedy")).ratings.dimensions["accuracy"]
    wide = shown(print_report, desk, width=160)
    assert f"{accuracy.value:.2f} [{accuracy.low:.2f}, {accuracy.high:.2f}]" in wide
    assert f"[{accuracy.low:.2f}, {accuracy.high:.2f}]" in shown(print_report, desk, width=120)
    assert f"[{accuracy.low:.2f}, {accuracy.high:.2f}]".replace("0.", ".") in shown(print_report, desk)


def test_what_is_unrated_is_a_dash_with_its_reason_once(desk, wording: Wording):
    text = shown(print_report, desk, width=1000).split("simulated agents")[0]
    (efficiency,) = [line for line in text.splitlines() if "efficiency is unrated" in line]
    (cost,) = [line for line in text.splitlines() if "cost is unrated" in line]
    assert "tiny-llm: " in cost
    wording(efficiency)
    wording(cost)


def test_an_unknown_cost_is_never_written_as_nothing(desk):
    by_name = {t.stored.trial.agent.name: t.ratings for t in desk.trials}
    assert usd_text(by_name["tiny-llm"]) == "unknown"
    assert usd_text(by_name["exact-search"]) == "free"
    assert usd_text(by_name["cloud-sim"]) == "$0.00423"
    assert tokens_text(by_name["exact-search"]) == "unknown"
    assert "$0.00 " not in shown(print_report, desk, width=120)


def test_an_agent_that_solves_nothing_has_no_price_for_a_solved_case():
    hopeless = Made("hopeless", -1.0, 0.1, tokens=10, usd=0.01)
    (contest,) = build_contests(suite_report(agents=(hopeless,)))
    ratings = contest.entries[0].ratings
    assert usd_text(ratings) == tokens_text(ratings) == "none solved"


def test_simulated_agents_are_marked_and_stand_on_a_board_of_their_own(desk):
    real, simulated = build_contests(desk)
    assert [entry.label for entry in real.entries] == ["exact-search", "greedy", "tiny-llm"]
    assert [entry.label for entry in simulated.entries] == ["cloud-sim"]
    text = shown(print_report, desk)
    assert "cloud-sim (simulated)" in words(text)
    assert text.index("simulated agents") > text.index("tiny-llm")


def test_a_simulated_agent_is_known_by_its_type_alone():
    report = suite_report(agents=(EXACT, Made("made-up", 0.5, 0.1, type="simulated")))
    assert [contest.is_simulated for contest in build_contests(report)] == [False, True]


def test_agents_stand_best_first_where_their_overall_ratings_rest_on_the_same():
    slow = Made("slow", 0.95, 2.0)
    report = suite_report(agents=(GREEDY, slow, EXACT))
    (contest,) = build_contests(report)
    overall = [entry.rating("overall").value or 0.0 for entry in contest.entries]
    assert overall == sorted(overall, reverse=True)
    assert "different dimensions" not in shown(print_report, report)


def test_overall_ratings_that_rest_on_different_dimensions_are_not_ranked(desk, wording: Wording):
    wording(shown(print_report, desk, width=1000), near="different dimensions")
    (real, _) = build_contests(desk)
    accuracy = [entry.rating("accuracy").value or 0.0 for entry in real.entries]
    assert accuracy == sorted(accuracy, reverse=True)


def test_failures_are_summed_up_by_what_they_are_and_where(desk, wording: Wording):
    text = shown(print_report, desk, width=1000)
    (failures,) = [line for line in text.splitlines() if "KeyError" in line]
    for part in ("greedy: 10 of 120", "5 failed (KeyError: 'order total', refund-", "5 harness error ("):
        assert part in failures
    wording(failures)


def test_cases_that_nobody_solved_are_named(wording: Wording):
    report = suite_report(agents=(Made("a", -1.0, 0.1), Made("b", -1.0, 0.1)), repetitions=1)
    text = shown(print_report, report, width=1000)
    (unsolved,) = [line for line in text.splitlines() if "34 more" in line]
    assert "40 of 40" in unsolved
    assert ": refund-001, refund-002" in unsolved
    assert "on average" not in text
    wording(unsolved)


def test_of_several_tries_it_is_said_what_solved_means(wording: Wording):
    """27 solved on average and 11 of 40 not solved by their means need not add up."""
    report = suite_report(agents=(Made("a", -1.0, 0.1),), repetitions=3)
    text = shown(print_report, report, width=1000)
    (unsolved,) = [line for line in text.splitlines() if ": refund-001" in line]
    assert "40 of 40" in unsolved
    assert "3 repetitions" in unsolved
    wording(unsolved)
    assert "solved on average" in report_page(report).lower()


def test_doubts_of_ratings_are_said_once_for_all_agents(wording: Wording):
    report = suite_report(agents=(EXACT, GREEDY), repetitions=1)
    text = shown(print_report, report, width=1000)
    reliability = next(line for line in text.splitlines() if "reliability is unrated" in line)
    (overall,) = [line for line in text.splitlines() if "weighted mean" in line]
    wording(reliability)
    wording(overall)


def test_a_run_that_its_budget_ended_says_so():
    report = suite_report(state=RunState.OVER_BUDGET, budget=Budget(usd=0.5, tokens=10_000))
    text = shown(print_report, report, width=120)
    assert "support-desk over budget" in text
    budget = "budget $0.50 and 10,000 tokens"
    assert budget in text


def test_every_benchmark_has_a_board(desk):
    both = (benchmark("refunds", cases(20)), benchmark("parcels", talks()))
    text = shown(print_report, suite_report(agents=(EXACT, GREEDY), benchmarks=both))
    assert text.index("Refunds") < text.index("Parcels")
    size = "12 cases, 3 repetitions"
    assert size in text


def test_versions_and_swept_options_tell_agents_of_one_name_apart():
    low, high = (replace(GREEDY, axes={"depth": depth}) for depth in (1, 5))
    old = replace(GREEDY, version="older")
    swept, versions = (
        {entry.label for entry in build_contests(suite_report(agents=pair))[0].entries}
        for pair in ((low, high), (GREEDY, old))
    )
    assert swept == {"greedy[depth=1]", "greedy[depth=5]"}
    assert versions == {"greedy 9c1d7e04b2", "greedy older"}


def test_markup_and_control_characters_of_agents_are_shown_not_obeyed():
    odd = Made("[red]x[/red]\x1b[2J", 0.5, 0.1, faults={Status.FAILED: 0.5})
    report = suite_report(agents=(odd,), hostile="[bold]\x1b[2J\x07")
    text = shown(print_report, report, width=120)
    assert "[red]x[/red]" in text
    assert "\x1b" not in text
    assert "\x1b" not in shown(print_case, report, "refund-001", width=120)


# One case


@pytest.mark.parametrize("width", [80, 120])
def test_a_case_shows_what_was_asked_and_every_answer_to_it(desk, width):
    text = shown(print_case, desk, "refund-013", width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    for part in (
        "Order 1013: 7 items at 8 each, 1 of them returned. What is refunded?",
        "expected 8",
        "greedy fail repetition 0 · score 0.00",
        WRONG_OUTPUT,
        f"0.00 correctness {WRONG_REASON}",
        "greedy harness error repetition 2",
        "error the worker was lost",
        "log loading weights warning: context cut",
        'tools lookup_order {"order": 1001}',
        "attempts HTTP 429: slow down after 120 ms",
        "cloud-sim (simulated)",
    ):
        assert part in words(text)


def test_spans_are_drawn_where_they_lay(desk):
    lines = shown(print_case, desk, "refund-013", width=120).splitlines()
    queue, chat, tool = (
        next(line for line in lines if name in line) for name in (" queue ", " llm ", " tool ")
    )
    assert queue.index("━") < chat.index("━") < tool.index("━")
    assert chat.count("━") > tool.count("━") > queue.count("━")
    assert "1.33 s" in chat


def test_a_conversation_shows_its_turns():
    report = suite_report(agents=(EXACT,), benchmarks=(benchmark("parcels", talks()),))
    text = words(shown(print_case, report, "talk-3"))
    first, second = "Where is my parcel?", "It is number 3."
    assert f"› {first} › {second}" in text
    assert "expected hub 3" in text


def test_what_a_scorer_could_not_judge_is_called_unscored():
    report = suite_report(agents=(replace(TINY, unscored=1.0, faults={}),), repetitions=1)
    text = words(shown(print_case, report, "refund-001", width=120))
    assert f"unscored correctness {SCORER_FAILED}" in text


def test_a_case_that_was_not_done_is_named_with_the_nearest(desk):
    with pytest.raises(LookupFailed, match=r"Unknown case 'refund-13'\. Did you mean 'refund-013'"):
        shown(print_case, desk, "refund-13")


def test_a_case_can_be_shown_without_its_definition():
    report = replace(suite_report(agents=(CLOUD,)), suite=None)
    assert "cloud-sim (simulated)" in words(shown(print_case, report, "refund-001", width=120))


# Leaderboard


def test_a_name_on_a_leaderboard_cannot_move_the_cursor(desk):
    ratings = {"refunds": desk.trials[0].ratings}
    board = leaderboard("s", [Contender("[red]x\x1b[2J", "1", ratings, False, None)], ["refunds"])
    boards = Boards([board], {}, "overall", lambda *_: None)
    text = shown(print_page, leaderboard_page(boards, 20), width=120)
    assert "[red]x" in text
    assert "\x1b" not in text
