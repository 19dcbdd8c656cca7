"""The instruments of one process: made by name, started and stopped around executions.

`Instruments` holds all of a job, `Watching` those around one execution, and `Files` what they leave behind. Instruments that
do not slow their subject watch every measured execution; each of the others gets a profiled execution of its own, whose
times are in no statistic. An error in an instrument is never blamed on the subject: it becomes `InstrumentFailed`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from time import perf_counter
from typing import Any

from assay.errors import PlanError
from assay.execute.error_text import format_error
from assay.model import Artifact, InstrumentUse, Job, Phase
from assay.plugin import lookup
from assay.plugin.experiment import ExperimentContext
from assay.plugin.instrument import File, NotMeasurable, Reading
from assay.plugin.outcome import split_result


class Instruments:
    """The instruments of a job, divided into those that may watch timed executions and those that slow their subject.

    `unmeasured` names instruments that cannot measure anything on this machine, with the reason.
    """

    def __init__(self, uses: tuple[InstrumentUse, ...]) -> None:
        self.unmeasured: dict[str, str] = {}
        instruments = {
            use.name: instrument for use in uses if (instrument := self._make_if_measurable(use)) is not None
        }
        self._light = Watching(
            {name: i for name, i in instruments.items() if not i.slows and name != "timing"}
        )
        self._slow = {name: Watching({name: i}) for name, i in instruments.items() if i.slows}
        self._slow_names = [use.name for use in uses if slows(use.name)]

    def _make_if_measurable(self, use: InstrumentUse) -> Any:
        with attribute_errors_to(use.name):
            try:
                return make_instrument(use)
            except NotMeasurable as reason:
                self.unmeasured[use.name] = str(reason)
        return None

    @property
    def light(self) -> Watching | None:
        """Return the instruments that may watch timed executions, or None without any."""
        return self._light if self._light.members else None

    @property
    def any(self) -> bool:
        """Whether there is anything but the timing of every execution."""
        return bool(self._light.members or self._slow)

    def watching(self, phase: Phase, number: int) -> Watching | None:
        """The instruments of one execution; warm-ups have none."""
        if phase is Phase.MEASURED:
            return self.light
        return self.slow(number) if phase is Phase.PROFILED else None

    def slow(self, number: int) -> Watching | None:
        """One that slows its subject, for the profiled execution of that number: they would spoil each other."""
        return self._slow.get(self._slow_names[number])

    def costs(self, context: ExperimentContext) -> dict[str, float]:
        """Seconds that one start and stop of each takes: the best of three."""
        costs: dict[str, float] = {}
        slow = {name: watching.members[name] for name, watching in self._slow.items()}
        for name, member in {**self._light.members, **slow}.items():
            if not getattr(member, "has_cost", True):
                continue
            with attribute_errors_to(name):
                costs[name] = _cost(member, context)
        return costs


class InstrumentFailed(Exception):
    """An instrument, not its subject, went wrong: the execution says nothing about the subject."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"Instrument '{name}' failed: {problem}")


class Watching:
    """Instruments around one execution: the first started is the last stopped."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.members = members

    def start(self, context: ExperimentContext) -> list[tuple[str, Any]]:
        states: list[tuple[str, Any]] = []
        for name, member in self.members.items():
            with attribute_errors_to(name):
                states.append((name, member.start(context)))
        return states

    def stop(self, states: list[tuple[str, Any]], files: Files) -> dict[str, float]:
        measurements: dict[str, float] = {}
        for name, state in reversed(states):
            with attribute_errors_to(name):
                reading = self.members[name].stop(state)
                outcome = split_result(reading.measurements)
                if outcome.problem or outcome.output:
                    raise InstrumentFailed(name, outcome.problem or f"{outcome.output} is not a number")
                measurements.update(outcome.measurements)
                files.add(reading.files)
        return measurements


@contextlib.contextmanager
def attribute_errors_to(name: str) -> Iterator[None]:
    """Attribute any exception raised inside to this instrument."""
    try:
        yield
    except InstrumentFailed:
        raise
    except Exception as error:
        raise InstrumentFailed(name, format_error(error)) from error


class Files:
    """What the instruments of a job leave behind; contents of files with the same name are joined."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._parts: dict[tuple[str, str], list[bytes]] = {}

    def add(self, files: Iterable[File]) -> None:
        for file in files:
            self._parts.setdefault((file.name, file.type), []).append(file.content)

    def take(self) -> tuple[Artifact, ...]:
        """The files since the last call. Those of process 0 keep their name; those of the others carry its number."""
        parts, self._parts = self._parts, {}
        artifacts: list[Artifact] = []
        for (name, kind), contents in parts.items():
            stem, dot, suffix = name.partition(".")
            numbered = f"{stem}-p{self._job.process}{dot}{suffix}" if self._job.process else name
            artifacts.append(Artifact(self._job.trial, numbered, kind, b"".join(contents)))
        return tuple(artifacts)


def make_instrument(use: InstrumentUse) -> Any:
    """An instrument with its options; a plain context manager, as older files have them, is wrapped."""
    member = lookup.find("instruments", use.name)
    if not hasattr(member, "start"):
        return ContextManagerInstrument(use.name, member, use.options)
    try:
        return member(**use.options)
    except TypeError as error:
        raise PlanError(f"Instrument '{use.name}' does not take these options: {error}") from None


class ContextManagerInstrument:
    """A function that makes a context manager from a dictionary, which it fills with metrics."""

    slows = False
    metrics: Mapping[str, Any] = {}

    def __init__(self, name: str, function: Any, options: Mapping[str, object]) -> None:
        self._name, self._function, self._options = name, function, dict(options)

    def start(self, context: ExperimentContext) -> Any:
        written: dict[str, Any] = {}
        stack = contextlib.ExitStack()
        stack.enter_context(self._function(written, **self._options))
        return stack, written

    def stop(self, state: Any) -> Reading:
        stack, written = state
        stack.close()
        return Reading(split_result(written).measurements)


def _cost(member: Any, context: ExperimentContext) -> float:
    best = float("inf")
    for _ in range(3):
        start = perf_counter()
        member.stop(member.start(context))
        best = min(best, perf_counter() - start)
    return best


def slows(name: str) -> bool:
    """Whether the instrument of that name slows its subject."""
    return bool(getattr(lookup.find("instruments", name), "slows", False))
