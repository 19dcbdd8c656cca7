"""The marks in a judge's answer: as JSON by itself, in a fence or in prose, or in words such as “score: 4”.

Judges are asked for one JSON object (see `judge.Prompt`), but small models often write more. Whatever they write is read
from its end, because what a judge quotes comes before what it concludes. A mark outside the scale is never guessed at:
the output then stays unscored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from assay.builtin.scorers.code_blocks import find_code_blocks, json_values

_MOST_CHARACTERS = 100_000
_SCORES = ("score", "rating", "grade", "mark", "overall")
_NUMBER = (
    r"[\"'*_`\s]{0,4}(?:is|of|=|:|-|–)?[\"'*_`\s(\[]{0,4}(-?\d{1,6}(?:\.\d{1,6})?)(?!\d)(?:\s?/\s?(\d{1,6}))?"
)
_BARE = re.compile(r"[*_`\s]{0,6}(-?\d{1,6}(?:\.\d{1,6})?)(?:\s?/\s?(\d{1,6}))?[*_`\s.]{0,6}")


class Unreadable(Exception):
    """There is no mark in the answer, or one that is not on the scale."""


def marks_in(output: object, names: Sequence[str], low: float, high: float) -> dict[str, float]:
    """The marks by name, brought to 0 to 1; without names, one called "score"."""
    raw = _raw_marks(output, names)
    if not raw:
        raise Unreadable("the judge gave no readable score")
    for value in raw.values():
        if not low <= value <= high:
            raise Unreadable(f"the judge's score {value:g} is outside the scale {low:g} to {high:g}")
    return {name: (value - low) / (high - low) for name, value in raw.items()}


def reason_in(output: object) -> str:
    """The first 300 characters of the reason that the judge gives; empty where it gives none."""
    for document in _objects(output):
        if isinstance(document.get("reason"), str):
            reason = str(document["reason"])
            return reason if len(reason) <= 300 else f"{reason[:300]}…"
    return ""


def _raw_marks(output: object, names: Sequence[str]) -> dict[str, float]:
    """The marks as written: from the last JSON object that has any, else from the last words that give one."""
    for document in _objects(output):
        inner = document.get("scores")
        fields = inner if names and isinstance(inner, Mapping) else document
        folded = {str(key).lower(): value for key, value in fields.items()}
        values = {name: _number(folded.get(name.lower())) for name in names or _SCORES}
        marks = {name: value for name, value in values.items() if value is not None}
        if marks:
            return marks if names else {"score": next(iter(marks.values()))}
    text = _last_words(output)
    if names:
        spoken = {name: _last_spoken(text, re.escape(name)) for name in names}
        return {name: value for name, value in spoken.items() if value is not None}
    bare = _BARE.fullmatch(text)
    score = float(bare[1]) if bare else _last_spoken(text, "|".join(_SCORES))
    return {} if score is None else {"score": score}


def _objects(output: object) -> list[Mapping[str, Any]]:
    """JSON objects in the answer, the last first: what a judge quotes comes before what it concludes."""
    if isinstance(output, Mapping):
        return [output]
    text = _last_words(output)
    values = list(json_values(text))
    for block in find_code_blocks(text):
        with suppress(ValueError, RecursionError):
            values.append(json.loads(block.content))
    return [value for value in reversed(values) if isinstance(value, Mapping)]


def _last_words(output: object) -> str:
    """Return the end of the answer, without the reasoning that some models put before it."""
    text = output if isinstance(output, str) else "" if output is None else str(output)
    return text.rpartition("</think>")[2][-_MOST_CHARACTERS:]


def _number(value: object) -> float | None:
    if isinstance(value, Mapping):
        value = value.get("score")
    if isinstance(value, str) and (match := _BARE.fullmatch(value)):
        return float(match[1])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _last_spoken(text: str, word: str) -> float | None:
    matches = re.findall(rf"\b(?:{word}){_NUMBER}", text, re.IGNORECASE)
    return float(matches[-1][0]) if matches else None
