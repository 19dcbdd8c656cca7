"""Executions of suites, case by case: read to be resumed and rated, and written when they are judged again.

A trial may have hundreds of thousands of executions, so they are read column by column into arrays, without making an object
of each. Functions here take a connection; `Store` opens it and decides on the transaction.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from sys import intern
from typing import Any

import sqlalchemy as sa

from assay.model import DIMENSIONS, CaseTable, Phase, Ratings
from assay.model.metric import JUDGING
from assay.model.rating import Judging
from assay.model.redaction import redact
from assay.store.bulk import fetch_rows, insert_rows
from assay.store.read import align, columns, read_metrics
from assay.store.standings import write_standing
from assay.store.tables import executions, measurements, trials

_CHUNK = 500
_RATED = ("score", "seconds", "usd", "tokens", "cpu_seconds", "rss_max_bytes", "ttft")

Done = set[tuple[str, str, int]]
"""Phase, case and repetition of what is stored."""

Judgement = tuple[int, Mapping[str, float], Mapping[str, object] | None]
"""An execution's number, its scores by metric, and details to lay over those that it has."""


def read_done(connection: sa.Connection, run_id: str) -> dict[int, Done]:
    """Trial index to what is stored of it, for trials that put an agent through cases, which end in any order.

    A run that is resumed leaves it out.
    """
    of_suite = sa.or_(trials.c.suite != "", trials.c.agent_use.is_not(None))
    query = sa.select(trials.c.position, trials.c.id).where(trials.c.run_id == run_id, of_suite)
    column = executions.c
    done_by_position: dict[int, Done] = {}
    for position, trial_id in connection.execute(query.order_by(trials.c.position)).all():
        stored = sa.select(column.phase, column.case_id, column.repetition).where(column.trial_id == trial_id)
        done_by_position[position] = {
            (phase, case, number) for chunk in fetch_rows(connection, stored) for phase, case, number in chunk
        }
    return done_by_position


def read_case_table(connection: sa.Connection, trial_id: int, further: Iterable[str] = ()) -> CaseTable:
    """The measured executions of a trial as they were stored, with its scores, all metrics that ratings need, and `further` ones."""
    table: tuple[Any, ...] = (array("q"), [], [], [], [])
    for seq, case, repetition, status, process in columns(connection, _query_cases(), trial=trial_id):
        # The driver makes a new text of every status, of which there are few.
        for whole, part in zip(table, (seq, case, repetition, map(intern, status), process), strict=True):
            whole.extend(part)
    seqs, cases, repetitions, statuses, processes = table
    stored = read_metrics(connection, trial_id)
    metrics = dict.fromkeys((*_RATED, *filter(_is_score, stored), *further))
    measured = {
        metric: _read_metric(connection, trial_id, metric, seqs) if metric in stored else [None] * len(seqs)
        for metric in metrics
    }
    return CaseTable(cases, repetitions, statuses, measured, processes)


@cache
def _query_cases() -> sa.Select[Any]:
    column = executions.c
    return (
        sa.select(column.seq, column.case_id, column.repetition, column.status, column.process)
        .where(column.trial_id == sa.bindparam("trial"), column.phase == Phase.MEASURED.value)
        .order_by(column.seq)
    )


@cache
def _query_metric() -> sa.Select[tuple[int, float]]:
    column = measurements.c
    return (
        sa.select(column.seq, column.value)
        .where(column.trial_id == sa.bindparam("trial"), column.metric == sa.bindparam("metric"))
        .order_by(column.seq)
    )


def _is_score(metric: str) -> bool:
    return metric == "score" or metric.startswith("score.")


def read_judging(connection: sa.Connection, trial_id: int) -> Judging | None:
    """What judges used, summed over the executions of every phase; None if no judge was asked.

    A figure that one judged execution lacks is None.
    """
    column = measurements.c
    query = (
        sa.select(column.metric, sa.func.count(), sa.func.sum(column.value))
        .where(column.trial_id == trial_id, column.metric.in_(JUDGING))
        .group_by(column.metric)
    )
    sums = {metric: (number, float(total)) for metric, number, total in connection.execute(query)}
    if JUDGING[0] not in sums:
        return None
    judged, calls = sums[JUDGING[0]]
    tokens, usd = (sums.get(name, (0, 0.0)) for name in JUDGING[1:])
    return Judging(
        int(calls), tokens[1] if tokens[0] == judged else None, usd[1] if usd[0] == judged else None
    )


def _read_metric(
    connection: sa.Connection, trial_id: int, metric: str, seqs: array[int]
) -> Sequence[float | None]:
    """The values of one metric in the order of `seqs`.

    Measurements have the same order, so both are read once and aligned.
    """
    found = columns(connection, _query_metric(), trial=trial_id, metric=metric)
    numbers, values = array("q"), array("d")
    for chunk_seqs, chunk_values in found:
        numbers.extend(chunk_seqs)
        values.extend(chunk_values)
    return align(seqs, numbers, values)


def write_ratings(connection: sa.Connection, trial_id: int, ratings: Ratings) -> None:
    """Store ratings twice: as columns of the trial, for views, and whole, for rankings.

    The update comes first because it locks the row of the trial. Two processes that rate one trial at the same moment, as
    two runs that end together may, then replace its standing one after the other.
    """
    values = {dimension: ratings.dimensions[dimension].value for dimension in DIMENSIONS}
    chosen = trials.update().where(trials.c.id == trial_id)
    connection.execute(
        chosen.values(**values, overall=ratings.overall.value, baseline_overall=ratings.baseline_overall)
    )
    write_standing(connection, trial_id, ratings)


def write_judgements(connection: sa.Connection, trial_id: int, judged: Sequence[Judgement]) -> int:
    """Replace old scores by new ones; returns how many of the executions exist."""
    # What the judges used goes with the scores that they gave, so that the stored cost is that of the stored scores.
    old = [*filter(_is_score, read_metrics(connection, trial_id)), *JUDGING]
    latest = list({judgement[0]: judgement for judgement in judged}.values())
    starts = range(0, len(latest), _CHUNK)
    return sum(_rejudge(connection, trial_id, old, latest[start : start + _CHUNK]) for start in starts)


def _rejudge(connection: sa.Connection, trial_id: int, old: list[str], chunk: Sequence[Judgement]) -> int:
    """Write one chunk: delete the `old` metrics of those executions, insert the new ones, merge the details."""
    chosen = executions.c.trial_id == trial_id, executions.c.seq.in_([seq for seq, _, _ in chunk])
    query = sa.select(executions.c.seq, executions.c.detail).where(*chosen)
    known: dict[int, Mapping[str, object] | None] = {row.seq: row.detail for row in connection.execute(query)}
    column = measurements.c
    connection.execute(
        measurements.delete().where(
            column.trial_id == trial_id, column.metric.in_(old), column.seq.in_(known)
        )
    )
    stored = [judgement for judgement in chunk if judgement[0] in known]
    scored = [
        (trial_id, metric, seq, float(value)) for seq, scores, _ in stored for metric, value in scores.items()
    ]
    insert_rows(connection, measurements, scored)
    _merge_details(connection, trial_id, known, stored)
    return len(stored)


def _merge_details(
    connection: sa.Connection,
    trial_id: int,
    known: Mapping[int, Mapping[str, object] | None],
    judged: Iterable[Judgement],
) -> None:
    """Lay new details, such as the reasons of a score, over those that an execution has; what was there beside them stays."""
    merged = [
        {"number": seq, "merged": redact({**(known[seq] or {}), **detail})}
        for seq, _, detail in judged
        if detail is not None
    ]
    if not merged:
        return
    chosen = executions.c.trial_id == trial_id, executions.c.seq == sa.bindparam("number")
    detail = sa.bindparam("merged", type_=executions.c.detail.type)
    connection.execute(executions.update().where(*chosen).values(detail=detail), merged)
