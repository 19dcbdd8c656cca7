"""Decides what the requests of a load say: prompts as written, opened by words of their own, or synthetic of a given length.

`read_inputs` reads and checks the options about inputs; `requests_order` and `sessions_order` then write the requests, or
templates of them, that `engine.order_for` hands to workers. Why prompts are made to differ, `synthetic` explains.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.errors import MissingExtra
from assay.load.options import LoadOptions, wrong_option
from assay.load.request import (
    LoadPrompt,
    Prefix,
    Target,
    build_requests_with_openings,
    chat_template_for,
    requests_for,
    template_for,
)
from assay.load.synthetic import WORDS, build_shared_prefix
from assay.model.conversation import UserSession
from assay.model.variate import Variate
from assay.spec.load_settings import MOST_TOKENS
from assay.spec.variates import tokens_of

DRAWN = 4096
"""Lengths that are drawn beforehand; after the last the first is used again."""
_LETTERS = 4
_FEWEST_WORDS = 16
_MOST_WORDS = 256
_MOST_TRIED = 20_000


@dataclass(frozen=True, slots=True)
class Inputs:
    """The part of the options that says what is sent."""

    prefix: Prefix
    is_synthetic_unique: bool
    words: tuple[str, ...]
    lengths: dict[str, list[int]]
    """Tokens in (`input`) and out (`output`) of request n, where they were asked for."""
    seed: int
    """Seed of everything that makes prompts differ."""

    def extras(self) -> dict[str, object]:
        """The keys that these inputs add to a worker's order."""
        return {
            "words": list(self.words) if self.words != WORDS else None,
            "is_unique": self.is_synthetic_unique,
            "lengths": self.lengths or None,
        }


def read_inputs(options: LoadOptions, *, is_unique: bool) -> Inputs:
    """The inputs that the options describe; `is_unique` says whether prompts are made to differ where the options do not."""
    _check(options)
    seed = secrets.randbits(32) if options.prompt_seed is None else options.prompt_seed
    words = _find_one_token_words(options.tokenizer) if options.tokenizer else WORDS
    keeps = options.prompt_cache == "keep"
    asked_for = options.prompt_cache == "unique" or options.shared_prefix is not None
    shared = build_shared_prefix(seed, options.shared_prefix, words) if options.shared_prefix else ""
    lengths: dict[str, list[int]] = {}
    if options.input_tokens is not None:
        # The tokens of a shared prefix count among those of a prompt; each of its words has four letters and a space.
        tokens = tokens_of(options.input_tokens, "--input-tokens")
        lengths["input"] = _draw_lengths(tokens, options.seed, less=len(shared) // 5)
    if options.output_tokens is not None:
        tokens = tokens_of(options.output_tokens, "--output-tokens")
        lengths["output"] = _draw_lengths(tokens, options.seed, less=0)
    prefix = Prefix(shared, not keeps and (is_unique or asked_for))
    return Inputs(prefix, not keeps, words, lengths, seed)


def _check(options: LoadOptions) -> None:
    """Refuse options that exclude each other; what each says by itself is checked where it is read."""
    if options.prompt_cache not in (None, "unique", "keep"):
        raise wrong_option("--prompt-cache", f"'{options.prompt_cache}' is unknown. Use unique or keep.")
    if options.prompt_cache == "keep" and options.shared_prefix is not None:
        raise wrong_option("--shared-prefix", "With --prompt-cache keep, prompts are sent as written.")
    if options.shared_prefix is not None and not 1 <= options.shared_prefix <= MOST_TOKENS:
        raise wrong_option("--shared-prefix", f"must be between 1 and {MOST_TOKENS} tokens.")
    if options.input_tokens is not None and (options.prompt is not None or options.dataset is not None):
        raise wrong_option("--input-tokens", "Give either --input-tokens, or --prompt or --dataset.")
    if options.output_tokens is not None and options.max_tokens is not None:
        raise wrong_option("--output-tokens", "Give either --output-tokens or --max-tokens.")
    _check_lengths(options)


def _check_lengths(options: LoadOptions) -> None:
    """Refuse contradictory lengths: the requests would have a length that was not requested."""
    if options.shared_prefix is not None and options.input_tokens is not None:
        mean = tokens_of(options.input_tokens, "--input-tokens").mean
        if mean <= options.shared_prefix:
            raise wrong_option(
                "--shared-prefix",
                f"{options.shared_prefix} tokens leave nothing of prompts of {mean:g} (--input-tokens), which include the shared prefix.",
            )
    most = options.max_tokens
    if options.output_tokens is not None:
        most = int(tokens_of(options.output_tokens, "--output-tokens").mean)
    if options.min_tokens is not None and most is not None and options.min_tokens > most:
        raise wrong_option(
            "--min-tokens", f"{options.min_tokens} is more than the {most} tokens that an answer may have."
        )


def _find_one_token_words(file: str) -> tuple[str, ...]:
    """Up to 256 words of four letters, each one token wherever in a prompt it stands, for prompts of an exact length.

    Common words are tried first, then whatever looks like a word among the tokens.
    """
    tokenizer = _read_tokenizer(file)

    def count_tokens(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    known = (token.lstrip("Ġ▁ ") for token in tokenizer.get_vocab())
    others = sorted({word for word in known if len(word) == _LETTERS and word.isascii() and word.isalpha()})
    candidates = list(dict.fromkeys((*WORDS, *others)))[:_MOST_TRIED]
    # Alone, between others, and all together: some tokenizers join a word with its neighbour, or count a blank as a token.
    words = [word for word in candidates if count_tokens(word) == 1]
    words = [word for word in words if count_tokens(f"{word} {word} {word}") == 3][:_MOST_WORDS]
    if len(words) < _FEWEST_WORDS or count_tokens(" ".join(words)) != len(words):
        raise wrong_option(
            "--tokenizer",
            f"'{file}' has no {_FEWEST_WORDS} words of {_LETTERS} letters that are one token each, "
            "so prompts of an exact length cannot be made with it.",
        )
    return tuple(words)


def _read_tokenizer(file: str) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra(
            "--tokenizer needs the package tokenizers: pip install 'assay-bench[tokenizer]'"
        ) from None
    try:
        return Tokenizer.from_file(file)
    except Exception as error:
        raise wrong_option(
            "--tokenizer", f"'{file}' cannot be read as a tokenizers file (tokenizer.json): {error}"
        ) from None


def _draw_lengths(tokens: Variate, seed: int, less: int) -> list[int]:
    """Lengths by request number, drawn here and not in workers, so that they do not depend on how many workers there are."""
    if tokens.kind == "constant":
        return [max(1, int(tokens.first) - less)]
    return [max(1, min(MOST_TOKENS, round(value)) - less) for value in tokens.draws(DRAWN, seed, least=1)]


def requests_order(
    target: Target, asks: Sequence[LoadPrompt], options: LoadOptions, inputs: Inputs, *, has_rows: bool
) -> dict[str, Any]:
    """The requests as `order_for` takes them; with `has_rows`, the rows of a trace say how long each is."""
    prefix = inputs.prefix
    if has_rows or inputs.lengths:
        return {"requests": (), "template": template_for(target, asks, options.max_tokens, prefix)}
    if not asks or not (prefix.is_unique or prefix.shared):
        return {"requests": requests_for(target, asks, options.max_tokens)}
    requests, openings = build_requests_with_openings(target, asks, options.max_tokens, prefix)
    return {"requests": requests, "openings": openings}


def sessions_order(
    target: Target, sessions: Sequence[UserSession], options: LoadOptions, inputs: Inputs
) -> dict[str, Any]:
    """Build the order for sessions, whose requests contain the conversation so far."""
    template = chat_template_for(target, options.max_tokens, inputs.prefix)
    return {"requests": (), "template": template, "sessions": sessions}


def with_output_rules(target: Target, options: LoadOptions) -> Target:
    """The target with the params that make a server generate up to the length that was asked for."""
    rules: dict[str, object] = {}
    if options.ignore_eos:
        rules["ignore_eos"] = True
    if options.min_tokens is not None:
        rules["min_tokens"] = options.min_tokens
    if not rules:
        return target
    # Other dialects would take the param for a setting of the model, and most servers ignore what they do not know.
    if target.dialect != "openai":
        option = "--ignore-eos" if options.ignore_eos else "--min-tokens"
        raise wrong_option(
            option, "is for OpenAI-compatible servers that know it: vLLM, SGLang or llama.cpp's server."
        )
    return replace(target, params={**target.params, **rules})


def salt_of(seed: int, load: int) -> int:
    """The salt of the n-th load that is run with a seed: its prompts differ from those of the loads before."""
    return random.Random(f"{seed} {load}").getrandbits(32)
