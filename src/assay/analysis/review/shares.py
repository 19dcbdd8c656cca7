"""Counts as shares with Wilson's interval."""

from __future__ import annotations

from assay.model.figure import Share
from assay.stats.verdicts import wilson


def compute_share(count: int, of: int, worth: float | None = None) -> Share:
    """The share of `count` in `of`; `worth` is the number of independent observations, if they are fewer.

    >>> compute_share(0, 0)
    Share(count=0, of=0, value=None, low=None, high=None)
    """
    if not of:
        return Share(count, of)
    low, high = wilson(count / of, of if worth is None else worth)
    return Share(count, of, count / of, low, high)
