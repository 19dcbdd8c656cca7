"""The contract of experiments: code that is executed and measured.

The life of an experiment in one worker process: Assay creates it with the params of the trial, calls `setup` once, then for each
execution `prepare_once` and `execute_once`, and finally `teardown`. Only `execute_once` is timed. Warm-up executions come first and
are the same calls, except that nothing of them is counted.

Processes, not executions, are the units of comparison: the executions of one process share its caches, its layout of memory and
whatever `setup` made, so they say little about the next process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from assay.model import Metric
from assay.plugin import lookup

if TYPE_CHECKING:
    from assay.model import AgentUse, Iterations
    from assay.plugin.grades import GradeScale
    from assay.plugin.outcome import Outcome


@dataclass(slots=True)
class ExperimentContext:
    """What an experiment knows about the current execution."""

    run_id: str
    run_dir: Path
    """The folder of this trial; files in it are kept if the spec names an `output_dir`."""
    seed: int
    iteration_index: int | None = None
    """Number of the measured execution; None during setup, warm-up and teardown."""
    execution: int = 0
    """Number of the execution within its phase."""
    phase: str = "setup"
    process: int = 0
    isolation: str = "process"
    """How executions are kept apart, as the trial says: `inline`, `process` or `cold`."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Params of the trial, for a static teardown, which has no experiment object."""
    instruments: tuple[str, ...] = ()
    extras: dict[str, Any] = field(default_factory=dict)
    applied: dict[str, Any] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)
    report_progress: Callable[[str], None] = field(default=lambda text: None, repr=False)
    """Report how far a long execution has come, in a few words for the progress line: at most 128 bytes of UTF-8.

    A call takes a microsecond, and the text is not stored. With isolation `inline` it is not shown.
    """

    @property
    def output_dir(self) -> Path:
        """The folder above `run_dir`, which all trials of the run share."""
        return self.run_dir.parent

    def read_back(self, **settings: Any) -> None:
        """Record settings as the thing under test reports them, so that Assay notices an ignored setting.

        Use None for a setting that it does not report; the report then says that it is unknown. What no setting of the
        trial can change, such as the version of a server, belongs in `facts` as well (see ExperimentHooks).
        `simulated=True` marks every figure of the trial as made up.
        """
        self.applied.update(settings)

    def remark(self, text: str) -> None:
        """Show a warning next to the figures of this trial; the same text is kept once."""
        self.remarks[text] = None


class Experiment:
    """Base class of experiments: override `execute_once`, and `setup` and `teardown` if needed.

    Params come from a nested pydantic model `Params`, of which `self.params` is then an instance, or from the arguments of
    the constructor. Assay checks them while planning, so a wrong value ends the command before anything runs. All methods may
    be `async def`.

    `execute_once` returns a mapping or None. Numbers in it become metrics, and the rest is stored as output. An exception makes the
    execution failed, not the run; after three failures in a row the trial ends (see `failures_are_results`).
    Optional attributes and methods are in ExperimentHooks.
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
    """For an experiment that tests agents: a function that returns the params for an AgentUse.

    It raises BadAgent for an agent that it cannot test. If it returns None, the experiment does not use the agent and runs
    once as if no agent was named. An experiment without the function takes no `--agent`.
    """
    agent_of: ClassVar[Any] = None
    """A function that returns the agent under test for these params if none was named; without it, that is the code base."""

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

        When the process is killed, for taking too long or too much memory, or crashes, no process is left to run it. A teardown
        that is declared with @staticmethod runs then in a new process, with the context alone: `params` and `run_dir` are
        those of the trial, `extras` are empty. Otherwise the report says that teardown did not run.
        """


class ExperimentHooks(Protocol):
    """Optional attributes and methods of an experiment. Assay looks each one up by name, so define only those that you need."""

    call: Callable[[], Any]
    """A function without arguments that is timed in place of `execute_once`, for calls so short that passing a context counts."""

    needs_sandbox: bool
    """Whether it runs commands that a model wrote. If the operator's sandbox does not work, Assay refuses the run before it begins;
    the run stores which sandbox was used. The experiment gets it from `find_sandbox`."""

    failures_are_results: bool
    """Whether an execution that failed with an output counts like any other, as when the question is how often an agent succeeds.
    Every other experiment ends after three failures in a row, so its share of successes would be too low."""

    workload_params: Sequence[str]
    """Params that say how much work there is, or of what kind. Less work is no better choice, so the best point of a sweep is sought
    among the trials that do the same work."""

    facts: Sequence[str]
    """Names that are read back but are not settings, such as the version of a server: equal values do not make two arms identical."""

    paired_axis: str
    """An axis whose values are compared pair by pair, as the legs of a team are: trials that differ in it alone run next to each other."""

    agent_name_param: str
    """A param that may name a registered agent. Workers have no store, so the plan puts the definition of that agent into the param `agent`."""
    inputs_in_turn: int
    """How many inputs its executions take in turn: execution n has input n modulo this number. The grade of a CV is then that of
    executions with the same input, pooled over all inputs."""

    right: Mapping[str, float]
    """Metrics that show whether the work was correct, each with its correct value. For any other value, every report warns that the
    times are those of wrong results."""

    findings: Sequence[str]
    """Findings that its trials share with those of other experiments, such as `grades`, besides the finding of its own name."""

    grades: Sequence[GradeScale]
    """With the finding `grades`: the scales by which its figures are graded."""

    @staticmethod
    def agents_in(params: Mapping[str, Any]) -> Sequence[AgentUse]:
        """Return the agents that params define. Assay makes them once before the run, so that mistakes in them show early."""
        ...

    def read(self, result: Any) -> Outcome:
        """Make an Outcome of what `execute_once` returned, which may then be anything. It is not timed."""
        ...


class MeasuredFunction(Protocol):
    """What `@benchmark` makes of a function: it is found by name like an experiment, but is not a class."""

    slug: str
    """The name that trials and reports show."""
    defaults: Iterations
    """How often it is executed if the spec does not say."""
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
    return getattr(experiment_class(lookup.find_available("experiments", experiment)), trait, otherwise)


def has_trait(experiment: str, trait: str) -> bool:
    return bool(find_trait(experiment, trait))
