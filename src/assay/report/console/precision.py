"""Noise floors (`assay noise`) and required sample sizes (`assay power`) for the terminal.

The noise floor is how much a metric varies although nothing changes, with the shares of it that come from cases, from the
machine and from repetitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from assay.model import Metric, Report
from assay.model.metric import is_score
from assay.model.precision import Need, NoiseFloor
from assay.report.console.screen import NARROW, RowGroup, bullet, literal, new_table, print_groups
from assay.units import count, percent, seconds, usd

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_UNITS = {"case": "Cases", "process": "Processes", "load": "Loads"}
_ALARMS = ("better", "worse")


def print_noise(report: Report, floors: Sequence[NoiseFloor], console: Console) -> None:
    """What varies, and where that comes from; on a wide screen also what half of the rounds says of the other half."""
    is_wide = console.width >= NARROW
    trials: dict[str, list[NoiseFloor]] = {}
    for floor in floors:
        trials.setdefault(floor.trial, []).append(floor)
    titles = ["Trial, metric", "Noise floor", "Claim above", "By case", "By machine", "By repetition"]
    if floors:
        print_groups(
            [*titles, *(["Odd against even rounds"] if is_wide else [])],
            [
                RowGroup(literal(name, "bold"), [_floor_cells(floor, is_wide) for floor in own])
                for name, own in trials.items()
            ],
            console,
        )
        console.print(literal("Noise floor: how much one round varies.", "dim"))
        console.print(
            literal(
                "Claim above: the smallest difference you can claim. By …: share of the noise by source.",
                "dim",
            )
        )
    for text in _remarks(report, floors):
        console.print(bullet("!", text, "yellow"))


def _floor_cells(floor: NoiseFloor, is_wide: bool) -> list[Text]:
    is_alarm = floor.verdict in _ALARMS
    # In a process only the executions' places differ from each other, and they are no cases.
    share_case = floor.share_case if floor.unit == "case" else None
    shares = (share_case, floor.share_machine, floor.share_repetition)
    itself = [literal("false alarm" if is_alarm else "no alarm", "yellow" if is_alarm else "dim")]
    return [
        literal(f"  {floor.metric.name}"),
        literal(_size(floor.metric, floor.floor), "bold"),
        literal(_size(floor.metric, floor.tolerance)),
        *(literal("–" if share is None else percent(share), "dim") for share in shares),
        *(itself if is_wide else ()),
    ]


def _size(metric: Metric, size: float) -> str:
    if not is_score(metric):
        return percent(size)
    points = f"{size * 100:.2g}"
    return f"{points} point{'s' * (points != '1')}"


def _remarks(report: Report, floors: Sequence[NoiseFloor]) -> list[str]:
    """What casts doubt on a noise floor. An alarm here is a difference between halves of a run in which nothing changed."""
    if not floors:
        return [
            "There is no noise floor: no metric has a value in four rounds or more. See: assay show "
            + report.run.id
        ]
    alarms = [floor for floor in floors if floor.verdict in _ALARMS]
    found = [
        f"{floor.trial}: {floor.metric.name} differed between odd and even rounds, although nothing changed. One such "
        "alarm in twenty is chance; more mean that the machine changed during the run."
        for floor in alarms
    ]
    return found + [doubt.message for doubt in report.doubts if doubt.code == "environment"]


def print_needs(needs: Sequence[Need], console: Console) -> None:
    """What each comparison needs, with the power it has now, then what the words mean and why a need is unknown."""
    table = new_table(tight=console.width < NARROW)
    table.add_column("Benchmark", overflow="fold")
    table.add_column("Metric", no_wrap=True)
    unit = _UNITS[needs[0].unit] if len({need.unit for need in needs}) == 1 else "Units"
    executions_title = "Executions" if console.width >= NARROW else "Exec."
    now = (f"{unit} now", "Power now") if console.width >= NARROW else (unit, "Power")
    repetitions = "or repetitions" if console.width >= NARROW else "or reps"
    for title in ("Effect", *now, "Needed", repetitions, executions_title, "Time", "Cost"):
        table.add_column(title, justify="right", no_wrap=True)
    for need in needs:
        is_enough = need.units is not None and need.units <= need.there
        table.add_row(
            literal(need.benchmark),
            literal(need.metric.name),
            literal(_size(need.metric, need.effect)),
            literal(count(need.there)),
            literal("–" if need.power_now is None else percent(need.power_now.share)),
            literal(_number(need.units), "green" if is_enough else "bold"),
            literal(_number(need.more_repetitions)),
            literal(_number(need.executions)),
            literal(_forecast(need, None if need.minutes is None else seconds(need.minutes * 60))),
            literal(_forecast(need, None if need.usd is None else usd(need.usd))),
        )
    console.print(table)
    for text in _meaning(needs):
        console.print(literal(text, "dim"))
    for need in needs:
        reasons = {_UNITS[need.unit].lower(): need.why_not_units, "repetitions": need.why_not_repetitions}
        for unit, reason in reasons.items():
            if reason:
                text = f"more {unit} alone are not enough: {reason}"
                console.print(bullet("·", f"{need.benchmark}, {need.metric.name}: {text}", "dim"))


def _forecast(need: Need, text: str | None) -> str:
    """Format a forecast of time or cost: there is none where no size is enough."""
    return "–" if need.executions is None else text or "unknown"


def _number(number: int | None) -> str:
    return "–" if number is None else count(number)


def _meaning(needs: Sequence[Need]) -> Iterator[str]:
    """Explain the terms of the table: what power means here and what the figures rest on."""
    family = needs[0].family
    among = f", corrected for up to {family} comparisons in that command" if family > 1 else ""
    yield (
        "Power: share of simulated runs in which `assay compare` says better or worse when this metric alone differs by "
        f"the effect{among}. Needed: the size with a power of 80 %."
    )
    powers = [power for need in needs for power in (need.power_units, need.power_repetitions) if power]
    if powers:
        widest = max(max(power.share - power.low, power.high - power.share) for power in powers)
        yield (
            f"{powers[0].simulations} simulations per figure (± {100 * widest:.0f} points). "
            "Executions, time and cost are for both sides together, in the cheaper of the two ways."
        )
    bases = list(dict.fromkeys(need.basis for need in needs))
    if len(bases) == 1:
        yield f"Model: {bases[0]}."
    else:
        for basis in bases:
            named = "; ".join(
                f"{need.benchmark}, {need.metric.name}" for need in needs if need.basis == basis
            )
            yield f"Model of {named}: {basis}."
