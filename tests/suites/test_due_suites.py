"""A schedule says when a suite is due; a section that nothing reads is told."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.command import AssayInline
from tests.suites.project import numbers, python_agent, suite

from assay.pipeline.schedules import find_due_suites
from assay.spec.settings import find_settings
from assay.store.store import Store


@pytest.fixture
def project(assay_inline: AssayInline) -> AssayInline:
    """Two suites, of which one has a schedule and another name than its file."""
    assay_inline.write("assay.toml", '[assay]\nsuites = ["*.yaml"]\n')
    assay_inline.write("agents.py", "def good(text):\n    return text\n")
    plain = json.loads(suite(numbers(2), [python_agent("good")]))
    assay_inline.write("nightly.yaml", json.dumps({**plain, "suite": "desk", "schedule": "0 3 1 1 *"}))
    assay_inline.write("never.yaml", json.dumps({**plain, "suite": "never"}))
    return assay_inline


def due_after(project: AssayInline, passed: timedelta) -> list[str]:
    with Store.open(f"sqlite:///{project.folder}/.assay/assay.db") as store:
        return find_due_suites(store, find_settings(project.folder, {}), datetime.now(UTC) + passed)


def test_a_suite_is_due_until_it_runs_and_again_when_its_time_has_come(project: AssayInline) -> None:
    assert project("suite", "list", "--due").out.split() == ["nightly"]
    assert project("run", "nightly", "--repetitions", "1", "-q").code in (0, 1)
    assert due_after(project, timedelta(0)) == []
    assert due_after(project, timedelta(days=366)) == ["nightly"]
    assert set(project("suite", "list", "--due", "--json").json) == {"due"}


def test_a_mistake_in_a_scheduled_suite_is_reported_with_its_place(project: AssayInline) -> None:
    project.write(
        "nightly.yaml", "suite: desk\nschedule: 0 25 * * *\nbenchmarks: [{id: a, cases: [{input: 1}]}]\n"
    )
    done = project("suite", "list", "--due")
    assert done.code == 2
    assert "nightly.yaml:2: schedule: " in done.err
