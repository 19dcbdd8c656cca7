"""Alembic's scripts: how each revision of the schema is made from the one before."""
