"""Finding and answering the sums in a prompt."""

from __future__ import annotations

import re
from operator import add, mul, sub

_NUMBER = r"-?\d{1,15}(?:\.\d{1,9})?"
_SPACED = re.compile(rf"(?<![\w.])({_NUMBER}(?:(?:\s*[+*×÷]\s*|\s+[-−/x]\s+){_NUMBER}){{1,7}})(?!\w)")
# A bare minus or slash also stands in dates, ranges and paths: there it counts only where a sum is asked for.
_TIGHT = rf"(?!\d{{4}}-\d\d-\d\d)({_NUMBER}(?:\s*[-+*/×÷−]\s*{_NUMBER}){{1,7}})(?!\w)"
_ASKED = re.compile(
    rf"^\s*{_TIGHT}\s*$|\b(?:is|compute|calculate|evaluate|solve)\s+{_TIGHT}|(?<![\w.-]){_TIGHT}(?=\s*[=?])",
    re.IGNORECASE,
)
_TERM = re.compile(rf"\s*([-+*/×÷−x])\s*({_NUMBER})")
_LONGEST = 2_000

Number = int | float


def sum_in(prompt: str) -> Number | None:
    """The value of the last sum in the text, if there is one.

    >>> sum_in("What is 3*4?"), sum_in("2 + 3 * 4 ="), sum_in("born 2024-01-05, 1-2 words"), sum_in("1/0?")
    (12, 14, None, None)
    """
    text = prompt[-_LONGEST:]
    found = [*_SPACED.finditer(text), *_ASKED.finditer(text)]
    if not found:
        return None
    last = max(found, key=lambda one: one.end())
    try:
        return _value(last[last.lastindex or 0])
    except (ZeroDivisionError, OverflowError):
        return None


def _value(expression: str) -> Number:
    first = re.match(_NUMBER, expression)
    assert first is not None
    terms: list[Number] = [_number(first.group())]
    signs = []
    for sign, text in _TERM.findall(expression, first.end()):
        if sign in "*×x":
            terms[-1] = mul(terms[-1], _number(text))
        elif sign in "/÷":
            terms[-1] = _quotient(terms[-1], _number(text))
        else:
            signs.append(add if sign == "+" else sub)
            terms.append(_number(text))
    total = terms[0]
    for operation, term in zip(signs, terms[1:], strict=True):
        total = operation(total, term)
    return total


def _number(text: str) -> Number:
    return float(text) if "." in text else int(text)


def _quotient(top: Number, bottom: Number) -> Number:
    exact = isinstance(top, int) and isinstance(bottom, int) and top % bottom == 0
    return int(top // bottom) if exact else top / bottom


def written(value: Number) -> str:
    """
    >>> written(19), written(2.5), written(1 / 3)
    ('19', '2.5', '0.333333')
    """
    return str(value) if isinstance(value, int) else f"{value:.6f}".rstrip("0").rstrip(".")
