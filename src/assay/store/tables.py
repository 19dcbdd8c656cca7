"""The schema, one for SQLite and PostgreSQL; private to the store.

    workspaces ─┬─ agents ──────────┐
                ├─ suites ─┬─ benchmarks
                └──────── runs ── trials ─┬─ executions
    environments ─────────┘ │             ├─ measurements
        tags, baselines, leases           ├─ artifacts, placements
                                          └─ ratings
    workspaces ─ regressions, regression_changes, gate_results, opportunities, labels
               ─ queued_runs, schedules, scheduled_runs, alerts, api_keys ─ sessions, audit_log

workspaces      whose things these are; `default` is always there, and `assay workspace create` makes more
agents          what was tested: a name and a version, once in a workspace; `definition` says how to make it where it is
                registered: of each name at most one version is
suites          benchmarks that are run and ranked together: name, version, category, and the whole definition with its cases,
                so that a run can be resumed and scored again from the database alone. `hash` says which results may be compared;
                `digest` tells apart definitions that differ elsewhere, say in a rubric. Of each name at most one is registered
environments    the recorded facts of a machine and its software, one row a run
runs            one carrying-out of a plan, with what holds for all of its trials: its suite, its budget, the question that ends
                it and how that was decided; `owner` names the process that wrote it last
leases          which process may write a run, and until when, in seconds since the epoch by the clock of the database; `token` is
                known to that process only, `batches` counts what was stored of the run
tags            labels of runs; a set, so they have no order
baselines       runs that were given a name to compare with
trials          one point of a run: everything needed to rebuild `model.Trial`, the hash of its benchmark, when its first execution
                began and its last one ended, why it stopped early, whether any of its figures are simulated, and its ratings
                from 0 to 1 (empty until something rates it); the CPU time of its measured executions with their wall time,
                and the peak memory of its processes, where they can be measured; and the overall rating that the suite's
                `baseline_scores` compare it with
executions      one time that the agent did a case, keyed by (trial_id, seq); `seq` counts a trial's executions in the order
                in which they were stored. The work itself, (trial_id, process, phase, case_id, repetition), is unique.
                `detail` is what an agent's figures rest on: tool calls, spans, reasons of scores
measurements    a metric's value in one execution, keyed by (trial_id, metric, seq): a metric of a trial is one range scan
artifacts       files that executions left, compressed with zlib
placements      the node that executed each process of a trial; empty where an executor has no nodes. A process that moved in
                the middle has the names of all of its nodes, joined by ` + `
regressions     what got worse with an agent, on which benchmark, by which metric and between which versions: that is its id. It is
                kept with the state and the note that somebody gave it, and with its figures when it was last found
benchmarks      what a suite consists of, in its order: the hash of each definition and the number of its cases, so that
                whole definitions need not be read to see which results are complete and of today's questions
ratings         what a ranking needs of a trial that was rated: who contends (an agent, or a point of a sweep over its
                options), on what, how much of it was done, and from the ratings everything that is not a column of `trials`.
                `marks` are what each case says of each rated dimension, one float32 a case, dimension by dimension as
                `dimensions` names them, and after these what each case cost and came to; `case_names` are the cases,
                compressed; `digest` is the same where they are.
                `baseline` is empty: up to revision 0006 it was the run that references were taken from. Trials that were
                rated by an older version have neither marks nor a summary until `assay db upgrade` has rated them again
rating_references  what ratings are relative to where a rubric gives no reference: a quantity of a run, for one definition of a
                benchmark (its hash) and for simulated agents apart from measured ones. `run_id` is no foreign key, because
                a reference stays when its run is deleted; it goes with the last stored definition of the benchmark
trial_totals    what the executions of a trial add up to, kept when its run ends so that lists need not read them; gone as soon as
                there is another execution or score. The view `live_trial_totals` works it out from the executions
suite_changes   counts everything that may change the rankings of a suite, in the transaction that changes it
boards          the leaderboard of a suite as the server answers it; where `suite` is empty, across the suites of a category, or of
                all. Made when `changes` (of several suites, their sum) was that number; wrong from `expires` on, when a result gets old
queued_runs     runs that the server was asked for, each under the id that its run gets; `owner` is the server that has it carried
                out, and `renewed` when that server last said so, in seconds since the epoch by the clock of the database
schedules       when each suite with a schedule is due next, and by which expression that was computed; a server that starts
                its runs moves `due` on in the same transaction, so that each time is taken once
scheduled_runs  what was started for a time of a schedule, and how it ended; empty `outcome` while it is in progress
alerts          what the server has to tell, each thing once by its `key`; those that are `pending` are sent when `due`
labels          what people said of answers, one label of a person an execution
regression_changes  the states that people gave to regressions, with who and when; a regression itself has only its last
gate_results    what gates said of runs: which metrics had got worse. `run_id` is no foreign key, so that the figures of
                success do not change when a run is deleted
opportunities   what profiles found could be saved, since when, and when it was no longer found
api_keys        who may use the server: the hash of each key, and the part of it that may be shown
sessions        browsers that logged in: the hash of each session's secret, and the key that it was opened with
audit_log       what was changed through the server, and what it refused without a valid key
assay_revision  the schema's revision, kept by Alembic under a name that leaves room for other programs' tables

Measurements hang on their trial rather than on their execution: a cascade from an execution would have to search all of the
trial's measurements for each row that goes. The store deletes both in one transaction. A suite goes with its last run unless
it is registered. Secrets are nowhere: definitions of agents hold `${NAME}` where a value comes from the environment, and what
people and agents say is redacted when it is written.

What people query is the view `benchmark_executions`: one row a trial, under the column names of the performance specification.
Ids there are names, scores go from 0 to 100, and what is not known is NULL. Its `status` is `success` when at least one measured
execution was ok and the trial was not stopped; else the status of the last execution that was not ok (`failed`, `timeout`,
`over_limit` …); else `stopped`; else `pending`. Durations, tokens and calls are sums over the measured executions.
`cpu_usage_percent` is the mean that psutil saw, else CPU time ÷ wall time; `memory_peak_mb` the highest peak of an execution, else of
the processes of the trial. Both are NULL for agents behind a network, which cannot be observed from here. `output_correctness` is the mean
of the score named `correctness`, else of the overall score, of the outputs that were judged; completeness and relevance are means of
the scores of that name. `percentile_rank` is the share of the other agents' latest rated trials on the benchmark whose overall is lower,
simulated ones apart from the rest. `deviation_from_baseline` is the overall divided by the baseline's, less 1. The baseline is what the
suite's `baseline_scores` say of the same agent on that benchmark, else of the first agent there that has a score on it; where they say
nothing, the baseline named like the suite, else `main`, and in it the same agent, else its first trial on the benchmark.

Rankings are the views `agent_comparison_matrix` and `benchmark_leaderboard`, made from `rated_trials`. On PostgreSQL the matrix
is stored, and refreshed when a run of a suite ends, is judged again or is deleted.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from assay.model.redaction import known_secrets
from assay.store import column_values as plain

DEFAULT_WORKSPACE = 1

NAMING = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s",
    "ix": "ix_%(table_name)s_%(column_0_name)s",
}


class _JsonText(sa.types.TypeDecorator[Any]):
    """JSON as text for SQLite, which has no type for it. Numbers stay as they were written."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        return None if value is None else plain.to_json(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        return None if value is None else plain.from_json(value)


class _JsonBinary(sa.types.TypeDecorator[Any]):
    """PostgreSQL's jsonb; its dialect is loaded only where that database is used."""

    impl = sa.JSON(none_as_null=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        from sqlalchemy.dialects.postgresql import JSONB

        return dialect.type_descriptor(JSONB(none_as_null=True))


class _RedactedText(sa.types.TypeDecorator[str]):
    """Text of people and agents: secrets are redacted before it is stored."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else known_secrets().redact_text(value)


class _RedactedJson(sa.types.TypeDecorator[Any]):
    """JSON of people and agents: secrets are redacted in keys and values."""

    impl = sa.JSON(none_as_null=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        return dialect.type_descriptor(sa.Text() if dialect.name == "sqlite" else sa.JSON(none_as_null=True))

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:
        if value is None:
            return None
        written = plain.redact_json(value)
        return written if dialect.name == "sqlite" else plain.from_json(written)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        return plain.from_json(value) if isinstance(value, str) and dialect.name == "sqlite" else value


class _Instant(sa.types.TypeDecorator[datetime]):
    """A point in time; SQLite has no time zones, so there it is written in UTC."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return (
            None
            if value is None
            else value.replace(tzinfo=UTC)
            if value.tzinfo is None
            else value.astimezone(UTC)
        )


# Definitions of suites, their names and the ids of cases are kept as they are written: a run is resumed and scored again with them.
# A suite that holds a known secret is refused instead. Everything else that people or agents say is redacted.
# SQLite would turn a JSON column's bare numbers into its own; text keeps them as written. PostgreSQL's json keeps the order of
# keys, which axes and specs need; jsonb, which does not, is for what people search in.
_Written = sa.JSON(none_as_null=True).with_variant(_JsonText(), "sqlite")
_Searched = (
    sa.JSON(none_as_null=True).with_variant(_JsonText(), "sqlite").with_variant(_JsonBinary(), "postgresql")
)
INSTANT, SEARCHED = _Instant(), _Searched
"""Types of the columns of views."""

metadata = sa.MetaData(naming_convention=NAMING)


def _own(table: str) -> sa.ForeignKey:
    return sa.ForeignKey(f"{table}.id", ondelete="CASCADE")


revision = sa.Table(
    "assay_revision",
    metadata,
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="assay_revision_pkc"),
)

workspaces = sa.Table(
    "workspaces",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.UniqueConstraint("name"),
)

agents = sa.Table(
    "agents",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("workspace_id", _own("workspaces"), nullable=False),
    sa.Column("name", _RedactedText, nullable=False),
    sa.Column("version", _RedactedText, nullable=False),
    sa.Column("definition", _RedactedJson),
    sa.UniqueConstraint("workspace_id", "name", "version"),
)

suites = sa.Table(
    "suites",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("workspace_id", _own("workspaces"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("category", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("definition", _Written, nullable=False),
    sa.Column("created", _Instant, nullable=False),
    sa.Column("registered", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.UniqueConstraint("workspace_id", "name", "version", "hash", "digest"),
)

environments = sa.Table(
    "environments",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("facts", _RedactedJson, nullable=False),
    sa.Column("vcs", _RedactedJson, nullable=False),
    sa.Column("doubts", _RedactedJson, nullable=False),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("workspace_id", _own("workspaces"), nullable=False),
    sa.Column("suite_id", sa.ForeignKey("suites.id"), nullable=True),
    sa.Column("environment_id", sa.ForeignKey("environments.id"), nullable=False),
    sa.Column("name", _RedactedText, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("started", _Instant, nullable=False),
    sa.Column("ended", _Instant),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("notes", _RedactedText, nullable=False),
    sa.Column("trial_order", sa.Text, nullable=False),
    sa.Column("parallelism", sa.Integer, nullable=False),
    sa.Column("executor", sa.Text, nullable=False),
    sa.Column("load", _RedactedJson, nullable=False),
    sa.Column("output_dir", _RedactedText),
    sa.Column("source", _RedactedJson, nullable=False),
    sa.Column("instrument_costs", _RedactedJson, nullable=False),
    sa.Column("unmeasured", _RedactedJson, nullable=False),
    sa.Column("budget", _RedactedJson, nullable=False, server_default="{}"),
    sa.Column("question", _RedactedJson),
    sa.Column("label", _RedactedText, nullable=False, server_default=""),
    sa.Index("ix_runs_workspace_id", "workspace_id", "started", "id"),
    sa.Index("ix_runs_suite_id", "suite_id", "started"),
)

tags = sa.Table(
    "tags",
    metadata,
    sa.Column("run_id", _own("runs"), primary_key=True),
    sa.Column("tag", _RedactedText, primary_key=True),
    sa.Index("ix_tags_tag", "tag"),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("run_id", _own("runs"), primary_key=True),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("pid", sa.BigInteger, nullable=False),
    sa.Column("machine", sa.Text, nullable=False),
    sa.Column("process_started", sa.Text, nullable=False),
    sa.Column("folder", sa.Text, nullable=False),
    sa.Column("renewed", sa.Double, nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
    sa.Column("batches", sa.BigInteger, nullable=False),
)

baselines = sa.Table(
    "baselines",
    metadata,
    sa.Column("workspace_id", _own("workspaces"), primary_key=True),
    sa.Column("name", _RedactedText, primary_key=True),
    sa.Column("run_id", sa.ForeignKey("runs.id"), nullable=False, index=True),
)

trials = sa.Table(
    "trials",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("run_id", _own("runs"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("name", _RedactedText, nullable=False),
    sa.Column("agent_id", sa.ForeignKey("agents.id"), nullable=False),
    sa.Column("benchmark", sa.Text, nullable=False),
    sa.Column("experiment", _RedactedText, nullable=False),
    sa.Column("params", _RedactedJson, nullable=False),
    sa.Column("axes", _RedactedJson, nullable=False),
    sa.Column("iterations", _Written, nullable=False),
    sa.Column("processes", sa.Integer, nullable=False),
    sa.Column("instruments", _RedactedJson, nullable=False),
    sa.Column("isolation", sa.Text, nullable=False),
    sa.Column("limits", _Written, nullable=False),
    sa.Column("started", _Instant),
    sa.Column("ended", _Instant),
    sa.Column("stopped", _RedactedText),
    sa.Column("accuracy", sa.Double),
    sa.Column("speed", sa.Double),
    sa.Column("efficiency", sa.Double),
    sa.Column("cost", sa.Double),
    sa.Column("reliability", sa.Double),
    sa.Column("overall", sa.Double),
    sa.Column("agent_use", _RedactedJson),
    sa.Column("suite", sa.Text, nullable=False, server_default=""),
    sa.Column("cases", _Written, nullable=False, server_default="[]"),
    sa.Column("concurrency", sa.Integer, nullable=False, server_default="1"),
    sa.Column("benchmark_hash", sa.Text, nullable=False, server_default=""),
    sa.Column("simulated", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("cpu_seconds", sa.Double),
    sa.Column("cpu_wall_seconds", sa.Double),
    sa.Column("peak_bytes", sa.BigInteger),
    sa.Column("baseline_overall", sa.Double),
    sa.Column("cleanup", _RedactedJson),
    sa.Column("resources", _Written),
    sa.UniqueConstraint("run_id", "position"),
    sa.Index("ix_trials_suite", "suite", "benchmark", "run_id"),
    # For the newest trials of an agent or a suite, and for the agents of a suite: read without the trials, which are long.
    sa.Index("ix_trials_of_agent", "agent_id", "id"),
    sa.Index("ix_trials_agents_of_suite", "suite", "id", "agent_id", "started"),
    sa.Index("ix_trials_experiment", "experiment", "run_id"),
    # For overviews of all agents and suites: they read this index alone, and not the trials, which are long.
    sa.Index("ix_trials_coverage", "agent_id", "suite", "started", "run_id"),
    sqlite_autoincrement=True,  # an id that was deleted is never given again: a runner may still be writing to it
)


def _rows_of_trials() -> sa.ForeignKeyConstraint:
    """In PostgreSQL triggers do the same for all rows of a statement at once (`views/trial_rows.sql`)."""
    constraint = sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], ondelete="CASCADE")
    return constraint.ddl_if(dialect="sqlite")


# The two long tables have composite keys and, in SQLite, no row number beside them: a key is stored once, and the executions
# of a trial lie together on the disk.
executions = sa.Table(
    "executions",
    metadata,
    sa.Column("trial_id", sa.Integer, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("process", sa.Integer, nullable=False),
    sa.Column("phase", sa.Text, nullable=False),
    sa.Column("case_id", sa.Text, nullable=False),
    sa.Column("repetition", sa.Integer, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("started", sa.Double, nullable=False),
    sa.Column("loops", sa.BigInteger, nullable=False),
    sa.Column("output", _Searched),
    sa.Column("applied", _Searched),
    sa.Column("error", sa.Text),
    sa.Column("log", sa.Text),
    sa.Column("detail", _Searched),
    sa.UniqueConstraint("trial_id", "process", "phase", "case_id", "repetition"),
    _rows_of_trials(),
    sqlite_with_rowid=False,
)

measurements = sa.Table(
    "measurements",
    metadata,
    sa.Column("trial_id", sa.Integer, primary_key=True),
    sa.Column("metric", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("value", sa.Double, nullable=False),
    _rows_of_trials(),
    sqlite_with_rowid=False,
)

artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("trial_id", _own("trials"), nullable=False, index=True),
    sa.Column("name", _RedactedText, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

placements = sa.Table(
    "placements",
    metadata,
    sa.Column("trial_id", _own("trials"), primary_key=True),
    sa.Column("process", sa.Integer, primary_key=True),
    sa.Column("node", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)

benchmarks = sa.Table(
    "benchmarks",
    metadata,
    sa.Column("suite_id", _own("suites"), primary_key=True),
    sa.Column("benchmark", sa.Text, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("cases", sa.Integer, nullable=False),
    sqlite_with_rowid=False,
)

# What is long comes last: SQLite reads the columns before it without it.
ratings = sa.Table(
    "ratings",
    metadata,
    sa.Column("trial_id", _own("trials"), primary_key=True, autoincrement=False),
    sa.Column("suite", sa.Text, nullable=False, index=True),
    sa.Column("benchmark", sa.Text, nullable=False),
    sa.Column("benchmark_hash", sa.Text, nullable=False),
    sa.Column("contender", _RedactedText, nullable=False),
    sa.Column("simulated", sa.Boolean, nullable=False),
    sa.Column("ok", sa.Integer, nullable=False),
    sa.Column("cases", sa.Integer, nullable=False),
    sa.Column("baseline", sa.Text),
    sa.Column("weights", _Written, nullable=False),
    sa.Column("digest", sa.Text),
    sa.Column("dimensions", sa.Text),
    sa.Column("summary", _Written),
    sa.Column("marks", sa.LargeBinary),
    sa.Column("case_names", sa.LargeBinary),
)

rating_references = sa.Table(
    "rating_references",
    metadata,
    sa.Column("workspace_id", _own("workspaces"), primary_key=True),
    sa.Column("suite", sa.Text, primary_key=True),
    sa.Column("benchmark", sa.Text, primary_key=True),
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("simulated", sa.Boolean, primary_key=True),
    sa.Column("quantity", sa.Text, primary_key=True),
    sa.Column("value", sa.Double, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("ended", _Instant, nullable=False),
    sa.Column("origin", sa.Text, nullable=False),
)

regressions = sa.Table(
    "regressions",
    metadata,
    sa.Column("workspace_id", _own("workspaces"), primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("agent", _RedactedText, nullable=False, index=True),
    sa.Column("suite", sa.Text, nullable=False),
    sa.Column("benchmark", sa.Text, nullable=False),
    sa.Column("metric", sa.Text, nullable=False),
    sa.Column("version_before", _RedactedText, nullable=False),
    sa.Column("version_after", _RedactedText, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("note", _RedactedText, nullable=False),
    sa.Column("detected", _Instant, nullable=False),
    sa.Column("changed", _Instant, nullable=False),
    sa.Column("is_marked", sa.Boolean, nullable=False),
    sa.Column("figures", _RedactedJson, nullable=False),
)

trial_totals = sa.Table(
    "trial_totals",
    metadata,
    sa.Column("trial_id", _own("trials"), primary_key=True, autoincrement=False),
    sa.Column("executions", sa.Integer, nullable=False),
    sa.Column("duration_ms", sa.BigInteger),
    sa.Column("tokens", sa.BigInteger),
    sa.Column("api_calls", sa.BigInteger),
    *(sa.Column(name, sa.Double) for name in ("rss_max_bytes", "cpu_percent", "correctness", "score")),
    *(sa.Column(name, sa.Double) for name in ("completeness", "relevance")),
    sa.Column("has_ok", sa.Integer, nullable=False),
    sa.Column("last_failure", sa.Text),
    sa.Column("last_error", sa.Text),
)

suite_changes = sa.Table(
    "suite_changes",
    metadata,
    sa.Column("workspace_id", _own("workspaces"), primary_key=True),
    sa.Column("suite", sa.Text, primary_key=True),
    sa.Column("changes", sa.BigInteger, nullable=False),
)

boards = sa.Table(
    "boards",
    metadata,
    sa.Column("workspace_id", _own("workspaces"), primary_key=True),
    sa.Column("suite", sa.Text, primary_key=True),
    sa.Column("category", sa.Text, primary_key=True),
    sa.Column("metric", sa.Text, primary_key=True),
    sa.Column("changes", sa.BigInteger, nullable=False),
    sa.Column("computed", _Instant, nullable=False),
    sa.Column("expires", _Instant, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
)

queued_runs = sa.Table(
    "queued_runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("workspace_id", _own("workspaces"), nullable=False),
    sa.Column("agent", _RedactedText, nullable=False),
    sa.Column("suite", sa.Text, nullable=False),
    sa.Column("configuration", _RedactedJson, nullable=False),
    sa.Column("state", sa.Text, nullable=False, index=True),
    sa.Column("error", _RedactedText, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("created", _Instant, nullable=False),
    sa.Column("owner", _RedactedJson),
    sa.Column("renewed", sa.Double, nullable=False),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("prefix", sa.Text, primary_key=True),
    sa.Column("workspace_id", _own("workspaces"), nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("name", _RedactedText, nullable=False),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("created", _Instant, nullable=False),
    sa.Column("expires", _Instant),
    sa.Column("revoked", _Instant),
    sa.Column("last_used", _Instant),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("workspace_id", _own("workspaces"), nullable=False),
    sa.Column("prefix", sa.ForeignKey("api_keys.prefix", ondelete="CASCADE"), nullable=False),
    sa.Column("created", _Instant, nullable=False),
    sa.Column("expires", _Instant, nullable=False, index=True),
)

audit_log = sa.Table(
    "audit_log",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("workspace_id", _own("workspaces"), nullable=False),
    sa.Column("at", _Instant, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("method", sa.Text, nullable=False),
    sa.Column("path", _RedactedText, nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
)

schedules = sa.Table(
    "schedules",
    metadata,
    sa.Column("workspace_id", _own("workspaces"), primary_key=True),
    sa.Column("suite", sa.Text, primary_key=True),
    sa.Column("expression", sa.Text, nullable=False),
    sa.Column("zone", sa.Text, nullable=False),
    sa.Column("due", _Instant, nullable=False),
)

scheduled_runs = sa.Table(
    "scheduled_runs",
    metadata,
    sa.Column("workspace_id", _own("workspaces"), primary_key=True),
    sa.Column("suite", sa.Text, primary_key=True),
    sa.Column("due", _Instant, primary_key=True),
    sa.Column("agent", _RedactedText, primary_key=True),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False, index=True),
    sa.Column("error", _RedactedText, nullable=False),
)

alerts = sa.Table(
    "alerts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("workspace_id", _own("workspaces"), nullable=False),
    sa.Column("key", _RedactedText, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("severity", sa.Text, nullable=False),
    sa.Column("text", _RedactedText, nullable=False),
    sa.Column("facts", _RedactedJson, nullable=False),
    sa.Column("created", _Instant, nullable=False),
    sa.Column("state", sa.Text, nullable=False, index=True),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("due", _Instant, nullable=False),
    sa.Column("sent", _Instant),
    sa.Column("error", _RedactedText, nullable=False),
    sa.UniqueConstraint("workspace_id", "key"),
)

labels = sa.Table(
    "labels",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("workspace_id", _own("workspaces"), nullable=False),
    sa.Column("trial_id", _own("trials"), nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("case_id", sa.Text, nullable=False),
    sa.Column("author", _RedactedText, nullable=False),
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("note", _RedactedText, nullable=False),
    sa.Column("created", _Instant, nullable=False),
    sa.UniqueConstraint("trial_id", "seq", "author"),
)

regression_changes = sa.Table(
    "regression_changes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("workspace_id", _own("workspaces"), nullable=False),
    sa.Column("regression", sa.Text, nullable=False, index=True),
    sa.Column("at", _Instant, nullable=False),
    sa.Column("author", _RedactedText, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("note", _RedactedText, nullable=False),
)

gate_results = sa.Table(
    "gate_results",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("workspace_id", _own("workspaces"), nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("baseline", _RedactedText, nullable=False),
    sa.Column("at", _Instant, nullable=False),
    sa.Column("passed", sa.Boolean, nullable=False),
    sa.Column("losses", _RedactedJson, nullable=False),
)

opportunities = sa.Table(
    "opportunities",
    metadata,
    sa.Column("workspace_id", _own("workspaces"), primary_key=True),
    sa.Column("agent", _RedactedText, primary_key=True),
    sa.Column("place", _RedactedText, primary_key=True),
    sa.Column("category", sa.Text, primary_key=True),
    sa.Column("location", _RedactedText, primary_key=True),
    sa.Column("impact", sa.Double, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("found", _Instant, nullable=False),
    sa.Column("resolved", _Instant),
)
