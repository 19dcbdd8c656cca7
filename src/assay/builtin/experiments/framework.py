"""Trains one framework on the common task: its speed, memory, start-up time and features.

Each framework is a script in examples/frameworks that a user could have written: `train(task, samples, group_size, seed,
on_group)`. It is imported and run in the process of the execution, so that its import counts. A framework that is not installed is
not measured: the execution says which package is missing, and has no figures.
"""

from __future__ import annotations

import importlib.util
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from time import perf_counter
from types import ModuleType
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from assay.builtin.experiments.rl.probes import PROBES, probe_features
from assay.errors import LookupFailed, format_unknown_name
from assay.model import Better, Metric, describe_metrics
from assay.plugin import peak_memory
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.plugin.outcome import Outcome

_FINAL_GROUPS = 50
_METRICS = (
    Metric("samples_per_sec", "1/s", Better.HIGHER),
    Metric("peak_bytes", "bytes", Better.LOWER),
    Metric("first_step_seconds", "s", Better.LOWER),
    Metric("final_reward", "", Better.HIGHER),
    Metric("lines_of_code", "lines", Better.LOWER),
    Metric("parameters", "", Better.UNKNOWN),
)


class FrameworkParams(BaseModel):
    """A framework and the work that it is given."""

    framework: str = Field(default="native", description="native, trl, rllib or custom.")
    task: Literal["arithmetic", "customer_service"] = Field(
        default="arithmetic", description="Task that the policy learns."
    )
    samples: int = Field(
        default=1000, ge=16, le=10_000_000, description="Answers that the policy is trained with."
    )
    group_size: int = Field(default=8, ge=2, le=1024, description="Answers to one prompt at a time.")

    @field_validator("framework")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in PROBES:
            raise ValueError(format_unknown_name(name, "frameworks", PROBES))
        return name

    @model_validator(mode="after")
    def _has_two_groups(self) -> FrameworkParams:
        if self.samples < 2 * self.group_size:
            raise ValueError(
                f"'samples' has to be at least twice 'group_size', because speed is measured from the first group to "
                f"the last: {self.samples} samples are fewer than two groups of {self.group_size}"
            )
        return self


@dataclass(slots=True)
class FrameworkRun:
    """What a script did: the moments at which groups were rewarded, and their rewards."""

    began: float
    moments: list[float] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    parameters: int = 0
    peak_bytes: int | None = None
    """Peak memory of the process when training ended: what is probed later imports more. None where the system does not tell."""
    is_first: bool = True
    """Whether nothing was imported or held in this process by an earlier execution."""
    missing: str = ""
    """The package that is not installed; empty where the framework ran."""


class FrameworkExperiment(Experiment):
    """Runs the script of a framework once; `seconds` is all of it, import included."""

    Params: ClassVar[Any] = FrameworkParams
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(*_METRICS)
    failures_are_results: ClassVar[bool] = True
    params: FrameworkParams
    _is_process_fresh: ClassVar[bool] = True
    """Whether the whole process is fresh: inline, the trials of several frameworks share it, and with it what they import."""

    def execute_once(self, context: ExperimentContext) -> FrameworkRun:
        params = self.params
        run = FrameworkRun(perf_counter(), is_first=FrameworkExperiment._is_process_fresh)
        FrameworkExperiment._is_process_fresh = False

        def see_group(reward: float) -> None:
            run.moments.append(perf_counter())
            run.rewards.append(float(reward))
            samples = len(run.rewards) * params.group_size
            context.report_progress(
                f"{samples} of {params.samples} samples, reward {fmean(run.rewards[-20:]):.2f}"
            )

        try:
            script = _import_script(find_script(params.framework))
        except ModuleNotFoundError as error:
            run.missing = str(error.name)
            context.remark(f"'{params.framework}' is not measured: '{run.missing}' is not installed.")
            return run
        context.read_back(framework=Path(str(script.__file__)).stem)
        run.parameters = int(
            script.train(params.task, params.samples, params.group_size, context.seed, see_group)
        )
        run.peak_bytes = peak_memory()
        return run

    def read(self, run: FrameworkRun) -> Outcome:
        lines = count_code_lines(find_script(self.params.framework))
        features = [] if run.missing else probe_features(self.params.framework)
        detail = {"framework": {"missing": run.missing, "lines_of_code": lines, "features": features}}
        if run.missing:
            return Outcome({}, {"measured": False, "missing": run.missing}, detail=detail)
        figures = {
            "final_reward": fmean(run.rewards[-_FINAL_GROUPS:]),
            "lines_of_code": float(lines),
            "parameters": float(run.parameters),
        }
        if run.is_first:
            figures["first_step_seconds"] = run.moments[0] - run.began
            if run.peak_bytes is not None:
                figures["peak_bytes"] = float(run.peak_bytes)
        # From the first group to the last: importing and building are in the time to the first step.
        if (span := run.moments[-1] - run.moments[0]) > 0:
            figures["samples_per_sec"] = (len(run.moments) - 1) * self.params.group_size / span
        return Outcome(figures, {"measured": True}, detail=detail)


def find_script(framework: str) -> Path:
    """Find a script in the installed package or in the repository; raise LookupFailed if it is in neither."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "builtin" / "frameworks", package.parents[1] / "examples" / "frameworks"):
        if (found := folder / f"{framework}.py").is_file():
            return found
    raise LookupFailed(f"The script of the framework '{framework}' is not among the installed files.")


def _import_script(path: Path) -> ModuleType:
    """Under a name of its own: that of the framework belongs to its package."""
    found = importlib.util.spec_from_file_location(f"assay_framework_{path.stem}", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def count_code_lines(path: Path) -> int:
    """Lines that have code on them: neither blank, nor a comment, nor a docstring."""
    silent = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
    }
    lines: set[int] = set()
    with path.open("rb") as file:
        is_start = True
        for token in tokenize.tokenize(file.readline):
            if token.type in silent or token.type == tokenize.ENDMARKER:
                is_start = is_start or token.type == tokenize.NEWLINE
                continue
            if not (is_start and token.type == tokenize.STRING):
                lines.update(range(token.start[0], token.end[0] + 1))
            is_start = False
    return len(lines)
