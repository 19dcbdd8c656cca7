"""The tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from assay.store.migrations import create_tables

revision = "0001"
down_revision = None

Instant = sa.DateTime(timezone=True)
Written = sa.Text().with_variant(postgresql.JSON(), "postgresql")
Searched = sa.Text().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    _people_and_places()
    _runs()
    _trials()
    _results()
    op.execute("INSERT INTO workspaces (id, name) VALUES (1, 'default')")


def _own(table: str) -> sa.ForeignKey:
    return sa.ForeignKey(f"{table}.id", ondelete="CASCADE")


def _people_and_places() -> None:
    create_tables("workspaces", "environments")
    op.create_table(
        "agents",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("workspace_id", sa.Integer, _own("workspaces"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.UniqueConstraint("workspace_id", "name", "version"),
    )
    op.create_table(
        "suites",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("workspace_id", sa.Integer, _own("workspaces"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("category", sa.Text, nullable=False),
        sa.UniqueConstraint("workspace_id", "name", "version"),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("workspace_id", sa.Integer, _own("workspaces"), nullable=False),
        sa.Column("suite_id", sa.Integer, sa.ForeignKey("suites.id")),
        sa.Column("environment_id", sa.Integer, sa.ForeignKey("environments.id"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("started", Instant, nullable=False, index=True),
        sa.Column("ended", Instant),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("notes", sa.Text, nullable=False),
        sa.Column("trial_order", sa.Text, nullable=False),
        sa.Column("parallelism", sa.Integer, nullable=False),
        sa.Column("executor", sa.Text, nullable=False),
        sa.Column("load", Written, nullable=False),
        sa.Column("output_dir", sa.Text),
        sa.Column("source", Written, nullable=False),
        sa.Column("instrument_costs", Written, nullable=False),
        sa.Column("unmeasured", Written, nullable=False),
    )
    op.create_table(
        "tags",
        sa.Column("run_id", sa.Text, _own("runs"), primary_key=True),
        sa.Column("tag", sa.Text, primary_key=True),
    )
    create_tables("baselines")


def _trials() -> None:
    op.create_table(
        "trials",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("run_id", sa.Text, _own("runs"), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Integer, sa.ForeignKey("agents.id"), nullable=False, index=True),
        sa.Column("benchmark", sa.Text, nullable=False),
        sa.Column("experiment", sa.Text, nullable=False),
        sa.Column("params", Written, nullable=False),
        sa.Column("axes", Written, nullable=False),
        sa.Column("iterations", Written, nullable=False),
        sa.Column("processes", sa.Integer, nullable=False),
        sa.Column("instruments", Written, nullable=False),
        sa.Column("isolation", sa.Text, nullable=False),
        sa.Column("limits", Written, nullable=False),
        sa.Column("started", Instant),
        sa.Column("ended", Instant),
        sa.Column("stopped", sa.Text),
        *(
            sa.Column(name, sa.Double)
            for name in ("accuracy", "speed", "efficiency", "cost", "reliability", "overall")
        ),
        sa.UniqueConstraint("run_id", "position"),
        sqlite_autoincrement=True,
    )


def _results() -> None:
    op.create_table(
        "executions",
        sa.Column("trial_id", sa.Integer, _own("trials"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("case_id", sa.Text, nullable=False),
        sa.Column("repetition", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("started", sa.Double, nullable=False),
        sa.Column("loops", sa.BigInteger, nullable=False),
        sa.Column("output", Searched),
        sa.Column("applied", Searched),
        sa.Column("error", sa.Text),
        sa.Column("log", sa.Text),
        sa.UniqueConstraint("trial_id", "process", "phase", "case_id", "repetition"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "measurements",
        sa.Column("trial_id", sa.Integer, _own("trials"), primary_key=True),
        sa.Column("metric", sa.Text, primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("value", sa.Double, nullable=False),
        sqlite_with_rowid=False,
    )
    create_tables("artifacts")
