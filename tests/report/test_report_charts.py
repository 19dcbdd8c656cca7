from __future__ import annotations

import json
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wording import Wording

from assay.model import AxisEffect, Series, TrialReport, metric_named
from assay.plugin.charts import is_wide
from assay.report.charts.png import Png
from assay.report.charts.run import (
    _bins,
    axis,
    distribution,
    iterations,
    labels,
    overview,
    resources,
    run_charts,
    trial_charts,
)
from assay.report.charts.vega import apply_theme


def rows(spec: dict[str, Any], layer: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["layer"][layer]["data"]["values"]
    return found


def with_values(trial: TrialReport, values: list[float]) -> TrialReport:
    series = Series([0] * len(values), list(range(len(values))), values)
    return replace(trial, series={"seconds": series})


def test_a_histogram_counts_every_value(make_trial):
    trial = make_trial(1, "t", 0.5, repetitions=500)
    spec = distribution(trial, trial.estimates[0])
    assert sum(row["count"] for row in rows(spec, 1)) == 5000


@given(st.lists(st.floats(1e-9, 1e9), min_size=60, max_size=200))
def test_no_value_falls_outside_the_bins_whatever_their_spread(values):
    numbers = np.array(values)
    counts, edges = _bins(numbers, wide=is_wide(numbers))
    assert counts.sum() == len(values)
    assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize("value", [1e-9, 1.0, 1e9])
def test_values_that_differ_only_in_their_last_digit_fall_in_one_bin(value):
    counts, _ = _bins(np.array([value] * 99 + [np.nextafter(value, 2 * value)]), wide=False)
    assert sorted(counts.tolist()) == [0, 0, 100]


def test_few_values_are_shown_one_by_one(make_trial):
    trial = make_trial(1, "t", 0.5, processes=1, repetitions=20)
    spec = distribution(trial, trial.estimates[0])
    assert len(rows(spec, 0)) == 20


def test_times_are_drawn_in_the_unit_that_reads_best(make_trial):
    trial = make_trial(1, "t", 12e-6)
    spec = distribution(trial, trial.estimates[0])
    assert spec["layer"][1]["encoding"]["x"]["title"] == "µs"
    assert 5 < rows(spec, 2)[0]["value"] < 20


def test_values_that_span_decades_get_a_logarithmic_scale(make_trial):
    trial = make_trial(1, "t", 0.5)
    wide = with_values(trial, [10.0 ** (number % 5) for number in range(100)])
    spec = distribution(wide, trial.estimates[0])
    assert spec["layer"][1]["encoding"]["x"]["scale"]["type"] == "log"


def test_many_executions_become_buckets_that_keep_the_extremes(make_trial):
    trial = make_trial(1, "t", 0.5, processes=5, repetitions=1000)
    spec = iterations(trial, trial.estimates[0])
    values = np.array(trial.series["seconds"].values) * 1000
    drawn = rows(spec, 0)
    assert len(drawn) <= 500
    assert max(row["high"] for row in drawn) == pytest.approx(values.max(), rel=1e-6)
    assert min(row["low"] for row in drawn) == pytest.approx(values.min(), rel=1e-6)
    assert "5,000 executions" in spec["title"]["subtitle"]


def test_a_few_processes_get_a_colour_each_and_one_gets_none(make_trial):
    def colour(processes: int) -> dict[str, Any] | None:
        trial = make_trial(1, "t", 0.5, processes=processes, repetitions=10)
        encoding: dict[str, Any] = iterations(trial, trial.estimates[0])["layer"][0]["encoding"]
        return encoding.get("color")

    several, many = colour(4), colour(12)
    assert several is not None
    assert many is not None
    assert (several["type"], several["legend"]) == ("nominal", {"title": "process"})
    assert (many["type"], many["legend"]) == ("ordinal", None)
    assert colour(1) is None


def test_one_repetition_in_each_process_is_drawn_in_the_order_made(make_trial):
    trial = make_trial(1, "t", 0.5, processes=10, repetitions=1)
    spec = iterations(trial, trial.estimates[0])
    assert [row["order"] for row in rows(spec, 0)] == list(range(10))


def test_samples_of_resources_become_charts_and_a_cut_line_is_left_out(swept, wording: Wording):
    charts = resources(swept.trials[0])
    titles = [chart.spec["title"]["text"] for chart in charts]
    assert [title.split()[0] for title in titles] == ["CPU", "Memory", "Bytes"]
    wording("\n".join(titles))
    assert len(charts[0].spec["data"]["values"]) == 200
    assert resources(swept.trials[1]) == []


def test_an_axis_of_numbers_is_a_line_and_one_of_names_is_not():
    def marks(values: tuple[object, ...]) -> list[str]:
        best, worst = values
        effect = AxisEffect(
            "a", metric_named("seconds"), values, (1.0, 2.0), (None, 1.9), (None, 2.1), best, worst
        )
        return [layer["mark"]["type"] for layer in axis(effect)["layer"]]

    assert marks((1, 2)) == ["line", "rule", "point"]
    assert marks(("a", "b")) == ["rule", "point"]
    assert marks((True, False)) == ["rule", "point"]


def test_the_overview_is_sorted_and_tells_trials_of_one_name_apart(make_report, make_trial):
    report = make_report(make_trial(1, "same", 0.3), make_trial(2, "same", 0.1))
    assert labels(report) == ["same (trial 1)", "same (trial 2)"]
    assert [row["trial"] for row in overview(report)["data"]["values"]] == [
        "same (trial 2)",
        "same (trial 1)",
    ]


def test_trials_with_different_metrics_are_not_put_on_one_axis(make_report, make_trial):
    other = make_trial(2, "b", 0.1, metrics=[metric_named("peak_bytes")])
    report = make_report(make_trial(1, "a", 0.3), other)
    assert "overview" not in [chart.name for chart in run_charts(report)]


def test_failures_are_drawn_only_when_there_are_some(swept, small):
    assert "status" in [chart.name for chart in run_charts(swept)]
    assert run_charts(small) == []


def test_a_theme_adds_colours_to_a_specification_that_has_none(swept):
    for chart in (*run_charts(swept), *trial_charts(swept.trials[0])):
        assert "#" not in json.dumps(chart.spec)
        assert (
            apply_theme(chart.spec, dark=True)["config"]["background"]
            != apply_theme(chart.spec, dark=False)["config"]["background"]
        )


def test_data_stands_only_where_a_specification_expects_values(make_trial):
    name = "datum.x || alert(1)"
    trial = make_trial(1, name, 0.5, processes=2, repetitions=5)
    for chart in trial_charts(trial):
        assert "expr" not in json.dumps(chart.spec)
        assert "signal" not in json.dumps(chart.spec)


@pytest.mark.parametrize("values", [[], [0.5], [0.5] * 100, [0.0] * 100, [float("nan")] * 100])
def test_any_series_is_drawn_or_left_out(make_trial, values):
    trial = with_values(make_trial(1, "t", 0.5), values)
    for chart in trial_charts(replace(trial, estimates=trial.estimates[:1])):
        json.dumps(chart.spec, allow_nan=False)


def test_png_files_are_written_one_a_chart(swept, tmp_path):
    one = replace(swept, trials=swept.trials[:1], axes=())
    written = Png().write(one, tmp_path)
    assert [path.name for path in written] == [
        "distribution-parse-size=100-mode=fast-seconds.png",
        "iterations-parse-size=100-mode=fast-seconds.png",
        "distribution-parse-size=100-mode=fast-rows_per_sec.png",
        "distribution-parse-size=100-mode=fast-peak_bytes.png",
        "resources-parse-size=100-mode=fast-cpu.png",
        "resources-parse-size=100-mode=fast-memory.png",
        "resources-parse-size=100-mode=fast-io.png",
    ]
    for path in written:
        content = path.read_bytes()
        width, _ = struct.unpack(">II", content[16:24])
        assert content.startswith(b"\x89PNG")
        assert width > 1000
        assert len(content) > 8000


def test_charts_whose_names_look_alike_do_not_overwrite_each_other(make_report, make_trial, tmp_path):
    trials = [
        make_trial(n, name, 0.1, processes=1, repetitions=5, metrics=[metric_named("seconds")])
        for n, name in ((1, "a/b"), (2, "a b"))
    ]
    written = Png().write(make_report(*trials), tmp_path)
    assert len(set(written)) == len(written) == 5


def test_a_large_sweep_is_drawn_as_a_whole(make_report, make_trial, tmp_path):
    trials = [make_trial(n, f"point {n}", 0.1, processes=5, repetitions=2) for n in range(1, 71)]
    (path,) = Png().write(make_report(*trials), tmp_path)
    assert path.name == "overview.png"
