"""A load as an experiment, so that its settings can be swept and a spec can ask for it; `assay load` asks for it, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from assay.analysis.load import judged
from assay.errors import AssayError
from assay.execute.load.agents import prepared_for
from assay.execute.load.asking import Data, LoadOptions, check_ca_file, check_header
from assay.execute.load.request import check_address
from assay.model import AgentUse, Better, Metric
from assay.plan.load import find_agent, read_dataset
from assay.plan.target import load_project_files
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.report.load import load_document, load_metrics
from assay.spec.settings import find_settings


def _checked(text: str, check: Callable[[str], object]) -> str:
    """What is planned is stored: a secret has to be found before."""
    try:
        check(text)
    except AssayError as error:
        raise ValueError(str(error)) from None
    return text


def _read_dataset(name: str) -> Data:
    found = read_dataset(name, find_settings(Path.cwd()))
    return Data.of(found.prompts, found.scored)


def _params_of(use: AgentUse) -> dict[str, Any]:
    """An agent becomes the target, with its definition, so that a worker needs to look up no name."""
    return {"target": use.name, "agent": asdict(use)}


class Load(Experiment):
    """One execution is one load; what it showed is its output."""

    class Params(BaseModel):
        """Options of `assay load`; times are text with a unit, such as 10s or 200ms."""

        model_config = ConfigDict(extra="forbid")

        target: str = Field(description="A URL, or the name of an agent of the project.")
        agent: dict[str, Any] | None = Field(
            None, description="Definition of the agent that is the target; `agents` and --agent set it."
        )
        model: str | None = Field(None, description="The model to ask for.")
        prompt: str | None = Field(None, description="Text that every request sends.")
        dataset: str | None = Field(
            None,
            description="Prompts in turn: a suite, whose answers are scored, .jsonl, .csv or lines of text.",
        )
        concurrency: int | None = Field(
            None, description="Concurrent requests (closed loop); with rate, the maximum in flight."
        )
        rate: float | None = Field(None, description="Requests per second (open loop).")
        arrivals: str | None = Field(
            None, description="With rate: constant (default), poisson, or trace:FILE.csv."
        )
        stages: str | None = Field(None, description="Rates one after the other, such as 10s@50,20s@50..200.")
        duration: str | float | None = Field(None, description="How long requests are sent.")
        requests: int | None = Field(None, description="How many requests are sent, instead of duration.")
        warmup: str | float | None = Field(
            None, description="Time at the beginning that is not counted. Default: found from the data."
        )
        max_tokens: int | None = Field(None, description="The most tokens of an answer.")
        stream: bool = Field(True, description="Whether answers are streamed.")
        think: str | float | None = Field(None, description="Pause of a virtual user between two requests.")
        timeout: str | float | None = Field(
            None, description="A request that takes longer has failed. Default: 60s."
        )
        workers: int = Field(1, description="Processes that send requests.")
        slo: str | None = Field(None, description="Objectives, such as ttft_p95<200ms,error_rate<1%.")
        allow_host: list[str] = Field(
            default_factory=list, description="Hosts other than this machine that may be loaded."
        )
        header: list[str] = Field(default_factory=list, description="HTTP headers, as NAME: VALUE.")
        insecure: bool = Field(False, description="Accept any TLS certificate.")
        ca_file: str | None = Field(None, description="File of certificates to trust.")
        seed: int = Field(1, description="Seed of random arrivals.")

        @field_validator("target")
        @classmethod
        def _can_be_asked_and_kept(cls, target: str) -> str:
            return _checked(target, check_address) if "://" in target else target

        @field_validator("ca_file")
        @classmethod
        def _holds_certificates(cls, ca_file: str | None) -> str | None:
            return None if ca_file is None else _checked(ca_file, check_ca_file)

        @field_validator("dataset")
        @classmethod
        def _can_be_read(cls, dataset: str | None) -> str | None:
            return None if dataset is None else _checked(dataset, _read_dataset)

        @field_validator("header")
        @classmethod
        def _may_be_kept(cls, header: list[str]) -> list[str]:
            return [_checked(text, check_header) for text in header]

    metrics: ClassVar[Mapping[str, Metric]] = {
        "throughput_rps": Metric("throughput_rps", "1/s", Better.HIGHER),
        "error_rate": Metric("error_rate", "", Better.LOWER),
    }
    params: Params

    params_of: ClassVar[Any] = staticmethod(_params_of)

    def setup(self, context: ExperimentContext) -> None:
        given: dict[str, Any] = self.params.model_dump(exclude={"agent"})
        times = {
            name: str(given[name])
            for name in ("duration", "warmup", "think", "timeout")
            if given[name] is not None
        }
        several = {name: tuple(given[name]) for name in ("allow_host", "header")}
        use, files = self._agent()
        data = None if self.params.dataset is None else _read_dataset(self.params.dataset)
        self._asked = prepared_for(LoadOptions(**{**given, **times, **several}), use, files, data)

    def _agent(self) -> tuple[AgentUse | None, Sequence[str]]:
        """The agent that is the target, and the files it needs; None where the target is a URL."""
        settings = find_settings(Path.cwd())
        if (definition := self.params.agent) is not None:
            return AgentUse(**definition), load_project_files(settings)
        found = find_agent(self.params.target, settings)
        return (found.use, found.files) if found is not None else (None, ())

    def execute_once(self, context: ExperimentContext) -> dict[str, object]:
        result = judged(self._asked.measured(), self._asked.load)
        if not result.requests_completed:
            raise RuntimeError(f"No request was answered: {dict(result.errors)}")
        if result.is_simulated:
            context.read_back(simulated=True)
        for warning in result.warnings:
            context.remark(warning)
        # In a list, as the figures of a document that stands by itself would all become metrics.
        return {**load_metrics(result), "load": [load_document(result)]}
