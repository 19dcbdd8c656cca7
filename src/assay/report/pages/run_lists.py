"""Runs, trials and executions as the tables that lists show: what is stored of each, without any analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from assay.model import DIMENSIONS, Execution, Phase, Rating, Ratings, Run, RunState, Status, StoredTrial
from assay.model.page import Cell, Table
from assay.report.cases import explain_execution
from assay.report.cases import outcome_of as outcome_of_execution
from assay.report.console.run import ListedRun
from assay.report.figures import NOTHING
from assay.report.findings import outcome
from assay.report.side_by_side import OUTCOMES, as_text, usd_text
from assay.units import count, seconds, significant, usd

_TEXT = 160
OUTCOME_TONES = {"pass": "good", "fail": "bad", "agent_error": "bad", "limit": "bad", "harness_error": "warn"}


def runs_table(runs: Sequence[ListedRun]) -> Table:
    """The newest first, as the store lists them."""
    return Table(
        ["Run", "Outcome", "Started", "Took", "Trials", "Executions", "Tags"],
        [
            [
                Cell(run.name, ref=f"runs/{run.id}", note=" · ".join(filter(None, (run.id, run.label)))),
                _outcome(run),
                Cell(f"{run.started:%Y-%m-%d %H:%M}"),
                _build_figure_cell((run.ended - run.started).total_seconds() if run.ended else None, seconds),
                _build_figure_cell(run.trials, count),
                _build_figure_cell(run.executions, count),
                Cell(", ".join(run.tags) or NOTHING, tone="quiet"),
            ]
            for run in runs
        ],
        words=(1, 2, 6),
    )


def _build_figure_cell(value: float | None, format_value: Callable[[float], str]) -> Cell:
    """A figure that sorts by its value; what is unknown comes first."""
    return Cell(NOTHING, sort=-1.0) if value is None else Cell(format_value(value), sort=value)


def _outcome(run: ListedRun) -> Cell:
    found = outcome(RunState(run.state), run.verdicts)
    return Cell(found.text, tone=found.tone)


def trials_table(
    run: Run, statuses: Mapping[int, Mapping[str, int]], ratings: Mapping[int, Ratings]
) -> Table:
    """The trials of a run with what is stored of them; ratings are shown if any trial has them."""
    names = ("overall", *DIMENSIONS) if ratings else ()
    rows = []
    for stored in run.trials:
        rated = ratings.get(stored.id)
        found = [
            rating_cell(
                None if rated is None else rated.overall if name == "overall" else rated.dimensions[name]
            )
            for name in names
        ]
        rows.append(
            [
                Cell(stored.trial.name, ref=f"runs/{run.id}/trials/{stored.id}", note=stored.cut_short or ""),
                *found,
                ok_cell(statuses.get(stored.id, {})),
                *([Cell(usd_text(rated) if rated else NOTHING)] if names else []),
            ]
        )
    titles = ["Trial", *(name.capitalize() for name in names), "Executions ok"]
    return Table([*titles, *(["Cost per solved case"] if names else [])], rows)


def rating_cell(rating: Rating | None) -> Cell:
    if rating is None or rating.value is None:
        return Cell(NOTHING, tone="quiet")
    return Cell("", rating)


def ok_cell(statuses: Mapping[str, int]) -> Cell:
    executed, ok = sum(statuses.values()), statuses.get(Status.OK.value, 0)
    tone = "" if ok == executed else "bad" if not ok else "warn"
    return Cell(f"{count(ok)} of {count(executed)}", tone=tone)


def executions_table(
    stored: StoredTrial, executions: Sequence[tuple[int, Execution]], pass_mark: float | None
) -> Table:
    """Executions in the order of storing; `pass_mark` is None where nothing is scored."""
    titles = [
        "Execution", "Case", "Phase", "Repetition", "Outcome", "Score", "Time", "Tokens", "Cost", "Answer or reason",
    ]  # fmt: skip
    return Table(
        titles,
        [_execution_row(stored, seq, execution, pass_mark) for seq, execution in executions],
        words=(1, 2, 4, 9),
    )


def _execution_row(
    stored: StoredTrial, seq: int, execution: Execution, pass_mark: float | None
) -> list[Cell]:
    measured = execution.measurements
    detail = (
        explain_execution(execution)
        if execution.status is not Status.OK
        else as_text(execution.output, _TEXT)
    )
    return [
        Cell(f"#{seq}", ref=f"trials/{stored.id}/executions/{seq}", sort=seq),
        Cell(execution.case or NOTHING),
        Cell(execution.phase.value, tone="quiet" if execution.phase is Phase.MEASURED else ""),
        Cell(count(execution.repetition), sort=execution.repetition),
        outcome_cell(execution, pass_mark),
        _build_figure_cell(measured.get("score"), significant),
        _build_figure_cell(measured.get("seconds"), seconds),
        _build_figure_cell(measured.get("tokens"), count),
        _build_figure_cell(measured.get("usd"), usd),
        Cell(detail[:_TEXT], is_output=bool(detail)),
    ]


def outcome_cell(execution: Execution, pass_mark: float | None) -> Cell:
    """Whether it passed or, where nothing is scored, how it ended."""
    if execution.status is Status.OK and (pass_mark is None or "score" not in execution.measurements):
        return Cell("ok", tone="good")
    found = outcome_of_execution(execution, pass_mark or 0.0)
    if execution.status is not Status.OK:
        return Cell(execution.status.value.replace("_", " "), tone=OUTCOME_TONES.get(found, "warn"))
    return Cell(OUTCOMES.get(found, found), tone=OUTCOME_TONES.get(found, ""))
