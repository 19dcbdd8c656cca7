"""Cron schedules. The expected times follow crontab(5)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.wording import Wording

from assay.spec.cron import Schedule

NOW = datetime(2026, 5, 5, 12, 30, 20, tzinfo=UTC)
"""A Tuesday."""


@pytest.mark.parametrize(
    ("text", "next_time"),
    [
        ("* * * * *", "2026-05-05T12:31"),
        ("0 3 * * 1", "2026-05-11T03:00"),
        ("0 3 * * MON", "2026-05-11T03:00"),
        ("*/15 * * * *", "2026-05-05T12:45"),
        ("5/20 * * * *", "2026-05-05T12:45"),
        ("0 9-17/4 * * mon-fri", "2026-05-05T13:00"),
        ("30 12 5 5 *", "2027-05-05T12:30"),
        ("0 0 29 feb *", "2028-02-29T00:00"),
        ("0 0 * * 7", "2026-05-10T00:00"),
        ("0 0 13 * fri", "2026-05-08T00:00"),  # both days are restricted: either of them counts
        ("0 0 31 * *", "2026-05-31T00:00"),
        ("59 23 31 12 *", "2026-12-31T23:59"),
        ("0,30 8 1,15 jan,jul *", "2026-07-01T08:00"),
        ("@monthly", "2026-06-01T00:00"),
        ("@hourly", "2026-05-05T13:00"),
    ],
)
def test_the_next_time_is_the_one_that_cron_would_choose(text: str, next_time: str) -> None:
    found = Schedule.parse(text).next_after(NOW)
    assert found is not None
    assert found.isoformat(timespec="minutes") == f"{next_time}+00:00"


@pytest.mark.parametrize(
    ("text", "blamed"),
    [
        ("0 3 * *", "4"),
        ("0 3 * * 1 2026", "6"),
        ("60 * * * *", "'60' 0 59"),
        ("0 24 * * *", "'24' 23"),
        ("0 0 0 * *", "'0' 1 31"),
        ("0 0 * janu *", "'janu'"),
        ("0 0 * * 8", "'8'"),
        ("*/0 * * * *", "step"),
        ("5-1 * * * *", "'5-1'"),
        ("0 0 30 feb *", "feb"),
        ("@never", "'@never'"),
        ("", "0"),
        ("-1 * * * *", "'' 0 59"),
        ("² * * * *", "'²' 0 59"),
    ],
)
def test_what_is_no_schedule_is_refused_with_the_field_that_is_wrong(
    wording: Wording, text: str, blamed: str
) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        Schedule.parse(text)
    assert [part for part in blamed.split() if part not in str(refused.value)] == []
    wording(refused.value)
