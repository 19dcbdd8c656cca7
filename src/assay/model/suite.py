from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.model.plan import Cleanup, InstrumentUse, Iterations, Limits

PASS_MARK = 0.5
"""The score from which a case counts as passed, unless the rubric of its benchmark says otherwise."""


SUITE_ITERATIONS = Iterations(warmup=1, measured=3)
"""Where a suite does not say."""

ASK = "ask"
"""The experiment that puts each case to an agent; a benchmark may have any other."""


@dataclass(frozen=True, slots=True)
class ScorerUse:
    """A scorer by name, with its weight and options."""

    name: str
    weight: float = 1.0
    options: Mapping[str, object] = field(default_factory=dict)
    label: str = ""
    """What its score is called: correctness, completeness, relevance, or the scorer's own name."""

    @property
    def score_name(self) -> str:
        return self.label or self.name


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation, with what its answer must be."""

    input: object
    expected: object = None
    scorers: tuple[ScorerUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One input and, where there is one, its right output."""

    id: str
    input: object
    expected: object = None
    turns: tuple[Turn, ...] = ()
    tools: tuple[Mapping[str, object], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Score:
    """A judgement of one output, 0 to 1; None is unscored: it could not be judged, and counts nowhere."""

    name: str
    value: float | None
    weight: float = 1.0
    reason: str = ""
    spent: Mapping[str, float] = field(default_factory=dict)
    """What judging used up, by metric: spending of the harness, no part of the agent's."""


@dataclass(frozen=True, slots=True)
class Rubric:
    """How a benchmark's dimensions are weighed, and what counts as 0.5 on each."""

    weights: Mapping[str, float] = field(default_factory=dict)
    reference: Mapping[str, float] = field(default_factory=dict)
    """seconds, tokens, usd, cpu_seconds, memory_mb."""
    pass_mark: float = PASS_MARK
    """The score from which a case counts as passed."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A named question for every agent: data, not code."""

    id: str
    name: str
    cases: tuple[Case, ...]
    description: str = ""
    test_type: str = "synthetic"
    experiment: str = ASK
    params: Mapping[str, object] = field(default_factory=dict)
    """Of an experiment other than `ask`, like `sweep` and `processes`."""
    sweep: Mapping[str, Sequence[object]] = field(default_factory=dict)
    processes: int = 1
    instruments: tuple[InstrumentUse, ...] = ()
    scorers: tuple[ScorerUse, ...] = ()
    iterations: Iterations = SUITE_ITERATIONS
    limits: Limits = field(default_factory=Limits)
    cleanup: Cleanup | None = None
    rubric: Rubric = field(default_factory=Rubric)
    dataset: Mapping[str, object] = field(default_factory=dict)
    metrics_measured: tuple[str, ...] = ()
    """Metrics that reports lead with."""
    hash: str = ""
    has_default_warmup: bool = False
    """Whether nobody said how many warm-ups; then agents that are remote or have a price do without."""

    @property
    def asks_agents(self) -> bool:
        return self.experiment == ASK

    @property
    def expects_scores(self) -> bool:
        """Whether outputs are to be scored: not where no case says what is right and the scorer is only the default.

        Nor where no scorer has a weight.
        """
        if not any(use.weight for use in self.scorers):
            return False
        return self.scorers != (ScorerUse("exact"),) or any(
            case.expected is not None or any(turn.expected is not None or turn.scorers for turn in case.turns)
            for case in self.cases
        )


@dataclass(frozen=True, slots=True)
class Suite:
    """Benchmarks run and ranked together."""

    name: str
    version: str
    category: str
    benchmarks: tuple[Benchmark, ...]
    description: str = ""
    baseline_scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Agent to benchmark to its overall rating there, 0 to 1."""
    schedule: str | None = None
    """Cron, UTC."""
    hash: str = ""
    title: str = ""
    """A longer name, for people."""
    created_at: str = ""
    require: tuple[str, ...] = ()
    """Requirements that `assay gate` checks, as they are written; no part of the hash, for they change no result."""


@dataclass(frozen=True, slots=True)
class CheckedCase:
    """What the scorers of a case say to answers that must be right, and to an empty one."""

    case: str
    problem: str = ""
    """`oracle`: a right answer does not get the full score; `unscored`: it cannot be judged; `unchecked`: none could be
    constructed; empty where all is well."""
    reason: str = ""
    rewards_nothing: bool = False
    """Whether an empty answer gets points."""
