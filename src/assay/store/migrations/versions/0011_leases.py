"""Which process may write a run, and until when."""

from assay.store.migrations import create_tables

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    create_tables("leases")
