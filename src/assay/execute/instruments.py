"""The instruments of one process: made by name, started and stopped around executions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from time import perf_counter
from typing import Any

from assay.errors import PlanError
from assay.execute.outcome import sorted_out
from assay.execute.told import told
from assay.model import Artifact, InstrumentUse, Job, Phase
from assay.plugin import lookup
from assay.plugin.experiment import ExperimentContext
from assay.plugin.instrument import File, NotMeasurable, Reading


class Instruments:
    """Those of a job, parted into the ones that may watch timed executions and the ones that slow their subject."""

    def __init__(self, uses: tuple[InstrumentUse, ...]) -> None:
        self.unmeasured: dict[str, str] = {}
        made = {use.name: instrument for use in uses if (instrument := self._made(use)) is not None}
        self._light = Watching({name: i for name, i in made.items() if not i.slows and name != "timing"})
        self._slow = {name: Watching({name: i}) for name, i in made.items() if i.slows}
        self._slow_names = [use.name for use in uses if slows(use.name)]

    def _made(self, use: InstrumentUse) -> Any:
        with blaming(use.name):
            try:
                return make_instrument(use)
            except NotMeasurable as reason:
                self.unmeasured[use.name] = str(reason)
        return None

    @property
    def light(self) -> Watching | None:
        """Those that may watch timed executions."""
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
            with blaming(name):
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
            with blaming(name):
                states.append((name, member.start(context)))
        return states

    def stop(self, states: list[tuple[str, Any]], files: Files) -> dict[str, float]:
        measurements: dict[str, float] = {}
        for name, state in reversed(states):
            with blaming(name):
                reading = self.members[name].stop(state)
                measurements.update(_checked(name, reading))
                files.add(reading.files)
        return measurements


@contextlib.contextmanager
def blaming(name: str) -> Iterator[None]:
    """Whatever goes wrong in here is the fault of that instrument."""
    try:
        yield
    except InstrumentFailed:
        raise
    except Exception as error:
        raise InstrumentFailed(name, told(error)) from error


def _checked(name: str, reading: Reading) -> dict[str, float]:
    outcome = sorted_out(reading.measurements)
    if outcome.problem or outcome.output:
        raise InstrumentFailed(name, outcome.problem or f"{outcome.output} is not a number")
    return outcome.measurements


class Files:
    """What the instruments of a job leave behind; files of one name are put together."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._parts: dict[tuple[str, str], list[bytes]] = {}

    def add(self, files: Iterable[File]) -> None:
        for file in files:
            self._parts.setdefault((file.name, file.type), []).append(file.content)

    def taken(self) -> tuple[Artifact, ...]:
        parts, self._parts = self._parts, {}
        return tuple(
            Artifact(self._job.trial, _named(name, self._job.process), kind, b"".join(contents))
            for (name, kind), contents in parts.items()
        )


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
        return Reading(sorted_out(written).measurements)


def _named(name: str, process: int) -> str:
    """Files of process 0 keep their name; those of the others carry the number."""
    if process == 0:
        return name
    stem, dot, suffix = name.partition(".")
    return f"{stem}-p{process}{dot}{suffix}"


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
