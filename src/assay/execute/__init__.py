"""Turns a Plan into executions: jobs, attempts, workers and the limits on them."""
