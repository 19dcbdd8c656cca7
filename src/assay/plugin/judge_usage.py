"""What judges use up: calls, tokens and money that are no part of the cost of the agent under test.

The figures are kept under the names of `JUDGING`. A figure that is unknown for one answer is left out of the sum altogether:
a sum of the others would look like the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from assay.model import Answer
from assay.model.metric import JUDGING
from assay.plugin.prices import Price

_CALLS, _TOKENS, _USD = JUDGING


def compute_judge_usage(answers: Sequence[Answer], price: Price) -> dict[str, float]:
    """What the answers of a judge used up; empty where it was not asked."""
    costs = [price.of(answer) for answer in answers]
    tokens = [answer.usage.tokens for answer in answers]
    usage = {_CALLS: float(len(answers))} if answers else {}
    if answers and None not in tokens:
        usage[_TOKENS] = float(sum(filter(None, tokens)))
    if answers and None not in costs:
        usage[_USD] = sum(cost.usd for cost in costs if cost is not None)
    return usage


def add_judge_usage(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sums of several; what is unknown of one is unknown of all."""
    used = [part for part in parts if part]
    known = [name for name in JUDGING if all(name in part for part in used)]
    return {name: sum(part[name] for part in used) for name in known} if used else {}


def judging_in(measurements: Mapping[str, float]) -> dict[str, float]:
    """The figures of judging among the measurements of an execution."""
    return {name: measurements[name] for name in JUDGING if name in measurements}
