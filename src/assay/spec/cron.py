"""Cron expressions: when a suite is due.

Five fields as in Vixie cron: minute, hour, day of the month, month and day of the week, each a list of values, ranges and
steps, with names for months and days; or a macro such as `@daily`. `assay serve` runs suites by it, and `assay suite list --due` tells
other schedulers which are due.

Times are those of the clock on the wall, in the time zone of the moment that is asked about. Where that clock is put forward, what is
due in the hour that is left out comes due once, at the moment of the change. Where it is put back, what is due in the hour that comes
twice comes due the first time only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_YEARS_AHEAD = 8
"""29 February comes at least once in eight years, also around a century without a leap day."""


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five fields: its name for messages, its smallest and largest value, and the names that stand for values."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def values(self, text: str) -> frozenset[int]:
        """The numbers that one field matches: lists of values, ranges and steps."""
        return frozenset(value for part in text.split(",") for value in self._part(part))

    def _part(self, text: str) -> Iterator[int]:
        """The numbers of one part of a list: `*`, a value, a range or any of them with a step."""
        span, slash, step_text = text.partition("/")
        step = 1
        if slash:
            if not step_text.isdecimal() or int(step_text) == 0:
                raise ValueError(f"the step in '{text}' ({self.name}) must be a whole number of at least 1")
            step = int(step_text)
        if span == "*":
            low, high = self.low, self.high
        else:
            first, dash, last = span.partition("-")
            low = self._number(first)
            # As in Vixie cron, `5/15` means from 5 on in steps of 15.
            high = self._number(last) if dash else self.high if slash else low
            if high < low:
                raise ValueError(f"the range '{span}' ({self.name}) ends before it begins")
        return iter(range(low, high + 1, step))

    def _number(self, text: str) -> int:
        if text.lower() in self.names:
            return self.names.index(text.lower()) + (self.low if self.name == "month" else 0)
        if not text.isdecimal() or not self.low <= int(text) <= self.high:
            names = f", or {self.names[0]} to {self.names[-1]}" if self.names else ""
            article = "an" if self.name == "hour" else "a"
            raise ValueError(f"'{text}' is not {article} {self.name} ({self.low} to {self.high}{names})")
        return int(text)


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _DAYS),
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cron expression of five fields: minute, hour, day of the month, month, day of the week.

    `parse` raises ValueError that says which field is wrong. As in Vixie cron, if both days are
    restricted, one of them suffices. Times are those of the wall clock in the schedule's time zone.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    either_day: bool
    """Both days are restricted: cron then runs when either of them matches."""

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """The schedule that an expression means.

        An expression that can never come due is refused, since it would not be noticed.
        """
        if text.strip().startswith("@") and text.strip().lower() not in _MACROS:
            raise ValueError(f"'{text.strip()}' is not a schedule ({', '.join(_MACROS)})")
        fields = _MACROS.get(text.strip().lower(), text).split()
        if len(fields) != len(_FIELDS):
            raise ValueError(
                f"'{text}' has {len(fields)} fields, but a cron schedule has 5: minute hour day-of-month month day-of-week"
            )
        minutes, hours, days, months, weekdays = (
            field.values(written) for field, written in zip(_FIELDS, fields, strict=True)
        )
        # A rule of cron that surprises everybody once (crontab(5)): "0 0 13 * 5" is every 13th and every Friday.
        either_day = not fields[2].startswith("*") and not fields[4].startswith("*")
        schedule = cls(
            minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either_day=either_day
        )
        # 30 February passes every check of single fields.
        if schedule.next_after(datetime(2000, 1, 1)) is None:
            raise ValueError(f"'{text}' never matches: there is no such day")
        return schedule

    def next_after(self, moment: datetime) -> datetime | None:
        """The first time after `moment` that is due, in the same time zone; None if there is none within eight years."""
        if moment.tzinfo is None:
            return self._next_on_wall(moment)
        wall = self._next_on_wall(moment.replace(tzinfo=None, fold=0))
        while wall is not None:
            due = _instant_of(wall.replace(tzinfo=moment.tzinfo))
            # Behind us, in an hour that comes twice, is what was due in its first pass.
            if due > moment.astimezone(UTC):
                return due.astimezone(moment.tzinfo)
            wall = self._next_on_wall(wall)
        return None

    def latest_until(self, moment: datetime) -> datetime | None:
        """The last time up to `moment` that was due, in the same time zone; None if there was none within eight years."""
        # In UTC: datetimes of one zone are compared by the wall, on which an hour may come twice.
        end, back = moment.astimezone(UTC), timedelta(hours=1)
        while back < timedelta(days=366 * _YEARS_AHEAD):
            latest, due = None, self.next_after((end - back).astimezone(moment.tzinfo))
            while due is not None and due.astimezone(UTC) <= end:
                latest, due = due, self.next_after(due)
            if latest is not None:
                return latest
            back *= 2
        return None

    def _next_on_wall(self, moment: datetime) -> datetime | None:
        """The first minute after `moment` that matches on a clock that is never changed.

        The largest field that does not match is moved to its next value and the smaller ones are reset, so a year without a match
        takes a few hundred steps rather than half a million.

        >>> Schedule.parse("0 3 * * mon")._next_on_wall(datetime(2026, 5, 5, 12, 0))
        datetime.datetime(2026, 5, 11, 3, 0)
        """
        due = (moment + timedelta(minutes=1)).replace(second=0, microsecond=0)
        last = moment.year + _YEARS_AHEAD
        while due.year <= last:
            if due.month not in self.months:
                first = due.replace(day=1, hour=0, minute=0)
                due = (first + timedelta(days=32)).replace(day=1)
            elif not self._matches_day(due):
                due = (due + timedelta(days=1)).replace(hour=0, minute=0)
            elif due.hour not in self.hours:
                due = (due + timedelta(hours=1)).replace(minute=0)
            elif due.minute not in self.minutes:
                due += timedelta(minutes=1)
            else:
                return due
        return None

    def _matches_day(self, moment: datetime) -> bool:
        of_month, of_week = moment.day in self.days, (moment.weekday() + 1) % 7 in self.weekdays
        return of_month or of_week if self.either_day else of_month and of_week


def next_due(schedule: str | None, now: datetime) -> datetime | None:
    """The first time after `now` of a cron expression, in the time zone of `now`; None where there is no schedule."""
    if schedule is None:
        return None
    try:
        return Schedule.parse(schedule).next_after(now)
    except ValueError:  # stored before schedules were checked
        return None


def _instant_of(wall: datetime) -> datetime:
    """When a clock on the wall shows this, in UTC: the first time if it does so twice; if never, when it jumps over it."""
    # The two readings (PEP 495) of a time that is left out lie on either side of the change.
    after, before = wall.replace(fold=0).astimezone(UTC), wall.replace(fold=1).astimezone(UTC)
    if before >= after:
        return after
    old = before.astimezone(wall.tzinfo).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) / 2
        if middle.astimezone(wall.tzinfo).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after.replace(microsecond=0)
