"""What people write about loads: times, rates, objectives and stages.

Options of `assay load`, params of the load experiment and keys of stress scenarios all use these notations. Each function takes the
text and the option that it was given for, which a `SpecError` names in the place of a file. Results are in base units: seconds,
requests per second and shares from 0 to 1.
"""

from __future__ import annotations

import math
import re

from assay.errors import Mistake, SpecError
from assay.model.load import Objective

HIGHEST_RATE = 1_000_000.0
MOST_TOKENS = 1_000_000
_TIMES = ("ttft", "itl", "tpot", "latency", "schedule_delay")
_RATES = ("error_rate", "throughput", "goodput", "tokens")
_STATISTICS = ("mean", "max", "p50", "p90", "p95", "p99", "p999")
_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d{1,2})?"
_OBJECTIVE = re.compile(
    rf"\s*([a-z_]+?)(?:_(mean|max|p\d+))?\s*(<=?|>=?)\s*({_NUMBER})\s*(us|µs|ms|s|%|/s)?\s*", re.A
)
_DURATION = re.compile(rf"({_NUMBER})\s*(us|ms|s|m|min|h)?", re.A)
_UNITS = {
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "%": 0.01,
    "/s": 1.0,
}
_STAGE = re.compile(rf"([^@]+)@\s*({_NUMBER})\s*(?:/s)?\s*(?:\.\.\s*({_NUMBER})\s*(?:/s)?)?", re.A)


def seconds_of(text: str, option: str) -> float:
    """
    >>> seconds_of("10", "--duration"), seconds_of("200ms", "--duration"), seconds_of("2m", "--duration")
    (10.0, 0.2, 120.0)
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise _wrong(option, f"'{text}' is not a time. Write 10, 10s, 200ms or 2m.")
    return float(match[1]) * _UNITS[match[2] or "s"]


def rate_of(text: str | float, option: str) -> float:
    """
    >>> rate_of("200", "--rate"), rate_of("50/s", "--rate")
    (200.0, 50.0)
    """
    try:
        rate = float(str(text).removesuffix("/s"))
    except ValueError:
        raise _wrong(option, f"'{text}' is not a rate. Write requests per second, as in 50 or 0.5.") from None
    if not math.isfinite(rate) or rate <= 0:
        raise _wrong(option, f"A rate must be more than 0, not {text}.")
    if rate > HIGHEST_RATE:
        raise _wrong(
            option, f"{text} requests/s is more than any machine can send; the maximum is {HIGHEST_RATE:.0f}."
        )
    return rate


def objectives_of(text: str, option: str = "--slo") -> tuple[Objective, ...]:
    """
    >>> [(o.metric, o.statistic, o.limit) for o in objectives_of("ttft_p95<200ms, error_rate<1%")]
    [('ttft', 'p95', 0.2), ('error_rate', None, 0.01)]
    """
    parts = [part for part in text.split(",") if part.strip()]
    if not parts:
        raise _wrong(option, "No objective is given. Write for instance: ttft_p95<200ms,error_rate<1%")
    return tuple(_objective(part, option) for part in parts)


_NOT_WHILE_IT_RUNS = {"itl": "tpot", "goodput": "error_rate or latency"}


def abort_conditions_of(text: str) -> tuple[Objective, ...]:
    """Conditions that end a load as soon as one holds, written like objectives.

    >>> [(c.metric, c.limit, c.is_upper) for c in abort_conditions_of("error_rate>50%")]
    [('error_rate', 0.5, False)]
    """
    conditions = objectives_of(text, "--abort-on")
    for condition in conditions:
        if instead := _NOT_WHILE_IT_RUNS.get(condition.metric):
            raise _wrong(
                "--abort-on",
                f"'{condition.metric}' is not available while a load runs: use {instead} instead.",
            )
    return conditions


def _objective(text: str, option: str) -> Objective:
    """One condition. A time needs a statistic and a unit, a rate neither; an error rate may be written in percent."""
    match = _OBJECTIVE.fullmatch(text)
    if match is None:
        raise _wrong(
            option,
            f"'{text.strip()}' is not an objective. Write for instance ttft_p95<200ms or error_rate<1%.",
        )
    metric, statistic, sign, number, unit = match.groups()
    if metric not in (*_TIMES, *_RATES):
        raise _wrong(
            option, f"'{metric}' cannot be an objective; use one of {', '.join((*_TIMES, *_RATES))}."
        )
    if metric in _TIMES and statistic not in _STATISTICS:
        raise _wrong(
            option, f"Choose a statistic of '{metric}': {', '.join(f'{metric}_{s}' for s in _STATISTICS)}."
        )
    if metric in _TIMES and unit not in ("us", "µs", "ms", "s"):
        raise _wrong(option, f"'{text.strip()}' needs a unit: us, ms or s.")
    if metric in _RATES and (statistic or unit in ("us", "µs", "ms", "s")):
        raise _wrong(option, f"'{metric}' is a rate: write {_example(metric)}.")
    if unit == ("/s" if metric == "error_rate" else "%"):
        raise _wrong(option, f"'{text.strip()}': write {_example(metric)}.")
    limit = float(number) * _UNITS.get(unit or "", 1.0)
    return Objective(text.strip(), metric, statistic, sign.startswith("<"), limit, sign.endswith("="))


def _example(metric: str) -> str:
    return "error_rate<1%" if metric == "error_rate" else f"{metric}>50"


def stages_of(text: str) -> tuple[tuple[float, float, float], ...]:
    """Seconds and rates: `10s@50` stays at 50/s, `10s@50..200` goes from one to the other.

    >>> stages_of("10s@50,5s@50..200")
    ((10.0, 50.0, 50.0), (5.0, 50.0, 200.0))
    """
    stages = tuple(_stage(part) for part in text.split(",") if part.strip())
    if not any(first + last for _, first, last in stages):
        raise _wrong("--stages", "No stage sends anything. Write for instance: 10s@50,20s@200,10s@50")
    return stages


def _stage(text: str) -> tuple[float, float, float]:
    """Length, first rate and last rate of one stage of `--stages`; without a ramp the last rate is the first."""
    match = _STAGE.fullmatch(text.strip())
    if match is None:
        raise _wrong("--stages", f"'{text.strip()}' is not a stage. Write 10s@50, or for a ramp 10s@50..200.")
    length = seconds_of(match[1], "--stages")
    first, last = float(match[2]), float(match[3] or match[2])
    if length <= 0:
        raise _wrong("--stages", f"'{text.strip()}' must last longer than 0 s.")
    if max(first, last) > HIGHEST_RATE:
        raise _wrong(
            "--stages",
            f"{text.strip()}: more requests/s than any machine can send; the maximum is {HIGHEST_RATE:.0f}.",
        )
    return length, first, last


def sendable(prompt: str) -> str:
    """The prompt, unless it is empty or cannot be encoded; ValueError is the rest of a sentence about its row.

    >>> sendable("hello")
    'hello'
    """
    try:
        prompt.encode()
    except UnicodeEncodeError:
        raise ValueError("has half of a surrogate pair, which cannot be sent") from None
    if not prompt.strip():
        raise ValueError("the prompt is empty")
    return prompt


def check_prompt(prompt: str) -> str:
    try:
        return sendable(prompt)
    except ValueError as error:
        raise _wrong("--prompt", str(error)) from None


def _wrong(option: str, text: str) -> SpecError:
    return SpecError([Mistake(option, None, "", text)])
