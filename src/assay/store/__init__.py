"""Executions to and from a database: SQLite by default, PostgreSQL by URL."""
