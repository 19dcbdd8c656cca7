"""Regressions of agents, each in its state."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

Instant = sa.DateTime(timezone=True)
Written = sa.Text().with_variant(postgresql.JSON(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "regressions",
        sa.Column(
            "workspace_id", sa.Integer, sa.ForeignKey("workspaces.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("agent", sa.Text, nullable=False, index=True),
        sa.Column("suite", sa.Text, nullable=False),
        sa.Column("benchmark", sa.Text, nullable=False),
        sa.Column("metric", sa.Text, nullable=False),
        sa.Column("version_before", sa.Text, nullable=False),
        sa.Column("version_after", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("detected", Instant, nullable=False),
        sa.Column("changed", Instant, nullable=False),
        sa.Column("is_marked", sa.Boolean, nullable=False),
        sa.Column("figures", Written, nullable=False),
    )
