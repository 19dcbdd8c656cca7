"""A scorer: Assay shows it every output, and it says how good that is."""

from __future__ import annotations

from typing import ClassVar

from assay.errors import PlanError
from assay.plugin import Judged, Judgement


class TemplateNameScorer:
    """The share of the expected words that the output contains.

    Args:
        case_sensitive: Match case.

    Example:
        scorer: {name: template_name, case_sensitive: true}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected",)
    """Cases without an expected output get a warning before a run."""

    def __init__(self, *, case_sensitive: bool = False) -> None:
        if not isinstance(case_sensitive, bool):
            raise PlanError(f"case_sensitive must be true or false, not {case_sensitive!r}.")
        self._case_sensitive = case_sensitive

    def score(self, judged: Judged) -> Judgement:
        wanted = self._words(judged.expected)
        if not wanted:
            return Judgement(None, "the case has no expected output")
        missing = wanted - self._words(judged.output)
        reason = f"missing: {', '.join(sorted(missing))}" if missing else ""
        return Judgement(1 - len(missing) / len(wanted), reason)

    def _words(self, text: object) -> set[str]:
        if text is None:
            return set()
        return set((str(text) if self._case_sensitive else str(text).casefold()).split())
