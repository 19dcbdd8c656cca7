"""A load as an experiment, so that its settings can be swept and a spec can ask for it; `assay load` asks for it, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from assay.analysis.load import judged
from assay.execute.load.asking import LoadOptions, prepared
from assay.model import Better, Metric
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.report.load import load_document, load_metrics


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
        seed: int = 1

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
        return {**load_metrics(result), "load": load_document(result)}
