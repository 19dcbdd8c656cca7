"""Labels of people on executions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import sqlalchemy as sa

from assay.errors import LookupFailed
from assay.model.codec import from_plain
from assay.model.label import Label, LabelledScore, LabelVerdict
from assay.model.rating import is_pass
from assay.model.suite import PASS_MARK
from assay.store.read import IS_OK_MEASURED
from assay.store.tables import executions, labels, measurements, runs, suites, trials
from assay.store.workspaces import is_own, workspace_of

_COLUMNS = {name: labels.c["case_id" if name == "case" else name] for name in Label.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class LabelFilter:
    """Which labels to read; what is None does not narrow it."""

    trial: int | None = None
    run: str | None = None
    suite: str | None = None
    benchmark: str | None = None
    case: str | None = None
    author: str | None = None


def find_executions(connection: sa.Connection, trial: int, case: str, seq: int | None) -> list[int]:
    """The numbers of the measured executions of a case that have an answer; LookupFailed if there are none."""
    query = (
        sa.select(executions.c.seq)
        .join(trials, trials.c.id == executions.c.trial_id)
        .join(runs, runs.c.id == trials.c.run_id)
        .where(
            is_own(connection, runs),
            trials.c.id == trial,
            executions.c.case_id == case,
        )
        .where(*IS_OK_MEASURED)
        .order_by(executions.c.seq)
    )
    if seq is not None:
        query = query.where(executions.c.seq == seq)
    found = list(connection.scalars(query))
    if not found:
        which = "" if seq is None else f" with the number {seq}"
        raise LookupFailed(f"Trial {trial} has no answer to the case '{case}'{which} that could be labelled.")
    return found


def write_labels(connection: sa.Connection, given: Iterable[Label]) -> list[Label]:
    """Store labels, and return them with their ids; each replaces what its author said of the same execution before."""
    stored = []
    for label in given:
        chosen = (
            labels.c.trial_id == label.trial_id,
            labels.c.seq == label.seq,
            labels.c.author == label.author,
        )
        connection.execute(labels.delete().where(*chosen))
        row = {column.name: getattr(label, name) for name, column in _COLUMNS.items() if name != "id"}
        row |= {"workspace_id": workspace_of(connection), "verdict": label.verdict.value}
        primary_key = connection.execute(labels.insert(), row).inserted_primary_key
        assert primary_key is not None
        stored.append(replace(label, id=int(primary_key[0])))
    return stored


def read_labels(
    connection: sa.Connection, chosen: LabelFilter, before: int | None = None, limit: int = 100
) -> list[Label]:
    """Return the newest first; with `before`, only those with a smaller id."""
    columns = [column.label(name) for name, column in _COLUMNS.items()]
    query = (
        sa.select(*columns)
        .join(trials, trials.c.id == labels.c.trial_id)
        .where(*_build_conditions(connection, chosen))
    )
    if before is not None:
        query = query.where(labels.c.id < before)
    rows = connection.execute(query.order_by(labels.c.id.desc()).limit(limit)).mappings()
    return [from_plain(Label, dict(row)) for row in rows]


def read_labelled_scores(connection: sa.Connection, chosen: LabelFilter) -> list[LabelledScore]:
    """Every label beside the score of each scorer for the same execution, by the pass mark of its benchmark."""
    query = (
        sa.select(
            trials.c.suite,
            trials.c.benchmark,
            labels.c.trial_id,
            labels.c.case_id,
            labels.c.verdict,
            measurements.c.metric,
            measurements.c.value,
            runs.c.suite_id,
        )
        .join(trials, trials.c.id == labels.c.trial_id)
        .join(
            measurements,
            sa.and_(measurements.c.trial_id == labels.c.trial_id, measurements.c.seq == labels.c.seq),
        )
        .join(runs, runs.c.id == trials.c.run_id)
        .where(*_build_conditions(connection, chosen))
        .where(sa.or_(measurements.c.metric == "score", measurements.c.metric.startswith("score.")))
    )
    found = connection.execute(query).all()
    marks = _read_pass_marks(connection, {row.suite_id for row in found})
    return [
        LabelledScore(
            row.suite,
            row.benchmark,
            row.metric.removeprefix("score").removeprefix("."),
            row.trial_id,
            row.case_id,
            row.verdict == LabelVerdict.PASS.value,
            is_pass(row.value, marks.get((row.suite_id, row.benchmark), PASS_MARK)),
        )
        for row in found
    ]


def _read_pass_marks(connection: sa.Connection, suite_ids: set[int]) -> dict[tuple[int, str], float]:
    """The pass mark of each benchmark, in each definition that its labelled trials were made with."""
    query = sa.select(suites.c.id, suites.c.definition).where(suites.c.id.in_(suite_ids))
    return {
        (suite_id, benchmark["id"]): benchmark["rubric"]["pass_mark"]
        for suite_id, definition in connection.execute(query)
        for benchmark in definition["benchmarks"]
    }


def _build_conditions(connection: sa.Connection, chosen: LabelFilter) -> list[sa.ColumnElement[bool]]:
    wanted = (
        (labels.c.trial_id, chosen.trial),
        (trials.c.run_id, chosen.run),
        (trials.c.suite, chosen.suite),
        (trials.c.benchmark, chosen.benchmark),
        (labels.c.case_id, chosen.case),
        (labels.c.author, chosen.author),
    )
    return [
        is_own(connection, labels),
        *(column == value for column, value in wanted if value is not None),
    ]
