"""Agents under load: load tests, capacity, stress tests and teams."""
