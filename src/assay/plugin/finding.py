"""Findings by name: what the trials of one kind of experiment show together. The contract is in `model/finding.py`."""

from __future__ import annotations

from assay.model.finding import Finding
from assay.plugin import lookup

__all__ = ["Finding", "finding_class"]


def finding_class(experiment: str) -> type[Finding] | None:
    """The finding of an experiment; None where it has none, or where that cannot be imported any more.

    Nothing is imported for an experiment without one.
    """
    found: type[Finding] | None = None
    if lookup.is_known("findings", experiment):
        found = lookup.find_available("findings", experiment)
    return found
