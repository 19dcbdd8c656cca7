"""Times of a suite are compared by rounds: what the machine did in a round is not taken for the agent's."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.wording import Wording

from assay.analysis.comparison.compare import compare_trials
from assay.analysis.comparison.rounds import RoundEffect, compare_rounds
from assay.model import Comparison, Series, Verdict
from assay.stats.means import t_quantile

CASES = 10
CLAIMS = (Verdict.WORSE, Verdict.BETTER)


def measure(
    chance: np.random.Generator,
    paces: np.ndarray,
    *,
    factors: np.ndarray | float = 1.0,
    noise: float = 0.02,
    stragglers: float = 0.0,
) -> Series:
    """Cases in rounds that each have a pace; `factors` are what the agent takes longer, for each case."""
    rounds = len(paces)
    logs = np.log(1 + np.arange(CASES))[:, None] + np.log(np.broadcast_to(factors, CASES))[:, None]
    logs = logs + paces[None, :] + chance.normal(0, noise, (CASES, rounds))
    logs += np.where(chance.random((CASES, rounds)) < stragglers, 3.0, 0.0)
    cases, numbers = np.meshgrid(np.arange(CASES), np.arange(rounds), indexing="ij")
    return Series(
        cases.ravel().tolist(), numbers.ravel().tolist(), np.exp(logs).ravel().tolist(), unit="case"
    )


def two(
    seed: int, factor: float = 1.0, rounds: int = 3, own: float = 0.1, shared: float = 0.2, **more: float
) -> tuple[Series, Series]:
    """Interleaved agents: a pace that both have in a round, and one that each has in its own pass."""
    chance = np.random.default_rng(seed)
    common = chance.normal(0, shared, rounds)
    a, b = (
        measure(chance, common + chance.normal(0, own, rounds), factors=by, **more) for by in (1.0, factor)
    )
    return a, b


def effect(*args: float, **more: float) -> RoundEffect:
    return compare_rounds(*two(*args, **more), are_interleaved=True)  # type: ignore[arg-type]


def compared(lab, a: Series, b: Series, interleaved: bool = True) -> Comparison:
    sides = lab.trial("a", a, agent="a"), lab.trial("b", b, agent="b")
    (found,) = compare_trials(*sides, interleaved=interleaved)
    return found


def share_claimed(factor: float, **more: float) -> float:
    found = [effect(seed, factor, **more).effect for seed in range(400)]
    return float(np.mean([one is not None and one.p < 0.05 for one in found]))


@pytest.mark.parametrize("rounds", [3, 5, 10])
def test_identical_agents_are_told_apart_in_at_most_one_comparison_of_twenty(rounds: int) -> None:
    assert share_claimed(1.0, rounds=rounds) <= 0.075


def test_stragglers_in_some_cases_neither_make_a_claim_nor_hide_one() -> None:
    assert share_claimed(1.0, rounds=5, stragglers=0.05) <= 0.075
    assert share_claimed(2.0, rounds=3, own=0.02, stragglers=0.03) >= 0.8


def test_an_agent_twice_as_slow_is_found_with_three_rounds_and_a_fifth_slower_with_ten() -> None:
    assert share_claimed(2.0, rounds=3, own=0.05) >= 0.95
    assert share_claimed(1.2, rounds=10, own=0.1) >= 0.85


def test_the_interval_is_students_over_rounds_where_the_cases_are_fixed() -> None:
    a, b = two(7, 1.3, rounds=4, noise=1e-9)
    found = compare_rounds(a, b, are_interleaved=True, are_cases_fixed=True).effect
    logs = [np.log(np.array(one.values).reshape(CASES, 4)) for one in (a, b)]
    steps = (logs[1] - logs[0]).mean(axis=0)
    half = t_quantile(0.975, 3) * steps.std(ddof=1) / 2
    assert found is not None
    assert np.log([found.value, found.low, found.high]) == pytest.approx(
        [steps.mean(), steps.mean() - half, steps.mean() + half], abs=1e-6
    )


def test_an_agent_that_is_slower_on_some_cases_and_faster_on_others_is_not_slower_in_general() -> None:
    chance = np.random.default_rng(3)
    factors = np.where(np.arange(CASES) < CASES // 2, 2.0, 0.55)
    a = measure(chance, np.zeros(10), noise=0.001)
    b = measure(chance, np.zeros(10), noise=0.001, factors=factors)
    sample = compare_rounds(a, b, are_interleaved=True).effect
    fixed = compare_rounds(a, b, are_interleaved=True, are_cases_fixed=True).effect
    assert sample is not None
    assert fixed is not None
    assert sample.p > 0.3
    assert fixed.p < 0.001


def test_interval_and_p_agree() -> None:
    for seed in range(50):
        found = effect(seed, 1.1, rounds=4).effect
        assert found is not None
        assert found.excludes_neutral == (found.p < 0.05)


@pytest.mark.parametrize("rounds", [1, 2])
def test_with_too_few_rounds_a_time_is_shown_but_never_decides(lab, rounds: int, wording: Wording) -> None:
    found = compared(lab, *two(1, 3.0, rounds=rounds))
    assert found.verdict is Verdict.UNSURE
    assert found.ratio == pytest.approx(3.0, rel=0.5)
    assert (found.low is None) == (rounds == 1)
    assert found.p_corrected is None
    assert "3" in re.findall(r"[\d.]*\d", found.reason)
    wording(found.reason, numbers=False)


def test_the_verdict_counts_rounds_and_names_how_many_would_settle_it(lab, wording: Wording) -> None:
    found = compared(lab, *two(1, 1.1, rounds=4))
    assert (found.units_a, found.units_b) == (4, 4)
    assert "Student" in found.method
    wording(found.method)
    assert found.verdict is Verdict.UNSURE
    assert int(re.findall(r"\d+", found.reason)[-1]) > 4
    assert "rounds" in found.reason
    wording(found.reason, numbers=False)
    assert compared(lab, *two(1, 2.0, rounds=4)).verdict is Verdict.WORSE


def test_rounds_are_passes_and_not_repetitions_within_one(lab) -> None:
    a, b = two(1, 3.0, rounds=5)
    a, b = (Series(one.processes, one.repetitions, one.values, "case", [0] * 50) for one in (a, b))
    assert compared(lab, a, b).verdict is Verdict.UNSURE


def test_rounds_with_cases_of_their_own_are_compared_too(lab) -> None:
    chance = np.random.default_rng(2)
    blocks = [number // 2 for number in range(30)]
    a, b = (
        Series(
            list(range(30)),
            [0] * 30,
            (by * (1 + np.arange(30)) * np.exp(chance.normal(0, 0.05, 30))).tolist(),
            "case",
            blocks,
        )
        for by in (1.0, 1.5)
    )
    found = compared(lab, a, b)
    assert (found.units_a, found.verdict) == (15, Verdict.WORSE)


def test_cases_that_one_side_lacks_do_not_count(lab, wording: Wording) -> None:
    a, b = two(1, 1.0, rounds=5, own=0.001)
    kept = [n for n, case in enumerate(b.processes) if case < 6]
    places, numbers = [b.processes[n] for n in kept], [b.repetitions[n] for n in kept]
    fewer = Series(places, numbers, [b.values[n] for n in kept], "case")
    found = compared(lab, a, fewer)
    assert found.ratio == pytest.approx(1.0, abs=0.05)
    none = compared(lab, a, Series([77] * 5, list(range(5)), [1.0] * 5, "case"))
    assert none.verdict is Verdict.UNSURE
    assert none.low is none.high is none.p_corrected is None
    wording(none.reason)
