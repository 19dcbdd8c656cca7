"""A Plan becomes executions: jobs, attempts, workers and what keeps them in bounds."""
