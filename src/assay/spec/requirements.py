"""Requirements as people write them: `accuracy>=0.9, refunds:p95_seconds<2`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from assay.errors import did_you_mean
from assay.model.metric import KNOWN_METRICS, metric_named
from assay.model.rating import DIMENSIONS
from assay.model.requirement import SIGNS, Requirement

OF_TRIALS = (*DIMENSIONS, "overall", "completion", "cost_per_solved", "tokens_per_solved")
"""Names for a trial as a whole."""
STATISTICS = ("mean", "median", "min", "max", "p50", "p90", "p95", "p99")
_UNITS = {"": 1.0, "%": 0.01, "s": 1.0, "ms": 0.001}
_WRITTEN = re.compile(
    r"(?:(?P<benchmark>[^<>=]+):)?(?P<name>[^<>=:]+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<number>[-+]?[0-9.]+(?:[eE][-+]?\d+)?)\s*(?P<unit>%|ms|s|)"
)
_STATISTIC = re.compile(r"(mean|median|min|max|p\d{1,2}(?:\.\d+)?)_(.+)")
_PASSES = re.compile(r"pass[@^][1-9]\d*")


def parse_requirements(written: str | Sequence[str]) -> list[Requirement]:
    """From a text with commas, or a list of such; ValueError that says what is wrong with which part."""
    texts = [written] if isinstance(written, str) else written
    return [_parse(part.strip()) for text in texts for part in text.split(",") if part.strip()]


def _parse(text: str) -> Requirement:
    found = _WRITTEN.fullmatch(text)
    try:
        limit = float(found["number"]) * _UNITS[found["unit"]] if found else None
    except ValueError:
        limit = None
    if found is None or limit is None:
        raise ValueError(
            f"'{text}' is not a requirement. Write a name, one of {' '.join(SIGNS)} and a number: accuracy>=0.9"
        )
    return Requirement(found["name"].strip(), found["sign"], limit, (found["benchmark"] or "").strip())


def split_name(name: str) -> tuple[str, str]:
    """The statistic and the metric of `p95_seconds`; no statistic where it is a plain metric."""
    found = _STATISTIC.fullmatch(name)
    return (found[1], found[2]) if found else ("", name)


def is_of_trial(name: str) -> bool:
    """Whether it is a figure of the trial as a whole rather than of a metric."""
    return name in OF_TRIALS or _PASSES.fullmatch(name) is not None


def unknown_name(name: str, metrics: Collection[str] = ()) -> str:
    """What is wrong with a name, with the nearest known one; empty where it may be known. `metrics` are further ones."""
    statistic, metric = split_name(name)
    known = {*KNOWN_METRICS, *metrics}
    if is_of_trial(name) or metric in known or metric_named(metric).unit or metric.startswith("score."):
        return ""
    nearest = [
        *OF_TRIALS,
        *(f"{statistic or one}_{metric}" for metric in known for one in STATISTICS),
        *known,
    ]
    return (
        f"There is no '{name}' among the names of requirements ({', '.join(OF_TRIALS)}, pass@K, pass^K, and METRIC or "
        f"{'_METRIC, '.join(STATISTICS[:4])}_METRIC, pNN_METRIC of {', '.join(sorted(known))}). "
        f"{did_you_mean(name, nearest)}"
    ).strip()


def unknown_benchmark(requirements: Iterable[Requirement], known: Collection[str]) -> str:
    for one in requirements:
        if one.benchmark and one.benchmark not in known:
            told = f"There is no benchmark '{one.benchmark}' ({', '.join(sorted(known))})."
            return f"{told} {did_you_mean(one.benchmark, known)}".strip()
    return ""
