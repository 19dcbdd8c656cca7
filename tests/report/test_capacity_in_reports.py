"""A run that searched for a capacity tells it in every document, not only when it is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.wording import Wording

from assay.analysis.findings import build_report
from assay.model import Artifact, Iterations, Report, TrialReport
from assay.model.run import MOST_SEARCH_STEPS, SEARCH_COMPLETE
from assay.report.capacity import capacity_text, read_stored_capacity
from assay.report.pages.html import Html
from assay.report.pages.markdown import report_page
from assay.report.pages.tiles import tiles

SHORT_TRIAL = "It was tried for two seconds only."
FOUND = {
    "sustained_rate": 140.0,
    "sustained_interval": [133.0, 147.0],
    "breaking_rate": 150.0,
    "cause": "latency",
    "why": "ttft_p95<200ms was not met",
    "confirmed": True,
    "knee_concurrency": 4,
    "highest_throughput_rps": 143.0,
    "simulated": False,
    "warnings": [SHORT_TRIAL],
}


def searched(make_report: Callable[..., Report], make_trial: Callable[..., TrialReport]) -> Report:
    artifact = Artifact(0, "capacity.json", "application/json", json.dumps(FOUND).encode())
    trial = make_trial(1, "load", 0.1, artifacts=(artifact,))
    stored = replace(trial.stored, trial=replace(trial.stored.trial, experiment="load"))
    return make_report(replace(trial, stored=stored))


def test_what_was_found_is_read_from_the_run(make_report, make_trial) -> None:
    report = searched(make_report, make_trial)
    assert read_stored_capacity(report.trials) == FOUND
    assert read_stored_capacity([make_trial(1, "load", 0.1)]) is None


def test_what_is_sustained_stands_beside_what_is_too_much(wording: Wording) -> None:
    text = capacity_text(FOUND)
    sustained = "140 requests/s [133, 147]"
    assert text.index(sustained) < text.index("150 requests/s")
    assert f"latency: {FOUND['why']}" in text
    wording(text)
    nothing = capacity_text({**FOUND, "sustained_rate": None, "simulated": True, "why": ""})
    assert "(simulated)" in nothing
    assert "requests/s" not in nothing
    wording(nothing)


def test_a_search_of_an_older_version_is_still_shown(wording: Wording) -> None:
    """Its interval was that between the last two rates."""
    before = {name: value for name, value in FOUND.items() if name != "sustained_interval"}
    text = capacity_text(before)
    assert text.index("140 requests/s. ") < text.index("150 requests/s")
    assert "[" not in text
    wording(text)


def test_the_page_leads_with_it(make_report, make_trial, tmp_path: Path, wording: Wording) -> None:
    report = searched(make_report, make_trial)
    (page,) = Html().write(report, tmp_path)
    text = page.read_text()
    tile = next(tile for tile in tiles(report, []) if "[133, 147]" in tile.value)
    assert text.index("[133, 147]") < text.index("<h2")
    assert tile.label in text
    wording(tile.label)


def test_markdown_tells_it_with_its_warnings(make_report, make_trial, wording: Wording) -> None:
    page = report_page(searched(make_report, make_trial))
    section = page.split("## Capacity\n\n**")[1]
    assert "140 requests/s" in section.splitlines()[0]
    assert SHORT_TRIAL in page
    wording(page, near="Confirmed")


@pytest.mark.parametrize(
    ("reason", "is_warned"),
    [(SEARCH_COMPLETE, False), ("the search came to its end", False), ("limit of seconds", True)],
)
def test_a_finished_search_is_not_reported_as_cut_short(
    make_report, make_trial, tmp_path: Path, reason: str, is_warned: bool
) -> None:
    report = searched(make_report, make_trial)
    (trial,) = report.trials
    plan = replace(trial.stored.trial, iterations=Iterations(measured=MOST_SEARCH_STEPS))
    stopped = replace(trial, stored=replace(trial.stored, trial=plan, stopped=reason))
    found = build_report(report.run, [stopped])
    assert ("stopped" in {doubt.code for doubt in found.doubts}) is is_warned
    (page,) = Html().write(found, tmp_path)
    assert ("Stopped early" in page.read_text()) is is_warned
    assert ("Stopped early" in report_page(found)) is is_warned
