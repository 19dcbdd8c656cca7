"""How people write quantities that vary: `500`, `500±100`, `500..700`, `exp:500`; times with units.

Options of `assay load` such as `--input-tokens` and `--think` use them. `500±100` is a normal distribution with its standard
deviation, `500..700` a uniform one and `exp:500` an exponential one with its mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.errors import Mistake, SpecError
from assay.model.variate import Variate
from assay.spec.load_settings import MOST_TOKENS, seconds_of

_SPREAD = re.compile(r"\s*(?:±|\+-|\+/-)\s*")


def tokens_of(text: str | int, option: str) -> Variate:
    """
    >>> tokens_of("500±100", "--input-tokens")
    Variate(kind='normal', first=500.0, second=100.0)
    """
    variate = variate_of(str(text), option, lambda part: _whole(part, option), "500, 500±100 or 500..700")
    if not 1 <= variate.mean <= MOST_TOKENS or variate.second > MOST_TOKENS:
        raise _wrong(option, f"'{text}' is not between 1 and {MOST_TOKENS} tokens.")
    return variate


def times_of(text: str, option: str) -> Variate:
    """
    >>> times_of("0.5s..2s", "--think").mean, times_of("exp:1s", "--think").kind
    (1.25, 'exponential')
    """
    return variate_of(text, option, lambda part: seconds_of(part, option), "1s, 1s±300ms, 0.5s..2s or exp:1s")


def variate_of(text: str, option: str, number: Callable[[str], float], examples: str) -> Variate:
    """The distribution that a text stands for; `number` reads its numbers, `examples` are for messages."""
    if text.startswith("exp:"):
        return Variate("exponential", number(text.removeprefix("exp:")))
    if len(parts := _SPREAD.split(text)) == 2:
        mean, deviation = number(parts[0]), number(parts[1])
        if deviation < 0:
            raise _wrong(option, f"'{text}': a deviation cannot be negative. Write {examples}.")
        return Variate("normal", mean, deviation)
    if len(parts := text.split("..")) == 2:
        first, last = number(parts[0]), number(parts[1])
        if first > last:
            raise _wrong(option, f"'{text}': the first number is the lower one, as in {examples}.")
        return Variate("uniform", first, last)
    return Variate("constant", number(text))


def _whole(text: str, option: str) -> float:
    try:
        return float(int(text))
    except ValueError:
        raise _wrong(
            option, f"'{text}' is not a number of tokens. Write 500, 500±100, 500..700 or exp:500."
        ) from None


def window_of(text: str) -> tuple[float, float]:
    """
    >>> window_of("10m..20m")
    (600.0, 1200.0)
    """
    parts = text.split("..")
    if len(parts) != 2:
        raise _wrong("--window", f"'{text}' is not a part of a trace. Write from and to, as in 10m..20m.")
    begin, end = (seconds_of(part, "--window") for part in parts)
    if begin >= end:
        raise _wrong("--window", f"'{text}' ends before it begins.")
    return begin, end


def share_of(text: str | float, option: str) -> float:
    """
    >>> share_of("10%", "--cancel-share"), share_of("0.25", "--cancel-share")
    (0.1, 0.25)
    """
    written = str(text).strip()
    try:
        share = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    except ValueError:
        raise _wrong(option, f"'{text}' is not a share. Write 10% or 0.1.") from None
    if not 0 < share <= 1:
        raise _wrong(option, f"'{text}' must be more than 0 and at most 100%.")
    return share


def _wrong(option: str, text: str) -> SpecError:
    return SpecError([Mistake(option, None, "", text)])
