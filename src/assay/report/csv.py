"""One row an execution, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from assay.model import Execution, Phase, Report, TrialReport
from assay.report.cases import outcome_of
from assay.report.contests import is_simulated, pass_mark_of

_FIXED = ("run_id", "trial", "name", "agent", "version", "benchmark", "experiment")
_EXECUTION = ("case", "process", "phase", "repetition", "status", "started", "loops")
_SUITE = ("suite", "simulated")


class Csv:
    """Writes `executions.csv`; reads the executions twice rather than keep them."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        path = folder / "executions.csv"
        params = _union(trial.stored.trial.params for trial in report.trials)
        metrics = _union(execution.measurements for trial in report.trials for execution in trial.executions)
        of_suite = any(trial.ratings is not None for trial in report.trials)
        if of_suite:
            metrics.sort(key=lambda name: name != "score" and not name.startswith("score."))
        with path.open("w", encoding="utf-8", newline="") as stream:
            table = csv.writer(stream)
            table.writerow(cell(name) for name in _header(params, metrics, of_suite))
            table.writerows(_rows(report, params, metrics, of_suite))
        return [path]


def cell(value: object) -> object:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front; numbers stay numbers."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, int | float):
        return value
    text = str(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _header(params: Sequence[str], metrics: Sequence[str], of_suite: bool) -> list[str]:
    fixed = (*_FIXED, *_SUITE) if of_suite else _FIXED
    done = (*_EXECUTION, "outcome") if of_suite else _EXECUTION
    return [*fixed, *(f"params.{name}" for name in params), *done, *metrics, "error"]


def _union(mappings: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))


def _rows(
    report: Report, params: Sequence[str], metrics: Sequence[str], of_suite: bool
) -> Iterator[list[object]]:
    for trial in report.trials:
        head = [cell(value) for value in _fixed(report, trial, params, of_suite)]
        mark = pass_mark_of(report, trial.stored.trial.benchmark) if of_suite else None
        for execution in trial.executions:
            yield [*head, *(cell(value) for value in _measured(execution, metrics, mark))]


def _fixed(report: Report, trial: TrialReport, params: Sequence[str], of_suite: bool) -> Iterator[object]:
    point = trial.stored.trial
    yield from (report.run.id, trial.stored.id, point.name, point.agent.name, point.agent.version)
    yield from (point.benchmark, point.experiment)
    if of_suite:
        yield from (point.suite, str(is_simulated(trial)).lower())
    yield from (point.params.get(name) for name in params)


def _measured(execution: Execution, metrics: Sequence[str], mark: float | None) -> Iterator[object]:
    yield from (execution.case, execution.process, execution.phase.value, execution.repetition)
    yield from (execution.status.value, execution.started, execution.loops)
    if mark is not None:
        is_judged = execution.case and execution.phase is Phase.MEASURED
        yield outcome_of(execution, mark) if is_judged else None
    yield from (execution.measurements.get(name) for name in metrics)
    yield execution.error
