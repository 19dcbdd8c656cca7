from __future__ import annotations

import math
from typing import ClassVar, Literal

from assay.builtin.scorers.numbers import Number, number_in
from assay.builtin.scorers.options import number, one_of
from assay.builtin.scorers.text_normalization import (
    NO_OUTPUT,
    NOTHING_EXPECTED,
    RIGHT,
    alternatives,
    is_missing,
    text_of,
)
from assay.model import Case
from assay.plugin import Judged, Judgement

_RELATIVE = 1e-6


class Numeric:
    """The number in the output is the expected one.

    Two whole numbers must be equal unless a tolerance is given; others may differ by a millionth of their size.

    Args:
        tolerance: Maximum difference that counts as correct.
        relative: The same as a share of the expected number; 0.01 is 1 %.
        which: Which number of an output with several counts.

    Example:
        scorer: {name: numeric, relative: 0.01}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected",)

    def __init__(
        self,
        *,
        tolerance: float = 0.0,
        relative: float | None = None,
        which: Literal["last", "first"] = "last",
    ) -> None:
        self._tolerance = number("numeric", "tolerance", tolerance)
        self._relative = None if relative is None else number("numeric", "relative", relative)
        self._which = one_of("numeric", "which", which, ("last", "first"))

    def score(self, judged: Judged) -> Judgement:
        if is_missing(judged.expected):
            return NOTHING_EXPECTED
        wanted = [
            found
            for value in alternatives(judged.expected)
            if (found := self._find_number(value)) is not None
        ]
        if not wanted:
            return Judgement(None, "the expected output holds no number")
        if judged.output is None:
            return NO_OUTPUT
        given = self._find_number(judged.output)
        if given is None:
            return Judgement(0.0, "there is no number in the output")
        return (
            RIGHT
            if any(self._is_same_number(given, number) for number in wanted)
            else Judgement(0.0, f"found {given}")
        )

    def example(self, expected: object, case: Case) -> object:
        """A structure is read as its text, so it is given as such."""
        candidates = () if is_missing(expected) else alternatives(expected)
        return next((text_of(value) for value in candidates if self._find_number(value) is not None), None)

    def _find_number(self, value: object) -> Number | None:
        is_structure = isinstance(value, dict | list | tuple)
        return number_in(text_of(value) if is_structure else value, self._which)

    def _is_same_number(self, given: Number, wanted: Number) -> bool:
        """50 % is 50 and is 0.5: what is meant depends on how the other side is written."""
        if self._close(given.value, wanted.value):
            return True
        if given.is_percent == wanted.is_percent:
            return False
        share, plain = (given, wanted) if given.is_percent else (wanted, given)
        return self._close(share.value / 100, plain.value)

    def _close(self, a: float, b: float) -> bool:
        if a == b:
            return True
        both_whole = isinstance(a, int) and isinstance(b, int)
        relative = self._relative if self._relative is not None else 0.0 if both_whole else _RELATIVE
        return math.isfinite(a - b) and abs(a - b) <= max(self._tolerance, relative * max(abs(a), abs(b)))
