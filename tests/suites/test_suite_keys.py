"""What a suite says of itself is checked, and shown."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.command import AssayInline
from tests.suites.project import numbers, suite
from tests.wording import Wording

BROKEN = """\
suite: broken
schedule: "0 25 * * *"
baseline_scores:
  - {agent_id: a, scores: {one: 90, two: 0.5}}
  - {agent_id: a, scores: {one: -1}}
  - {agent_id: 7, scores: {one: 0.5}}
benchmarks:
  - id: one
    test_type: real-world
    cases: [{input: x, expected: x}]
    dataset: {size: 2, complexty: low}
    metrics_measured: [second, score.exact, cpu_seconds, nonsense]
  - id: three
    cases: [{input: x, expected: x}]
    dataset: {size: 2, complexity: hard}
    params: {n: 1}
  - id: four
    experiment: pragma_profil
    instrumentation: [psutill]
  - id: five
    experiment: noop
    params: {colour: red}
  - id: six
    experiment: pragma_profile
    cases: [{id: a, input: hello}, {id: b, input: {num_record: 5}}]
  - id: seven
    scorer: exact
  - id: eight
    cases: [{input: x, expected: x}]
    instrumentation: [{name: memory, top: 3}]
"""
PLACES = {
    ":2: schedule: ": "'25' 0 23",
    ":4: baseline_scores.0.scores.one: ": "0 1 90 0.9",
    ":5: baseline_scores.1.scores.one: ": "0 1 -1",
    ":6: baseline_scores.2.agent_id: ": "7",
    ":9: benchmarks.0.test_type: ": "'synthetic'",
    ":11: benchmarks.0.dataset: ": "'complexty' 'complexity'",
    ":12: benchmarks.0.metrics_measured.0: ": "'second' 'seconds'",
    ":12: benchmarks.0.metrics_measured.3: ": "'nonsense'",
    ":15: benchmarks.1.dataset.complexity: ": "'low' 'medium' 'high' 'extreme' 'hard'",
    ":15: benchmarks.1.dataset.size: ": "2 1",
    ":16: benchmarks.1.params: ": "'ask'",
    ":18: benchmarks.2.experiment: ": "'pragma_profil'",
    ":22: benchmarks.3.params.colour: ": "'noop'",
    ":19: benchmarks.2.instrumentation.0: ": "'psutill'",
    "benchmarks.4.cases: Case 'a': ": "'pragma_profile'",
    "benchmarks.4.cases: Case 'b': ": "num_record 'pragma_profile'",
    "benchmarks.5.cases: ": "",
    ":30: benchmarks.6.instrumentation.0: ": "'memory'",
}
SCHEDULE = "0 3 * * mon"
SOUND: dict[str, Any] = {
    "suite_name": "Support desk",
    "version": "1.2",
    "description": "Questions of customers.",
    "schedule": SCHEDULE,
    "created_at": "2026-01-31",
    "baseline_scores": [{"agent_id": "careful", "scores": {"b": 0.9}}],
}
FACTS = {
    "test_type": "real_world",
    "description": "Amounts to the cent.",
    "dataset": {"size": 2, "complexity": "medium", "data_source": "tickets 2025", "license": "MIT"},
    "metrics_measured": ["usd", "seconds"],
}


@pytest.fixture
def assay(assay_inline: AssayInline) -> AssayInline:
    return assay_inline


@pytest.mark.parametrize("place", PLACES)
def test_every_key_of_a_suite_is_checked_with_its_line(
    assay: AssayInline, wording: Wording, place: str
) -> None:
    assay.write("suite.yaml", BROKEN)
    [told] = [line for line in assay("validate", "suite.yaml").refusal.splitlines() if place in line]
    assert [name for name in PLACES[place].split() if name not in told.partition(place)[2]] == []
    wording(re.sub(r"(\w+, ){4,}\w+( and \d+ more)?", "…", told))  # without all the names that are known


def test_baseline_scores_name_benchmarks_of_the_suite_and_each_agent_once(
    assay: AssayInline, wording: Wording
) -> None:
    twice = [{"agent_id": "a", "scores": {"bb": 0.5}}, {"agent_id": "a", "scores": {"b": 0.5}}]
    assay.write("suite.yaml", suite(numbers(2), baseline_scores=twice))
    told = assay("validate", "suite.yaml").refusal
    [unknown] = [line for line in told.splitlines() if "baseline_scores.0.scores.bb: " in line]
    [again] = [line for line in told.splitlines() if "baseline_scores.1.agent_id: " in line]
    assert "'bb'" in unknown
    assert "'b'" in unknown
    assert "'a'" in again
    wording(told)


def test_suite_show_tells_what_the_suite_says_of_itself(assay: AssayInline) -> None:
    assay.write("suite.yaml", suite(numbers(2), benchmark=FACTS, **SOUND))
    shown = assay("suite", "show", "suite.yaml").out
    for told in (
        "Support desk",
        "1.2",
        SCHEDULE,
        "next: 2",
        "careful",
        "real_world",
        "medium",
        "MIT",
        "usd",
    ):
        assert told in shown, told
    document = assay("suite", "show", "suite.yaml", "--json").json
    assert (document["title"], document["schedule"], document["created_at"]) == (
        "Support desk",
        SCHEDULE,
        "2026-01-31",
    )
    assert document["next_due"].endswith("T03:00:00+00:00")
    assert document["baseline_scores"] == SOUND["baseline_scores"]
    assert document["benchmarks"][0]["dataset"] == FACTS["dataset"]
    assert document["benchmarks"][0]["cases"] == 2


def test_a_registered_suite_shows_the_same_page_and_its_next_time_is_listed(assay: AssayInline) -> None:
    assay.write("suite.yaml", suite(numbers(2), benchmark=FACTS, **SOUND))
    from_file = assay("suite", "show", "suite.yaml", "--json").json
    assert assay("suite", "add", "suite.yaml", "-q").code == 0
    assert assay("suite", "show", "s", "--json").json == from_file
    assert assay("suite", "list", "--json").json["schedules"]["s"]["next_due"] == from_file["next_due"]
    assert "next: " in assay("suite", "list").out


def test_a_schedule_is_read_in_the_time_zone_of_the_project_wherever_it_is_shown(assay: AssayInline) -> None:
    # Tokyo has no daylight saving time, so the offset holds on every day.
    assay.write("assay.toml", '[server]\ntimezone = "Asia/Tokyo"\n')
    assay.write("suite.yaml", suite(numbers(2), benchmark=FACTS, **SOUND))
    assert assay("suite", "add", "suite.yaml", "-q").code == 0
    shown = assay("suite", "show", "s", "--json").json["next_due"]
    assert shown.endswith("T03:00:00+09:00")
    assert assay("suite", "list", "--json").json["schedules"]["s"]["next_due"] == shown
    for command in ("list", "show s"):
        assert "03:00 JST" in assay("suite", *command.split()).out, command


def test_the_report_of_a_run_has_a_section_about_its_suite(assay: AssayInline) -> None:
    assay.write("suite.yaml", suite(numbers(2), [{"name": "o", "type": "oracle"}], benchmark=FACTS, **SOUND))
    assert assay("run", "suite.yaml", "-q").code == 0
    document = assay("show", "last", "--json").json["suite"]
    assert (document["name"], document["title"], document["schedule"]) == ("s", "Support desk", SCHEDULE)
    assert assay("report", "last", "--format", "md,html", "--out", "out").code == 0
    for name in ("report.md", "report.html"):
        page = (assay.folder / "out" / name).read_text()
        for told in ("Support desk", "Questions of customers.", "tickets 2025", "Amounts to the cent."):
            assert told in page, (name, told)
