"""The bench that a stress scenario works with: it applies loads to the agent and measures the outcome of each.

A scenario calls `StressBench.put` for each stretch of pressure and gets a `Stretch`: the figures of the load, where the agent
first broke its objectives, and how many answers were right and in time. `_LoadWatch` looks on while the load runs.
"""

from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any

from assay.load.answer_text import Reservoir
from assay.load.build import PreparedLoad, bounds_of
from assay.load.engine import SERVER_WORKER
from assay.load.failures import failures_in
from assay.load.quality import Checker
from assay.load.stress.breaking_point import Calm, breach_of, compute_due_between, load_at
from assay.load.stress.resources import Gauge
from assay.load.stress.subject import StressSubject
from assay.load.tally import NOT_COUNTED, Bounds, LoadProgress, Tally, in_time
from assay.load.worker_report import OK, Chunk
from assay.model.bottleneck import MOST_ERRORS
from assay.model.error_details import gather
from assay.model.load import Distribution, Load, Objective, Quality
from assay.model.stress import Breach, CalmErrors, Sample, Scored, Stretch
from assay.spec.load_settings import seconds_of
from assay.stats.line import fairness
from assay.stats.resilience import right_among

_SHORTEST_GRACE = 0.5
_LONGEST_GRACE = 30.0
_CALM_TIMES = 5.0
_MOST_KEPT = 100_000
_SILENCE = 0.15
_MOST_SLICES = 8192
"""Maximum slices of a quarter of a second: half an hour, and then some."""
_ABOUT_TOKENS = frozenset({"ttft", "tpot", "itl", "goodput"})
_FEWEST_TURNS = 5
"""Answers a place should have had on average, before who got more than others means anything."""


class Interrupted(Exception):
    """Raised when the user interrupts the test; the current scenario is incomplete."""


Look = Callable[[LoadProgress, Load], None]


@dataclass(slots=True)
class StressBench:
    """What a scenario is given: the agent, what is known of it at the base rate, and `put` to load it.

    `base` is the comfortable rate, and `calm`, `calm_errors`, `calm_quality` and `calm_unmet` are what was measured there: what is
    no worse under pressure is no doing of the pressure. Objectives are the user's, or one derived from `calm` (`is_derived`),
    and have to be broken for `sustain` seconds to count as broken.
    """

    subject: StressSubject
    base: float
    calm: Distribution
    objectives: tuple[Objective, ...]
    is_derived: bool
    sustain: float
    is_stopped: Callable[[], bool] = lambda: False
    look: Look = lambda progress, load: None
    gauge: Gauge | None = None
    is_simulated: bool = False
    """Whether the server behind it says that its figures are made up; agents do not pass that on."""
    calm_quality: Quality | None = None
    """Quality of its answers at the base rate, where a suite judges them."""
    calm_errors: CalmErrors = field(default_factory=CalmErrors)
    calm_unmet: frozenset[str] = frozenset()
    """Objectives, by their text, that it does not keep at the base rate either."""
    _usual_load: PreparedLoad | None = field(default=None, repr=False)

    def put(
        self,
        load: Load,
        *,
        prompts: Sequence[str] = (),
        asked: PreparedLoad | None = None,
        during: Callable[[float], None] = lambda seconds: None,
        objectives: Sequence[Objective] | None = None,
        grace: float | None = None,
        limit: float | None = None,
    ) -> Stretch:
        """Run one load and report its outcome; Interrupted where the user has stopped the test.

        `asked` takes the place of the agent's usual load, or `prompts` that of its prompts. `during` is called about ten
        times a second with the seconds so far. `limit` is the timeout of a request and `grace` how long answers are waited
        for after the last request was due, both in seconds.
        """
        held = tuple(self.objectives if objectives is None else objectives)
        # The usual load is built once: to read and encode a data set for every step would take longer than short steps.
        if asked is None and not prompts:
            asked = self._usual_load = self._usual_load or self.subject.loaded()
        carried = (asked or self.subject.loaded(prompts)).at(self._adapt_load(load, held, limit))
        answers = None if carried.check is None else _Answers(bounds_of(held))
        watch = _LoadWatch(
            carried.load, during, self.look, self._find_end(load, grace), self.is_stopped, answers
        )
        result = replace(carried, check=None).measure(watch.see, watch.is_over, watch.take)
        if self.is_stopped():
            raise Interrupted
        tally = watch.tally or Tally()
        # Where code of the agent runs in our workers, it may be what holds them up.
        is_ours_alone = carried.module == SERVER_WORKER or self.subject.is_command
        pauses = watch.pauses(self.sustain) if is_ours_alone else ()
        calm = Calm(self.calm, self.calm_errors, self.calm_unmet)
        breach = breach_of(watch.closely, carried.load, held, self.sustain, result, pauses, calm)
        breach = breach or watch.find_starved_callers()
        punctual = sum(slice_.good for slice_ in tally.slices.values())
        offered = result.requests_sent
        # Scheduled requests that could not be sent any more count as offered: leaving them out would flatter the agent.
        if carried.load.is_open:
            offered = max(round(compute_due_between(carried.load, 0.0, carried.load.seconds)), offered)
        if breach is not None and not breach.is_theirs:
            # What waited for us is not held against the agent: only what was sent counts, from when it was sent.
            punctual, offered = watch.good_from_send, max(1, watch.ended)
        scored = answers.score(carried.check) if answers and carried.check else ()
        return Stretch(
            carried.load,
            result,
            offered,
            right_in_time(punctual, scored),
            breach,
            tuple(watch.latencies),
            watch.fairness(),
            tuple(sorted(watch.ends)),
            punctual,
            scored,
            sum(end - begin for begin, end in pauses),
            gather(watch.failures),
            self._samples_during(watch),
        )

    def _adapt_load(self, load: Load, objectives: tuple[Objective, ...], limit: float | None) -> Load:
        """The load that a scenario asks for, within what the agent can be asked and with the options of the test."""
        options = self.subject.options
        return replace(
            within(load, self.subject),
            objectives=objectives,
            workers=options.workers,
            seed=options.seed,
            seconds_each=limit or (seconds_of(options.timeout, "--timeout") if options.timeout else 60.0),
        )

    def _samples_during(self, watch: _LoadWatch) -> tuple[Sample, ...]:
        """While the load lasted: not while its workers started, whose memory only grows."""
        if self.gauge is None or watch.began is None:
            return ()
        return tuple(sample for sample in self.gauge.since(watch.began) if sample.at <= watch.seconds)

    def _find_end(self, load: Load, grace: float | None) -> float:
        """Seconds after the start at which the load is ended, whatever is still under way."""
        if load.count is not None and not load.is_open:
            return float("inf")
        if grace is not None:
            return load.seconds + grace
        # What would still be in time is waited for, within reason: what is given up then was late.
        limits = [
            objective.limit
            for objective in self.objectives
            if objective.metric == "latency" and objective.is_upper
        ]
        in_time = min(max(limits, default=0.0), _LONGEST_GRACE)
        return load.seconds + max(_SHORTEST_GRACE, _CALM_TIMES * self.calm.p95, in_time)

    def samples(self) -> Sequence[Sample]:
        found = self.gauge.summarize() if self.gauge else None
        return found.samples if found else ()


def within(load: Load, subject: StressSubject) -> Load:
    """Limit the concurrency of the load to what the agent can be asked at a time."""
    most = subject.most_at_once
    return load if most is None else replace(load, concurrency=min(load.concurrency or most, most))


def right_in_time(in_time: int, scored: Sequence[Scored]) -> int:
    """Estimate how many of the answers in time are right, from the share of those that were judged."""
    judged = [score for score in scored if score.is_in_time and score.value is not None]
    return round(right_among(in_time, sum(score.is_right for score in judged), len(judged)))


class _Answers:
    """Answers that are scored when the load is over, each with whether it came in time."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._kept: Reservoir[tuple[int, str, float, bool]] = Reservoir()

    def take(self, chunk: Chunk) -> None:
        answers = chunk.facts["answers"]
        if not isinstance(answers, list) or not answers:
            return
        numbers, dues = chunk.columns["number"], chunk.columns["due"]
        rows = zip(numbers, dues, in_time(chunk, self._bounds), strict=True)
        known = {int(number): (due, bool(is_in_time)) for number, due, is_in_time in rows}
        for number, text in answers:
            self._kept.add((int(number), str(text), *known[int(number)]), len(text))

    def score(self, check: Checker) -> tuple[Scored, ...]:
        values = check.values([(number, text) for number, text, _, _ in self._kept])
        return tuple(
            Scored(check.case_of(number), due, is_in_time, value, check.is_right(number, value))
            for (number, _, due, is_in_time), value in zip(self._kept, values, strict=True)
        )


class _LoadWatch:
    """Looks on while a load runs: collects what a `Stretch` needs beside the figures, and ends the load after its grace period.

    The engine calls `see` and `take` for every chunk and `is_over` ten times a second, all in one thread.
    """

    def __init__(
        self,
        load: Load,
        during: Callable[[float], None],
        look: Look,
        until: float,
        is_stopped: Callable[[], bool],
        answers: _Answers | None = None,
    ) -> None:
        self._load, self._during, self._look = load, during, look
        self._find_end, self._is_stopped, self._answers = until, is_stopped, answers
        self.tally: Tally | None = None
        self.closely = Tally(bounds_of(load.objectives), _MOST_SLICES)
        """In slices so short that a breach which lasts can be told from a hiccup, however long the load."""
        metrics = {objective.metric for objective in load.objectives}
        self._needs_gaps, self._needs_tokens = "itl" in metrics, bool(metrics & _ABOUT_TOKENS)
        self.latencies: list[float] = []
        self.ends: list[float] = []
        self._turns: Counter[int] = Counter()
        self._heard_at: dict[int, float] = {}
        self._silences: list[tuple[float, float]] = []
        self._now = 0.0
        self.failures: list[list[Any]] = []
        self.good_from_send = self.ended = 0
        self.began: float | None = None
        """On the monotonic clock."""

    @property
    def seconds(self) -> float:
        return self._now

    def see(self, progress: LoadProgress, tally: Tally) -> None:
        self.tally, self._now = tally, progress.seconds
        if self.began is None:
            self.began = time.monotonic() - progress.seconds
        self._during(progress.seconds)
        self._look(progress, self._load)

    def is_over(self) -> bool:
        return self._now > self._find_end or self._is_stopped()

    def take(self, chunk: Chunk) -> None:
        """One worker's chunk, before it is forgotten: latencies, ends, turns of each caller, and silences of the worker."""
        if self._answers is not None:
            self._answers.take(chunk)
        self.failures += failures_in(chunk.facts)
        sent = Chunk({**chunk.columns, "due": chunk.columns["sent"]}, chunk.gaps, chunk.facts)
        self.good_from_send += int(in_time(sent, self.closely.bounds).sum())
        self.ended += len(chunk)
        worker, at = int(str(chunk.facts["worker"])), float(str(chunk.facts["at"]))
        self.closely.add(worker, self._drop_unneeded_times(chunk))
        before = self._heard_at.get(worker, 0.0)
        self._heard_at[worker] = at
        # Workers report ten times a second. One that was late was kept from working, and so were its requests.
        if at - before > _SILENCE:
            self._silences.append((before, at))
        rows = zip(*(chunk.columns[name] for name in ("number", "due", "end", "kind")), strict=True)
        keeps = self._load.count is not None
        places = None if self._load.is_open else self._load.concurrency
        for number, due, end, kind in rows:
            if kind != OK:
                continue
            if keeps and len(self.latencies) < _MOST_KEPT:
                self.latencies.append(end - due)
            if len(self.ends) < _MOST_KEPT:
                self.ends.append(end)
            if places:
                self._turns[int(number) % places] += 1

    def pauses(self, sustain: float) -> list[tuple[float, float]]:
        """When a worker, which tells ten times a second, was not heard for a good part of what a breach has to last."""
        return [(begin, end) for begin, end in self._silences if end - begin > sustain / 3]

    def _drop_unneeded_times(self, chunk: Chunk) -> Chunk:
        """Drop the times that no objective is about: they would be kept for every quarter of a second."""
        unknown = array("d", [nan]) * len(chunk)
        dropped = {"sent": unknown, "lag": unknown}
        if not self._needs_tokens:
            dropped["first"] = unknown
        gaps, none = (chunk.gaps, chunk.zero_gaps) if self._needs_gaps else (array("d"), 0)
        return Chunk({**chunk.columns, **dropped}, gaps, {**chunk.facts, "answers": []}, none)

    def find_starved_callers(self) -> Breach | None:
        """Callers of a closed loop that got no answer at all while others got several, because their requests failed: one that
        fails and waits long for the next try is hardly seen among the requests."""
        places = self._load.concurrency or 1
        errors = {kind: n for kind, n in self.closely.errors.items() if kind not in NOT_COUNTED}
        starved = sum(not self._turns[place] for place in range(places))
        if self._load.is_open or not errors or starved <= MOST_ERRORS * places:
            return None
        if self._turns.total() < _FEWEST_TURNS * (places - starved) or starved == places:
            return None
        kind = max(errors, key=lambda error: errors[error])
        why = f"{starved} of {places} virtual users got no answer; their requests failed ({kind})"
        return Breach(0.0, *load_at(self._load, 0.0), "errors", why)

    def fairness(self) -> float | None:
        places = self._load.concurrency or 1
        if self._load.is_open or places < 2 or self._turns.total() < _FEWEST_TURNS * places:
            return None
        return fairness([self._turns[place] for place in range(places)])
