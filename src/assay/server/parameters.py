"""What requests may hold, checked before anything else sees it: names, pages and periods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from fastapi import Query
from pydantic import StringConstraints

from assay.server.configuration import Name

__all__ = ["Before", "Name", "PageSize", "Text", "Timeframe", "find_start"]

Text = Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00]*$")]
"""A few lines of a person."""
PageSize = Annotated[int, Query(ge=1, le=1000, description="At most this many rows.")]
Before = Annotated[
    int | None,
    Query(ge=1, le=2**31 - 1, description="`next_cursor` of the page before; left out for the first."),
]
Timeframe = Literal["latest", "24h", "7d", "30d", "all"]
_DAYS = {"24h": 1, "7d": 7, "30d": 30}


def find_start(timeframe: Timeframe) -> datetime | None:
    """When a period begins; None if it has no beginning."""
    days = _DAYS.get(timeframe)
    return datetime.now(UTC) - timedelta(days=days) if days else None
