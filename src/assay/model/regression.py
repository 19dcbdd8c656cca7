"""Regressions: what got worse from one version of an agent to another, what that means, and what to do about it.

They are found in two ways, which are reported together: by comparison with a baseline, and as change points in the history of a metric.
A regression keeps its id and its state (`assay regressions`) from run to run. The gate (`assay gate`) is the answer to a
narrower question: may this run pass, given the baseline and the requirements?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from assay.model.estimate import Comparison, Verdict, have_scores_fallen
from assay.model.head_to_head import Flips
from assay.model.metric import Metric
from assay.model.report import Doubt, Report
from assay.model.requirement import CheckedRequirement


class Severity(StrEnum):
    """Severity by the certain loss: beyond the tolerance, above 10, 20 and 30 %."""

    MINOR = "minor"
    MODERATE = "moderate"
    MAJOR = "major"
    CRITICAL = "critical"


HIGH = (Severity.MAJOR, Severity.CRITICAL)


class RegressionState(StrEnum):
    """The state of a regression: Assay detects it, people mark it, and either of them resolves it."""

    DETECTED = "detected"
    INVESTIGATING = "investigating"
    CONFIRMED = "confirmed"
    RESOLVED = "resolved"
    FALSE_POSITIVE = "false_positive"

    @property
    def is_open(self) -> bool:
        return self not in (RegressionState.RESOLVED, RegressionState.FALSE_POSITIVE)


@dataclass(frozen=True, slots=True)
class RegressionChange:
    """A state that a person gave to a regression."""

    at: datetime
    author: str
    """The name of the key that was used; empty for the command line."""
    state: RegressionState
    note: str


class Action(StrEnum):
    """What to do with a version, as `analysis.history.promotion` advises."""

    PROMOTE = "promote"
    HOLD = "hold"
    ROLL_BACK = "roll back"
    RERUN = "re-run"


@dataclass(frozen=True, slots=True)
class Loss:
    """How much worse, as a share of what it was; of scores, in points. Positive is worse, whichever way is good."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Impact:
    """What a regression does to those who use the agent."""

    cases: tuple[str, ...] = ()
    """Cases that got worse, the worst first."""
    overall: float | None = None
    """How much of the overall score it takes, from 0 to 1; None where nothing is rated."""
    per_1000: float | None = None
    """What it adds up to over 1,000 tasks, in the metric's unit; None where that has no meaning."""
    usd_per_1000: float | None = None
    """More usd for 1,000 solved tasks; None where the price is not known."""


@dataclass(frozen=True, slots=True)
class Regression:
    """Worse than before beyond tolerance.

    Its id is made of agent, benchmark, metric and range of versions, so that the same regression keeps its state and its note when it is
    found again. Values are medians, or means of scores, in the unit of the metric.
    """

    id: str
    agent: str
    suite: str
    benchmark: str
    """With the params that tell points of one benchmark apart."""
    metric: Metric
    before: str
    """The last version that was still well, and where several runs are of it, which."""
    after: str
    """The first version that was worse."""
    baseline_value: float
    current_value: float
    loss: Loss
    tolerance: float
    severity: Severity
    found_by: tuple[str, ...]
    """`baseline`, `step`, `drift`."""
    p: float | None = None
    """Corrected over the family where it was found by comparison; else that of the change point."""
    impact: Impact = field(default_factory=Impact)
    is_pending: bool = False
    """So young that more runs may still show it to be chance."""
    is_suspect: bool = False
    """The machine's own pace moved with it."""
    state: RegressionState = RegressionState.DETECTED
    note: str = ""
    detected: datetime | None = None
    changed: datetime | None = None
    """When it came to be in its state."""
    is_marked: bool = False
    """A person gave it its state, so it is kept when the same is found again."""

    @property
    def percentage(self) -> float | None:
        """Return the loss in percent of the baseline; None if the baseline is zero."""
        return None if self.baseline_value == 0 and self.loss.value else self.loss.value * 100

    @property
    def counts(self) -> bool:
        return self.state.is_open


@dataclass(frozen=True, slots=True)
class Pattern:
    """One metric that moved by about the same factor on all benchmarks."""

    metric: Metric
    factor: float
    benchmarks: tuple[str, ...]
    pace: float | None
    """By what factor the machine itself took longer for the same work; None where that is not known, or did not move."""
    message: str


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the machine itself was just before a run, by a fixed workload."""

    seconds: float
    spread: float
    """Spread of equal pieces of that work, as a share of their median: how far the pace can be trusted."""


@dataclass(frozen=True, slots=True)
class Point:
    """A metric's value in one run."""

    run_id: str
    version: str
    started: datetime
    value: float
    pace: Pace | None = None


@dataclass(frozen=True, slots=True)
class MetricHistory:
    """One metric of an agent on a benchmark, version by version and run by run."""

    suite: str
    benchmark: str
    metric: Metric
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Shift:
    """A change in a history, for better or worse: a step from one version to the next, or a drift over several."""

    suite: str
    benchmark: str
    metric: Metric
    kind: str
    """`step` or `drift`."""
    before: Point
    """The last of the old level."""
    after: Point
    """The first of the new level; of a drift, the last."""
    level_before: float
    level_after: float
    loss: Loss
    p: float | None
    tolerance: float
    is_pending: bool
    is_over: bool
    """Later runs are back where it was before, within tolerance."""
    pace: float | None = None
    """Factor by which the machine itself took longer after it; None where that is not known, or did not move."""


@dataclass(frozen=True, slots=True)
class AgentTimeline:
    """How an agent did on a suite, over its versions."""

    agent: str
    suite: str
    versions: tuple[str, ...]
    """In the order in which they first ran."""
    histories: tuple[MetricHistory, ...]
    shifts: tuple[Shift, ...]
    regressions: tuple[Regression, ...]
    """Those that are stored, open or not."""
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do with a version, and why."""

    health: float
    action: Action
    reason: str


@dataclass(frozen=True, slots=True)
class RegressionReport:
    """An agent's latest version against what it was."""

    agent: str
    version: str
    suite: str
    baseline: str
    """What it was compared with, in words; empty where there was nothing."""
    comparisons: tuple[Comparison, ...]
    regressions: tuple[Regression, ...]
    improvements: tuple[Shift, ...]
    """Changes for the better that the history shows."""
    patterns: tuple[Pattern, ...]
    histories: tuple[MetricHistory, ...]
    unsearched: Mapping[str, str]
    """Benchmark and metric to why no change point can be found in their history."""
    advice: Advice
    doubts: tuple[Doubt, ...] = ()
    flips: tuple[Flips, ...] = ()
    """Cases lost and won against the baseline, one for each trial of a suite."""

    @property
    def has_regressions(self) -> bool:
        return any(regression.counts for regression in self.regressions)


@dataclass(frozen=True, slots=True)
class Rerun:
    """Both sides of a gate, run again interleaved in one new run."""

    baseline: str
    """The run that is the baseline."""
    judged: str
    """The run that was to be judged."""
    commits: Mapping[str, str] = field(default_factory=dict)
    """Trials of the new run to the commit that their code was checked out from; the others ran as they are on disk."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What the baseline has results of and the run has not, so that it is unknown whether it got worse."""

    trials: tuple[str, ...] = ()
    cases: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Trial to the cases without a score."""

    def __bool__(self) -> bool:
        return bool(self.trials or self.cases)


@dataclass(frozen=True, slots=True)
class Gate:
    """A run (B) against a baseline (A). It fails only on evidence: *unsure* passes.

    It fails on a verdict *worse*, on trials that broke, could no longer be scored or are incomplete, on more lost cases than
    allowed, and on a requirement that is not met.
    """

    baseline: str
    a: Report
    b: Report
    comparisons: tuple[Comparison, ...]
    broken: tuple[str, ...] = ()
    """Trials that worked in the baseline and have not one ok execution now."""
    unscored: tuple[str, ...] = ()
    """Trials that were scored in the baseline and of which scoring failed on most executions now."""
    incomplete: tuple[str, ...] = ()
    """Trials of the run of which too many executions have no result."""
    unjudged: tuple[str, ...] = ()
    """Metrics without a verdict: they were not requested, or it is unknown whether lower or higher is better."""
    flips: tuple[Flips, ...] = ()
    """Cases lost and won, one for each trial of a suite that both runs have."""
    doubts: tuple[Doubt, ...] = ()
    max_lost: int | None = None
    """It fails when more cases than this are lost; None: however many are."""
    rerun: Rerun | None = None
    """Set where both sides were run again; then `a` and `b` are the two halves of that run."""
    requirements: tuple[CheckedRequirement, ...] = ()
    """What the suite and the caller require of every trial of B."""
    missing: Missing = field(default_factory=Missing)
    asked: tuple[str, ...] = ()
    """Options that say what is judged and how far it may go, to repeat the gate with."""

    @property
    def has_baseline(self) -> bool:
        """False for a gate by requirements alone; then A is B."""
        return bool(self.baseline)

    @property
    def unmet(self) -> tuple[CheckedRequirement, ...]:
        return tuple(requirement for requirement in self.requirements if not requirement.is_met)

    @property
    def lost(self) -> int:
        """Cases that passed in every repetition of the baseline and in none of the run."""
        return sum(len(flips.lost) for flips in self.flips)

    @property
    def is_no_worse(self) -> bool:
        """Whether the run could be the next baseline: it passed, nothing is missing, and no case and no mean score fell."""
        has_lost = any(flips.lost or flips.weaker for flips in self.flips)
        has_scores = any(flips.unchanged or flips.won or flips.stronger for flips in self.flips)
        is_score_judged = any(comparison.metric.name == "score" for comparison in self.verdicts)
        if not self.passed or self.missing or has_lost or (has_scores and not is_score_judged):
            return False
        return not have_scores_fallen(self.verdicts)

    @property
    def has_lost_too_many(self) -> bool:
        return self.max_lost is not None and self.lost > self.max_lost

    @property
    def verdicts(self) -> tuple[Comparison, ...]:
        """The comparisons that have a verdict."""
        return tuple(comparison for comparison in self.comparisons if comparison.verdict is not None)

    def select_by_verdict(self, verdict: Verdict) -> tuple[Comparison, ...]:
        """The comparisons with this verdict."""
        return tuple(comparison for comparison in self.comparisons if comparison.verdict is verdict)

    @property
    def passed(self) -> bool:
        worse = self.broken or self.unscored or self.incomplete or self.select_by_verdict(Verdict.WORSE)
        return not (worse or self.has_lost_too_many or self.unmet)
