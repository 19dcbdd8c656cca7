"""What a request may say about a run, and nothing more: no code, no commands, no paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from assay.errors import Mistake, SpecError, known_names
from assay.model import Budget
from assay.plan.suite import CaseFilter
from assay.plan.target import RunRequest

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""The name of an agent, a suite, a run or a case: one line of text. Databases refuse NUL, and no name needs control characters."""
_Count = Annotated[int, Field(ge=1, le=10_000)]
_OptionValue = (
    bool | int | Annotated[float, Field(allow_inf_nan=False)] | Annotated[str, Field(max_length=1000)]
)


class RunConfiguration(BaseModel):
    """How to run a suite; what is left out is as the suite says."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"repetitions": 3, "limit": 10}})

    repetitions: _Count | None = Field(default=None, description="Measured executions of each case.")
    warmup: Annotated[int, Field(ge=0, le=10_000)] | None = Field(
        default=None, description="Warm-up executions."
    )
    limit: _Count | None = Field(default=None, description="Only the first cases of each benchmark.")
    case: Annotated[list[Name], Field(max_length=1000)] = Field(default=[], description="Only these cases.")
    tag: Annotated[list[Name], Field(max_length=100)] = Field(
        default=[], description="Only cases with these tags."
    )
    concurrency: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="Executions in flight."
    )
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    budget_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Stop the run once it has cost this much."
    )
    budget_tokens: Annotated[int, Field(ge=1, le=2**53)] | None = None
    options: dict[Name, _OptionValue] = Field(
        default={},
        description="Agent options that the operator allows: `agent_options` under [server].",
    )

    def check(self, released: tuple[str, ...]) -> None:
        """SpecError for options that requests may not set, and for values that would be read from the environment."""
        place = "body.configuration.options"
        mistakes = [
            Mistake(
                "request", None, f"{place}.{name}", "Requests may not set this option. Allow it in assay.toml: [server] agent_options",
                known_names(name, released),
            )
            for name in self.options
            if name not in released
        ]  # fmt: skip
        mistakes += [
            Mistake("request", None, f"{place}.{name}", "A value must not name environment variables.")
            for name, value in self.options.items()
            if isinstance(value, str) and "${" in value
        ]
        if mistakes:
            raise SpecError(mistakes)


def build_request(target: str, agent: str, configuration: Mapping[str, Any]) -> RunRequest:
    """The request that `pipeline.planning` plans; the configuration was checked when it was queued."""
    chosen = RunConfiguration.model_validate(configuration)
    iterations = {"measured": chosen.repetitions, "warmup": chosen.warmup}
    changes = {
        "iterations": {key: value for key, value in iterations.items() if value is not None},
        "params": chosen.options,
        **({} if chosen.seed is None else {"seed": chosen.seed}),
    }
    return RunRequest(
        target,
        {key: value for key, value in changes.items() if value != {}},
        (agent,),
        CaseFilter(chosen.limit, frozenset(chosen.case), frozenset(chosen.tag)),
        chosen.concurrency,
        Budget(chosen.budget_usd, chosen.budget_tokens),
    )
