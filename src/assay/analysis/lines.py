"""One comparison a line of JSON: two samples in, effect, interval, p value and verdict out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.analysis.verdict import FEWEST_PAIRS, FEWEST_UNITS, Contrast, rule, tolerance_of
from assay.errors import AssayError
from assay.model import Metric, Verdict, metric_named
from assay.stats.effect import Effect, paired, unpaired
from assay.stats.means import mean_difference, unpaired_mean_difference
from assay.stats.sample import Array, Scale

EXAMPLE = '{"kind": "latency", "a": [1.2, 1.3], "b": [1.1, 1.2], "paired": false}'


class UnreadableLine(AssayError):
    pass


@dataclass(frozen=True, slots=True)
class LineSample:
    """One side: a value a unit, NaN where there is none."""

    units: Array
    observations: int
    """Behind the units: all repetitions of all cases."""


@dataclass(frozen=True, slots=True)
class LineQuestion:
    metric: Metric
    a: LineSample
    b: LineSample
    is_paired: bool


def answered(line: str | bytes, number: int, tolerance: float | None = None) -> dict[str, Any]:
    """The document for a line; for one that cannot be read, one that says why under `error`."""
    try:
        return answer(_question(line), tolerance)
    except UnreadableLine as error:
        return {"error": f"Line {number}: {error}", "line": number, **_document(None, Verdict.UNSURE)}


def answer(question: LineQuestion, tolerance: float | None = None) -> dict[str, Any]:
    """Effect, interval, p value and verdict; the effect is B ÷ A of times, B − A of scores."""
    effect, refusal = KINDS[question.metric.name].compare(question)
    width = tolerance_of(question.metric) if tolerance is None else tolerance
    a, b = _sides(question)
    contrast = Contrast(
        metric=question.metric,
        trial_a="a",
        trial_b="b",
        value_a=float(a.mean()) if a.size else math.nan,
        value_b=float(b.mean()) if b.size else math.nan,
        units_a=a.size,
        units_b=b.size,
        effect=effect,
        is_paired=question.is_paired,
        refusal=refusal,
        unit="case" if question.metric.name == "score" else "process",
    )
    ruling = rule(contrast, effect.p if effect else None, width, family=1)
    left_out = question.a.units.size + question.b.units.size - a.size - b.size
    return _document(effect, ruling.verdict, ruling.reason) | ({"left_out": left_out} if left_out else {})


def _document(effect: Effect | None, verdict: Verdict, reason: str = "") -> dict[str, Any]:
    """Ends of an interval that are unknown or unbounded are null."""
    has_effect = effect is not None and not math.isnan(effect.value)
    ends = (effect.low, effect.high) if effect and has_effect and math.isfinite(effect.high) else (None, None)
    return {
        "effect": effect.value if effect and has_effect else None,
        "ci": list(ends),
        "p": effect.p if effect else None,
        "verdict": verdict.value,
        "method": effect.method if effect else None,
        **({"reason": reason} if reason else {}),
    }


def _times_compared(question: LineQuestion) -> tuple[Effect | None, str]:
    a, b = _sides(question)
    effect = (paired if question.is_paired else unpaired)(a, b)
    fewest, needed = min(a.size, b.size), FEWEST_PAIRS if question.is_paired else FEWEST_UNITS
    if effect is None or fewest < needed:
        noun = "pair" if question.is_paired else "value"
        count = f"{fewest} {noun}s are" if fewest != 1 else f"One {noun} is"
        return effect, f"{count} too few: it takes {needed}{'' if question.is_paired else ' a side'}."
    if effect.scale is Scale.DIFFERENCE:
        nothing = Effect(effect.scale, math.nan, math.nan, math.nan, effect.p, effect.method)
        return nothing, "There is no ratio of times of zero or less."
    return effect, ""


def _scores_compared(question: LineQuestion) -> tuple[Effect | None, str]:
    a, b = _sides(question)
    if question.is_paired:
        return mean_difference(a, b), ""
    executions = (question.a.observations, question.b.observations)
    return unpaired_mean_difference(a, b, executions), ""


def _sides(question: LineQuestion) -> tuple[Array, Array]:
    """Without what is missing; of pairs, without both halves."""
    a, b = question.a.units, question.b.units
    if not question.is_paired:
        return _present(a), _present(b)
    whole = np.isfinite(a) & np.isfinite(b)
    return a[whole], b[whole]


def _present(values: Array) -> Array:
    return values[np.isfinite(values)]


def _question(line: str | bytes) -> LineQuestion:
    document = _parsed(line)
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in NAMES:
        raise UnreadableLine(f'\'kind\' is {_shown(kind)}; write "latency" or "accuracy".')
    metric = metric_named(NAMES[kind])
    read = KINDS[metric.name].read
    a, b = (read(_list(document, side), side) for side in ("a", "b"))
    is_paired = document.get("paired", False)
    if not isinstance(is_paired, bool):
        raise UnreadableLine(f"'paired' is {_shown(is_paired)}; write true or false.")
    if is_paired and a.units.size != b.units.size:
        raise UnreadableLine(
            f"'a' has {a.units.size} values and 'b' has {b.units.size}, so they are no pairs; "
            'write null for what is missing, or "paired": false.'
        )
    return LineQuestion(metric, a, b, is_paired)


def _parsed(line: str | bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        raise UnreadableLine(f"This is no JSON document. Write one a line, as in {EXAMPLE}") from None
    if not isinstance(document, dict):
        raise UnreadableLine(f"This is no JSON object. Write one a line, as in {EXAMPLE}")
    return document


def _list(document: dict[str, Any], side: str) -> list[Any]:
    values = document.get(side)
    if not isinstance(values, list):
        raise UnreadableLine(f"'{side}' is {_shown(values)}; it must be a list.")
    return values


def _times(values: list[Any], side: str) -> LineSample:
    """Numbers, or lists of what one process measured, of which the median stands for it."""
    table = _table(values)
    if table is not None and table.ndim == 1 and bool not in set(map(type, values)):
        return LineSample(table, table.size)
    units = [
        _median(value, f"{side}[{i}]") if isinstance(value, list) else _number(value, f"{side}[{i}]")
        for i, value in enumerate(values)
    ]
    return LineSample(np.array(units, dtype=np.float64), len(units))


def _median(values: list[Any], place: str) -> float:
    numbers = _present(np.array([_number(value, place) for value in values], dtype=np.float64))
    return float(np.median(numbers)) if numbers.size else math.nan


def _scores(values: list[Any], side: str) -> LineSample:
    """Lists of the repetitions of a case, of which the mean stands for it, or single scores."""
    table = _table(values)
    if table is not None and table.size and ((table >= 0) & (table <= 1)).all():
        return LineSample(table.reshape(len(values), -1).mean(axis=1), table.size)
    means, observations = [], 0
    for i, value in enumerate(values):
        repetitions = [_score(one, f"{side}[{i}]") for one in (value if isinstance(value, list) else [value])]
        present = [one for one in repetitions if not math.isnan(one)]
        observations += len(present)
        means.append(sum(present) / len(present) if present else math.nan)
    return LineSample(np.array(means, dtype=np.float64), observations)


def _table(values: list[Any]) -> Array | None:
    """All at once where nothing is missing or out of place, which one by one would take ten times as long."""
    try:
        table = np.array(values)
    except ValueError:
        return None
    return table.astype(np.float64) if table.ndim in (1, 2) and table.dtype.kind in "biuf" else None


def _score(value: Any, place: str) -> float:
    number = float(value) if isinstance(value, bool) else _number(value, place)
    if math.isinf(number) or not (math.isnan(number) or 0 <= number <= 1):
        raise UnreadableLine(f"'{place}' is {_shown(value)}; a score is from 0 to 1.")
    return number


def _number(value: Any, place: str) -> float:
    if value is None:
        return math.nan
    if type(value) not in (int, float):
        raise UnreadableLine(f"'{place}' is {_shown(value)}, which is no number.")
    try:
        return float(value)
    except OverflowError:
        raise UnreadableLine(f"'{place}' is too large a number.") from None


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"


@dataclass(frozen=True, slots=True)
class LineKind:
    read: Callable[[list[Any], str], LineSample]
    compare: Callable[[LineQuestion], tuple[Effect | None, str]]


NAMES = {"latency": "seconds", "accuracy": "score"}
KINDS = {"seconds": LineKind(_times, _times_compared), "score": LineKind(_scores, _scores_compared)}
