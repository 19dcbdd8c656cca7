"""The keywords of the Python API and their types.

Each function of the API has a TypedDict here. Type checkers and editors read it, and `check_options` validates a call by it
at run time: unknown keywords are refused, and so are values of a wrong type or range.
"""

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
"""A case as in a suite: `input`, and `expected` where there is a correct output."""
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]
_STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)


class RunOptions(TypedDict, total=False):
    """Keywords of `assay.run`: the options of the command `assay run`, which here may also be Python objects."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    agents: str | Function | Sequence[AgentGiven] | Mapping[str, Function | Mapping[str, Any]]
    """Names, functions or definitions; or a mapping of names to functions or definitions. Default: all agents of the target."""
    cases: str | Path | Sequence[str] | Sequence[CaseGiven]
    """With a target: ids of the cases to run. Without one: the cases themselves, or a file of them."""
    scorer: ScorerGiven | Sequence[ScorerGiven]
    """With your own `cases`: names of scorers, definitions, or functions of the output and the expected output."""
    suite: str
    """With your own `cases`: the name under which leaderboards rank them."""
    limits: Mapping[str, float]
    """With your own `cases`: limits of one execution, `seconds`, `memory_mb`, `tokens` and `usd`."""
    limit: Count
    """Only the first N cases of each benchmark."""
    tags: str | Sequence[str]
    """Only cases with one of these tags."""
    failed: str
    """Only cases that did not pass in this run."""
    repetitions: Count
    """Measured executions of each case, or in each process."""
    warmup: Annotated[int, Field(ge=0)]
    """Warm-up executions."""
    processes: Count
    """Fresh processes of an experiment."""
    concurrency: Count
    """Cases that an agent answers at the same time."""
    isolation: Literal["process", "cold", "inline"]
    """How executions are isolated from each other; functions that exist only in this process run inline."""
    executor: str
    """Executor that starts the workers."""
    sandbox: str
    """Sandbox for commands and code that a model wrote. Default: the variable ASSAY_SANDBOX, or auto."""
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    """Seed for the order of executions and for experiments."""
    params: Mapping[str, Any]
    """Params of the experiment, or options of the agents."""
    sweep: Mapping[str, Sequence[Any]]
    """Axes: each name with its values."""
    budget_usd: Annotated[float, Field(gt=0)]
    """Stop the run once it has cost this much."""
    budget_tokens: Count
    """Stop the run once it has used this many tokens."""
    until_decided: str
    """With two agents or trials: stop as soon as this metric decides which is better."""
    tolerance: Share
    """With `until_decided`: treat differences within this share as no difference."""
    max_pairs: Annotated[int, Field(ge=10, le=100_000)]
    """With `until_decided`: the maximum number of pairs."""
    group: str | Sequence[str]
    """Run only this group, or these groups, of the spec's experiments."""
    label: str | Sequence[str]
    """Labels of the run: all are its tags, and the first is its title in lists and reports."""
    load: str | Path | Sequence[str | Path]
    """Python files whose experiments, agents and scorers can be used by name."""
    report: str | Sequence[str]
    """Formats of reports to write: html, md, json, csv, png, junit, or a plug-in's name."""
    out: str | Path
    """Folder for the result and the reports."""
    resume: str
    """Instead of a target: an interrupted run to complete."""
    progress: bool
    """Show progress on standard error."""
    db: str | Path
    """URL of the database, or the path of a SQLite file."""


class CompareOptions(TypedDict, total=False):
    """Keywords of `assay.compare`: the options of the command `assay compare`."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    metrics: str | Sequence[str]
    """Only these metrics."""
    suite: str
    """For agents: use their results on this suite."""
    type: Literal["head_to_head", "multi_agent", "time_series"]
    """Default: depends on the number of sides."""
    tolerance: Share
    """Differences within this share count as the same. Default: 0.03."""
    db: str | Path
    """URL of the database, or the path of a SQLite file."""


class GateOptions(TypedDict, total=False):
    """Keywords of `assay.gate`: the options of the command `assay gate`."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    baseline: str
    """Name of the baseline, or a result file. Default: main."""
    tolerance: Share | Mapping[str, Share]
    """Largest loss, as a share, that still passes: for all metrics, or by metric."""
    max_lost: int
    """Fail when more cases than this are lost: passed in every repetition before and in none now."""
    require: str | Sequence[str]
    """Limits that every trial must meet, as in "accuracy>=0.9,p95_seconds<2"; they need no baseline."""
    metrics: str | Sequence[str]
    """Judge only these metrics."""
    rerun_baseline: bool
    """Run the agents of the baseline and of the run again, interleaved in one new run, and judge that."""
    repetitions: Count
    """With rerun_baseline: rounds of a suite, or processes of an experiment. Default: as in the run."""
    progress: bool
    """With rerun_baseline: show the progress of the new run on standard error."""
    db: str | Path
    """URL of the database, or the path of a SQLite file."""


class LeaderboardOptions(TypedDict, total=False):
    """Keywords of `assay.leaderboard`: the options of the command `assay leaderboard`."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    suite: str
    """Only results of this suite."""
    category: str
    """Only results of suites in this category."""
    metric: Literal["overall", "accuracy", "speed", "efficiency", "cost", "reliability"]
    """What to rank by. Default: overall."""
    limit: Count
    """The maximum number of rows. Default: 20."""
    days: Count
    """Only runs of the last N days."""
    since: datetime
    """Only runs since this time; without a zone it is UTC."""
    tag: str
    """Only runs with this tag."""
    db: str | Path
    """URL of the database, or the path of a SQLite file."""


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


@cache
def _make_adapter(kind: Any) -> TypeAdapter[Any]:
    """Built at the first call of each function and kept, because building a validator is the slow part."""
    return TypeAdapter(kind)


def check_options(function: str, kind: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are set; None counts as not set. OptionError for unknown keywords, PlanError for bad values."""
    # Unknown keywords first, as Python itself would refuse them. They are looked for by hand because pydantic's message does not
    # know what the same thing is called here.
    known = sorted(kind.__annotations__)
    for name in options:
        if name not in known:
            other = INSTEAD.get(name, "")
            if other and other.split()[0] in known:
                hint = f"Use {other}."
            else:
                hint = did_you_mean(name, known) or f"It takes: {', '.join(known)}."
            raise OptionError(f"{function}() has no keyword '{name}'. {hint}")
    given = {name: value for name, value in options.items() if value is not None}
    try:
        _make_adapter(kind).validate_python(given)
    except ValidationError as error:
        raise PlanError("\n".join(_problems(function, given, error))) from None
    return given


def _problems(function: str, given: Mapping[str, Any], error: ValidationError) -> Iterable[str]:
    """One problem for each keyword; of a union pydantic reports one for every branch."""
    problems: dict[str, list[str]] = {}
    for problem in error.errors(include_url=False):
        problems.setdefault(str(problem["loc"][0]), []).append(problem["msg"])
    for name, messages in problems.items():
        text = repr(given[name])
        accepted = f"should be {_ACCEPTED.get(name, 'one text, or a list of texts')}"
        what = messages[0].removeprefix("Input ") if len(messages) == 1 else accepted
        yield f"{function}({name}={text[:60]}): {name} {what}."


def as_list(value: Any) -> list[Any]:
    """One thing, or several of them, as a list."""
    if value is None:
        return []
    is_one = isinstance(value, str | Path | Mapping) or callable(value)
    return [value] if is_one else list(value)
