"""From the loads of a scenario to what it showed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace

from assay.analysis.stress import recovered_after
from assay.execute.load.quality import case_means, figure_of
from assay.execute.stress.breaking import is_our_fault
from assay.execute.stress.calm import calm_load
from assay.model.figure import Figure
from assay.model.load import Moment, Objective, Quality
from assay.model.stress import Breach, Correctness, Judgement, ScenarioFinding, Scored, Stretch
from assay.plugin.scenario import Bench, Scenario
from assay.report.stress import spanned
from assay.stats.means import mean_difference
from assay.units import count, counted, percent, seconds, significant

_OWN = ("no_descriptors", "no_ports")
_NOTABLE = 0.01
"""Of a score: a smaller fall changes nobody's mind, however certain it is."""


@dataclass(frozen=True, slots=True)
class Borne:
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
    bench: Bench,
    stretches: Sequence[Stretch],
    load: Borne,
    breach: Breach | None,
    *,
    lasted: float,
    shown: Stretch | None = None,
    recovery: Recovery = Recovery(),  # noqa: B008  (frozen)
    judgements: Sequence[Judgement] = (),
    warnings: Sequence[str] = (),
    unasked: int = 0,
    pressed: Sequence[Scored] | None = None,
) -> ScenarioFinding:
    """`shown` is the stretch whose times stand for the scenario; `unasked` requests were not even put, as it was hopeless;
    `pressed` are the answers given under pressure, where that is not all of the time."""
    chosen = shown or stretches[-1]
    judged = correctness(stretches, bench.calm_quality, pressed)
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
        judgements=(*judgements, *quality(judged, bench.calm_quality)),
        moments=_joined(stretches),
        warnings=(*_doubts(stretches), *_unscored(judged), *warnings),
        is_simulated=any(stretch.result.is_simulated for stretch in stretches),
        in_time=sum(stretch.punctual for stretch in stretches),
        correctness=judged,
    )


def late(stretch: Stretch, objectives: Sequence[Objective]) -> Breach | None:
    """An objective that was given and not kept; failures each scenario judges in its own way."""
    breach = stretch.breach
    return (
        breach if objectives and breach is not None and breach.cause not in ("errors", "generator") else None
    )


def correctness(
    stretches: Sequence[Stretch], calm: Quality | None, pressed: Sequence[Scored] | None = None
) -> Correctness | None:
    """None where no answer was held against a suite."""
    known = [one for stretch in stretches for one in stretch.scored]
    if not known:
        return None
    under = case_means((one.case, one.value) for one in (known if pressed is None else pressed))
    scored = sum(one.value is not None for one in known)
    return Correctness(
        figure_of(list(under.values())) if under else None,
        calm.score if calm else None,
        _change(calm.by_case, under) if calm else None,
        scored,
        len(known) - scored,
        sum(one.is_right for one in known),
    )


def _change(calm: Mapping[int, float], under: Mapping[int, float]) -> Figure | None:
    """Case by case, so that easy and hard ones do not stand in for pressure."""
    shared = sorted(calm.keys() & under.keys())
    effect = mean_difference([calm[case] for case in shared], [under[case] for case in shared])
    return None if effect is None else Figure(effect.value, effect.low, effect.high)


def quality(judged: Correctness | None, calm: Quality | None) -> list[Judgement]:
    """Whether answers are worse under pressure than in calm, beyond what chance explains."""
    if judged is None:
        text = "Whether answers are right is not judged here: what is asked is made up"
        return [Judgement("quality", text)] if calm else []
    if judged.score is None:
        return [Judgement("quality", "No answer under pressure could be scored")]
    told = f"Answers score {spanned(judged.score)} under pressure"
    if judged.calm is None:
        return [Judgement("quality", told, judged.score.value, judged.score.low, judged.score.high)]
    told = f"{told}, {spanned(judged.calm)} in calm"
    change = judged.change
    if change is None or change.high is None:
        return [Judgement("quality", f"{told}; one case is too few to tell a change from chance")]
    is_worse = change.high < 0 and change.value < -_NOTABLE
    text = f"{told}: case by case a change of {significant(change.value)}"
    return [Judgement("quality", text, change.value, change.low, change.high, "", not is_worse)]


def _unscored(judged: Correctness | None) -> list[str]:
    if judged is None or not judged.unscored:
        return []
    of = count(judged.scored + judged.unscored)
    told = f"{count(judged.unscored)} of {of} answers could not be scored"
    return [f"{told}: whether they are right is taken from the others." if judged.scored else f"{told}."]


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
    held_up = sum(stretch.held_up for stretch in stretches)
    if held_up:
        told.append(
            f"This machine held us up for {seconds(held_up)} in all: what was late by that is in the figures."
        )
    unsent = sum(stretch.errors.get(kind, 0) for stretch in stretches for kind in _OWN)
    if unsent:
        told.append(
            f"{counted(unsent, 'request')} could not be sent for lack of descriptors or ports here (ulimit -n)."
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
