"""A cache of prompts as inference servers have it: what begins like an earlier prompt need not be read again."""

from __future__ import annotations

from collections.abc import Iterable

_MOST_KEPT = 2_000_000
"""Beginnings; beyond that, all are forgotten."""


class PromptCache:
    """Keeps every beginning of every prompt, token by token; a word is a token."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def read(self, texts: Iterable[str]) -> int:
        """How many tokens at the beginning were known; all are from now on. The last one is read in any case.

        >>> cache = PromptCache()
        >>> cache.read(["a b c d"]), cache.read(["a b", "x"]), cache.read(["a b c d"])
        (0, 2, 3)
        """
        tokens = [token for text in texts for token in text.split()]
        if len(self._seen) > _MOST_KEPT:
            self._seen.clear()
        beginning, known, is_known = 0, 0, True
        for token in tokens:
            beginning = hash((beginning, token))
            is_known = is_known and beginning in self._seen
            known += is_known
            self._seen.add(beginning)
        return min(known, max(0, len(tokens) - 1))
