from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from rich.console import Console
from tests.report.conftest import LAST_LINE, NOISE, NOISE_HINT
from tests.wording import Wording

from assay.model import (
    AxisEffect,
    Better,
    Comparison,
    Doubt,
    Kind,
    Metric,
    Status,
    StoredTrial,
    TrialReport,
    Verdict,
    metric_named,
)
from assay.model.comparison import Compared
from assay.report.console.run import print_report, print_runs
from assay.report.console.sections import print_page, print_sections
from assay.report.documents.csv import Csv
from assay.report.documents.junit import JUnit
from assay.report.pages.comparison import comparison_page, trial_sections
from assay.report.pages.markdown import Markdown, report_page
from assay.report.pages.markdown_escape import format_code_block
from assay.report.pages.markdown_escape import text as literal

SECONDS = metric_named("seconds")


def shown(print_it: Callable[..., None], *things: object, width: int = 80) -> str:
    stream = io.StringIO()
    print_it(*things, Console(file=stream, width=width, color_system=None))
    return stream.getvalue()


# CSV


def test_csv_has_a_row_for_every_execution_and_a_column_for_every_metric(swept, tmp_path):
    (path,) = Csv().write(swept, tmp_path)
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert path.name == "executions.csv"
    assert len(rows) == 6 * 500 + 2
    assert rows[0]["params.mode"] == "fast"
    assert float(rows[0]["seconds"]) == swept.trials[0].series["seconds"].values[0]
    assert rows[-1]["status"] == "timeout"
    assert rows[-1]["seconds"] == ""


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_text_that_a_spreadsheet_would_run_is_made_inert(
    make_report, make_trial, make_failure, tmp_path, text
):
    trial = make_trial(1, text, 0.1, params={"p": text}, failures=(make_failure(1, Status.FAILED, text),))
    (path,) = Csv().write(make_report(trial), tmp_path)
    with path.open(encoding="utf-8", newline="") as stream:
        last = list(csv.DictReader(stream))[-1]
    assert (last["name"], last["params.p"], last["error"]) == ("'" + text,) * 3


def test_a_negative_number_stays_a_number(make_report, make_trial, tmp_path):
    (path,) = Csv().write(make_report(make_trial(1, "t", 0.1, params={"offset": -5})), tmp_path)
    with path.open(encoding="utf-8", newline="") as stream:
        assert next(csv.DictReader(stream))["params.offset"] == "-5"


# JUnit


def suite_of(report, tmp_path) -> ElementTree.Element:
    (path,) = JUnit().write(report, tmp_path)
    suite = ElementTree.parse(path).getroot().find("testsuite")
    assert path.name == "junit.xml"
    assert suite is not None
    return suite


def test_junit_has_a_test_case_a_trial_with_its_median_as_time(swept, tmp_path):
    suite = suite_of(swept, tmp_path)
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == [trial.name for trial in swept.trials]
    assert float(cases[0].get("time", "")) == pytest.approx(swept.trials[0].estimates[0].median, abs=1e-9)
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "0", "0")
    assert "bad invoice 7" in (cases[-1].findtext("system-err") or "")


@pytest.mark.parametrize(
    ("status", "kind"), [(Status.FAILED, "failure"), (Status.TIMEOUT, "failure"), (Status.CRASHED, "error")]
)
def test_a_trial_without_an_ok_execution_fails_in_junit(
    make_report, make_trial, make_failure, tmp_path, status, kind
):
    trial = make_trial(1, "t", 0.1, ok=False, failures=(make_failure(1, status, "it broke"),))
    suite = suite_of(make_report(trial), tmp_path)
    case = suite.find("testcase")
    assert case is not None
    assert case.findtext(kind) == "it broke"
    assert suite.get(f"{kind}s") == "1"


def test_a_trial_that_never_ran_is_skipped_in_junit(make_report, make_trial, tmp_path):
    trial = make_trial(1, "t", 0.1, ok=False)
    stopped = replace(trial, counts={}, stored=StoredTrial(1, trial.stored.trial, "interrupted"))
    case = suite_of(make_report(stopped), tmp_path).find("testcase")
    assert case is not None
    assert case.find("skipped") is not None


def test_junit_is_well_formed_whatever_a_log_holds(make_report, make_trial, make_failure, tmp_path):
    dirty = "\x00\x1b[31m]]> & <b> \ud800 \uffff"
    trial = make_trial(1, dirty, 0.1, failures=(make_failure(1, Status.FAILED, dirty, dirty),))
    case = suite_of(make_report(trial), tmp_path).find("testcase")
    assert case is not None
    assert "]]> & <b>" in (case.get("name") or "")


# Markdown


def test_markdown_shows_every_estimate_with_its_interval_and_every_doubt(swept, tmp_path):
    (path,) = Markdown().write(swept, tmp_path)
    page = path.read_text(encoding="utf-8")
    assert path.name == "report.md"
    for part in ("123 µs [118, 128]", f"{NOISE} {NOISE_HINT}", LAST_LINE, "## seconds by size"):
        assert part in page


def test_percentiles_without_enough_data_are_a_dash(make_report, make_trial):
    page = report_page(make_report(make_trial(1, "t", 0.1, repetitions=5)))
    (row,) = [line for line in page.splitlines() if line.startswith("| t |")]
    assert row.split("|")[4].strip() == "–"


def test_simulated_figures_are_marked(make_report, make_trial):
    price = Metric("usd", "usd", Better.LOWER, Kind.SIMULATED)
    report = make_report(make_trial(1, "t", 0.1, metrics=(SECONDS, price)))
    assert "usd (simulated)" in report_page(report)
    assert "simulated" in shown(print_report, report)


def test_data_in_markdown_is_literal():
    assert literal("a|b\n<script>*x*") == r"a\|b \<script\>\*x\*"
    assert format_code_block("a\n````\nb").startswith("`````text\n")


# Console


@pytest.mark.parametrize("width", [80, 120])
def test_the_console_report_fits_its_width_and_says_everything(swept, width):
    text = shown(print_report, swept, width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    for part in (
        "parse invoices",
        "completed",
        "123 µs [118, 128]",
        "rows_per_sec",
        "500/502",
        f"! {NOISE}",
    ):
        assert part in text
    assert LAST_LINE in " ".join(text.split())
    assert "\x1b" not in text


def test_markup_and_control_characters_in_names_are_shown_not_obeyed(make_report, make_trial):
    report = make_report(make_trial(1, "[red]x[/red]\x1b[2J", 0.1), name="[bold]n")
    text = shown(print_report, report, width=120)
    assert "[red]x[/red]" in text
    assert "[bold]n" in text
    assert "\x1b" not in text


def compared(verdict: Verdict, reason: str = "", trial: str = "t") -> Comparison:
    settled = verdict is not Verdict.UNSURE
    return Comparison(
        metric=SECONDS,
        trial_a=trial,
        trial_b=trial,
        value_a=0.0123,
        value_b=0.0101,
        units_a=10,
        units_b=10,
        ratio=0.82 if settled else None,
        low=0.79 if settled else None,
        high=0.85 if settled else None,
        p=0.01,
        p_corrected=0.02,
        tolerance=0.03,
        verdict=verdict,
        method="Mann-Whitney",
        reason=reason,
    )


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_verdict_is_a_word_and_not_only_a_colour(verdict):
    assert verdict.value in shown(print_sections, trial_sections([compared(verdict)]))


def test_a_comparison_shows_both_sides_the_change_with_interval_and_the_reasons(make_report):
    doubt = Doubt("machine", "The machines differ.", "Compare on one.")
    rows = [compared(Verdict.BETTER, trial="a"), compared(Verdict.UNSURE, "one process a side", trial="b")]
    report = make_report()
    text = shown(print_page, comparison_page(Compared(report, report, tuple(rows), (doubt,)), "ab"))
    for part in (
        "12.3 ms",
        "10.1 ms",
        "−18 % [−21, −15]",
        "? b: one process a side",
    ):
        assert part in text
    assert f"! {doubt.message} {doubt.hint}" in text


def test_a_wide_screen_shows_the_corrected_p_and_the_q_value():
    row = replace(compared(Verdict.BETTER), p_corrected=0.0213, q=0.00001)
    text = shown(print_sections, trial_sections([row]), width=120)
    assert "p (Holm)" in text
    assert "0.021" in text
    assert "<0.0001" in text


def test_verdicts_of_long_names_are_whole_at_80_columns():
    name = "pragma_profile[profile=balanced,workload=write_heavy]"
    rate = replace(
        compared(Verdict.UNSURE, trial=name), metric=metric_named("operations_per_second"), value_a=231_251
    )
    for rows in ([compared(Verdict.BETTER, trial=name), rate], [compared(Verdict.WORSE, trial=name)] * 2):
        text = shown(print_sections, trial_sections(rows))
        assert max(len(line) for line in text.splitlines()) <= 80
        assert all(row.verdict and row.verdict.value in text for row in rows)


def test_a_list_of_runs_fits_80_columns():
    run = SimpleNamespace(
        id="20260504-8f3a1c",
        name="parse invoices",
        state="interrupted",
        started=datetime(2026, 5, 4, 12, 30),
        trials=6,
        executions=200_000,
        tags=("nightly",),
        label="before the change",
        verdicts=(),
    )
    text = shown(print_runs, [run])
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "20260504-8f3a1c" in text
    assert "200,000" in text
    assert "nightly" in shown(print_runs, [run], width=120)


def test_a_doubt_that_many_estimates_share_is_said_once(make_report, make_trial, wording: Wording):
    too_few = "Too few processes."

    def doubted(number: int) -> TrialReport:
        trial: TrialReport = make_trial(number, f"t{number}", 0.1)
        return replace(trial, estimates=tuple(replace(e, doubts=(too_few,)) for e in trial.estimates))

    report = make_report(doubted(1), doubted(2))
    assert shown(print_report, report).count(too_few) == 1
    (line,) = {line for line in report_page(report).splitlines() if line.endswith(too_few)}
    assert "3 metrics" in line
    assert report_page(report).count(line) == 2
    wording(line)


def test_values_of_an_axis_that_do_not_differ_are_neither_best_nor_worst(make_report, make_trial):
    same = AxisEffect("mode", SECONDS, ("a", "b"), (0.1, 0.1), (None, None), (None, None), "a", "b")
    page = report_page(make_report(make_trial(1, "t", 0.1), axes=(same,)))
    assert "best" not in page
    assert "worst" not in page


def test_no_amount_of_work_is_best_or_worst(make_report, make_trial):
    less = AxisEffect(
        "turns",
        SECONDS,
        (1, 2),
        (0.1, 0.2),
        (None,) * 2,
        (None,) * 2,
        1,
        2,
        2.0,
        interacts=("mode",),
        is_workload=True,
    )
    page = report_page(make_report(make_trial(1, "t", 0.1), axes=(less,)))
    assert "2×" in page
    assert "depends on mode" in page
    assert "best" not in page
    assert "worst" not in page


def test_a_trial_without_estimates_is_shown_with_dashes(make_report, make_trial, make_failure):
    report = make_report(
        make_trial(1, "t", 0.1, ok=False, failures=(make_failure(1, Status.TIMEOUT, "too long"),))
    )
    text = shown(print_report, report)
    assert "–" in text
    assert "0/1" in text
    assert "too long" in text
