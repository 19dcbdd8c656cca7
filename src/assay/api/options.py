"""The keywords of the Python API, checked: unknown ones are refused, and so are values of a wrong type or range."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from assay.errors import OptionError, PlanError, did_you_mean

Function = Callable[..., Any]
"""An agent or a scorer of your own: sync, async, or (agents only) a generator."""
AgentGiven = str | Function | Mapping[str, Any]
"""The name of an agent, a function, or a definition as in an `agents:` file."""
ScorerGiven = str | Function | Mapping[str, Any]
CaseGiven = Mapping[str, Any]
"""A case as in a suite: `input`, and `expected` where there is a right output."""
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]
_STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)


class RunOptions(TypedDict, total=False):
    """What `assay.run` takes: the options of the command `assay run`, and objects."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    agents: str | Function | Sequence[AgentGiven] | Mapping[str, Function | Mapping[str, Any]]
    cases: str | Path | Sequence[str] | Sequence[CaseGiven]
    scorer: ScorerGiven | Sequence[ScorerGiven]
    suite: str
    limits: Mapping[str, float]
    limit: Count
    tags: str | Sequence[str]
    failed: str
    repetitions: Count
    warmup: Annotated[int, Field(ge=0)]
    processes: Count
    concurrency: Count
    isolation: Literal["process", "cold", "inline"]
    executor: str
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    params: Mapping[str, Any]
    sweep: Mapping[str, Sequence[Any]]
    budget_usd: Annotated[float, Field(gt=0)]
    budget_tokens: Count
    until_decided: str
    tolerance: Share
    max_pairs: Annotated[int, Field(ge=10, le=100_000)]
    group: str | Sequence[str]
    load: str | Path | Sequence[str | Path]
    report: str | Sequence[str]
    out: str | Path
    resume: str
    progress: bool
    db: str | Path


class CompareOptions(TypedDict, total=False):
    """What `assay.compare` takes beside the sides: the options of the command `assay compare`."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    metrics: str | Sequence[str]
    suite: str
    type: Literal["head_to_head", "multi_agent", "time_series"]
    tolerance: Share
    db: str | Path


class GateOptions(TypedDict, total=False):
    """What `assay.gate` takes beside the run: the options of the command `assay gate`."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    baseline: str
    tolerance: Share | Mapping[str, Share]
    metrics: str | Sequence[str]
    db: str | Path


class LeaderboardOptions(TypedDict, total=False):
    """What `assay.leaderboard` takes: the options of the command `assay leaderboard`."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    suite: str
    category: str
    metric: Literal["overall", "accuracy", "speed", "efficiency", "cost", "reliability"]
    limit: Count
    days: Count
    since: datetime
    tag: str
    db: str | Path


INSTEAD = {
    "iterations": "repetitions and warmup",
    "agent": "agents",
    "case": "cases",
    "scorers": "scorer",
    "output_dir": "out",
    "tag": "tags",
    "set": "params",
    "metric": "metrics",
}
"""Words of the command line and of spec files, and what the Python API calls them."""


_ACCEPTED = {
    "agents": "names, functions or definitions, or a mapping of names to functions or definitions",
    "cases": "ids of cases of the target or, without a target, mappings with 'input', or a file of them",
    "scorer": "the name of a scorer, a function, a definition, or a list of these",
    "tolerance": "a share such as 0.05, or a mapping of metrics to shares",
}


def check_options(function: str, kind: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are set; None counts as not set. OptionError for unknown keywords, PlanError for bad values."""
    known = sorted(kind.__annotations__)
    for name in options:
        if name not in known:
            raise OptionError(f"{function}() has no keyword '{name}'. {_instead_of(name, known)}")
    given = {name: value for name, value in options.items() if value is not None}
    try:
        _adapter(kind).validate_python(given)
    except ValidationError as error:
        raise PlanError("\n".join(_problems(function, given, error))) from None
    return given


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _instead_of(name: str, known: Sequence[str]) -> str:
    if (other := INSTEAD.get(name)) is not None and other.split()[0] in known:
        return f"Use {other}."
    return did_you_mean(name, known) or f"It takes: {', '.join(known)}."


def _problems(function: str, given: Mapping[str, Any], error: ValidationError) -> Iterable[str]:
    """One problem a keyword: of a union pydantic reports every branch."""
    problems: dict[str, list[str]] = {}
    for found in error.errors(include_url=False):
        problems.setdefault(str(found["loc"][0]), []).append(found["msg"])
    for name, messages in problems.items():
        shown = repr(given[name])
        accepted = f"should be {_ACCEPTED.get(name, 'one text, or a list of texts')}"
        what = messages[0].removeprefix("Input ") if len(messages) == 1 else accepted
        yield f"{function}({name}={shown[:60]}): {name} {what}."


def as_list(value: Any) -> list[Any]:
    """One thing, or several of them, as a list."""
    if value is None:
        return []
    is_one = isinstance(value, str | Path | Mapping) or callable(value)
    return [value] if is_one else list(value)
