"""Compares samples from other tools: one comparison is one line of JSON (`assay compare --lines`).

Input is an object with `kind` ("latency" or "accuracy"), the samples `a` and `b`, and optionally `paired`. A sample is a
list of numbers, or a list of lists, one for each process or case. Output is an object with effect, interval, p value,
verdict and method, by the same tests and the same policy as all other comparisons. A line that cannot be read gets an
answer with `error`, so that line n of the output always belongs to line n of the input.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.analysis.comparison.policy import Tolerances, judge
from assay.analysis.comparison.verdict import FEWEST_PAIRS, FEWEST_UNITS, Contrast
from assay.errors import AssayError
from assay.model import Metric, Verdict, metric_named
from assay.stats.effect import Effect, compare_paired, compare_unpaired
from assay.stats.means import compute_unpaired_mean_difference, mean_difference
from assay.stats.sample import Array, Scale

EXAMPLE = '{"kind": "latency", "a": [1.2, 1.3], "b": [1.1, 1.2], "paired": false}'


class UnreadableLine(AssayError):
    pass


@dataclass(frozen=True, slots=True)
class LineSample:
    """One side: one value for each unit, NaN where it is missing."""

    units: Array
    observations: int
    """The number of values behind the units: all repetitions of all cases."""


@dataclass(frozen=True, slots=True)
class LineQuestion:
    """One comparison: which metric, both samples, and whether their items are pairs."""

    metric: Metric
    a: LineSample
    b: LineSample
    is_paired: bool


def answer_line(line: str | bytes, number: int, tolerance: float | None = None) -> dict[str, Any]:
    """The answer to a line; if it cannot be read, `error` says why."""
    try:
        return answer(_question(line), tolerance)
    except UnreadableLine as error:
        return {"error": f"Line {number}: {error}", "line": number, **_document(None, Verdict.UNSURE)}


def answer(question: LineQuestion, tolerance: float | None = None) -> dict[str, Any]:
    """Effect, interval, p value and verdict; the effect is B ÷ A for times and B − A for scores."""
    effect, refusal = KINDS[question.metric.name].compare(question)
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
    (judged,) = judge([contrast], tolerances=Tolerances(tolerance))
    assert judged.verdict is not None
    left_out = question.a.units.size + question.b.units.size - a.size - b.size
    return _document(effect, judged.verdict, judged.reason) | ({"left_out": left_out} if left_out else {})


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


def _compare_times(question: LineQuestion) -> tuple[Effect | None, str]:
    """The effect of times, and why it gets no verdict, if so: too few values, or no ratio."""
    a, b = _sides(question)
    effect = (compare_paired if question.is_paired else compare_unpaired)(a, b)
    fewest, needed = min(a.size, b.size), FEWEST_PAIRS if question.is_paired else FEWEST_UNITS
    if effect is None or fewest < needed:
        noun = "pair" if question.is_paired else "value"
        count = f"{fewest} {noun}s are" if fewest != 1 else f"One {noun} is"
        return effect, f"{count} too few: use at least {needed}{'' if question.is_paired else ' per side'}."
    if effect.scale is Scale.DIFFERENCE:
        nothing = Effect(effect.scale, math.nan, math.nan, math.nan, effect.p, effect.method)
        return nothing, "Times must be greater than zero, because they are compared by their ratio."
    return effect, ""


def _compare_scores(question: LineQuestion) -> tuple[Effect | None, str]:
    a, b = _sides(question)
    if question.is_paired:
        return mean_difference(a, b), ""
    executions = (question.a.observations, question.b.observations)
    return compute_unpaired_mean_difference(a, b, executions), ""


def _sides(question: LineQuestion) -> tuple[Array, Array]:
    """Return both samples without missing values; a pair that lacks one half is dropped."""
    a, b = question.a.units, question.b.units
    if not question.is_paired:
        return _present(a), _present(b)
    whole = np.isfinite(a) & np.isfinite(b)
    return a[whole], b[whole]


def _present(values: Array) -> Array:
    return values[np.isfinite(values)]


def _question(line: str | bytes) -> LineQuestion:
    """Read a line; every mistake in it becomes an `UnreadableLine` that says what to write instead."""
    document = _parse_line(line)
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in NAMES:
        raise UnreadableLine(f'\'kind\' is {_format_value(kind)}; write "latency" or "accuracy".')
    metric = metric_named(NAMES[kind])
    read = KINDS[metric.name].read
    samples = []
    for side in ("a", "b"):
        values = document.get(side)
        if not isinstance(values, list):
            raise UnreadableLine(f"'{side}' is {_format_value(values)}; it must be a list.")
        samples.append(read(values, side))
    a, b = samples
    is_paired = document.get("paired", False)
    if not isinstance(is_paired, bool):
        raise UnreadableLine(f"'paired' is {_format_value(is_paired)}; write true or false.")
    if is_paired and a.units.size != b.units.size:
        raise UnreadableLine(
            f"'a' has {a.units.size} values and 'b' has {b.units.size}, so they are not pairs; "
            'write null for what is missing, or "paired": false.'
        )
    return LineQuestion(metric, a, b, is_paired)


def _parse_line(line: str | bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        raise UnreadableLine(f"This is not a JSON document. Write one per line, as in {EXAMPLE}") from None
    if not isinstance(document, dict):
        raise UnreadableLine(f"This is not a JSON object. Write one per line, as in {EXAMPLE}")
    return document


def _read_times(values: list[Any], side: str) -> LineSample:
    """A sample of times. Items are numbers, or lists with the times of one process, whose median stands for it."""
    table = _table(values)
    if table is not None and table.ndim == 1 and bool not in set(map(type, values)):
        return LineSample(table, table.size)
    units = []
    for i, value in enumerate(values):
        if isinstance(value, list):
            times = np.array([_number(item, f"{side}[{i}]") for item in value], dtype=np.float64)
            units.append(float(np.median(_present(times))) if _present(times).size else math.nan)
        else:
            units.append(_number(value, f"{side}[{i}]"))
    return LineSample(np.array(units, dtype=np.float64), len(units))


def _read_scores(values: list[Any], side: str) -> LineSample:
    """A sample of scores. Items are lists with the repetitions of a case, whose mean stands for it, or single scores."""
    table = _table(values)
    if table is not None and table.size and ((table >= 0) & (table <= 1)).all():
        return LineSample(table.reshape(len(values), -1).mean(axis=1), table.size)
    means, observations = [], 0
    for i, value in enumerate(values):
        present = []
        for score in value if isinstance(value, list) else [value]:
            number = float(score) if isinstance(score, bool) else _number(score, f"{side}[{i}]")
            if math.isnan(number):
                continue
            if not 0 <= number <= 1:
                raise UnreadableLine(f"'{side}[{i}]' is {_format_value(score)}; a score is from 0 to 1.")
            present.append(number)
        observations += len(present)
        means.append(sum(present) / len(present) if present else math.nan)
    return LineSample(np.array(means, dtype=np.float64), observations)


def _table(values: list[Any]) -> Array | None:
    """The values as one array if nothing is missing or misplaced; reading them one by one would take ten times as long."""
    try:
        table = np.array(values)
    except ValueError:
        return None
    return table.astype(np.float64) if table.ndim in (1, 2) and table.dtype.kind in "biuf" else None


def _number(value: Any, place: str) -> float:
    if value is None:
        return math.nan
    if type(value) not in (int, float):
        raise UnreadableLine(f"'{place}' is {_format_value(value)}, which is not a number.")
    try:
        return float(value)
    except OverflowError:
        raise UnreadableLine(f"'{place}' is too large a number.") from None


def _format_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"


@dataclass(frozen=True, slots=True)
class LineKind:
    """How samples of one kind are read and compared; `compare` returns the effect, and why it gets no verdict if so."""

    read: Callable[[list[Any], str], LineSample]
    compare: Callable[[LineQuestion], tuple[Effect | None, str]]


NAMES = {"latency": "seconds", "accuracy": "score"}
KINDS = {"seconds": LineKind(_read_times, _compare_times), "score": LineKind(_read_scores, _compare_scores)}
