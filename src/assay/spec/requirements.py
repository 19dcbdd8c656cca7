"""Requirements as people write them: `accuracy>=0.9, refunds:p95_seconds<2`.

A requirement is a name, a sign and a number, optionally for one benchmark. The name is a figure of the trial as a whole (a rating,
`completion`, `pass@3`) or a metric, with or without a statistic before it (`p95_seconds`). Suites have requirements under `require`,
`assay gate` takes more with `--require`, and `analysis.comparison.requirements` checks them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from assay.errors import did_you_mean, format_unknown_name
from assay.model.dimension import DIMENSIONS
from assay.model.metric import KNOWN_METRICS, metric_named
from assay.model.requirement import SIGNS, Requirement

OF_TRIALS = (*DIMENSIONS, "overall", "completion", "cost_per_solved", "tokens_per_solved")
"""Names for a trial as a whole."""
STATISTICS = ("mean", "median", "min", "max", "p50", "p90", "p95", "p99")
_SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_WRITTEN = re.compile(
    r"(?:(?P<benchmark>[^<>=]+):)?(?P<name>[^<>=:]+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<number>[-+]?[0-9.]+(?:[eE][-+]?\d+)?)\s*(?P<unit>%|ms|s|)"
)
_STATISTIC = re.compile(r"(mean|median|min|max|p\d{1,2}(?:\.\d+)?)_(.+)")
_PASSES = re.compile(r"pass[@^][1-9]\d*")
_LIKE_A_PERCENTILE = re.compile(r"p\d+(?:\.\d+)?_.+")
_HINT = f"Write a name, an operator ({' '.join(SIGNS)}) and a number, as in accuracy>=0.9"


def parse_requirements(written: str | Sequence[str]) -> list[Requirement]:
    """Parse requirements from a text with commas, or from a list of such texts.

    Raises ValueError that says what is wrong with which part.
    """
    texts = [written] if isinstance(written, str) else written
    for text in texts:
        if not text.strip(" ,"):
            raise ValueError(f"is empty. {_HINT}")
    return [_parse(part.strip()) for text in texts for part in text.split(",") if part.strip()]


def _parse(text: str) -> Requirement:
    """One requirement.

    Shares must lie between 0 and 1: `accuracy>=90` can only be meant as a percentage, and would never be met.
    """
    match = _WRITTEN.fullmatch(text)
    try:
        limit = _limit(match["name"], float(match["number"]), match["unit"]) if match else None
    except ValueError:
        limit = None
    if match is None or limit is None:
        raise ValueError(f"'{text}' is not a requirement. {_HINT}")
    name, metric = match["name"], split_name(match["name"])[1]
    is_score = metric == "score" or metric.startswith("score.")
    is_share = is_score or (is_of_trial(name) and not name.endswith("_per_solved"))
    if is_share and not 0 <= limit <= 1:
        raise ValueError(f"'{text}': '{name}' is between 0 and 1; write 0.9 or 90 %, for example.")
    return Requirement(name.strip(), match["sign"], limit, (match["benchmark"] or "").strip())


def _limit(name: str, number: float, unit: str) -> float:
    """Convert a limit to the unit of the metric, which is seconds unless its name says otherwise (`latency_ms`)."""
    if unit == "%":
        return number / 100
    if unit:
        return number * _SECONDS[unit] / _SECONDS.get(metric_named(split_name(name)[1]).unit, 1.0)
    return number


def split_name(name: str) -> tuple[str, str]:
    """The statistic and the metric of `p95_seconds`; no statistic where it is a plain metric."""
    match = _STATISTIC.fullmatch(name)
    return (match[1], match[2]) if match else ("", name)


def is_of_trial(name: str) -> bool:
    """Whether it is a figure of the trial as a whole rather than of a metric."""
    return name in OF_TRIALS or _PASSES.fullmatch(name) is not None


def unknown_name(name: str, metrics: Collection[str] = ()) -> str:
    """What is wrong with a name, with the nearest known one; empty where it may be known. `metrics` are further ones."""
    statistic, metric = split_name(name)
    known = {*KNOWN_METRICS, *metrics}
    if name not in known and not statistic and _LIKE_A_PERCENTILE.fullmatch(name):
        return f"There is no percentile '{name}'. Write p50 to p99.9, or max_ for the largest value."
    if is_of_trial(name) or metric in known or metric_named(metric).unit or metric.startswith("score."):
        return ""
    nearest = [
        *OF_TRIALS,
        *(f"{statistic or any_statistic}_{metric}" for metric in known for any_statistic in STATISTICS),
        *known,
    ]
    known_kinds = "Use a rating such as accuracy, completion, cost_per_solved, pass@K, or a metric such as seconds or p95_seconds."
    return f"'{name}' cannot be required. {did_you_mean(name, nearest) or known_kinds}"


def unknown_benchmark(requirements: Iterable[Requirement], known: Collection[str]) -> str:
    """What is wrong with the first requirement for a benchmark that does not exist; empty where all exist."""
    for requirement in requirements:
        benchmark = requirement.benchmark
        if benchmark and benchmark not in known:
            return format_unknown_name(benchmark, "benchmarks", known)
    return ""
