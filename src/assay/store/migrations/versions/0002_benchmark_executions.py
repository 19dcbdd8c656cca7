"""The view that people query, under the column names of the performance specification."""

from alembic import op

from assay.store.schema import view_statement

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute(view_statement(revision, op.get_bind().dialect.name))
