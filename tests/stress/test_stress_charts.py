"""Charts of a stress scenario: what is drawn, over which time, and where the faults were."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.stress.benches import moment
from tests.wording import Wording

from assay.analysis.load.stress import stress_finding
from assay.builtin.findings.stress_charts import errors_by_kind
from assay.builtin.findings.stress_timelines import scenario_charts, steps
from assay.model.stress import (
    Band,
    Breach,
    CalmErrors,
    LoadPoint,
    Resources,
    Sample,
    ScenarioFinding,
)

COURSE = tuple(moment(n, 0.1, 8, 2 if n == 3 else 0) for n in range(6))
FOUND = ScenarioFinding(
    "failure_recovery",
    seconds=6.0,
    offered=60,
    good=48,
    completed=48,
    errors={"http_503": 2},
    moments=COURSE,
    resources=Resources("server (1)", (Sample(0.0, 0.1, 10**7), Sample(5.0, 0.1, 2 * 10**7))),
    bands=(Band(2.0, 3.0, "503s"),),
    unit="faults",
)


def drawn(found: ScenarioFinding) -> dict[str, dict[str, Any]]:
    prefix = f"stress-{found.scenario}-"
    return {chart.name.removeprefix(prefix): chart.spec for chart in scenario_charts(found)}


def test_latency_rate_errors_and_memory_are_drawn_as_steps_over_one_axis_of_time():
    charts = drawn(FOUND)
    assert list(charts) == ["latency", "rate", "errors", "memory"]
    for spec in charts.values():
        marks = [layer["mark"] for layer in spec["layer"]]
        (course,) = [mark for mark in marks if mark["type"] in ("line", "area")]
        assert course["interpolate"] == "step-after"
        domains = [layer["encoding"]["x"]["scale"]["domain"] for layer in spec["layer"]]
        assert domains == [[0, 6.0]] * len(domains)


def test_the_time_of_each_fault_is_a_band_with_its_name():
    for spec in drawn(FOUND).values():
        (band,) = [layer for layer in spec["layer"] if layer["mark"]["type"] == "rect"]
        assert band["data"]["values"] == [{"at": 2.0, "to": 3.0, "fault": "503s"}]


def test_nothing_is_drawn_of_errors_and_memory_that_there_are_not():
    fine = replace(FOUND, moments=tuple(moment(n) for n in range(6)), errors={}, resources=None)
    assert list(drawn(fine)) == ["latency", "rate"]
    assert not errors_by_kind(stress_finding("x", {}, [fine]))


def test_a_breach_by_the_pressure_has_a_line_and_what_is_as_in_calm_has_none():
    broke = replace(FOUND, breach=Breach(2.5, 10.0, "requests/s", "errors", "some failed"))
    rules = [layer for layer in drawn(broke)["latency"]["layer"] if layer["mark"]["type"] == "rule"]
    assert [layer["data"]["values"] for layer in rules] == [[{"at": 2.5}]]
    assert broke.breach is not None
    calm = replace(broke, breach=replace(broke.breach, is_in_calm=True))
    assert not [layer for layer in drawn(calm)["latency"]["layer"] if layer["mark"]["type"] == "rule"]


def test_speedup_is_the_throughput_of_each_level_by_that_of_the_first():
    points = tuple(
        LoadPoint(load, rate, 0.1, 0.1, 0.0, is_broken, is_probe)
        for load, rate, is_broken, is_probe in (
            (1.0, 10.0, False, False),
            (4.0, 40.0, False, False),
            (6.0, 45.0, True, True),
            (8.0, 44.0, True, False),
        )
    )
    spec = steps(ScenarioFinding("concurrent_requests", points=points, unit="at a time", moments=COURSE))
    assert spec is not None
    _, thread, held, broke = spec["layer"]
    assert [row["value"] for row in thread["data"]["values"]] == [1.0, 4.0, 4.5, 4.4]
    assert [row["load"] for row in held["data"]["values"]] == [1.0, 4.0]
    assert [(row["load"], row["kind"]) for row in broke["data"]["values"]] == [(6.0, "probe"), (8.0, "step")]


def test_errors_are_counted_by_kind_for_each_scenario_and_in_calm(wording: Wording):
    from dataclasses import asdict

    calm = {"calm_errors": asdict(CalmErrors(3, 100, {"failed": 3}))}
    spec = errors_by_kind(stress_finding("x", calm, [replace(FOUND, errors={"timeout": 1, "http_503": 2})]))
    assert spec is not None
    first, *others = [(row["scenario"], row["kind"], row["count"]) for row in spec["data"]["values"]]
    assert first[1:] == ("failed", 3)
    assert others == [("failure_recovery", "http_503", 2), ("failure_recovery", "timeout", 1)]
    wording(first[0])


def test_rates_are_counted_over_a_quarter_of_a_second_however_closely_was_looked():
    fine = tuple(moment(0.05 * n, 0.1, n % 2, 0, seconds=0.05) for n in range(100))
    rows = drawn(replace(FOUND, moments=fine, bands=()))["rate"]["layer"][0]["data"]["values"]
    answered = [row["value"] for row in rows if row["what"] == "answered/s"]
    # Every other twentieth of a second one answer: two or three in each quarter
    assert set(answered) <= {8.0, 12.0}
    assert len(answered) == 21
