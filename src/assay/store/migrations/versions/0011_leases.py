"""Which process may write a run, and until when."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("process_started", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("renewed", sa.Double, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
        sa.Column("batches", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("run_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], ondelete="CASCADE"),
    )
