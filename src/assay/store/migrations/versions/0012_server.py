"""What the server keeps: runs that it was asked for, keys, and who did what."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0011"

Instant = sa.DateTime(timezone=True)
Written = sa.Text().with_variant(postgresql.JSON(), "postgresql")


def upgrade() -> None:
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
    # Lists of runs are those of one workspace.
    op.drop_index("ix_runs_started", "runs")
    op.create_index("ix_runs_workspace_id", "runs", ["workspace_id", "started"])


def _workspace() -> sa.Column[int]:
    return sa.Column(
        "workspace_id", sa.Integer, sa.ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False
    )
