"""Agents side by side on a benchmark: who stands where, and the words for it in every format."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from assay.model import DIMENSIONS, Benchmark, Estimate, Rating, Ratings, Report, TrialReport
from assay.report.figures import NOTHING, params_text, with_interval
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
_PASS_MARK = 0.5
_LOOKED_AT = 500
"""Executions that are asked whether they are simulated: an agent is it throughout, or not at all."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One row of a board."""

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
class Board:
    """The agents that were put through one benchmark, best first; simulated ones have a board of their own."""

    benchmark: str
    title: str
    is_simulated: bool
    pass_mark: float
    standings: tuple[Standing, ...]

    @property
    def key(self) -> str:
        return f"{self.benchmark}-simulated" if self.is_simulated else self.benchmark

    @property
    def shared(self) -> tuple[str, ...]:
        """Dimensions that every agent here is rated on."""
        return tuple(name for name in DIMENSIONS if all(name in one.rated for one in self.standings))

    @property
    def is_comparable(self) -> bool:
        """Whether the overall ratings rest on the same dimensions, so that they may be ranked."""
        return len({one.rated for one in self.standings}) == 1

    @property
    def most_tries(self) -> int:
        """The largest k that pass^k and pass@k are known of for every agent; 0 when there is none."""
        return min((max(one.ratings.pass_hat, default=0) for one in self.standings), default=0)

    @property
    def size_text(self) -> str:
        """How much was asked: `50 cases, 3 repetitions`."""
        cases = max(one.ratings.cases for one in self.standings)
        tries = max(one.trial.stored.trial.iterations.measured for one in self.standings)
        return f"{_counted(cases, 'case')}, {_counted(tries, 'repetition')}"


def _counted(number: int, unit: str) -> str:
    return f"{count(number)} {unit}" if number == 1 else f"{count(number)} {unit}s"


def boards(report: Report) -> list[Board]:
    """One a benchmark in the order of the plan, first of real agents, then of simulated ones."""
    groups: dict[tuple[bool, str], list[TrialReport]] = {}
    for trial in report.trials:
        if trial.ratings is not None:
            groups.setdefault((is_simulated(trial), trial.stored.trial.benchmark), []).append(trial)
    real_first = sorted(groups.items(), key=lambda item: item[0][0])
    return [_board(report, name, simulated, trials) for (simulated, name), trials in real_first]


def _board(report: Report, name: str, simulated: bool, trials: Sequence[TrialReport]) -> Board:
    defined = benchmark_of(report, name)
    standings = [
        Standing(label, trial, trial.ratings)
        for label, trial in zip(_labels(trials), trials, strict=True)
        if trial.ratings is not None
    ]
    board = Board(
        benchmark=name,
        title=defined.name if defined else name,
        is_simulated=simulated,
        pass_mark=defined.rubric.pass_mark if defined else _PASS_MARK,
        standings=tuple(standings),
    )
    key = "overall" if board.is_comparable else "accuracy"
    ranked = sorted(standings, key=lambda one: _rank(one.rating(key).value))
    return Board(name, board.title, simulated, board.pass_mark, tuple(ranked))


def _rank(value: float | None) -> float:
    return math.inf if value is None else -value


def benchmark_of(report: Report, name: str) -> Benchmark | None:
    defined = report.suite.benchmarks if report.suite else ()
    return next((benchmark for benchmark in defined if benchmark.id == name), None)


def is_simulated(trial: TrialReport) -> bool:
    """Whether its agent, or the server behind it, made its figures up."""
    use = trial.stored.trial.agent_use
    if use is None:
        return False
    looked_at = islice(trial.executions, _LOOKED_AT)
    return use.type == "simulated" or any(one.detail and one.detail.get("simulated") for one in looked_at)


def _labels(trials: Sequence[TrialReport]) -> list[str]:
    """Names of agents with what a sweep set, told apart by version or number where they are alike."""
    names = [_named(trial) for trial in trials]
    versioned = [
        f"{name} {trial.stored.trial.agent.version}".strip() if names.count(name) > 1 else name
        for name, trial in zip(names, trials, strict=True)
    ]
    return [
        f"{name} (trial {trial.stored.id})" if versioned.count(name) > 1 else name
        for name, trial in zip(versioned, trials, strict=True)
    ]


def _named(trial: TrialReport) -> str:
    point = trial.stored.trial
    return f"{point.agent.name}[{params_text(point.axes)}]" if point.axes else point.agent.name


def marked(standing: Standing, board: Board) -> str:
    return f"{standing.label} (simulated)" if board.is_simulated else standing.label


def heading(board: Board) -> str:
    return f"{board.title} · simulated agents" if board.is_simulated else board.title


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


def unrated(board: Board) -> list[str]:
    """Why dimensions have no rating, each reason once."""
    agents: dict[tuple[str, str], list[str]] = {}
    for standing in board.standings:
        for name in DIMENSIONS:
            rating = standing.rating(name)
            if rating.value is None:
                agents.setdefault((name, rating.basis), []).append(standing.label)
    return [
        f"{name} is unrated{_of(labels, board)}: {reason}" for (name, reason), labels in agents.items()
    ]


def rating_doubts(board: Board) -> list[str]:
    """Doubts about ratings, each once, and whether the overall ratings may be compared at all."""
    agents: dict[str, list[str]] = {}
    for standing in board.standings:
        for text in standing.ratings.doubts:
            agents.setdefault(text, []).append(standing.label)
    said = [f"{text}{_of(labels, board)}" for text, labels in agents.items()]
    if not board.is_comparable:
        said.append("overall rests on different dimensions here: compare the dimensions, not the overall")
    return said


def _of(labels: Sequence[str], board: Board) -> str:
    """Nothing when it holds for all of them."""
    return "" if len(labels) == len(board.standings) else f" for {', '.join(labels)}"


def solved_text(ratings: Ratings) -> str:
    """
    >>> from assay.model import Rating, Ratings
    >>> solved_text(Ratings({}, Rating("overall", None), {}, 0, cases=50, solved=41.333))
    '41.3 of 50'
    """
    return f"{significant(ratings.solved)} of {count(ratings.cases)}"


def usd_text(ratings: Ratings) -> str:
    """Cost per solved case; what is unknown is never $0."""
    cost = ratings.usd_per_solved
    if cost == 0:
        return "free"
    return _per_solved(ratings, cost, usd(cost) if cost is not None and math.isfinite(cost) else "")


def tokens_text(ratings: Ratings) -> str:
    used = ratings.tokens_per_solved
    return _per_solved(ratings, used, count(used) if used is not None and math.isfinite(used) else "")


def _per_solved(ratings: Ratings, value: float | None, text: str) -> str:
    if ratings.solved == 0 and value != 0:
        return "none solved"
    return UNKNOWN if value is None else text


def estimate_text(standing: Standing, metric: str) -> str:
    estimate = standing.estimate(metric)
    return NOTHING if estimate is None else with_interval(estimate)


def tries_texts(board: Board, standing: Standing) -> list[tuple[str, str]]:
    """`pass^k` and `pass@k` at the largest k that all have; one of them when k is 1, for then they are the same."""
    k = board.most_tries
    if k == 0:
        return []
    both = (("pass^", standing.ratings.pass_hat), ("pass@", standing.ratings.pass_at))
    return [(f"{name}{k}", f"{values[k]:.2f}" if k in values else NOTHING) for name, values in both[k == 1 :]]


def outcome_numbers(ratings: Ratings) -> Iterator[tuple[str, int]]:
    """Every class of outcome with its executions; the unscored last, for they are in none."""
    yield from ((name, ratings.outcomes.get(key, 0)) for key, name in OUTCOMES.items())
    yield "unscored", ratings.unscored


def as_text(value: object, limit: int = 600) -> str:
    """An input or output for people: text as it is, anything else as JSON; a long one is cut and says so."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[:limit]} … {len(text) - limit:,} more characters"


def listed(names: Iterable[str], most: int) -> str:
    """
    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    kept = list(names)
    more = f" and {count(len(kept) - most)} more" if len(kept) > most else ""
    return ", ".join(kept[:most]) + more
