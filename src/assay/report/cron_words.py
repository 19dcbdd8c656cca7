"""Cron expressions in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from assay.spec.cron import Schedule
from assay.units import and_list

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")  # fmt: skip
_FEW = 4
_MINUTES, _HOURS, _MONTH_DAYS = 60, 24, 31


def describe_schedule(expression: str) -> str:
    """When a suite runs; ValueError for what is no cron expression.

    >>> describe_schedule("30 6 * * mon-fri")
    'at 06:30, Monday to Friday'
    >>> describe_schedule("*/15 * * * *"), describe_schedule("@weekly")
    ('every 15 minutes, every day', 'at 00:00, on Sunday')
    >>> describe_schedule("0 0 13 * 5")
    'at 00:00, on day 13 of the month or on Friday'
    """
    schedule = Schedule.parse(expression)
    parts = [_describe_times(sorted(schedule.minutes), sorted(schedule.hours)), _describe_days(schedule)]
    if len(schedule.months) < len(_MONTHS):
        parts.append(f"in {and_list([_MONTHS[month - 1] for month in sorted(schedule.months)])}")
    return ", ".join(parts)


def _describe_times(minutes: Sequence[int], hours: Sequence[int]) -> str:
    if len(hours) * len(minutes) <= _FEW:
        return f"at {and_list([f'{hour:02}:{minute:02}' for hour in hours for minute in minutes])}"
    if len(hours) == _HOURS:
        within = ""
    elif _is_range(hours):
        within = f" from {hours[0]:02}:00 to {hours[-1]:02}:59"
    elif step := _find_step(hours, _HOURS):
        within = f" every {step} hours"
    else:
        within = f" in the hours {and_list([str(hour) for hour in hours])}"
    if len(minutes) == 1:
        return f"at minute {minutes[0]} of every hour{within}" if not within.startswith(" every") else f"every {_find_step(hours, _HOURS)} hours at minute {minutes[0]}"  # fmt: skip
    step = _find_step(minutes, _MINUTES)
    if step == 1:
        return f"every minute{within}"
    if step:
        return f"every {step} minutes{within}"
    return f"at the minutes {and_list([str(minute) for minute in minutes])}{within or ' of every hour'}"


def _describe_days(schedule: Schedule) -> str:
    of_month = "" if len(schedule.days) == _MONTH_DAYS else f"on day {and_list([str(day) for day in sorted(schedule.days)])} of the month"  # fmt: skip
    of_week = "" if len(schedule.weekdays) == len(_DAYS) else _describe_weekdays(schedule.weekdays)
    joint = " or " if schedule.either_day else " if that is "
    return joint.join(filter(None, (of_month, of_week))) or "every day"


def _describe_weekdays(weekdays: Collection[int]) -> str:
    # From Monday, so that a weekend is at the end of its week.
    days = sorted(weekdays, key=lambda day: (day - 1) % 7)
    if len(days) > 2 and _is_range([(day - 1) % 7 for day in days]):
        return f"{_DAYS[days[0]]} to {_DAYS[days[-1]]}"
    return f"on {and_list([_DAYS[day] for day in days])}"


def _is_range(values: Sequence[int]) -> bool:
    return len(values) > 1 and list(values) == list(range(values[0], values[-1] + 1))


def _find_step(values: Sequence[int], whole: int) -> int:
    """The step of values that go round evenly from 0; 0 if they do not."""
    if len(values) < 2 or values[0] != 0:
        return 0
    step = values[1]
    return step if whole % step == 0 and list(values) == list(range(0, whole, step)) else 0
