"""The finding of `stress`: the score of each scenario with its factors, the limits of the agent, and advice.

`assay.analysis.load.stress` computes it; this module describes it as sections, tiles and warnings for all formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.analysis.load.stress import drop_estimate_doubts, stress_findings
from assay.model import TrialReport
from assay.model.figure import format_span
from assay.model.load_verdict import LoadVerdict
from assay.model.page import Cell, Charts, ListItem, PageSection, Points, RunOutcome, Table, Tile
from assay.model.report import mark_simulated
from assay.model.stress import ErrorDetail, ScenarioFinding, ScenarioScore, StressFinding
from assay.plugin import Column, Finding, build_table
from assay.plugin.figures import format_known
from assay.report import stress as words
from assay.units import format_count, significant

_TONES = {"✓": "good", "✗": "bad", "!": "warn", "?": "unsure", "·": ""}
_MINOR = frozenset({"In time", "Right in time", "P50", "Failed"})
_MINOR_BESIDE_QUALITY = frozenset({"Sustained", "P95", "Broke"})
"""What broke, and how much was sustained, stands beneath the table as well."""


@dataclass(frozen=True, slots=True)
class StressResults(Finding):
    """The scenarios of a stress test.

    The finding is read back from the outputs of the executions, one for each scenario, so a resumed test
    shows scenarios of both parts.
    """

    is_swept: ClassVar[bool] = False
    can_rerun: ClassVar[bool] = False
    is_listed_in_terminal: ClassVar[bool] = False

    finding: StressFinding

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        finding = stress_findings(trials)
        return None if finding is None else cls(finding)

    @classmethod
    def adjust(cls, trial: TrialReport) -> TrialReport:
        return drop_estimate_doubts(mark_simulated(trial))

    def document(self) -> Mapping[str, Any]:
        return {"stress": words.stress_document(self.finding)}

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        finding = self.finding
        scores = {score.scenario: score for score in finding.scores}
        calm = words.calm_text(finding)
        lists = (
            ("Limits", finding.limits, ""),
            ("Recommendations", finding.recommendations, ""),
            ("Doubts", finding.warnings, "warn"),
        )
        blocks: list[Table | Charts | PageSection] = []
        if details := finding.calm_errors.details:
            blocks.append(PageSection("Errors at the base rate", [_error_table(details)]))
        if with_charts:
            from assay.builtin.findings.stress_charts import stress_charts

            blocks.append(Charts(stress_charts(finding)))
        if finding.scores:
            blocks.append(_table(finding))
        return [
            PageSection(
                "Under stress",
                [
                    *blocks,
                    *(
                        PageSection(title, [Points([ListItem(text, tone) for text in lines])])
                        for title, lines, tone in lists
                        if lines
                    ),
                    *(
                        _scenario(scenario, scores.get(scenario.scenario), with_charts=with_charts)
                        for scenario in finding.scenarios
                    ),
                ],
                subtitle=". ".join(filter(None, (words.setting_text(finding), calm))),
                finding=words.headline(finding),
                is_simulated=finding.is_simulated,
                anchor="stress",
            )
        ]

    def tiles(self) -> Sequence[Tile]:
        return list(_tiles(self.finding))

    def outcome(self) -> RunOutcome | None:
        broke = LoadVerdict.BROKE
        return RunOutcome(broke.text, broke.tone) if self.finding.is_broken else None

    def failure(self, trial: TrialReport) -> ListItem | None:
        """A scenario fails where the target broke, as `assay stress` does."""
        for scenario in self.finding.scenarios:
            breach = scenario.breach
            if scenario.scenario == trial.name and breach is not None and breach.is_theirs:
                return ListItem(breach.why, "bad", words.breach_text(breach))
        return None


def _table(finding: StressFinding) -> Table:
    titles = words.columns(finding)
    minor = _MINOR | (_MINOR_BESIDE_QUALITY if finding.judged_by else frozenset())
    return Table(
        titles,
        [[Cell(text) for text in row] for row in words.rows(finding)],
        minor=[place for place, title in enumerate(titles) if title in minor],
    )


def _scenario(found: ScenarioFinding, score: ScenarioScore | None, *, with_charts: bool) -> PageSection:
    if found.skipped:
        return PageSection(found.scenario, subtitle=f"skipped: {found.skipped}")
    items = [ListItem(text, _TONES[mark]) for mark, text in words.notes(found, score, with_details=False)]
    charts = []
    if with_charts:
        from assay.builtin.findings.stress_timelines import scenario_charts

        charts = [Charts(scenario_charts(found), is_single=False)]
    errors = [_error_table(found.details)] if found.details else []
    return PageSection(found.scenario, [Points(items), *errors, *charts])


def _error_table(details: Sequence[ErrorDetail]) -> Table:
    lines = []
    for detail in details:
        lines.append(ListItem(words.detail_text(detail), "bad"))
        if detail.stderr:
            end = " ⏎ ".join(words.stderr_text(detail).splitlines())
            lines.append(ListItem(f"its standard error ends: {end}"))

    def message(error: ErrorDetail) -> Cell:
        place = f" ({error.place})" if error.place else ""
        return Cell(f"{error.message}{place}", is_output=True)

    def stderr(error: ErrorDetail) -> Cell | None:
        text = error.stderr.strip()
        return Cell(text, is_output=True) if text else None

    return build_table(
        details,
        Column("Error", lambda error: error.kind),
        Column("Times", lambda error: str(error.count)),
        Column("Message", message, is_words=True),
        Column("Exit code", lambda error: format_known(error.exit_code, str)),
        Column("Standard error ends", stderr, is_words=True),
        terminal=lines,
    )


def _tiles(found: StressFinding) -> Iterator[Tile]:
    if found.resilience is None:
        return
    mark = " (simulated)" if found.is_simulated else ""
    many = f"over {format_count(len(found.scores), 'scenario')}"
    yield Tile("resilience", format_span(found.resilience), f"{many}{mark}")
    weakest = min(found.scores, key=lambda score: score.value)
    yield Tile("weakest scenario", f"{weakest.value:.3f}", weakest.scenario)
    if found.base is not None:
        yield Tile("comfortable rate", f"{significant(found.base)}/s", f"the base of the scenarios{mark}")
