"""An instrument watches an execution and gives measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from assay.model import Metric
from assay.plugin.experiment import ExperimentContext


@dataclass(frozen=True, slots=True)
class File:
    """A file that an instrument leaves behind, to be kept as an artifact."""

    name: str
    type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Reading:
    """What an instrument saw of one execution."""

    measurements: Mapping[str, float] = field(default_factory=dict)
    files: tuple[File, ...] = ()


class NotMeasurable(Exception):
    """Raised by an instrument's constructor when this machine has nothing to measure: recorded, never a failure."""


@runtime_checkable
class Instrument(Protocol):
    """Made once a process with the options of the spec as keywords; keeps no state but what `start` hands out.

    `slows` is True when watching slows the subject: then it gets executions of its own, apart from timed ones.
    `metrics` gives unit and direction of what `stop` returns. An instrument that finds nothing to measure on this machine
    raises NotMeasurable in its constructor; the report says so, and the run goes on.

    In a file that is named by `--load` an instrument may also be a context manager: a function of a dictionary that it fills
    with numbers.
    """

    slows: ClassVar[bool]
    metrics: ClassVar[Mapping[str, Metric]]

    def start(self, context: ExperimentContext) -> Any:
        """Called right before an execution; what it returns is handed to `stop`."""
        ...

    def stop(self, state: Any) -> Reading:
        """Called right after the execution, whether it failed or not."""
        ...


class InstrumentHooks(Protocol):
    """What an instrument may have beyond Instrument, looked up by its name."""

    has_cost: bool
    """False where it must not be started and stopped a few times to tell what that costs, as one that starts programs."""
