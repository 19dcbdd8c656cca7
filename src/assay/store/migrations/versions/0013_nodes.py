"""Which node of a cluster carried out each process, and the resources that a trial asks for."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0013"
down_revision = "0012"

Written = sa.Text().with_variant(postgresql.JSON(), "postgresql")


def upgrade() -> None:
    op.add_column("trials", sa.Column("resources", Written))
    op.create_table(
        "placements",
        sa.Column("trial_id", sa.Integer, sa.ForeignKey("trials.id", ondelete="CASCADE"), nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("trial_id", "process"),
        sqlite_with_rowid=False,
    )
