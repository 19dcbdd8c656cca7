"""The scenario in which the model that an agent calls limits its rate.

A proxy between the agent and its model answers a random share of the calls with 429 and a Retry-After header. What is judged
is the agent's own retrying: whether it waits as long as it is told, whether all of its work gets done in the end, and
whether it makes more calls than the refusals explain. Once all requests have been made the proxy stops refusing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

from assay.load.fault import Fault, Traffic
from assay.load.proxy import FaultProxy
from assay.load.request import check_allowed, is_allowed
from assay.model.load import Arrivals, Load
from assay.model.stress import Band, Breach, ScenarioFinding, ScenarioJudgement, Stretch
from assay.plugin import (
    Bench,
    HandledLoad,
    Recovery,
    build_finding,
    fails_as_in_calm,
    find_late_breach,
)
from assay.units import count, format_count, percent, significant

_MOST_LOST = 0.05
_STORM = 1.5
"""Times the requests that cannot be done without: more is a storm."""


@dataclass(frozen=True, slots=True)
class RateLimiting:
    """Refuses half of the agent's calls to its model, and watches what the agent does.

    It should wait as long as Retry-After says, send the request again, and finish its work, without
    sending more requests than before (a retry storm).
    """

    name: ClassVar[str] = "rate_limiting"
    order: ClassVar[int] = 7

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
            return "the target is a URL; retries can only be judged for an agent that calls a server"
        upstream = bench.subject.upstream()
        if upstream is None:
            return "its model's URL is unknown (for a command agent, set OPENAI_BASE_URL or the like in env)"
        if not is_allowed(upstream, bench.subject.options.allow_host):
            host = urlsplit(upstream).hostname
            return f"its model is at '{host}', which is another machine. If you are authorized to test it: --allow-host {host}"
        return str(bench.subject.not_through_its_own_code)

    def run(self, bench: Bench) -> ScenarioFinding:
        """Refuse a part of the agent's calls for a while, and see whether all of its work is done in the
        end.

        The refusals begin before the agent is started, so that what it does when it starts is refused as
        well. A limit on latency that was derived at the base rate does not apply: the agent was told to
        wait.
        """
        subject = bench.subject
        upstream = subject.upstream()
        assert upstream is not None  # or `not_for` had refused it
        check_allowed(upstream, subject.options.allow_host)
        rate = min(bench.base, self.most_per_second)
        stages = ((self.seconds, rate, rate),)
        load = Load(Arrivals.CONSTANT, stages=stages, seconds=self.seconds)
        # A wait that was ordered is no fault of the agent's: a limit derived from the calm does not hold here.
        objectives = () if bench.is_derived else bench.objectives
        # The fault is there before the agent is: what it does when it starts is refused as well.
        with subject.proxy_before(upstream) as proxy:
            proxy.impose(Fault.rate_limited(self.share, self.retry_after))
            lifting = _Lifting(proxy, self.seconds)
            prompts = subject.number_prompts(int(self.seconds * rate) + 1)
            prepared = subject.through_its_own_code(prompts, subject.with_upstream_at(proxy.url), is_own=True)
            stretch = bench.put(
                load, asked=prepared, during=lifting, objectives=objectives, grace=self.patience
            )
            traffic = proxy.traffic()
        # With objectives of the user's own only what is in time counts as done; retries take theirs.
        handled = stretch.punctual if objectives else stretch.completed
        lost = max(0, stretch.offered - stretch.completed)
        is_as_in_calm = fails_as_in_calm(bench, lost, stretch.offered)
        breach = find_late_breach(stretch, objectives)
        if lost > _MOST_LOST * stretch.offered and not is_as_in_calm:
            why = f"{percent(lost / stretch.offered)} of the work was not finished"
            breach = Breach(0.0, float(stretch.offered), "requests", "errors", why)
        return build_finding(
            self,
            bench,
            [stretch],
            HandledLoad(float(stretch.offered), float(handled), "requests"),
            breach,
            lasted=self.seconds,
            recovery=_recovery(traffic, lifting.lifted, stretch, self.retry_after),
            judgements=[
                *([judge_retry_after(traffic)] if subject.can_be_told_apart else []),
                judge_completion(stretch, is_as_in_calm),
                storm(traffic, stretch, self.share),
            ],
            bands=[Band(0.0, self.seconds, f"{percent(self.share)} of the calls refused (429)")],
        )


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
    # A call that was told to wait just before the end may come back only when that wait is over, and is not late for it.
    first = traffic.first_success_after(lifted)
    if first is not None:
        return Recovery(max(0.0, first - ordered))
    return Recovery() if stretch.completed == stretch.offered else Recovery(None, is_seen=False)


def judge_retry_after(traffic: Traffic) -> ScenarioJudgement:
    """Whether every refused call came back no earlier than Retry-After allowed; the value is the share of early ones."""
    refused = sum(passage.retry_after is not None for passage in traffic.passages)
    early = traffic.early_retries
    if not refused:
        return ScenarioJudgement("obeys_retry_after", "No call was refused, so Retry-After was not tested")
    text = f"{count(early)} of {format_count(refused, 'refused call')} were retried before Retry-After had passed"
    return ScenarioJudgement(
        "obeys_retry_after", text, early / refused, is_fine=early == 0, is_criterion=True
    )


def judge_completion(stretch: Stretch, is_as_in_calm: bool = False) -> ScenarioJudgement:
    """Whether all work got done in the end, however long it took; failures that also occur at the base rate are excused."""
    text = f"{count(stretch.completed)} of {format_count(stretch.offered, 'request')} eventually completed"
    share = stretch.completed / stretch.offered if stretch.offered else 0.0
    text += "; no more failed than at the base rate" if is_as_in_calm else ""
    return ScenarioJudgement(
        "all_finished", text, share, is_fine=stretch.completed == stretch.offered or is_as_in_calm
    )


def storm(traffic: Traffic, stretch: Stretch, share: float) -> ScenarioJudgement:
    """Where a share p is refused at random, each request needs 1 / (1 − p) calls on average, and of a few requests by chance
    more: three standard deviations of that are no storm."""
    requests = max(1, stretch.offered)
    # The number of calls until one passes is geometric: its mean is 1 / (1 − p) and its variance p / (1 − p)².
    sent = traffic.compute_retry_amplification(requests)
    needed = 1 / (1 - share) if share < 1 else float("inf")
    chance = 3 * math.sqrt(share / requests) / (1 - share) if share < 1 else 0.0
    text = (
        f"{significant(sent)} calls were made for each request; {significant(needed)} are needed on average"
    )
    is_fine = sent <= max(_STORM * needed, needed + chance)
    return ScenarioJudgement("storm", text, sent, is_fine=is_fine, is_criterion=True)
