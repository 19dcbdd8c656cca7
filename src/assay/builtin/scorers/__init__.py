"""Scorers that ship with us; each is an entry point of the group `assay.scorers`."""
