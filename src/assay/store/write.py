"""Writes runs and batches of results into rows.

Everything that an agent or an experiment can influence is cleaned on the way: secrets are redacted, and characters that a
database refuses are replaced. A batch is written in one transaction, which `Store` begins with the renewal of the run's lease.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from assay.model import (
    AgentVersion,
    Batch,
    Environment,
    Execution,
    Placement,
    Plan,
    Question,
    RunState,
    Trial,
)
from assay.model.codec import to_plain
from assay.model.execution import JobUsage
from assay.model.redaction import redact
from assay.store import column_values as plain
from assay.store import registry, rows
from assay.store.bulk import insert_rows
from assay.store.tables import (
    agents,
    artifacts,
    environments,
    executions,
    measurements,
    runs,
    tags,
    trials,
)
from assay.store.totals import delete_totals
from assay.store.workspaces import workspace_of

_PLACE = sa.text(
    "INSERT INTO placements (trial_id, process, node) VALUES (:trial_id, :process, :node) "
    "ON CONFLICT (trial_id, process) DO UPDATE SET node = excluded.node"
)
Group = tuple[int, int, str, str]
"""Trial id, process, phase and case: what has repetitions."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What the writer of a run knows: the ids of its trials by their index in the plan, and the number (`seq`) of the next
    execution by trial id. As only one process writes a run, the numbers need not be read from the database."""

    ids: Mapping[int, int]
    next_seq: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From the start of the first execution to the end of the last, in seconds since the epoch."""

    first: float
    last: float


def write_environment(connection: sa.Connection, run_id: str, environment: Environment) -> None:
    own = sa.select(runs.c.environment_id).where(runs.c.id == run_id).scalar_subquery()
    connection.execute(
        environments.update().where(environments.c.id == own).values(_build_environment_row(environment))
    )


def _build_environment_row(environment: Environment) -> dict[str, object]:
    return {"facts": environment.facts, "vcs": environment.vcs, "doubts": environment.doubts}


def insert_run(
    connection: sa.Connection, plan: Plan, environment: Environment, begun: Mapping[str, Any]
) -> None:
    """Insert a run that begins, with its trials; `begun` has its id, when it started and which process executes it."""
    key = connection.execute(
        environments.insert().values(_build_environment_row(environment))
    ).inserted_primary_key
    assert key is not None
    place = {
        "workspace_id": workspace_of(connection),
        "suite_id": plan.suite and registry.keep_suite(connection, plan.suite, begun["started"]),
        "environment_id": key[0],
        "state": RunState.RUNNING.value,
    }
    connection.execute(runs.insert().values(**rows.plan_row(plan), **place, **begun))
    add_tags(connection, str(begun["id"]), plan.tags)
    if plan.trials:
        connection.execute(trials.insert(), _trial_rows(connection, plan, str(begun["id"])))


def _trial_rows(connection: sa.Connection, plan: Plan, run_id: str) -> list[dict[str, Any]]:
    known = registry.agent_ids(connection, {trial.agent for trial in plan.trials})
    hashes = {benchmark.id: benchmark.hash for benchmark in plan.suite.benchmarks} if plan.suite else {}
    return [
        rows.trial_row(trial, run_id, known[trial.agent], hashes.get(trial.benchmark, ""))
        for trial in plan.trials
    ]


def point_to_version(connection: sa.Connection, run_id: str, trial: int, version: str) -> None:
    """Set the version of a trial's agent, which may be known only once the agent is open."""
    chosen = trials.c.run_id == run_id, trials.c.position == trial
    name: str = connection.scalars(sa.select(agents.c.name).join(trials).where(*chosen)).one()
    agent = AgentVersion(name, plain.redact_text(version))
    agent_id = registry.agent_ids(connection, {agent})[agent]
    connection.execute(trials.update().where(*chosen).values(agent_id=agent_id))


def add_tags(connection: sa.Connection, run_id: str, added: Iterable[str]) -> None:
    if values := [{"run_id": run_id, "tag": tag} for tag in sorted(set(map(plain.redact_text, added)))]:
        connection.execute(tags.insert(), values)


def write_executions(
    connection: sa.Connection, new_executions: Iterable[Execution], ledger: Ledger
) -> Ledger:
    """Insert executions with their measurements; returns the ledger that is valid once the transaction is committed."""
    next_seq = dict(ledger.next_seq)
    execution_rows, measurement_rows = _rows(new_executions, ledger.ids, next_seq)
    insert_rows(connection, executions, execution_rows)
    insert_rows(connection, measurements, measurement_rows)
    return Ledger(ledger.ids, next_seq)


def _rows(
    new_executions: Iterable[Execution], ids: Mapping[int, int], next_seq: dict[int, int]
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The rows of both tables, in the order of their columns; counts `next_seq` on.

    This is the hottest loop of the store: it runs once for each execution. It therefore makes tuples for the driver instead
    of mappings for SQLAlchemy, reads the values of enumerations without their property, and checks each name of a metric for
    secrets only the first time that it occurs in a batch.
    """
    execution_rows: list[tuple[Any, ...]] = []
    measurement_rows: list[tuple[Any, ...]] = []
    clean: set[str] = set()
    """Names of metrics that hold no secret: an agent may name a metric after one."""
    for execution in new_executions:
        trial_id = ids[execution.trial]
        seq = next_seq[trial_id]
        next_seq[trial_id] = seq + 1
        execution_rows.append(
            (
                trial_id,
                seq,
                execution.process,
                execution.phase._value_,
                plain.text(execution.case) if execution.case else "",
                execution.repetition,
                execution.status._value_,
                execution.started,
                execution.loops,
                None if execution.output is None else plain.redact_json(execution.output),
                None if execution.applied is None else plain.redact_json(execution.applied),
                None if execution.error is None else plain.redact_text(execution.error),
                None if execution.log is None else plain.redact_text(execution.log),
                None if execution.detail is None else plain.redact_json(execution.detail),
            )
        )
        measured = execution.measurements
        if not clean.issuperset(measured):
            names = dict.fromkeys(measured)
            if (redacted := redact(names)) is names:
                clean.update(names)
            else:
                measured = dict(zip(redacted, measured.values(), strict=True))
        for metric, value in measured.items():
            measurement_rows.append((trial_id, metric, seq, float(value)))
    return execution_rows, measurement_rows


def missing(
    connection: sa.Connection, new_executions: Iterable[Execution], ids: Mapping[int, int]
) -> tuple[Execution, ...]:
    """Select the executions that are not stored yet, each once: results from a file may be stored in part already."""
    # One query a group, for its range of repetitions: one an execution would take minutes where a whole file is stored.
    groups: defaultdict[Group, dict[int, Execution]] = defaultdict(dict)
    for execution in new_executions:
        group = ids[execution.trial], execution.process, execution.phase.value, plain.text(execution.case)
        groups[group].setdefault(execution.repetition, execution)
    for group, wanted in groups.items():
        for stored in _find_stored_repetitions(connection, group, min(wanted), max(wanted)):
            wanted.pop(stored, None)
    return tuple(execution for wanted in groups.values() for execution in wanted.values())


def _find_stored_repetitions(connection: sa.Connection, group: Group, low: int, high: int) -> Iterable[int]:
    """Which repetitions of a group are stored, within a range; the unique key of the table answers it."""
    trial_id, process, phase, case = group
    column = executions.c
    return connection.scalars(
        sa.select(column.repetition).where(
            column.trial_id == trial_id,
            column.process == process,
            column.phase == phase,
            column.case_id == case,
            column.repetition.between(low, high),
        )
    )


def write_ruling(
    connection: sa.Connection, run_id: str, question: Question, made: Mapping[int, Trial]
) -> None:
    """Store how the question of a run was decided, and the trials as if they had been planned only as far as they went."""
    connection.execute(runs.update().where(runs.c.id == run_id).values(question=to_plain(question)))
    for index, trial in made.items():
        chosen = trials.c.run_id == run_id, trials.c.position == index
        planned = {"processes": trial.processes, "cases": trial.cases}
        connection.execute(trials.update().where(*chosen).values(planned))


def write_rest(connection: sa.Connection, run_id: str, batch: Batch, ids: Mapping[int, int]) -> None:
    """Write all of a batch but its executions and measurements, and what follows from them for their trials."""
    if batch.artifacts:
        made = [rows.artifact_row(artifact, ids[artifact.trial]) for artifact in batch.artifacts]
        connection.execute(artifacts.insert(), made)
    if batch.executions:
        delete_totals(connection, {ids[made.trial] for made in batch.executions})
    for trial, reason in batch.stopped.items():
        stop = trials.update().where(trials.c.id == ids[trial])
        connection.execute(stop.values(stopped=plain.text(reason)))
    if batch.costs or batch.unmeasured:
        _note_instruments(connection, run_id, batch)
    for trial, used in batch.usage.items():
        _add_usage(connection, ids[trial], used)
    for trial, version in batch.versions.items():
        point_to_version(connection, run_id, trial, version)
    if batch.placements:
        _write_placements(connection, batch.placements, ids)
    if batch.nodes:
        _add_nodes(connection, run_id, batch.nodes)
    simulated = {ids[e.trial] for e in batch.executions if e.detail is not None and e.detail.get("simulated")}
    if simulated:
        marked = trials.c.id.in_(simulated), sa.not_(trials.c.simulated)
        connection.execute(trials.update().where(*marked).values(simulated=True))
    _stretch_spans(connection, batch.executions, ids)


def _add_usage(connection: sa.Connection, trial_id: int, used: JobUsage) -> None:
    """Add what a job used to what its trial used before: times add up, and of peaks the highest counts.

    The database adds, since the jobs of a trial arrive in several batches. NULL means that nothing was ever measured, which
    is not the same as 0.
    """
    column = trials.c
    values: dict[str, Any] = {}
    if used.wall_seconds:
        values["cpu_seconds"] = sa.func.coalesce(column.cpu_seconds, 0.0) + used.cpu_seconds
        values["cpu_wall_seconds"] = sa.func.coalesce(column.cpu_wall_seconds, 0.0) + used.wall_seconds
    if (peak := used.peak_bytes) is not None:
        is_lower = sa.or_(column.peak_bytes.is_(None), column.peak_bytes < peak)
        values["peak_bytes"] = sa.case((is_lower, peak), else_=column.peak_bytes)
    if values:
        connection.execute(trials.update().where(column.id == trial_id).values(values))


def _write_placements(connection: sa.Connection, placed: Iterable[Placement], ids: Mapping[int, int]) -> None:
    """Write the node of each process; the last one counts, because a job that moves is sent again."""
    values = [
        {
            "trial_id": ids[placement.trial],
            "process": placement.process,
            "node": plain.redact_text(placement.node),
        }
        for placement in placed
    ]
    connection.execute(_PLACE, values)


def _add_nodes(connection: sa.Connection, run_id: str, nodes: Mapping[str, Mapping[str, object]]) -> None:
    """Add nodes to the facts of the run's environment; one that is known keeps what was recorded when it joined, and gets new doubts."""
    query = sa.select(environments.c.id, environments.c.facts).join(runs).where(runs.c.id == run_id)
    key, facts = connection.execute(query).one()
    known = facts.get("nodes", {})
    merged = {name: _add_doubts(known[name], node) if name in known else node for name, node in nodes.items()}
    joined = {**facts, "nodes": {**known, **merged}}
    connection.execute(environments.update().where(environments.c.id == key).values(facts=joined))


def _add_doubts(known: Mapping[str, object], node: Mapping[str, Any]) -> Mapping[str, object]:
    doubts: Any = known.get("doubts") or ()
    return {**known, "doubts": list(dict.fromkeys((*doubts, *(node.get("doubts") or ()))))}


def _note_instruments(connection: sa.Connection, run_id: str, batch: Batch) -> None:
    """Merge what the batch says about instruments into the run; read and written in the owner's transaction, so nothing is lost."""
    chosen = runs.c.id == run_id
    known = connection.execute(sa.select(runs.c.instrument_costs, runs.c.unmeasured).where(chosen)).one()
    connection.execute(
        runs.update()
        .where(chosen)
        .values(
            instrument_costs={**known.instrument_costs, **batch.costs},
            unmeasured={**known.unmeasured, **batch.unmeasured},
        )
    )


def _stretch_spans(
    connection: sa.Connection, new_executions: Iterable[Execution], ids: Mapping[int, int]
) -> None:
    """Extend start and end of the trials to include these executions."""
    column = trials.c
    spans = [
        {"trial": ids[trial], "first": plain.instant(span.first), "last": plain.instant(span.last)}
        for trial, span in _spans(new_executions).items()
    ]
    if not spans:
        return
    first, last = (
        sa.bindparam("first", type_=column.started.type),
        sa.bindparam("last", type_=column.ended.type),
    )
    earlier = sa.or_(column.started.is_(None), column.started > first)
    later = sa.or_(column.ended.is_(None), column.ended < last)
    connection.execute(
        trials.update()
        .where(column.id == sa.bindparam("trial"))
        .values(
            started=sa.case((earlier, first), else_=column.started),
            ended=sa.case((later, last), else_=column.ended),
        ),
        spans,
    )


def _spans(new_executions: Iterable[Execution]) -> dict[int, TimeRange]:
    """The time range of each trial. `seconds` is the time of one call, so an execution lasts that long for each of its loops."""
    firsts: dict[int, float] = {}
    lasts: dict[int, float] = {}
    for execution in new_executions:
        trial, start = execution.trial, execution.started
        end = start + execution.measurements.get("seconds", 0.0) * execution.loops
        if start < firsts.get(trial, start + 1):
            firsts[trial] = start
        if end > lasts.get(trial, end - 1):
            lasts[trial] = end
    return {trial: TimeRange(firsts[trial], lasts[trial]) for trial in firsts}
