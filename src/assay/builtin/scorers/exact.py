from __future__ import annotations

from typing import ClassVar

from assay.builtin.scorers.options import flag
from assay.builtin.scorers.text_normalization import (
    NOTHING_EXPECTED,
    RIGHT,
    WRONG,
    first_alternative,
    is_missing,
    text_of,
)
from assay.builtin.scorers.values import Likeness
from assay.model import Case
from assay.plugin import Judged, Judgement

_PLAIN = Likeness()


class Exact:
    """The output equals the expected output, or one of several: text is compared without surrounding whitespace, other values by equality.

    Args:
        case_sensitive: Match case.

    Example:
        scorer: {name: exact, case_sensitive: false}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected",)

    def __init__(self, *, case_sensitive: bool = True) -> None:
        self._case_sensitive = flag("exact", "case_sensitive", case_sensitive)

    def score(self, judged: Judged) -> Judgement:
        output, expected = judged.output, judged.expected
        if is_missing(expected):
            return NOTHING_EXPECTED
        if self._equal(output, expected):
            return RIGHT
        if isinstance(expected, list | tuple) and any(self._equal(output, value) for value in expected):
            return RIGHT
        return WRONG

    def example(self, expected: object, case: Case) -> object:
        return first_alternative(expected)

    def _equal(self, output: object, expected: object) -> bool:
        if isinstance(output, str) or isinstance(expected, str):
            texts = text_of(output).strip(), text_of(expected).strip()
            if not self._case_sensitive:
                texts = texts[0].casefold(), texts[1].casefold()
            return output is not None and texts[0] == texts[1]
        try:
            return _PLAIN.same(expected, output)
        except RecursionError:
            return False
