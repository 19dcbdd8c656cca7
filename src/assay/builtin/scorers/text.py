from __future__ import annotations

from assay.builtin.scorers.options import flag
from assay.builtin.scorers.similarity import Similarity
from assay.builtin.scorers.text_normalization import normalise_text


class Text(Similarity):
    """The same words, whatever their capitals, punctuation, articles and spacing.

    Args:
        drop_articles: Whether a, an and the are ignored.

    Example:
        scorer: {name: text, drop_articles: false}
    """

    def __init__(self, *, drop_articles: bool = True) -> None:
        self._drop_articles = flag("text", "drop_articles", drop_articles)

    def _compare(self, output: str, expected: str) -> float:
        wanted = normalise_text(expected, self._drop_articles)
        if not wanted:
            # Nothing but marks or articles: those are then what matters.
            return float(output.strip().casefold() == expected.strip().casefold())
        return float(normalise_text(output, self._drop_articles) == wanted)
