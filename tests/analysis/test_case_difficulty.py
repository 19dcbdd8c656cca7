from __future__ import annotations

import math

import pytest

from assay.analysis.estimates.case_difficulty import case_difficulties
from assay.model import Rating, Ratings
from assay.stats.verdicts import wilson


def ratings(**solved: float) -> Ratings:
    """Of an agent that passed each case in this share of its repetitions."""
    return Ratings(
        {},
        Rating("overall", None),
        {},
        0,
        cases=len(solved),
        solved=sum(solved.values()),
        names=tuple(solved),
        case_figures={"solved": tuple(solved.values())},
    )


def test_cases_are_ordered_by_the_share_of_agents_that_solve_them():
    found = case_difficulties([ratings(easy=1.0, hard=0.0, even=1.0), ratings(easy=1.0, hard=0.0, even=0.0)])
    assert [(one.case, one.solved.value, one.passed, one.agents) for one in found] == [
        ("hard", 0.0, 0, 2),
        ("even", 0.5, 1, 2),
        ("easy", 1.0, 2, 2),
    ]
    for one in found:
        assert one.solved.value is not None
        assert (one.solved.low, one.solved.high) == wilson(one.solved.value, 2)


def test_an_agent_counts_once_however_often_it_was_asked():
    found = case_difficulties([ratings(case=1 / 3), ratings(case=1.0), ratings(case=0.0)])
    assert found[0].solved.value == pytest.approx(4 / 9)
    assert (found[0].passed, found[0].flaky, found[0].agents) == (1, 1, 3)


def test_an_agent_without_a_judged_answer_does_not_count():
    found = case_difficulties([ratings(case=math.nan), ratings(case=1.0)])
    assert (found[0].agents, found[0].passed) == (1, 1)
    assert case_difficulties([]) == []
