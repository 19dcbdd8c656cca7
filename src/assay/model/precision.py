"""How precise results are: the noise floor of a machine (`assay noise`), and what it takes to find a difference (`assay power`)."""

from __future__ import annotations

from dataclasses import dataclass

from assay.model.estimate import Verdict
from assay.model.metric import SCORE_TOLERANCE, Metric, is_score

TOLERANCE = 0.03
"""Processes of one and the same program differ by 2.4 to 3 % on an ordinary machine."""
NOISE_FLOORS = 2
"""On a machine that is known to be noisier, nothing within this many noise floors is claimed."""


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """By how much a metric varies from round to round although nothing changes: a share for times and costs, points for scores.

    The three shares say where the variance comes from: the cases, what all cases of a round have in common (the machine),
    and the rest, from one repetition to the next.
    """

    trial: str
    metric: Metric
    unit: str
    """What was repeated in each round: `case`, or `process` where a round is a process of its own."""
    cases: int
    rounds: int
    floor: float
    """Standard deviation of a round: what two rounds differ by is about one and a half times as much."""
    share_case: float | None
    """Share of all variance that lies between cases; None where it cannot be estimated."""
    share_machine: float | None
    share_repetition: float
    verdict: Verdict
    """Verdict on the odd rounds against the even ones, which are the same thing."""

    @property
    def tolerance(self) -> float:
        """Differences below it are not to be claimed: never less than what counts as the same anyway."""
        return SCORE_TOLERANCE if is_score(self.metric) else max(TOLERANCE, NOISE_FLOORS * self.floor)


@dataclass(frozen=True, slots=True)
class SimulatedPower:
    """The share of simulated comparisons that find the difference, with its 95 % Monte Carlo interval."""

    share: float
    low: float
    high: float
    simulations: int


@dataclass(frozen=True, slots=True)
class Need:
    """What must be run, of each of two sides, before `assay compare` finds a difference of this size four times in five.

    There are two ways: more cases or processes (`units`), or more repetitions of those that are there. Each is None, with the
    reason, where it cannot reach that power. The powers are simulated with the variances of the stored runs.
    """

    benchmark: str
    metric: Metric
    effect: float
    unit: str
    """`case` or `process`."""
    there: int
    """Cases that the benchmark has, or processes that were run."""
    units: int | None
    """Cases, or processes, needed with as many repetitions as were stored; None where no number is enough."""
    repetitions: int
    """As stored: the repetitions of each case, or in each process."""
    more_repetitions: int | None
    """Repetitions of each existing case, where that is enough; None where more repetitions do not help."""
    executions: int | None
    """Executions of both sides together, in the cheaper way; None where there is none."""
    minutes: float | None
    usd: float | None
    basis: str
    """What the variance was taken from."""
    family: int = 1
    """Comparisons that p values are corrected for (Holm), this one included."""
    power_now: SimulatedPower | None = None
    """With the cases, processes and repetitions that are there."""
    power_units: SimulatedPower | None = None
    """With `units`."""
    power_repetitions: SimulatedPower | None = None
    """With `more_repetitions`."""
    why_not_units: str = ""
    """Why no number of units is enough; empty where one is."""
    why_not_repetitions: str = ""
