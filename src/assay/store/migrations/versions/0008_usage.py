"""What a trial took of the machine, and the overall rating that its suite states as the baseline."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    for name in ("cpu_seconds", "cpu_wall_seconds"):
        op.add_column("trials", sa.Column(name, sa.Double))
    op.add_column("trials", sa.Column("peak_bytes", sa.BigInteger))
    op.add_column("trials", sa.Column("baseline_overall", sa.Double))
