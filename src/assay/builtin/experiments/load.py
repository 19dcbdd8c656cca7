"""A load as an experiment, so that its settings can be swept and a spec can ask for it; `assay load` asks for it, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, field_validator

from assay.analysis.load import judged
from assay.errors import AssayError
from assay.execute.load.asking import LoadOptions, check_ca_file, check_header, prepared
from assay.execute.load.request import check_address
from assay.model import Better, Metric
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.report.load import load_document, load_metrics


def _checked(text: str, check: Callable[[str], object]) -> str:
    """What is planned is stored: a secret has to be found before."""
    try:
        check(text)
    except AssayError as error:
        raise ValueError(str(error)) from None
    return text


class Load(Experiment):
    """One execution is one load; what it showed is its output."""

    class Params(BaseModel):
        """See `assay load --help`; times as text with a unit."""

        model_config = ConfigDict(extra="forbid")

        target: str
        model: str | None = None
        prompt: str | None = None
        dataset: str | None = None
        concurrency: int | None = None
        rate: float | None = None
        arrivals: str | None = None
        stages: str | None = None
        duration: str | float | None = None
        requests: int | None = None
        warmup: str | float | None = None
        max_tokens: int | None = None
        stream: bool = True
        think: str | float | None = None
        timeout: str | float | None = None
        workers: int = 1
        slo: str | None = None
        allow_host: list[str] = []
        header: list[str] = []
        insecure: bool = False
        ca_file: str | None = None
        seed: int = 1

        @field_validator("target")
        @classmethod
        def _can_be_asked_and_kept(cls, target: str) -> str:
            return _checked(target, check_address) if "://" in target else target

        @field_validator("ca_file")
        @classmethod
        def _holds_certificates(cls, ca_file: str | None) -> str | None:
            return None if ca_file is None else _checked(ca_file, check_ca_file)

        @field_validator("header")
        @classmethod
        def _may_be_kept(cls, header: list[str]) -> list[str]:
            return [_checked(text, check_header) for text in header]

    metrics: ClassVar[Mapping[str, Metric]] = {
        "throughput_rps": Metric("throughput_rps", "1/s", Better.HIGHER),
        "error_rate": Metric("error_rate", "", Better.LOWER),
    }
    params: Params

    def setup(self, context: ExperimentContext) -> None:
        given: dict[str, Any] = self.params.model_dump()
        times = {
            name: str(given[name])
            for name in ("duration", "warmup", "think", "timeout")
            if given[name] is not None
        }
        several = {name: tuple(given[name]) for name in ("allow_host", "header")}
        self._asked = prepared(LoadOptions(**{**given, **times, **several}))

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
