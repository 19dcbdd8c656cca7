"""What the server keeps: runs that it was asked for, schedules, alerts, labels, keys, and who did what."""

from alembic import op

from assay.store.migrations import create_tables
from assay.store.schema import view_statement

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    create_tables("queued_runs", "api_keys", "sessions", "audit_log")
    create_tables("schedules", "scheduled_runs", "alerts")
    create_tables("labels", "regression_changes", "gate_results", "opportunities")
    create_tables("suite_changes", "boards", "trial_totals")
    _fill_totals()
    # Lists of runs are those of one workspace.
    op.drop_index("ix_runs_started", "runs")
    op.create_index("ix_runs_workspace_id", "runs", ["workspace_id", "started", "id"])
    op.create_index("ix_runs_suite_id", "runs", ["suite_id", "started"])
    op.create_index("ix_trials_suite", "trials", ["suite", "benchmark", "run_id"])
    op.create_index("ix_tags_tag", "tags", ["tag"])
    op.create_index("ix_trials_coverage", "trials", ["agent_id", "suite", "started", "run_id"])


def _fill_totals() -> None:
    """With what the executions of runs that have ended add up to."""
    dialect = op.get_bind().dialect.name
    op.execute("DROP VIEW IF EXISTS benchmark_executions")
    for name in ("live_trial_totals", "benchmark_executions"):
        op.execute(view_statement(name, dialect))
    op.execute(
        "INSERT INTO trial_totals SELECT live.* FROM live_trial_totals AS live JOIN trials ON trials.id = live.trial_id "
        "JOIN runs ON runs.id = trials.run_id WHERE runs.state <> 'running'"
    )
