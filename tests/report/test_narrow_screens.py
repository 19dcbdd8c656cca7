"""Gate, noise and dry runs at 80 columns: headings take long names, numbers stay whole and line up."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from tests.report.suites import EXACT, GREEDY, suite_report
from tests.wording import Wording

from assay.model import AgentVersion, Comparison, Iterations, Plan, Trial, Verdict, metric_named
from assay.model.forecast import Basis, Expected, Forecast, TrialForecast
from assay.model.precision import NoiseFloor
from assay.model.regression import Gate
from assay.report.console.gate import print_gate
from assay.report.console.precision import print_noise
from assay.report.console.preview import print_preview

LONG = "quarterly-refunds-of-business-customers · careful-agent-with-a-long-name"


def shown(print_it: Callable[..., None], *things: Any, width: int = 80) -> str:
    stream = io.StringIO()
    print_it(*things, Console(file=stream, width=width, color_system=None))
    return stream.getvalue()


def rows(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if re.match(r"  [a-z_.]+  ", line)]


def compared(name: str, verdict: Verdict, trial: str = LONG) -> Comparison:
    return Comparison(
        metric=metric_named(name),
        trial_a=trial,
        trial_b=trial,
        value_a=0.0123,
        value_b=0.0215,
        units_a=40,
        units_b=40,
        ratio=1.754,
        low=1.512,
        high=2.013,
        p=0.0001,
        p_corrected=0.001,
        tolerance=0.03,
        verdict=verdict,
        method="paired",
        reason="The ratio may be anywhere." if verdict is Verdict.UNSURE else "",
    )


def gate(*comparisons: Comparison) -> Gate:
    report = suite_report(agents=(EXACT, GREEDY))
    return Gate("main", report, report, comparisons, ())


@pytest.mark.parametrize("width", [80, 120])
def test_a_gate_fits_the_screen_with_whole_numbers_under_the_name_of_the_trial(width):
    names = ("seconds", "cpu_seconds", "memory_peak_bytes")
    text = shown(print_gate, gate(*(compared(name, Verdict.WORSE) for name in names)), width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert LONG in text
    assert len(rows(text)) == 3
    assert len({len(row) for row in rows(text)}) == 1
    change = "+75.4 % [+51.2, +101]"
    assert all(change in row and row.endswith("worse") for row in rows(text))


def test_a_gate_shows_what_got_worse_first_and_counts_what_is_left_out(wording: Wording):
    unsure = [compared("seconds", Verdict.UNSURE, f"trial-{number}") for number in range(30)]
    text = shown(print_gate, gate(*unsure, compared("seconds", Verdict.WORSE)))
    assert text.index(LONG) < text.index("trial-0")
    (rest,) = [line for line in text.splitlines() if "15 more" in line]
    assert "unsure" in rest
    wording(rest)
    assert len(text.splitlines()) < 60


def test_noise_fits_80_columns_with_a_long_name_of_the_trial():
    floor = NoiseFloor(
        trial=LONG,
        metric=metric_named("seconds"),
        unit="case",
        cases=40,
        rounds=10,
        floor=0.123,
        share_case=0.5,
        share_machine=0.25,
        share_repetition=0.25,
        verdict=Verdict.SAME,
    )
    text = shown(print_noise, suite_report(agents=(EXACT,)), [floor])
    assert max(len(line) for line in text.splitlines()) <= 80
    assert LONG in text
    row = r"^  seconds +12\.3 % +24\.6 % +50 % +25 % +25 %$"
    assert re.search(row, text, re.MULTILINE)


def test_the_points_of_a_sweep_are_one_row_of_a_dry_run_with_the_values_of_each_axis(wording: Wording):
    points = [
        {"leg": leg, "insight.num_ctx": ctx} for leg in ("sequential", "concurrent") for ctx in (512, 1024)
    ]
    trials = tuple(
        Trial(
            index=number,
            name=f"baseline_vs_chimera[leg={point['leg']}, insight.num_ctx={point['insight.num_ctx']}]",
            agent=AgentVersion("team"),
            benchmark="baseline_vs_chimera",
            experiment="team",
            params=point,
            axes=point,
            iterations=Iterations(warmup=1, measured=1),
            processes=5,
        )
        for number, point in enumerate(points)
    )
    time, cost = Expected(90.0, Basis.HISTORY, "as before"), Expected(0.25, Basis.HISTORY, "as before")
    each = tuple(TrialForecast(trial.name, 10, time, cost) for trial in trials)
    forecast = Forecast(40, replace(time, value=360.0), replace(cost, value=1.0), each)
    text = shown(print_preview, Plan("sweep", trials, 42), forecast)
    assert max(len(line) for line in text.splitlines()) <= 80
    row = r"^baseline_vs_chimera\n  4 trials +5 +1 +1 +40 +6 min 0 s +\$1\.00$"
    assert re.search(row, text, re.MULTILINE)
    assert "leg: sequential, concurrent" in text
    assert "insight.num_ctx: 512, 1024" in text
    assert re.search(r"\b4 trials,\s40 executions", text)
    wording(text, near="40 executions")
