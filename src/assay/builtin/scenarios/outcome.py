"""From the loads of a scenario to what it showed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace

from assay.analysis.stress import recovered_after
from assay.execute.stress.breaking import is_our_fault
from assay.execute.stress.calm import calm_load
from assay.model.load import Moment
from assay.model.stress import Breach, Judgement, ScenarioFinding, Stretch
from assay.plugin.scenario import Bench, Scenario
from assay.units import count, percent, seconds

_OWN = ("no_descriptors", "no_ports")


@dataclass(frozen=True, slots=True)
class Load:
    """What was asked of the agent and what it bore, in one unit."""

    asked: float
    borne: float
    unit: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """Nothing to recover from: 0 seconds."""

    seconds: float | None = None
    is_seen: bool = True
    is_dead: bool = False


def finding(
    scenario: Scenario,
    stretches: Sequence[Stretch],
    load: Load,
    breach: Breach | None,
    *,
    lasted: float,
    shown: Stretch | None = None,
    recovery: Recovery = Recovery(),  # noqa: B008  (frozen)
    judgements: Sequence[Judgement] = (),
    warnings: Sequence[str] = (),
    unasked: int = 0,
) -> ScenarioFinding:
    """`shown` is the stretch whose times stand for the scenario; `unasked` requests were not even put, as it was hopeless."""
    chosen = shown or stretches[-1]
    errors: Counter[str] = Counter()
    for stretch in stretches:
        errors.update(stretch.errors)
    return ScenarioFinding(
        scenario.name,
        parameters=_parameters(scenario),
        seconds=lasted,
        offered=sum(stretch.offered for stretch in stretches) + unasked,
        good=sum(stretch.good for stretch in stretches),
        completed=sum(stretch.completed for stretch in stretches),
        errors=dict(errors),
        throughput=chosen.result.throughput,
        times=chosen.result.times,
        load_asked=load.asked,
        load_borne=load.borne,
        unit=load.unit,
        breach=breach,
        recovery=recovery.seconds,
        is_recovered=recovery.is_seen,
        is_dead=recovery.is_dead,
        judgements=tuple(judgements),
        moments=_joined(stretches),
        warnings=(*_doubts(stretches), *warnings),
        is_simulated=any(stretch.result.is_simulated for stretch in stretches),
    )


def _parameters(scenario: Scenario) -> Mapping[str, object]:
    return asdict(scenario) if is_dataclass(scenario) and not isinstance(scenario, type) else {}


def _joined(stretches: Sequence[Stretch]) -> tuple[Moment, ...]:
    """One after the other, without the pauses between them."""
    moments: list[Moment] = []
    for stretch in stretches:
        begin = moments[-1].begin + moments[-1].seconds if moments else 0.0
        moments += [replace(one, begin=begin + one.begin) for one in stretch.result.moments]
    return tuple(moments)


def _doubts(stretches: Sequence[Stretch]) -> list[str]:
    told = []
    ours = [stretch.result for stretch in stretches if is_our_fault(stretch.result)]
    if ours:
        busiest, latest = max(one.cpu_share for one in ours), max(one.lag_p99 for one in ours)
        told.append(
            f"This machine was itself at its limit in {count(len(ours))} of {count(len(stretches))} loads "
            f"({percent(busiest)} of a core, answers lay {seconds(latest)} unread): the agent may bear more. Use --workers."
        )
    unsent = sum(stretch.errors.get(kind, 0) for stretch in stretches for kind in _OWN)
    if unsent:
        told.append(
            f"{count(unsent)} requests could not be sent for lack of descriptors or ports here (ulimit -n)."
        )
    return told


def recovery_after(bench: Bench, length: float) -> Recovery:
    """The base rate once the pressure has ended: when was latency near the calm one again?"""
    after = bench.put(calm_load(bench.base, length), objectives=())
    took, is_seen = recovered_after(after.result.moments, 0.0, bench.calm)
    return Recovery(took, is_seen, is_dead=not after.completed)


def completed_between(stretch: Stretch, begin: float, end: float) -> float:
    """Answers per second that came back between two moments of a load."""
    inside = [one for one in stretch.result.moments if begin - 1e-9 <= one.begin < end - 1e-9]
    length = sum(one.seconds for one in inside)
    return sum(one.completed for one in inside) / length if length else 0.0


def text_of(size: int) -> str:
    """So many bytes of plain words."""
    line = "A benchmark asks the same of everybody and writes down what came back. "
    return (line * (size // len(line) + 1))[:size]


def numbered(prompts: Sequence[str], number: int) -> list[str]:
    """Each different from all others, so that one that is sent again can be told from another."""
    return [f"{prompts[place % len(prompts)]} ({place})" for place in range(number)]
