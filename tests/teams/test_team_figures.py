"""Figures of teams, from legs whose times are known."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console
from tests.teams.teams import Legs
from tests.wording import Wording

from assay.builtin.findings.team import TeamResults
from assay.builtin.findings.team_pairs import _generation, team_findings
from assay.builtin.findings.team_text import best_text, rows, team_document
from assay.model import Status, Verdict
from assay.model.figure import Figure
from assay.model.team import TeamFinding, Teammate
from assay.report.console.sections import print_sections


def found(legs: Legs) -> TeamFinding:
    (finding,) = team_findings(legs.reports())
    return finding


def figure(finding: TeamFinding, name: str) -> Figure:
    return finding.figures[name]


SEQUENTIAL = [("first", "a", 0.0, 1.0, 0.1), ("second", "a", 1.0, 2.0, 0.1)]
TOGETHER = [("first", "a", 0.0, 1.0, 0.1), ("second", "a", 0.0, 1.0, 0.1)]
"""Nothing is lost by working at once."""
CONTENDING = [("first", "a", 0.0, 2.0, 0.2), ("second", "a", 0.0, 2.0, 0.2)]
"""All is lost: both take twice as long."""


def many(concurrent: Sequence[tuple[str, str, float, float, float | None]], pairs: int = 8) -> Legs:
    legs = Legs()
    for _ in range(pairs):
        legs.add(SEQUENTIAL, concurrent)
    return legs


def test_speedup_is_measured_sequential_time_by_concurrent_time() -> None:
    finding = found(many(TOGETHER))
    assert figure(finding, "speedup").value == pytest.approx(2.0)
    assert figure(finding, "efficiency").value == pytest.approx(1.0)
    assert figure(finding, "throughput_gain").value == pytest.approx(2.0)
    assert figure(finding, "throughput_concurrent").value == pytest.approx(100.0)
    assert [agent.figures["slowdown"].value for agent in finding.agents] == pytest.approx([1.0, 1.0])


def test_a_team_that_contends_has_no_speedup_though_the_seeds_figure_is_perfect() -> None:
    finding = found(many(CONTENDING))
    assert figure(finding, "speedup").value == pytest.approx(1.0)
    assert figure(finding, "efficiency").value == pytest.approx(0.5)
    assert figure(finding, "seed_speedup").value == pytest.approx(2.0)
    assert figure(finding, "seed_efficiency").value == pytest.approx(1.0)
    assert [agent.figures["slowdown"].value for agent in finding.agents] == pytest.approx([2.0, 2.0])
    assert finding.comparison is not None
    assert finding.comparison.verdict is Verdict.SAME


def test_the_seeds_efficiency_is_the_balance_of_durations_whatever_the_contention() -> None:
    for stretch in (1.0, 3.0):
        uneven = [("first", "a", 0.0, 1.0 * stretch, 0.1), ("second", "a", 0.0, 0.5 * stretch, 0.1)]
        finding = found(many(uneven))
        assert figure(finding, "balance_ratio").value == pytest.approx(0.75)
        assert figure(finding, "seed_efficiency").value == pytest.approx(0.75)


def test_deltas_are_concurrent_less_sequential() -> None:
    first = found(many(CONTENDING)).agents[0].figures
    assert first["ttft_delta"].value == pytest.approx(0.1)
    assert first["seconds_delta"].value == pytest.approx(1.0)
    assert first["tokens_per_second_delta"].value == pytest.approx(-25.0)


def test_efficiency_counts_those_who_may_work_at_once() -> None:
    legs = many(TOGETHER)
    legs.permits = 1
    assert figure(found(legs), "efficiency").value == pytest.approx(2.0)


def test_pairs_are_paired_so_that_drift_does_not_widen_the_interval() -> None:
    legs = Legs()
    for number in range(8):
        slow = 1.0 + number  # the machine gets eight times slower meanwhile
        legs.add(
            [("first", "a", 0.0, slow, 0.1), ("second", "a", slow, 2 * slow, 0.1)],
            [("first", "a", 0.0, slow, 0.1), ("second", "a", 0.0, 1.01 * slow, 0.1)],
        )
    speedup = figure(found(legs), "speedup")
    assert speedup.low == pytest.approx(2 / 1.01)
    assert speedup.high == pytest.approx(2 / 1.01)
    sequential = figure(found(legs), "sequential_seconds")
    assert sequential.low is not None
    assert sequential.high is not None
    assert sequential.high / sequential.low > 1.5


def test_few_pairs_have_an_interval_by_t_and_a_doubt(wording: Wording) -> None:
    legs = Legs()
    for end in (1.0, 1.1, 0.9, 1.05):
        legs.add(SEQUENTIAL, [("first", "a", 0.0, end, 0.1), ("second", "a", 0.0, end, 0.1)])
    finding = found(legs)
    speedup = figure(finding, "speedup")
    assert speedup.low is not None
    assert speedup.high is not None
    assert speedup.low < speedup.value < speedup.high
    assert speedup.method.startswith("t ")
    wording(speedup.method)
    (doubt,) = [doubt for doubt in finding.doubts if " 4 pairs" in doubt]
    wording(doubt)


def test_one_pair_has_no_interval(wording: Wording) -> None:
    finding = found(many(TOGETHER, pairs=1))
    speedup = figure(finding, "speedup")
    assert speedup.value == pytest.approx(2.0)
    assert (speedup.low, speedup.high) == (None, None)
    assert finding.comparison is not None
    assert finding.comparison.verdict is Verdict.UNSURE
    assert {grade.verdict for grade in finding.grades} == {"unsure"}
    assert finding.doubts
    wording(finding.doubts[0])


def test_a_pair_with_a_failed_leg_counts_not_at_all(wording: Wording) -> None:
    legs = many(TOGETHER, pairs=7)
    legs.add(
        SEQUENTIAL, [("first", "a", 0.0, 9.0, 0.1), ("second", "a", 0.0, 9.0, 0.1)], status=Status.FAILED
    )
    finding = found(legs)
    assert len(finding.rounds) == 7
    assert figure(finding, "speedup").value == pytest.approx(2.0)
    (doubt,) = [doubt for doubt in finding.doubts if "7 of 8" in doubt]
    wording(doubt)


def test_a_start_that_was_not_simultaneous_is_doubted(wording: Wording) -> None:
    legs = many(TOGETHER, pairs=5)
    legs.add(SEQUENTIAL, TOGETHER, skew=0.4)
    finding = found(legs)
    assert max(one.skew_seconds for one in finding.rounds) == 0.4
    (doubt,) = set(finding.doubts) - set(found(many(TOGETHER, pairs=6)).doubts)
    assert "1 of 6 " in doubt
    assert not any("concurrent" in doubt for doubt in found(many(TOGETHER)).doubts)
    wording(doubt)


def test_with_one_permit_there_is_no_skew_to_tell(wording: Wording) -> None:
    legs = Legs(permits=1)
    for _ in range(6):
        legs.add(SEQUENTIAL, SEQUENTIAL)
    alone = found(legs)
    assert "skew_seconds" not in alone.figures
    (told,) = [row for row in rows(alone) if row.name == "start skew"]
    assert told.value == "–"
    wording(told.brief)
    together = Legs()
    for _ in range(6):
        together.add(SEQUENTIAL, TOGETHER, skew=0.002)
    (told,) = [row for row in rows(found(together)) if row.name == "start skew"]
    assert told.value.count("2 ms") == 2


@pytest.mark.parametrize(("width", "is_told"), [(80, False), (160, True)])
def test_deltas_are_explained_where_they_are_shown(width: int, is_told: bool) -> None:
    console = Console(file=io.StringIO(), width=width)
    print_sections(TeamResults((found(many(TOGETHER)),)).sections(with_charts=False), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert ("Δ TTFT" in text, "Δ is concurrent" in text) == (is_told, is_told)


def test_legs_that_did_not_do_the_same_work_are_doubted(wording: Wording) -> None:
    legs = Legs()
    for _ in range(6):
        legs.add(SEQUENTIAL, TOGETHER, tokens=(100.0, 80.0))
    (doubt,) = [doubt for doubt in found(legs).doubts if "20 %" in doubt]
    wording(doubt)


def test_targets_are_met_only_by_the_whole_interval() -> None:
    grades = {grade.figure: grade.verdict for grade in found(many(TOGETHER)).grades}
    assert (grades["speedup"], grades["efficiency"]) == ("met", "met")
    grades = {grade.figure: grade.verdict for grade in found(many(CONTENDING)).grades}
    assert (grades["speedup"], grades["contention"]) == ("missed", "problematic")
    legs = Legs()
    for end in (0.9, 1.0, 1.1, 1.2, 0.95, 1.08):
        legs.add(SEQUENTIAL, [("first", "a", 0.0, end, 0.1), ("second", "a", 0.0, end, 0.1)])
    assert {g.figure: g.verdict for g in found(legs).grades}["speedup"] == "unsure"


def test_the_best_of_several_teams_is_reported_with_those_that_it_is_not_apart_from(wording: Wording) -> None:
    fast, alike, slow = (
        replace(found(many(legs)), label=name)
        for name, legs in (("fast", TOGETHER), ("alike", TOGETHER), ("slow", CONTENDING))
    )
    assert best_text([fast]) == ""
    apart, unsure = best_text([slow, fast]), best_text([slow, fast, alike])
    assert apart.startswith("'fast' ")
    assert re.findall(r"\d+", apart) == ["1"]
    assert re.findall(r"\d+", unsure) == ["1", "2"]
    wording(apart)
    wording(unsure)


def test_a_speedup_that_is_higher_within_tolerance_is_not_apart() -> None:
    hardly = [(agent, case, start, 0.99 * end, first) for agent, case, start, end, first in TOGETHER]
    a, b = found(many(TOGETHER)), replace(found(many(hardly)), label="b")
    assert re.findall(r"\d+", best_text([a, b])) == ["1", "1"]


@pytest.mark.parametrize(
    ("share", "ruled"),
    [
        (0.994, Verdict.SAME),
        (1.006, Verdict.SAME),
        (0.95, Verdict.BETTER),
        (1.05, Verdict.WORSE),
    ],
)
def test_a_speedup_is_judged_with_the_tolerance_of_every_comparison(share: float, ruled: Verdict) -> None:
    """The concurrent leg takes this share of the sequential one, in every pair the same."""
    ends = [("first", "a", 0.0, 2 * share, 0.1), ("second", "a", 0.0, 2 * share, 0.1)]
    finding = found(many(ends))
    assert finding.comparison is not None
    assert finding.comparison.verdict is ruled
    assert finding.comparison.tolerance == 0.03
    document = team_document(finding)
    assert (document["speedup_verdict"], document["tolerance"]) == (ruled, 0.03)


def test_a_speedup_that_may_be_none_is_unsure(wording: Wording) -> None:
    legs = Legs()
    for end in (1.7, 2.2, 1.8, 2.1, 1.75, 2.3, 1.9, 2.0):
        legs.add(SEQUENTIAL, [("first", "a", 0.0, end, 0.1), ("second", "a", 0.0, end, 0.1)])
    comparison = found(legs).comparison
    assert comparison is not None
    assert comparison.verdict is Verdict.UNSURE
    wording(comparison.reason)


def test_lengths_of_answers_that_only_vary_are_no_different_work() -> None:
    legs = Legs()
    for tokens in (
        (100.0, 130.0),
        (150.0, 90.0),
        (60.0, 160.0),
        (120.0, 100.0),
        (80.0, 140.0),
        (140.0, 110.0),
    ):
        legs.add(SEQUENTIAL, TOGETHER, tokens=tokens)
    assert not any("same work" in doubt for doubt in found(legs).doubts)


def test_throughput_is_graded_by_what_the_server_took_where_it_tells_that():
    whole, made = Figure(87.0), Figure(105.0)
    told = {"tokens_per_second_concurrent": whole, "eval_tokens_per_second_concurrent": made}
    assert _generation(Teammate("a", "ollama", "m", 1, told)) == made
    assert _generation(Teammate("a", "openai", "m", 1, {"tokens_per_second_concurrent": whole})) == whole
