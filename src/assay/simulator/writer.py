"""Writes what the simulated model says.

A prompt may have a correct answer: one written into it as `[[expected: …]]`, or a sum. The model then answers right as often as
its skill says, and otherwise makes a plausible mistake. A prompt with `[[call: tool {…}]]` has it call tools. Any other prompt
gets filler text of the length that is set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from assay.simulator.arithmetic import format_number, sum_in
from assay.simulator.chance import chance
from assay.simulator.turn import SimQuestion, SimReply, SimToolCall

_SENTENCE = (
    "the answer depends on how many of these things are seen at once and what each part may cost before any work is "
    "done so a careful reader will first look for some plain fact then weigh it against every other one that was given "
    "here since no single number can tell us more than its own source"
)
WORDS = _SENTENCE.split()

_EXPECTED = re.compile(r"\[\[expected:\s*(.*?)\s*\]\](?!\])", re.DOTALL)
_CALL = re.compile(r"\[\[call:\s*([\w.-]+)\s*")
_TOKEN = re.compile(r"\s*\S+|\s+$")
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_MAX_PROMPTS = 100_000
_MAX_KNOWN_PROMPT = 4096


class Writer:
    """Gives the same answer for the same seed, prompt and number of times the prompt was asked (or the request's own seed)."""

    def __init__(self, seed: int, skill: float, tokens: int) -> None:
        self._seed = seed
        self._skill = skill
        self._tokens = tokens
        self._times_asked: dict[str, int] = {}
        self._filling = [f" {word}" for word in WORDS] * (tokens // len(WORDS) + 2)

    def reply(self, ask: SimQuestion) -> SimReply:
        if ask.is_empty or ask.is_embedding:
            return SimReply([])
        if ask.may_call and (calls := _calls_in(ask.prompt)):
            return SimReply([], calls)
        # The same few prompts come again and again in a load test; long ones would fill the cache.
        study = _study_again if len(ask.prompt) <= _MAX_KNOWN_PROMPT else _study
        key, known = study(ask.prompt)
        about = self._occasion(key, ask.seed)
        if known is None:
            return self._filler(ask.max_tokens, about)
        # Drawn for each occasion and not for each prompt: asked again, the model may know better, as real ones do.
        is_right = chance(self._seed, "skill", *about) < self._skill
        text = known if is_right else wrong(known, chance(self._seed, "mistake", *about))
        tokens = _TOKEN.findall(text)
        is_cut = ask.max_tokens is not None and len(tokens) > ask.max_tokens
        return SimReply(tokens[: ask.max_tokens], is_cut=is_cut)

    def _occasion(self, key: str, seed: int | None) -> Sequence[object]:
        """What distinguishes this time a prompt is asked from the others: its seed, or how often it was asked."""
        if seed is not None:
            return key, "seed", seed
        if len(self._times_asked) >= _MAX_PROMPTS:
            self._times_asked.clear()
        times = self._times_asked[key] = self._times_asked.get(key, 0) + 1
        return key, times

    def _filler(self, max_tokens: int | None, about: Sequence[object]) -> SimReply:
        """Words from a random place of an endless sentence, which was cut into tokens once for all answers."""
        wanted = self._tokens
        length = wanted if max_tokens is None else min(wanted, max_tokens)
        start = int(chance(self._seed, "filler", *about) * len(WORDS))
        tokens = self._filling[start : start + length]
        tokens[0] = tokens[0][1:]
        return SimReply(tokens, is_cut=length < wanted)


def _study(prompt: str) -> tuple[str, str | None]:
    """The prompt's hash, and its correct answer if it has one."""
    key = blake2b(prompt.encode(errors="replace"), digest_size=8).hexdigest()
    if "[[expected:" in prompt and (expected := _EXPECTED.search(prompt)):
        return key, expected[1] or None
    value = sum_in(prompt)
    return key, None if value is None else format_number(value)


_study_again = lru_cache(maxsize=256)(_study)


def wrong(right: str, luck: float) -> str:
    """A mistake that somebody could make; luck, from 0 up to 1, picks it.

    >>> wrong("19", 0.0), wrong("Yes", 0.5), wrong("B", 0.9), wrong("Lima", 0.9)
    ('9', 'no', 'D', 'unknown')
    """
    # In the shape of the correct answer, so that scorers have to read it: a yes for a no, another letter, a near number.
    if right.lower() in _OPPOSITES:
        return _OPPOSITES[right.lower()]
    if len(right) == 1 and right in "ABCD":
        return [letter for letter in "ABCD" if letter != right][int(luck * 3)]
    try:
        value = float(right) if "." in right else int(right)
    except ValueError:
        return "unknown"
    return format_number(value + (-10, -2, -1, 1, 2, 10)[int(luck * 6)])


def _calls_in(prompt: str) -> tuple[SimToolCall, ...]:
    """Every `[[call: name {arguments}]]` with arguments that are a JSON mapping."""
    calls = []
    for found in _CALL.finditer(prompt):
        try:
            arguments, end = json.JSONDecoder().raw_decode(prompt, found.end())
        except ValueError:
            continue
        # What is no complete call is part of the prompt, and asks for nothing.
        if isinstance(arguments, dict) and prompt[end : end + 10].lstrip().startswith("]]"):
            calls.append(SimToolCall(found[1], arguments))
    return tuple(calls)
