"""Ten million executions: rows of the long tables are checked once a statement rather than one by one, and lists of trials have indexes.

On PostgreSQL `schema.upgrade` builds the indexes afterwards, without keeping anybody from writing.
"""

from alembic import op

from assay.store.schema import read_sql

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        op.create_index("ix_trials_of_suite", "trials", ["suite", "id"])
        op.create_index("ix_trials_experiment", "trials", ["experiment", "run_id"])
        return
    for table in ("executions", "measurements"):
        op.drop_constraint(f"fk_{table}_trial_id", table)
    op.get_bind().exec_driver_sql(read_sql("trial_rows"))
