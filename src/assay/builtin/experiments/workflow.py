"""An agent plans a workflow for one prompt, and a sandbox executes it: how well it works, resumes, and what it costs.

One execution: the agent is asked for a plan, the plan is executed in an empty folder with the files of the task, and then
once more in another folder, where it is interrupted at a point that the seed decides and resumed from its checkpoints.
`workflow_plan` reads plans, `workflow_run` executes them, `workflow_task` has the task that ships with Assay.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, field_validator

from assay.builtin.experiments import workflow_task
from assay.builtin.experiments.agent_definition import AgentDefinition, read_definition
from assay.builtin.experiments.workflow_figures import METRICS, compute_measurements, describe_failure
from assay.builtin.experiments.workflow_plan import PlanFault, WorkflowPlan, read_plan
from assay.builtin.experiments.workflow_run import (
    Interruption,
    ResumeFigures,
    RunRules,
    StepStatus,
    WorkflowRun,
    compare_resumed,
    find_file,
)
from assay.builtin.experiments.workflow_task import PROMPT
from assay.model import AgentUse, AgentVersion, Answer, Metric, Request
from assay.model.codec import to_plain
from assay.plugin.agent import Agent, AgentError
from assay.plugin.agent_pool import AgentPool
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.plugin.outcome import Outcome
from assay.plugin.prices import Price
from assay.plugin.sandbox import Ceilings, find_sandbox

FORBIDDEN = (
    "sudo",
    "su",
    "curl",
    "wget",
    "ssh",
    "scp",
    "nc",
    "ncat",
    "telnet",
    "dd",
    "mkfs",
    "mount",
    "shutdown",
    "reboot",
    "crontab",
)
_POOL = "workflow agents"
_REFERENCE = AgentUse("reference", "reference", version="1")
_INSTRUCTIONS = """You plan a workflow of shell commands. A program carries it out in a sandbox without a network, in an empty \
folder that has only the files listed below, with bash and the usual tools (awk, sed, grep, sort, cut, python3).
Answer with JSON only: {{"steps": [{{"name": "short name", "command": "one bash command line", "depends_on": ["names of steps"], \
"inputs": ["files read"], "outputs": ["files made"]}}]}}
All paths are relative to the folder. Each step names every file that it makes, because the workflow resumes from there.

Files:
{files}

Task: {prompt}"""


class WorkflowParams(BaseModel):
    """A prompt and how its workflow is executed."""

    prompt: str = Field(default=PROMPT, min_length=1, description="What the workflow is to do.")
    agent: AgentDefinition | None = Field(
        default=None, description="Definition of the agent that plans; --agent sets it. Default: reference."
    )
    data: str | None = Field(
        default=None, description="Folder whose files the workflow gets; default: generated orders and notes."
    )
    rows: int = Field(default=2000, ge=10, le=1_000_000, description="Lines of the generated orders.")
    data_seed: int = Field(default=1, ge=0, description="Seed of the generated orders.")
    required_tools: list[str] | None = Field(
        default=None,
        description="Tools that a plan must use; default: sort, uniq and cat for the task that ships with Assay.",
    )
    forbidden_tools: list[str] = Field(
        default=list(FORBIDDEN), description="Tools that no command may use; such a step fails."
    )
    min_steps: int = Field(default=1, ge=1, description="Fewest steps of a good plan.")
    max_steps: int = Field(default=20, ge=1, description="Maximum steps of a good plan.")
    step_seconds: float = Field(default=60.0, gt=0, description="Time limit of one step.")
    memory_mb: float = Field(
        default=1024.0, ge=16, description="Memory limit of all processes of a step together."
    )
    processes: int = Field(default=128, ge=4, description="Limit on the processes of one step.")
    file_mb: float = Field(default=256.0, gt=0, description="Maximum size of a file that a step writes.")
    network: bool = Field(default=False, description="Whether steps have access to the network.")
    interrupt: bool = Field(default=True, description="Whether the workflow is also interrupted and resumed.")
    resume: Literal["checkpoint", "outputs"] = Field(
        default="checkpoint",
        description="How a resumed run decides what is complete: by its checkpoints, or by whether output files exist.",
    )

    @field_validator("data")
    @classmethod
    def _is_folder(cls, data: str | None) -> str | None:
        if data is not None and not Path(data).is_dir():
            raise ValueError(f"there is no folder '{data}'")
        return None if data is None else str(Path(data).resolve())

    @property
    def is_shipped_task(self) -> bool:
        return self.data is None and self.prompt == PROMPT


@dataclass(frozen=True, slots=True)
class WorkflowAttempt:
    """What one execution came to: an answer, its plan or its fault, both legs, and the results."""

    answer: Answer | None = None
    plan_seconds: float = 0.0
    plan: WorkflowPlan | None = None
    fault: PlanFault | None = None
    error: str = ""
    run: WorkflowRun | None = None
    resume: ResumeFigures | None = None
    resume_events: list[dict[str, Any]] = field(default_factory=list)
    right_results: float | None = None
    resumed_right_results: float | None = None
    usd: float | None = None


class WorkflowExperiment(Experiment):
    """A workflow that an agent plans from a prompt and that runs in a sandbox; `seconds` is planning and one whole run."""

    Params: ClassVar[Any] = WorkflowParams
    metrics: ClassVar[Mapping[str, Metric]] = METRICS
    needs_sandbox: ClassVar[bool] = True
    failures_are_results: ClassVar[bool] = True
    params: WorkflowParams

    @staticmethod
    def params_of(use: AgentUse) -> dict[str, Any]:
        return {"agent": to_plain(use)}

    @staticmethod
    def agent_of(params: Mapping[str, Any]) -> AgentVersion:
        use = read_definition(params["agent"]) if params.get("agent") else _REFERENCE
        return AgentVersion(use.name, use.version)

    @staticmethod
    def agents_in(params: Mapping[str, Any]) -> list[AgentUse]:
        return [read_definition(params["agent"])] if params.get("agent") else []

    def setup(self, context: ExperimentContext) -> None:
        """Open the agent and make the files of the task, once for all executions."""
        params = self.params
        self._rules = RunRules(
            find_sandbox("The experiment workflow"),
            params.step_seconds,
            Ceilings(int(params.memory_mb * 2**20), params.processes, int(params.file_mb * 2**20)),
            frozenset(params.forbidden_tools),
            params.network,
            params.resume,
        )
        self._use = _REFERENCE if params.agent is None else read_definition(params.agent)
        context.extras[_POOL] = self._pool = AgentPool()
        self._agent: Agent = self._pool.open(self._use)
        self._data = workflow_task.make_data(params.rows, params.data_seed) if params.data is None else None

    def execute_once(self, context: ExperimentContext) -> WorkflowAttempt:
        began = perf_counter()
        try:
            answer = self._pool.wait(self._agent.answer(self._build_request(context)))
        except AgentError as error:
            return WorkflowAttempt(error=str(error), answer=error.answer)
        self._prove_model(answer, context)
        cost = Price(self._use, self._agent).of(answer)
        attempt = WorkflowAttempt(answer, perf_counter() - began, usd=None if cost is None else cost.usd)
        try:
            plan = read_plan(answer.output)
        except PlanFault as fault:
            return replace(attempt, fault=fault)
        return self._carry_out(replace(attempt, plan=plan), plan, context)

    def read(self, attempt: WorkflowAttempt) -> Outcome:
        measurements, output, detail = compute_measurements(attempt, self.params)
        return Outcome(
            measurements,
            output,
            problem=str(attempt.fault) if attempt.fault else None,
            failure=describe_failure(attempt),
            seconds=attempt.plan_seconds + (attempt.run.seconds if attempt.run else 0.0),
            detail=detail,
        )

    @staticmethod
    def teardown(context: ExperimentContext) -> None:
        """After a kill there is nothing to close: the agent and the sandbox have ended with the process."""
        if (pool := context.extras.pop(_POOL, None)) is not None:
            pool.close()

    def _build_request(self, context: ExperimentContext) -> Request:
        if self._data is not None:
            names = sorted(self._data.files)
        else:
            folder = Path(str(self.params.data))
            names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        expected = {"steps": workflow_task.reference_plan().document()} if self._data is not None else None
        return Request(
            "workflow",
            _INSTRUCTIONS.format(files="\n".join(names), prompt=self.params.prompt),
            expected=None if expected is None else json.dumps(expected),
            repetition=context.iteration_index or 0,
            seed=context.seed,
        )

    def _prove_model(self, answer: Answer, context: ExperimentContext) -> None:
        """Record which model answered; None where the agent does not tell, which a report shows as a doubt."""
        from assay.builtin.experiments.model_server import resolve_answering_model

        requested = self._use.options.get("model")
        model = answer.model or None
        if requested is not None and model is not None:
            model = resolve_answering_model(model, str(requested))
        context.read_back(model=model or self._agent.found_version() or None)
        if self._agent.is_simulated or answer.is_simulated:
            context.read_back(simulated=True)

    def _carry_out(
        self, attempt: WorkflowAttempt, plan: WorkflowPlan, context: ExperimentContext
    ) -> WorkflowAttempt:
        """Run both legs, each in its own temporary folder."""
        # In the folder of the trial, so that it is found and removed though this process may be killed.
        with tempfile.TemporaryDirectory(dir=context.run_dir, ignore_cleanup_errors=True) as folder:
            run = self._make_run(plan, Path(folder), "whole")
            run.run()
            attempt = replace(attempt, run=run, right_results=self._judge_results(run))
            is_done = run.count(StepStatus.DONE) == len(plan.steps)
            if not self.params.interrupt or not is_done or len(plan.steps) < 2:
                return attempt
            chance = Random(f"{context.seed}/{context.process}/{context.iteration_index}")
            step = plan.steps[1 + int(chance.random() * (len(plan.steps) - 1))].name
            broken = self._make_run(plan, Path(folder), "resumed")
            broken.run(Interruption(step, run.results[step].seconds * chance.random()))
            resumed = replace(broken, events=[], results={}, _began=perf_counter())
            resumed.run()
            return replace(
                attempt,
                resume=compare_resumed(broken.events, resumed),
                resume_events=[*broken.events, *resumed.events],
                resumed_right_results=self._judge_results(resumed),
            )

    def _judge_results(self, run: WorkflowRun) -> float | None:
        """The share of right results in a working folder; None if the right results are unknown."""
        if self._data is None or not self.params.is_shipped_task:
            return None
        return self._data.share_of_right_results(
            {name: find_file(run.folder, name) for name in self._data.results}
        )

    def _make_run(self, plan: WorkflowPlan, folder: Path, name: str) -> WorkflowRun:
        own = folder / name
        own.mkdir()
        if self._data is not None:
            self._data.write(own)
        else:
            shutil.copytree(str(self.params.data), own, dirs_exist_ok=True)
        names = tuple(str(path.relative_to(own)) for path in own.rglob("*") if path.is_file())
        return WorkflowRun(plan, own, folder / f"{name}.checkpoints", self._rules, names)
