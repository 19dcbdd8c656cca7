"""The scenario in which something breaks on purpose.

A program is killed while it works. A server, or what an agent under test calls, is put behind a proxy that fails in five
ways, one after the other with calm between them: it refuses connections, answers 503, resets, stalls, and reads slowly. The
recovery time is that from the end of a fault to the first answer after it. What our own faults broke does not count against
a server, but an agent that calls one is expected to try again and to lose nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import psutil

from assay.load.build import bounds_of
from assay.load.fault import NOTHING, REFUSING, RESETTING, STALLING, Fault, FaultKind, Passage, Traffic
from assay.load.proxy import FaultProxy
from assay.load.request import check_allowed
from assay.load.stress.resources import find_agent_processes
from assay.load.tally import Bounds
from assay.model.load import Arrivals, Load
from assay.model.stress import Band, Breach, ScenarioFinding, ScenarioJudgement, Stretch
from assay.plugin import Bench, HandledLoad, Recovery, build_finding, fails_as_in_calm
from assay.units import count, format_count, seconds

_NAMES = {
    FaultKind.REFUSE: "refused connections",
    FaultKind.ANSWER: "503s",
    FaultKind.RESET: "resets",
    FaultKind.STALL: "stalls",
    FaultKind.SLOW: "slow reads",
}
_CALM_TIMES = 10.0
_SECONDS_TO_START = 5.0
_MOST_LOST = 0.05


@dataclass(frozen=True, slots=True)
class FailureRecovery:
    """Takes away what the agent needs, and measures how soon it answers again.

    A program is killed and has to be there again. What depends on a server loses it in five ways, one
    after the other, through a proxy in front of that server. The load runs on at a constant rate
    meanwhile, so that the first success after each fault is seen when it happens.
    """

    name: ClassVar[str] = "failure_recovery"
    order: ClassVar[int] = 8

    seconds: float = 10.0
    """Seconds of each fault, and of the calm after it."""
    rounds: int = 3
    most_per_second: float = 50.0
    bytes_per_second: float = 1000.0
    """Rate of each connection, while requests and answers are read slowly."""

    @classmethod
    def quick(cls) -> FailureRecovery:
        return cls(seconds=1.0, rounds=1)

    def not_for(self, bench: Bench) -> str:
        if bench.subject.is_command or bench.subject.is_server:
            return str(bench.subject.not_through_its_own_code)
        return "it has neither a process nor a server of its own that could fail"

    def run(self, bench: Bench) -> ScenarioFinding:
        return self._run_kills(bench) if bench.subject.is_command else self._cut_off(bench)

    def _compute_timeout(self, bench: Bench) -> float:
        """A request that was swallowed has to fail some day, or its loss would not be noticed; one that waits for a program to start has
        time for that."""
        start = _SECONDS_TO_START if bench.subject.is_command else 0.0
        return max(self.seconds, _CALM_TIMES * bench.calm.p95, start)

    def _load(self, bench: Bench, length: float) -> Load:
        """Build an open loop with room for all the requests that hang until they time out.

        The rate has a limit: thousands of requests that hang say no more than dozens.
        """
        # At a high rate seconds of a stall would leave thousands of requests hanging, which tell no more than dozens.
        rate = min(bench.base, self.most_per_second)
        at_once = max(64, int(2 * rate * self._compute_timeout(bench)))
        return Load(Arrivals.CONSTANT, concurrency=at_once, stages=((length, rate, rate),), seconds=length)

    def _run_kills(self, bench: Bench) -> ScenarioFinding:
        """Kill the program `rounds` times under a constant rate, with as much calm before and after each kill."""
        # Calm, kill, calm, kill …, calm: each kill is followed by as long a time to come back as the one before.
        times = [self.seconds * (2 * number + 1) for number in range(self.rounds)]
        lasted = self.seconds * (2 * self.rounds + 1)
        killing = _Killing(times)
        # An objective that was derived from calm would be broken by the kill itself; the user's own are held.
        objectives = () if bench.is_derived else bench.objectives
        load = self._load(bench, lasted)
        timeout = self._compute_timeout(bench)
        stretch = bench.put(load, during=killing, objectives=objectives, grace=timeout, limit=timeout)
        # A kill happens when a process is there, so its real moment is known only afterwards.
        recovery_times = [next((end - at for end in stretch.ends if end > at), None) for at in killing.done]
        judgements = [_first_success("the agent was killed", recovery_times), lost(stretch, bench)]
        bands = [
            Band(at, at + max(0.05, recovery_times[place] or 0.0), "killed")
            for place, at in enumerate(killing.done)
        ]
        return self._finding(
            bench, [stretch], recovery_times, lasted, judgements, "kills", stretch.offered, bands=bands
        )

    def _cut_off(self, bench: Bench) -> ScenarioFinding:
        """Put a proxy before the server and impose the faults of the schedule on one load at a constant
        rate.

        Requests carry marks, so that the proxy knows a request that is sent again from another with the
        same text. Failures that the faults themselves cause are not counted against a bare server, which
        can do nothing about them; an agent in front of a server is expected to try again.
        """
        subject = bench.subject
        upstream = subject.target.url
        check_allowed(upstream, subject.options.allow_host)
        timetable = self.timetable()
        lasted = timetable[-1][0] + self.seconds
        objectives = () if bench.is_derived else bench.objectives
        load = self._load(bench, lasted)
        # Each request is marked, so that the proxy knows one that is sent again from another with the same text.
        prompts = subject.number_prompts(int(lasted * (load.offered or 1)) + 1)
        with subject.proxy_before(upstream) as proxy:
            if subject.use is None:
                prepared = subject.loaded(prompts if subject.takes_input else (), via=proxy.url, is_own=True)
            else:
                use = subject.with_upstream_at(proxy.url)
                prepared = subject.through_its_own_code(prompts, use, is_own=True)
            switching = _Switching(proxy, timetable)
            timeout = self._compute_timeout(bench)
            stretch = bench.put(
                load, asked=prepared, during=switching, objectives=objectives, grace=timeout, limit=timeout
            )
            traffic = proxy.traffic()
        recovery_times = measure_recoveries(traffic)
        # A bare server can do nothing about our faults. An agent in front of one can: it is expected to try again.
        offered, warnings = stretch.offered, []
        if subject.use is None:
            injected = count_injected_failures(traffic, stretch, bounds_of(objectives))
            offered -= injected
            warnings = [
                f"Not counted against the server: {format_count(injected, 'request')} that our own faults ended or delayed."
            ]
        imposed = [change.fault.kind for change in traffic.changes if change.fault != NOTHING]
        known = [
            (time_taken, kind)
            for time_taken, kind in zip(recovery_times, imposed, strict=False)
            if time_taken is not None
        ]
        worst = f", longest after {_NAMES.get(max(known)[1], 'the last')}" if known else ""
        judgements = [_first_success("the fault had ended", recovery_times, worst)]
        if subject.use is not None:
            judgements += [
                lost(stretch, bench),
                *([judge_duplicates(traffic)] if subject.can_be_told_apart else []),
            ]
        bands = [
            Band(at, end, _NAMES[fault.kind])
            for (at, fault), (end, _) in zip(timetable[::2], timetable[1::2], strict=True)
        ]
        return self._finding(
            bench, [stretch], recovery_times, lasted, judgements, "faults", offered, warnings, bands
        )

    def timetable(self) -> list[tuple[float, Fault]]:
        """When each fault begins and when it ends; between them, and at either end, there is calm."""
        faults = (REFUSING, Fault.failing(), RESETTING, STALLING, Fault.slow(self.bytes_per_second))
        return [
            (self.seconds * (2 * number + 1 + end), NOTHING if end else fault)
            for number, fault in enumerate(faults * self.rounds)
            for end in (0, 1)
        ]

    def _finding(
        self,
        bench: Bench,
        stretches: Sequence[Stretch],
        recovery_times: Sequence[float | None],
        lasted: float,
        judgements: Sequence[ScenarioJudgement],
        unit: str,
        offered: int,
        warnings: Sequence[str] = (),
        bands: Sequence[Band] = (),
    ) -> ScenarioFinding:
        """The finding from the recovery times: each fault that was followed by an answer counts as sustained load."""
        back = [seconds_down for seconds_down in recovery_times if seconds_down is not None]
        breach = None
        if len(back) < len(recovery_times):
            why = f"after {count(len(recovery_times) - len(back))} of {count(len(recovery_times))} {unit} the agent answered nothing more"
            breach = Breach(self.seconds, float(len(back) + 1), unit, "errors", why)
        # Where it did not come back after every fault, the time until it did is unknown and at least the whole scenario.
        worst = max(back, default=None) if len(back) == len(recovery_times) else lasted
        recovery = Recovery(
            worst, is_seen=len(back) == len(recovery_times), is_dead=not back and bool(recovery_times)
        )
        found = build_finding(
            self,
            bench,
            stretches,
            HandledLoad(float(len(recovery_times)), float(len(back)), unit),
            breach,
            lasted=lasted,
            recovery=recovery,
            judgements=judgements,
            warnings=warnings,
            bands=bands,
        )
        return replace(found, offered=offered)


class _Switching:
    """Imposes each fault when its time has come; called about ten times a second, so a fault begins up to 0.1 s late.

    The proxy notes when each really began, and recovery times count from there.
    """

    def __init__(self, proxy: FaultProxy, timetable: Sequence[tuple[float, Fault]]) -> None:
        self._proxy, self._left = proxy, list(timetable)

    def __call__(self, seconds: float) -> None:
        while self._left and seconds >= self._left[0][0]:
            self._proxy.impose(self._left.pop(0)[1])


class _Killing:
    """Kills every process of the agent as soon as there is one after each of the times."""

    def __init__(self, times: Sequence[float]) -> None:
        self._left = list(times)
        self._begun: float | None = None
        self.done: list[float] = []

    def __call__(self, seconds: float) -> None:
        # Between the seconds that we are told and now the workers' reports were under way: the monotonic clock has no such delay.
        now = time.monotonic()
        if self._begun is None:
            self._begun = now - seconds
        if not self._left or seconds < self._left[0]:
            return
        processes = find_agent_processes()
        for process in processes:
            # SIGKILL: a program that can clean up has not failed.
            with contextlib.suppress(psutil.Error):
                process.kill()
        if processes:
            self._left.pop(0)
            self.done.append(time.monotonic() - self._begun)


def measure_recoveries(traffic: Traffic) -> list[float | None]:
    """Return, for each fault, the seconds from its end to the first success.

    None where the next fault came before any success.
    """
    recoveries: list[float | None] = []
    for change in traffic.changes:
        if change.fault != NOTHING:
            continue
        # An answer that came only after the next fault had begun may have been sent before it: it shows no recovery.
        later = [other.at for other in traffic.changes if other.at > change.at]
        recovery_seconds = traffic.first_success_after(change.at)
        recoveries.append(
            None
            if recovery_seconds is None or (later and change.at + recovery_seconds > later[0])
            else recovery_seconds
        )
    return recoveries


def _first_success(since: str, recovery_times: Sequence[float | None], worst: str = "") -> ScenarioJudgement:
    """The longest time to the first answer after a fault; not fine where it did not come back after each of them."""
    known = [seconds_down for seconds_down in recovery_times if seconds_down is not None]
    if not known:
        return ScenarioJudgement("first_success", f"The agent answered nothing after {since}", is_fine=False)
    text = f"The first answer came at most {seconds(max(known))} after {since} ({format_count(len(recovery_times), 'time')}){worst}"
    return ScenarioJudgement(
        "first_success", text, max(known), unit="s", is_fine=len(known) == len(recovery_times)
    )


def lost(stretch: Stretch, bench: Bench | None = None) -> ScenarioJudgement:
    """How many requests were never answered; a twentieth, or as many as fail at the base rate, is fine."""
    gone = stretch.offered - stretch.completed
    kinds = ", ".join(f"{kind} {count(n)}" for kind, n in stretch.errors.items())
    text = f"{count(gone)} of {format_count(stretch.offered, 'request')} lost" + (
        f" ({kinds})" if kinds else ""
    )
    share = gone / stretch.offered if stretch.offered else 0.0
    is_fine = share <= _MOST_LOST or (bench is not None and fails_as_in_calm(bench, gone, stretch.offered))
    return ScenarioJudgement("lost", text, float(gone), is_fine=is_fine)


def judge_duplicates(traffic: Traffic) -> ScenarioJudgement:
    """Whether a request was sent again although its first try had succeeded: done twice, an order is two orders."""
    times = traffic.doubled
    return ScenarioJudgement(
        "doubled",
        f"{format_count(times, 'request')} reached the server more than once",
        float(times),
        is_fine=not times,
        is_criterion=True,
    )


def count_injected_failures(traffic: Traffic, stretch: Stretch, bounds: Bounds) -> int:
    """Requests that did not end well by our own doing: those a fault was chosen for, that found no server, were read too slowly
    to be answered in time, or were cut off when we left."""
    # No more than failed at all: a request may be counted by the proxy and by us, and one that we disturbed may have succeeded.
    slow = traffic.while_imposed(FaultKind.SLOW)
    injected = sum(_is_ours(passage, slow, bounds) for passage in traffic.passages)
    injected += traffic.unread + stretch.errors.get("refused", 0)
    return min(injected, max(0, stretch.offered - stretch.punctual))


def _is_ours(passage: Passage, slow: Sequence[tuple[float, float]], bounds: Bounds) -> bool:
    """Whether a request that went through the proxy may have failed by our doing; `slow` are the times of slow reading."""
    if passage.ended is None or passage.fault not in (FaultKind.NONE, FaultKind.SLOW):
        return True
    if not any(passage.arrived < end and passage.ended > begin for begin, end in slow):
        return False
    # How long the request took to come is not known here: where there is an objective, it may be broken by that alone.
    return not passage.is_success or bounds != Bounds()
