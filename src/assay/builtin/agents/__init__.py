"""Agents that come with Assay, each found by its name."""
