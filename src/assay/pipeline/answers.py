"""Reads answers for people: those of two trials side by side, and those that a person should label next.

Scores of cases come from the stored ratings, so that only the answers on a page are read, however many executions there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan

from assay.analysis.review.queue import JudgedAnswer, rank_answers
from assay.errors import Unlike
from assay.model import Benchmark, Case, Ratings, StoredTrial
from assay.model.scored_answer import (
    AnswerComparison,
    AnswerPair,
    AnswerSource,
    CaseScore,
    ReviewItem,
    ReviewQueue,
    ScoreDifference,
    Uncertainty,
)
from assay.model.suite import PASS_MARK
from assay.store.standings import Filter, RankedTrial
from assay.store.store import Store

_REPETITIONS = 5
_TRIALS, _ANSWERS = 8, 400
"""A queue is made of the first so many answers of so many trials, so that it is there at once."""


def compare_answers(
    store: Store,
    a: int,
    b: int,
    wanted: Sequence[ScoreDifference] = (),
    skip: int = 0,
    limit: int = 10,
) -> AnswerComparison:
    """The cases of two trials of one benchmark side by side, those with these differences; all without any."""
    (side_a, cases_a), (side_b, cases_b) = (_read_source(store, trial_id) for trial_id in (a, b))
    if side_a.benchmark != side_b.benchmark:
        raise Unlike(
            f"Trial {a} is of benchmark '{side_a.benchmark}' and trial {b} of '{side_b.benchmark}', so their cases differ."
        )
    scores = [_read_case_scores(store, trial_id) for trial_id in (a, b)]
    names = list(dict.fromkeys([*cases_b, *cases_a, *scores[1], *scores[0]]))
    differences = {
        name: _find_difference(*(side.get(name, CaseScore()) for side in scores)) for name in names
    }
    chosen = [name for name in names if not wanted or differences[name] in wanted]
    listed_cases = chosen[skip : skip + limit]
    answers = [store.answers(trial_id, listed_cases, _REPETITIONS) for trial_id in (a, b)]
    pairs = [
        AnswerPair(
            name,
            cases_b.get(name) or cases_a.get(name),
            (scores[0].get(name, CaseScore()), scores[1].get(name, CaseScore())),
            (answers[0].get(name, ()), answers[1].get(name, ())),
            differences[name],
        )
        for name in listed_cases
    ]
    return AnswerComparison((side_a, side_b), Counter(differences.values()), len(chosen), pairs)


def _read_source(store: Store, trial_id: int) -> tuple[AnswerSource, Mapping[str, Case]]:
    """Read where the answers of a trial come from, and its cases by id."""
    run = store.run(store.run_of_trial(trial_id))
    stored: StoredTrial = next(trial for trial in run.trials if trial.id == trial_id)
    planned = stored.trial
    benchmark = _find_benchmark(store, run.id, planned.benchmark)
    source = AnswerSource(
        trial_id,
        run.id,
        planned.suite,
        planned.benchmark,
        planned.agent.name,
        planned.agent.version,
        benchmark.rubric.pass_mark if benchmark else PASS_MARK,
    )
    planned_cases = set(planned.cases)
    cases = {case.id: case for case in benchmark.cases if case.id in planned_cases} if benchmark else {}
    return source, cases


def _read_case_scores(store: Store, trial_id: int) -> Mapping[str, CaseScore]:
    rated: Ratings | None = store.ratings([trial_id]).get(trial_id)
    if rated is None or "score" not in rated.case_figures:
        return {}
    means, shares = rated.case_figures["score"], rated.case_figures["solved"]
    return {
        name: CaseScore(None if isnan(mean) else mean, None if isnan(share) else share)
        for name, mean, share in zip(rated.names, means, shares, strict=True)
    }


def _find_difference(a: CaseScore, b: CaseScore) -> ScoreDifference:
    if a.score is None or b.score is None:
        return ScoreDifference.MISSING
    if abs(a.score - b.score) < 1e-6:
        return ScoreDifference.EQUAL
    return ScoreDifference.HIGHER if b.score > a.score else ScoreDifference.LOWER


def find_review_queue(
    store: Store, suite: str, agent: str | None = None, benchmark: str | None = None, skip: int = 0
) -> ReviewQueue:
    """The answer to label next among the latest results of a suite: first where scorers leave doubt."""
    sources = {
        entry.trial_id: _build_source(store, entry)
        for entry in _choose_trials(store, suite, agent, benchmark)
    }
    judged = [
        JudgedAnswer(trial_id, seq, case, scores, source.pass_mark)
        for trial_id, source in sources.items()
        for seq, case, scores in store.read_judged_executions(trial_id, _ANSWERS)
    ]
    labelled = store.read_labelled_executions(list(sources))
    ranked = [
        (answer, reason)
        for answer, reason in rank_answers(judged)
        if (answer.trial_id, answer.seq) not in labelled
    ]
    current = None
    if ranked:
        answer, reason = ranked[min(skip, len(ranked) - 1)]
        current = _read_item(store, answer, reason, sources[answer.trial_id])
    is_labelled = sum((candidate.trial_id, candidate.seq) in labelled for candidate in judged)
    return ReviewQueue(suite, Counter(reason for _, reason in ranked), is_labelled, current)


def _choose_trials(store: Store, suite: str, agent: str | None, benchmark: str | None) -> list[RankedTrial]:
    """The trials that count now, the newest first."""
    entries = [
        entry
        for entry in store.entries(Filter(suite))
        if entry.ok and agent in (None, entry.agent) and benchmark in (None, entry.benchmark)
    ]
    return sorted(entries, key=lambda entry: entry.started, reverse=True)[:_TRIALS]


def _build_source(store: Store, entry: RankedTrial) -> AnswerSource:
    benchmark = _find_benchmark(store, entry.run_id, entry.benchmark)
    pass_mark = benchmark.rubric.pass_mark if benchmark else PASS_MARK
    return AnswerSource(
        entry.trial_id,
        entry.run_id,
        entry.suite,
        entry.benchmark,
        entry.agent,
        entry.agent_version,
        pass_mark,
    )


def _find_benchmark(store: Store, run_id: str, name: str) -> Benchmark | None:
    """Find the benchmark as it was when the run was made."""
    suite = store.suite_of(run_id)
    return (
        next((benchmark for benchmark in suite.benchmarks if benchmark.id == name), None) if suite else None
    )


def _read_item(store: Store, answer: JudgedAnswer, reason: Uncertainty, source: AnswerSource) -> ReviewItem:
    # The queue may name any repetition of a case.
    found = store.answers(answer.trial_id, [answer.case], most=10**9)[answer.case]
    answered = next(candidate for candidate in found if candidate.seq == answer.seq)
    benchmark = _find_benchmark(store, source.run_id, source.benchmark)
    cases = benchmark.cases if benchmark else ()
    return ReviewItem(
        answered, source, next((case for case in cases if case.id == answer.case), None), reason
    )
