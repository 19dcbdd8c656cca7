"""Refuses to compare capacity searches, and says what can be compared instead.

The steps of a search are different loads, so they are not repetitions from which a comparison could estimate noise. Their
answers, the sustained rates with their intervals, are comparable: the message shows them and the command of a load test
that can be compared with verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.errors import Unlike
from assay.model import Report
from assay.report.capacity import interval_text, read_stored_capacity
from assay.text import shell_command
from assay.units import significant


def refuse_searches(refs: Sequence[str], sides: Sequence[Report]) -> None:
    """Raise `Unlike` with the sustained rates and the load that would compare, where a side is a capacity search."""
    found = [(ref, side) for ref, side in zip(refs, sides, strict=True) if side.run.is_capacity_search]
    if not found:
        return
    names = " and ".join(f"'{ref}'" for ref, _ in found)
    are = "are capacity searches" if len(found) > 1 else "is a capacity search"
    answers = [(ref, read_stored_capacity(side.trials)) for ref, side in found]
    rates = [
        f"'{ref}': {significant(answer['sustained_rate'])} requests/s{interval_text(answer)}."
        if answer["sustained_rate"] is not None
        else f"'{ref}': none."
        for ref, answer in answers
        if answer is not None
    ]
    judged = _overlap_text([answer for _, answer in answers if answer is not None])
    raise Unlike(
        " ".join(
            [
                f"{names} {are}, whose steps are different loads and not repetitions of one.",
                *(["Sustained rates:", *rates] if rates else []),
                *([judged] if judged else []),
                f"To compare with verdicts, run one load against both: {_command(found[0][1], answers)}",
            ]
        )
    )


def _overlap_text(answers: Sequence[Mapping[str, Any]]) -> str:
    """What the 95 % intervals of two sustained rates say: if they do not overlap, the rates differ by more than chance explains."""
    ends = [answer.get("sustained_interval") or [None, None] for answer in answers]
    if len(answers) != 2 or any(end is None for pair in ends for end in pair):
        return ""
    low_a, high_a, low_b, high_b = (float(end) for pair in ends for end in pair)
    if low_a <= high_b and low_b <= high_a:
        return "The intervals overlap, so no difference is established."
    return f"The intervals do not overlap: the second rate is {'higher' if low_b > high_a else 'lower'}."


def _command(side: Report, answers: Sequence[tuple[str, Mapping[str, Any] | None]]) -> str:
    """Build the command that compares the sides under one load.

    Its rate is nine tenths of the lowest sustained rate: at that rate itself one side may be on the edge,
    and its latencies would differ from run to run.
    """
    # At the sustained rate itself one side may be on the edge, and its latencies would differ wildly from run to run.
    rates = [answer["sustained_rate"] for _, answer in answers if answer and answer["sustained_rate"]]
    params = side.trials[0].stored.trial.params
    load = ["--rate", significant(0.9 * min(rates)).replace(",", "")] if rates else ["--concurrency", "8"]
    model = ["--model", str(params["model"])] if params.get("model") else []
    return shell_command(
        "load", str(params.get("target", "URL")), options=[*model, *load, "--repetitions", "6"]
    )
