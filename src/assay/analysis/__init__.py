"""Executions to findings: pure functions that get their data as arguments."""
