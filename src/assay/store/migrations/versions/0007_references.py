"""References of ratings, stored with the definition of a benchmark instead of taken from a baseline."""

from alembic import op

from assay.store.migrations import create_tables

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    create_tables("rating_references")
    # Their references came from a baseline: `assay db upgrade` rates the trials again once this is done.
    op.execute(
        "UPDATE ratings SET baseline = NULL, digest = NULL, dimensions = NULL, summary = NULL, marks = NULL, "
        "case_names = NULL"
    )
