"""A suite file becomes a Suite; every mistake in it and in its files of cases is told at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AliasChoices, BeforeValidator, Field, PositiveFloat, PositiveInt

from assay.errors import Mistake, SpecError
from assay.model import Benchmark, Case, Iterations, Limits, Rubric, ScorerUse, Suite
from assay.spec import cases, scorers
from assay.spec.agents import secret_mistakes
from assay.spec.document import Document, Place, read_document
from assay.spec.load import validated
from assay.spec.schema import Count, LimitsSection, Names, Section, UntilDecidedSection
from assay.spec.scorers import Scorers, scorer_use


class SuiteIterationsSection(Section):
    warmup: Count = Field(3, description="Executions of a trial before anything counts.")
    measured: PositiveInt = Field(5, description="Repetitions of each case.")


class ReferenceSection(Section):
    """What counts as 0.5 on a lower-is-better quantity."""

    seconds: PositiveFloat | None = None
    tokens: PositiveFloat | None = None
    usd: PositiveFloat | None = None
    cpu_seconds: PositiveFloat | None = None
    memory_mb: PositiveFloat | None = None


class RubricSection(Section):
    weights: dict[
        Literal["accuracy", "speed", "efficiency", "cost", "reliability"], Annotated[float, Field(ge=0)]
    ] = Field(default_factory=dict, description="Shares of the dimensions in the overall rating.")
    reference: ReferenceSection = Field(default_factory=lambda: ReferenceSection.model_validate({}))
    pass_mark: Annotated[float, Field(gt=0, le=1)] = Field(
        0.5, description="The score from which a case is passed."
    )


class ConstraintsSection(Section):
    """The specification's names for limits."""

    time_limit_ms: PositiveFloat | None = None
    memory_limit_mb: PositiveFloat | None = None
    token_limit: PositiveFloat | None = None
    cost_limit_usd: PositiveFloat | None = None


class BenchmarkSection(Section):
    id: str = Field(validation_alias=AliasChoices("id", "benchmark_id"))
    name: str | None = None
    description: str = ""
    test_type: Literal["synthetic", "real_world", "stress", "edge_case", "regression"] = "synthetic"
    experiment: Literal["ask"] = Field("ask", description="How a case is put to the agent.")
    cases: str | list[Any] = Field(description="A file (.jsonl, .csv, .yaml, .json) or the cases themselves.")
    expected_outputs: list[Any] | None = Field(
        None, description="Right outputs, one a case, where cases have none."
    )
    scorer: Scorers = Field(
        default_factory=list,
        validation_alias=AliasChoices("scorer", "scorers"),
        description="Scorers, with weights.",
    )
    iterations: SuiteIterationsSection | None = None
    num_runs: PositiveInt | None = Field(
        None, description="The specification's name for iterations.measured."
    )
    limits: LimitsSection = Field(default_factory=lambda: LimitsSection.model_validate({}))
    constraints: ConstraintsSection | None = None
    rubric: RubricSection = Field(
        default_factory=lambda: RubricSection.model_validate({}),
        validation_alias=AliasChoices("rubric", "scoring_rubric"),
    )
    dataset: dict[str, Any] = Field(default_factory=dict, description="Facts: size, complexity, data_source.")
    metrics_measured: list[str] = Field(default_factory=list, description="What the report leads with.")


class BaselineSection(Section):
    agent_id: str
    scores: dict[str, float]


class SuiteFile(Section):
    """A suite: benchmarks run and ranked together."""

    suite: str = Field(validation_alias=AliasChoices("suite", "suite_id", "suite_name"))
    suite_name: str | None = Field(None, description="A longer name, for people.")
    version: Annotated[
        str, BeforeValidator(lambda value: str(value) if isinstance(value, (int, float)) else value)
    ] = "1"
    category: Literal["speed", "accuracy", "cost", "reliability", "scalability", "comprehensive"] = (
        "comprehensive"
    )
    description: str = ""
    benchmarks: list[Any] = Field(min_length=1, description="See below.")
    baseline_scores: list[BaselineSection] = Field(default_factory=list)
    schedule: str | None = Field(None, description="Cron; the server runs it.")
    created_at: Any = None
    agents: list[Any] = Field(default_factory=list, description="Names or definitions of agents.")
    load: Names = Field(
        default_factory=list, description="Python files whose scorers and agents are made known."
    )
    tags: Names = Field(default_factory=list)
    notes: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    output_dir: str | None = None
    concurrency: PositiveInt = Field(1, description="Cases put to an agent at a time.")
    order: Literal["interleaved", "sequential"] = "interleaved"
    until: UntilDecidedSection | None = Field(
        None, description="With two agents: end as soon as it is decided which of them is better."
    )


class BudgetSection(Section):
    usd: PositiveFloat | None = None
    tokens: PositiveFloat | None = None


class SuiteSpec(Section):
    """A spec that puts agents through a suite which stands elsewhere."""

    suite: str = Field(description="A file, or the name of a suite.")
    agents: list[Any] = Field(default_factory=list, description="Names or definitions of agents.")
    name: str | None = None
    params: dict[str, Any] = Field(default_factory=dict, description="Options of the agents.")
    sweep: dict[str, list[Any]] = Field(default_factory=dict, description="Options of the agents to vary.")
    iterations: SuiteIterationsSection | None = None
    concurrency: PositiveInt | None = Field(None, description="Cases put to an agent at a time.")
    isolation: Literal["process", "inline"] = "process"
    order: Literal["interleaved", "sequential"] = "interleaved"
    executor: str = "local"
    parallelism: PositiveInt = 1
    budget: BudgetSection = Field(default_factory=lambda: BudgetSection.model_validate({}))
    until: UntilDecidedSection | None = Field(
        None, description="With two agents: end as soon as it is decided which of them is better."
    )
    load: Names = Field(default_factory=list)
    tags: Names = Field(default_factory=list)
    notes: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    output_dir: str | None = None


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
    given = section.iterations or SuiteIterationsSection.model_validate({})
    return Iterations(warmup=given.warmup, measured=section.num_runs or given.measured)


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
    found = cases.cases_of(rows, outputs, root, mistakes)
    if not found and before == len(mistakes):
        mistakes.append(document.mistake(here, "holds no case."))
    return found


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
