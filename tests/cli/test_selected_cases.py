"""What selects cases, agents or trials is known, or it is refused."""

from __future__ import annotations

import re

import pytest

SUITE = """
suite: desk
benchmarks:
  - id: b
    cases:
      - {id: faq-01, input: a, expected: a, tags: [easy]}
      - {id: faq-02, input: b, expected: b, tags: [hard]}
    scorer: exact
    iterations: {warmup: 0, measured: 1}
agents: [oracle, nop]
"""


@pytest.fixture
def desk(assay_inline):
    assay_inline.write("suite.yaml", SUITE)
    return assay_inline


@pytest.mark.parametrize(
    ("options", "unknown", "nearest"),
    [
        (("--case", "faq-01", "--case", "faq-20"), "'faq-20'", "faq-02"),
        (("--tag", "easy", "--tag", "hrad"), "'hrad'", "hard"),
        (("--agent", "nop", "--agent", "orcale"), "'orcale'", "oracle"),
    ],
)
def test_one_unknown_name_among_known_ones_is_refused_with_the_nearest(
    desk, options, unknown, nearest, wording
):
    refusal = desk.run_inline("suite.yaml", *options).refusal
    assert unknown in refusal
    assert f"'{nearest}'" in refusal
    wording(re.sub(r": [^:.]*\.$", ": ….", refusal, flags=re.M))


def test_every_unknown_case_and_tag_is_reported_at_once(desk):
    refusal = desk.run_inline("suite.yaml", "--case", "x", "--case", "y", "--tag", "z").refusal
    assert all(f"'{name}'" in refusal for name in "xyz")


def test_known_names_that_leave_no_case_name_the_options(desk, wording):
    refusal = desk.run_inline("suite.yaml", "--case", "faq-01", "--tag", "hard").refusal
    assert all(option in refusal for option in ("--case", "--tag"))
    assert "--limit" not in refusal
    wording(refusal)


def test_failed_cases_of_a_run_without_any_are_refused(desk):
    run = desk.run_inline("suite.yaml", "--agent", "oracle", "--json").json["run_id"]
    assert run in desk.run_inline("suite.yaml", "--failed", run).refusal


def test_showing_a_case_or_trial_that_the_run_does_not_have_is_refused(desk):
    desk.run_inline("suite.yaml", "--json")
    assert "'faq-02'" in desk("show", "last", "--case", "faq-20").refusal
    assert "faq-01" in desk("show", "last", "--case", "zzz").refusal
    assert "b · nop" in desk("show", "last", "--trial", "b · nope").refusal


def test_executions_are_refused_without_json(desk):
    desk.run_inline("suite.yaml", "--json")
    assert "--json" in desk("show", "last", "--executions").refusal
    assert desk("show", "last", "--executions", "--json").json["trials"][0]["iteration_metrics"]


def test_an_agent_that_is_named_twice_is_refused(desk):
    assert "'nop'" in desk.run_inline("suite.yaml", "--agent", "nop", "--agent", "nop").refusal


def test_a_side_of_a_comparison_that_is_neither_run_nor_agent_is_named_as_both(desk, wording):
    desk.run_inline("suite.yaml", "--json")
    refusal = desk("compare", "nop", "nosuch").refusal
    assert refusal.count("'nosuch'") == 2
    wording(refusal)
