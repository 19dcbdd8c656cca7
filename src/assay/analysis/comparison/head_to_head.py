"""Says who wins a comparison of two agents, on which dimension, by which cases, and what to do about it.

Winners come from the ratings (`pairing.py`), but only where the verdicts on the metrics bear them out, so the summary never
contradicts the table of comparisons below it. `over_time` looks at more than two sides in their order, metric by metric
(`assay compare A B C --type time_series`): the verdict is about the last side against the first, and change points say where
in between it happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from assay.analysis.comparison.compare import compare_reports, matching_trials
from assay.analysis.comparison.flips import flips_between
from assay.analysis.comparison.pairing import (
    Pairing,
    certainly_better,
    correct_p_values,
    find_common_dimensions,
)
from assay.analysis.comparison.policy import KnownNoise
from assay.analysis.comparison.severity import dimension_of
from assay.analysis.estimates.treatment import describe_redefinition
from assay.analysis.ranking.leaderboard import mean_overall, mean_rating
from assay.errors import Unlike
from assay.model import Better, Comparison, Report, Run, TrialReport, Verdict
from assay.model.dimension import DIMENSIONS
from assay.model.head_to_head import Course, Showdown
from assay.model.metric import is_score
from assay.model.standing import Contender
from assay.stats.changepoint import detect
from assay.text import shell_command
from assay.units import and_list, count, format_count

_NAMED = 3
Sides = tuple[str, str]
"""The names of A and B."""


def showdowns(a: Report, b: Report, comparisons: Sequence[Comparison]) -> tuple[Showdown, ...]:
    """One showdown for each agent of A and the agent of B that it is matched with, if both are rated."""
    groups: dict[tuple[str, str], list[tuple[TrialReport, TrialReport]]] = {}
    for x, y in matching_trials(a, b):
        if x.ratings is not None and y.ratings is not None:
            groups.setdefault((x.stored.trial.agent.name, y.stored.trial.agent.name), []).append((x, y))
    return tuple(_showdown(pairs, a, b, comparisons) for pairs in groups.values())


def _showdown(
    pairs: Sequence[tuple[TrialReport, TrialReport]], a: Report, b: Report, comparisons: Sequence[Comparison]
) -> Showdown:
    """The showdown of one agent against another.

    Winners are found by the ratings first and then withheld where the verdicts on metrics do not bear them out. If there is
    a reason why the two cannot be compared at all, neither wins, and the reason is the only advice.
    """
    first, second = contender([x for x, _ in pairs], a), contender([y for _, y in pairs], b)
    if first.agent == second.agent:
        runs_of = (a.run_of(pairs[0][0]), b.run_of(pairs[0][1]))
        first, second = (
            replace(side, agent=f"{side.agent} in {run.id}")
            for side, run in zip((first, second), runs_of, strict=True)
        )
    winners, ratings, p = _winners(first, second)
    comparable = [pair for pair in pairs if not describe_redefinition(*pair)]
    flips = tuple(flips_between(x, y) for x, y in comparable)
    names = {x.name for x, _ in pairs}
    own = [comparison for comparison in comparisons if comparison.trial_a in names]
    winners = _withhold_unsupported_winners(winners, own, (first.agent, second.agent))
    if pairs[0][0].stored.trial.agent.name == pairs[0][1].stored.trial.agent.name:
        winners = _with_verdict_on_scores(winners, own, (first.agent, second.agent))
    unscored = [f"'{side.agent}' on {and_list(side.unscored)}" for side in (first, second) if side.unscored]
    scoring_failed = f"Scoring failed for {and_list(unscored)}, so neither agent can be called better."
    # Why neither can win; the first reason is shown.
    refusal = (
        _describe_mixed_kinds(pairs)
        or ("" if comparable else describe_redefinition(*pairs[0]))
        or (scoring_failed if unscored else "")
        or _disjoint(pairs, (first.agent, second.agent))
    )
    known = {name for side in (first, second) for name in find_common_dimensions([side])}
    left_out = tuple(name for name in DIMENSIONS if name in known - ratings.keys())
    showdown = Showdown(
        first.agent,
        second.agent,
        dict.fromkeys(winners) if refusal else winners,
        ratings,
        flips,
        (),
        left_out,
        {} if refusal else p,
        {} if refusal else _find_intervals(first, second, ratings),
    )
    runs = {y.name: b.run_of(y) for _, y in pairs}
    return replace(showdown, advice=(refusal,) if refusal else tuple(_advice(showdown, runs, own)))


def _describe_mixed_kinds(pairs: Sequence[tuple[TrialReport, TrialReport]]) -> str:
    """Why neither wins if one side is simulated and the other measured; empty if both are of one kind."""
    for pair in pairs:
        first, second = (trial.is_simulated for trial in pair)
        if first != second:
            made_up, real = (trial.stored.trial.agent.name for trial in (pair if first else reversed(pair)))
            return (
                f"'{made_up}' is simulated and '{real}' was measured, so neither can be called better. "
                "Compare measured results with measured ones."
            )
    return ""


def _disjoint(pairs: Sequence[tuple[TrialReport, TrialReport]], sides: Sides) -> str:
    """Why neither wins if the sides have no case in common; empty if they share some."""
    for first, second in pairs:
        if first.ratings is None or second.ratings is None or not first.ratings.names:
            return ""
        if not set(first.ratings.names).isdisjoint(second.ratings.names):
            return ""
    return (
        f"'{sides[0]}' and '{sides[1]}' have no case in common, so neither can be called better than the other. "
        "Run both on the same cases."
    )


def contender(trials: Sequence[TrialReport], side: Report) -> Contender:
    """One side as a contender; its trials are of different benchmarks."""
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
) -> tuple[Mapping[str, str | None], Mapping[str, tuple[float, float]], Mapping[str, float]]:
    """The winner of each shared dimension and overall (None if neither is significantly better), both ratings, and the p."""
    shared = find_common_dimensions([a, b])
    if not shared:
        return {}, {}, {}
    pairing = Pairing([a, b])
    found = [pairing.compare_pairs((name,)) for name in shared]
    tables = correct_p_values(found)
    better = dict(zip(shared, certainly_better(found, tables), strict=True))
    p = {name: float(table[0, 1]) for name, table in zip(shared, tables, strict=True)}
    if not a.unscored and not b.unscored:
        # No further correction: the overall winner must also win a dimension, and the correction over the dimensions keeps
        # false claims of both at 5 %.
        whole = [pairing.compare_pairs(shared)]
        [table] = correct_p_values(whole)
        [better["overall"]] = certainly_better(whole, [table])
        p["overall"] = float(table[0, 1])
    winners = {
        name: a.agent if table[0, 1] else b.agent if table[1, 0] else None for name, table in better.items()
    }
    ratings = {
        name: (mean_rating(name, a).value or 0.0, mean_rating(name, b).value or 0.0) for name in shared
    }
    if "overall" not in winners:
        return winners, ratings, p
    overall = tuple(mean_overall(side, shared, 0.0).value or 0.0 for side in (a, b))
    return winners, {**ratings, "overall": (overall[0], overall[1])}, p


def _find_intervals(a: Contender, b: Contender, names: Iterable[str]) -> Mapping[str, tuple[float, float]]:
    """The 95 % interval of each difference, B less A."""
    pairing, shared = Pairing([a, b]), find_common_dimensions([a, b])
    found = {name: pairing.difference(1, 0, shared if name == "overall" else (name,)) for name in names}
    return {
        name: (difference.low, difference.high)
        for name, difference in found.items()
        if difference is not None and difference.low is not None and difference.high is not None
    }


def _withhold_unsupported_winners(
    winners: Mapping[str, str | None], comparisons: Sequence[Comparison], sides: Sides
) -> Mapping[str, str | None]:
    """The winners that the verdicts on the metrics support: ratings are made of those metrics and are no more significant.

    A dimension without a verdict on any of its metrics (reliability, efficiency) keeps its winner. Overall needs a verdict
    in favour of its winner if there are verdicts at all.
    """
    supported = dict(winners)
    for name in winners:
        of_dimension = [
            comparison
            for comparison in comparisons
            if comparison.verdict and dimension_of(comparison.metric) == name
        ]
        if of_dimension and _find_favoured_sides(of_dimension, sides) != {winners[name]}:
            supported[name] = None
    best = supported.get("overall")
    others = [who for name, who in supported.items() if name != "overall"]
    judged = [comparison for comparison in comparisons if comparison.verdict]
    is_borne_out = best in others and (not judged or best in _find_favoured_sides(judged, sides))
    return {**supported, "overall": best if is_borne_out else None}


def _with_verdict_on_scores(
    winners: Mapping[str, str | None], comparisons: Sequence[Comparison], sides: Sides
) -> Mapping[str, str | None]:
    """For two versions of one agent, accuracy is won by the verdict on scores.

    Ratings take cases as a sample, while that verdict is about these very cases and so more certain.
    """
    scores = [
        comparison
        for comparison in comparisons
        if comparison.verdict and dimension_of(comparison.metric) == "accuracy"
    ]
    favoured = _find_favoured_sides(scores, sides)
    return (
        {**winners, "accuracy": favoured.pop()} if "accuracy" in winners and len(favoured) == 1 else winners
    )


def _find_favoured_sides(comparisons: Sequence[Comparison], sides: Sides) -> set[str]:
    """The sides that some verdict is in favour of."""
    names = {Verdict.WORSE: sides[0], Verdict.BETTER: sides[1]}
    return {names[comparison.verdict] for comparison in comparisons if comparison.verdict in names}


def _advice(found: Showdown, runs: Mapping[str, Run], comparisons: Sequence[Comparison]) -> Iterator[str]:
    """What to choose, and which lost cases to look at first; `runs` has the run of each trial of B by its name."""
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
    """The recommendation in one sentence, from a clear winner down to no significant difference.

    The order of the cases matters: a clear winner overall; neither solved anything; the same in everything
    that was judged; lost and won cases without a significant difference; no significant difference at all; and
    last, each better in something else.
    """
    ahead = {who: _strengths(who, found, comparisons) for who in (found.a, found.b)}
    if found.winner is not None:
        a, b = found.ratings["overall"]
        loser = found.a if found.winner == found.b else found.b
        but = f", though '{loser}' is better in {and_list(ahead[loser])}" if ahead[loser] else ""
        return (
            f"Prefer '{found.winner}': better in {and_list(ahead[found.winner])}, and overall "
            f"({max(a, b):.3f} against {min(a, b):.3f}){but}."
        )
    if not any(found.ratings.get("accuracy", (1.0, 1.0))):
        return f"Neither '{found.a}' nor '{found.b}' solved a single case: find out why before you choose."
    judged = [comparison for comparison in comparisons if comparison.verdict]
    if (
        judged
        and all(comparison.verdict is Verdict.SAME for comparison in judged)
        and not any(ahead.values())
    ):
        return f"'{found.a}' and '{found.b}' are the same in {and_list(_metric_names(judged))}."
    lost, won = (
        sum(len(flips.lost) for flips in found.flips),
        sum(len(flips.won) for flips in found.flips),
    )
    if not any(ahead.values()) and (lost or won):
        return (
            f"Neither is significantly better, but '{found.b}' lost {format_count(lost, 'case')} and won {count(won)}: "
            "look at those before you choose."
        )
    if not any(ahead.values()):
        return (
            f"No significant difference between '{found.a}' and '{found.b}'. "
            "Run more cases or repetitions, or choose the one that is easier to maintain."
        )
    parts = [f"'{who}' is better in {and_list(names)}" for who, names in ahead.items() if names]
    if len(parts) == 1:
        return f"{parts[0]}; overall, neither is significantly better."
    return f"Neither is significantly better overall: {'; '.join(parts)}. Choose by what matters to you."


def _strengths(who: str, found: Showdown, comparisons: Sequence[Comparison]) -> list[str]:
    """The metrics with a verdict in favour of `who`, and the dimensions it wins of which no metric has a verdict."""
    own = [
        comparison
        for comparison in comparisons
        if _find_favoured_sides([comparison], (found.a, found.b)) == {who}
    ]
    judged = {dimension_of(comparison.metric) for comparison in comparisons if comparison.verdict}
    unjudged = [
        name for name, best in found.winners.items() if best == who and name not in {*judged, "overall"}
    ]
    return [*_metric_names(own), *unjudged]


def _metric_names(comparisons: Sequence[Comparison]) -> list[str]:
    return list(dict.fromkeys(comparison.metric.name for comparison in comparisons))


def over_time(
    sides: Sequence[Report], metrics: Sequence[str], noise: KnownNoise | None = None
) -> list[Course]:
    """The course of every metric that has a direction and that all sides have.

    `noise` is what is known of the first and the last side, which the verdict is about.
    """
    courses = list(_courses(sides, metrics, noise))
    if not courses:
        raise Unlike("The sides have no trial and metric in common, so nothing can be shown over time.")
    return courses


def _courses(sides: Sequence[Report], metrics: Sequence[str], noise: KnownNoise | None) -> Iterator[Course]:
    """One course for each metric of each trial of the first side that all other sides have, too."""
    first, last = sides[0], sides[-1]
    for comparison in compare_reports(first, last, metrics=list(metrics) or None, noise=noise):
        if comparison.metric.better is Better.UNKNOWN:
            continue
        values = []
        for side in sides:
            matches = (b for a, b in matching_trials(first, side) if a.name == comparison.trial_a)
            match = next(matches, None)
            values.append(None if match is None else _estimate(match, comparison.metric.name))
        known = [value for value in values if value is not None]
        if len(known) == len(sides):
            steps = tuple(point.index for point in detect(known).change_points)
            yield Course(comparison.trial_a, comparison.metric, tuple(known), comparison.verdict, steps)


def _estimate(trial: TrialReport, metric: str) -> float | None:
    return next(
        (
            estimate.mean if is_score(estimate.metric) else estimate.median
            for estimate in trial.estimates
            if estimate.metric.name == metric and estimate.n
        ),
        None,
    )
