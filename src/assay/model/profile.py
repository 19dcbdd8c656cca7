"""A profile: where the time, the CPU, the memory and the tokens of an execution went, and what could be saved.

The outer names are those of the specification: `report` and the finding `profile` write them. Inside, seconds and bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

PROFILE = "profile"
"""Name of the instrument and of its finding, and the tag of runs that `assay profile` made."""


@dataclass(frozen=True, slots=True)
class SpanUsage:
    """What one kind of span took: all spans of that name at that place together."""

    name: str
    kind: str
    depth: int
    calls: int
    seconds: float
    """Wall time in which at least one of them was open."""
    share: float
    """Share of the whole execution, including the harness."""
    starts: tuple[tuple[float, float], ...] = ()
    """When each began and ended."""
    cpu_seconds: float | None = None
    """CPU seconds of the whole process meanwhile; None where the process was not sampled."""
    memory_bytes: int | None = None
    """The most that the process held meanwhile."""
    io_operations: int | None = None


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A place in the code where the execution spent its time, and what it did there."""

    location: str
    """file:line function"""
    cause: str
    seconds: float
    """Wall time of one execution."""
    share: float
    suggestion: str


@dataclass(frozen=True, slots=True)
class Utilization:
    """How well an execution used what it had; None where that is not known."""

    cpu: float | None = None
    """CPU seconds ÷ (wall time × allowed cores)."""
    memory: float | None = None
    """Mean ÷ peak resident memory."""
    io: float | None = None
    """1 − share of the wall time in which it waited for input or output."""
    parallelization: float | None = None
    """(sum of calls − their wall time) ÷ (sum − longest chain); None where no calls are known to be independent."""


@dataclass(frozen=True, slots=True)
class TokenAnalysis:
    """The tokens of one execution; None where the agent did not report them."""

    input: int | None = None
    output: int | None = None
    cache_hits: int | None = None
    """Input tokens that came from a cache."""
    prefix: int | None = None
    """Input tokens that an earlier prompt of the execution began with, and that no cache answered."""
    repeated: int | None = None
    """Tokens of calls that were made before with the same input."""
    usd: float | None = None

    @property
    def wasted(self) -> int | None:
        return None if self.prefix is None or self.repeated is None else self.prefix + self.repeated

    @property
    def efficiency(self) -> float | None:
        """1 − wasted ÷ all."""
        if self.input is None or self.output is None or self.wasted is None:
            return None
        total = self.input + self.output
        return None if not total else max(0.0, 1 - self.wasted / total)


@dataclass(frozen=True, slots=True)
class Opportunity:
    """What could be saved, with the data and the arithmetic that say so."""

    category: str
    improvement: str
    """What would get better, with numbers."""
    impact: float
    """The share of the wall time, or of the tokens, that would be saved: the larger of both."""
    effort: str
    """low, medium or high"""
    suggestion: str
    location: str
    evidence: tuple[str, ...]
    arithmetic: str
    seconds: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Overhead:
    """What sampling cost: time of executions with it ÷ time of those without, pair by pair, − 1."""

    value: float
    low: float | None
    high: float | None
    pairs: int

    @property
    def is_resolved(self) -> bool:
        """Whether the interval excludes that sampling costs nothing."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, slots=True)
class FlameFrame:
    """A frame of the flame graph; callers come before what they call."""

    name: str
    depth: int
    start: float
    """Seconds to its left: the frames of one depth lie side by side within their caller, the widest first."""
    seconds: float
    """Wall time of one execution in which it was on the stack."""
    kind: str
    """computing, library or waiting"""


@dataclass(frozen=True, slots=True)
class Profile:
    """One trial: an agent on a benchmark, or an experiment."""

    agent: str
    trial: str
    seconds: float
    """Seconds of a typical sampled execution, including the harness."""
    executions: int
    samples: int
    phases: tuple[SpanUsage, ...]
    bottlenecks: tuple[Bottleneck, ...]
    utilization: Utilization
    tokens: TokenAnalysis
    opportunities: tuple[Opportunity, ...]
    flame: tuple[FlameFrame, ...]
    overhead: Overhead | None = None
    """In wall time."""
    cpu_overhead: Overhead | None = None
    """In CPU time of the subject, which other programs on the machine disturb less; None where it computes too little."""
    problems: tuple[str, ...] = ()
    """What could not be sampled or computed, and why."""
    is_simulated: bool = False
