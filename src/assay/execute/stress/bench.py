"""What a scenario is handed: it puts loads on the agent and says of each what came of it."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import nan

from assay.execute.load.asking import Prepared, bounds_of
from assay.execute.load.engine import SERVER_WORKER
from assay.execute.load.kept import Kept
from assay.execute.load.quality import Checker
from assay.execute.load.record import OK, Chunk
from assay.execute.load.tally import Bounds, Pulse, Tally, in_time
from assay.execute.stress.breaking import breach_of, expected_between
from assay.execute.stress.resources import Gauge
from assay.execute.stress.subject import Subject
from assay.model.load import Distribution, Load, Objective, Quality
from assay.model.stress import Sample, Scored, Stretch
from assay.stats.line import fairness
from assay.stats.resilience import right_among

_SHORTEST_GRACE = 0.5
_CALM_TIMES = 3.0
_MOST_KEPT = 100_000
_SILENCE = 0.15
_MOST_SLICES = 8192
"""Of a quarter of a second: half an hour, and then some."""
_ABOUT_TOKENS = frozenset({"ttft", "tpot", "itl", "goodput"})
_FEWEST_TURNS = 5
"""Answers a place should have had on average, before who got more than others means anything."""


class Interrupted(Exception):
    """Whoever asked for the test has had enough: what this scenario has until now is not whole."""


Look = Callable[[Pulse, Load], None]


@dataclass(slots=True)
class StressBench:
    subject: Subject
    base: float
    calm: Distribution
    objectives: tuple[Objective, ...]
    is_derived: bool
    sustain: float
    is_stopped: Callable[[], bool] = lambda: False
    look: Look = lambda pulse, load: None
    gauge: Gauge | None = None
    is_simulated: bool = False
    """Whether the server behind it says that its figures are made up; agents do not pass that on."""
    calm_quality: Quality | None = None
    """Of its answers in calm, where there is a suite to tell."""
    _held: Prepared | None = field(default=None, repr=False)

    def put(
        self,
        load: Load,
        *,
        prompts: Sequence[str] = (),
        asked: Prepared | None = None,
        during: Callable[[float], None] = lambda seconds: None,
        objectives: Sequence[Objective] | None = None,
        grace: float | None = None,
        limit: float | None = None,
    ) -> Stretch:
        held = tuple(self.objectives if objectives is None else objectives)
        options = self.subject.options
        meant = replace(
            within(load, self.subject),
            objectives=held,
            workers=options.workers,
            seed=options.seed,
            seconds_each=limit or self._limit(),
        )
        carried = (asked or self._prepared(prompts)).at(meant)
        answers = None if carried.check is None else _Answers(bounds_of(held))
        watch = _Watch(carried.load, during, self.look, self._until(load, grace), self.is_stopped, answers)
        # Answers are judged below, each with whether it came in time.
        result = replace(carried, check=None).measured(watch.see, watch.is_over, watch.take)
        if self.is_stopped():
            raise Interrupted
        tally = watch.tally or Tally()
        pauses = watch.pauses(self.sustain) if self._is_ours_alone(carried) else ()
        breach = breach_of(watch.closely, carried.load, held, self.sustain, result, pauses)
        punctual = sum(slice_.good for slice_ in tally.slices.values())
        scored = answers.scored(carried.check) if answers and carried.check else ()
        return Stretch(
            carried.load,
            result,
            _offered(carried.load, result.requests_sent),
            right_in_time(punctual, scored),
            breach,
            tuple(watch.latencies),
            watch.fairness(),
            tuple(sorted(watch.ends)),
            punctual,
            scored,
            sum(end - begin for begin, end in pauses),
        )

    def _is_ours_alone(self, carried: Prepared) -> bool:
        """Whether no code of the agent's runs in our workers: where it does, it may be what holds them up."""
        return carried.module == SERVER_WORKER or self.subject.is_command

    def _prepared(self, prompts: Sequence[str]) -> Prepared:
        if prompts:
            return self.subject.loaded(prompts)
        if self._held is None:
            self._held = self.subject.loaded()
        return self._held

    def _limit(self) -> float:
        from assay.spec.loading import seconds_of

        given = self.subject.options.timeout
        return seconds_of(given, "--timeout") if given else 60.0

    def _until(self, load: Load, grace: float | None) -> float:
        if load.count is not None and not load.is_open:
            return float("inf")
        patience = max(_SHORTEST_GRACE, _CALM_TIMES * self.calm.p95) if grace is None else grace
        return load.seconds + patience

    def samples(self) -> Sequence[Sample]:
        found = self.gauge.taken() if self.gauge else None
        return found.samples if found else ()


def within(load: Load, subject: Subject) -> Load:
    """With no more at a time than the agent can be asked."""
    most = subject.most_at_once
    return load if most is None else replace(load, concurrency=min(load.concurrency or most, most))


def _offered(load: Load, sent: int) -> int:
    if not load.is_open:
        return sent
    due = round(expected_between(load, 0.0, load.seconds))
    return max(due, sent)


def right_in_time(in_time: int, scored: Sequence[Scored]) -> int:
    """Of the answers in time those that are right, by the share of those that were judged."""
    judged = [one for one in scored if one.is_in_time and one.value is not None]
    return round(right_among(in_time, sum(one.is_right for one in judged), len(judged)))


class _Answers:
    """To be judged when the load is over."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._kept: Kept[tuple[int, str, float, bool]] = Kept()

    def take(self, chunk: Chunk) -> None:
        answers = chunk.facts["answers"]
        if not isinstance(answers, list) or not answers:
            return
        numbers, dues = chunk.columns["number"], chunk.columns["due"]
        rows = zip(numbers, dues, in_time(chunk, self._bounds), strict=True)
        known = {int(number): (due, bool(is_in_time)) for number, due, is_in_time in rows}
        for number, text in answers:
            self._kept.add((int(number), str(text), *known[int(number)]), len(text))

    def scored(self, check: Checker) -> tuple[Scored, ...]:
        values = check.values([(number, text) for number, text, _, _ in self._kept])
        return tuple(
            Scored(check.case_of(number), due, is_in_time, value, check.is_right(number, value))
            for (number, _, due, is_in_time), value in zip(self._kept, values, strict=True)
        )


class _Watch:
    """Looks on while a load runs."""

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
        self._until, self._is_stopped, self._answers = until, is_stopped, answers
        self.tally: Tally | None = None
        self.closely = Tally(bounds_of(load.objectives), _MOST_SLICES)
        """In slices so short that a breach which lasts can be told from a hiccup, however long the load."""
        metrics = {one.metric for one in load.objectives}
        self._needs_gaps, self._needs_tokens = "itl" in metrics, bool(metrics & _ABOUT_TOKENS)
        self.latencies: list[float] = []
        self.ends: list[float] = []
        self._turns: Counter[int] = Counter()
        self._heard: dict[int, float] = {}
        self._silences: list[tuple[float, float]] = []
        self._now = 0.0

    def see(self, pulse: Pulse, tally: Tally) -> None:
        self.tally, self._now = tally, pulse.seconds
        self._during(pulse.seconds)
        self._look(pulse, self._load)

    def is_over(self) -> bool:
        return self._now > self._until or self._is_stopped()

    def take(self, chunk: Chunk) -> None:
        if self._answers is not None:
            self._answers.take(chunk)
        worker, at = int(str(chunk.facts["worker"])), float(str(chunk.facts["at"]))
        self.closely.add(worker, self._needed(chunk))
        before = self._heard.get(worker, 0.0)
        self._heard[worker] = at
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

    def _needed(self, chunk: Chunk) -> Chunk:
        """Without times that no objective is about: they would be kept for every quarter of a second."""
        unknown = array("d", [nan]) * len(chunk)
        dropped = {"sent": unknown} if self._needs_tokens else {"sent": unknown, "first": unknown}
        gaps = chunk.gaps if self._needs_gaps else array("d")
        return Chunk({**chunk.columns, **dropped}, gaps, {**chunk.facts, "answers": []})

    def fairness(self) -> float | None:
        places = self._load.concurrency or 1
        if self._load.is_open or places < 2 or self._turns.total() < _FEWEST_TURNS * places:
            return None
        return fairness([self._turns[place] for place in range(places)])
