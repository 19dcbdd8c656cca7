"""The workflow benchmark over `assay.run`: a runner, its figures and its plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from assay.api.results import RunResult
from assay.api.run import open_store, run
from assay.errors import PlanError
from assay.pipeline.planning import registry_of
from assay.plan.target import known_agents
from assay.plugin import lookup
from assay.spec.settings import find_settings


@dataclass(frozen=True, slots=True)
class WorkflowBenchmark:
    """A benchmark that was executed; also a mapping of its two main fields, as FlowAgent returns one."""

    result: RunResult
    benchmark_dir: Path
    """Folder with the JSON files, the table and the plots."""

    @property
    def benchmark_id(self) -> str:
        """The id of the run, for `assay show`, `assay compare` and all other commands."""
        return self.result.run_id

    @property
    def summary(self) -> Mapping[str, Any]:
        """Figures by model, and who leads on what."""
        return BenchmarkMetrics(self.result).summary()

    def __getitem__(self, name: str) -> Any:
        if name not in ("benchmark_id", "benchmark_dir", "summary"):
            raise KeyError(name)
        return getattr(self, name)


@dataclass(frozen=True, slots=True)
class BenchmarkRunner:
    """Runs one prompt through several models.

    Each run is in a folder of its own below `output_dir`. `options` are further keywords of `assay.run`, such as `seed`,
    `budget_usd` or `db`.
    """

    output_dir: str | Path = "benchmarks"
    options: Mapping[str, Any] = field(default_factory=dict)

    async def run_benchmark(
        self,
        prompt: str | None = None,
        models: Sequence[str] = ("reference",),
        repetitions: int = 3,
        description: str = "",
        **params: Any,
    ) -> WorkflowBenchmark:
        """Run the prompt so often with each model, in turns, and write the folder of the benchmark.

        A model is the name of an agent or else a model of the agent `openai`. Without a prompt, the task that ships with Assay
        is done. `params` are further params of the experiment `workflow`. Other tasks of the event loop wait meanwhile, as they would
        disturb what is measured.
        """
        if isinstance(models, str) or not models:
            raise PlanError(f"models must be a list of at least one name, not {models!r}.")
        folder = _free_folder(Path(self.output_dir), datetime.now())
        given = {**params, **({} if prompt is None else {"prompt": prompt})}
        options: dict[str, Any] = {
            "agents": define_agents(models, self.options.get("db")),
            "params": given,
            "repetitions": repetitions,
            "label": description,
            "report": ["workflow"],
            "out": str(folder),
            **self.options,
        }
        if not description:
            del options["label"]
        return WorkflowBenchmark(run("workflow", **options), folder)


def define_agents(models: Sequence[str], db: str | Path | None = None) -> list[Any]:
    """Names of agents as they are; any other name is a model behind an OpenAI-compatible server."""
    settings = find_settings(Path.cwd())
    with open_store(db, settings) as store:
        known = {*known_agents(settings, registry_of(store)), *lookup.known("agents")}
    return [name if name in known else {"name": name, "type": "openai", "model": name} for name in models]


def _free_folder(parent: Path, now: datetime) -> Path:
    """`run_TIME`; a number tells runs of the same second apart."""
    name = f"run_{now:%Y%m%d_%H%M%S}"
    tries = [parent / name, *(parent / f"{name}_{number}" for number in range(2, 1000))]
    return next(path for path in tries if not path.exists())


@dataclass(frozen=True, slots=True)
class BenchmarkMetrics:
    """The figures of a benchmark, from the events of its executions."""

    result: RunResult

    def summary(self) -> Mapping[str, Any]:
        """By model: success rate with its interval, durations, smart resume, resources, command quality, plan, cost."""
        found: Mapping[str, Any] = self._finding().document()["workflow"]["models"]
        return found

    def compare_models(self) -> Mapping[str, Any]:
        """Who has the best value of each figure, as `best_FIGURE`; None where several share it."""
        found: Mapping[str, Any] = self._finding().document()["workflow"]["comparison"]
        return found

    def extract_metrics(self, model: str) -> list[Mapping[str, float]]:
        """The metrics of each run of a model, failed ones included."""
        return [
            dict(execution.measurements)
            for trial in self.result.trials
            if trial.stored.trial.agent.name == model
            for execution in trial.executions
            if execution.phase == "measured"
        ]

    def _finding(self) -> Any:
        try:
            return self.result.report.findings["workflow"]
        except KeyError:
            raise PlanError(f"Run '{self.result.run_id}' has no workflow.") from None


@dataclass(frozen=True, slots=True)
class BenchmarkVisualizer:
    """The plots and files of a benchmark, written again wherever they are wanted."""

    output_dir: str | Path

    def visualize(self, result: RunResult) -> dict[str, Path]:
        """Write the files of the reporter `workflow`; the plots by their names."""
        folder = Path(self.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        files = lookup.find("reporters", "workflow")().write(result.report, folder)
        return {path.stem: path for path in files if path.suffix == ".png"}
