"""A suite file becomes a `Suite`.

The first half declares the keys, as `schema` does for specs: `SuiteFile` and `BenchmarkSection` for a suite, `SuiteSpec` for a spec that
runs agents through a suite defined elsewhere. Class docstrings and descriptions there end up in the JSON schema and the reference
pages. The second half makes the nouns. `suite_of` reads each benchmark with its cases as far as possible and collects every mistake;
it does not import scorers, agents or experiments, which `plan.target` checks afterwards.

A benchmark has a hash of what was asked: cases, scorers and limits that can change a score. Results are compared only where it is the
same, and it is stored with every run, so what goes into it and in which order must not change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from assay.errors import Mistake, SpecError, did_you_mean, format_unknown_name
from assay.model import Benchmark, Case, Cleanup, InstrumentUse, Iterations, Limits, Rubric, ScorerUse, Suite
from assay.model.suite import ASK, SUITE_ITERATIONS
from assay.model.tool import read_tools
from assay.spec import cases, scorers
from assay.spec.agents import secret_mistakes
from assay.spec.cron import Schedule
from assay.spec.document import Document, Place, read_document
from assay.spec.files import resolve_experiment
from assay.spec.read import KeyOrigin, validate_model
from assay.spec.requirements import parse_requirements, unknown_benchmark, unknown_name
from assay.spec.schema import (
    Command,
    Count,
    ExecutorName,
    Instrument,
    LimitsSection,
    Names,
    Notes,
    Number,
    OutputDir,
    Section,
    Seed,
    Tags,
    TrialOrder,
    UntilDecidedSection,
    Version,
    no_items,
)
from assay.spec.scorers import Scorers, scorer_use
from assay.units import format_count

# Keys that suites and specs of suites have, with their defaults and descriptions.
_Files = Annotated[
    Names,
    Field(
        default_factory=no_items,
        description="Python files that define scorers or agents of your own.",
        examples=["scorers.py"],
    ),
]
_SuiteSeed = Annotated[
    Seed | None,
    Field(None, description="Seed for the order of trials and for simulated agents.", examples=[42]),
]
_Until = Annotated[
    UntilDecidedSection | None,
    Field(
        None,
        description="With two agents: stop as soon as it is decided which one is better.",
        examples=[{"decided": "score"}],
    ),
]


class SuiteIterationsSection(Section):
    """Warm-ups and repetitions of cases."""

    warmup: Count | None = Field(
        None,
        description="Warm-up executions of a trial, which are not counted. Default: 1, or 0 for agents that are remote "
        "or recorded, or have a price other than `free`.",
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


class DatasetSection(BaseModel):
    """Facts about the cases; you may add keys of your own."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False, defer_build=True)

    size: PositiveInt | None = Field(
        None, description="Number of cases, checked against the cases. Default: counted.", examples=[50]
    )
    complexity: Literal["low", "medium", "high", "extreme"] | None = Field(
        None, description="How hard the cases are.", examples=["medium"]
    )
    data_source: str | None = Field(None, description="Where the cases come from.", examples=["tickets 2025"])

    @model_validator(mode="after")
    def _check_own_keys(self) -> DatasetSection:
        for key, value in (self.model_extra or {}).items():
            if near := did_you_mean(key, type(self).model_fields):
                raise ValueError(f"'{key}' is an unknown key. {near}")
            if not isinstance(value, str | int | float | bool):
                raise ValueError(f"'{key}' must be text, a number, true or false.")
        return self


class BenchmarkSection(Section):
    """Cases with scorers and limits, or an experiment: the same question for every agent."""

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
        "synthetic",
        description="What kind of cases these are: a label for readers that changes no result.",
        examples=["real_world"],
    )
    experiment: str = Field(
        ASK,
        description="`ask` puts each case to the agent. Any other experiment (a name, `module:attribute` or "
        "`file.py::name`) tests code, or the agents if it takes agents.",
        examples=["pragma_profile"],
    )
    params: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings of an experiment other than `ask`.",
        examples=[{"num_records": 1000}],
    )
    sweep: dict[str, list[Any]] = Field(
        default_factory=dict,
        description="Settings of an experiment other than `ask` to vary, each with its values.",
        examples=[{"profile": ["balanced", "performance"]}],
    )
    processes: Number = Field(
        1, description="Fresh processes of an experiment other than `ask`.", examples=[10]
    )
    instrumentation: list[Instrument] | None = Field(
        None,
        description="Instruments, each a name or a mapping with options. Default: those of the suite.",
        examples=[["psutil", {"name": "cprofile", "top_n": 20}]],
    )
    cases: str | list[Any] | None = Field(
        None,
        description="A file (.jsonl, .csv, .yaml, .json) or the cases themselves; see Case. Required for `ask`; for "
        "any other experiment, the `input` of a case is a mapping of params.",
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
        default_factory=no_items,
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
        description="Limits of one execution.",
        examples=[{"seconds": 20, "tokens": 1000, "usd": 0.01}],
    )
    cleanup: Command | None = Field(
        None,
        description="For an experiment other than `ask`: command, as a list of arguments, that runs in the folder of "
        "this file after a process was killed for time or memory, or crashed. No shell is involved.",
        examples=[["rm", "-rf", "scratch"]],
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
    dataset: DatasetSection = Field(
        default_factory=lambda: DatasetSection.model_validate({}),
        description="Facts about the cases, for readers.",
        examples=[{"complexity": "medium", "data_source": "tickets 2025"}],
    )
    metrics_measured: list[str] = Field(
        default_factory=no_items,
        description="Metrics that reports show first, in this order.",
        examples=[["seconds", "tokens", "usd"]],
    )


def _check_overall(value: float) -> float:
    """The value, unless it is no rating. Pydantic calls this; a rating of 90 is probably meant as 90 of 100."""
    if not 0 <= value <= 1:
        hint = f" Write {value / 100:g} for {value:g} of 100." if 1 < value <= 100 else ""
        raise ValueError(f"must be an overall rating from 0 to 1, not {value:g}.{hint}")
    return value


class BaselineSection(Section):
    """Overall ratings that an agent is known to have."""

    agent_id: Annotated[str, Field(min_length=1)] = Field(
        description="Name of the agent.", examples=["careful"]
    )
    scores: dict[str, Annotated[float, AfterValidator(_check_overall)]] = Field(
        description="Benchmark ids with the agent's overall rating on each, 0 to 1.",
        examples=[{"refunds": 0.9}],
    )


def _check_schedule(text: str) -> str:
    """The text, unless it is no cron expression. Pydantic calls this and puts the key before the message."""
    try:
        Schedule.parse(text)
    except ValueError as error:
        raise ValueError(f"is not a cron schedule: {error}.") from None
    return text


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
        default_factory=no_items,
        description="Overall ratings to compare with: `deviation_from_baseline` is the overall rating divided by this one, minus 1.",
        examples=[[{"agent_id": "careful", "scores": {"refunds": 0.9}}]],
    )
    schedule: Annotated[str, AfterValidator(_check_schedule)] | None = Field(
        None,
        description="When `assay serve` runs the suite, in cron syntax and in the time zone of `assay.toml` "
        "(`timezone` under `[server]`, else UTC). `assay suite show` prints the next time, `assay suite list --due` "
        "the suites that are due.",
        examples=["0 3 * * 1"],
    )
    require: Names = Field(
        default_factory=no_items,
        description="Requirements that `assay gate` checks for every trial, with or without a baseline: "
        "NAME>=NUMBER, also with <=, > or <, and with BENCHMARK: before it for one benchmark.",
        examples=[["accuracy>=0.9", "p95_seconds<2"]],
    )
    created_at: str | None = Field(
        None, description="Date of the suite, for readers.", examples=["2026-01-31"]
    )
    agents: list[Any] = Field(
        default_factory=no_items,
        description="Names or definitions of agents; see the reference of agents.",
        examples=[["careful", {"name": "fast", "type": "python", "target": "agents.py:fast"}]],
    )
    instrumentation: list[Instrument] = Field(
        default_factory=no_items,
        description="Instruments of every benchmark that has none of its own.",
        examples=[["psutil", "cprofile"]],
    )
    load: _Files
    tags: Tags
    notes: Notes
    seed: _SuiteSeed
    output_dir: OutputDir
    concurrency: PositiveInt = Field(1, description="Maximum concurrent cases per agent.", examples=[8])
    order: TrialOrder
    until: _Until


class BudgetSection(Section):
    """The run stops when one of these is used up."""

    usd: PositiveFloat | None = Field(None, description="Cost of the whole run.", examples=[2.0])
    tokens: PositiveFloat | None = Field(None, description="Tokens of the whole run.", examples=[100000])


class SuiteSpec(Section):
    """A spec that runs agents through a suite defined elsewhere."""

    suite: str = Field(description="A file, or the name of a suite.", examples=["support-desk"])
    agents: list[Any] = Field(
        default_factory=no_items,
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
        None, description="Maximum concurrent cases per agent.", examples=[8]
    )
    isolation: Literal["process", "inline"] = Field(
        "process", description="In a supervised worker process, or in the runner itself.", examples=["inline"]
    )
    order: TrialOrder
    executor: ExecutorName
    parallelism: PositiveInt | None = Field(
        None,
        description="Concurrent workers. Default: 1, or the number of slots of a cluster.",
        examples=[2],
    )
    budget: BudgetSection = Field(
        default_factory=lambda: BudgetSection.model_validate({}),
        description="Stop the run when it is used up.",
        examples=[{"usd": 2.0}],
    )
    until: _Until
    load: _Files
    tags: Tags
    notes: Notes
    seed: _SuiteSeed
    output_dir: OutputDir


class ReadSuite(NamedTuple):
    """A suite with the mistakes found so far: planning adds its own, so that all are reported at once."""

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
    """The suite that a document holds, with every mistake in it and in its files of cases; paths count from `folder`.

    SpecError only where there is nothing to read. Otherwise the mistakes are part of the result, and the suite must not be
    used if there are any: what is wrong has been left out of it or replaced.
    """
    if not isinstance(document.value, dict):
        raise SpecError([document.mistake((), "has no keys. A suite starts with: suite: NAME")])
    mistakes = list(document.mistakes)
    file = validate_model(SuiteFile, document.value, KeyOrigin(document), mistakes)
    # Where the keys of the file are so wrong that nothing is left of them, its benchmarks are checked all the same.
    file = file or SuiteFile.model_validate({"suite": "?", "benchmarks": [{}]})
    by_place: dict[Place, Benchmark] = {}
    for place, section in _sections(document, mistakes):
        if section.instrumentation is None:
            section = section.model_copy(update={"instrumentation": file.instrumentation})
        by_place[place] = _benchmark(section, document, place, folder, mistakes)
    benchmarks = tuple(by_place.values())
    mistakes += _duplicates(by_place, document)
    mistakes += _baseline_mistakes(file, benchmarks, document)
    mistakes += _requirement_mistakes(file, benchmarks, document)
    suite = Suite(
        name=file.suite,
        version=file.version,
        category=file.category,
        benchmarks=benchmarks,
        description=file.description,
        title=file.suite_name or "",
        created_at=file.created_at or "",
        baseline_scores={known.agent_id: known.scores for known in file.baseline_scores},
        schedule=file.schedule,
        require=tuple(file.require),
        hash=_hash([benchmark.hash for benchmark in benchmarks]),
    )
    return ReadSuite(suite, file, document, folder, tuple(by_place), tuple(mistakes))


def _sections(document: Document, mistakes: list[Mistake]) -> Iterator[tuple[Place, BenchmarkSection]]:
    """The benchmarks of the file and where they stand, each validated as far as possible."""
    written = document.value.get("benchmarks")
    for index, value in enumerate(written if isinstance(written, list) else ()):
        place: Place = ("benchmarks", index)
        if not isinstance(value, dict):
            mistakes.append(document.mistake(place, "must be a mapping that starts with: id: NAME"))
            continue
        section = validate_model(BenchmarkSection, value, KeyOrigin(document, place), mistakes)
        # The missing keys have been reported; with stand-ins for them, the rest can be checked as well.
        section = section or validate_model(
            BenchmarkSection, _fill_required_keys(value, index), KeyOrigin(document, place), []
        )
        if section is not None:
            yield place, section


def _fill_required_keys(value: dict[str, Any], index: int) -> dict[str, Any]:
    """A benchmark with stand-ins for the keys that it must have, so that its other keys are checked before the user runs
    again."""
    written = value.get("cases")
    rest = {name: item for name, item in value.items() if name != "benchmark_id"}
    return {
        **rest,
        "id": f"?{index}",
        "cases": written if isinstance(written, str | list) else [{"input": "?"}],
    }


def _baseline_mistakes(
    file: SuiteFile, benchmarks: Iterable[Benchmark], document: Document
) -> Iterator[Mistake]:
    """Scores of benchmarks that the suite does not have, and agents with two entries, of which only one could count."""
    ids = [benchmark.id for benchmark in benchmarks]
    seen: set[str] = set()
    for index, known in enumerate(file.baseline_scores):
        place: Place = ("baseline_scores", index)
        if known.agent_id in seen:
            problem = f"'{known.agent_id}' already has scores."
            yield document.mistake((*place, "agent_id"), problem, "Put them into one entry.")
        seen.add(known.agent_id)
        for name in known.scores:
            if name not in ids:
                problem = format_unknown_name(name, "benchmarks of this suite", ids)
                yield document.mistake((*place, "scores", name), problem)


def _requirement_mistakes(
    file: SuiteFile, benchmarks: Sequence[Benchmark], document: Document
) -> Iterator[Mistake]:
    """Metrics that only this suite knows are those of its experiments and of `metrics_measured`."""
    metrics = {name for benchmark in benchmarks for name in benchmark.metrics_measured}
    has_code = any(not benchmark.asks_agents for benchmark in benchmarks)
    is_list = isinstance(document.value.get("require"), list)
    for index, text in enumerate(file.require):
        place: Place = ("require", index) if is_list else ("require",)
        try:
            requirements = parse_requirements(text)
        except ValueError as error:
            yield document.mistake(place, str(error))
            continue
        for requirement in requirements:
            if not has_code and (problem := unknown_name(requirement.name, metrics)):
                yield document.mistake(place, problem)
        if problem := unknown_benchmark(requirements, [benchmark.id for benchmark in benchmarks]):
            yield document.mistake(place, problem)


def _duplicates(benchmarks: dict[Place, Benchmark], document: Document) -> Iterator[Mistake]:
    seen: set[str] = set()
    for place, benchmark in benchmarks.items():
        if benchmark.id in seen:
            problem = f"'{benchmark.id}' is already the id of another benchmark."
            yield document.mistake((*place, "id"), problem)
        seen.add(benchmark.id)


def _benchmark(
    section: BenchmarkSection, document: Document, place: Place, folder: Path, mistakes: list[Mistake]
) -> Benchmark:
    """Build one benchmark; what is wrong with its cases, scorers and other keys is added to `mistakes`."""
    own_cases = _cases(section, document, place, folder, mistakes)
    mistakes += _check_misplaced_keys(section, document, place)
    uses = tuple(scorer_use(use, folder) for use in section.scorer)
    # The default scorer is for answers. What an experiment does is judged only where the cases say what is right.
    if not uses and (section.experiment == ASK or any(case.expected is not None for case in own_cases)):
        uses = (ScorerUse("exact"),)
    if (size := section.dataset.size) is not None and size != len(own_cases) and own_cases:
        number = "there is 1 case" if len(own_cases) == 1 else f"there are {len(own_cases)} cases"
        hint = "Leave it out: Assay counts the cases."
        mistakes.append(document.mistake((*place, "dataset", "size"), f"is {size}, but {number}.", hint))
    names = [use.score_name for use in uses]
    for index, use in enumerate(uses):
        if use.score_name in names[:index]:
            problem = f"Two scores are called '{use.score_name}'. Name one of them: as: NAME"
            mistakes.append(document.mistake((*place, "scorer", index), problem))
        mistakes += secret_mistakes(use.options, document, (*place, "scorer", index))
    # What the hash leaves out does not change a score: the memory limit, repetitions, instruments, titles, and the rubric,
    # by which results can be rated again. Limits of time, tokens and cost are in it, as a case that exceeds one fails.
    limits = _limits(section)
    identity = [
        [scorers.identity_of(use) for use in uses],
        [limits.seconds, limits.tokens, limits.usd],
        *([section.params, section.sweep] if section.experiment != ASK else []),
    ]
    return Benchmark(
        id=section.id,
        name=section.name or section.id,
        cases=tuple(own_cases),
        description=section.description,
        test_type=section.test_type,
        experiment=resolve_experiment(section.experiment, folder),
        params=section.params,
        sweep=section.sweep,
        processes=section.processes,
        instruments=tuple(
            InstrumentUse(use.name, dict(use.model_extra or {})) for use in section.instrumentation or ()
        ),
        scorers=uses,
        iterations=_iterations(section),
        has_default_warmup=section.iterations is None or section.iterations.warmup is None,
        limits=limits,
        cleanup=Cleanup(tuple(section.cleanup), str(folder.resolve())) if section.cleanup else None,
        rubric=Rubric(
            {str(name): weight for name, weight in section.rubric.weights.items()},
            section.rubric.reference.model_dump(exclude_none=True),
            section.rubric.pass_mark,
        ),
        dataset=(
            ({"size": len(own_cases)} if own_cases else {}) | section.dataset.model_dump(exclude_none=True)
        ),
        metrics_measured=tuple(section.metrics_measured),
        hash=_hash_benchmark([section.id, section.experiment], own_cases, identity),
    )


def _check_misplaced_keys(section: BenchmarkSection, document: Document, place: Place) -> Iterator[Mistake]:
    """Keys that mean something only for an experiment other than `ask`."""
    if section.experiment != ASK:
        return
    for key in ("params", "sweep", "processes", "cleanup"):
        if key in section.model_fields_set:
            hint = "Write options of an agent into its definition." if key in ("params", "sweep") else ""
            yield document.mistake((*place, key), "works only with an experiment other than 'ask'.", hint)


def _iterations(section: BenchmarkSection) -> Iterations:
    """Repetitions by their two names, and the defaults of suites for what is not set."""
    own, default = section.iterations or SuiteIterationsSection.model_validate({}), SUITE_ITERATIONS
    return Iterations(
        warmup=default.warmup if own.warmup is None else own.warmup,
        measured=section.num_runs or own.measured or default.measured,
    )


def _limits(section: BenchmarkSection) -> Limits:
    """The limits from `limits` or, for keys that it lacks, from `constraints`."""
    limits, other = section.limits, section.constraints or ConstraintsSection.model_validate({})
    return LimitsSection.model_construct(
        seconds=limits.seconds or (other.time_limit_ms / 1000 if other.time_limit_ms else None),
        memory_mb=limits.memory_mb or other.memory_limit_mb,
        tokens=limits.tokens or other.token_limit,
        usd=limits.usd or other.cost_limit_usd,
    ).to_noun()


def _cases(
    section: BenchmarkSection, document: Document, place: Place, folder: Path, mistakes: list[Mistake]
) -> list[Case]:
    """The cases of a benchmark, each checked; a bad one is named with its line."""
    before = len(mistakes)
    here = (*place, "cases")
    if section.cases is None:
        if section.experiment == ASK:
            mistakes.append(document.mistake(here, "is missing.", "Add: cases: FILE.jsonl"))
        return []
    if isinstance(section.cases, str):
        root = (folder / section.cases).parent
        rows: Iterable[cases.WrittenCase] = cases.rows_in_file(folder / section.cases, mistakes)
    else:
        root, rows = folder, cases.rows_written(section.cases, document, here)
    # Only here are the rows needed all at once, to compare their number.
    outputs = section.expected_outputs
    if outputs is not None:
        rows = list(rows)
        if rows and len(outputs) != len(rows):
            problem = f"has {format_count(len(outputs), 'output')} for {format_count(len(rows), 'case')}."
            mistakes.append(document.mistake((*place, "expected_outputs"), problem))
    origins: dict[str, cases.Origin] = {}
    read = cases.cases_of(rows, outputs, root, mistakes, origins)
    document.cases |= {(section.id, case): origin for case, origin in origins.items()}
    read = _with_tools(read, section, document, place, mistakes)
    # If every case was wrong, that there are none is no further mistake.
    if not read and before == len(mistakes):
        mistakes.append(document.mistake(here, "has no cases."))
    return read


def _with_tools(
    plain: list[Case], section: BenchmarkSection, document: Document, place: Place, mistakes: list[Mistake]
) -> list[Case]:
    """Cases without tools of their own get those of the benchmark."""
    if section.tools is None:
        return plain
    try:
        tools = read_tools(section.tools)
    except ValueError as problem:
        mistakes.append(document.mistake((*place, "tools"), str(problem)))
        return plain
    return [case if case.tools else replace(case, tools=tools) for case in plain]


def _hash(value: Any) -> str:
    """Sixteen hexadecimal digits, enough to tell the definitions of one project apart."""
    return hashlib.sha256(_to_json(value).encode()).hexdigest()[:16]


def _hash_benchmark(before: list[Any], own_cases: Iterable[Case], after: list[Any]) -> str:
    """`_hash` of the list [*before, [identities of the cases], *after], without holding the identities of all cases at once."""
    digest = hashlib.sha256(f"{_to_json(before)[:-1]}, [".encode())
    for number, case in enumerate(own_cases):
        digest.update(f"{', ' if number else ''}{_to_json(cases.identity_of(case))}".encode())
    digest.update(f"], {_to_json(after)[1:]}".encode())
    return digest.hexdigest()[:16]


def _to_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
