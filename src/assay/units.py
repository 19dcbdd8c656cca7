"""Base units are used inside (seconds, bytes, usd); here they are written for people."""

from __future__ import annotations

import math

Seconds = float
Bytes = int
Usd = float

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def seconds(value: float) -> str:
    """
    >>> seconds(0.0123), seconds(95), seconds(2.5e-8)
    ('12.3 ms', '1 min 35 s', '25 ns')
    """
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 60:
        return _minutes(value)
    for size, unit in _TIMES:
        if abs(value) >= size:
            return f"{significant(value / size)} {unit}"
    return f"{significant(value * 1e9)} ns"


def _minutes(value: float) -> str:
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def size(value: float) -> str:
    """
    >>> size(512), size(3 * 2**20)
    ('512 B', '3 MiB')
    """
    for step, unit in _SIZES:
        if abs(value) >= step:
            return f"{significant(value / step)} {unit}"
    return f"{significant(value)} B"


def usd(value: float) -> str:
    """
    >>> usd(1.5), usd(0.00042)
    ('$1.50', '$0.00042')
    """
    return f"${value:.2f}" if abs(value) >= 0.1 or value == 0 else f"${significant(value)}"


def percent(share: float) -> str:
    """
    >>> percent(0.031), percent(1.5)
    ('3.1 %', '150 %')
    """
    return f"{significant(share * 100)} %"


def count(value: float) -> str:
    """
    >>> count(1234567)
    '1,234,567'
    """
    return f"{round(value):,}"


def counted(value: float, thing: str) -> str:
    """
    >>> counted(1, "request"), counted(1200, "request")
    ('1 request', '1,200 requests')
    """
    return f"{count(value)} {thing}" if round(value) == 1 else f"{count(value)} {thing}s"


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
