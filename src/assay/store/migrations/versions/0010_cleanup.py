"""The command that cleans up after a worker was killed or crashed, stored with the trial for resumed runs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"

Written = sa.Text().with_variant(postgresql.JSON(), "postgresql")


def upgrade() -> None:
    op.add_column("trials", sa.Column("cleanup", Written))
