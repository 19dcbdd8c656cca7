"""Outputs as text, and text brought into a form in which differences that do not matter are gone."""

from __future__ import annotations

import json
import re
import string
import unicodedata

from assay.plugin import Judgement

NOTHING_EXPECTED = Judgement(None, "the case has no expected output")
NO_OUTPUT = Judgement(0.0, "there is no output")
RIGHT = Judgement(1.0)
WRONG = Judgement(0.0)

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_MEANINGFUL_MARKS = re.compile(r"(?<!\w)[-−](?=\d)|(?<=\d)\.(?=\d)")
_KEPT_MINUS, _KEPT_POINT = "\ue000", "\ue001"


def text_of(value: object) -> str:
    """What a scorer of texts reads; structures as JSON. Empty for what cannot be written at all."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        is_structure = isinstance(value, dict | list | tuple)
        return json.dumps(value, ensure_ascii=False, default=str) if is_structure else str(value)
    except (ValueError, TypeError, RecursionError):
        # Whole numbers of thousands of digits, circles, keys that JSON has no words for.
        return ""


def alternatives(expected: object) -> list[object]:
    """Expected outputs of which any one will do."""
    return list(expected) if isinstance(expected, list | tuple) else [expected]


def first_alternative(expected: object) -> object:
    """An output that is right where any one of several is; None where nothing is expected."""
    return None if is_missing(expected) else alternatives(expected)[0]


def is_missing(expected: object) -> bool:
    return expected is None or (isinstance(expected, list | tuple) and not expected)


class _Unpunctuated(dict[int, str | None]):
    """A table for `str.translate` that learns each character when it first meets it."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        is_mark = character in string.punctuation or unicodedata.category(character).startswith("P")
        self[code] = None if is_mark else character
        return self[code]


_unpunctuated = _Unpunctuated({ord(_KEPT_MINUS): "-", ord(_KEPT_POINT): "."})


def normalise_text(text: str, drop_articles: bool) -> str:
    """Without case, forms of the same character, punctuation and spare white space.

    A minus before a number and a decimal point stay: without them a different number would be equal.

    >>> normalise_text("The  “Eiffel” Tower, -3.50 °C!", True)
    'eiffel tower -3.50 °c'
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    marked = _MEANINGFUL_MARKS.sub(lambda mark: _KEPT_POINT if mark[0] == "." else _KEPT_MINUS, folded)
    bare = marked.translate(_unpunctuated)
    return " ".join((_ARTICLES.sub(" ", bare) if drop_articles else bare).split())


def squad_words(text: str) -> list[str]:
    """Words as the SQuAD evaluation counts them: lower case, no ASCII punctuation, no articles."""
    return _ARTICLES.sub(" ", text.lower().translate(_ASCII_PUNCTUATION)).split()
