"""The finding of `algorithm`: which reinforcement learning algorithm learns sooner, higher and more steadily, as far as seeds prove it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from assay.builtin.findings.algorithm_summary import (
    FEWEST_SEEDS,
    SIGNIFICANT,
    AlgorithmSummary,
    SeedComparison,
    compare_pairs,
    summarise_algorithms,
)
from assay.model import Doubt, TrialReport
from assay.model.page import Cell, Charts, ListItem, PageSection, Points, Table, Tile
from assay.plugin import Column, Finding, build_table, to_json_data
from assay.plugin.figures import format_known
from assay.units import and_list, count, format_count, percent, seconds, significant, size

_SHOWN_LINES = 12


@dataclass(frozen=True, slots=True)
class AlgorithmContest:
    """The algorithms of one task with one budget, which are compared with each other.

    All of them are measured, or all are simulated, and all have converged by the same measure.
    """

    algorithms: tuple[AlgorithmSummary, ...]
    duels: tuple[SeedComparison, ...]

    @property
    def task(self) -> str:
        return self.algorithms[0].task

    @property
    def is_simulated(self) -> bool:
        return self.algorithms[0].is_simulated

    @property
    def goal(self) -> str:
        """The threshold, as a share of the highest reward."""
        return percent(self.algorithms[0].threshold)

    def rank(self) -> list[AlgorithmSummary]:
        """Order the algorithms by their final reward, the highest first."""
        return sorted(self.algorithms, key=lambda algorithm: -algorithm.final_reward.value)

    def find_ahead(self, by_episodes: bool = False) -> tuple[AlgorithmSummary, list[AlgorithmSummary]]:
        """The first by final reward or by episodes, and those that are proved to be behind it."""
        first = min(self.algorithms, key=lambda a: a.needed.value) if by_episodes else self.rank()[0]
        won = [duel for duel in self.duels if duel.find_ahead(by_episodes) is first]
        return first, [duel.second if duel.first is first else duel.first for duel in won]

    def gates(self) -> list[tuple[str, bool]]:
        """Publication gates of seed 000: what has to hold before figures are more than preliminary."""
        fewest = min(len(algorithm.seeds) for algorithm in self.algorithms)
        trials = [algorithm.trial for algorithm in self.algorithms]
        versions = {trial.stored.trial.agent.version for trial in trials}
        is_mixed = any(artifact.type == "mixed-versions" for trial in trials for artifact in trial.artifacts)
        missing = sum(
            trial.stored.trial.number_of_planned_executions - sum(trial.counts.values()) for trial in trials
        )
        return [
            (f"at least {FEWEST_SEEDS} seeds for each algorithm (here {fewest})", fewest >= FEWEST_SEEDS),
            ("one commit of the code", len(versions) == 1 and not is_mixed),
            ("every planned seed is kept, failed ones included", missing <= 0),
            ("measured, not simulated", not self.is_simulated),
        ]

    @property
    def is_preliminary(self) -> bool:
        return not all(holds for _, holds in self.gates())


@dataclass(frozen=True, slots=True)
class AlgorithmResults(Finding):
    """The algorithms of a run, in one table for each task and budget.

    Algorithms are compared only on the same task with the same number of episodes. Seeds are the units of
    replication.
    """

    is_swept: ClassVar[bool] = False
    is_listed_in_terminal: ClassVar[bool] = False
    is_listed_on_pages: ClassVar[bool] = False
    has_own_intervals: ClassVar[bool] = True

    contests: tuple[AlgorithmContest, ...]

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        comparable: dict[tuple[object, ...], list[AlgorithmSummary]] = {}
        for found in summarise_algorithms(trials):
            budget = (found.episodes, found.group_size, found.threshold, found.window)
            comparable.setdefault((found.task, found.is_simulated, *budget), []).append(found)
        contests = [AlgorithmContest(tuple(of), tuple(compare_pairs(of))) for of in comparable.values()]
        return cls(tuple(contests)) if contests else None

    @classmethod
    def adjust(cls, trial: TrialReport) -> TrialReport:
        """Leave out the estimate of the episodes to converge if some seeds did not converge.

        Over the seeds that did converge alone it would be too low.
        """
        if not any(
            e.measurements.get("is_censored") or e.measurements.get("diverged") for e in trial.executions
        ):
            return trial
        kept = tuple(e for e in trial.estimates if e.metric.name != "episodes_to_threshold")
        return replace(trial, estimates=kept)

    @classmethod
    def asked_settings(cls, params: Mapping[str, object]) -> Mapping[str, object]:
        return {name: params[name] for name in ("algorithm", "backend", "task") if name in params}

    def document(self) -> Mapping[str, Any]:
        return {"algorithms": [to_json_data(contest_document(contest)) for contest in self.contests]}

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        return [
            section
            for number, contest in enumerate(self.contests, 1)
            for section in _contest_sections(contest, number, with_charts)
        ]

    def tiles(self) -> Sequence[Tile]:
        contest = self.contests[0]
        mark = " (simulated)" if contest.is_simulated else ""
        first, behind = contest.find_ahead()
        others = len(contest.algorithms) - 1
        proved = "best" if others and len(behind) == others else "highest, not proven best"
        soonest, _ = contest.find_ahead(by_episodes=True)
        if math.isinf(soonest.needed.value):
            needed, note = f"more than {soonest.episodes}", "reached by fewer than half of the seeds"
        else:
            needed, note = episodes_text(soonest), f"{soonest.name}, fewest"
        return [
            Tile("final reward", reward_text(first), f"{first.name}: {proved}{mark}"),
            Tile(f"episodes to {contest.goal}", needed, f"{note}{mark}"),
            Tile("seeds", str(min(len(a.seeds) for a in contest.algorithms)), "for each algorithm"),
        ]

    def doubts(self) -> Sequence[Doubt]:
        found = []
        for contest in self.contests:
            failing = [text for text, holds in contest.gates() if not holds]
            if failing:
                found.append(
                    Doubt(
                        "preliminary",
                        f"{contest.task}: preliminary, because these conditions are not met: {and_list(failing)}.",
                    )
                )
            found += [
                Doubt("diverged", f"{format_count(a.diverged, 'seed')} of {len(a.seeds)} diverged; they count as reward 0.", trial=a.name)
                for a in contest.algorithms
                if a.diverged
            ]  # fmt: skip
        return found


def contest_document(contest: AlgorithmContest) -> dict[str, Any]:
    first, behind = contest.find_ahead()
    of = contest.algorithms[0]
    is_best = len(contest.algorithms) > 1 and len(behind) == len(contest.algorithms) - 1
    return {
        "task": contest.task,
        "budget": {
            "episodes": of.episodes,
            "group_size": of.group_size,
            "threshold": of.threshold,
            "window": of.window,
        },
        "simulated": contest.is_simulated,
        "preliminary": contest.is_preliminary,
        "gates": dict(contest.gates()),
        "best": first.name if is_best else None,
        "tied_with_first": [a.name for a in contest.rank()[1:] if a not in behind],
        "results": [algorithm.document() for algorithm in contest.rank()],
        "comparisons": [
            {
                "first": duel.first.name,
                "second": duel.second.name,
                "probability_of_improvement": duel.improvement.value,
                "interval": [duel.improvement.low, duel.improvement.high],
                "p_final_reward": duel.p,
                "p_episodes": duel.p_episodes,
                "is_tied": not duel.is_decided,
            }
            for duel in contest.duels
        ],
    }


def describe_contest(contest: AlgorithmContest) -> tuple[str, str]:
    """The answer in sentences, and its tone."""
    first, behind = contest.find_ahead()
    unlearnt = [a.name for a in contest.rank() if not a.has_learnt]
    end = f" No significant improvement over the untrained policy: {and_list(unlearnt)}." if unlearnt else ""
    if len(contest.algorithms) == 1:
        return (
            f"{first.name} reaches a final reward of {reward_text(first)}.{end}",
            "warn" if unlearnt else "good",
        )
    tied_names = [a.name for a in contest.rank()[1:] if a not in behind]
    if not behind and any(duel.is_decided for duel in contest.duels):
        return (
            f"{first.name} has the highest final reward, but no proven lead over any other.{end}",
            "warn",
        )
    if not behind:
        names = and_list([a.name for a in contest.rank()])
        return f"{names} are tied: these seeds show no significant difference in final reward.{end}", "warn"
    worse = and_list([a.name for a in contest.rank() if a in behind])
    if tied_names:
        tied = and_list([first.name, *tied_names])
        return f"{tied} are tied for the highest final reward; {first.name} is ahead of {worse}.{end}", "warn"
    return f"{first.name} is best: its final reward is higher than that of {worse}.{end}", "good"


def _contest_sections(contest: AlgorithmContest, number: int, with_charts: bool) -> list[PageSection]:
    charts: list[Charts] = []
    if with_charts:
        from assay.builtin.findings.algorithm_charts import build_charts

        charts = [Charts([chart]) for chart in build_charts(contest.algorithms, contest.duels)]
    sentence, tone = describe_contest(contest)
    main = PageSection(
        f"Algorithms on {contest.task.replace('_', ' ')}",
        [*charts[:1], _overview(contest), *charts[1:2]],
        subtitle=_describe_budget(contest),
        finding=sentence,
        tone=tone,
        notes=[f"{'✓' if holds else '✗'} {text}" for text, holds in contest.gates()],
        is_simulated=contest.is_simulated,
        chips=[ListItem("preliminary", "warn")] if contest.is_preliminary else (),
        anchor=f"algorithms-{number}",
    )
    details = PageSection(
        "Cost and steadiness", [_costs(contest)], anchor=f"algorithm-costs-{number}",
    )  # fmt: skip
    proof = PageSection(
        "How certain is that?", [_duels(contest), *charts[2:]], anchor=f"algorithm-proof-{number}"
    )
    failures = _failures(contest)
    samples = _samples(contest)
    return [
        main,
        *([proof] if contest.duels else ()),
        details,
        *(
            [PageSection("Failed seeds", [Points(failures)], anchor=f"algorithm-failures-{number}")]
            if failures
            else ()
        ),
        *samples,
    ]


def _describe_budget(contest: AlgorithmContest) -> str:
    first = contest.algorithms[0]
    samples = count(first.episodes * first.group_size)
    budget_text = (
        f"{count(first.episodes)} episodes of {first.group_size} answers: {samples} samples for each seed"
    )
    return f"{budget_text}; converged at {contest.goal} over {format_count(first.window, 'episode')}"


def reward_text(algorithm: AlgorithmSummary) -> str:
    found = algorithm.final_reward
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def episodes_text(algorithm: AlgorithmSummary) -> str:
    """
    A median and its interval; what was not reached within N episodes is "more than N".
    """
    needed, most = algorithm.needed, algorithm.episodes
    if math.isinf(needed.value) and math.isinf(needed.low):
        return f"more than {most}"
    value, low, high = (
        f">{most}" if math.isinf(end) else f"{end:.0f}" for end in (needed.value, needed.low, needed.high)
    )
    return f"{value} [{low}, {high}]"


def _overview(contest: AlgorithmContest) -> Table:
    first, behind = contest.find_ahead()
    best = first if len(behind) == len(contest.algorithms) - 1 > 0 else None
    level = min(a.needed.level for a in contest.algorithms)

    def name(algorithm: AlgorithmSummary) -> Cell:
        simulated = "simulated" if algorithm.is_simulated else ""
        return Cell(algorithm.name, note="best" if algorithm is best else simulated)

    def gain(algorithm: AlgorithmSummary) -> Cell:
        text = format_known(algorithm.gain, lambda ends: "{:+.2f} [{:+.2f}, {:+.2f}]".format(*ends))
        return Cell(text, tone="good" if algorithm.has_learnt else "bad")

    def needed(algorithm: AlgorithmSummary) -> Cell:
        sort = min(algorithm.needed.value, 1e12)
        return Cell(episodes_text(algorithm), note=algorithm.convergence_grade, sort=sort)

    def trained(algorithm: AlgorithmSummary) -> Cell:
        text = f"{len(algorithm.trained)} of {len(algorithm.seeds)}"
        return Cell(text, tone="warn" if algorithm.failed else "")

    return build_table(
        contest.rank(),
        Column("Algorithm", name),
        Column("Final reward", reward_text),
        Column("Gain over untrained", gain, is_minor=True),
        Column(f"Episodes to {contest.goal}", needed),
        Column("Seeds trained", trained),
        caption=Cell(
            "Final reward: interquartile mean over seeds of the last 50 episodes, 95 % bootstrap interval. "
            f"Episodes: median over seeds until the trailing mean of rewards reached the threshold, {percent(level)} interval. "
            "A seed that diverged, crashed or ran out of time counts as reward 0."
        ),
    )


def _costs(contest: AlgorithmContest) -> Table:
    return build_table(
        contest.rank(),
        Column("Algorithm", lambda a: a.name),
        Column(
            "Variation",
            lambda a: Cell(format_known(a.mean("stability_score"), percent), note=a.stability_grade),
        ),
        Column(
            "Reward per 1,000 samples",
            lambda a: format_known(a.mean("sample_efficiency"), significant),
            is_minor=True,
        ),
        Column("Training time", lambda a: format_known(a.mean("seconds"), seconds)),
        Column("Samples", lambda a: format_known(a.mean("samples_per_sec"), lambda rate: f"{count(rate)}/s")),
        Column("Peak memory", lambda a: format_known(a.highest("peak_bytes"), size)),
        caption=Cell(
            "Variation: standard deviation ÷ mean of the rewards after convergence, where a seed converged."
        ),
    )


def _duels(contest: AlgorithmContest) -> Table:
    def probability(duel: SeedComparison) -> str:
        found = duel.improvement
        return f"{percent(found.value)} [{100 * found.low:.0f}, {100 * found.high:.0f} %]"

    def p_value(p: float) -> Cell:
        return Cell(f"{p:.2g}", tone="good" if p < SIGNIFICANT else "quiet")

    return build_table(
        contest.duels,
        Column("Pair", lambda duel: f"{duel.first.name} > {duel.second.name}"),
        Column("Probability", probability),
        Column("p of final reward", lambda duel: p_value(duel.p)),
        Column("p of episodes", lambda duel: p_value(duel.p_episodes), is_minor=True),
        Column("Verdict", _verdict, is_words=True),
        caption=Cell(
            "Probability that a run of the first beats one of the second, ties count half (Agarwal et al. 2021). "
            "p: exact Mann–Whitney over seeds, corrected for all pairs (Holm); only it decides."
        ),
    )


def _verdict(duel: SeedComparison) -> str:
    ahead = duel.find_ahead()
    return "tied" if ahead is None else f"{ahead.name} is better"


def _failures(contest: AlgorithmContest) -> list[ListItem]:
    return [
        ListItem(f"{seed.label}: {(seed.execution.error or seed.execution.status.value).splitlines()[-1]}", "bad", algorithm.name)
        for algorithm in contest.algorithms
        for seed in algorithm.seeds
        if not seed.is_trained
    ]  # fmt: skip


def _samples(contest: AlgorithmContest) -> list[PageSection]:
    """What the policy with the highest reward answers at the end of its training."""
    first = contest.rank()[0]
    if not first.trained:
        return []
    best = max(first.trained, key=lambda seed: seed.final_reward)
    training: Any = (best.execution.detail or {}).get("training") or {}
    lines = [" · ".join(lines[:_SHOWN_LINES]) for lines in training.get("samples") or ()]
    if not lines:
        return []
    title = f"What {first.name} says after training"
    points = Points([ListItem(line) for line in lines])
    return [PageSection(title, [points], subtitle=best.label, is_detail=True, is_folded=True)]
