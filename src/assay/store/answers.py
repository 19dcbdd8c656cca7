"""Answers to some cases of a trial with their scores: read for people, who look at a few of them at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from assay.model import Phase, Status
from assay.model.scored_answer import ScoredAnswer
from assay.store.read import read_metrics
from assay.store.tables import executions, labels, measurements

_SECONDS = "seconds"


def read_answers(
    connection: sa.Connection, trial_id: int, cases: Collection[str], most: int = 5
) -> dict[str, list[ScoredAnswer]]:
    """Case to its measured executions with their scores, in the order of storing, at most so many of each."""
    column = executions.c
    query = (
        sa.select(
            column.seq, column.case_id, column.repetition, column.status, column.output, column.error, column.detail
        )
        .where(column.trial_id == trial_id, column.phase == Phase.MEASURED.value, column.case_id.in_(cases))
        .where(column.repetition < most)
        .order_by(column.seq)
    )  # fmt: skip
    rows = connection.execute(query).all()
    scores = read_scores(connection, trial_id, [row.seq for row in rows], with_seconds=True)
    found: dict[str, list[ScoredAnswer]] = {}
    for row in rows:
        measured = dict(scores.get(row.seq, {}))
        seconds = measured.pop(_SECONDS, None)
        answer = ScoredAnswer(
            trial_id, row.seq, row.case_id, row.repetition, Status(row.status), row.output, row.error, row.detail,
            measured, seconds,
        )  # fmt: skip
        found.setdefault(row.case_id, []).append(answer)
    return found


def read_scores(
    connection: sa.Connection, trial_id: int, seqs: Sequence[int], *, with_seconds: bool = False
) -> Mapping[int, Mapping[str, float]]:
    """Execution to its scores by metric."""
    metrics = [
        name for name in read_metrics(connection, trial_id) if name == "score" or name.startswith("score.")
    ]
    if with_seconds:
        metrics.append(_SECONDS)
    found: defaultdict[int, dict[str, float]] = defaultdict(dict)
    column = measurements.c
    query = sa.select(column.seq, column.metric, column.value).where(
        column.trial_id == trial_id, column.metric.in_(metrics), column.seq.in_(seqs)
    )
    for seq, metric, value in connection.execute(query) if seqs else ():
        found[seq][metric] = value
    return found


def read_judged(
    connection: sa.Connection, trial_id: int, most: int
) -> list[tuple[int, str, Mapping[str, float]]]:
    """Number, case and scores of the first ok measured executions of a trial, without their outputs."""
    column = executions.c
    query = (
        sa.select(column.seq, column.case_id)
        .where(column.trial_id == trial_id, column.phase == Phase.MEASURED.value)
        .where(column.status == Status.OK.value)
        .order_by(column.seq)
        .limit(most)
    )
    rows = connection.execute(query).all()
    scores = read_scores(connection, trial_id, [row.seq for row in rows])
    return [(row.seq, row.case_id, scores[row.seq]) for row in rows if row.seq in scores]


def read_labelled(connection: sa.Connection, trial_ids: Collection[int]) -> set[tuple[int, int]]:
    """Trial and number of every execution of these trials that somebody labelled."""
    query = sa.select(labels.c.trial_id, labels.c.seq).where(labels.c.trial_id.in_(trial_ids)).distinct()
    return {(trial_id, seq) for trial_id, seq in connection.execute(query)}
