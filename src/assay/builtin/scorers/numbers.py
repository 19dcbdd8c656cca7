"""The number that a text gives as its answer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

_SPACES = "\u00a0\u2009\u202f"
_DIGITS = rf"\d{{1,3}}(?:[,_{_SPACES}]\d{{3}})+(?!\d)|\d+"
_CURRENCY = r"[$€£¥₹]"
_NUMBER = re.compile(
    rf"""
    (?:(?<![\w)\]])(?P<sign>[-+−–]))?  {_CURRENCY}?[ ]?  (?P<late_sign>(?<={_CURRENCY})[-−])?
    (?:
        (?P<mixed>\d{{1,9}})[ ](?=\d{{1,9}}/\d)  (?P<part>\d{{1,9}})/(?P<of>\d{{1,9}})(?![/\d])
      | (?P<upper>{_DIGITS})[ ]?/[ ]?(?P<lower>{_DIGITS})(?!\s?/|[.,]?\d)
      | (?P<whole>{_DIGITS})?(?P<rest>\.\d+|(?<=\d)\.(?![.\w]))?
        (?P<exponent>(?<=[\d.])(?:[eE][-+−]?\d{{1,4}}(?!\w)|[ ]?[×x*·][ ]?10\^?\{{?[-−+]?\d{{1,4}}\}}?))?
    )
    (?P<percent>[ ]?%)?
    """,
    re.VERBOSE,
)
