"""What the seeds of each algorithm show together, failed ones included, and which algorithm is proved to be better.

A seed that diverged, crashed or ran out of time has the reward 0 and never converged: to leave it out would favour the
algorithm that fails most.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from assay.builtin.experiments.components.scales import CONVERGENCE, STABILITY
from assay.builtin.findings.grades import UNSURE
from assay.model import Execution, Phase, Status, TrialReport
from assay.plugin import GradeScale
from assay.stats.correction import holm
from assay.stats.effect import compare_unpaired
from assay.stats.learning_curve import find_first_reaching
from assay.stats.means import mean_half_width
from assay.stats.order import median_interval
from assay.stats.run_scores import ScoreInterval, estimate_improvement, estimate_score
from assay.stats.sample import Array

SIGNIFICANT = 0.05
FEWEST_SEEDS = 3
"""Below this, results are preliminary (publication gates of seed 000)."""


@dataclass(frozen=True, slots=True)
class SeedRun:
    """One training from one seed."""

    seed: int | None
    """None where no seed of the run lived to tell where seeds begin."""
    execution: Execution
    rewards: tuple[float, ...]
    converged: int | None
    """Episodes until it converged; None where it did not."""

    @property
    def is_trained(self) -> bool:
        return self.execution.status is Status.OK

    @property
    def label(self) -> str:
        return f"process {self.execution.process}" if self.seed is None else f"seed {self.seed}"

    @property
    def is_diverged(self) -> bool:
        return self.execution.measurements.get("diverged") == 1.0

    @property
    def final_reward(self) -> float:
        return self.execution.measurements["final_reward"] if self.is_trained else 0.0


@dataclass(frozen=True, slots=True)
class EpisodesNeeded:
    """The median over seeds of the episodes until convergence, with its interval; infinite ends are beyond the budget."""

    value: float
    low: float
    high: float
    level: float
    """Chance with which the interval holds the median of all seeds: few seeds cannot give 95 %."""


@dataclass(frozen=True)
class AlgorithmSummary:
    """One algorithm over its seeds.

    Seeds are the units of replication: every interval is over seeds and not over episodes, which depend
    on each other. `failed` counts the seeds without a result of their own, diverged ones included.
    """

    name: str
    trial: TrialReport
    seeds: tuple[SeedRun, ...]

    @property
    def is_simulated(self) -> bool:
        return self.trial.is_simulated

    @property
    def params(self) -> Mapping[str, Any]:
        return self.trial.stored.trial.params

    def param(self, name: str, default: float) -> float:
        return float(self.params.get(name, default))

    @property
    def episodes(self) -> int:
        return int(self.param("episodes", 300))

    @property
    def group_size(self) -> int:
        return int(self.param("group_size", 8))

    @property
    def threshold(self) -> float:
        return self.param("threshold", 0.8)

    @property
    def window(self) -> int:
        return int(self.param("window", 25))

    @property
    def task(self) -> str:
        return str(self.params.get("task", "customer_service"))

    @property
    def trained(self) -> tuple[SeedRun, ...]:
        return tuple(seed for seed in self.seeds if seed.is_trained)

    @property
    def diverged(self) -> int:
        return sum(seed.is_diverged for seed in self.seeds)

    @property
    def failed(self) -> int:
        """Seeds without a result of their own, diverged ones included."""
        return len(self.seeds) - len(self.trained)

    @property
    def scores(self) -> Array:
        """Final rewards, as runs of one task."""
        return np.array([[seed.final_reward] for seed in self.seeds])

    @cached_property
    def final_reward(self) -> ScoreInterval:
        return estimate_score(self.scores)

    @property
    def waits(self) -> list[float]:
        """Episodes until convergence, infinite where it was not reached."""
        return sorted(math.inf if seed.converged is None else float(seed.converged) for seed in self.seeds)

    @cached_property
    def needed(self) -> EpisodesNeeded:
        waits, number = self.waits, len(self.seeds)
        middle = statistics.median_low(waits) if math.inf in waits else statistics.median(waits)
        if (interval := median_interval(waits)) is not None:
            return EpisodesNeeded(middle, *interval, 0.95)
        return EpisodesNeeded(middle, waits[0], waits[-1], 1 - 2.0 ** (1 - number))

    @property
    def convergence_grade(self) -> str:
        """Grade how soon training converged.

        If no seed converged, it is only known that it takes longer than the budget, so the
        grade is a range that begins at the budget.
        """
        return _name_grade(CONVERGENCE, min(self.needed.low, self.episodes), self.needed.high)

    @property
    def stability_grade(self) -> str:
        """Grade the stability of training by the median over the seeds that converged.

        The grade is a range where the interval of the median crosses a threshold, and empty if no seed
        converged.
        """
        found = sorted(self.values("stability_score"))
        return _name_grade(STABILITY, *(median_interval(found) or (found[0], found[-1]))) if found else ""

    @cached_property
    def gain(self) -> tuple[float, float, float] | None:
        """Final less untrained reward, its mean over seeds with Student's interval; None for a single seed.

        A seed that failed before it could tell its untrained reward has the mean of the others.
        """
        usual = self.mean("untrained_reward")
        if usual is None or len(self.seeds) < 2:
            return None
        gains = [
            seed.final_reward - seed.execution.measurements.get("untrained_reward", usual)
            for seed in self.seeds
        ]
        middle, half = statistics.fmean(gains), mean_half_width(gains)
        return middle, middle - half, middle + half

    @property
    def has_learnt(self) -> bool:
        """Whether the interval of the gain is above 0."""
        return self.gain is not None and self.gain[1] > 0

    def values(self, metric: str) -> list[float]:
        """Return the values of the seeds that have the metric."""
        figures = (seed.execution.measurements for seed in self.seeds)
        return [found[metric] for found in figures if metric in found]

    def mean(self, metric: str) -> float | None:
        values = self.values(metric)
        return statistics.fmean(values) if values else None

    def highest(self, metric: str) -> float | None:
        return max(self.values(metric), default=None)

    def document(self) -> dict[str, Any]:
        """Seed 000's fields first, with what it lacks beside them; infinite ends of intervals are None."""
        needed, peak = self.needed, self.highest("peak_bytes")
        final = self.final_reward
        ends = [None if math.isinf(end) else end for end in (needed.value, needed.low, needed.high)]
        return {
            "algorithm": self.name,
            "episodes_to_threshold": ends[0],
            "final_reward": final.value,
            "mean_reward": self.mean("mean_reward"),
            "std_reward": self.mean("std_reward"),
            "convergence_speed": self.mean("convergence_speed"),
            "stability_score": self.mean("stability_score"),
            "training_time": self.mean("seconds"),
            "memory_usage": None if peak is None else peak / 1e9,
            "sample_efficiency": self.mean("sample_efficiency"),
            "final_reward_interval": [final.low, final.high],
            "episodes_to_threshold_interval": ends[1:],
            "episodes_to_threshold_level": needed.level,
            "episodes": self.episodes,
            "censored_seeds": sum(seed.converged is None for seed in self.seeds),
            "diverged_seeds": self.diverged,
            "failed_seeds": self.failed,
            "seeds": [seed.seed for seed in self.seeds],
            "untrained_reward": self.mean("untrained_reward"),
            "gain": self.gain,
            "has_learnt": self.has_learnt,
            "samples_per_sec": self.mean("samples_per_sec"),
            "convergence_grade": self.convergence_grade,
            "stability_grade": self.stability_grade,
            "simulated": self.is_simulated,
        }


def _name_grade(scale: GradeScale, low: float, high: float) -> str:
    """The grade of a figure whose whole interval over seeds is in one band."""
    band = scale.find_band(low, high)
    return UNSURE if band is None else band.name


def summarise_algorithms(trials: Sequence[TrialReport]) -> tuple[AlgorithmSummary, ...]:
    """Trials that have a training each; those whose seeds all failed to start are among them."""
    found = []
    base = _find_base_seed(trials)
    for trial in trials:
        point = trial.stored.trial
        others = [
            f"{name}={value}" for name, value in point.axes.items() if name not in ("algorithm", "task")
        ]
        name = ", ".join([str(point.params.get("algorithm", "grpo")).upper(), *others])
        measured = (e for e in trial.executions if e.phase is Phase.MEASURED and e.status.is_settled)
        seeds = tuple(_read_seed(execution, point.params, base) for execution in measured)
        if seeds:
            found.append(AlgorithmSummary(name, trial, seeds))
    return tuple(found)


def _find_base_seed(trials: Sequence[TrialReport]) -> int | None:
    """The seed of the run, which trials do not hold: any training that told its own tells that one as well."""
    for trial in trials:
        for execution in trial.executions:
            if "seed" in (detail := _read_detail(execution)):
                return int(detail["seed"]) - _offset_seed(execution)
    return None


def _offset_seed(execution: Execution) -> int:
    """How far a training's seed is from that of the run: see AlgorithmExperiment.prepare_once."""
    return execution.process + 1000 * execution.repetition


def _read_detail(execution: Execution) -> Mapping[str, Any]:
    detail: Any = (execution.detail or {}).get("training") or {}
    return detail if isinstance(detail, Mapping) else {}


def _read_seed(execution: Execution, params: Mapping[str, Any], base: int | None) -> SeedRun:
    detail = _read_detail(execution)
    rewards = tuple(float(reward) for reward in detail.get("rewards") or ())
    converged = None
    if rewards and execution.status is Status.OK:
        threshold, window = float(params.get("threshold", 0.8)), int(params.get("window", 25))
        converged = find_first_reaching(rewards, threshold, window)
    inferred = None if base is None else base + _offset_seed(execution)
    return SeedRun(int(detail["seed"]) if "seed" in detail else inferred, execution, rewards, converged)


@dataclass(frozen=True, slots=True)
class SeedComparison:
    """Two algorithms: whether one is proved to be better, and how likely a run of the first beats one of the second."""

    first: AlgorithmSummary
    second: AlgorithmSummary
    p: float
    """Exact Mann–Whitney test of final rewards, corrected for all pairs (Holm)."""
    p_episodes: float
    """The same for episodes until convergence; those that were not reached rank after all others."""
    improvement: ScoreInterval
    sooner: float
    """How likely a run of the first converges before one of the second; ties count half."""

    @property
    def is_decided(self) -> bool:
        return self.p < SIGNIFICANT

    def find_ahead(self, by_episodes: bool = False) -> AlgorithmSummary | None:
        """The one that is proved to be ahead; None where the test does not decide, or does not say for which."""
        p, share = (self.p_episodes, self.sooner) if by_episodes else (self.p, self.improvement.value)
        if p >= SIGNIFICANT or share == 0.5:
            return None
        return self.first if share > 0.5 else self.second


def compare_pairs(algorithms: Sequence[AlgorithmSummary]) -> list[SeedComparison]:
    pairs = list(combinations(algorithms, 2))
    finals = [_rank_p(a.scores[:, 0], b.scores[:, 0]) for a, b in pairs]
    waits = [_rank_p(_finite(a.waits), _finite(b.waits)) for a, b in pairs]
    corrected = zip(pairs, holm(finals), holm(waits), strict=True) if pairs else ()
    return [
        SeedComparison(
            a, b, float(p), float(p_waits), estimate_improvement(a.scores, b.scores), _compare_waits(a, b)
        )
        for (a, b), p, p_waits in corrected
    ]


def _finite(waits: Sequence[float]) -> Array:
    """Ranks are all that counts, so what was not reached gets a number beyond all others."""
    ranked: Array = np.nan_to_num(np.array(waits), posinf=1e12)
    return ranked


def _compare_waits(a: AlgorithmSummary, b: AlgorithmSummary) -> float:
    first, second = _finite(a.waits)[:, None], _finite(b.waits)[None, :]
    return float(np.mean((first < second) + 0.5 * (first == second)))


def _rank_p(a: Array, b: Array) -> float:
    effect = compare_unpaired(a, b)
    return 1.0 if effect is None else effect.p
