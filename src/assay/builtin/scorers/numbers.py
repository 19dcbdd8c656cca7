"""The number that a text gives as its answer.

Outputs write numbers in many ways: 1,234.5, 12 %, 3/4, 1 3/4, 2×10^6, $5, \\frac{1}{2}. They also mark the answer, as
GSM8K does with `####` and MATH with \\boxed{}. A marked number goes before all others; without a mark the last or the first
number counts. Only a bounded part of an output is read, because outputs may be of any length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_WINDOWS = (500, 100_000)
"""Characters from the end that are searched: few at first, because the answer usually stands there."""
_MOST_MARKS = 20
_MOST_DIGITS = 300
_BEYOND = 10**_MOST_DIGITS
_CURRENCY = r"\\?[$€£¥₹]\s?"
_SEPARATOR = "[,_\u00a0\u2009\u202f]"
_NUMBER = re.compile(
    rf"""(?<![A-Za-z\d])
    (?P<digits>(?:\d{{1,3}}(?:{_SEPARATOR}\d{{3}})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)
    (?:(?P<exponent>[eE][-+−]?\d{{1,4}}(?![\w.]))|\s?(?:×|x|\*|·|\\times|\\cdot)\s?10\^\{{?(?P<power>[-+−]?\d{{1,4}}))?
    (?P<over>\s?/\s?\d+(?!\d|\.\d|\s?/)|[ ]\d{{1,6}}/\d{{1,6}}(?![\d/]))?
    (?P<percent>\s?\\?%)?""",
    re.VERBOSE,
)
_MINUS = re.compile(rf"(?:^|[^\w)\]}}])[-−–](?:{_CURRENCY})?$|{_CURRENCY}[-−]$")
_SEPARATORS = str.maketrans("−", "-", ",_\u00a0\u2009\u202f")
_FRACTION = re.compile(r"(\d?)\\[dt]?frac\s?\{?(\d+)\}?\s?\{?(\d+)\}?")
_THIN_SPACES = re.compile(r"\{,\}|\\[,!;]\s?(?=\d{3})")


class Number(NamedTuple):
    value: float
    """A whole number without point, fraction or exponent is an int."""
    is_percent: bool = False

    def __str__(self) -> str:
        return f"{self.value:g}%" if self.is_percent else f"{self.value:.12g}"


def number_in(value: object, which: str) -> Number | None:
    """Read a number from an output.

    A number stands for itself. In a text it is what the text marks as its answer, or else its last or
    first number.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return Number(value) if abs(value) < _BEYOND else None
    if not isinstance(value, str):
        return None
    text = value
    if "\\" in text or "{,}" in text:
        # LaTeX's thousands and fractions as plain ones.
        text = _THIN_SPACES.sub(lambda space: "," if space[0] == "{,}" else "", text)
        text = _FRACTION.sub(lambda f: f"{f[1]}{' ' if f[1] else ''}{f[2]}/{f[3]}", text)
    if marked := _after_mark(text):
        return marked
    box = text.rfind("\\boxed{")
    boxed = _find_number(_cut_at_closing_brace(text[box + 7 : box + 507]), "last") if box >= 0 else None
    return boxed or _find_number(text, which)


def _find_number(text: str, which: str) -> Number | None:
    """Outputs may be of any length: only one end of them is read."""
    if which == "first":
        return next(_numbers(text, _NUMBER.finditer(text, 0, _WINDOWS[-1])), None)
    for size in _WINDOWS:
        end = text[-size:]
        matches = reversed(list(_NUMBER.finditer(end)))
        # A number at the very start of a window may have begun before it.
        number = next(
            _numbers(end, (match for match in matches if match.start() or len(end) == len(text))), None
        )
        if number is not None:
            return number
    return None


def _numbers(text: str, matches: Iterable[re.Match[str]]) -> Iterator[Number]:
    return (number for match in matches if (number := _number(text, match)) is not None)


def _number(text: str, match: re.Match[str]) -> Number | None:
    value = _magnitude(match)
    if value is None:
        return None
    start = match.start()
    is_negative = start > 0 and _MINUS.search(text[max(0, start - 5) : start]) is not None
    return Number(-value if is_negative else value, match["percent"] is not None)


def _magnitude(match: re.Match[str]) -> float | None:
    """Compute the value of a matched number; None for what no number can hold, such as a fraction over zero."""
    digits = match["digits"].translate(_SEPARATORS)
    exponent = match["exponent"] or (f"e{match['power']}" if match["power"] else "")
    if not exponent and not match["over"] and "." not in digits and len(digits) <= _MOST_DIGITS:
        return int(digits)
    value = float(digits + exponent.translate(_SEPARATORS))
    return _apply_fraction(value, match["over"]) if match["over"] else value


def _apply_fraction(value: float, over: str) -> float | None:
    """`3` over `/4` is a fraction, `1` over ` 3/4` a mixed number."""
    upper, _, lower = over.partition("/")
    below = float(lower)
    if not below:
        return None
    if not upper.strip():
        return value / below
    return value + float(upper) / below


def _after_mark(text: str) -> Number | None:
    """The answer after `####`; headings in Markdown look alike and are passed over."""
    place = len(text)
    for _ in range(_MOST_MARKS):
        place = text.rfind("####", 0, place)
        if place < 0:
            return None
        line = text[place + 4 : place + 304].lstrip().partition("\n")[0]
        match = _NUMBER.search(line)
        if match is None:
            continue
        before, after = line[: match.start()], line[match.end() :]
        is_answer = "answer" in before.lower() or not any(map(str.isalpha, before))
        is_enumeration = after[:1] in (".", ")", ":") and any(map(str.isalpha, after))
        if is_answer and not is_enumeration:
            return _number(line, match)
    return None


def _cut_at_closing_brace(text: str) -> str:
    """What stands before the brace that closes one opened before the text."""
    depth = 1
    for index, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if not depth:
            return text[:index]
    return text
