"""Many machines: PostgreSQL at ten million executions, copies of databases, and what limits a cluster."""
