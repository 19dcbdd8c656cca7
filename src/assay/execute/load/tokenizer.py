"""Words that are one token each in a model's own tokenizer, so that prompts of exactly so many tokens can be made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.errors import MissingExtra, Mistake, SpecError
from assay.execute.load.synthetic import WORDS

_LETTERS = 4
_FEWEST = 16
_MOST = 256
_MOST_TRIED = 20_000
_OPTION = "--tokenizer"


def one_token_words(file: str) -> tuple[str, ...]:
    """Up to 256 words of four letters, each one token wherever in a prompt it stands."""
    tokenizer = _read(file)
    words = [word for word in _candidates(tokenizer) if _size(tokenizer, word) == 1]
    words = [word for word in words if _size(tokenizer, f"{word} {word} {word}") == 3][:_MOST]
    if len(words) < _FEWEST or _size(tokenizer, " ".join(words)) != len(words):
        raise _wrong(
            f"'{file}' has no {_FEWEST} words of {_LETTERS} letters that are one token each, "
            "so prompts of an exact length cannot be made with it."
        )
    return tuple(words)


def _candidates(tokenizer: Any) -> Sequence[str]:
    """Common words first, then whatever looks like a word among the tokens."""
    known = (token.lstrip("Ġ▁ ") for token in tokenizer.get_vocab())
    others = sorted({word for word in known if len(word) == _LETTERS and word.isascii() and word.isalpha()})
    return list(dict.fromkeys((*WORDS, *others)))[:_MOST_TRIED]


def _size(tokenizer: Any, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


def _read(file: str) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra(
            "--tokenizer needs the package tokenizers: pip install 'assay-bench[tokenizer]'"
        ) from None
    try:
        return Tokenizer.from_file(file)
    except Exception as error:
        raise _wrong(f"'{file}' cannot be read as a tokenizers file (tokenizer.json): {error}") from None


def _wrong(text: str) -> SpecError:
    return SpecError([Mistake(_OPTION, None, "", text)])
