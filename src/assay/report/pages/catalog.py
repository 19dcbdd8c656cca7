"""Agents and suites as tables: what there is, the newest results of an agent, and how hard the cases of a suite are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol
from urllib.parse import urlencode

from assay.model import DIMENSIONS, Case, Ratings
from assay.model.page import Cell, PageSection, Table
from assay.model.rating import CaseDifficulty
from assay.report.cases import case_title
from assay.report.figures import NOTHING
from assay.report.pages.run_lists import rating_cell
from assay.report.side_by_side import format_solved_cases, usd_text
from assay.units import count, format_count


class NewestTrial(Protocol):
    """The newest trial of an agent on a benchmark, as a list shows it."""

    @property
    def run_id(self) -> str: ...
    @property
    def trial_id(self) -> int: ...
    @property
    def agent(self) -> str: ...
    @property
    def agent_version(self) -> str: ...
    @property
    def benchmark(self) -> str: ...
    @property
    def suite(self) -> str: ...
    @property
    def started(self) -> datetime: ...


def date_cell(moment: datetime | None) -> Cell:
    if moment is None:
        return Cell("never", tone="quiet", sort=0.0)
    return Cell(f"{moment:%Y-%m-%d %H:%M}", sort=moment.timestamp())


def number_cell(value: int) -> Cell:
    return Cell(count(value) if value else NOTHING, tone="" if value else "quiet", sort=value)


def results_sections(trials: Sequence[NewestTrial], ratings: Mapping[int, Ratings]) -> list[PageSection]:
    """The newest results of one agent, a section for each suite; the one that ran last comes first."""
    by_suite: dict[str, list[NewestTrial]] = {}
    for trial in sorted(trials, key=lambda trial: trial.started, reverse=True):
        by_suite.setdefault(trial.suite, []).append(trial)
    names = ("overall", *DIMENSIONS)
    sections = []
    for suite, found in by_suite.items():
        rows = []
        for trial in sorted(found, key=lambda trial: trial.benchmark):
            rated = ratings.get(trial.trial_id)
            marks = {**rated.dimensions, "overall": rated.overall} if rated else {}
            rows.append(
                [
                    Cell(
                        trial.benchmark,
                        ref=f"runs/{trial.run_id}/trials/{trial.trial_id}",
                        note=f"{trial.started:%Y-%m-%d}, version {trial.agent_version[:16] or NOTHING}",
                    ),
                    *(rating_cell(marks.get(name)) for name in names),
                    Cell(format_solved_cases(rated) if rated else NOTHING),
                    Cell(usd_text(rated) if rated else NOTHING),
                ]
            )
        titles = ["Benchmark", *(name.capitalize() for name in names), "Cases solved", "Cost per solved"]
        sections.append(PageSection(suite, [Table(titles, rows)], format_count(len(rows), "benchmark")))
    return sections


def case_ref(suite: str, benchmark: str, case: str) -> str:
    """What a cell that names a case refers to."""
    return f"cases?{urlencode({'suite': suite, 'benchmark': benchmark, 'case': case})}"


def difficulty_table(
    suite: str,
    benchmark: str,
    cases: Mapping[str, Case],
    difficulties: Sequence[CaseDifficulty],
) -> Table:
    """Cases with the share of agents that solve them, the hardest first."""
    rows = []
    for found in difficulties:
        case = cases.get(found.case)
        rows.append(
            [
                Cell(
                    found.case,
                    ref=case_ref(suite, benchmark, found.case),
                    note=case_title(case),
                ),
                Cell("", found.solved),
                Cell(f"{count(found.passed)} of {count(found.agents)}", sort=found.passed),
                Cell(f"{found.flaky} of {found.agents}", tone="warn", sort=found.flaky)
                if found.flaky
                else Cell(NOTHING, tone="quiet", sort=0.0),
                Cell(", ".join(case.tags) if case and case.tags else NOTHING, tone="quiet"),
            ]
        )
    return Table(["Case", "Solved", "Agents that pass", "Flaky with", "Tags"], rows, words=(4,))
