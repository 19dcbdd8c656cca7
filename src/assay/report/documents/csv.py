"""The reporter `csv`: one row for each execution, for spreadsheets and data frames.

Parameters and metrics get a column each, named `params.NAME` and after the metric. A text that a spreadsheet would run as a
formula gets an apostrophe in front.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from assay.model import Execution, Phase, Report, TrialReport
from assay.plugin.private_files import open_private
from assay.report.cases import outcome_of
from assay.report.side_by_side import pass_mark_of

_FIXED = ("run_id", "trial", "name", "agent", "version", "benchmark", "experiment")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What spreadsheets read as the beginning of a formula, also in full width."""
_EXECUTION = ("case", "process", "phase", "repetition", "status", "started", "loops")


class Csv:
    """Writes `executions.csv`; reads the executions twice rather than keep them."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        path = folder / "executions.csv"
        table = execution_table(report)
        with open_private(path, newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(cell(name) for name in table.columns)
            writer.writerows([cell(value) for value in row] for row in table.rows)
        return [path]


class RunTable(NamedTuple):
    """Every execution of a run as a row of values."""

    columns: Sequence[str]
    rows: Iterator[list[object]]


def execution_table(report: Report) -> RunTable:
    """The executions of a run as rows.

    A first pass finds the columns, and rows are made one by one while they are written.
    """
    metrics = _union(execution.measurements for trial in report.trials for execution in trial.executions)
    of_suite = any(trial.ratings is not None for trial in report.trials)
    if of_suite:  # scores are what a suite is read for
        metrics.sort(key=lambda name: name != "score" and not name.startswith("score."))
    columns = _CsvColumns(_union(trial.stored.trial.params for trial in report.trials), metrics, of_suite)

    def rows() -> Iterator[list[object]]:
        for trial in report.trials:
            head = list(_build_trial_cells(report, trial, columns))
            mark = pass_mark_of(report, trial.stored.trial.benchmark)
            for execution in trial.executions:
                yield [*head, *_build_execution_cells(execution, columns, mark)]

    return RunTable(list(columns.names()), rows())


def cell(value: object) -> object:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front; numbers stay numbers."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return value
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


@dataclass(frozen=True, slots=True)
class _CsvColumns:
    """What the executions of a report have between them."""

    params: Sequence[str]
    metrics: Sequence[str]
    of_suite: bool

    def names(self) -> Iterator[str]:
        yield from _FIXED
        if self.of_suite:
            yield from ("suite", "simulated", "recorded")
        yield from (f"params.{name}" for name in self.params)
        yield from _EXECUTION
        if self.of_suite:
            yield "outcome"
        yield from self.metrics
        yield "error"


def _union(mappings: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))


def _build_trial_cells(report: Report, trial: TrialReport, columns: _CsvColumns) -> Iterator[object]:
    point = trial.stored.trial
    yield from (report.run.id, trial.stored.id, point.name, point.agent.name, point.agent.version)
    yield from (point.benchmark, point.experiment)
    if columns.of_suite:
        yield from (point.suite, trial.is_simulated, trial.is_recorded)
    yield from (point.params.get(name) for name in columns.params)


def _build_execution_cells(execution: Execution, columns: _CsvColumns, mark: float) -> Iterator[object]:
    yield from (execution.case, execution.process, execution.phase.value, execution.repetition)
    yield from (execution.status.value, execution.started, execution.loops)
    if columns.of_suite:
        is_judged = execution.case and execution.phase is Phase.MEASURED
        yield outcome_of(execution, mark) if is_judged else None
    yield from (execution.measurements.get(name) for name in columns.metrics)
    yield execution.error
