"""The memory of the reference agent: all messages of a conversation, with an index of their words."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from heapq import nlargest

_WORD = re.compile(r"\w+")
_SENTENCE_GAP = re.compile(r"(?<=[.!?])\s+")
_MOST_LOOKED_AT = 200
"""Messages of each word of a query that are looked at, the latest; so common words do not make a search slow."""
_RECENT = 50
"""Messages that a summary is made from, beside the counts of all words."""


def find_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


class IndexedMemory:
    """Messages in order, and for each word the messages that have it; the rarer a shared word, the more it counts (tf-idf)."""

    def __init__(self) -> None:
        self._messages: list[dict[str, str]] = []
        self._places: dict[str, list[int]] = defaultdict(list)
        self._counts: Counter[str] = Counter()

    def append(self, role: str, content: str) -> None:
        place = len(self._messages)
        self._messages.append({"role": role, "content": content})
        words = find_words(content)
        self._counts.update(words)
        for word in set(words):
            self._places[word].append(place)

    def window(self, count: int) -> Sequence[Mapping[str, str]]:
        return self._messages[-count:] if count > 0 else []

    def summarise(self, sentences: int) -> str:
        """The recent sentences that say most of what the conversation is about, in their order."""
        messages = self._messages[-_RECENT:]
        recent = [sentence for message in messages for sentence in _SENTENCE_GAP.split(message["content"])]
        total = sum(self._counts.values()) or 1
        scores = []
        for place, sentence in enumerate(recent):
            words = set(find_words(sentence))
            weight = sum(self._weigh(word) * self._counts[word] / total for word in words)
            scores.append((weight / (len(words) or 1), place))
        chosen = sorted(place for _, place in nlargest(sentences, scores))
        return " ".join(recent[place] for place in chosen)

    def search(self, query: str, count: int) -> Sequence[Mapping[str, str]]:
        scores: dict[int, float] = defaultdict(float)
        for word in set(find_words(query)):
            weight = self._weigh(word)
            for place in self._places.get(word, ())[-_MOST_LOOKED_AT:]:
                scores[place] += weight
        best = nlargest(count, scores.items(), key=lambda item: (item[1], item[0]))
        return [self._messages[place] for place, _ in best]

    def _weigh(self, word: str) -> float:
        return math.log((1 + len(self._messages)) / (1 + len(self._places.get(word, ())))) + 1
