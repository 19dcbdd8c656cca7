"""The contract of instruments, which measure executions.

Instruments run in the worker, around the call that is timed: they start in the order of the spec and stop in reverse order. The
worker measures what one start and stop of each costs (the best of three), and reports show it.
"""

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
    """Measures one execution at a time. The constructor gets the options of the spec as keywords, once per process.

    An instrument keeps no state between executions: whatever `stop` needs, `start` returns. `slows` is True if measuring slows the
    subject down, as tracing profilers do; such an instrument gets executions of its own, whose times do not count. `metrics` gives
    the unit and direction of each value that `stop` returns. An instrument that has nothing to measure on this machine raises
    NotMeasurable in its constructor; the report says so and the run continues.

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
    """What an instrument may have beyond Instrument; each attribute is looked up by its name.

    It need not be declared: an instrument without it gets the usual treatment.
    """

    has_cost: bool
    """False if Assay must not start and stop it beforehand to measure its cost, as for one that starts programs."""
