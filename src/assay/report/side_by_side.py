"""Agents side by side on one benchmark, and the texts about them that every format shares.

`build_contests` groups the rated trials of a report by benchmark. Measured and simulated agents never stand in one contest, because
their figures cannot be compared. Agents are ranked by their overall rating if all of them were rated on the same dimensions,
and by accuracy otherwise. The functions below it turn ratings, costs and outcomes into texts for the terminal, Markdown and
HTML.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from assay.model import (
    DIMENSIONS,
    Estimate,
    Execution,
    Rating,
    Ratings,
    Report,
    TrialReport,
)
from assay.model.metric import is_score
from assay.model.rating import Judging
from assay.model.report import agent_labels
from assay.model.suite import PASS_MARK
from assay.report.documents.references import reference_notes
from assay.report.figures import NOTHING, mean_text, with_interval
from assay.units import count, significant, usd

COLUMNS = (*DIMENSIONS, "overall")
OUTCOMES = {
    "pass": "pass",
    "fail": "fail",
    "agent_error": "agent error",
    "limit": "limit",
    "harness_error": "harness error",
}
UNKNOWN = "unknown"
_LOOKED_AT = 500
"""Executions that are asked how their cost is known."""


@dataclass(frozen=True, slots=True)
class ContestRow:
    """One row of a contest."""

    label: str
    trial: TrialReport
    ratings: Ratings

    @property
    def version(self) -> str:
        return self.trial.stored.trial.agent.version

    def rating(self, name: str) -> Rating:
        return self.ratings.overall if name == "overall" else self.ratings.dimensions[name]

    @property
    def rated(self) -> frozenset[str]:
        return frozenset(name for name in DIMENSIONS if self.rating(name).value is not None)

    def estimate(self, metric: str) -> Estimate | None:
        return next((found for found in self.trial.estimates if found.metric.name == metric), None)


@dataclass(frozen=True, slots=True)
class Contest:
    """The agents that were put through one benchmark, best first; simulated ones have a contest of their own."""

    benchmark: str
    title: str
    is_simulated: bool
    pass_mark: float
    entries: tuple[ContestRow, ...]

    @property
    def key(self) -> str:
        return f"{self.benchmark}-simulated" if self.is_simulated else self.benchmark

    @property
    def shared(self) -> tuple[str, ...]:
        """Dimensions that every agent here is rated on."""
        return tuple(name for name in DIMENSIONS if all(name in entry.rated for entry in self.entries))

    @property
    def is_comparable(self) -> bool:
        """Whether the overall ratings rest on the same dimensions, so that they may be ranked."""
        return len({entry.rated for entry in self.entries}) == 1

    @property
    def most_tries(self) -> int:
        """The largest k that pass^k and pass@k are known of for every agent; 0 when there is none."""
        return min((max(entry.ratings.pass_hat, default=0) for entry in self.entries), default=0)

    @property
    def leads(self) -> tuple[str, ...]:
        """Metrics that the benchmark wants to be shown first."""
        return self.entries[0].trial.leads if self.entries else ()

    @property
    def is_streamed(self) -> bool:
        """Whether the time to the first token is known of any agent."""
        return any(entry.estimate("ttft") for entry in self.entries)

    @property
    def size_text(self) -> str:
        """How much was asked: `50 cases, 3 repetitions`; of code without cases: `10 processes, 3 repetitions`."""
        cases = max(entry.ratings.cases for entry in self.entries)
        tries = max(entry.trial.stored.trial.iterations.measured for entry in self.entries)
        unit = "case" if self.has_cases else "process"
        return f"{_format_count(cases, unit)}, {_format_count(tries, 'repetition')}"

    @property
    def has_cases(self) -> bool:
        return any(entry.trial.stored.trial.cases for entry in self.entries)


def _format_count(number: int, unit: str) -> str:
    ending = "es" if unit.endswith("s") else "s"
    return f"{count(number)} {unit}" if number == 1 else f"{count(number)} {unit}{ending}"


def build_contests(report: Report) -> list[Contest]:
    """One a benchmark in the order of the plan, first of real agents, then of simulated ones.

    Every format begins with this function. A run of code, whose trials have no ratings, has no contests, and then the table
    of trials is the main one.
    """
    groups: dict[tuple[bool, str], list[TrialReport]] = {}
    for trial in report.trials:
        if trial.ratings is not None:
            groups.setdefault((trial.is_simulated, trial.stored.trial.benchmark), []).append(trial)
    real_first = sorted(groups.items(), key=lambda item: item[0][0])
    return [_contest(report, name, simulated, trials) for (simulated, name), trials in real_first]


def _contest(report: Report, name: str, simulated: bool, trials: Sequence[TrialReport]) -> Contest:
    """The contest of these trials, ranked."""
    defined = report.benchmark(name)
    entries = [
        ContestRow(label, trial, trial.ratings)
        for label, trial in zip(agent_labels(trials), trials, strict=True)
        if trial.ratings is not None
    ]
    contest = Contest(
        benchmark=name,
        title=defined.name if defined else name,
        is_simulated=simulated,
        pass_mark=pass_mark_of(report, name),
        entries=tuple(entries),
    )
    # An overall of four dimensions and one of five are not the same quantity; accuracy is what every agent has.
    key = "overall" if contest.is_comparable else "accuracy"
    # What is not rated comes last.
    ranked = sorted(
        entries, key=lambda entry: math.inf if (value := entry.rating(key).value) is None else -value
    )
    return replace(contest, entries=tuple(ranked))


def pass_mark_of(report: Report, name: str) -> float:
    """The score from which a case of a benchmark counts as passed."""
    defined = report.benchmark(name)
    if defined is not None:
        return defined.rubric.pass_mark
    rated = (trial.ratings for trial in report.trials if trial.stored.trial.benchmark == name)
    return next((ratings.pass_mark for ratings in rated if ratings is not None), PASS_MARK)


def format_marked_label(entry: ContestRow, contest: Contest) -> str:
    return f"{entry.label}{provenance_mark(entry, contest)}"


def provenance_mark(entry: ContestRow, contest: Contest) -> str:
    """What is told beside an agent whose figures are not measured here."""
    marks = [
        *(["simulated"] if contest.is_simulated else []),
        *(["recorded"] if entry.trial.is_recorded else []),
    ]
    return f" ({', '.join(marks)})" if marks else ""


def heading(contest: Contest) -> str:
    return f"{contest.title} · simulated agents" if contest.is_simulated else contest.title


def has_own_title(contest: Contest) -> bool:
    """Whether the benchmark's name says something else than its id."""
    return contest.title.casefold() != contest.benchmark.casefold()


def title_with_id(contest: Contest) -> str:
    return f"{contest.title} ({contest.benchmark})" if has_own_title(contest) else contest.title


def rating_text(rating: Rating) -> str:
    """
    >>> rating_text(Rating("speed", 0.8333, 0.741, 0.9)), rating_text(Rating("cost", None))
    ('0.83 [0.74, 0.90]', '–')
    """
    return f"{value_text(rating)} {ends_text(rating)}".strip()


def value_text(rating: Rating) -> str:
    return NOTHING if rating.value is None else f"{rating.value:.2f}"


def ends_text(rating: Rating) -> str:
    if rating.low is None or rating.high is None:
        return ""
    return f"[{rating.low:.2f}, {rating.high:.2f}]"


def describe_unrated_dimensions(contest: Contest) -> list[str]:
    """Why dimensions have no rating, each reason once."""
    agents: dict[tuple[str, str], list[str]] = {}
    for entry in contest.entries:
        for name in DIMENSIONS:
            rating = entry.rating(name)
            if rating.value is None:
                agents.setdefault((name, rating.basis), []).append(entry.label)
    sentences = [
        f"{_format_label_prefix(labels, contest)}{name} is unrated: {why}"
        for (name, why), labels in agents.items()
    ]
    if agents and any(entry.rating("overall").value is not None for entry in contest.entries):
        sentences.append("overall is the weighted mean of the dimensions that are rated")
    return sentences


def reference_texts(contest: Contest) -> list[str]:
    """What the ratings here are relative to."""
    return reference_notes(entry.ratings for entry in contest.entries)


def rating_doubts(contest: Contest) -> list[str]:
    """Doubts about ratings, each once, and whether the overall ratings may be compared at all."""
    agents: dict[str, list[str]] = {}
    for entry in contest.entries:
        for text in entry.ratings.doubts:
            agents.setdefault(text, []).append(entry.label)
    sentences = [f"{_format_label_prefix(labels, contest)}{text}" for text, labels in agents.items()]
    if not contest.is_comparable:
        sentences.append(
            "overall ratings are not comparable here, because agents are rated on different dimensions; compare single dimensions"
        )
    return sentences


def _format_label_prefix(labels: Sequence[str], contest: Contest) -> str:
    """Nothing when it holds for all of them."""
    return "" if len(labels) == len(contest.entries) else f"{', '.join(labels)}: "


def name_solved_cases(contest: Contest) -> str:
    """With several tries, a case counts by the share of them that passed: the sum of those is not a count of cases."""
    return "solved on average" if contest.most_tries > 1 else "solved"


def format_solved_cases(ratings: Ratings) -> str:
    """
    >>> from assay.model import Rating, Ratings
    >>> format_solved_cases(Ratings({}, Rating("overall", None), {}, 0, cases=50, solved=41.333))
    '41.3 of 50'
    """
    return f"{significant(ratings.solved)} of {count(ratings.cases)}"


def usd_text(ratings: Ratings) -> str:
    """Cost per solved case; what is unknown is never $0."""
    cost = ratings.usd_per_solved
    if cost == 0:
        return "free"
    return _per_solved(ratings, cost, usd(cost) if cost is not None and math.isfinite(cost) else "")


def cost_sources(trial: TrialReport) -> list[Mapping[str, str]]:
    """How the costs of its executions are known, each way once; nothing for an agent that is free."""
    found: dict[str, Mapping[str, str]] = {}
    for execution in islice(trial.executions, _LOOKED_AT):
        found.update({str(source): source for source in sources_in(execution)})
    return list(found.values())


def sources_in(execution: Execution) -> list[Mapping[str, str]]:
    given = (execution.detail or {}).get("cost")
    return [source for source in given if isinstance(source, Mapping)] if isinstance(given, list) else []


def source_text(source: Mapping[str, str]) -> str:
    """
    >>> source_text({"source": "list", "list": "genai-prices 0.2.1", "date": "2026-10-20"})
    'by the price list genai-prices 0.2.1, whose newest price is from 2026-10-20'
    """
    if source.get("source") == "reported":
        return "as the answers report it"
    if source.get("source") == "price":
        return "by the price given with the agent"
    dated = f", whose newest price is from {source['date']}" if "date" in source else ""
    return f"by the price list {source.get('list', '')}{dated}"


@dataclass(frozen=True, slots=True)
class FigureColumn:
    """A column of figures beside the ratings of a contest."""

    title: str
    metric: str

    def text(self, entry: ContestRow) -> str:
        if self.metric == "usd":
            return usd_text(entry.ratings)
        if self.metric == "tokens":
            return tokens_text(entry.ratings)
        estimate = entry.estimate(self.metric)
        if estimate is not None and is_score(estimate.metric):
            return mean_text(estimate)
        return estimate_text(entry, self.metric)

    def value(self, entry: ContestRow) -> float | None:
        """To sort by."""
        if self.metric in ("usd", "tokens"):
            return entry.ratings.usd_per_solved if self.metric == "usd" else entry.ratings.tokens_per_solved
        estimate = entry.estimate(self.metric)
        return None if estimate is None else estimate.median


_TITLES = {
    "seconds": "median time",
    "ttft": "first token",
    "tokens": "tokens per solved",
    "usd": "cost per solved",
}


def figures_of(contest: Contest) -> list[FigureColumn]:
    """What the benchmark leads with, then the usual figures."""
    usual = [metric for metric in _TITLES if metric != "ttft" or contest.is_streamed]
    return [FigureColumn(_TITLES.get(name, name), name) for name in dict.fromkeys((*contest.leads, *usual))]


def baseline_notes(contest: Contest) -> list[str]:
    """How far agents are from the baseline, and what the benchmark leads with but was not measured."""
    known = {entry.label: entry.trial.deviation for entry in contest.entries}
    sentences = [
        f"{label}: overall {deviation:+.1%} against the baseline".replace("%", " %")
        for label, deviation in known.items()
        if deviation is not None
    ]
    for name in contest.leads:
        lacking = [
            entry.label
            for entry in contest.entries
            if FigureColumn("", name).text(entry) in (NOTHING, UNKNOWN)
        ]
        if lacking:
            sentences.append(
                f"{_format_label_prefix(lacking, contest)}metrics_measured names '{name}', which was not measured"
            )
    return sentences


def spending_notes(contest: Contest) -> list[str]:
    """How the costs are known, and what judging took beside them."""
    agents: dict[str, list[str]] = {}
    for entry in contest.entries:
        for source in cost_sources(entry.trial):
            agents.setdefault(source_text(source), []).append(entry.label)
    notes = [f"{_format_label_prefix(labels, contest)}cost {text}" for text, labels in agents.items()]
    judged = [entry.trial.judging for entry in contest.entries if entry.trial.judging is not None]
    if judged:
        judging = Judging(
            sum(part.calls for part in judged),
            _sum([part.tokens for part in judged]),
            _sum([part.usd for part in judged]),
        )
        notes.append(f"judging took {judging_text(judging)}, paid by you, not part of any agent's cost")
    return notes


def _sum(values: Sequence[float | None]) -> float | None:
    return None if None in values else sum(value or 0.0 for value in values)


def judging_text(judging: Judging) -> str:
    """
    >>> judging_text(Judging(60, 12345, 0.012)), judging_text(Judging(1, None, None))
    ('60 calls, 12,345 tokens, $0.012', '1 call, an unknown number of tokens, an unknown cost')
    """
    tokens = "an unknown number of tokens" if judging.tokens is None else f"{count(judging.tokens)} tokens"
    cost = "an unknown cost" if judging.usd is None else usd(judging.usd) if judging.usd else "free of charge"
    return f"{_format_count(judging.calls, 'call')}, {tokens}, {cost}"


def tokens_text(ratings: Ratings) -> str:
    used = ratings.tokens_per_solved
    return _per_solved(ratings, used, count(used) if used is not None and math.isfinite(used) else "")


def _per_solved(ratings: Ratings, value: float | None, text: str) -> str:
    if value is None or (ratings.unscored and not ratings.scored):
        return UNKNOWN
    return "none solved" if ratings.solved == 0 and value != 0 else text


def estimate_text(entry: ContestRow, metric: str) -> str:
    estimate = entry.estimate(metric)
    return NOTHING if estimate is None else with_interval(estimate)


def tries_texts(contest: Contest, entry: ContestRow) -> list[tuple[str, str]]:
    """`pass^k` and `pass@k` at the largest k that all have; one of them when k is 1, for then they are the same."""
    k = contest.most_tries
    if k == 0:
        return []
    kinds = (("pass^", entry.ratings.pass_hat), ("pass@", entry.ratings.pass_at))
    return [
        (f"{name}{k}", f"{values[k]:.2f}" if k in values else NOTHING) for name, values in kinds[k == 1 :]
    ]


def outcome_names(contest: Contest) -> list[str]:
    """Every class of outcome; `unscored` last, where there is such, for it is none of them."""
    has_unscored = any(entry.ratings.unscored for entry in contest.entries)
    return [*OUTCOMES.values(), *(["unscored"] if has_unscored else [])]


def outcome_numbers(contest: Contest, entry: ContestRow) -> list[tuple[str, int]]:
    """Executions of each class."""
    ratings = entry.ratings
    numbers = {name: ratings.outcomes.get(key, 0) for key, name in OUTCOMES.items()}
    return [(name, numbers.get(name, ratings.unscored)) for name in outcome_names(contest)]


def as_text(value: object, limit: int = 600) -> str:
    """An input or output for people: text as it is, anything else as JSON; a long one is cut and says so."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= limit:
        return text
    _, mark, size = text[-80:].rpartition("… (shortened: ")
    more = (
        f"(stored: {size}"
        if mark and size.endswith(" characters)")
        else f"{len(text) - limit:,} more characters"
    )
    return f"{text[:limit]} … {more}"


def format_first_names(names: Iterable[str], most: int) -> str:
    """
    >>> format_first_names(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    kept = list(names)
    more = f" and {count(len(kept) - most)} more" if len(kept) > most else ""
    return ", ".join(kept[:most]) + more
