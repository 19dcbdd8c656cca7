"""A run that searched for a capacity tells it in every document, not only when it is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from assay.analysis.findings import findings
from assay.model import Artifact, Report, TrialReport
from assay.model.run import SEARCH_COMPLETE
from assay.report.capacity import capacity_text, stored_capacity
from assay.report.html import Html
from assay.report.markdown import report_page

FOUND = {
    "sustained_rate": 140.0,
    "sustained_interval": [133.0, 147.0],
    "breaking_rate": 150.0,
    "cause": "latency",
    "why": "ttft_p95<200ms was not kept",
    "confirmed": True,
    "knee_concurrency": 4,
    "highest_throughput_rps": 143.0,
    "simulated": False,
    "warnings": ["It was tried for two seconds only."],
}


def searched(make_report: Callable[..., Report], make_trial: Callable[..., TrialReport]) -> Report:
    artifact = Artifact(0, "capacity.json", "application/json", json.dumps(FOUND).encode())
    return make_report(make_trial(1, "load", 0.1, artifacts=(artifact,)))


def test_what_was_found_is_read_from_the_run(make_report, make_trial) -> None:
    report = searched(make_report, make_trial)
    assert stored_capacity(report) == FOUND
    assert stored_capacity(make_report(make_trial(1, "load", 0.1))) is None


def test_what_is_sustained_stands_beside_what_is_too_much() -> None:
    assert capacity_text(FOUND) == (
        "Sustained rate: 140 requests/s [133, 147]. It broke at 150 requests/s (latency: ttft_p95<200ms was not kept)."
    )
    assert capacity_text({**FOUND, "sustained_rate": None, "simulated": True, "why": ""}) == (
        "No rate was sustained (simulated): nothing was answered."
    )


def test_a_search_of_an_older_version_is_still_shown() -> None:
    """Its interval was that between the last two rates."""
    before = {name: value for name, value in FOUND.items() if name != "sustained_interval"}
    assert capacity_text(before).startswith("Sustained rate: 140 requests/s. It broke")


def test_the_page_leads_with_it(make_report, make_trial, tmp_path: Path) -> None:
    (page,) = Html().write(searched(make_report, make_trial), tmp_path)
    text = page.read_text()
    assert "sustained requests per second" in text
    assert "[133, 147]" in text


def test_markdown_tells_it_with_its_warnings(make_report, make_trial) -> None:
    page = report_page(searched(make_report, make_trial))
    assert "## Capacity\n\n**Sustained rate: 140 requests/s" in page
    assert "Confirmed: a lower rate held, and a higher one broke." in page
    assert "It was tried for two seconds only." in page


@pytest.mark.parametrize(
    ("reason", "is_warned"),
    [(SEARCH_COMPLETE, False), ("the search came to its end", False), ("limit of seconds", True)],
)
def test_a_finished_search_is_not_reported_as_cut_short(
    make_report, make_trial, tmp_path: Path, reason: str, is_warned: bool
) -> None:
    report = searched(make_report, make_trial)
    (trial,) = report.trials
    stopped = replace(trial, stored=replace(trial.stored, stopped=reason))
    found = findings(report.run, [stopped])
    assert ("stopped" in {doubt.code for doubt in found.doubts}) is is_warned
    (page,) = Html().write(found, tmp_path)
    assert ("before its plan was done" in page.read_text()) is is_warned
    assert ("Stopped early" in report_page(found)) is is_warned
