"""Cron schedules. The expected times follow crontab(5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

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


def _times(text: str, zone: str, day: str) -> list[str]:
    """All times of a schedule on a day of the clock on the wall, in UTC."""
    schedule = Schedule.parse(text)
    begin = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    moment, found = (begin.astimezone(UTC) - timedelta(minutes=1)).astimezone(begin.tzinfo), []
    while (due := schedule.next_after(moment)) is not None and due.date() == begin.date():
        found.append(f"{due.astimezone(UTC):%H:%M}")
        moment = due
    return found


@pytest.mark.parametrize(
    ("text", "zone", "day", "utc"),
    [
        # In Berlin, 02:00 to 03:00 is left out on 29 March and comes twice on 25 October 2026.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28", ["01:30"]),
        ("30 2 * * *", "Europe/Berlin", "2026-03-29", ["01:00"]),
        ("0,30 2 * * *", "Europe/Berlin", "2026-03-29", ["01:00"]),
        ("30 2,3 * * *", "Europe/Berlin", "2026-03-29", ["01:00", "01:30"]),
        ("0 1-4 * * *", "Europe/Berlin", "2026-03-29", ["00:00", "01:00", "02:00"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25", ["00:30"]),
        ("0 1-4 * * *", "Europe/Berlin", "2026-10-25", ["23:00", "00:00", "02:00", "03:00"]),
        # Half an hour on Lord Howe Island; a whole day on Samoa, which crossed the date line.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-04", ["15:30"]),
        ("0 12 * * *", "Pacific/Apia", "2011-12-31", ["10:00", "22:00"]),
    ],
)
def test_hours_that_the_clock_leaves_out_or_repeats_count_once(
    text: str, zone: str, day: str, utc: list[str]
) -> None:
    assert _times(text, zone, day) == utc


@pytest.mark.parametrize(("month", "day"), [(3, 29), (10, 25)])
@pytest.mark.parametrize("text", ["30 2 * * *", "*/20 * * * *", "0 * * * *"])
def test_asking_at_any_minute_gives_the_same_times(text: str, month: int, day: int) -> None:
    schedule, zone = Schedule.parse(text), ZoneInfo("Europe/Berlin")
    begin = datetime(2026, month, day, tzinfo=zone).astimezone(UTC)
    minutes = [begin + timedelta(minutes=minute) for minute in range(6 * 60)]
    ahead = {due for at in minutes if (due := schedule.next_after(at.astimezone(zone)))}
    walked, moment = set(), minutes[0].astimezone(zone)
    while (due := schedule.next_after(moment)) and due.astimezone(UTC) <= max(ahead).astimezone(UTC):
        walked.add(due.astimezone(UTC))
        moment = due
    assert {due.astimezone(UTC) for due in ahead} == walked
    for at in minutes:
        latest = schedule.latest_until(at.astimezone(zone))
        assert latest is not None
        following = schedule.next_after(latest)
        assert following is not None
        assert latest.astimezone(UTC) <= at < following.astimezone(UTC)


def test_the_latest_time_is_found_however_long_ago_it_was() -> None:
    for text, latest in (
        ("0 0 29 feb *", "2024-02-29T00:00"),
        ("* * * * *", "2026-05-05T12:30"),
        ("30 12 * * *", "2026-05-05T12:30"),
        ("31 12 * * *", "2026-05-04T12:31"),
        ("0 3 * * 1", "2026-05-04T03:00"),
    ):
        found = Schedule.parse(text).latest_until(NOW)
        assert found is not None
        assert found.isoformat(timespec="minutes") == f"{latest}+00:00"
