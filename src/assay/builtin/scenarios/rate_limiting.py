from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

from assay.builtin.scenarios.outcome import Borne, Recovery, fails_as_in_calm, finding, late
from assay.execute.load.fault import Fault, Traffic
from assay.execute.load.proxy import FaultProxy
from assay.execute.load.request import check_allowed, is_allowed
from assay.model.load import Arrivals, Load
from assay.model.stress import Band, Breach, ScenarioFinding, ScenarioJudgement, Stretch
from assay.plugin.scenario import Bench
from assay.units import count, counted, percent, significant

_MOST_LOST = 0.05
_STORM = 1.5
"""Times the requests that cannot be done without: more is a storm."""


@dataclass(frozen=True, slots=True)
class RateLimiting:
    """Half of its calls to the model are refused for now: does it wait as it is told to, and finish its work?"""

    name: ClassVar[str] = "rate_limiting"

    share: float = 0.5
    retry_after: float = 1.0
    seconds: float = 60.0
    most_per_second: float = 1.0
    """So few that an agent which stops altogether when it is told to wait keeps up: one in two calls passes, each other
    takes a second."""
    patience: float = 60.0
    """Seconds after the last request for the work to be finished; then nothing is refused any more."""

    @classmethod
    def quick(cls) -> RateLimiting:
        return cls(seconds=5.0, most_per_second=2.0, patience=10.0)

    def not_for(self, bench: Bench) -> str:
        if bench.subject.use is None:
            return "a URL is a server: the retries to judge are those of an agent that calls one"
        upstream = bench.subject.upstream()
        if upstream is None:
            return "nothing tells where its model is (for a program: OPENAI_BASE_URL or the like in its env)"
        if not is_allowed(upstream, bench.subject.options.allow_host):
            host = urlsplit(upstream).hostname
            return f"its model is at '{host}', which is not this machine. If it is yours to load: --allow-host {host}"
        return str(bench.subject.not_through_its_own_code)

    def run(self, bench: Bench) -> ScenarioFinding:
        subject = bench.subject
        upstream = subject.upstream()
        check_allowed(upstream, subject.options.allow_host)
        rate = min(bench.base, self.most_per_second)
        stages = ((self.seconds, rate, rate),)
        load = Load(Arrivals.CONSTANT, stages=stages, seconds=self.seconds)
        # A wait that was ordered is no fault of the agent's: a limit derived from the calm does not hold here.
        objectives = () if bench.is_derived else bench.objectives
        with subject.proxy_before(upstream) as proxy:
            proxy.impose(Fault.rate_limited(self.share, self.retry_after))
            lifting = _Lifting(proxy, self.seconds)
            prompts = subject.numbered(int(self.seconds * rate) + 1)
            asked = subject.through_its_own_code(prompts, subject.with_upstream_at(proxy.url), is_own=True)
            stretch = bench.put(load, asked=asked, during=lifting, objectives=objectives, grace=self.patience)
            traffic = proxy.traffic()
        done = stretch.punctual if objectives else stretch.completed
        return finding(
            self,
            bench,
            [stretch],
            Borne(float(stretch.offered), float(done), "requests"),
            self._unfinished(bench, stretch) or late(stretch, objectives),
            lasted=self.seconds,
            recovery=_recovery(traffic, lifting.lifted, stretch, self.retry_after),
            judgements=[
                *([obeyed(traffic)] if subject.can_be_told_apart else []),
                finished(stretch, fails_as_in_calm(bench, _lost(stretch), stretch.offered)),
                storm(traffic, stretch, self.share),
            ],
            bands=[Band(0.0, self.seconds, f"{percent(self.share)} of the calls refused (429)")],
        )

    def _unfinished(self, bench: Bench, stretch: Stretch) -> Breach | None:
        lost = _lost(stretch)
        if lost <= _MOST_LOST * stretch.offered or fails_as_in_calm(bench, lost, stretch.offered):
            return None
        why = f"{percent(lost / stretch.offered)} of the work was not finished"
        return Breach(0.0, float(stretch.offered), "requests", "errors", why)


def _lost(stretch: Stretch) -> int:
    return max(0, stretch.offered - stretch.completed)


class _Lifting:
    """Ends the fault once all requests have been put."""

    def __init__(self, proxy: FaultProxy, at: float) -> None:
        self._proxy, self._at = proxy, at
        self.lifted: float | None = None

    def __call__(self, seconds: float) -> None:
        if self.lifted is None and seconds >= self._at:
            self.lifted = self._proxy.lift()


def _recovery(traffic: Traffic, lifted: float | None, stretch: Stretch, ordered: float) -> Recovery:
    """Beyond the wait that was ordered; where all was done when the fault ended, there is nothing to recover from."""
    if lifted is None:
        return Recovery()
    first = traffic.first_success_after(lifted)
    if first is not None:
        return Recovery(max(0.0, first - ordered))
    return Recovery() if stretch.completed == stretch.offered else Recovery(None, is_seen=False)


def obeyed(traffic: Traffic) -> ScenarioJudgement:
    refused = sum(passage.retry_after is not None for passage in traffic.passages)
    early = traffic.early_retries
    if not refused:
        return ScenarioJudgement("obeys_retry_after", "Nothing was refused, so there was nothing to obey")
    told = f"{count(early)} of {count(refused)} refused calls came again before Retry-After was over"
    return ScenarioJudgement(
        "obeys_retry_after", told, early / refused, is_fine=early == 0, is_criterion=True
    )


def finished(stretch: Stretch, is_as_in_calm: bool = False) -> ScenarioJudgement:
    told = f"{count(stretch.completed)} of {counted(stretch.offered, 'request')} finished in the end"
    share = stretch.completed / stretch.offered if stretch.offered else 0.0
    told += "; no more failed than at the base rate" if is_as_in_calm else ""
    return ScenarioJudgement(
        "all_finished", told, share, is_fine=stretch.completed == stretch.offered or is_as_in_calm
    )


def storm(traffic: Traffic, stretch: Stretch, share: float) -> ScenarioJudgement:
    """Where a share p is refused at random, each request needs 1 / (1 − p) calls on average, and of a few requests by chance
    more: three standard deviations of that are no storm."""
    asked = max(1, stretch.offered)
    sent = traffic.sent_per_needed(asked)
    needed = 1 / (1 - share) if share < 1 else float("inf")
    chance = 3 * math.sqrt(share / asked) / (1 - share) if share < 1 else 0.0
    told = (
        f"{significant(sent)} calls were made for each request; {significant(needed)} are needed on average"
    )
    is_fine = sent <= max(_STORM * needed, needed + chance)
    return ScenarioJudgement("storm", told, sent, is_fine=is_fine, is_criterion=True)
