from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import ClassVar, Literal

from assay.builtin.scorers import options
from assay.builtin.scorers.options import flag, one_of
from assay.builtin.scorers.text_normalization import NO_OUTPUT, RIGHT, alternatives, is_missing, text_of
from assay.model import Case
from assay.plugin import Judged, Judgement


class Contains:
    """The output contains the texts of the option `texts`, or else the expected ones.

    Args:
        mode: Whether all of the texts are needed, or any one of them.
        texts: One text or a list of texts. Default: the expected output of the case.
        case_sensitive: Match case.

    Example:
        scorer: {name: contains, texts: [refund, "14 days"], mode: all}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected", "texts")

    def __init__(
        self,
        *,
        mode: Literal["all", "any"] = "all",
        texts: str | Sequence[str] | None = None,
        case_sensitive: bool = False,
    ) -> None:
        self._mode = one_of("contains", "mode", mode, ("all", "any"))
        self._case_sensitive = flag("contains", "case_sensitive", case_sensitive)
        self._texts = None if texts is None else options.texts("contains", "texts", texts)

    def score(self, judged: Judged) -> Judgement:
        wanted = self._texts or _list_expected_texts(judged.expected)
        if not wanted:
            return Judgement(None, "there is no text to look for")
        if judged.output is None:
            return NO_OUTPUT
        output = self._fold_case(text_of(judged.output))
        missing = [text for text in wanted if self._fold_case(text) not in output]
        if not missing if self._mode == "all" else len(missing) < len(wanted):
            return RIGHT
        excerpt = ", ".join(repr(text if len(text) <= 40 else text[:39] + "…") for text in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        return Judgement(0.0, f"missing: {excerpt}{more}")

    def example(self, expected: object, case: Case) -> str | None:
        return "\n".join(self._texts or _list_expected_texts(expected)) or None

    def _fold_case(self, text: str) -> str:
        composed = unicodedata.normalize("NFC", text)
        return composed if self._case_sensitive else composed.casefold()


def _list_expected_texts(expected: object) -> Sequence[str]:
    if is_missing(expected):
        return ()
    return [text for item in alternatives(expected) if (text := text_of(item))]
