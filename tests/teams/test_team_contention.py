"""Contention: requests that waited for each other are found with their share and delay, and chance is not taken for it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

import pytest
from tests.command import Assay
from tests.teams.teams import LOCAL, Legs, Request, server_team

from assay.builtin.findings.team_pairs import team_findings
from assay.model import Verdict
from assay.model.team import Contention, TeamFinding
from assay.simulator import SimOptions, SimServer

pytestmark = pytest.mark.real_starts
"""How long agents take is the subject, and the memory of a fork is copied while they work."""

NAMES = ("first", "second")
Draw = Callable[[], float]


def found(legs: Legs) -> TeamFinding:
    (finding,) = team_findings(legs.reports())
    return finding


def contention_of(legs: Legs) -> Contention:
    contention = found(legs).contention
    assert contention is not None
    return contention


def alone(cases: Sequence[str], draw: Draw) -> list[Request]:
    """One agent after the other; the first token comes after half of each answer."""
    leg: list[Request] = []
    clock = 0.0
    for name in NAMES:
        for case in cases:
            took = draw()
            leg.append((name, case, clock, clock + took, took / 2))
            clock += took
    return leg


def independent(cases: Sequence[str], draw: Draw) -> list[Request]:
    """All at once, each with a server of its own."""
    leg: list[Request] = []
    for name in NAMES:
        clock = 0.0
        for case in cases:
            took = draw()
            leg.append((name, case, clock, clock + took, took / 2))
            clock += took
    return leg


def one_slot(cases: Sequence[str], draw: Draw) -> list[Request]:
    """All at once, on a server that answers one request at a time in the order of arrival."""
    leg: list[Request] = []
    free, asked = 0.0, dict.fromkeys(NAMES, 0.0)
    for case in cases:
        for name in sorted(NAMES, key=lambda one: asked[one]):
            begun, took = max(free, asked[name]), draw()
            free = begun + took
            leg.append((name, case, asked[name], free, begun - asked[name] + took / 2))
            asked[name] = free
    return leg


def pairs(
    together: Callable[[Sequence[str], Draw], list[Request]], draw: Draw, number: int = 8, cases: str = "ab"
) -> Legs:
    legs = Legs(agents=NAMES)
    for _ in range(number):
        legs.add(alone(cases, draw), together(cases, draw))
    return legs


def test_a_tenth_of_a_millisecond_is_no_contention() -> None:
    chance = random.Random(1)
    contention = contention_of(pairs(independent, lambda: 0.2 + chance.uniform(0, 0.0002)))
    assert (contention.events, contention.requests) == (0, 32)
    assert (contention.rate.value, contention.rate.low) == (0.0, 0.0)
    assert contention.verdict is Verdict.SAME


@pytest.mark.parametrize(("cases", "share"), [("a", 1 / 2), ("ab", 3 / 4), ("abcd", 7 / 8)])
def test_all_that_wait_for_one_slot_are_found_with_their_delay(cases: str, share: float) -> None:
    """Of two agents all requests but the very first wait until the other's answer is complete."""
    contention = contention_of(pairs(one_slot, lambda: 2.0, cases=cases))
    assert contention.rate.value == pytest.approx(share)
    assert contention.rate.low is not None
    assert 0 < contention.rate.low < share
    assert contention.verdict is Verdict.WORSE
    assert contention.delay_seconds == pytest.approx(2.0)


def test_slow_answers_are_no_contention_by_themselves() -> None:
    """First tokens that take four seconds with nobody else at work."""
    contention = contention_of(pairs(independent, lambda: 8.0))
    assert (contention.events, contention.verdict) == (0, Verdict.SAME)


def test_answers_that_are_not_streamed_are_compared_by_their_whole_time() -> None:
    legs = Legs(agents=NAMES)
    for _ in range(6):
        legs.add(
            [("first", "a", 0.0, 1.0, None), ("second", "a", 1.0, 2.0, None)],
            [("first", "a", 0.0, 1.0, None), ("second", "a", 0.0, 2.0, None)],
        )
    contention = contention_of(legs)
    assert (contention.events, contention.requests, contention.verdict) == (6, 12, Verdict.WORSE)


def test_an_answer_that_only_its_end_was_late_of_is_slower() -> None:
    legs = Legs(agents=NAMES)
    for _ in range(6):
        legs.add(
            [("first", "a", 0.0, 1.0, 0.1), ("second", "a", 1.0, 2.0, 0.1)],
            [("first", "a", 0.0, 1.4, 0.1), ("second", "a", 0.0, 1.4, 0.1)],
        )
    contention = contention_of(legs)
    assert contention.rate.value == 1.0
    assert contention.delay_seconds == pytest.approx(0.4)


def test_fewer_than_six_pairs_establish_nothing() -> None:
    finding = found(pairs(one_slot, lambda: 2.0, number=5))
    assert finding.contention is not None
    assert finding.contention.verdict is Verdict.UNSURE
    assert {grade.figure: grade.verdict for grade in finding.grades}["contention"] == "unsure"


@pytest.mark.parametrize(("number", "cases"), [(6, "abcd"), (10, "ab"), (3, "ab")])
def test_random_times_are_taken_for_contention_in_at_most_one_team_of_twenty(number: int, cases: str) -> None:
    """Answers of two seconds on average, exponential, each agent with a server of its own."""
    chance = random.Random(2)
    teams = 100
    claimed = 0
    for _ in range(teams):
        finding = found(pairs(independent, lambda: chance.expovariate(0.5), number, cases))
        assert finding.contention is not None
        is_slower = finding.comparison is not None and finding.comparison.verdict is Verdict.WORSE
        is_doubted = any("same work" in doubt or "together" in doubt for doubt in finding.doubts)
        claimed += finding.contention.verdict is Verdict.WORSE or is_slower or is_doubted
    assert claimed <= teams / 20


def test_random_times_on_one_slot_gain_nothing_and_are_said_to_in_at_most_one_team_of_twenty() -> None:
    """All work is done one by one in either leg, so the true speedup is 1; seven of eight requests wait."""
    chance = random.Random(3)
    findings = [found(pairs(one_slot, lambda: chance.expovariate(0.5), 10, "abcd")) for _ in range(100)]
    ruled = [finding.comparison.verdict for finding in findings if finding.comparison]
    assert sum(one in (Verdict.BETTER, Verdict.WORSE) for one in ruled) <= 5
    contended = [finding.contention for finding in findings if finding.contention]
    assert sum(one.verdict is Verdict.WORSE for one in contended) >= 0.9 * len(findings)
    # By chance some of those who waited were quick themselves, so the share is no more than the true one.
    assert all((one.rate.low or 0.0) < 7 / 8 for one in contended)


@pytest.mark.slow
def test_agents_that_sleep_do_not_contend(assay: Assay) -> None:
    assay.write("agents.py", LOCAL.replace("0.05", "0.4"))
    agents = [{"name": name, "type": "python", "target": "agents.py:answer"} for name in NAMES]
    team = {"team": "nap", "agents": agents, "cases": [{"id": "a", "input": "A"}],
            "iterations": {"warmup": 0, "measured": 6}, "seed": 1}  # fmt: skip
    assay.write("team.json", json.dumps(team))
    (document,) = assay("team", "team.json", "--json").json["teams"]
    assert document["contention"]["verdict"] != "worse"
    assert document["contention"]["rate"]["interval"][0] == 0
    assert document["speedup_verdict"] == "better"
    assert document["figures"]["speedup"]["value"] == pytest.approx(2.0, rel=0.15)


@pytest.mark.slow
def test_agents_that_share_one_slot_wait_for_each_other(assay: Assay) -> None:
    """One of three requests is answered at once, the others wait for one or two answers."""
    with SimServer(SimOptions(ttft=0.3, itl=0.0, tokens=2, slots=1)) as server:
        assay.write("team.json", server_team(server.url, 3, iterations={"warmup": 0, "measured": 6}))
        (document,) = assay("team", "team.json", "--json").json["teams"]
    contention = document["contention"]
    assert contention["verdict"] == "worse"
    low, high = contention["rate"]["interval"]
    assert low < 2 / 3 < high
    assert 0.3 * 0.9 < contention["delay_seconds"] < 0.6 * 1.2
    figures = {name: figure["value"] for name, figure in document["figures"].items()}
    assert figures["slowdown"] == pytest.approx(2.0, rel=0.15)
    # The slot is idle while an agent hands over to the next one. Agents at work at once save that time, and no other; it is next
    # to nothing unless the machine is busy.
    requests = sum(agent["figures"]["seconds_sequential"]["value"] for agent in document["agents"])
    handing_over = figures["sequential_seconds"] / requests - 1
    assert figures["speedup"] == pytest.approx(1 + handing_over, rel=0.15)
    assert document["speedup_verdict"] in ("same", "unsure") or handing_over > document["tolerance"]
