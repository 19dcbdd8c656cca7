"""Experiments that ship with Assay."""
