"""A suite file becomes a Suite; every mistake in it and in its files of cases is told at once."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, PositiveFloat, PositiveInt

from assay.errors import Mistake, SpecError
from assay.model import Benchmark, Case, Iterations, Limits, Rubric, ScorerUse, Suite, Turn
from assay.spec.document import Document, Place, read_document, read_text
from assay.spec.load import validated
from assay.spec.schema import Count, LimitsSection, Names, Section

CATEGORIES = ("speed", "accuracy", "cost", "reliability", "scalability", "comprehensive")
DIMENSIONS = ("accuracy", "speed", "efficiency", "cost", "reliability")

_INPUT = ("input", "question", "prompt")
_EXPECTED = ("expected", "answer", "target", "ideal")
_OWN = frozenset({"id", *_INPUT, *_EXPECTED, "turns", "tools", "files", "tags"})


class ScorerSection(Section):
    """A scorer by name; `as` names its score, the other keys are its options."""

    model_config = ConfigDict(extra="allow", strict=True)

    name: str
    weight: PositiveFloat = Field(1.0, description="Its share in the score of a case.")
    label: str = Field("", alias="as", description="What its score is called, e.g. correctness.")


def _scorer(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) or value is None else [value]


Scorer = Annotated[ScorerSection, BeforeValidator(_scorer)]
Scorers = Annotated[list[Scorer], BeforeValidator(_listed)]


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
    experiment: str = Field("ask", description="How a case is put to the agent.")
    cases: str | list[dict[str, Any]] = Field(
        description="A file (.jsonl, .csv, .yaml, .json) or the cases themselves."
    )
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
    benchmarks: list[dict[str, Any]] = Field(min_length=1, description="See below.")
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
    load: Names = Field(default_factory=list)
    tags: Names = Field(default_factory=list)
    notes: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    output_dir: str | None = None


def read_suite(path: Path) -> tuple[Suite, SuiteFile, Document]:
    """The suite that a file holds; SpecError with every mistake in it and in its cases."""
    document = read_document(path)
    return suite_of(document, path.resolve().parent)


def suite_of(document: Document, folder: Path) -> tuple[Suite, SuiteFile, Document]:
    mistakes = list(document.mistakes)
    if not isinstance(document.value, dict):
        raise SpecError([document.mistake((), "holds no keys. A suite begins: suite: NAME")])
    file = validated(SuiteFile, document.value, document, (), mistakes)
    benchmarks = []
    for index, raw in enumerate(file.benchmarks if file is not None else ()):
        place: Place = ("benchmarks", index)
        section = validated(BenchmarkSection, raw, document, place, mistakes)
        if section is not None:
            benchmarks.append(_benchmark(section, document, place, folder, mistakes))
    mistakes += _duplicates([benchmark.id for benchmark in benchmarks], document)
    if mistakes or file is None:
        raise SpecError(mistakes)
    suite = Suite(
        name=file.suite,
        version=file.version,
        category=file.category,
        benchmarks=tuple(benchmarks),
        description=file.description,
        baseline_scores={one.agent_id: one.scores for one in file.baseline_scores},
        schedule=file.schedule,
        hash=_hash([benchmark.hash for benchmark in benchmarks]),
    )
    return suite, file, document


def _duplicates(ids: list[str], document: Document) -> list[Mistake]:
    return [
        document.mistake(("benchmarks", index, "id"), f"'{name}' stands for another benchmark already.")
        for index, name in enumerate(ids)
        if name in ids[:index]
    ]


def _benchmark(
    section: BenchmarkSection, document: Document, place: Place, folder: Path, mistakes: list[Mistake]
) -> Benchmark:
    cases = _cases(section, document, place, folder, mistakes)
    scorers = tuple(_scorer_use(one) for one in section.scorer) or (ScorerUse("exact"),)
    limits = _limits(section)
    plain = [_plain(case) for case in cases]
    identity = [
        section.id,
        section.experiment,
        plain,
        [_use(s) for s in scorers],
        [limits.seconds, limits.tokens, limits.usd],
    ]
    return Benchmark(
        id=section.id,
        name=section.name or section.id,
        cases=tuple(cases),
        description=section.description,
        test_type=section.test_type,
        experiment=section.experiment,
        scorers=scorers,
        iterations=_iterations(section),
        limits=limits,
        rubric=_rubric(section.rubric),
        dataset={"size": len(cases), **section.dataset},
        metrics_measured=tuple(section.metrics_measured),
        hash=_hash(identity),
    )


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


def _scorer_use(section: ScorerSection) -> ScorerUse:
    return ScorerUse(section.name, section.weight, dict(section.model_extra or {}), section.label)


def _use(scorer: ScorerUse) -> list[Any]:
    return [scorer.name, scorer.weight, dict(scorer.options), scorer.label]


def _cases(
    section: BenchmarkSection, document: Document, place: Place, folder: Path, mistakes: list[Mistake]
) -> list[Case]:
    """The cases of a benchmark, each checked; a bad one is named with its line."""
    before = len(mistakes)
    if isinstance(section.cases, str):
        rows, root = _rows(folder / section.cases, mistakes), (folder / section.cases).parent
    else:
        rows = [
            (document.file, document.line((*place, "cases", index)), row)
            for index, row in enumerate(section.cases)
        ]
        root = folder
    cases: list[Case] = []
    seen: dict[str, int | None] = {}
    for number, (file, line, row) in enumerate(rows):
        try:
            case = _case(row, number, _nth(section.expected_outputs, number), root)
        except ValueError as problem:
            mistakes.append(Mistake(file, line, "", str(problem)))
            continue
        if case.id in seen:
            mistakes.append(Mistake(file, line, "id", f"'{case.id}' stands on line {seen[case.id]} already."))
        seen[case.id] = line
        cases.append(case)
    if not cases and before == len(mistakes):
        mistakes.append(document.mistake((*place, "cases"), "holds no case."))
    return cases


def _nth(values: list[Any] | None, number: int) -> Any:
    return values[number] if values is not None and number < len(values) else None


def _case(row: Any, number: int, expected: Any, root: Path) -> Case:
    """A case; ValueError says what is wrong with the row."""
    if not isinstance(row, dict):
        raise ValueError("is not a case: a mapping with 'input' is needed.")
    turns = row.get("turns")
    found = next((row[key] for key in _INPUT if row.get(key) is not None), None)
    if found is None and not turns:
        raise ValueError("has no 'input'.")
    own_expected = next((row[key] for key in _EXPECTED if key in row), expected)
    files = {str(name): str((root / str(path)).resolve()) for name, path in _pairs(row.get("files"))}
    missing = [name for name, path in files.items() if not Path(path).is_file()]
    if missing:
        raise ValueError(f"names files that do not exist: {', '.join(missing)}.")
    return Case(
        id=str(row.get("id", number + 1)),
        input=found,
        expected=own_expected,
        turns=tuple(_turn(turn) for turn in turns or ()),
        tools=tuple(row.get("tools") or ()),
        files=files,
        tags=tuple(str(tag) for tag in _tags(row.get("tags"))),
        metadata={key: value for key, value in row.items() if key not in _OWN},
    )


def _tags(value: Any) -> list[Any]:
    return value if isinstance(value, list) else str(value).split() if value else []


def _pairs(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((Path(str(path)).name, path) for path in value)
    elif value:
        yield Path(str(value)).name, value


def _turn(turn: Any) -> Turn:
    if not isinstance(turn, dict):
        return Turn(turn)
    found = next((turn[key] for key in (*_INPUT, "user", "content") if key in turn), "")
    expected = next((turn[key] for key in _EXPECTED if key in turn), None)
    scorers = _listed(turn.get("scorer")) or []
    uses = tuple(_scorer_use(ScorerSection.model_validate(_scorer(one))) for one in scorers)
    return Turn(found, expected, uses)


Row = tuple[str, int | None, Any]


def _rows(path: Path, mistakes: list[Mistake]) -> list[Row]:
    try:
        if path.suffix in (".jsonl", ".ndjson"):
            return list(_jsonl(path, mistakes))
        if path.suffix == ".csv":
            return list(_csv(path, mistakes))
        if path.suffix in (".yaml", ".yml", ".json"):
            return list(_yaml(path))
    except SpecError as error:
        mistakes += error.mistakes
        return []
    mistakes.append(Mistake(str(path), None, "", "is not a file of cases: .jsonl, .csv, .yaml or .json."))
    return []


def _jsonl(path: Path, mistakes: list[Mistake]) -> Iterator[Row]:
    for number, line in enumerate(read_text(path, limit=None).splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield str(path), number, json.loads(line)
        except (ValueError, RecursionError) as error:
            mistakes.append(Mistake(str(path), number, "", f"is not JSON: {error}"))


def _csv(path: Path, mistakes: list[Mistake]) -> Iterator[Row]:
    reader = csv.DictReader(read_text(path, limit=None).splitlines(keepends=True))
    for row in reader:
        if None in row or None in row.values():
            mistakes.append(
                Mistake(str(path), reader.line_num, "", "has another number of cells than the heading.")
            )
            continue
        yield str(path), reader.line_num, row


def _yaml(path: Path) -> Iterator[Row]:
    document = read_document(path)
    if document.mistakes:
        raise SpecError(document.mistakes)
    value = document.value
    prefix: Place = ()
    if isinstance(value, dict) and isinstance(value.get("cases"), list):
        value, prefix = value["cases"], ("cases",)
    if not isinstance(value, list):
        raise SpecError([document.mistake((), "is not a list of cases.")])
    for index, row in enumerate(value):
        yield str(path), document.line((*prefix, index)), row


def _plain(case: Case) -> list[Any]:
    turns = [[turn.input, turn.expected] for turn in case.turns]
    return [case.id, case.input, case.expected, turns, list(case.tools), sorted(case.files), list(case.tags)]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
