"""Text of a given number of tokens, and openings that make prompts differ from their first token on.

A server with a prompt cache answers a prompt whose beginning it has seen sooner than one that it has not. Whatever a load
sends is therefore opened by four words that no other request of the load begins with. Words have four letters and are one
token each in the tokenizers of common models, so that `n` words make about `n` tokens and every opening has the same length.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

_LISTED = (
    "area away baby back ball band bank base bell belt best bill bird blue boat body bone book born call "
    "camp card care cash cast cell chat city club coat cold cook cool copy core cost crop dark date deal "
    "deep disk door down draw drop duty east easy edge exit face fact fall farm fast feed feel feet file "
    "fill find fine fire firm fish five flat food foot form four free fuel full fund game gate gear give "
    "goal gold good grow hair half hall hand hard head heat help hero hill hold hole home host idea inch "
    "iron item join jump kind lake lane last late lead life lift line list live loan lock long look love "
    "mail mark mass meal mean menu mile milk mine mode moon move name near neck need next nine nose note "
    "open oral pace pack pain pair park part pass path peak pipe plan play plot plug plus pool port pull "
    "pure push race rail rain rank rate read real rent rest rice rich ride rise risk road rock role roll "
    "room rose rule rush safe sale salt same sand seat seed seek sell send ship shop side sign site size "
    "skin slip slow snow soil sole song sort spot star stay stop take tale talk tall tank task team term "
    "thin time tiny tone tool town trip true tune turn type unit vary view wait wake walk wall want warm "
    "wash wear week well west wide wild wind wine wire wise wood word work yard year "
)
WORDS: tuple[str, ...] = tuple(_LISTED.split())
"""256 words of four letters."""
OPENING_WORDS = 4
OPENING_BYTES = 5 * OPENING_WORDS
"""Bytes of an opening, with the space after each word."""
BLOCK_TOKENS = 512
"""Tokens that one entry of a trace's `hash_ids` stands for."""
_SPAN = 256
_MOST_KEPT = 4096
_FILLER_WORDS = 8192
_STRIDE = 2477
"""Words from where the text of one prompt begins to where that of the next does; it has no common factor with their number."""


class Openings:
    """The opening of every number: the same for the same salt, and different for every other number below 2**32.

    The first word differs among 256 numbers in a row. The other three are the same for those, so that they are worked out
    once in 256 requests.
    """

    __slots__ = ("_salt", "_words", "first", "rest")

    def __init__(self, salt: int, words: Sequence[str] = WORDS) -> None:
        chance = random.Random(salt)
        self._words = [f"{word} ".encode() for word in words]
        self.first = (self._words * (_SPAN // len(words) + 1))[:_SPAN]
        chance.shuffle(self.first)
        self._salt = chance.getrandbits(24)
        self.rest: dict[int, bytes] = {}
        """The last three words of spans of 256 numbers, as far as they were needed."""

    def __call__(self, number: int) -> bytes:
        span = number >> 8
        rest = self.rest.get(span)
        return self.first[number & 255] + (self.rest_of(span) if rest is None else rest)

    def rest_of(self, span: int) -> bytes:
        if len(self.rest) >= _MOST_KEPT:
            self.rest.clear()
        # Steps that can be undone, so that no two spans are given the same three words.
        mixed = (span * 0x9E3779 + self._salt) & 0xFFFFFF
        mixed ^= mixed >> 11
        mixed = mixed * 0xC2B2AD & 0xFFFFFF
        mixed ^= mixed >> 13
        words, size = self._words, len(self._words)
        rest = b"".join(words[part % size] for part in (mixed >> 16, mixed >> 8 & 255, mixed & 255))
        self.rest[span] = rest
        return rest


class SyntheticText:
    """Makes prompts of so many tokens.

    Each begins in its own way, so that no server can answer from its prefix cache; prompts that are to
    share a prefix all begin in the same way.
    """

    __slots__ = ("_block_openings", "_filler", "_openings")

    def __init__(self, salt: int, words: Sequence[str] = WORDS, *, is_unique: bool = True) -> None:
        chance = random.Random(~salt)
        self._openings = Openings(salt, words) if is_unique else None
        self._block_openings = Openings(salt ^ 0x5BD1E995, words)
        self._filler = "".join([f"{word} " for word in chance.choices(words, k=_FILLER_WORDS)]).encode()

    def prompt(self, number: int, tokens: int) -> bytes:
        """The prompt of request `number`, of so many words, without a space at its end.

        >>> len(SyntheticText(1).prompt(7, 500).split())
        500
        """
        if self._openings is None:
            return self._words(0, tokens)[:-1]
        opening = self._openings(number)
        rest = tokens - OPENING_WORDS
        if rest <= 0:
            return opening[: 5 * max(1, tokens) - 1]
        return opening + self._words(number * _STRIDE, rest)[:-1]

    def prompt_of_blocks(self, number: int, blocks: Sequence[int], tokens: int) -> bytes:
        """What `hash_ids` of a trace stand for: prompts whose ids begin alike begin with the same text.

        Tokens beyond what the ids stand for are the prompt's own.
        """
        parts, left = [], max(1, tokens)
        for block in blocks:
            if left <= 0:
                break
            text = self._block_openings(block) + self._words(block * _STRIDE, BLOCK_TOKENS - OPENING_WORDS)
            parts.append(text[: 5 * left])
            left -= BLOCK_TOKENS
        if left > 0:
            parts.append(self.prompt(number, left) + b" ")
        return b"".join(parts)[:-1]

    def _words(self, begin: int, number: int) -> bytes:
        """Return so many words of the filler from a place on, each with the space after it.

        After the last word the first one follows again.
        """
        at = begin % _FILLER_WORDS * 5
        text = self._filler[at : at + 5 * number]
        missing = 5 * number - len(text)
        if not missing:
            return text
        rounds, rest = divmod(missing, len(self._filler))
        return text + self._filler * rounds + self._filler[:rest]


def build_shared_prefix(salt: int, tokens: int, words: Sequence[str] = WORDS) -> str:
    """A prefix of so many tokens that every request begins with."""
    chance = random.Random(f"shared prefix {salt}")
    return "".join(f"{word} " for word in chance.choices(words, k=tokens))
