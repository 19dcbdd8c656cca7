"""A load as an experiment, so that its settings can be swept and a spec can ask for it; `assay load` asks for it, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Literal
from zlib import crc32

from pydantic import BaseModel, ConfigDict, Field, field_validator

from assay.analysis.load import judged
from assay.errors import AssayError
from assay.execute.load.agents import prepared_for
from assay.execute.load.asking import Data, LoadOptions
from assay.execute.load.request import check_address
from assay.execute.load.targets import check_ca_file, check_header
from assay.model import AgentUse, Better, Metric
from assay.plan.load import find_agent, read_dataset
from assay.plan.target import load_project_files
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.report.load import load_document, load_metrics
from assay.report.load_findings import findings_of
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
    return Data.of(found.prompts, found.scored, found.sessions)


def _params_of(use: AgentUse) -> dict[str, Any]:
    """An agent becomes the target, with its definition, so that a worker needs to look up no name."""
    return {"target": use.name, "agent": asdict(use)}


_MOST_LOADS = 10**6
"""Of one process of a trial."""
_WRITTEN = (
    "duration",
    "warmup",
    "think",
    "timeout",
    "input_tokens",
    "output_tokens",
    "cancel_after",
    "cancel_share",
)
"""Params that are read from text, where people may write numbers as well."""


class LoadExperiment(Experiment):
    """One execution is one load; what it showed is its output."""

    class Params(BaseModel):
        """Options of `assay load`; times are text with a unit, such as 10s or 200ms."""

        model_config = ConfigDict(extra="forbid")

        target: str = Field(description="A URL, or the name of an agent of the project.")
        more_targets: list[str] = Field(
            default_factory=list, description="URLs that requests go to in turn with the target."
        )
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
            None,
            description="With rate: constant (default) or poisson; trace:FILE replays a .csv or .jsonl file, also .gz.",
        )
        speed: float | None = Field(None, description="Replays a trace so many times as fast.")
        window: str | None = Field(None, description="The part of a trace to replay, such as 10m..20m.")
        stages: str | None = Field(None, description="Rates one after the other, such as 10s@50,20s@50..200.")
        duration: str | float | None = Field(None, description="How long requests are sent.")
        requests: int | None = Field(None, description="How many requests are sent, instead of duration.")
        warmup: str | float | None = Field(
            None, description="Time at the beginning that is not counted. Default: found from the data."
        )
        max_tokens: int | None = Field(None, description="The most tokens of an answer.")
        stream: bool = Field(True, description="Whether answers are streamed.")
        think: str | float | None = Field(
            None,
            description="Pause of a virtual user between two requests: 1s, 1s±300ms, 0.5s..2s or exp:1s.",
        )
        cancel_after: str | float | None = Field(
            None, description="When an answer takes longer, the connection is closed."
        )
        cancel_share: str | float | None = Field(
            None, description="Share of requests that cancel_after applies to, such as 10%. Default: all."
        )
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
        seed: int = Field(1, description="Seed of random arrivals and lengths.")
        prompt_seed: int | None = Field(
            None,
            description="Seed of what makes prompts unique. Default: by chance, so that no load meets a cache of another.",
        )
        prompt_cache: Literal["unique", "keep"] | None = Field(
            None,
            description="unique (default): each prompt begins in its own way, so that no prompt cache has it; keep: as written.",
        )
        shared_prefix: int | None = Field(
            None, description="Tokens of text that all prompts begin with, followed by a unique rest."
        )
        input_tokens: str | int | None = Field(
            None, description="Tokens of synthetic prompts: 500, 500±100, 500..700 or exp:500."
        )
        output_tokens: str | int | None = Field(
            None, description="The most tokens of an answer, written like input_tokens."
        )
        min_tokens: int | None = Field(
            None, description="Sends min_tokens (vLLM, SGLang): the least tokens of an answer."
        )
        ignore_eos: bool = Field(
            False, description="Sends ignore_eos (vLLM, SGLang, llama.cpp): answers go on to the maximum."
        )
        tokenizer: str | None = Field(
            None, description="tokenizer.json of the model, for synthetic prompts of exactly so many tokens."
        )
        abort_on: str | None = Field(
            None, description="Conditions that end the load early, such as error_rate>50%,ttft_p95>5s."
        )

        server_metrics: str | None = Field(
            None, description="Prometheus endpoint of the server, read once a second and shown with the load."
        )

        @field_validator("server_metrics")
        @classmethod
        def _can_be_read_and_kept(cls, server_metrics: str | None) -> str | None:
            return None if server_metrics is None else _checked(server_metrics, check_address)

        @field_validator("target")
        @classmethod
        def _can_be_asked_and_kept(cls, target: str) -> str:
            return _checked(target, check_address) if "://" in target else target

        @field_validator("more_targets")
        @classmethod
        def _are_addresses(cls, more_targets: list[str]) -> list[str]:
            return [_checked(target, check_address) for target in more_targets]

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
        "output_tokens_per_s": Metric("output_tokens_per_s", "1/s", Better.HIGHER),
        "error_rate": Metric("error_rate", "", Better.LOWER),
        **{
            name: Metric(name, "s", Better.LOWER)
            for name in (
                "ttft_p50_seconds",
                "ttft_p95_seconds",
                "itl_p50_seconds",
                "latency_p50_seconds",
                "latency_p95_seconds",
            )
        },
    }
    """Two loads are judged by these."""
    params: Params

    params_of: ClassVar[Any] = staticmethod(_params_of)

    def setup(self, context: ExperimentContext) -> None:
        given: dict[str, Any] = self.params.model_dump(exclude={"agent"})
        times = {name: str(given[name]) for name in _WRITTEN if given[name] is not None}
        several = {name: tuple(given[name]) for name in ("allow_host", "header", "more_targets")}
        use, files = self._agent()
        data = None if self.params.dataset is None else _read_dataset(self.params.dataset)
        asked = prepared_for(LoadOptions(**{**given, **times, **several}), use, files, data)
        # With the same seed, other trials and processes of the run must not meet these prompts in the server's cache.
        first = crc32(repr((sorted(given.items()), context.process)).encode())
        self._asked = replace(asked, loads=count(first * _MOST_LOADS))

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
        document = load_document(result)
        for finding in findings_of(document):
            if finding.tone == "bad":
                context.remark(str(finding))
        for warning in result.warnings:
            context.remark(warning)
        # In a list, as the figures of a document that stands by itself would all become metrics.
        return {**load_metrics(result), "load": [document]}
