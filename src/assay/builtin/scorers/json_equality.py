from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

from assay.builtin.scorers.fences import NOT_JSON, json_value
from assay.builtin.scorers.options import flag, number
from assay.builtin.scorers.texts import NO_OUTPUT, NOTHING_EXPECTED, RIGHT
from assay.builtin.scorers.values import Likeness, Path, leaves
from assay.model import Case
from assay.plugin.scorer import Judged, Judgement

_TOO_DEEP = Judgement(0.0, "the output is nested too deeply")


class JsonEquality:
    """The output, read as JSON, is the expected value.

    Args:
        ignore_order: Whether lists may be in any order.
        tolerance: The largest difference between two numbers that counts as none.
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
        try:
            return self._compared(_expected(judged.expected), given)
        except RecursionError:
            return _TOO_DEEP

    def example(self, expected: Any, case: Case) -> Any:
        return expected

    def _compared(self, expected: Any, given: Any) -> Judgement:
        if self._likeness.same(expected, given):
            return RIGHT
        if not self._partial:
            return Judgement(0.0, _difference(expected, given))
        return self._share(expected, given)

    def _share(self, expected: Any, given: Any) -> Judgement:
        """Of all leaves of both; with `subset`, of the expected ones."""
        there: defaultdict[Path, list[Any]] = defaultdict(list)
        extra = 0
        for path, value in leaves(given, self._likeness.ignore_order):
            there[path].append(value)
            extra += 1
        wanted = list(leaves(expected, self._likeness.ignore_order))
        right = sum(self._taken(there[path], value) for path, value in wanted)
        total = len(wanted) if self._likeness.subset else max(len(wanted), extra)
        return Judgement(right / total, f"{right} of {total} values are right")

    def _taken(self, values: list[Any], wanted: Any) -> bool:
        for index, value in enumerate(values):
            if self._likeness.same_leaf(wanted, value):
                del values[index]
                return True
        return False


def _expected(expected: Any) -> Any:
    """Tables of cases hold text only: JSON in it is meant as such."""
    value = json_value(expected)
    return expected if value is NOT_JSON else value


def _difference(expected: Any, given: Any) -> str:
    if not isinstance(expected, dict) or not isinstance(given, dict):
        return "the values differ"
    missing = sorted(str(key) for key in expected if key not in given)
    return f"missing: {', '.join(missing[:5])}" if missing else "the values differ"
