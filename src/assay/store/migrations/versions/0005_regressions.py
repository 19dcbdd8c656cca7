"""Regressions of agents, each in its state."""

from assay.store.migrations import create_tables

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    create_tables("regressions")
