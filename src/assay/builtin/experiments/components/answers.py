"""One answer at a time: `agent_latency`, `agent_streaming` and `response_generation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from assay.builtin.experiments.components.prompts import OPENINGS, SCENARIOS
from assay.builtin.experiments.components.scales import ANSWERS
from assay.builtin.experiments.components.subject import (
    AgentBenchmark,
    AgentParams,
    time_call,
)
from assay.builtin.experiments.serving import Serving, compute_answer_metrics
from assay.model import Answer, Metric, describe_metrics
from assay.plugin.agent import InvalidAnswer
from assay.plugin.experiment import ExperimentContext
from assay.plugin.grades import GradeScale


class PromptParams(AgentParams):
    """What is asked."""

    prompt: str | None = Field(
        default=None, min_length=1, description="What is asked; default: five questions in turn."
    )


class AgentLatency(AgentBenchmark):
    """One short question, from asking to the whole answer."""

    Params: ClassVar[Any] = PromptParams
    workload_params: ClassVar[Sequence[str]] = ("prompt",)
    grades: ClassVar[Sequence[GradeScale]] = ANSWERS
    inputs_in_turn: ClassVar[int] = len(OPENINGS)

    def measure(self, context: ExperimentContext) -> Answer:
        return self.ask(self.params.prompt or OPENINGS[context.execution % len(OPENINGS)])

    def read_figures(self, answer: Answer) -> Mapping[str, Any]:
        tokens = answer.usage.output_tokens
        return {} if tokens is None else {"output_tokens": tokens}


class AgentStreaming(AgentLatency):
    """One answer as it arrives: time to the first piece, gaps between pieces, tokens per second."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        name: Serving.metrics[name]
        for name in ("ttft", "itl", "itl_max", "tpot", "tokens_per_second", "output_tokens")
    }

    def measure(self, context: ExperimentContext) -> Answer:
        answer: Answer
        seconds, answer = time_call(super().measure, context)
        if not answer.content_seconds:
            self._explain_missing_pieces(answer, context)
        return replace(answer, seconds=answer.seconds or seconds)

    def _explain_missing_pieces(self, answer: Answer, context: ExperimentContext) -> None:
        """An agent that streams nothing has failed; one that answers in one piece just has no time to first token."""
        is_simulated = self.agent.is_simulated or answer.is_simulated
        if answer.output in ("", None) and not answer.tool_calls and not is_simulated:
            raise InvalidAnswer("The agent streamed nothing.")
        context.remark("Answers came in one piece, so there is no time to first token and no gap.")

    def read_figures(self, answer: Answer) -> Mapping[str, Any]:
        if not answer.content_seconds:
            return super().read_figures(answer)
        found = compute_answer_metrics(answer)
        return {name: value for name, value in found.items() if name in self.metrics}


class ResponseGeneration(AgentBenchmark):
    """One response to the opening of a service scenario, the five scenarios in turn; time by scenario."""

    grades: ClassVar[Sequence[GradeScale]] = ANSWERS
    inputs_in_turn: ClassVar[int] = len(SCENARIOS)
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(Metric("response_characters", "characters"))

    def measure(self, context: ExperimentContext) -> Mapping[str, Any]:
        name = list(SCENARIOS)[context.execution % len(SCENARIOS)]
        seconds, answer = time_call(self.ask, SCENARIOS[name][0])
        return {f"{name}_seconds": seconds, "response_characters": len(str(answer.output))}
