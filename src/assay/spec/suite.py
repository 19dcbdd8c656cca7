"""A suite file becomes a Suite; every mistake in it and in its files of cases is told at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AliasChoices, Field, PositiveFloat, PositiveInt

from assay.errors import Mistake, SpecError
from assay.model import Benchmark, Case, Iterations, Limits, Rubric, ScorerUse, Suite
from assay.model.suite import SUITE_ITERATIONS
from assay.model.tool import read_tools
from assay.spec import cases, scorers
from assay.spec.agents import secret_mistakes
from assay.spec.document import Document, Place, read_document
from assay.spec.load import validated
from assay.spec.schema import Count, LimitsSection, Names, Section, UntilDecidedSection, Version
from assay.spec.scorers import Scorers, scorer_use


class SuiteIterationsSection(Section):
    """Warm-ups and repetitions of cases."""

    warmup: Count | None = Field(
        None,
        description="Executions of a trial that are run first and not counted. Default: 1, and 0 for agents that are remote "
        "or have a price.",
        examples=[1],
    )
    measured: PositiveInt | None = Field(
        None, description="Repetitions of each case. Default: 3.", examples=[3]
    )


class ReferenceSection(Section):
    """The values that are rated 0.5; half of one is rated higher, twice as much lower."""

    seconds: PositiveFloat | None = Field(None, description="Seconds of one execution.", examples=[1.0])
    tokens: PositiveFloat | None = Field(None, description="Tokens of one execution.", examples=[300])
    usd: PositiveFloat | None = Field(None, description="Cost of one execution.", examples=[0.002])
    cpu_seconds: PositiveFloat | None = Field(
        None, description="CPU seconds of one execution.", examples=[0.5]
    )
    memory_mb: PositiveFloat | None = Field(None, description="Peak memory of one execution.", examples=[256])


class RubricSection(Section):
    """How the ratings of a benchmark are computed."""

    weights: dict[
        Literal["accuracy", "speed", "efficiency", "cost", "reliability"], Annotated[float, Field(ge=0)]
    ] = Field(
        default_factory=dict,
        description="Weights of the dimensions in the overall rating.",
        examples=[{"accuracy": 0.5, "speed": 0.5}],
    )
    reference: ReferenceSection = Field(
        default_factory=lambda: ReferenceSection.model_validate({}),
        description="The values that are rated 0.5.",
        examples=[{"seconds": 1.0, "usd": 0.002}],
    )
    pass_mark: Annotated[float, Field(gt=0, le=1)] = Field(
        0.5, description="A case passes when its score is at least this.", examples=[0.8]
    )


class ConstraintsSection(Section):
    """Other names for the keys of `limits`."""

    time_limit_ms: PositiveFloat | None = Field(
        None, description="`limits.seconds`, in milliseconds.", examples=[20000]
    )
    memory_limit_mb: PositiveFloat | None = Field(None, description="`limits.memory_mb`.", examples=[256])
    token_limit: PositiveFloat | None = Field(None, description="`limits.tokens`.", examples=[1000])
    cost_limit_usd: PositiveFloat | None = Field(None, description="`limits.usd`.", examples=[0.01])


class BenchmarkSection(Section):
    """Cases with scorers and limits: the same questions for every agent."""

    id: str = Field(
        validation_alias=AliasChoices("id", "benchmark_id"),
        description="Name of the benchmark, unique in the suite.",
        examples=["refunds"],
    )
    name: str | None = Field(
        None, description="Title in reports. Default: the id.", examples=["Refund questions"]
    )
    description: str = Field(
        "", description="What the benchmark tests, for readers.", examples=["Amounts to the cent."]
    )
    test_type: Literal["synthetic", "real_world", "stress", "edge_case", "regression"] = Field(
        "synthetic", description="Where the cases come from.", examples=["real_world"]
    )
    experiment: Literal["ask"] = Field("ask", description="How a case is put to the agent.", examples=["ask"])
    cases: str | list[Any] = Field(
        description="A file (.jsonl, .csv, .yaml, .json) or the cases themselves; see Case.",
        examples=["refunds.jsonl"],
    )
    expected_outputs: list[Any] | None = Field(
        None,
        description="Right outputs in the order of the cases, for cases without `expected`.",
        examples=[["12.50", "0"]],
    )
    tools: list[Any] | None = Field(
        None,
        description="Tools for the cases that have none of their own; see Tool.",
        examples=[[{"name": "lookup_order", "parameters": {"type": "object"}}]],
    )
    scorer: Scorers = Field(
        default_factory=list,
        validation_alias=AliasChoices("scorer", "scorers"),
        description="One scorer or several, each a name or a mapping with options. Default: exact.",
        examples=[["numeric", {"name": "contains", "weight": 0.5}]],
    )
    iterations: SuiteIterationsSection | None = Field(
        None, description="How often each case is asked.", examples=[{"warmup": 1, "measured": 3}]
    )
    num_runs: PositiveInt | None = Field(
        None, description="Another name for `iterations.measured`.", examples=[3]
    )
    limits: LimitsSection = Field(
        default_factory=lambda: LimitsSection.model_validate({}),
        description="Upper limits of one execution.",
        examples=[{"seconds": 20, "tokens": 1000, "usd": 0.01}],
    )
    constraints: ConstraintsSection | None = Field(
        None, description="Another way to write `limits`.", examples=[{"time_limit_ms": 20000}]
    )
    rubric: RubricSection = Field(
        default_factory=lambda: RubricSection.model_validate({}),
        validation_alias=AliasChoices("rubric", "scoring_rubric"),
        description="How ratings are computed.",
        examples=[{"pass_mark": 0.8}],
    )
    dataset: dict[str, Any] = Field(
        default_factory=dict,
        description="Facts about the cases: size, complexity, data_source.",
        examples=[{"complexity": "medium", "data_source": "tickets 2025"}],
    )
    metrics_measured: list[str] = Field(
        default_factory=list,
        description="Metrics that the report shows first.",
        examples=[["seconds", "tokens", "usd"]],
    )


class BaselineSection(Section):
    """Scores that an agent reached earlier."""

    agent_id: str = Field(description="Name of the agent.", examples=["careful"])
    scores: dict[str, float] = Field(
        description="Benchmark ids with the score of each.", examples=[{"refunds": 0.9}]
    )


class SuiteFile(Section):
    """A suite: benchmarks that are run and ranked together."""

    suite: str = Field(
        validation_alias=AliasChoices("suite", "suite_id", "suite_name"),
        description="Name of the suite.",
        examples=["support-desk"],
    )
    suite_name: str | None = Field(None, description="Title in reports.", examples=["Support desk"])
    version: Version = Field(
        "1", description="Results of different versions are not compared.", examples=["1.2"]
    )
    category: Literal["speed", "accuracy", "cost", "reliability", "scalability", "comprehensive"] = Field(
        "comprehensive", description="What the suite is about.", examples=["accuracy"]
    )
    description: str = Field(
        "", description="What the suite tests, for readers.", examples=["Questions of customers."]
    )
    benchmarks: list[Any] = Field(
        min_length=1,
        description="The benchmarks; see Benchmark.",
        examples=[[{"id": "refunds", "cases": "refunds.jsonl"}]],
    )
    baseline_scores: list[BaselineSection] = Field(
        default_factory=list,
        description="Scores of earlier agents to compare with.",
        examples=[[{"agent_id": "careful", "scores": {"refunds": 0.9}}]],
    )
    schedule: str | None = Field(None, description="When to run it, in cron syntax.", examples=["0 3 * * 1"])
    created_at: Any = Field(None, description="Date of the suite, for readers.", examples=["2026-01-31"])
    agents: list[Any] = Field(
        default_factory=list,
        description="Names or definitions of agents; see the reference of agents.",
        examples=[["careful", {"name": "fast", "type": "python", "target": "agents.py:fast"}]],
    )
    load: Names = Field(
        default_factory=list,
        description="Python files that define scorers or agents of your own.",
        examples=["scorers.py"],
    )
    tags: Names = Field(default_factory=list, description="Tags of the run.", examples=["nightly"])
    notes: str = Field("", description="Notes for the report.", examples=["before the release"])
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = Field(
        None, description="Seed of the order of trials and of simulated agents.", examples=[42]
    )
    output_dir: str | None = Field(
        None, description="Folder for the JSON result and the Markdown report.", examples=["results"]
    )
    concurrency: PositiveInt = Field(
        1, description="Cases that an agent is asked at the same time.", examples=[8]
    )
    order: Literal["interleaved", "sequential"] = Field(
        "interleaved", description="Order of the trials.", examples=["sequential"]
    )
    until: UntilDecidedSection | None = Field(
        None,
        description="With two agents: stop as soon as it is decided which one is better.",
        examples=[{"decided": "score"}],
    )


class BudgetSection(Section):
    """The run stops when one of these is used up."""

    usd: PositiveFloat | None = Field(None, description="Cost of the whole run.", examples=[2.0])
    tokens: PositiveFloat | None = Field(None, description="Tokens of the whole run.", examples=[100000])


class SuiteSpec(Section):
    """A spec that runs agents through a suite defined elsewhere."""

    suite: str = Field(description="A file, or the name of a suite.", examples=["support-desk"])
    agents: list[Any] = Field(
        default_factory=list,
        description="Names or definitions of agents; see the reference of agents.",
        examples=[["fast", "careful"]],
    )
    name: str | None = Field(None, description="Name of the run. Default: the suite.", examples=["nightly"])
    params: dict[str, Any] = Field(
        default_factory=dict, description="Options of all agents.", examples=[{"temperature": 0}]
    )
    sweep: dict[str, list[Any]] = Field(
        default_factory=dict,
        description="Options of the agents with the values to try.",
        examples=[{"temperature": [0, 0.7]}],
    )
    iterations: SuiteIterationsSection | None = Field(
        None,
        description="How often each case is asked; overrides the suite.",
        examples=[{"warmup": 1, "measured": 3}],
    )
    concurrency: PositiveInt | None = Field(
        None, description="Cases that an agent is asked at the same time.", examples=[8]
    )
    isolation: Literal["process", "inline"] = Field(
        "process", description="In a supervised worker process, or in the runner itself.", examples=["inline"]
    )
    order: Literal["interleaved", "sequential"] = Field(
        "interleaved", description="Order of the trials.", examples=["sequential"]
    )
    executor: str = Field("local", description="Where workers run.", examples=["local"])
    parallelism: PositiveInt = Field(1, description="Workers at the same time.", examples=[2])
    budget: BudgetSection = Field(
        default_factory=lambda: BudgetSection.model_validate({}),
        description="Stop the run when it is used up.",
        examples=[{"usd": 2.0}],
    )
    until: UntilDecidedSection | None = Field(
        None,
        description="With two agents: stop as soon as it is decided which one is better.",
        examples=[{"decided": "score"}],
    )
    load: Names = Field(
        default_factory=list,
        description="Python files that define scorers or agents of your own.",
        examples=["scorers.py"],
    )
    tags: Names = Field(default_factory=list, description="Tags of the run.", examples=["nightly"])
    notes: str = Field("", description="Notes for the report.", examples=["before the release"])
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = Field(
        None, description="Seed of the order of trials and of simulated agents.", examples=[42]
    )
    output_dir: str | None = Field(
        None, description="Folder for the JSON result and the Markdown report.", examples=["results"]
    )


class ReadSuite(NamedTuple):
    """A suite with the mistakes found so far: planning adds its own, so that all are told at once."""

    suite: Suite
    file: SuiteFile
    document: Document
    folder: Path
    places: tuple[Place, ...]
    """Where each benchmark of the suite stands in the document."""
    mistakes: tuple[Mistake, ...]


def read_suite(path: Path) -> ReadSuite:
    """The suite that a file holds; SpecError with every mistake in it and in its cases."""
    read = suite_of(read_document(path), path.resolve().parent)
    if read.mistakes:
        raise SpecError(read.mistakes)
    return read


def suite_of(document: Document, folder: Path) -> ReadSuite:
    if not isinstance(document.value, dict):
        raise SpecError([document.mistake((), "holds no keys. A suite begins: suite: NAME")])
    mistakes = list(document.mistakes)
    file = validated(SuiteFile, document.value, document, (), mistakes) or _without_keys()
    found = {
        place: _benchmark(section, document, place, folder, mistakes)
        for place, section in _sections(document, mistakes)
    }
    mistakes += _duplicates(found, document)
    suite = Suite(
        name=file.suite,
        version=file.version,
        category=file.category,
        benchmarks=tuple(found.values()),
        description=file.description,
        baseline_scores={one.agent_id: one.scores for one in file.baseline_scores},
        schedule=file.schedule,
        hash=_hash([benchmark.hash for benchmark in found.values()]),
    )
    return ReadSuite(suite, file, document, folder, tuple(found), tuple(mistakes))


def _without_keys() -> SuiteFile:
    """Stands in for a file whose own keys are so wrong that only its benchmarks can be looked at."""
    return SuiteFile.model_validate({"suite": "?", "benchmarks": [{}]})


def _sections(document: Document, mistakes: list[Mistake]) -> Iterator[tuple[Place, BenchmarkSection]]:
    written = document.value.get("benchmarks")
    for index, value in enumerate(written if isinstance(written, list) else ()):
        place: Place = ("benchmarks", index)
        if not isinstance(value, dict):
            mistakes.append(document.mistake(place, "must be a mapping that begins: id: NAME"))
            continue
        section = validated(BenchmarkSection, value, document, place, mistakes)
        # What it lacks is noted; with something in its place the rest is looked at all the same.
        section = section or validated(BenchmarkSection, _made_whole(value, index), document, place, [])
        if section is not None:
            yield place, section


def _made_whole(value: dict[str, Any], index: int) -> dict[str, Any]:
    written = value.get("cases")
    rest = {name: one for name, one in value.items() if name != "benchmark_id"}
    return {
        **rest,
        "id": f"?{index}",
        "cases": written if isinstance(written, str | list) else [{"input": "?"}],
    }


def _duplicates(found: dict[Place, Benchmark], document: Document) -> Iterator[Mistake]:
    seen: set[str] = set()
    for place, benchmark in found.items():
        if benchmark.id in seen:
            problem = f"'{benchmark.id}' is the id of another benchmark already."
            yield document.mistake((*place, "id"), problem)
        seen.add(benchmark.id)


def _benchmark(
    section: BenchmarkSection, document: Document, place: Place, folder: Path, mistakes: list[Mistake]
) -> Benchmark:
    found = _cases(section, document, place, folder, mistakes)
    uses = tuple(scorer_use(one, folder) for one in section.scorer) or (ScorerUse("exact"),)
    mistakes += _scores_called_alike(uses, document, place)
    for index, use in enumerate(uses):
        mistakes += secret_mistakes(use.options, document, (*place, "scorer", index))
    limits = _limits(section)
    identity = [
        section.id,
        section.experiment,
        [cases.identity_of(case) for case in found],
        [scorers.identity_of(use) for use in uses],
        [limits.seconds, limits.tokens, limits.usd],
    ]
    return Benchmark(
        id=section.id,
        name=section.name or section.id,
        cases=tuple(found),
        description=section.description,
        test_type=section.test_type,
        experiment=section.experiment,
        scorers=uses,
        iterations=_iterations(section),
        has_default_warmup=section.iterations is None or section.iterations.warmup is None,
        limits=limits,
        rubric=_rubric(section.rubric),
        dataset={"size": len(found), **section.dataset},
        metrics_measured=tuple(section.metrics_measured),
        hash=_hash(identity),
    )


def _scores_called_alike(uses: tuple[ScorerUse, ...], document: Document, place: Place) -> Iterator[Mistake]:
    names = [use.score_name for use in uses]
    for index, name in enumerate(names):
        if name in names[:index]:
            problem = f"Two scores are called '{name}'. Name one of them: as: NAME"
            yield document.mistake((*place, "scorer", index), problem)


def _iterations(section: BenchmarkSection) -> Iterations:
    given, default = section.iterations or SuiteIterationsSection.model_validate({}), SUITE_ITERATIONS
    return Iterations(
        warmup=default.warmup if given.warmup is None else given.warmup,
        measured=section.num_runs or given.measured or default.measured,
    )


def _limits(section: BenchmarkSection) -> Limits:
    limits, other = section.limits, section.constraints or ConstraintsSection.model_validate({})
    seconds = limits.seconds or (other.time_limit_ms / 1000 if other.time_limit_ms else None)
    memory = limits.memory_mb or other.memory_limit_mb
    return Limits(
        seconds,
        int(memory * 2**20) if memory else None,
        limits.tokens or other.token_limit,
        limits.usd or other.cost_limit_usd,
    )


def _rubric(section: RubricSection) -> Rubric:
    reference = {key: value for key, value in section.reference.model_dump().items() if value is not None}
    return Rubric(
        {str(name): weight for name, weight in section.weights.items()}, reference, section.pass_mark
    )


def _cases(
    section: BenchmarkSection, document: Document, place: Place, folder: Path, mistakes: list[Mistake]
) -> list[Case]:
    """The cases of a benchmark, each checked; a bad one is named with its line."""
    before = len(mistakes)
    here = (*place, "cases")
    if isinstance(section.cases, str):
        root = (folder / section.cases).parent
        rows = cases.rows_in_file(folder / section.cases, mistakes)
    else:
        root, rows = folder, cases.rows_written(section.cases, document, here)
    outputs = section.expected_outputs
    if rows and outputs is not None and len(outputs) != len(rows):
        problem = f"There are {len(outputs)} right outputs for {len(rows)} cases."
        mistakes.append(document.mistake((*place, "expected_outputs"), problem))
    found = _with_tools(cases.cases_of(rows, outputs, root, mistakes), section, document, place, mistakes)
    if not found and before == len(mistakes):
        mistakes.append(document.mistake(here, "holds no case."))
    return found


def _with_tools(
    found: list[Case], section: BenchmarkSection, document: Document, place: Place, mistakes: list[Mistake]
) -> list[Case]:
    """Cases without tools of their own get those of the benchmark."""
    if section.tools is None:
        return found
    try:
        tools = read_tools(section.tools)
    except ValueError as problem:
        mistakes.append(document.mistake((*place, "tools"), str(problem)))
        return found
    return [case if case.tools else replace(case, tools=tools) for case in found]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
