"""Which node of a cluster carried out each process, and the resources that a trial asks for."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from assay.store.migrations import create_tables

revision = "0013"
down_revision = "0012"

Written = sa.Text().with_variant(postgresql.JSON(), "postgresql")


def upgrade() -> None:
    op.add_column("trials", sa.Column("resources", Written))
    create_tables("placements")
