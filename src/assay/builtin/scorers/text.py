from __future__ import annotations

from typing import ClassVar

from assay.builtin.scorers.options import flag
from assay.builtin.scorers.text_normalization import best_likeness, first_alternative, normalise_text
from assay.model import Case
from assay.plugin import Judged, Judgement


class Text:
    """The same words, whatever their capitals, punctuation, articles and spacing.

    Args:
        drop_articles: Whether a, an and the are ignored.

    Example:
        scorer: {name: text, drop_articles: false}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected",)

    def __init__(self, *, drop_articles: bool = True) -> None:
        self._drop_articles = flag("text", "drop_articles", drop_articles)

    def score(self, judged: Judged) -> Judgement:
        return best_likeness(judged, self._compare_words)

    def example(self, expected: object, case: Case) -> object:
        return first_alternative(expected)

    def _compare_words(self, output: str, expected: str) -> float:
        wanted = normalise_text(expected, self._drop_articles)
        if not wanted:
            # Nothing but marks or articles: those are then what matters.
            return float(output.strip().casefold() == expected.strip().casefold())
        return float(normalise_text(output, self._drop_articles) == wanted)
