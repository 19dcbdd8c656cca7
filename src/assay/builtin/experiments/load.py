"""The load test as an experiment, which specs can sweep; `assay load` uses it, too.

One execution is one whole load with its warm-up, and the document of the load is its output. The params are not written
here: they are made from `LoadOptions`, so that a param and the option of `assay load` can never differ. Values are checked
when the run is planned, because the plan is stored and must hold no secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import MISSING, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Literal
from zlib import crc32

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, create_model, field_validator

from assay.analysis.load.judgement import judge_load
from assay.builtin.experiments.agent_definition import AgentDefinition, read_definition
from assay.errors import AssayError
from assay.load.build import Data, build_prepared_load_for, check_division, spread_load
from assay.load.options import LoadOption, LoadOptions, load_options
from assay.load.request import check_address
from assay.load.targets import check_ca_file, check_header
from assay.model import AgentUse, Better, Metric
from assay.model.codec import to_plain
from assay.model.load_document import load_document, load_metrics
from assay.plan.load import find_agent, read_dataset
from assay.plan.target import load_project_files
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.report.load_findings import findings_of
from assay.spec.settings import find_settings


def _check_option(text: str, check: Callable[[str], object]) -> str:
    """What is planned is stored: a secret has to be found before."""
    try:
        check(text)
    except AssayError as error:
        raise ValueError(str(error)) from None
    return text


def _read_dataset(name: str) -> Data:
    dataset = read_dataset(name, find_settings(Path.cwd()))
    return Data.of(dataset.prompts, dataset.scored, dataset.sessions)


_CHECKS: Mapping[str, Callable[[str], object]] = {
    "target": check_address,
    "more_targets": check_address,
    "server_metrics": check_address,
    "ca_file": check_ca_file,
    "dataset": _read_dataset,
    "header": check_header,
}
"""By param: what raises AssayError for a value that cannot be used, or may not be stored."""
_MOST_LOADS = 10**6
"""Maximum loads of one process of a trial."""


class LoadParams(BaseModel):
    """Options of `assay load`; times are text with a unit, such as 10s or 200ms."""

    # Its other fields are made from `LoadOptions` below.
    model_config = ConfigDict(extra="forbid")

    agent: AgentDefinition | None = Field(
        None, description="Definition of the agent that is the target; `agents` and --agent set it."
    )

    def options(self) -> LoadOptions:
        """Return the options that `assay load` would get: lists as tuples, numbers as the text of a command line."""
        given: dict[str, Any] = self.model_dump(exclude={"agent"})
        for option in load_options():
            value = given[option.name]
            if isinstance(value, list):
                given[option.name] = tuple(value)
            elif option.written.number is not None and value is not None:
                given[option.name] = str(value)
        return LoadOptions(**given)

    @field_validator(*_CHECKS, check_fields=False)
    @classmethod
    def _can_be_used_and_kept(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse what a worker could not use, or must not store, while the run is planned; a target may also be a name."""
        check = _CHECKS[str(info.field_name)]
        if value is None or (info.field_name == "target" and "://" not in value):
            return value
        if isinstance(value, list):
            return [_check_option(text, check) for text in value]
        return _check_option(value, check)


def _build_params() -> type[LoadParams]:
    """The params of a load: a field for each of its options."""
    return create_model(
        "Params",
        __base__=LoadParams,
        __doc__=LoadParams.__doc__,
        **{option.name: _build_field(option) for option in load_options()},
    )


def _build_field(option: LoadOption) -> Any:
    """The type and the pydantic field of a param, from the option of `assay load` of the same name."""
    written, kind = option.written, option.type
    # Params are named without dashes.
    text = written.param_help or re.sub("--([a-z-]+)", lambda name: name[1].replace("-", "_"), written.help)
    if isinstance(option.default, tuple):
        return list[str], Field(default_factory=list, description=text)
    if option.default is MISSING:
        return kind, Field(description=text)
    if written.choices:
        kind = Literal[written.choices] | None
    elif written.number is not None:
        kind = str | written.number | None
    return kind, Field(option.default, description=text)


class LoadExperiment(Experiment):
    """One execution is one load; what it showed is its output."""

    Params: ClassVar[type[LoadParams]] = _build_params()

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
    agent_name_param = "target"
    params: LoadParams

    @staticmethod
    def params_of(use: AgentUse) -> dict[str, Any]:
        """An agent becomes the target, with its definition, so that a worker needs to look up no name."""
        return {"target": use.name, "agent": to_plain(use)}

    @staticmethod
    def agents_in(params: Mapping[str, Any]) -> list[AgentUse]:
        return [read_definition(params["agent"])] if params.get("agent") else []

    def setup(self, context: ExperimentContext) -> None:
        """Resolve the target and the dataset once; each execution then only puts the load."""
        self._generators = ExitStack()
        options = self.params.options()
        use, files = self._agent(options.target)
        data = None if options.dataset is None else _read_dataset(options.dataset)
        prepared = build_prepared_load_for(options, use, files, data)
        given: dict[str, Any] = self.params.model_dump(exclude={"agent"})
        # With the same seed, other trials and processes of the run must not meet these prompts in the server's cache.
        first = crc32(repr((sorted(given.items()), context.process)).encode())
        prepared = replace(prepared, loads=count(first * _MOST_LOADS))
        self._prepared = self._generators.enter_context(
            spread_load(options, prepared, find_settings(Path.cwd()))
        )
        check_division([prepared.load], len(self._prepared.sites))

    def teardown(self, context: ExperimentContext) -> None:
        self._generators.close()

    def _agent(self, target: str) -> tuple[AgentUse | None, Sequence[str]]:
        """The agent that is the target, and the files it needs; None where the target is a URL."""
        settings = find_settings(Path.cwd())
        if (definition := self.params.agent) is not None:
            return read_definition(definition), load_project_files(settings)
        agent = find_agent(target, settings)
        return (agent.use, agent.files) if agent is not None else (None, ())

    def execute_once(self, context: ExperimentContext) -> dict[str, object]:
        # A load without a single answer has no figures, and is a failed execution rather than one with a rate of 0.
        result = judge_load(self._prepared.measure(), self._prepared.load)
        if any(generator.lost for generator in result.generators):
            raise RuntimeError(f"The load was not run: {result.aborted}.")
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
