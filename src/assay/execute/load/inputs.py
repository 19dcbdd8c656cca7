"""What the requests of a load say: as written, opened by words of their own, or synthetic and of a given length."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.execute.load.options import LoadOptions, wrong_option
from assay.execute.load.request import (
    LoadPrompt,
    Prefix,
    Target,
    chat_template_for,
    opened_requests_for,
    requests_for,
    template_for,
)
from assay.execute.load.synthetic import WORDS, shared_text
from assay.execute.load.tokenizer import one_token_words
from assay.model.user_session import UserSession
from assay.model.variate import Variate
from assay.spec.loading import MOST_TOKENS
from assay.spec.variates import tokens_of

DRAWN = 4096
"""Lengths that are drawn beforehand; after the last the first is used again."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The part of the options that says what is sent."""

    prefix: Prefix
    is_synthetic_unique: bool
    words: tuple[str, ...]
    lengths: dict[str, list[int]]
    """Tokens in (`input`) and out (`output`) of request n, where they were asked for."""
    seed: int
    """Of all that makes prompts differ."""

    def extras(self) -> dict[str, object]:
        """The keys that these inputs add to a worker's order."""
        return {
            "words": list(self.words) if self.words != WORDS else None,
            "is_unique": self.is_synthetic_unique,
            "lengths": self.lengths or None,
        }


def read_inputs(options: LoadOptions, *, is_unique: bool) -> Inputs:
    """`is_unique` decides where the options do not."""
    _check(options)
    seed = secrets.randbits(32) if options.prompt_seed is None else options.prompt_seed
    words = one_token_words(options.tokenizer) if options.tokenizer else WORDS
    keeps = options.prompt_cache == "keep"
    asked_for = options.prompt_cache == "unique" or options.shared_prefix is not None
    shared = shared_text(seed, options.shared_prefix, words) if options.shared_prefix else ""
    lengths = {
        name: _lengths(tokens_of(text, option), options.seed, len(shared) // 5 if name == "input" else 0)
        for name, option, text in (
            ("input", "--input-tokens", options.input_tokens),
            ("output", "--output-tokens", options.output_tokens),
        )
        if text is not None
    }
    prefix = Prefix(shared, not keeps and (is_unique or asked_for))
    return Inputs(prefix, not keeps, words, lengths, seed)


def _check(options: LoadOptions) -> None:
    if options.prompt_cache not in (None, "unique", "keep"):
        raise wrong_option(
            "--prompt-cache", f"'{options.prompt_cache}' is not known. There are unique and keep."
        )
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
    """Lengths that exclude each other would be sent as something that nobody asked for."""
    if options.shared_prefix is not None and options.input_tokens is not None:
        mean = tokens_of(options.input_tokens, "--input-tokens").mean
        if mean <= options.shared_prefix:
            raise wrong_option(
                "--shared-prefix",
                f"{options.shared_prefix} tokens leave nothing of prompts of {mean:g} (--input-tokens): the shared prefix counts among them.",
            )
    most = options.max_tokens
    if options.output_tokens is not None:
        most = int(tokens_of(options.output_tokens, "--output-tokens").mean)
    if options.min_tokens is not None and most is not None and options.min_tokens > most:
        raise wrong_option(
            "--min-tokens", f"{options.min_tokens} is more than the {most} tokens that an answer may have."
        )


def _lengths(tokens: Variate, seed: int, less: int) -> list[int]:
    """Without the tokens of a shared prefix, which count among those of a prompt."""
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
    requests, openings = opened_requests_for(target, asks, options.max_tokens, prefix)
    return {"requests": requests, "openings": openings}


def sessions_order(
    target: Target, sessions: Sequence[UserSession], options: LoadOptions, inputs: Inputs
) -> dict[str, Any]:
    """The same for sessions, whose requests are made of what was said before."""
    template = chat_template_for(target, options.max_tokens, inputs.prefix)
    return {"requests": (), "template": template, "sessions": sessions}


def with_output_rules(target: Target, options: LoadOptions) -> Target:
    """Settings that make a server go on to the length that was asked for."""
    rules: dict[str, object] = {}
    if options.ignore_eos:
        rules["ignore_eos"] = True
    if options.min_tokens is not None:
        rules["min_tokens"] = options.min_tokens
    if not rules:
        return target
    if target.dialect != "openai":
        option = "--ignore-eos" if options.ignore_eos else "--min-tokens"
        raise wrong_option(
            option, "is for OpenAI-compatible servers that know it: vLLM, SGLang or llama.cpp's server."
        )
    return replace(target, params={**target.params, **rules})


def salt_of(seed: int, load: int) -> int:
    """Of the n-th load that is carried out with a seed: its prompts differ from those of the loads before."""
    return random.Random(f"{seed} {load}").getrandbits(32)
