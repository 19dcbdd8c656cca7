"""An experiment is code: how something is put through one case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from assay.errors import LookupFailed, MissingExtra
from assay.model import Metric
from assay.plugin import lookup

if TYPE_CHECKING:
    from assay.model import Iterations
    from assay.plugin.grades import GradeScale
    from assay.plugin.outcome import Outcome


@dataclass(slots=True)
class ExperimentContext:
    """What an experiment is told about the execution it is in."""

    run_id: str
    run_dir: Path
    """A folder of this trial's own; what is written there is kept when the spec names an `output_dir`."""
    seed: int
    iteration_index: int | None = None
    """Number of the measured execution; None during setup, warm-up and teardown."""
    execution: int = 0
    """Number of the execution within its phase."""
    phase: str = "setup"
    process: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the trial, for a static teardown, which has no experiment to ask."""
    instruments: tuple[str, ...] = ()
    extras: dict[str, Any] = field(default_factory=dict)
    applied: dict[str, Any] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)
    report_progress: Callable[[str], None] = field(default=lambda text: None, repr=False)
    """Say how far a long execution has come, in a few words that the progress line shows: at most 128 bytes of UTF-8.

    It takes a microsecond, and nothing of it is stored. Inline, nobody hears it.
    """

    @property
    def output_dir(self) -> Path:
        """The folder above `run_dir`, which all trials of the run share."""
        return self.run_dir.parent

    def read_back(self, **settings: Any) -> None:
        """Record settings as the thing under test reports them, so that an arm that was not applied is found out.

        None is for a setting that it does not report: then nobody can tell, and the report says so.
        `simulated=True` marks every figure of the trial as made up.
        """
        self.applied.update(settings)

    def remark(self, text: str) -> None:
        """A doubt to show beside the figures of this trial; the same one is kept once."""
        self.remarks[text] = None


class Experiment:
    """Base of experiments: override `execute_once`, and `setup` and `teardown` where needed.

    Params come either from a nested pydantic model `Params`, and `self.params` is then an instance of it, or from
    the constructor's arguments. All methods may be `async def`.
    `execute_once` returns a mapping: its numbers are metrics, the rest is kept as output. None is fine.
    What an experiment may have beyond this is in ExperimentHooks.
    """

    Params: ClassVar[Any] = None
    metrics: ClassVar[Mapping[str, Metric]] = {}
    """Unit and direction of this experiment's own metrics, where their names do not tell."""
    param_schema: ClassVar[Mapping[str, Any]] = {}
    list_params: ClassVar[Mapping[str, str]] = {}
    """Names under which a spec may list several values of a param, each with that param: `{"profiles": "profile"}`.

    Such a list is an axis of the sweep, under `params:` as well as under `sweep:`.
    """
    params_of: ClassVar[Any] = None
    """Of an experiment that tests agents, a function: from an AgentUse to the params that it stands for.

    Raises BadAgent for an agent that it cannot test. None means that the agent has no part in this experiment, which then runs
    once as if no agent was named. Without the function, `--agent` means nothing for the experiment.
    """
    agent_of: ClassVar[Any] = None
    """A function from params to the Agent that is tested where none was named; without it, the code base is."""

    params: Any

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        self.params = dict(parameters or {})

    def setup(self, context: ExperimentContext) -> Any:
        """Runs once in each process, before its first execution; not timed."""

    def prepare_once(self, context: ExperimentContext) -> Any:
        """Runs before each execution; not timed. What it raises is the failure of that execution."""

    def execute_once(self, context: ExperimentContext) -> Any:
        """One execution: this call is what is timed."""
        raise NotImplementedError(f"{type(self).__name__} does not say what to do: define execute_once")

    def teardown(self, context: ExperimentContext) -> Any:
        """Runs after the last execution, also after a failure.

        When the process is killed, for taking too long or too much memory, or crashes, nobody is left to run it. A teardown
        that is declared with @staticmethod runs then in a new process, with the context alone: `params` and `run_dir` are
        those of the trial, `extras` are empty. Otherwise the report says that teardown did not run.
        """


class ExperimentHooks(Protocol):
    """What an experiment may have beyond Experiment. Each is looked up by its name; define those that you need and no others."""

    call: Callable[[], Any]
    """What is timed, in the place of `execute_once`: a function without arguments, for calls so short that a context counts."""

    needs_sandbox: bool
    """Whether it runs commands that a model wrote: the run is refused before it begins where the operator's sandbox does not work,
    and stores which one was used. The experiment gets it from `find_sandbox`."""

    failures_are_results: bool
    """Whether an execution that failed with an output is a result like any other, as where the question is how often an agent succeeds.
    Every other experiment ends after three failures in a row, by which its share of successes would seem too low."""

    findings: Sequence[str]
    """Findings that its trials share with those of other experiments, beside the one of its own name: `grades` is one."""

    grades: Sequence[GradeScale]
    """With the finding `grades`: the scales by which its figures are graded."""

    def read(self, result: Any) -> Outcome:
        """Makes an Outcome of what `execute_once` returned, which may then be anything. It is not timed."""
        ...


class MeasuredFunction(Protocol):
    """What `@benchmark` makes of a function: found by name like an experiment, though it is no class."""

    slug: str
    """The name that trials and reports show."""
    defaults: Iterations
    """How often it is executed where the spec does not say."""
    experiment: Callable[..., Any]
    """The function itself; its arguments are the params."""

    def bound(self, params: Mapping[str, Any]) -> Any:
        """The experiment that executes the function with these arguments."""
        ...


def experiment_class(member: Any) -> Any:
    """The experiment behind a looked-up member: a class, or the function that a benchmark measures."""
    return getattr(member, "experiment", member)


def find_trait(experiment: str, trait: str, otherwise: Any = None) -> Any:
    """This attribute of ExperimentHooks of the experiment of this name; `otherwise` where it has none, or cannot be found."""
    try:
        return getattr(experiment_class(lookup.find("experiments", experiment)), trait, otherwise)
    except (LookupFailed, MissingExtra):
        return otherwise


def has_trait(experiment: str, trait: str) -> bool:
    return bool(find_trait(experiment, trait))
