"""How the reference agent judges answers and rewards conversations, without a model: counts of words, and no more than that."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from assay.builtin.assistant.memory import find_words

_SENTENCE = re.compile(r"[^.!?]+[.!?]*")
_COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "can",
        "do",
        "for",
        "from",
        "has",
        "have",
        "i",
        "if",
        "in",
        "is",
        "it",
        "my",
        "not",
        "of",
        "on",
        "or",
        "our",
        "so",
        "that",
        "the",
        "this",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "which",
        "will",
        "with",
        "you",
        "your",
    ]
)
_STEP = re.compile(
    r"\b(?:please|you can|first|then|next|step|click|open|send|choose|reply)\b|\d", re.IGNORECASE
)
_RUDE = frozenset(["stupid", "idiot", "hate", "shut", "dumb"])
_ENOUGH_WORDS = 25


class WordEvaluator:
    """Relevance, coherence and helpfulness by the words that are shared.

    - relevance: cosine of the word counts of question and answer, common words left out.
    - coherence: mean cosine of neighbouring sentences, with their common words; 1 for a single sentence, 0 for none.
    - helpfulness: mean of three shares: words of the question that the answer takes up, sentences that say what to do, and
      length against 25 words.
    """

    def evaluate(self, question: str, answer: str) -> Mapping[str, float]:
        question_words, answer_words = _count(question), _count(answer)
        sentences = [sentence for sentence in _SENTENCE.findall(answer) if find_words(sentence)]
        steps = sum(bool(_STEP.search(sentence)) for sentence in sentences)
        taken_up = (
            sum(word in answer_words for word in question_words) / len(question_words)
            if question_words
            else 0.0
        )
        length = min(1.0, len(find_words(answer)) / _ENOUGH_WORDS)
        return {
            "relevance": _compute_cosine(question_words, answer_words),
            "coherence": _compute_coherence(sentences),
            "helpfulness": (taken_up + (steps / len(sentences) if sentences else 0.0) + length) / 3,
        }


class ConversationReward:
    """Mean helpfulness and relevance of the answers, less for rude words and for answers that repeat an earlier one."""

    def __init__(self) -> None:
        self._evaluator = WordEvaluator()

    def reward(self, turns: Sequence[Mapping[str, str]]) -> float:
        answered = [
            (early["content"], late["content"])
            for early, late in pairwise(turns)
            if early["role"] == "user" and late["role"] == "assistant"
        ]
        if not answered:
            return 0.0
        total, seen = 0.0, set[str]()
        for question, answer in answered:
            judged = self._evaluator.evaluate(question, answer)
            rude = sum(word in _RUDE for word in find_words(answer))
            total += (judged["relevance"] + judged["helpfulness"]) / 2 - 0.5 * rude - 0.5 * (answer in seen)
            seen.add(answer)
        return total / len(answered)


def compute_advantages(rewards: Sequence[float]) -> list[float]:
    """Compute for a group of answers to one prompt how far each is from the mean, in standard deviations (GRPO, Shao et al. 2024).

    >>> compute_advantages([1.0, 3.0]), compute_advantages([2.0, 2.0])
    ([-1.0, 1.0], [0.0, 0.0])
    """
    mean = sum(rewards) / len(rewards)
    spread = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / len(rewards))
    return [(reward - mean) / spread if spread else 0.0 for reward in rewards]


def _count(text: str) -> Counter[str]:
    return Counter(word for word in find_words(text) if word not in _COMMON)


def _compute_cosine(a: Mapping[str, int], b: Mapping[str, int]) -> float:
    shared = sum(number * b.get(word, 0) for word, number in a.items())
    lengths = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return shared / lengths if lengths else 0.0


def _compute_coherence(sentences: Sequence[str]) -> float:
    counts = [Counter(find_words(sentence)) for sentence in sentences]
    if len(counts) < 2:
        return float(len(counts))
    return sum(_compute_cosine(early, late) for early, late in pairwise(counts)) / (len(counts) - 1)
