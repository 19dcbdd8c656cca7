"""Suites with their definitions, agents' definitions, and what an agent's figures rest on."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"

Instant = sa.DateTime(timezone=True)
Written = sa.Text().with_variant(postgresql.JSON(), "postgresql")
Searched = sa.Text().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    # SQLite refuses to copy a table that a view refers to.
    op.execute("DROP VIEW IF EXISTS benchmark_executions")
    op.add_column("agents", sa.Column("definition", Written))
    _suites()
    op.add_column("runs", sa.Column("budget", Written, nullable=False, server_default="{}"))
    _trials()
    op.add_column("executions", sa.Column("detail", Searched))


def _suites() -> None:
    # Nothing wrote suites before this revision, so the new columns need no values for old rows.
    with op.batch_alter_table("suites") as suites:
        suites.add_column(sa.Column("hash", sa.Text, nullable=False))
        suites.add_column(sa.Column("digest", sa.Text, nullable=False))
        suites.add_column(sa.Column("definition", Written, nullable=False))
        suites.add_column(sa.Column("created", Instant, nullable=False))
        suites.add_column(sa.Column("registered", sa.Boolean, nullable=False, server_default=sa.false()))
        suites.drop_constraint("uq_suites", type_="unique")
        suites.create_unique_constraint("uq_suites", ["workspace_id", "name", "version", "hash", "digest"])


def _trials() -> None:
    for column in (
        sa.Column("agent_use", Written),
        sa.Column("suite", sa.Text, nullable=False, server_default=""),
        sa.Column("cases", Written, nullable=False, server_default="[]"),
        sa.Column("concurrency", sa.Integer, nullable=False, server_default="1"),
        sa.Column("benchmark_hash", sa.Text, nullable=False, server_default=""),
        sa.Column("simulated", sa.Boolean, nullable=False, server_default=sa.false()),
    ):
        op.add_column("trials", column)
