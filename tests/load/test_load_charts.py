"""Charts of loads, from documents whose figures are known."""

from __future__ import annotations

from typing import Any

import pytest
from tests.load.results import result, times

from assay.builtin.findings.load_times import charts_of
from assay.model.figure import Figure
from assay.model.load import Moment, TimeHistogram
from assay.model.load_document import load_document
from assay.report.charts.loads import knee_of, load_charts, throughput_against_latency
from assay.report.charts.vega import apply_theme
from assay.report.stored_loads import StoredLoad


def moment(place: int, **changes: Any) -> Moment:
    plain: dict[str, Any] = {
        "begin": place * 0.5, "seconds": 0.5, "sent": 10, "completed": 8, "failed": 2, "tokens": 40, "in_flight": 4.0,
        "latency_p50": 0.1, "latency_p99": 0.2, "ttft_p50": 0.05, "ttft_p99": 0.06, "itl_p50": 0.01, "itl_p99": 0.02,
        "schedule_delay_p99": 0.001, "lag_p99": 0.002, "errors": {"http_500": 1, "timeout": 1},
    }  # fmt: skip
    return Moment(**{**plain, **changes})


def stored(**changes: Any) -> StoredLoad:
    plain: dict[str, Any] = {
        "moments": tuple(moment(place) for place in range(4)),
        "errors": {"http_500": 4, "timeout": 4, "cut_off": 1},
        "times": {"ttft": times(0.05), "itl": times(0.01), "latency": times(0.1)},
        "histograms": {"ttft": TimeHistogram((0.04, 0.05, 0.06), (600, 399), 1)},
        "curve": ((0.1, 0.5), (0.2, 1.0)),
    }
    return StoredLoad("1: 4 in flight", load_document(result(**{**plain, **changes})), 4)


def specs(load: StoredLoad) -> dict[str, Any]:
    return {chart.name.removeprefix("load-1-"): chart.spec for chart in charts_of(load, 1)}


def rows(spec: Any, what: str) -> list[tuple[float, float]]:
    return [(row["at"], row["value"]) for row in spec["data"]["values"] if row["what"] == what]


def test_values_over_time_are_steps_as_wide_as_their_slices() -> None:
    found = specs(stored())
    for name in ("latency", "rate", "in-flight", "tokens", "itl", "generator"):
        (line,) = (layer for layer in found[name]["layer"] if layer["mark"]["type"] == "line")
        assert line["mark"]["interpolate"] == "step-after"
    assert rows(found["tokens"], "output tokens") == [(at, 80) for at in (0, 0.5, 1, 1.5, 2)]
    assert rows(found["rate"], "failed")[0] == (0, 4)
    assert rows(found["itl"], "ITL P99")[0] == (0, 20)
    assert rows(found["generator"], "generator lag P99")[0] == (0, 2)


def test_a_gap_ends_the_step_before_it() -> None:
    gap = (moment(0), moment(1, itl_p50=None, itl_p99=None), moment(2))
    found = rows(specs(stored(moments=gap))["itl"], "ITL P50")
    assert found == [(0, 10), (0.5, 10), (0.5, None), (1, 10), (1.5, 10)]


def test_errors_are_stacked_by_kind_without_those_that_never_ended() -> None:
    values = specs(stored())["errors"]["data"]["values"]
    assert {row["what"] for row in values} == {"http_500", "timeout"}
    first = [row for row in values if row["at"] == 0]
    assert [(row["low"], row["high"], row["until"]) for row in first] == [(0, 2, 0.5), (2, 4, 0.5)]


def test_a_load_without_errors_has_no_chart_of_them() -> None:
    quiet = tuple(moment(place, errors={}, failed=0) for place in range(4))
    assert "errors" not in specs(stored(moments=quiet, errors={}))


def test_a_histogram_has_its_counts_and_its_percentiles() -> None:
    spec = specs(stored())["ttft-histogram"]
    assert [(row["low"], row["high"], row["count"]) for row in spec["data"]["values"]] == [
        (40, 50, 600),
        (50, 60, 399),
    ]
    marked = [layer["data"]["values"][0] for layer in spec["layer"] if layer["mark"]["type"] == "text"]
    assert marked == [{"at": 50, "label": name} for name in ("P50", "P95", "P99")]
    assert "1,000 answers" in spec["title"]["subtitle"]


def test_stretches_without_answers_are_shaded() -> None:
    dead = [moment(place, answered=5) for place in range(8)]
    dead += [moment(place, answered=0, unanswered=5, completed=0) for place in range(8, 16)]
    from assay.analysis.load.judgement import judge_load
    from assay.model.load import Arrivals, Load

    found = judge_load(result(moments=tuple(dead)), Load(Arrivals.CLOSED, concurrency=4, seconds=8.0))
    (chart, *_) = charts_of(StoredLoad("x", load_document(found)), 1)
    (shade,) = (layer for layer in chart.spec["layer"] if layer["mark"].get("style") == "outage")
    assert shade["data"]["values"] == [{"at": 4.0, "until": 8.0}]


def level(concurrency: int, throughput: float, latency: float) -> StoredLoad:
    figures = {"throughput": Figure(throughput), "times": {"latency": times(latency)}, "offered_rate": None}
    return StoredLoad(f"{concurrency}", load_document(result(**figures)), concurrency)


KNEE = [level(1, 10, 0.1), level(2, 20, 0.1), level(4, 39, 0.1), level(8, 40, 0.2), level(16, 40, 0.4)]


def test_the_knee_is_where_more_in_flight_stops_to_pay() -> None:
    assert knee_of(KNEE) == 4
    assert knee_of(KNEE[:2]) is None


def test_each_point_of_the_knee_is_labelled_with_its_concurrency() -> None:
    values = throughput_against_latency(KNEE)["data"]["values"]
    assert [row["label"] for row in values] == ["1", "2", "4 (knee)", "8", "16"]
    assert [row["is_knee"] for row in values] == [False, False, True, False, False]


def test_every_chart_can_be_drawn() -> None:
    convert = pytest.importorskip("vl_convert")
    charts = [*charts_of(stored(), 1), *load_charts(KNEE)]
    assert len(charts) == 9
    for chart in charts:
        assert "<svg" in convert.vegalite_to_svg(apply_theme(chart.spec, dark=True))
