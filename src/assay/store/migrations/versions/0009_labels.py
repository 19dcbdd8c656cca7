"""The label that a person gives a run."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("runs", sa.Column("label", sa.Text, nullable=False, server_default=""))
