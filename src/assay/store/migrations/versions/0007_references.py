"""References of ratings, stored with the definition of a benchmark instead of taken from a baseline."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "rating_references",
        sa.Column(
            "workspace_id", sa.Integer, sa.ForeignKey("workspaces.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("suite", sa.Text, primary_key=True),
        sa.Column("benchmark", sa.Text, primary_key=True),
        sa.Column("hash", sa.Text, primary_key=True),
        sa.Column("simulated", sa.Boolean, primary_key=True),
        sa.Column("quantity", sa.Text, primary_key=True),
        sa.Column("value", sa.Double, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
    )
    # Their references came from a baseline: `assay db upgrade` rates the trials again once this is done.
    op.execute(
        "UPDATE ratings SET baseline = NULL, digest = NULL, dimensions = NULL, summary = NULL, marks = NULL, "
        "case_names = NULL"
    )
