"""What an experiment adds to analysis and reports is a plug-in: nothing else has to know of the experiment."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import pytest
from rich.console import Console

from assay.analysis.findings import build_report, read_findings
from assay.model import Doubt, InstrumentUse, Report, TrialReport
from assay.model.page import (
    Cell,
    Chart,
    Charts,
    ListItem,
    PageSection,
    Points,
    RunOutcome,
    Table,
    Tile,
)
from assay.plugin import lookup
from assay.plugin.finding import Finding
from assay.report.console.run import print_report
from assay.report.documents.junit import JUnit
from assay.report.documents.result import run_document
from assay.report.findings import outcome_of
from assay.report.pages.html import page
from assay.report.pages.markdown import report_page

HEAT = "Half of it was heat."
AT_THE_PLUG = "Measured at the plug."
WARM = "The plug was warm."
COOLED = "it cooled down"
LIMIT = "9 J"
OVER_LIMIT = "12.5 J of 9 J"
SPEC = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "description": "Energy by trial",
    "data": {"values": [{"x": 1}]},
    "mark": "bar",
    "encoding": {"x": {"field": "x", "type": "quantitative"}},
}


@dataclass(frozen=True)
class Energy(Finding):
    is_listed_in_terminal: ClassVar[bool] = False
    is_listed_on_pages: ClassVar[bool] = False

    names: tuple[str, ...]

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        return cls(tuple(trial.name for trial in trials))

    @classmethod
    def adjust(cls, trial: TrialReport) -> TrialReport:
        return replace(trial, estimates=tuple(replace(one, doubts=()) for one in trial.estimates))

    def document(self) -> Mapping[str, Any]:
        return {"energy": {"joules": [float("nan"), 12.5]}}

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        table = Table(
            ("Trial", "Energy [interval]", "Rate"),
            [(Cell(name), Cell("12.5 J [12, 13]", brief="12.5 J"), Cell("7 W")) for name in self.names],
            minor=(2,),
        )
        parts = [PageSection("Hidden <part>", [Points([ListItem(COOLED, "good")])], is_detail=True)]
        charts = [Charts([Chart("energy", SPEC)])] if with_charts else []
        return [
            PageSection(
                "Energy *used*",
                [table, *charts, *parts],
                finding=HEAT,
                notes=[AT_THE_PLUG],
                warnings=[WARM],
                anchor="energy",
            )
        ]

    def headline(self) -> PageSection | None:
        return PageSection("Too much energy", [Points([ListItem(LIMIT, "bad", "Limit")])], tone="bad")

    def tiles(self) -> Sequence[Tile]:
        return [Tile("joules", "12.5")]

    def doubts(self) -> Sequence[Doubt]:
        return [Doubt("energy", WARM, trial="plug")]

    def outcome(self) -> RunOutcome | None:
        return RunOutcome("too hungry", "bad")

    def failure(self, trial: TrialReport) -> ListItem | None:
        return ListItem(OVER_LIMIT, "bad", "too hungry")


@pytest.fixture
def hungry(make_report: Any, make_trial: Any, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.setitem(lookup._registered, "findings", {})
    lookup.register("findings", "parse_invoices", Energy)
    trials = [make_trial(1, "small", 0.1), make_trial(2, "large", 0.2)]
    return build_report(make_report(*trials).run, trials)


def shown(report: Report, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_report(report, console)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_the_document_gets_its_keys_as_plain_data(hungry: Report) -> None:
    document = json.loads(json.dumps(run_document(hungry), allow_nan=False))
    assert document["energy"] == {"joules": [None, 12.5]}
    assert [one["trial"] for one in document["warnings"] if one["code"] == "energy"] == ["plug"]


def test_a_terminal_shows_sections_without_details_and_minor_columns_where_there_is_room(
    hungry: Report,
) -> None:
    narrow, wide = shown(hungry, 80), shown(hungry, 120)
    for text in (narrow, wide):
        assert f"✗ Limit: {LIMIT}" in text
        assert "Energy *used*" in text
        assert HEAT in text
        assert AT_THE_PLUG in text
        assert COOLED not in text
        assert "too hungry" in text
    assert ("[12, 13]" in narrow, "7 W" in narrow) == (False, False)
    assert ("[12, 13]" in wide, "7 W" in wide) == (True, True)


def test_pages_show_the_same_sections_with_their_details(hungry: Report) -> None:
    markdown, html = report_page(hungry), page(hungry)
    assert r"## Energy \*used\*" in markdown
    assert r"### Hidden \<part\>" in markdown
    assert f"- ✓ {COOLED}" in markdown
    assert f"> ⚠ {WARM}" in markdown
    assert markdown.index("Too much energy") < markdown.index(HEAT)
    assert 'id="energy"' in html
    assert "Hidden &lt;part&gt;" in html
    assert "joules" in html
    assert html.index("Too much energy") < html.index(HEAT)
    assert 'aria-label="Energy by trial"' in html


def test_trials_that_it_covers_are_listed_only_where_it_says_so(hungry: Report) -> None:
    assert "Median [interval]" not in shown(hungry, 120)
    assert "## Trials" not in report_page(hungry)


def test_the_outcome_and_the_test_report_follow_it(hungry: Report, tmp_path: Path) -> None:
    assert outcome_of(hungry) == RunOutcome("too hungry", "bad")
    (file,) = JUnit().write(hungry, tmp_path)
    found = ElementTree.parse(file).getroot().iter("failure")
    assert [(one.get("message"), one.text) for one in found] == [("too hungry", OVER_LIMIT)] * 2


def test_an_experiment_without_a_finding_is_reported_as_it_is(make_trial: Any) -> None:
    trials = [make_trial(1, "small", 0.1)]
    assert read_findings(trials) == (trials, {})


def test_a_finding_of_an_instrument_adjusts_the_trials_that_have_it(
    make_trial: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Meter(Energy):
        @classmethod
        def adjust(cls, trial: TrialReport) -> TrialReport:
            return replace(trial, estimates=())

    monkeypatch.setitem(lookup._registered, "findings", {})
    lookup.register("findings", "meter", Meter)
    first, second = make_trial(1, "small", 0.1), make_trial(2, "large", 0.2)
    planned = replace(second.stored.trial, instruments=(InstrumentUse("meter"),))
    metered = replace(second, stored=replace(second.stored, trial=planned))

    shown, found = read_findings([first, metered])

    assert shown == [first, replace(metered, estimates=())]
    assert found == {"meter": Meter((metered.name,))}


def test_our_findings_are_listed_like_every_plug_in() -> None:
    names = {source.name for source in lookup.sources("findings") if source.origin == "assay"}
    assert names > {"capacity", "grades", "load", "profile", "stress", "team", "workflow"}
    for name in names:
        assert Finding in lookup.find("findings", name).__mro__
