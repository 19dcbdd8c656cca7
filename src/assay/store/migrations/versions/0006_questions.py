"""The question that ends a run of two arms, and how it was decided."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"

Written = sa.Text().with_variant(postgresql.JSON(), "postgresql")


def upgrade() -> None:
    op.add_column("runs", sa.Column("question", Written))
