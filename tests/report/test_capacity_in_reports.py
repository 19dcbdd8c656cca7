"""A run that searched for a capacity tells it in every document, not only when it is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from assay.model import Artifact, Report, TrialReport
from assay.report.capacity import capacity_text, stored_capacity
from assay.report.html import Html
from assay.report.markdown import report_page

FOUND = {
    "sustained_rate": 140.0,
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


def test_what_is_borne_stands_beside_what_is_not() -> None:
    borne = "140 requests/s are borne; 150 requests/s are not (latency: ttft_p95<200ms was not kept)."
    assert capacity_text(FOUND) == borne
    assert capacity_text({**FOUND, "sustained_rate": None, "simulated": True, "why": ""}) == (
        "No rate was borne (simulated): nothing was answered."
    )


def test_the_page_leads_with_it(make_report, make_trial, tmp_path: Path) -> None:
    (page,) = Html().write(searched(make_report, make_trial), tmp_path)
    assert "requests per second borne" in page.read_text()


def test_markdown_tells_it_with_its_warnings(make_report, make_trial) -> None:
    page = report_page(searched(make_report, make_trial))
    assert "## Capacity\n\n**140 requests/s are borne" in page
    assert "Tried again: 0.95 of it is borne, 1.05 of it is not." in page
    assert "It was tried for two seconds only." in page
