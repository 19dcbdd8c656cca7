"""`assay run --dry-run`: how long a run will take and what it will cost, and how that is known."""

from __future__ import annotations

from typing import Any

import pytest
from tests.command import Assay
from tests.wording import Wording

SUITE = """
suite: desk
benchmarks:
  - id: b
    scorer: exact
    iterations: {warmup: 0, measured: 1}
    cases: [{id: a, input: x, expected: x}, {id: b, input: x, expected: x}, {id: c, input: x, expected: x}]
agents:
  - {name: paid, type: python, target: "agents.py:answer", price: {request: 0.25}}
"""
AGENT = """
import time

def answer(text):
    time.sleep(0.1)
    return {"output": text, "usage": {"input_tokens": 1, "output_tokens": 1}}
"""


@pytest.fixture
def desk(assay_inline: Assay) -> Assay:
    assay_inline.write("agents.py", AGENT)
    assay_inline.write("suite.yaml", SUITE)
    return assay_inline


def expected(desk: Assay, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = desk("run", "suite.yaml", "--dry-run", "--json", *options).json
    return found


def test_time_and_cost_are_expected_from_stored_executions(desk: Assay) -> None:
    desk("run", "suite.yaml", "--json")
    found = expected(desk, "--repetitions", "4")
    assert found["executions"] == 12
    assert 1.2 <= found["expected_seconds"] < 2.4
    assert found["expected_usd"] == pytest.approx(12 * 0.25)
    assert found["expected_basis"]["seconds"]["basis"] == "history"
    assert found["trials"][0]["expected_usd"] == pytest.approx(3.0)


def test_executions_in_flight_at_a_time_share_the_expected_time(desk: Assay) -> None:
    desk("run", "suite.yaml", "--json")
    alone, together = expected(desk), expected(desk, "--concurrency", "3")
    assert together["expected_seconds"] == pytest.approx(alone["expected_seconds"] / 3)
    assert together["expected_usd"] == alone["expected_usd"]


def test_limits_are_the_upper_bound_where_nothing_is_stored(desk: Assay, wording: Wording) -> None:
    desk.write(
        "suite.yaml", SUITE.replace("scorer: exact", "scorer: exact\n    limits: {seconds: 2, usd: 0.5}")
    )
    found = expected(desk)
    assert (found["expected_seconds"], found["expected_usd"]) == (6.0, 1.5)
    assert {part["basis"] for part in found["expected_basis"].values()} == {"limit"}
    shown = desk("run", "suite.yaml", "--dry-run", COLUMNS="300").out
    assert all(bound in shown for bound in ("≤ 6 s", "≤ $1.50"))
    wording(shown, near="limits.seconds")


def test_a_limit_of_tokens_bounds_the_cost_by_the_price(desk: Assay) -> None:
    suite = SUITE.replace("scorer: exact", "scorer: exact\n    limits: {tokens: 1000}")
    desk.write("suite.yaml", suite.replace("request: 0.25", "input: 100, output: 200"))
    assert expected(desk)["expected_usd"] == pytest.approx(3 * 1000 * 200 / 1e6)


def test_what_nobody_can_know_is_unknown_and_says_why(desk: Assay) -> None:
    found = expected(desk)
    assert found["expected_seconds"] is None
    assert found["expected_usd"] is None
    assert found["expected_basis"]["usd"]["basis"] == "unknown"
    assert "limits.usd" in found["expected_basis"]["usd"]["reason"]
    assert "unknown" in desk("run", "suite.yaml", "--dry-run").out


def test_one_unknown_trial_makes_the_sum_unknown(desk: Assay) -> None:
    desk("run", "suite.yaml", "--json")
    found = expected(desk, "--agent", "paid", "--agent", "oracle")
    assert found["expected_seconds"] is None
    assert [trial["expected_usd"] for trial in found["trials"]] == [pytest.approx(0.75), 0.0]


def test_code_is_timed_whole_executions_and_has_no_cost(desk: Assay) -> None:
    desk.write("bench.py", "import time\nfrom assay import benchmark\n\n@benchmark(iterations=2, warmup=0)\n"
               "def nap():\n    time.sleep(0.3)\n")  # fmt: skip
    desk("run", "bench.py", "--json")
    found = desk("run", "bench.py", "--repetitions", "10", "--dry-run", "--json").json
    assert 3.0 <= found["expected_seconds"] < 6.0
    assert found["expected_usd"] is None
    assert found["expected_basis"]["usd"]["basis"] == "none"
