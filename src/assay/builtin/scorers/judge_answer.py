"""What a judge answered, read for its marks: JSON by itself, in a fence or in prose, or words such as “score: 4”."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from assay.builtin.scorers.fences import fenced_blocks, json_values

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
        raise Unreadable("the judge gave no mark that can be read")
    return {name: _on_scale(value, low, high) for name, value in raw.items()}


def reason_in(output: object) -> str:
    for found in _objects(output):
        if isinstance(found.get("reason"), str):
            reason = str(found["reason"])
            return reason if len(reason) <= 300 else f"{reason[:300]}…"
    return ""


def _on_scale(value: float, low: float, high: float) -> float:
    if not low <= value <= high:
        raise Unreadable(f"the judge's mark {value:g} is not on the scale from {low:g} to {high:g}")
    return (value - low) / (high - low)


def _raw_marks(output: object, names: Sequence[str]) -> dict[str, float]:
    for found in _objects(output):
        marks = _named(found, names) if names else _single(found)
        if marks:
            return marks
    text = _last_words(output)
    return _spoken(text, names) if names else _spoken_score(text)


def _objects(output: object) -> list[Mapping[str, Any]]:
    """JSON objects in the answer, the last first: what a judge quotes comes before what it concludes."""
    if isinstance(output, Mapping):
        return [output]
    text = _last_words(output)
    blocks = [value for block in fenced_blocks(text) for value in _values(block.content)]
    return [value for value in reversed([*json_values(text), *blocks]) if isinstance(value, Mapping)]


def _values(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        return []


def _last_words(output: object) -> str:
    """Without the thinking aloud that some models put before their answer."""
    text = output if isinstance(output, str) else "" if output is None else str(output)
    return text.rpartition("</think>")[2][-_MOST_CHARACTERS:]


def _single(found: Mapping[str, Any]) -> dict[str, float]:
    folded = {str(key).lower(): value for key, value in found.items()}
    values = (_number(folded[key]) for key in _SCORES if key in folded)
    return next(({"score": value} for value in values if value is not None), {})


def _named(found: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    inner = found.get("scores")
    there = inner if isinstance(inner, Mapping) else found
    folded = {str(key).lower(): value for key, value in there.items()}
    values = {name: _number(folded.get(name.lower())) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _number(value: object) -> float | None:
    if isinstance(value, Mapping):
        value = value.get("score")
    if isinstance(value, str) and (match := _BARE.fullmatch(value)):
        return float(match[1])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _spoken(text: str, names: Sequence[str]) -> dict[str, float]:
    found = {name: _last_spoken(text, re.escape(name)) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _spoken_score(text: str) -> dict[str, float]:
    bare = _BARE.fullmatch(text)
    value = float(bare[1]) if bare else _last_spoken(text, "|".join(_SCORES))
    return {} if value is None else {"score": value}


def _last_spoken(text: str, word: str) -> float | None:
    matches = re.findall(rf"\b(?:{word}){_NUMBER}", text, re.IGNORECASE)
    return float(matches[-1][0]) if matches else None
