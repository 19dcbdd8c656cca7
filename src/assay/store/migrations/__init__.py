"""Alembic's scripts: how each revision of the schema is made from the one before.

A table that is today as a revision created it is created from `tables.py`. Who changes such a table writes its old form into that
revision's script first, as `op.create_table`. If this is forgotten, the kept databases in `tests/store/schemas` do not become what a
new database is.
"""

from __future__ import annotations

from alembic import op

from assay.store.tables import metadata


def create_tables(*names: str) -> None:
    """Create tables, with their indexes, as they are in `tables.py`."""
    metadata.create_all(op.get_bind(), [metadata.tables[name] for name in names], checkfirst=False)
