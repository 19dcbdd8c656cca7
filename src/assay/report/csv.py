"""One row an execution, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from assay.model import Execution, Report, TrialReport

_FIXED = ("run_id", "trial", "name", "agent", "version", "benchmark", "experiment")
_EXECUTION = ("case", "process", "phase", "repetition", "status", "started", "loops")


class Csv:
    """Writes `executions.csv`; reads the executions twice rather than keep them."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        path = folder / "executions.csv"
        params = _union(trial.stored.trial.params for trial in report.trials)
        metrics = _union(execution.measurements for trial in report.trials for execution in trial.executions)
        with path.open("w", encoding="utf-8", newline="") as stream:
            table = csv.writer(stream)
            table.writerow(cell(name) for name in _header(params, metrics))
            table.writerows(_rows(report, params, metrics))
        return [path]


def cell(value: object) -> object:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front; numbers stay numbers."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, int | float):
        return value
    text = str(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _header(params: Sequence[str], metrics: Sequence[str]) -> list[str]:
    return [*_FIXED, *(f"params.{name}" for name in params), *_EXECUTION, *metrics, "error"]


def _union(mappings: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))


def _rows(report: Report, params: Sequence[str], metrics: Sequence[str]) -> Iterator[list[object]]:
    for trial in report.trials:
        head = [cell(value) for value in _fixed(report, trial, params)]
        for execution in trial.executions:
            yield [*head, *(cell(value) for value in _measured(execution, metrics))]


def _fixed(report: Report, trial: TrialReport, params: Sequence[str]) -> Iterator[object]:
    point = trial.stored.trial
    yield from (report.run.id, trial.stored.id, point.name, point.agent.name, point.agent.version)
    yield from (point.benchmark, point.experiment)
    yield from (point.params.get(name) for name in params)


def _measured(execution: Execution, metrics: Sequence[str]) -> Iterator[object]:
    yield from (execution.case, execution.process, execution.phase.value, execution.repetition)
    yield from (execution.status.value, execution.started, execution.loops)
    yield from (execution.measurements.get(name) for name in metrics)
    yield execution.error
