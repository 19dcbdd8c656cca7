from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

from assay.builtin.scorers.code_blocks import NOT_JSON, json_value
from assay.builtin.scorers.options import flag, number
from assay.builtin.scorers.text_normalization import NO_OUTPUT, NOTHING_EXPECTED, RIGHT
from assay.builtin.scorers.values import Likeness, Path, leaves
from assay.model import Case
from assay.plugin import Judged, Judgement

_TOO_DEEP = Judgement(0.0, "the output is nested too deeply")


class JsonEquality:
    """The output, read as JSON, is the expected value.

    Args:
        ignore_order: Whether lists may be in any order.
        tolerance: Maximum difference between two numbers that count as equal.
        subset: Whether objects may have further keys.
        partial: Whether the score is the share of values that are right, instead of 0 or 1.

    Example:
        scorer: {name: json, ignore_order: true, partial: true}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected",)

    def __init__(
        self,
        *,
        ignore_order: bool = False,
        tolerance: float = 0.0,
        subset: bool = False,
        partial: bool = False,
    ) -> None:
        self._likeness = Likeness(
            number("json", "tolerance", tolerance),
            flag("json", "ignore_order", ignore_order),
            flag("json", "subset", subset),
        )
        self._partial = flag("json", "partial", partial)

    def score(self, judged: Judged) -> Judgement:
        if judged.expected is None:
            return NOTHING_EXPECTED
        if judged.output is None:
            return NO_OUTPUT
        given = json_value(judged.output)
        if given is NOT_JSON:
            return Judgement(0.0, "the output holds no JSON")
        # Tables of cases hold text only: JSON in it is meant as such.
        expected = json_value(judged.expected)
        if expected is NOT_JSON:
            expected = judged.expected
        try:
            if self._likeness.same(expected, given):
                return RIGHT
            if self._partial:
                return self._share(expected, given)
        except RecursionError:
            return _TOO_DEEP
        are_objects = isinstance(expected, dict) and isinstance(given, dict)
        missing = sorted(str(key) for key in expected if key not in given) if are_objects else []
        return Judgement(0.0, f"missing: {', '.join(missing[:5])}" if missing else "the values differ")

    def example(self, expected: Any, case: Case) -> Any:
        return expected

    def _share(self, expected: Any, given: Any) -> Judgement:
        """The share of all leaves of both values that are right; with `subset`, of the expected leaves.

        Each given leaf can be right for one expected leaf only, so it is removed once it is used.
        """
        unused: defaultdict[Path, list[Any]] = defaultdict(list)
        given_count = 0
        for path, value in leaves(given, self._likeness.ignore_order):
            unused[path].append(value)
            given_count += 1
        wanted = list(leaves(expected, self._likeness.ignore_order))
        right = 0
        for path, leaf in wanted:
            places = (n for n, value in enumerate(unused[path]) if self._likeness.same_leaf(leaf, value))
            if (place := next(places, None)) is not None:
                del unused[path][place]
                right += 1
        total = len(wanted) if self._likeness.subset else max(len(wanted), given_count)
        return Judgement(right / total, f"{right} of {total} values are right")
