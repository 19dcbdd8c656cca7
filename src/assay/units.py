"""Formats numbers with units for people.

All code computes and stores in base units: seconds, bytes, US dollars and shares from 0 to 1. Only text for people is made
here, with three significant digits and the unit that fits: 0.0123 becomes "12.3 ms". Machine-readable documents keep base
units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Seconds = float
Bytes = int
Usd = float

Steps = tuple[tuple[float, str], ...]
"""Shown units of a quantity, the largest first: the factor to the base unit, and the label."""

TIMES: Steps = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
SIZES: Steps = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))

_SHORTEST = 1e-12
"""Seconds below a picosecond are rounding errors: no clock resolves them."""
_DUST = 1e-12
"""Relative to the operands, what a subtraction of equal floating-point numbers may leave."""


def drop_rounding_error(difference: float, *operands: float) -> float:
    """The difference, or exactly 0 where it is no more than the rounding error of its operands.

    >>> drop_rounding_error(0.1 + 0.2 - 0.3, 0.3), drop_rounding_error(0.25, 1.0)
    (0.0, 0.25)
    """
    reach = max((abs(operand) for operand in operands if math.isfinite(operand)), default=0.0)
    return 0.0 if abs(difference) <= _DUST * reach else difference


def step_for(value: float, steps: Steps) -> tuple[float, str]:
    """The largest unit in which the value, as it is shown, is at least 1: 999.6 µs is shown in milliseconds.

    >>> step_for(0.0009996, TIMES), step_for(0.0009994, TIMES)
    ((0.001, 'ms'), (1e-06, 'µs'))
    """
    return next((step for step in steps if _round_to_shown(abs(value) / step[0]) >= 1), steps[-1])


def _round_to_shown(value: float) -> float:
    return float(f"{value:.2e}")


def seconds(value: float) -> str:
    """
    >>> seconds(0.0123), seconds(95), seconds(2.5e-8), seconds(0.0009996), seconds(0)
    ('12.3 ms', '1 min 35 s', '25 ns', '1 ms', '0 s')
    """
    if not math.isfinite(value):
        return "–"
    if abs(value) < _SHORTEST:
        return "0 s"
    if _round_to_shown(abs(value)) >= 60:
        return _minutes(value)
    size, unit = step_for(value, TIMES)
    return f"{significant(value / size)} {unit}"


def _minutes(value: float) -> str:
    minutes, rest = divmod(round(abs(value)), 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if value < 0 else ""
    return f"{sign}{hours} h {minutes} min" if hours else f"{sign}{minutes} min {rest} s"


def size(value: float) -> str:
    """
    >>> size(512), size(3 * 2**20), size(2**20 - 1)
    ('512 B', '3 MiB', '1 MiB')
    """
    step, unit = step_for(value, SIZES)
    return f"{significant(value / step)} {unit}"


def usd(value: float) -> str:
    """
    >>> usd(1.5), usd(0.00042), usd(-2), usd(0.09999)
    ('$1.50', '$0.00042', '-$2.00', '$0.10')
    """
    sign, amount = "-" if value < 0 else "", abs(value)
    return (
        f"{sign}${amount:,.2f}"
        if _round_to_shown(amount) >= 0.1 or amount == 0
        else f"{sign}${significant(amount)}"
    )


def percent(share: float) -> str:
    """
    >>> percent(0.031), percent(1.5)
    ('3.1 %', '150 %')
    """
    return f"{significant(share * 100)} %"


def format_signed(value: float, digits: int = 3) -> str:
    """
    >>> format_signed(3.14159), format_signed(-0.5), format_signed(0.0), format_signed(float("inf"))
    ('+3.14', '−0.5', '0', '∞')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = significant(abs(value), digits)
    return text if text == "0" else f"{'+' if value > 0 else '−'}{text}"


def count(value: float) -> str:
    """
    >>> count(1234567)
    '1,234,567'
    """
    return f"{round(value):,}"


def format_count(value: float, thing: str) -> str:
    """
    >>> format_count(1, "request"), format_count(1200, "request")
    ('1 request', '1,200 requests')
    """
    return f"{count(value)} {thing}" if round(value) == 1 else f"{count(value)} {thing}s"


def signal_name(number: int) -> str:
    """Real-time signals have no name of their own, and a process can end with any number.

    >>> signal_name(9), signal_name(40)
    ('SIGKILL', 'signal 40')
    """
    from signal import Signals

    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def and_list(names: Sequence[str], most: int | None = None) -> str:
    """
    >>> and_list([]), and_list(["a"]), and_list(["a", "b", "c"]), and_list(list("abcdef"), most=4)
    ('', 'a', 'a, b and c', 'a, b, c, d and 2 more')
    """
    left = len(names) - most if most is not None else 0
    parts = [*names[:most], f"{left} more"] if left > 0 else list(names)
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def significant(value: float, digits: int = 3) -> str:
    """A number with that many significant digits, no exponent for everyday sizes.

    >>> significant(1234.5), significant(0.00012345), significant(10.0)
    ('1,234', '0.000123', '10')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    exponent = math.floor(math.log10(abs(value)))
    if exponent < -6 or exponent > 12:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - exponent)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def show(value: float, unit: str) -> str:
    """A value of a metric, by the metric's unit.

    >>> show(0.25, "s"), show(1500, "1/s"), show(0.5, ""), show(0.5, "share"), show(2e-19, "share")
    ('250 ms', '1,500 /s', '0.5', '50 %', '0 %')
    """
    if not math.isfinite(value):
        return "–"
    match unit:
        case "s":
            return seconds(value)
        case "bytes":
            return size(value)
        case "usd":
            return usd(value)
        case "%":
            return f"{significant(value)} %"
        case "share":
            return percent(round(value, 6))
        case "1/s":
            return f"{significant(value)} /s"
        case "":
            return significant(value)
        case _:
            return f"{significant(value)} {unit}"
