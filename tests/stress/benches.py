"""Benches for scenarios: one that answers by rule, and a real one in front of a server or an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.load.results import result, times

from assay.load.build import LoadOptions
from assay.load.stress.base_rate import derive_objective
from assay.load.stress.bench import StressBench
from assay.load.stress.subject import StressSubject
from assay.model import AgentUse
from assay.model.load import Distribution, Load, Moment, Objective, Quality
from assay.model.stress import Breach, CalmErrors, Sample, Stretch


def moment(
    begin: float, latency: float | None = 0.1, completed: int = 10, failed: int = 0, seconds: float = 1.0
) -> Moment:
    sent = completed + failed
    return Moment(begin, seconds, sent, completed, failed, 0.0, 1.0, latency, latency, latency, latency)


def stretch(
    load: Load,
    *,
    completed: int = 100,
    errors: dict[str, int] | None = None,
    breach: Breach | None = None,
    good: int | None = None,
    offered: int | None = None,
    latencies: Sequence[float] = (),
    fairness: float | None = None,
    **changes: Any,
) -> Stretch:
    failed = errors or {}
    sent = completed + sum(failed.values())
    found = result(requests_sent=sent, requests_completed=completed, errors=failed, **changes)
    return Stretch(
        load,
        found,
        sent if offered is None else offered,
        completed if good is None else good,
        breach,
        tuple(latencies),
        fairness,
    )


class RuleBench:
    """Each load is answered by a rule; everything that was put is remembered."""

    def __init__(self, rule: Callable[[Load, Sequence[str]], Stretch], base: float = 10.0) -> None:
        self._rule = rule
        self.base = base
        self.calm: Distribution = times(0.1)
        self.calm_quality: Quality | None = None
        self.objectives: tuple[Objective, ...] = (derive_objective(self.calm),)
        self.is_derived = True
        self.sustain = 0.5
        self.subject: Any = StressSubject(LoadOptions("http://127.0.0.1:9/v1"))
        self.put_so_far: list[Load] = []
        self.calm_errors = CalmErrors()
        self.sampled: tuple[Sample, ...] = ()

    def put(self, load: Load, *, prompts: Sequence[str] = (), **_: Any) -> Stretch:
        self.put_so_far.append(load)
        return self._rule(load, prompts)

    def samples(self) -> Sequence[Sample]:
        return self.sampled


def real_bench(
    url: str, base: float = 20.0, use: AgentUse | None = None, limit: float = 30.0, **given: Any
) -> StressBench:
    """With an objective that a slow machine keeps, too."""
    options = LoadOptions(use.name if use else url, model=None if use else "m", timeout="30s", **given)
    objective = Objective(f"latency_p95<{limit}s", "latency", "p95", True, limit)
    return StressBench(StressSubject(options, use), base, times(0.1), (objective,), False, 0.5)
