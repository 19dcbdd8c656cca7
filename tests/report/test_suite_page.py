from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.report.suites import (
    CLOUD,
    COMPLETE,
    EXACT,
    GREEDY,
    TINY,
    WRONG_OUTPUT,
    WRONG_REASON,
    Made,
    benchmark,
    cases,
    suite_report,
    talks,
)
from tests.wording import Wording

from assay.model import Doubt, Report, Status
from assay.report.cases import case_rows
from assay.report.charts.png import Png
from assay.report.charts.radar import radar
from assay.report.charts.side_by_side import CASES, contest_charts, matrix, outcomes, select_cases, tradeoff
from assay.report.charts.vega import apply_theme
from assay.report.documents.result import read_result, result_schema
from assay.report.pages.html import Html, page
from assay.report.pages.html_side_by_side import Gallery, contest_views, details
from assay.report.pages.markdown import report_page
from assay.report.pages.tiles import tiles
from assay.report.side_by_side import build_contests

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>{{ 7 * 7 }}"


@pytest.fixture(scope="module")
def desk() -> Report:
    return suite_report()


@pytest.fixture(scope="module")
def desk_page(desk: Report) -> str:
    return page(desk)


def values(spec: dict[str, Any], layer: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["layer"][layer]["data"]["values"]
    return found


# Charts


def test_of_several_agents_those_that_are_simulated_are_named(desk_page: str, wording: Wording):
    text = re.sub(r"<[^>]*>", "", desk_page)
    wording(next(line for line in text.splitlines() if "figures of cloud-sim." in line).strip())


def test_a_radar_has_only_the_dimensions_that_all_agents_have(desk):
    real, _ = build_contests(desk)
    corners = values(radar(real), -1)
    assert {row["dimension"] for row in corners} == {"accuracy", "speed", "reliability"}
    best = next(row for row in corners if (row["trial"], row["dimension"]) == ("exact-search", "accuracy"))
    assert (best["x"], best["y"], best["text"]) == (0.0, 1.0, "1.00 [0.91, 1.00]")


def test_no_radar_is_drawn_of_fewer_than_three_dimensions():
    never = Made("never", 0.5, 0.1, faults={Status.FAILED: 1.0})
    (contest,) = build_contests(suite_report(agents=(never,), repetitions=1))
    assert "ratings-refunds" not in [chart.name for chart in contest_charts(contest, case_rows(contest))]


def test_the_tradeoff_tells_an_unknown_cost_from_none(desk):
    real, _ = build_contests(desk)
    rows = {row["trial"]: row for row in tradeoff(real)["data"]["values"]}
    assert (rows["exact-search"]["known"], rows["exact-search"]["cost"]) == (True, "free")
    assert (rows["tiny-llm"]["known"], rows["tiny-llm"]["cost"]) == (False, "unknown")
    assert rows["greedy"]["low"] < rows["greedy"]["x"] < rows["greedy"]["high"]


def test_outcomes_of_an_agent_add_up_to_all_of_its_executions(desk):
    real, _ = build_contests(desk)
    rows = [row for row in outcomes(real)["data"]["values"] if row["trial"] == "tiny-llm"]
    assert sum(row["count"] for row in rows) == 120
    assert rows[0]["from"] == 0
    assert rows[-1]["to"] == pytest.approx(1)
    assert [a["to"] for a in rows[:-1]] == [b["from"] for b in rows[1:]]


def test_the_matrix_has_every_case_of_every_agent_hardest_first(desk):
    real, _ = build_contests(desk)
    rows = case_rows(real)
    cells = values(matrix(real, rows), 0)
    assert len(cells) == 40 * 3
    means = [row.mean or 0.0 for row in rows]
    assert means == sorted(means)


def test_many_cases_are_thinned_out_evenly_and_the_chart_says_so():
    (contest,) = build_contests(
        suite_report(agents=(GREEDY,), benchmarks=(benchmark("b", cases(1000)),), repetitions=1)
    )
    rows = case_rows(contest)
    shown = select_cases(rows)
    assert len({row.case for row in shown}) == CASES
    assert (shown[0], shown[-1]) == (rows[0], rows[-1])
    solved = sum(row.mean or 0 for row in rows) / len(rows)
    assert sum(row.mean or 0 for row in shown) / CASES == pytest.approx(solved, abs=0.01)
    size = "300 of 1,000 cases"
    assert size in matrix(contest, rows)["title"]["subtitle"]


def test_cases_that_nobody_judged_are_drawn_apart_from_a_score_of_nothing():
    unjudged = replace(TINY, unscored=1.0, faults={})
    (contest,) = build_contests(suite_report(agents=(unjudged,), repetitions=1))
    spec = matrix(contest, case_rows(contest))
    assert [layer["mark"]["style"] for layer in spec["layer"]] == ["unjudged"]


def test_charts_of_suites_carry_no_colour_and_no_expression(desk):
    for contest in build_contests(suite_report(hostile="datum.x || alert(1)")):
        for chart in contest_charts(contest, case_rows(contest)):
            text = json.dumps(chart.spec, allow_nan=False)
            assert "#" not in text
            assert "expr" not in text
            assert "signal" not in text
            assert apply_theme(chart.spec, dark=True) != apply_theme(chart.spec, dark=False)


def test_png_files_of_a_suite_are_one_a_chart(tmp_path):
    written = Png().write(suite_report(agents=(EXACT, GREEDY)), tmp_path)
    assert [path.name for path in written] == [
        "outcomes-refunds.png",
        "ratings-refunds.png",
        "tradeoff-refunds.png",
        "cases-refunds.png",
        "distribution-refunds-exact-search-seconds.png",
        "distribution-refunds-greedy-seconds.png",
    ]
    assert all(path.stat().st_size > 8000 for path in written)


# Page


def test_the_page_shows_suite_ratings_reasons_and_missed_cases(desk_page):
    for part in (
        "Suite <b>support-desk</b> 1.2",
        "reasoning",
        "a1" * 32,
        "<b>1.00</b>",
        "[0.91, 1.00]",
        "tiny-llm: cost is unrated: the cost is unknown (give the agent a price, or set price: free)",
        "overall ratings are not comparable here",
        "40 of 40",
        "pass^3",
        "209 ms",
        "unknown",
        "Cases not passed",
        WRONG_OUTPUT,
        WRONG_REASON,
        "completion 0.957 × consistency",
    ):
        assert part in desk_page
    assert "processes" not in re.sub(r"<(script|style)\b.*?</\1>", "", desk_page, flags=re.DOTALL)


def test_simulated_agents_are_apart_and_marked_on_the_page(desk_page):
    real, simulated = desk_page.split('class="contest simulated"')
    assert "cloud-sim" not in real.split('class="contest"')[1]
    assert '<span class="chip warn">simulated</span>' in simulated


def test_bars_are_as_long_as_the_ratings(desk, desk_page):
    accuracy = next(t for t in desk.trials if t.name.endswith("greedy")).ratings.dimensions["accuracy"]
    ends = ((name, getattr(accuracy, name)) for name in ("value", "low", "high"))
    assert "; ".join(f"--{name}: {round(value * 100, 1)}%" for name, value in ends) in desk_page


def test_missed_cases_are_bounded_and_say_how_many_there_are(wording: Wording):
    hopeless = (Made("hopeless", -1.0, 0.1),)
    text = page(suite_report(agents=hopeless, benchmarks=(benchmark("b", cases(200)),), repetitions=1))
    (size,) = re.findall(r"[\w ]*\b50 of 200\b[\w ]*", text)
    wording(size)
    assert text.count('<td class="name">refund-') == 50


def test_key_figures_lead_with_the_best_of_real_agents(desk, wording: Wording):
    found = {tile.label: tile for tile in tiles(desk, build_contests(desk))}
    assert found["highest accuracy"].value == "1.00 [0.91, 1.00]"
    note = found["highest accuracy"].note
    assert note.startswith("exact-search; ")
    assert "not overlap" in note
    wording(note)
    assert found["shortest median time"].note == "greedy"
    assert "highest overall" not in found
    assert "cheapest solved case" not in found


def test_key_figures_of_several_benchmarks_tell_their_size():
    both = (benchmark("refunds", cases(20)), benchmark("parcels", talks()))
    report = suite_report(agents=(EXACT, CLOUD), benchmarks=both)
    found = {tile.label: tile.value for tile in tiles(report, build_contests(report))}
    assert (found["agents"], found["cases"], found["cases solved"]) == ("1", "32", "100 %")


def test_the_page_loads_nothing_from_elsewhere(desk_page):
    assert re.findall(r"""(?:src|href)=["'](?!#|data:)([^"']*)""", desk_page) == []


def test_what_agents_say_is_escaped():
    odd = Made(HOSTILE, 0.5, 0.1, ttft=0.1, version=HOSTILE, faults={Status.FAILED: 0.2})
    text = page(suite_report(agents=(odd,), hostile=HOSTILE, name=HOSTILE))
    assert "window.hacked = 1</script>" not in text
    assert "<img" not in text


def test_a_suite_without_its_definition_is_still_a_page(desk):
    text = page(replace(desk, suite=None))
    assert "refunds" in text
    assert WRONG_REASON in text


def test_agents_that_all_failed_make_a_page():
    never = Made("never", 0.5, 0.1, faults={Status.CRASHED: 1.0})
    assert "nothing was solved" in page(suite_report(agents=(never,)))


def test_a_page_of_10_000_cases_stays_small(tmp_path):
    asked = (benchmark("refunds", cases(10_000)),)
    (path,) = Html().write(
        suite_report(agents=(EXACT, GREEDY, TINY), benchmarks=asked, repetitions=1), tmp_path
    )
    assert path.stat().st_size < 5_000_000


@pytest.mark.browser
@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 380), ("dark", 380)]
)
def test_a_suite_is_drawn_without_complaint_request_or_scrolling_sideways(desk, open_page, scheme, width):
    opened = open_page(desk, width=width, scheme=scheme)
    opened.drawn()
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_a_cell_of_the_matrix_shows_what_was_asked_and_answered(desk, open_page, wording: Wording):
    opened = open_page(desk)
    opened.drawn()
    opened.page.locator(".chart[data-contest] svg path[aria-label*='refund-013']").first.click(force=True)
    picked = opened.page.locator("[data-picked]").first
    picked.wait_for()
    text = picked.inner_text()
    question = "Order 1013: 7 items at 8 each"
    assert question in text
    (score,) = [line for line in text.splitlines() if line.startswith("greedy: ")]
    outcomes = "2 fail, 1 harness error"
    assert " 0.00 " in score
    assert outcomes in score
    wording(score)
    assert WRONG_REASON in text


@pytest.mark.browser
def test_what_agents_say_stays_inert_in_a_browser(open_page):
    odd = Made(HOSTILE, 0.5, 0.1, ttft=0.1, version=HOSTILE, faults={Status.FAILED: 0.2})
    opened = open_page(suite_report(agents=(odd, EXACT), hostile=HOSTILE, name=HOSTILE))
    opened.drawn()
    cell = opened.page.locator(".chart[data-contest] svg path[aria-roledescription]").first
    cell.hover(force=True)
    cell.click(force=True)
    opened.page.locator("[data-picked]").first.wait_for()
    assert HOSTILE in opened.page.locator("[data-picked]").first.inner_text()
    assert opened.page.evaluate("window.hacked") is None
    assert opened.complaints == []


@pytest.mark.browser
def test_the_buttons_save_what_the_other_formats_hold(desk, open_page, tmp_path):
    opened = open_page(desk)
    saved = {}
    for button in ("csv", "json"):
        with opened.page.expect_download() as download:
            opened.page.click(f"#{button}")
        saved[button] = Path(tmp_path / f"saved.{button}")
        download.value.save_as(saved[button])
    with saved["csv"].open(encoding="utf-8", newline="") as stream:
        assert next(csv.DictReader(stream))["case"] == "refund-001"
    jsonschema.validate(json.loads(saved["json"].read_text(encoding="utf-8")), result_schema())
    read = read_result(saved["json"])
    assert [trial.ratings for trial in read.trials] == [trial.ratings for trial in desk.trials]
    first = next(one for one in read.trials[0].executions if one.phase == "measured")
    assert first.measurements["score"] == 1.0


@pytest.mark.browser
def test_the_board_sorts_by_any_dimension(desk, open_page):
    opened = open_page(desk)
    opened.page.get_by_role("button", name="Speed").first.click()
    opened.page.get_by_role("button", name="Speed").first.click()
    assert "greedy" in opened.page.locator("table.ratings tbody tr").first.inner_text()


def test_the_first_screen_says_who_leads_by_how_much_and_whether_it_is_real(open_page, wording: Wording):
    opened = open_page(suite_report(agents=(GREEDY, EXACT)))
    verdict = opened.page.locator(".verdict")
    assert verdict.locator("h2").inner_text() == "exact-search leads"
    assert verdict.bounding_box()["y"] + verdict.bounding_box()["height"] < 900
    (lead,) = suite_report(agents=(GREEDY, EXACT)).leads
    assert f"{lead.margin:+.3f} [{lead.low:+.3f}, {lead.high:+.3f}]" in verdict.inner_text()
    assert not lead.is_tie
    assert "speed" in verdict.inner_text()
    wording(verdict.inner_text())


def test_a_tie_is_called_a_tie_on_the_first_screen():
    twin = Made("twin", 1.0, 0.042)
    text = page(suite_report(agents=(EXACT, twin, GREEDY)))
    verdict = text[text.index('class="verdict') : text.index('class="tiles"')]
    assert "are tied" in verdict
    assert "a tie" in verdict
    assert "is real" not in verdict


def test_contents_lead_to_every_section_and_each_section_leads_back(open_page):
    both = (benchmark("refunds", cases(40)), benchmark("talks", talks()))
    opened = open_page(suite_report(benchmarks=both))
    anchors = [link.get_attribute("href") for link in opened.page.locator(".contents a").all()]
    assert anchors == ["#contest-1", "#contest-2", "#contest-3", "#contest-4", "#each", "#environment"]
    assert all(opened.page.locator(anchor).count() == 1 for anchor in anchors)
    assert opened.page.locator("a.up[href='#contents']").count() == len(anchors)
    opened.page.locator(".contents a").last.click()
    opened.page.locator("#environment a.up").click()
    assert opened.page.url.endswith("#contents")


def test_a_case_shows_every_output_of_every_agent_with_its_repetitions(open_page):
    report = suite_report(agents=(EXACT, replace(GREEDY, quality=0.5, faults={})))
    answers = details(report, contest_views(report, build_contests(report), Gallery()))["refunds"]
    case, found = next((case, one) for case, one in answers.items() if len(one["answers"][1]["outputs"]) == 2)
    opened = open_page(report)
    shown = opened.page.locator(".picked").first
    opened.page.select_option("[data-cases]", case)
    shown.locator("h3").first.wait_for()
    text = shown.inner_text()
    assert found["title"].startswith("Order ")
    assert found["title"] in text
    assert text.count("repetition") == 2
    assert WRONG_OUTPUT in text
    assert all(output["output"] in text for answer in found["answers"] for output in answer["outputs"])


def test_benchmarks_and_cases_have_their_names_beside_their_ids():
    named = replace(benchmark("refunds", cases(40)), name="Refund questions")
    text = page(suite_report(benchmarks=(named,)))
    assert "Refund questions <code>refunds</code>" in text
    assert re.search(r"refund-\d+<span class=\"case-title\">Order \d+: ", text)


def test_three_warnings_are_open_and_the_others_folded():
    report = suite_report(repetitions=1)
    doubts = tuple(Doubt(f"code-{number}", f"Doubt number {number}.") for number in range(5))
    text = page(replace(report, doubts=doubts))
    top = text[text.index('class="tiles"') : text.index('class="contents"')]
    before, folded = top.split('<details class="more warnings">')
    assert before.count("<li>") == 3
    assert "more warnings</summary>" in folded


def test_markdown_says_who_leads_before_the_figures():
    both = (benchmark("refunds", cases(40)), benchmark("talks", talks()))
    text = report_page(suite_report(agents=(EXACT, COMPLETE), benchmarks=both))
    assert text.index("**exact-search leads.**") < text.index("## Refunds")
    leader = "exact-search"
    assert f"- Refunds: {leader} leads" in text
