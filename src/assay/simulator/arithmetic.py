"""Finds and computes the sums in a prompt: the questions whose correct answer the simulated model knows.

A sum is a chain of two to eight numbers with + − × ÷ between them, without brackets. The patterns are bounded everywhere, in digits,
terms and in how much of a prompt is searched, because prompts come from outside and may be long or made to be slow.
"""

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
    # The question stands at the end of a prompt; examples with sums of their own come before it.
    text = prompt[-_LONGEST:]
    sums = [*_SPACED.finditer(text), *_ASKED.finditer(text)]
    if not sums:
        return None
    last = max(sums, key=lambda match: match.end())
    try:
        return _value(last[last.lastindex or 0])
    except (ZeroDivisionError, OverflowError):
        return None


def _value(expression: str) -> Number:
    """Multiplications and divisions are done as they come, into the last term; the terms are added up at the end."""
    first = re.match(_NUMBER, expression)
    assert first is not None
    terms: list[Number] = [_number(first.group())]
    signs = []
    for sign, text in _TERM.findall(expression, first.end()):
        if sign in "*×x":
            terms[-1] = mul(terms[-1], _number(text))
        elif sign in "/÷":
            # What divides evenly stays a whole number: a model answers 4, not 4.0, to 8 / 2.
            top, bottom = terms[-1], _number(text)
            is_exact = isinstance(top, int) and isinstance(bottom, int) and top % bottom == 0
            terms[-1] = int(top // bottom) if is_exact else top / bottom
        else:
            signs.append(add if sign == "+" else sub)
            terms.append(_number(text))
    total = terms[0]
    for operation, term in zip(signs, terms[1:], strict=True):
        total = operation(total, term)
    return total


def _number(text: str) -> Number:
    return float(text) if "." in text else int(text)


def format_number(value: Number) -> str:
    """As a model would write it: at most six decimals, and no zeros at the end.

    >>> format_number(19), format_number(2.5), format_number(1 / 3)
    ('19', '2.5', '0.333333')
    """
    return str(value) if isinstance(value, int) else f"{value:.6f}".rstrip("0").rstrip(".")
