"""Who wins, on which dimension, by which cases; and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from assay.analysis.compare import matching_trials
from assay.analysis.flips import flips_between
from assay.analysis.leaderboard import mean_overall, mean_rating
from assay.analysis.losses import dimension_of
from assay.analysis.pairing import Pairing, certainly_better, shared_dimensions
from assay.analysis.treatment import redefined
from assay.model import Comparison, Report, Run, TrialReport, Verdict
from assay.model.rating import DIMENSIONS
from assay.model.showdown import Showdown
from assay.model.standing import Contender
from assay.text import shell_command
from assay.units import and_list, count, counted

_NAMED = 3
Sides = tuple[str, str]
"""What A and B are called."""


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
    first, second = contender([x for x, _ in pairs], a), contender([y for _, y in pairs], b)
    if first.agent == second.agent:
        runs_of = (a.run_of(pairs[0][0]), b.run_of(pairs[0][1]))
        first, second = (
            replace(one, agent=f"{one.agent} in {run.id}")
            for one, run in zip((first, second), runs_of, strict=True)
        )
    winners, ratings = _winners(first, second)
    alike = [pair for pair in pairs if not redefined(*pair)]
    flips = tuple(flips_between(x, y) for x, y in alike)
    names = {x.name for x, _ in pairs}
    own = [one for one in comparisons if one.trial_a in names]
    winners = _held_back(winners, own, (first.agent, second.agent))
    if pairs[0][0].stored.trial.agent.name == pairs[0][1].stored.trial.agent.name:
        winners = _with_verdict_on_scores(winners, own, (first.agent, second.agent))
    mixed = _mixed(pairs) or ("" if alike else redefined(*pairs[0])) or _unscored((first, second))
    mixed = mixed or _disjoint(pairs, (first.agent, second.agent))
    known = {name for one in (first, second) for name in shared_dimensions([one])}
    left_out = tuple(name for name in DIMENSIONS if name in known - ratings.keys())
    made = Showdown(
        first.agent, second.agent, dict.fromkeys(winners) if mixed else winners, ratings, flips, (), left_out
    )
    runs = {y.name: b.run_of(y) for _, y in pairs}
    return replace(made, advice=(mixed,) if mixed else tuple(_advice(made, runs, own)))


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


def _disjoint(pairs: Sequence[tuple[TrialReport, TrialReport]], sides: Sides) -> str:
    """Why nobody wins where the two sides did different cases throughout; empty where they share some."""
    for first, second in pairs:
        if first.ratings is None or second.ratings is None or not first.ratings.names:
            return ""
        if not set(first.ratings.names).isdisjoint(second.ratings.names):
            return ""
    return (
        f"'{sides[0]}' and '{sides[1]}' have no case in common, so neither can be called better than the other. "
        "Run both on the same cases."
    )


def _unscored(sides: Sequence[Contender]) -> str:
    """Why nobody wins where nothing of a side could be scored; empty where both have scores."""
    told = [f"of '{one.agent}' on {and_list(one.unscored)}" for one in sides if one.unscored]
    if not told:
        return ""
    return f"Nothing could be scored {and_list(told)}, because scoring failed: neither can be called better than the other."


def contender(trials: Sequence[TrialReport], side: Report) -> Contender:
    """One side's trials, a benchmark each."""
    return Contender(
        agent=trials[0].stored.trial.agent.name,
        version=trials[0].stored.trial.agent.version,
        ratings={t.stored.trial.benchmark: t.ratings for t in trials if t.ratings is not None},
        is_simulated=False,
        latest=None,
        hashes={t.stored.trial.benchmark: t.definition for t in trials},
        runs={t.stored.trial.benchmark: side.run_of(t).id for t in trials},
    )


def _winners(
    a: Contender, b: Contender
) -> tuple[Mapping[str, str | None], Mapping[str, tuple[float, float]]]:
    shared = shared_dimensions([a, b])
    if not shared:
        return {}, {}
    pairing = Pairing([a, b])
    better = dict(zip(shared, certainly_better([pairing.paired((name,)) for name in shared]), strict=True))
    if not a.unscored and not b.unscored:
        # Its winner must also win a dimension, and the correction over those keeps false claims of both at 5 %.
        (better["overall"],) = certainly_better([pairing.paired(shared)])
    winners = {
        name: a.agent if told[0, 1] else b.agent if told[1, 0] else None for name, told in better.items()
    }
    ratings = {
        name: (mean_rating(name, a).value or 0.0, mean_rating(name, b).value or 0.0) for name in shared
    }
    if "overall" not in winners:
        return winners, ratings
    overall = tuple(mean_overall(one, shared, 0.0).value or 0.0 for one in (a, b))
    return winners, {**ratings, "overall": (overall[0], overall[1])}


def _held_back(
    winners: Mapping[str, str | None], comparisons: Sequence[Comparison], sides: Sides
) -> Mapping[str, str | None]:
    """Winners that the verdicts on the metrics bear out: ratings are made of those, and are no surer.

    A dimension of which no metric has a verdict (reliability, efficiency) keeps its winner; overall needs a verdict in
    favour of its winner wherever there are verdicts at all.
    """
    kept = dict(winners)
    for name in winners:
        of_dimension = [one for one in comparisons if one.verdict and dimension_of(one.metric) == name]
        if of_dimension and _favoured(of_dimension, sides) != {winners[name]}:
            kept[name] = None
    best = kept.get("overall")
    others = [who for name, who in kept.items() if name != "overall"]
    judged = [one for one in comparisons if one.verdict]
    is_borne_out = best in others and (not judged or best in _favoured(judged, sides))
    return {**kept, "overall": best if is_borne_out else None}


def _with_verdict_on_scores(
    winners: Mapping[str, str | None], comparisons: Sequence[Comparison], sides: Sides
) -> Mapping[str, str | None]:
    """Versions of one agent: ratings take cases as a sample, while the verdict is about these very cases and so surer."""
    scores = [one for one in comparisons if one.verdict and dimension_of(one.metric) == "accuracy"]
    favoured = _favoured(scores, sides)
    return (
        {**winners, "accuracy": favoured.pop()} if "accuracy" in winners and len(favoured) == 1 else winners
    )


def _favoured(comparisons: Sequence[Comparison], sides: Sides) -> set[str]:
    """The sides that some verdict is in favour of."""
    names = {Verdict.WORSE: sides[0], Verdict.BETTER: sides[1]}
    return {names[one.verdict] for one in comparisons if one.verdict in names}


def _advice(found: Showdown, runs: Mapping[str, Run], comparisons: Sequence[Comparison]) -> Iterator[str]:
    """`runs`: name of a trial of B to its run."""
    yield _choice(found, comparisons)
    lost = [(flips.trial, case) for flips in found.flips for case in flips.lost]
    if lost:
        trial, first = lost[0]
        named = ", ".join(case for _, case in lost[:_NAMED]) + (" …" if len(lost) > _NAMED else "")
        cases = "case" if len(lost) == 1 else f"{len(lost)} cases"
        yield (
            f"Look at the {cases} that '{found.b}' lost ({named}): {shell_command('show', runs[trial].id, options=['--case', first])}"
        )


def _choice(found: Showdown, comparisons: Sequence[Comparison]) -> str:
    ahead = {who: _strengths(who, found, comparisons) for who in (found.a, found.b)}
    if found.winner is not None:
        a, b = found.ratings["overall"]
        loser = found.a if found.winner == found.b else found.b
        but = f", though '{loser}' is better in {and_list(ahead[loser])}" if ahead[loser] else ""
        return (
            f"Prefer '{found.winner}': better in {and_list(ahead[found.winner])}, and overall "
            f"({max(a, b):.3f} to {min(a, b):.3f}){but}."
        )
    if not any(found.ratings.get("accuracy", (1.0, 1.0))):
        return f"Neither '{found.a}' nor '{found.b}' solved a single case: see why before you choose."
    judged = [one for one in comparisons if one.verdict]
    if judged and all(one.verdict is Verdict.SAME for one in judged) and not any(ahead.values()):
        return f"'{found.a}' and '{found.b}' are the same in {and_list(_metric_names(judged))}."
    lost, won = (
        sum(len(flips.lost) for flips in found.flips),
        sum(len(flips.won) for flips in found.flips),
    )
    if not any(ahead.values()) and (lost or won):
        return (
            f"Neither is certainly better, but '{found.b}' lost {counted(lost, 'case')} and won {count(won)}: "
            "look at those before you choose."
        )
    if not any(ahead.values()):
        return (
            f"No certain difference between '{found.a}' and '{found.b}'. "
            "Run more cases or repetitions, or choose the one that is easier to maintain."
        )
    parts = [f"'{who}' is better in {and_list(names)}" for who, names in ahead.items() if names]
    if len(parts) == 1:
        return f"{parts[0]}; overall, neither is certainly better."
    return f"Neither is certainly better overall: {'; '.join(parts)}. Choose by what matters to you."


def _strengths(who: str, found: Showdown, comparisons: Sequence[Comparison]) -> list[str]:
    """Metrics with a verdict in its favour, and dimensions that it wins though none of their metrics has one."""
    own = [one for one in comparisons if _favoured([one], (found.a, found.b)) == {who}]
    judged = {dimension_of(one.metric) for one in comparisons if one.verdict}
    unjudged = [
        name for name, best in found.winners.items() if best == who and name not in {*judged, "overall"}
    ]
    return [*_metric_names(own), *unjudged]


def _metric_names(comparisons: Sequence[Comparison]) -> list[str]:
    return list(dict.fromkeys(one.metric.name for one in comparisons))
