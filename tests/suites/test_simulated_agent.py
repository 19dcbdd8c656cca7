"""An agent with known quality and failures, put through a suite: the measurement finds what is known."""

from __future__ import annotations

from collections import defaultdict

import pytest
from tests.command import AssayInline
from tests.suites.project import Stored, numbers, suite

QUALITY, FAILURES, CASES, REPETITIONS = 0.8, 0.1, 120, 5
AGENT = {"name": "sim", "type": "simulated", "quality": QUALITY, "failure_rate": FAILURES, "seconds": 0}


def run(assay: AssayInline, seed: int, *options: str) -> Stored:
    assay.write("s.yaml", suite(numbers(CASES), [AGENT]))
    how = ("--repetitions", str(REPETITIONS), "--seed", str(seed), *options)
    assert assay.run_inline("s.yaml", "-q", *how).code == 0
    return Stored(assay.folder)


def outcomes(stored: Stored) -> dict[tuple[str, int], object]:
    return {(one.case, one.repetition): (one.status, one.output) for one in stored.measured}


@pytest.mark.parametrize("order", ["interleaved", "sequential"])
def test_known_quality_and_failures_lie_within_their_intervals(assay_inline: AssayInline, order: str) -> None:
    assay_inline.write("s.yaml", suite(numbers(CASES), [AGENT]))
    assay_inline.write("spec.yaml", f"{{suite: s.yaml, agents: [sim], order: {order}, seed: 1}}")
    done = assay_inline.run_inline("spec.yaml", "--json", "--repetitions", str(REPETITIONS)).json
    found = done["trials"][0]["ratings"]
    right = QUALITY * (1 - FAILURES)
    consistency = right**2 + (1 - right) ** 2
    for name, known in (("accuracy", right), ("reliability", (1 - FAILURES) * consistency)):
        low, high = found[name]["interval"]
        assert low < known < high
        assert high - low < 0.2


def test_repetitions_of_a_case_are_drawn_anew_in_every_round(assay_inline: AssayInline) -> None:
    by_case = defaultdict(set)
    for (case, _), outcome in outcomes(run(assay_inline, 1)).items():
        by_case[case].add(outcome)
    # Five alike are to be expected in about a fifth of the cases.
    assert sum(len(found) > 1 for found in by_case.values()) > CASES / 2


def test_the_same_seed_draws_the_same_whatever_the_concurrency(assay_inline: AssayInline) -> None:
    first = outcomes(run(assay_inline, 3))
    assert outcomes(run(assay_inline, 3, "--concurrency", "8")) == first
    assert outcomes(run(assay_inline, 4)) != first
