"""What the server keeps: runs that it was asked for, schedules, alerts, labels, keys, and who did what."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from assay.store.schema import view_statement

revision = "0012"
down_revision = "0011"

Instant = sa.DateTime(timezone=True)
Written = sa.Text().with_variant(postgresql.JSON(), "postgresql")


def upgrade() -> None:
    _create_access()
    _create_schedules()
    _create_reviews()
    _keep_boards()
    _keep_totals()
    # Lists of runs are those of one workspace.
    op.drop_index("ix_runs_started", "runs")
    op.create_index("ix_runs_workspace_id", "runs", ["workspace_id", "started", "id"])
    op.create_index("ix_runs_suite_id", "runs", ["suite_id", "started"])
    op.create_index("ix_trials_suite", "trials", ["suite", "benchmark", "run_id"])
    op.create_index("ix_tags_tag", "tags", ["tag"])
    op.create_index("ix_trials_coverage", "trials", ["agent_id", "suite", "started", "run_id"])


def _create_access() -> None:
    op.create_table(
        "queued_runs",
        sa.Column("id", sa.Text, primary_key=True),
        _workspace(),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("suite", sa.Text, nullable=False),
        sa.Column("configuration", Written, nullable=False),
        sa.Column("state", sa.Text, nullable=False, index=True),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created", Instant, nullable=False),
        sa.Column("owner", Written),
        sa.Column("renewed", sa.Double, nullable=False),
    )
    op.create_table(
        "api_keys",
        sa.Column("prefix", sa.Text, primary_key=True),
        _workspace(),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("created", Instant, nullable=False),
        sa.Column("expires", Instant),
        sa.Column("revoked", Instant),
        sa.Column("last_used", Instant),
    )
    op.create_table(
        "sessions",
        sa.Column("hash", sa.Text, primary_key=True),
        _workspace(),
        sa.Column("prefix", sa.Text, sa.ForeignKey("api_keys.prefix", ondelete="CASCADE"), nullable=False),
        sa.Column("created", Instant, nullable=False),
        sa.Column("expires", Instant, nullable=False, index=True),
    )
    op.create_table(
        "audit_log",
        sa.Column("id", sa.Integer, primary_key=True),
        _workspace(),
        sa.Column("at", Instant, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
    )


def _keep_boards() -> None:
    op.create_table(
        "suite_changes",
        _workspace(is_key=True),
        sa.Column("suite", sa.Text, primary_key=True),
        sa.Column("changes", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "boards",
        _workspace(is_key=True),
        sa.Column("suite", sa.Text, primary_key=True),
        sa.Column("category", sa.Text, primary_key=True),
        sa.Column("metric", sa.Text, primary_key=True),
        sa.Column("changes", sa.BigInteger, nullable=False),
        sa.Column("computed", Instant, nullable=False),
        sa.Column("expires", Instant, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )


def _keep_totals() -> None:
    """With what the executions of runs that have ended add up to."""
    op.create_table(
        "trial_totals",
        sa.Column(
            "trial_id",
            sa.Integer,
            sa.ForeignKey("trials.id", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
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
    dialect = op.get_bind().dialect.name
    op.execute("DROP VIEW IF EXISTS benchmark_executions")
    for name in ("live_trial_totals", "benchmark_executions"):
        op.execute(view_statement(name, dialect))
    op.execute(
        "INSERT INTO trial_totals SELECT live.* FROM live_trial_totals AS live JOIN trials ON trials.id = live.trial_id "
        "JOIN runs ON runs.id = trials.run_id WHERE runs.state <> 'running'"
    )


def _create_schedules() -> None:
    op.create_table(
        "schedules",
        _workspace(is_key=True),
        sa.Column("suite", sa.Text, primary_key=True),
        sa.Column("expression", sa.Text, nullable=False),
        sa.Column("zone", sa.Text, nullable=False),
        sa.Column("due", Instant, nullable=False),
    )
    op.create_table(
        "scheduled_runs",
        _workspace(is_key=True),
        sa.Column("suite", sa.Text, primary_key=True),
        sa.Column("due", Instant, primary_key=True),
        sa.Column("agent", sa.Text, primary_key=True),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False, index=True),
        sa.Column("error", sa.Text, nullable=False),
    )
    op.create_table(
        "alerts",
        sa.Column("id", sa.Integer, primary_key=True),
        _workspace(),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("severity", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("facts", Written, nullable=False),
        sa.Column("created", Instant, nullable=False),
        sa.Column("state", sa.Text, nullable=False, index=True),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due", Instant, nullable=False),
        sa.Column("sent", Instant),
        sa.Column("error", sa.Text, nullable=False),
        sa.UniqueConstraint("workspace_id", "key"),
    )


def _create_reviews() -> None:
    op.create_table(
        "labels",
        sa.Column("id", sa.Integer, primary_key=True),
        _workspace(),
        sa.Column("trial_id", sa.Integer, sa.ForeignKey("trials.id", ondelete="CASCADE"), nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("case_id", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("created", Instant, nullable=False),
        sa.UniqueConstraint("trial_id", "seq", "author"),
    )
    op.create_table(
        "regression_changes",
        sa.Column("id", sa.Integer, primary_key=True),
        _workspace(),
        sa.Column("regression", sa.Text, nullable=False, index=True),
        sa.Column("at", Instant, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.create_table(
        "gate_results",
        sa.Column("id", sa.Integer, primary_key=True),
        _workspace(),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("baseline", sa.Text, nullable=False),
        sa.Column("at", Instant, nullable=False),
        sa.Column("passed", sa.Boolean, nullable=False),
        sa.Column("losses", Written, nullable=False),
    )
    op.create_table(
        "opportunities",
        _workspace(is_key=True),
        sa.Column("agent", sa.Text, primary_key=True),
        sa.Column("place", sa.Text, primary_key=True),
        sa.Column("category", sa.Text, primary_key=True),
        sa.Column("location", sa.Text, primary_key=True),
        sa.Column("impact", sa.Double, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("found", Instant, nullable=False),
        sa.Column("resolved", Instant),
    )


def _workspace(*, is_key: bool = False) -> sa.Column[int]:
    owner = sa.ForeignKey("workspaces.id", ondelete="CASCADE")
    return sa.Column("workspace_id", sa.Integer, owner, primary_key=is_key, nullable=False)
