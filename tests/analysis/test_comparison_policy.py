"""One policy for all who compare: with a planted truth, `compare`, `gate` and `regressions` give the same verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.past import FACTS, NOISE, Past

from assay.analysis.comparison.policy import POLICY, KnownNoise, Tolerances, judge
from assay.analysis.comparison.verdict import Contrast
from assay.model import Better, Metric, Verdict
from assay.pipeline.compare import compare_refs, courses
from assay.pipeline.gate import gate_refs
from assay.pipeline.regressions import Inquiry, regressions_of
from assay.stats.effect import Effect
from assay.stats.sample import Scale
from assay.store.store import Store

SECONDS = Metric("seconds", "s", Better.LOWER)
SLOWER_MACHINE = {**FACTS, "noise": {**NOISE, "seconds": 0.078}}
"""Takes 1.3 times as long for a fixed piece of work."""


@pytest.fixture
def past() -> Iterator[Past]:
    with Store.open("sqlite://") as store:
        yield Past(store)


def verdicts(past: Past, before: str, after: str) -> dict[str, Verdict | None]:
    """On the seconds of two runs of an agent, by everyone who compares them."""
    store = past.store
    store.set_baseline("main", before)
    compared = compare_refs(store, before, after).comparisons
    gated = gate_refs(store, after, "main").comparisons
    regressed = regressions_of(store, Inquiry(past.agent, baseline="main")).comparisons
    (course,) = courses(store, [before, after], ["seconds"])
    found = {"compare": compared, "gate": gated, "regressions": regressed}
    return {
        **{
            name: next(one.verdict for one in each if one.metric.name == "seconds")
            for name, each in found.items()
        },
        "time series": course.verdict,
    }


def everyone(verdict: Verdict) -> dict[str, Verdict]:
    return dict.fromkeys(("compare", "gate", "regressions", "time series"), verdict)


def test_everyone_finds_a_version_that_takes_half_as_long_again(past: Past) -> None:
    past.know_noise()
    before, after = past.run("1"), past.run("2", slower=1.5)
    assert verdicts(past, before.id, after.id) == everyone(Verdict.WORSE)


@pytest.mark.parametrize("hour", [1.0, 1.3])
def test_nobody_claims_times_of_two_runs_while_run_to_run_noise_is_unknown(past: Past, hour: float) -> None:
    before, after = past.run("1"), past.run("2", hour=hour)
    assert verdicts(past, before.id, after.id) == everyone(Verdict.UNSURE)


def test_nobody_blames_the_agent_for_a_machine_that_became_slower(past: Past) -> None:
    past.know_noise()
    before, after = past.run("1"), past.run("2", hour=1.3, facts=SLOWER_MACHINE)
    assert verdicts(past, before.id, after.id) == everyone(Verdict.UNSURE)


def test_everyone_finds_what_a_slower_machine_does_not_explain(past: Past) -> None:
    past.know_noise()
    before, after = past.run("1"), past.run("2", hour=1.3, slower=1.5, facts=SLOWER_MACHINE)
    assert verdicts(past, before.id, after.id) == everyone(Verdict.WORSE)


def test_nobody_claims_a_difference_between_identical_versions(past: Past) -> None:
    past.know_noise()
    before = past.run("1")
    for version in range(2, 6):
        found = verdicts(past, before.id, past.run(str(version)).id)
        assert not {*found.values()} & {Verdict.WORSE, Verdict.BETTER}


def test_nobody_claims_what_runs_of_the_past_differ_by(past: Past) -> None:
    for hour in (1.0, 1.2, 0.95, 1.18, 0.97, 1.2):
        past.run("1", hour=hour)
    before, after = past.run("1"), past.run("2", slower=1.15)
    assert verdicts(past, before.id, after.id) == everyone(Verdict.UNSURE)


def contrast(ratio: float, half: float = 0.01, name: str = "seconds", p: float = 1e-6) -> Contrast:
    effect = Effect(Scale.RATIO, ratio, ratio - half, ratio + half, p, "")
    metric = Metric(name, "s", Better.LOWER)
    return Contrast(metric, "before", "after", 1.0, ratio, 20, 20, effect, is_paired=False)


def test_a_percentile_has_the_noise_floor_of_its_metric() -> None:
    floor = {("after", "seconds"): 0.05}
    for noise in (KnownNoise(repeated=floor), KnownNoise(history=floor)):
        (judged,) = judge([contrast(1.08, name="seconds.p95")], noise)
        assert (judged.verdict, judged.tolerance) == (Verdict.UNSURE, 0.1)


def test_a_noise_floor_does_not_widen_a_tolerance_that_was_asked_for() -> None:
    noise = KnownNoise(repeated={("after", "seconds"): 0.05}, history={("after", "seconds"): 0.05})
    (judged,) = judge([contrast(1.08)], noise, Tolerances(0.02))
    assert (judged.verdict, judged.tolerance) == (Verdict.WORSE, 0.02)


def test_each_metric_has_its_own_tolerance_in_one_family() -> None:
    both = [contrast(1.08, p=0.03), contrast(1.08, name="ttft", p=0.02)]
    seconds, ttft = judge(both, tolerances=Tolerances(of_metric={"seconds": 0.5}))
    assert (seconds.verdict, ttft.verdict) == (Verdict.SAME, Verdict.WORSE)
    assert (seconds.p_corrected, ttft.p_corrected) == (0.04, 0.04)


def test_what_is_refused_is_no_part_of_the_family() -> None:
    unknown = Contrast(
        SECONDS, "a", "b", 1.0, 2.0, 3, 3, contrast(2.0).effect, False, is_session_unknown=True
    )
    refused, judged = judge([unknown, contrast(1.08, p=0.04)])
    assert (refused.verdict, refused.p_corrected) == (Verdict.UNSURE, None)
    assert (judged.verdict, judged.p_corrected) == (Verdict.WORSE, 0.04)


def test_the_method_page_lists_the_steps_in_their_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "method.md").read_text()
    section = page.split("### The order of the rules")[1].split("\n### ")[0]
    named = re.findall(r"`(\w+)` \|$", section, re.MULTILINE)
    assert named[-len(POLICY) :] == [step.__name__ for step in POLICY]
