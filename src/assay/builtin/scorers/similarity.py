"""Scorers for texts that are right by degrees, and the distances between sequences that they are made of.

The usual table of dynamic programming has a cell for each pair of symbols. Neighbouring cells differ by at most one, so a
column can be kept as the bits of one long whole number, and a few operations on it compute the whole next column, which in
Python is far quicker than a loop over the cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from assay.builtin.scorers import options
from assay.builtin.scorers.text_normalization import (
    best_likeness,
    first_alternative,
    normalise_text,
    squad_words,
)
from assay.model import Case
from assay.plugin import Judged, Judgement

_MOST_CHARACTERS = 20_000
_MOST_WORDS = 10_000
Symbols = Sequence[str]


class Similarity:
    """A scorer whose score is a similarity, or with a threshold, whether that is reached; of several expected texts the best."""

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected",)
    _name: ClassVar[str]
    _threshold: float | None = None

    def __init__(self, *, threshold: float | None = None) -> None:
        self._threshold = options.threshold(self._name, threshold)

    def score(self, judged: Judged) -> Judgement:
        return best_likeness(judged, self._compare, self._threshold)

    def example(self, expected: object, case: Case) -> object:
        return first_alternative(expected)

    def _compare(self, a: str, b: str) -> float:
        raise NotImplementedError


class F1(Similarity):
    """F1 over words, as the SQuAD evaluation computes it.

    Args:
        threshold: With it, the score is 1 from this similarity on and 0 below. Default: the similarity is the score.

    Example:
        scorer: {name: f1, threshold: 0.8}
    """

    _name = "f1"

    def _compare(self, a: str, b: str) -> float:
        left, right = squad_words(a), squad_words(b)
        return _harmonic((Counter(left) & Counter(right)).total(), len(left), len(right))


class RougeL(Similarity):
    """ROUGE-L: F-measure of the longest common subsequence of words.

    Args:
        threshold: With it, the score is 1 from this similarity on and 0 below. Default: the similarity is the score.

    Example:
        scorer: {name: rouge_l, threshold: 0.8}
    """

    _name = "rouge_l"

    def _compare(self, a: str, b: str) -> float:
        left, right = normalise_text(a, False).split(), normalise_text(b, False).split()
        # What both have at either end is common in any case: leaving it out shortens the table.
        start, end = ends_in_common(left, right)
        between = common_length(
            left[start : len(left) - end][:_MOST_WORDS], right[start : len(right) - end][:_MOST_WORDS]
        )
        return _harmonic(start + between + end, len(left), len(right))


class Edit(Similarity):
    """Edit similarity: 1 − Levenshtein distance ÷ length of the longer text.

    Args:
        threshold: With it, the score is 1 from this similarity on and 0 below. Default: the similarity is the score.

    Example:
        scorer: {name: edit, threshold: 0.8}
    """

    _name = "edit"

    def _compare(self, a: str, b: str) -> float:
        longest = max(len(a), len(b))
        if not longest:
            return 1.0
        start, end = ends_in_common(a, b)
        left, right = a[start : len(a) - end], b[start : len(b) - end]
        # What is beyond the bound counts as edited: an endless output is not worth endless work.
        beyond = max(0, len(left) - _MOST_CHARACTERS, len(right) - _MOST_CHARACTERS)
        edits = edit_distance(left[:_MOST_CHARACTERS], right[:_MOST_CHARACTERS]) + beyond
        return max(0.0, 1 - edits / longest)


def _harmonic(common: int, left: int, right: int) -> float:
    """The harmonic mean of precision and recall, which is twice what is common ÷ the sum of both lengths."""
    return 2 * common / (left + right) if left + right else 1.0


def edit_distance(a: Symbols, b: Symbols) -> int:
    """Insertions, deletions and replacements that make one the other (Myers 1999, in Hyyrö's form of 2003).

    In `rises` a bit is set where the column grows by one from the cell above, in `falls` where it shrinks by one;
    `distance` is the value of its last cell. `up` and `down` are the same from the column before to this one.
    """
    if len(a) > len(b):
        a, b = b, a
    if not a:
        return len(b)
    places = _places(a)
    last, everything = 1 << (len(a) - 1), (1 << len(a)) - 1
    rises, falls, distance = everything, 0, len(a)
    for symbol in b:
        equal = places.get(symbol, 0)
        crossed = ((((equal & rises) + rises) ^ rises) | equal | falls) & everything
        up = falls | ((crossed | rises) ^ everything)
        down = rises & crossed
        distance += bool(up & last) - bool(down & last)
        up = (up << 1 | 1) & everything
        down = (down << 1) & everything
        rises = down | ((crossed | up) ^ everything)
        falls = up & crossed
    return distance


def common_length(a: Symbols, b: Symbols) -> int:
    """Length of the longest common subsequence (Hyyrö 2004): the number of zero bits that are left in the row."""
    if len(a) > len(b):
        a, b = b, a
    places, everything = _places(a), (1 << len(a)) - 1
    row = everything
    for symbol in b:
        met = row & places.get(symbol, 0)
        row = ((row + met) | (row - met)) & everything
    return len(a) - row.bit_count()


def ends_in_common(a: Symbols, b: Symbols) -> tuple[int, int]:
    """How many symbols the two share at the beginning, and of the rest at the end."""
    shortest = min(len(a), len(b))
    start = next((n for n in range(shortest) if a[n] != b[n]), shortest)
    most = shortest - start
    end = next((n for n in range(most) if a[-1 - n] != b[-1 - n]), most)
    return start, end


def _places(symbols: Symbols) -> dict[str, int]:
    """Return, for each symbol, a number whose set bits are its positions.

    The longest common subsequence is then computed with one operation on whole numbers per symbol.
    """
    positions: dict[str, bytearray] = {}
    size = len(symbols) // 8 + 1
    for index, symbol in enumerate(symbols):
        if symbol not in positions:
            positions[symbol] = bytearray(size)
        positions[symbol][index >> 3] |= 1 << (index & 7)
    return {symbol: int.from_bytes(bits, "little") for symbol, bits in positions.items()}
