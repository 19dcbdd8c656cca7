"""Who wins, on which dimension, by which cases; and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from assay.analysis.compare import matching_trials
from assay.analysis.leaderboard import mean_overall, mean_rating
from assay.analysis.losses import dimension_of
from assay.analysis.pairing import Pairing, certainly_better, shared_dimensions
from assay.analysis.replication import observed
from assay.analysis.rounds import OF_MACHINE
from assay.analysis.tally import case_number
from assay.analysis.treatment import redefined
from assay.model import Comparison, Report, TrialReport, Verdict
from assay.model.rating import DIMENSIONS
from assay.model.showdown import Flips, Showdown
from assay.model.standing import Contender

_PASSED = 0.5
_NAMED = 3


def showdowns(a: Report, b: Report, comparisons: Sequence[Comparison]) -> tuple[Showdown, ...]:
    """One for each agent of A and the one of B that it is matched with; none where nothing that both did is rated."""
    groups: dict[tuple[str, str], list[tuple[TrialReport, TrialReport]]] = {}
    for x, y in matching_trials(a, b):
        if x.ratings is not None and y.ratings is not None:
            groups.setdefault((x.stored.trial.agent.name, y.stored.trial.agent.name), []).append((x, y))
    return tuple(_showdown(pairs, a, b, comparisons) for pairs in groups.values())


def _showdown(
    pairs: Sequence[tuple[TrialReport, TrialReport]], a: Report, b: Report, comparisons: Sequence[Comparison]
) -> Showdown:
    first, second = contender([x for x, _ in pairs]), contender([y for _, y in pairs])
    if first.agent == second.agent:
        first, second = (replace(one, agent=_named(one, run)) for one, run in ((first, a), (second, b)))
    winners, ratings = _winners(first, second)
    alike = [pair for pair in pairs if not redefined(*pair)]
    flips = tuple(_flips(x, y) for x, y in alike)
    names = {x.name for x, _ in pairs}
    own = [one for one in comparisons if one.trial_a in names]
    winners = _held_back(winners, own)
    mixed = _mixed(pairs) or ("" if alike else redefined(*pairs[0]))
    known = {name for one in (first, second) for name in shared_dimensions([one])}
    left_out = tuple(name for name in DIMENSIONS if name in known - ratings.keys())
    made = Showdown(
        first.agent, second.agent, dict.fromkeys(winners) if mixed else winners, ratings, flips, (), left_out
    )
    return replace(made, advice=(mixed,) if mixed else tuple(_advice(made, b, own)))


def _mixed(pairs: Sequence[tuple[TrialReport, TrialReport]]) -> str:
    """Why nobody wins where one side made its figures up and the other did not; empty where they are alike."""
    for pair in pairs:
        first, second = (one.is_simulated for one in pair)
        if first != second:
            made_up, real = (one.stored.trial.agent.name for one in (pair if first else reversed(pair)))
            return (
                f"'{made_up}' is simulated, so its figures are made up, and '{real}' was measured: "
                "neither can be called better than the other. Compare like with like."
            )
    return ""


def contender(trials: Sequence[TrialReport]) -> Contender:
    """One side's trials, a benchmark each."""
    return Contender(
        agent=trials[0].stored.trial.agent.name,
        version=trials[0].stored.trial.agent.version,
        ratings={t.stored.trial.benchmark: t.ratings for t in trials if t.ratings is not None},
        is_simulated=False,
        latest=None,
        hashes={t.stored.trial.benchmark: t.definition for t in trials},
    )


def _named(one: Contender, report: Report) -> str:
    return f"{one.agent} in {report.run.id}"


def _winners(
    a: Contender, b: Contender
) -> tuple[Mapping[str, str | None], Mapping[str, tuple[float, float]]]:
    shared = shared_dimensions([a, b])
    if not shared:
        return {}, {}
    pairing = Pairing([a, b])
    names = [*shared, "overall"]
    found = [pairing.paired((name,) if name in shared else shared) for name in names]
    winners: dict[str, str | None] = {}
    for name, better in zip(names, certainly_better(found), strict=True):
        winners[name] = a.agent if better[0, 1] else b.agent if better[1, 0] else None
    ratings = {
        name: (mean_rating(name, a).value or 0.0, mean_rating(name, b).value or 0.0) for name in shared
    }
    overall = tuple(mean_overall(one, shared, 0.0).value or 0.0 for one in (a, b))
    return winners, {**ratings, "overall": (overall[0], overall[1])}


def _held_back(
    winners: Mapping[str, str | None], comparisons: Sequence[Comparison]
) -> Mapping[str, str | None]:
    """Ratings of time are no surer than the times, which the machine may explain; and so is the whole."""
    kept = dict(winners)
    for name in OF_MACHINE:
        verdicts = [one.verdict for one in comparisons if dimension_of(one.metric) == name]
        if verdicts and not {Verdict.BETTER, Verdict.WORSE} & set(verdicts):
            kept[name] = None
    others = [who for name, who in kept.items() if name != "overall"]
    return {**kept, "overall": kept["overall"] if kept.get("overall") in others else None}


def _flips(a: TrialReport, b: TrialReport) -> Flips:
    before, after = (_marks(trial) for trial in (a, b))
    shared = [case for case in before if case in after]
    won = tuple(case for case in shared if before[case] < _PASSED <= after[case])
    lost = tuple(case for case in shared if after[case] < _PASSED <= before[case])
    return Flips(a.stored.trial.benchmark, won, lost, len(shared) - len(won) - len(lost))


def _marks(trial: TrialReport) -> dict[str, float]:
    """The mean score of each case that has one."""
    if trial.ratings is None or "score" not in trial.series:
        return {}
    means = observed(trial.series["score"]).means
    numbers = {name: case_number(name) for name in trial.ratings.names}
    return {name: means[number] for name, number in numbers.items() if number in means}


def _advice(found: Showdown, b: Report, comparisons: Sequence[Comparison]) -> Iterator[str]:
    yield _choice(found)
    lost = [(flips.benchmark, case) for flips in found.flips for case in flips.lost]
    if lost:
        named = ", ".join(case for _, case in lost[:_NAMED]) + (" …" if len(lost) > _NAMED else "")
        yield (
            f"Look at what '{found.b}' lost ({named}): assay show {b.run.id} --case {lost[0][1]}"
            if len(lost) > 1
            else f"Look at the case that '{found.b}' lost: assay show {b.run.id} --case {lost[0][1]}"
        )
    unsure = [one for one in comparisons if one.verdict is Verdict.UNSURE and one.reason]
    if unsure and found.winner is None:
        yield f"{unsure[0].metric.name} is open: {unsure[0].reason}"


def _choice(found: Showdown) -> str:
    if found.winner is not None:
        a, b = found.ratings["overall"]
        loser = found.a if found.winner == found.b else found.b
        weak = [name for name, who in found.winners.items() if who == loser]
        but = f", though '{loser}' is better in {' and '.join(weak)}" if weak else ""
        return f"Prefer '{found.winner}': certainly better overall ({max(a, b):.3f} to {min(a, b):.3f}){but}."
    ahead = {who: [n for n, w in found.winners.items() if w == who] for who in (found.a, found.b)}
    if not any(ahead.values()):
        return f"Nothing tells '{found.a}' and '{found.b}' apart: take the one that is easier to keep, or run more cases."
    parts = [f"'{who}' is better in {' and '.join(names)}" for who, names in ahead.items() if names]
    return f"Neither is certainly better overall: {'; '.join(parts)}. Choose by what matters to you."
