from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import jsonschema
import pytest
from tests.report.conftest import LAST_LINE, NO_GPU, NOISE, NOISE_HINT
from tests.wording import Wording

from assay.model import Better, Doubt, Kind, Metric, Status
from assay.report.documents.result import read_result, result_schema
from assay.report.pages.html import Html, page
from assay.report.pages.tiles import tiles

TEMPLATE = "{{ 7 * 7 }}"
HOSTILE = f"</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>{TEMPLATE}"


def test_the_page_names_every_figure_and_doubt_in_plain_html(swept, wording: Wording):
    text = page(swept)
    for part in (
        "parse invoices",
        "20260504-8f3a1c",
        "123 µs",
        "[118, 128]",
        NOISE,
        NOISE_HINT,
        LAST_LINE,
    ):
        assert part in text
    plain = re.sub(r"<[^>]*>", " ", text)
    wording(plain, near="120 µs")
    wording(plain, near=NO_GPU)


def test_the_page_loads_nothing_from_elsewhere(swept):
    outside = re.findall(r"""(?:src|href)=["'](?!#|data:)([^"']*)""", page(swept))
    assert outside == []


def test_hostile_names_and_logs_are_escaped(make_report, make_trial, make_failure):
    failure = make_failure(1, Status.FAILED, HOSTILE, HOSTILE)
    trial = make_trial(1, HOSTILE, 0.1, params={HOSTILE: HOSTILE}, failures=(failure,))
    doubt = Doubt("x", HOSTILE, HOSTILE, HOSTILE)
    text = page(make_report(trial, doubts=(doubt,), name=HOSTILE, notes=HOSTILE, tags=(HOSTILE,)))
    assert "window.hacked = 1</script>" not in text
    assert "<img" not in text
    assert TEMPLATE in text


def test_the_first_trials_are_open_and_the_others_closed(swept):
    trials = re.findall(r'<details class="trial panel"[^>]*>', page(swept))
    assert [trial.endswith(" open>") for trial in trials] == [True] * 3 + [False] * 3


def test_key_figures_say_when_the_first_two_cannot_be_told_apart(make_report, make_trial, wording: Wording):
    near = make_report(make_trial(1, "a", 0.1), make_trial(2, "b", 0.1))
    far = make_report(make_trial(1, "a", 0.1), make_trial(2, "b", 0.5))
    (near_note,) = [tile.note for tile in tiles(near, []) if tile.note.endswith("two overlap")]
    (far_note,) = [tile.note for tile in tiles(far, []) if "not overlap" in tile.note]
    wording(near_note)
    wording(far_note)


def test_a_single_failure_among_many_does_not_read_as_all(make_report, make_trial, make_failure):
    trial = make_trial(1, "t", 0.1, repetitions=1000, failures=(make_failure(1, Status.FAILED, "x"),))
    share = "99.9 % of 10,001"
    assert share in [tile.note for tile in tiles(make_report(trial), [])]


def test_simulated_figures_are_marked_on_the_page(make_report, make_trial, small):
    price = Metric("usd", "usd", Better.LOWER, Kind.SIMULATED)
    assert "simulated figures" in page(make_report(make_trial(1, "t", 0.1, metrics=(price,))))
    assert "simulated figures" not in page(small)


def test_a_report_of_nothing_is_a_page(make_report, make_trial):
    assert "parse invoices" in page(make_report())
    assert "nothing to estimate" in page(make_report(make_trial(1, "t", 0.1, ok=False)))


def test_a_page_of_100_000_executions_is_below_5_megabytes(make_report, make_trial, tmp_path):
    (path,) = Html().write(make_report(make_trial(1, "t", 0.0123, repetitions=10_000)), tmp_path)
    assert path.stat().st_size < 5_000_000
    assert 'id="raw"' in path.read_text(encoding="utf-8")


def test_data_that_would_make_a_page_too_large_are_left_to_other_formats(
    make_report, make_trial, monkeypatch
):
    monkeypatch.setattr("assay.report.pages.html._CELLS", 1000)
    text = page(make_report(make_trial(1, "t", 0.1)))
    assert 'id="raw"' not in text
    assert "--format csv,json" in text


def test_a_cache_folder_that_cannot_be_written_only_costs_time(small, monkeypatch, tmp_path):
    from assay.report.pages import html

    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    html.chart_library.cache_clear()
    assert 'id="runtime"' in page(small)


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_drawn_without_complaint_or_request(swept, open_page, scheme):
    opened = open_page(swept, scheme=scheme)
    opened.drawn()
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
    assert opened.page.evaluate("document.documentElement.dataset.theme") == scheme


@pytest.mark.browser
def test_charts_are_drawn_only_when_they_come_near(make_report, make_trial, open_page):
    report = make_report(*(make_trial(n, f"point {n}", 0.1, repetitions=3) for n in range(1, 41)))
    opened = open_page(report)
    opened.page.locator(".chart svg").first.wait_for()
    assert opened.page.locator(".chart svg").count() < 10 < opened.page.locator(".chart").count()


@pytest.mark.browser
def test_the_button_changes_page_and_charts_to_dark_and_back(small, open_page):
    opened = open_page(small)
    opened.drawn()
    opened.page.click("#theme")
    opened.page.wait_for_selector('.chart[data-drawn="dark"]')
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 18, 24)"
    opened.page.focus("#theme")
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_selector('.chart[data-drawn="light"]')
    assert opened.complaints == []


@pytest.mark.browser
def test_a_phone_shows_the_page_without_scrolling_sideways(swept, open_page):
    opened = open_page(swept, width=380)
    opened.drawn()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 380


@pytest.mark.browser
def test_the_csv_button_saves_every_execution(swept, open_page):
    opened = open_page(swept)
    with opened.page.expect_download() as download:
        opened.page.click("#csv")
    with Path(download.value.path()).open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 6 * 500 + 2
    assert float(rows[0]["seconds"]) == pytest.approx(swept.trials[0].series["seconds"].values[0], rel=1e-8)
    assert rows[-1]["status"] == "timeout"


@pytest.mark.browser
def test_the_json_button_saves_a_document_that_is_read_back(swept, open_page, tmp_path):
    opened = open_page(swept)
    with opened.page.expect_download() as download:
        opened.page.click("#json")
    saved = tmp_path / "saved.json"
    download.value.save_as(saved)
    jsonschema.validate(json.loads(saved.read_text(encoding="utf-8")), result_schema())
    read = read_result(saved)
    assert [trial.estimates for trial in read.trials] == [trial.estimates for trial in swept.trials]
    assert len(read.trials[0].series["seconds"].values) == 500


@pytest.mark.browser
def test_hostile_names_and_logs_stay_inert_in_a_browser(make_report, make_trial, make_failure, open_page):
    failure = make_failure(1, Status.FAILED, HOSTILE, HOSTILE)
    names = (HOSTILE, f"{HOSTILE} 2")
    trials = (
        make_trial(n, name, 0.1, params={HOSTILE: HOSTILE}, failures=(failure,))
        for n, name in enumerate(names, 1)
    )
    opened = open_page(make_report(*trials, name=HOSTILE, doubts=(Doubt("x", HOSTILE, HOSTILE),)))
    opened.drawn()
    opened.page.locator(".chart svg path").first.hover(force=True)
    assert opened.page.evaluate("window.hacked") is None
    assert opened.page.locator("h1").inner_text() == HOSTILE
    assert opened.complaints == []


@pytest.mark.browser
def test_the_table_of_trials_sorts_and_filters(make_report, make_trial, open_page):
    trials = [make_trial(n, f"point {n}", 0.1 * (10 - n), repetitions=3) for n in range(1, 10)]
    opened = open_page(make_report(*trials))
    first = opened.page.locator("tbody tr[data-trial]").first
    opened.page.get_by_role("button", name="Median [interval]").click()
    assert "point 9" in first.inner_text()
    opened.page.fill("#filter", "point 4")
    assert opened.page.locator("tbody tr[data-trial]:visible").count() == 1
