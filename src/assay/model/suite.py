"""Suites: benchmarks with their cases, scorers, limits and rubric.

A suite is data and not code, and is stored whole with the runs that use it. The hash of a benchmark stands for everything that can
change a result; results are compared only where it is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.model.case import Case, ScorerUse
from assay.model.settings import Cleanup, InstrumentUse, Iterations, Limits

PASS_MARK = 0.5
"""The score from which a case counts as passed, unless the rubric of its benchmark says otherwise."""

SUITE_ITERATIONS = Iterations(warmup=1, measured=3)
"""Where a suite does not say."""

ASK = "ask"
"""The experiment that puts each case to an agent; a benchmark may have any other."""


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
    """Cases with scorers and limits: the same question for every agent.

    With `experiment` other than `ask`, the benchmark runs that experiment instead, and cases, if any, are params for it.
    """

    id: str
    name: str
    cases: tuple[Case, ...]
    description: str = ""
    test_type: str = "synthetic"
    experiment: str = ASK
    params: Mapping[str, object] = field(default_factory=dict)
    """Params of an experiment other than `ask`, as are `sweep` and `processes`."""
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
    """Whether the number of warm-ups is not set; then agents that are remote or have a price have none."""

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
    """`oracle`: a correct answer does not get the full score; `unscored`: it cannot be judged; `unchecked`: none could be
    constructed; empty where all is well."""
    reason: str = ""
    rewards_nothing: bool = False
    """Whether an empty answer gets points."""


@dataclass(frozen=True, slots=True)
class CaseFault:
    """A fault of some cases of a benchmark. Faults that are not severe are only worth a look."""

    code: str
    benchmark: str
    cases: tuple[str, ...]
    message: str
    is_severe: bool = False


@dataclass(frozen=True, slots=True)
class SuiteHealth:
    suite: str
    cases: int
    faults: tuple[CaseFault, ...]

    @property
    def number_of_unchecked(self) -> int:
        """Cases without a known correct answer."""
        return sum(len(fault.cases) for fault in self.faults if fault.code == "unchecked")

    @property
    def is_sound(self) -> bool:
        return not any(fault.is_severe for fault in self.faults)
