"""The result document, format `assay.result/1`, described field by field."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

Plain = dict[str, Any]


class DocumentSchema(GenerateJsonSchema):
    """Names parts of the document as people do: `Trial`, where the class is called `TrialDocument` to tell it from the noun."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        described = super().model_schema(schema)
        return {**described, "title": described["title"].removesuffix("Document")}

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(name.removesuffix("Document"))


class DoubtDocument(BaseModel):
    """A reason to read a figure with care."""

    code: str = Field(description="Kind of warning, for programs")
    message: str = Field(description="What is wrong or uncertain, with its numbers")
    hint: str = Field("", description="What to do about it")
    trial: str | None = Field(None, description="Name of the trial that it concerns; null for the whole run")


class AgentDocument(BaseModel):
    """The thing under test; for a code experiment, the code base."""

    name: str = Field(description="Name")
    version: str = Field("", description="Version or commit; empty when unknown")
    type: str = Field(
        "", description="How a suite's agent is reached: `python`, `command`, `openai` …; absent for code"
    )


class UntilDocument(BaseModel):
    """When `measured: auto` stops."""

    interval: float = Field(description="Target for half the width of the interval, as a share of the median")
    max: int = Field(description="Maximum executions in one process")
    min: int = Field(description="Minimum executions in one process")
    metric: str = Field(description="Metric whose interval is watched")


class IterationsDocument(BaseModel):
    """Warm-up and measured executions per process."""

    warmup: int = Field(0, description="Warm-up executions in each process")
    measured: int = Field(1, description="Measured executions in each process; a ceiling when `until` is set")
    until: UntilDocument | None = Field(
        None, description="Rule that ends the measuring; null for a fixed number"
    )
    loops: int | None = Field(1, description="Calls within one execution; null when found automatically")


class LimitsDocument(BaseModel):
    """Limits of one execution; null is no ceiling."""

    seconds: float | None = Field(None, description="Seconds")
    memory_bytes: int | None = Field(None, description="Bytes of the process tree")
    tokens: float | None = Field(None, description="Tokens")
    usd: float | None = Field(None, description="US dollars")


class InstrumentUseDocument(BaseModel):
    """An instrument that watched the executions."""

    name: str = Field(description="Name")
    options: Plain = Field(default_factory=dict, description="Options as the spec gave them")


class EstimateDocument(BaseModel):
    """A metric over a trial's ok measured executions."""

    unit: str = Field(description="Base unit: `s`, `bytes`, `usd`, `1/s`, `%`; empty for a bare number")
    better: Literal["lower", "higher", "unknown"] = Field(description="Whether higher or lower is better")
    kind: Literal["measured", "derived", "simulated", "recorded"] = Field(
        description="How the number was obtained"
    )
    n: int = Field(description="Executions behind it")
    units: int = Field(description="Independent observations behind the interval")
    mean: float | None = Field(description="Mean")
    median: float | None = Field(description="Median")
    p50: float | None = Field(description="The median again, under its other common name")
    p90: float | None = Field(description="90th percentile")
    p95: float | None = Field(description="95th percentile; see `insufficient`")
    p99: float | None = Field(description="99th percentile; see `insufficient`")
    std: float | None = Field(description="Standard deviation")
    cv: float | None = Field(description="Standard deviation as a share of the mean; null around zero")
    min: float | None = Field(description="Smallest value")
    max: float | None = Field(description="Largest value")
    interval: tuple[float, float] | None = Field(
        description="Low and high end of the median's interval; null when there are too few units"
    )
    mean_interval: tuple[float, float] | None = Field(
        None, description="Of scores: low and high end of the mean's interval, over cases"
    )
    tails: dict[str, tuple[float, float]] = Field(
        default_factory=dict,
        description="Low and high end of the intervals of `p95` and `p99`, of those that have one",
    )
    level: float = Field(description="Confidence level of the interval")
    outliers: int = Field(description="Executions that are labelled outliers; none is removed")
    median_without_outliers: float | None = Field(description="Median if they were left out")
    insufficient: list[str] = Field(
        description="Percentiles that have too few executions beyond them to be trusted"
    )
    warnings: list[str] = Field(description="Warnings about this estimate")


class ExecutionDocument(BaseModel):
    """One execution."""

    index: int = Field(description="Number among its like: same process, phase and case")
    process: int = Field(0, description="Number of the process")
    phase: Literal["warmup", "measured", "profiled"] = Field(
        "measured", description="Profiled executions carry instruments that slow the subject"
    )
    status: str = Field(
        "ok",
        description="`ok`, `failed`, `timeout`, `over_limit`, `crashed`, `invalid_output`, `harness_error` "
        "or `cancelled`",
    )
    started: float | None = Field(None, description="Seconds since the epoch")
    duration_s: float | None = Field(None, description="The metric `seconds`: the time of one call")
    loops: int = Field(1, description="Calls that the time was averaged over")
    case: str | None = Field(None, description="Id of the case, where the benchmark has cases")
    score: float | None = Field(
        None, description="Of a case: weighted mean of its scores, 0 to 1; absent when unscored or not ok"
    )
    scores: dict[str, float | None] | None = Field(None, description="Of a case: each score by its name")
    metrics: dict[str, float | None] = Field(
        default_factory=dict, description="The other measurements by metric name; null for not a number"
    )
    output: Any = Field(None, description="What was returned beside numbers")
    applied: Plain | None = Field(None, description="Settings as read back from the thing under test")
    error: str | None = Field(None, description="What went wrong")
    log: str | None = Field(None, description="What it printed, if that was kept")
    detail: Plain | None = Field(
        None,
        description="Of a case: `tool_calls`, `spans` (name, kind, start, seconds, attributes), `attempts`, `reasons` of the "
        "scores, `unscored` scorers, outputs of earlier `turns`, `simulated`, `shortened` (what is stored in part, and "
        "its size); each only where there is such",
    )


class ArtifactDocument(BaseModel):
    """A file that the trial left in the database."""

    name: str = Field(description="File name")
    type: str = Field(description="What it holds: `psutil`, `cprofile` …")
    bytes: int = Field(description="Size")


class RatingDocument(BaseModel):
    """The rating on one dimension."""

    value: float | None = Field(description="0 to 1; null is unrated")
    interval: tuple[float, float] | None = Field(
        description="Its 95 % interval; null when there is none, as for times of fewer than three rounds"
    )
    basis: str = Field("", description="What it rests on, or why there is none")


class ReferenceValueDocument(BaseModel):
    """What a quantity was compared with: at this value the rating is 0.5."""

    value: float = Field(
        description="In the unit that the quantity's name says; `usd` and `tokens` per solved case"
    )
    source: str = Field(description="`rubric`, `run`, or `limit` (half of it)")
    run_id: str | None = Field(None, description="The run that it comes from")
    date: datetime | None = Field(None, description="When that run ended")
    origin: str | None = Field(
        None,
        description="Of a run: `first` (completed first), `partial` (provisional: only some cases) or `chosen`",
    )


class SuiteDocument(BaseModel):
    """Which suite was run; its hash changes with any part of its definition."""

    name: str = Field(description="Name")
    version: str = Field("", description="Version")
    category: str = Field("", description="Category")
    hash: str = Field("", description="Hash of the definition")
    title: str = Field("", description="The longer name, for people")
    description: str = Field("", description="What it tests")
    created_at: str | None = Field(None, description="Date of the suite, as written")
    schedule: str | None = Field(None, description="When it is due, in cron syntax")
    next_due: str | None = Field(
        None,
        description="First time of the schedule after the start of the run, with the schedule read in UTC",
    )
    baseline_scores: list[dict[str, Any]] = Field(
        default_factory=list, description="Known overall ratings: `agent_id`, and `scores` by benchmark"
    )
    require: list[str] = Field(default_factory=list, description="What a gate requires, as written")
    benchmarks: list[dict[str, Any]] = Field(
        default_factory=list,
        description="Of each benchmark `id`, `name`, `description`, `test_type`, `experiment`, number of `cases`, `scorers`, "
        "`dataset`, `metrics_measured`, `instrumentation`, `iterations`, `limits`, `hash`",
    )


class BudgetDocument(BaseModel):
    """Ceilings for the whole run; null is no ceiling."""

    usd: float | None = Field(None, description="US dollars")
    tokens: float | None = Field(None, description="Tokens")


class ScorerFailureDocument(BaseModel):
    """A scorer that could not judge some outputs of a trial."""

    scorer: str = Field(description="Name of the scorer, or its label")
    failed: int = Field(description="Ok measured executions that it could not judge")
    of: int = Field(description="Ok measured executions")
    weight: float = Field(description="Its weight; with 0 its failures leave the execution scored")
    reason: str = Field(description="Why, the first time")


class PriceList(BaseModel):
    """Which public price list, and of when."""

    name: str = Field(description="Name and version")
    date: str | None = Field(description="Date of its newest price in force; the list itself has no date")


class JudgingDocument(BaseModel):
    """What judging a trial used up: spending of the harness."""

    calls: int = Field(description="Questions put to judges")
    tokens: float | None = Field(description="Tokens; null when unknown of some call")
    usd: float | None = Field(description="US dollars; null when unknown of some call")


class ResourcesDocument(BaseModel):
    """What one job needs of the machine that it runs on."""

    cpu: float = Field(description="Processors")
    gpu: float = Field(description="GPUs")
    custom: dict[str, float] = Field(description="Resources that the operator of a cluster gave a name")


class NodeDocument(BaseModel):
    """What one node of a cluster executed of a run."""

    node: str = Field(
        description="Its name; joined by ` + ` where a round was spread over several nodes or a process moved between them"
    )
    kind: str = Field(description="Kind of machine; empty where it is not known")
    processes: int = Field(description="Processes of all trials")
    executions: int = Field(description="Measured executions that were ok")
    warnings: list[str] = Field(description="Warnings about this node, such as noise when it joined")


class TrialDocument(BaseModel):
    """One point: agent × benchmark × parameters."""

    id: int = Field(description="Number in the database")
    name: str = Field(description="Name")
    agent: AgentDocument = Field(description="The thing under test")
    benchmark: str = Field(description="Name of the benchmark")
    benchmark_hash: str | None = Field(
        None, description="Hash of the benchmark's definition, where it is known"
    )
    experiment: str = Field(description="Name of the experiment")
    parameters: Plain = Field(description="All parameters of this point")
    axes: Plain = Field(description="Those of them that the sweep varies")
    iterations: IterationsDocument = Field(description="Warm-up and measured executions per process")
    processes: int = Field(description="Fresh processes")
    isolation: Literal["process", "cold", "inline"] = Field(
        description="How executions are isolated from each other"
    )
    limits: LimitsDocument = Field(description="Limits of one execution")
    resources: ResourcesDocument | None = Field(
        None, description="What each job needs of a machine, where the spec or the agent says so"
    )
    nodes: dict[str, str] | None = Field(
        None, description="Of a cluster: number of each process to the node that executed it"
    )
    instruments: list[InstrumentUseDocument] = Field(description="Instruments of the executions")
    status: Literal["ok", "failed"] = Field(description="`failed` when no measured execution was ok")
    counts: dict[str, int] = Field(description="Measured executions by status")
    stopped: str | None = Field(description="Why it ended before its plan was done")
    applied: Plain = Field(description="Settings as read back from the thing under test")
    simulated: bool | None = Field(None, description="Suites only: whether the agent is simulated")
    recorded: bool | None = Field(
        None, description="Suites only: whether the agent's answers and times were recorded earlier"
    )
    concurrency: int | None = Field(None, description="Suites only: cases in flight per agent")
    ratings: dict[str, RatingDocument] | None = Field(
        None, description="Suites only: `accuracy`, `speed`, `efficiency`, `cost`, `reliability`"
    )
    overall: RatingDocument | None = Field(
        None, description="Suites only: weighted mean of the rated dimensions"
    )
    references: dict[str, ReferenceValueDocument] | None = Field(
        None,
        description="Suites only: what `seconds`, `tokens`, `usd`, `cpu_seconds` and `memory_mb` were compared with",
    )
    deviation_from_baseline: float | None = Field(
        None, description="Suites only: overall ÷ the baseline's overall − 1; absent without a baseline"
    )
    rating_warnings: list[str] | None = Field(None, description="Suites only: warnings about the ratings")
    outcomes: dict[str, int] | None = Field(
        None,
        description="Suites only: executions that are `pass`, `fail`, `agent_error`, `limit`, `harness_error`",
    )
    completion: float | None = Field(
        None,
        description="Suites only: share of the executions without error, timeout, limit or invalid output",
    )
    incomplete: bool | None = Field(
        None,
        description="Suites only: whether too many planned executions have no result; then it has no rank",
    )
    without_result: int | None = Field(
        None, description="Suites only: planned executions that ended in a harness error, or were never made"
    )
    unscored: int | None = Field(
        None, description="Suites only: ok executions that some scorer with a weight could not judge"
    )
    scoring_failed: bool | None = Field(
        None, description="Suites only: whether more than half of the ok executions are unscored"
    )
    scorer_failures: list[ScorerFailureDocument] | None = Field(
        None, description="Suites only: scorers that could not judge some outputs"
    )
    cases: int | None = Field(None, description="Suites only: cases that were done")
    solved: float | None = Field(
        None,
        description="Suites only: cases passed, each counted by the share of its repetitions that passed",
    )
    pass_mark: float | None = Field(
        None, description="Suites only: the score from which a case counts as passed; 0.5 where absent"
    )
    pass_at: dict[int, float] | None = Field(
        None, description="Suites only: by k, the chance that at least one of k repetitions passes"
    )
    pass_hat: dict[int, float] | None = Field(
        None, description="Suites only: by k, the chance that all of k repetitions pass"
    )
    usd_per_solved: float | None = Field(
        None,
        description="Suites only: cost of a solved case; null when the cost is unknown or nothing was solved",
    )
    cost_sources: list[str] | None = Field(
        None,
        description="Suites only: how the cost is known, `reported` with the answers, by the `price` given with the agent, "
        "or by the price `list`; absent where it is free or unknown",
    )
    price_list: PriceList | None = Field(None, description="Suites only: the price list that costs follow")
    tokens_per_solved: float | None = Field(
        None, description="Suites only: tokens of a solved case; null when unknown or nothing was solved"
    )
    judging: JudgingDocument | None = Field(
        None, description="Suites only: what judges used; not part of the agent's cost"
    )
    metrics: dict[str, EstimateDocument] = Field(
        description="Estimates by metric name; `seconds` is the time of one call"
    )
    artifacts: list[ArtifactDocument] = Field(description="Files that the trial left")
    iteration_metrics: list[ExecutionDocument] | None = Field(
        None,
        description="Every execution of every phase; absent from documents that were asked for without them",
    )


class AxisPoint(BaseModel):
    """A metric at one value of an axis."""

    value: Any = Field(description="Value of the axis")
    median: float | None = Field(description="Median over the trials at this value")
    interval: tuple[float, float] | None = Field(
        description="Its interval; null when there are too few units"
    )


class AxisEffectDocument(BaseModel):
    """What one axis of a sweep does to a metric."""

    axis: str = Field(description="Name of the parameter")
    metric: str = Field(description="Name of the metric")
    unit: str = Field(description="Its unit")
    best: Any = Field(description="Value with the best median; null when no direction is known")
    worst: Any = Field(description="Value with the worst median")
    points: list[AxisPoint] = Field(description="One entry per value, in the order of the sweep")
    effect: float | None = Field(
        None, description="The worst value against the best, the other axes being equal"
    )
    effect_interval: tuple[float, float] | None = Field(None, description="Its interval at 95 %")
    effect_kind: Literal["ratio", "difference"] = Field("ratio", description="What `effect` is")
    share_of_variance: float | None = Field(
        None, description="Share of the variation that this axis explains"
    )
    interacts_with: list[str] = Field([], description="Axes on which its effect depends")
    is_workload: bool = Field(
        False,
        description="Whether it says how much work there is, or of what kind: then no value is a better choice",
    )


class BestPointDocument(BaseModel):
    """The best trial of a sweep by one metric."""

    benchmark: str = Field(description="Benchmark or experiment")
    metric: str = Field(description="Name of the metric")
    trial: str = Field(description="The trial with the best median")
    not_separable: list[str] = Field(description="Trials that are not significantly worse (Holm-corrected)")
    compared_with: int = Field(description="Number of trials it was compared with")


class LeadDocument(BaseModel):
    """Who leads on a benchmark, or on all of them together."""

    benchmark: str | None = Field(description="Id of the benchmark; null for the suite as a whole")
    simulated: bool = Field(
        description="Whether these are simulated agents, which are ranked among themselves"
    )
    leaders: list[str] = Field(description="The agent that leads; several are tied")
    tied: bool = Field(description="Whether there are several leaders")
    dimensions: list[str] = Field(
        description="What `overall` is made of here: the dimensions that all agents have"
    )
    overall: dict[str, float] = Field(description="Agent to its overall rating, best first")
    margin: float | None = Field(None, description="How far the first agent is above the second")
    margin_interval: tuple[float, float] | None = Field(
        None, description="95 % interval of the margin, over cases"
    )
    ahead_in: list[str] = Field(
        [], description="Dimensions in which the first is significantly better than the second"
    )
    behind_in: list[str] = Field([], description="Dimensions in which it is significantly worse")
    summary: str = Field("", description="The sentence shown in reports")


class RulingDocument(BaseModel):
    """How the question of a run stood when it ended."""

    decision: Literal["higher", "lower", "same", "open"] = Field(
        description="Of the second arm against the first; open where it stayed undecided"
    )
    pairs: int = Field(description="Pairs that it rests on")
    left_out: int = Field(0, description="Pairs without a result, for example because one arm failed")
    effect: float | None = Field(None, description="Second ÷ first; of scores second − first")
    low: float | None = Field(None, description="Lower end of its interval, which holds at every look")
    high: float | None = Field(None, description="Upper end")


class QuestionDocument(BaseModel):
    """A run of two arms that ends as soon as it is decided which is better."""

    arms: tuple[str, str] = Field(description="The first, which is the reference, and the second")
    metric: str = Field(description="What it is decided by")
    tolerance: float = Field(
        description="Differences within this count as no difference: a share, or points for scores"
    )
    max: int = Field(description="Maximum pairs: processes, or cases of a suite")
    min: int = Field(description="Pairs before the first look")
    ruling: RulingDocument | None = Field(None, description="null while the run is in progress")
    verdict: str | None = Field(
        None,
        description="Of the second arm: better, worse, same, unsure; higher or lower without a direction",
    )
    summary: str = Field("", description="The same in a sentence")


class TeamFigure(BaseModel):
    """A figure over all pairs of legs."""

    value: float = Field(description="The figure")
    interval: tuple[float, float] | None = Field(description="At 95 %; null of a single pair")
    unit: str = Field(description="Its unit; empty for ratios and shares")
    pairs: int = Field(description="Pairs of legs behind it")
    method: str = Field(description="How the interval was computed")


class TeamContention(BaseModel):
    """Requests that were slower in the concurrent leg than in the sequential leg of the same pair."""

    events: int = Field(description="Slower by more than 3 % and 5 ms")
    requests: int = Field(description="Of how many")
    rate: TeamFigure = Field(
        description="The share of slower requests less that of requests which were faster by as much; not below 0"
    )
    limit_seconds: float = Field(description="The smallest delay that counted")
    expected_by_chance: float = Field(
        description="The share of requests that were faster by as much: chance makes as many slower"
    )
    delay_seconds: float | None = Field(None, description="Median delay of the slower requests")
    verdict: Literal["worse", "same", "unsure"] | None = Field(
        None, description="worse where requests did wait for each other; never from fewer than six pairs"
    )


class TeamAgent(BaseModel):
    """One agent of a team."""

    name: str = Field(description="Name")
    type: str = Field(description="Type")
    model: str | None = Field(description="The model that answered")
    requests: int = Field(description="Cases that it did in all concurrent legs")
    figures: dict[str, TeamFigure] = Field(
        description="`slowdown` (concurrent ÷ sequential time at work), and `seconds`, `ttft`, `tokens_per_second` each as "
        "`…_sequential`, `…_concurrent` and `…_delta`"
    )
    contention: TeamContention | None = Field(description="null if no pair is complete")


class GradeDocument(BaseModel):
    """A figure of a trial and its grade."""

    trial: str = Field(description="Name of the trial")
    label: str = Field(description="What is graded")
    metric: str = Field(description="Name of the metric")
    statistic: str = Field(description="`median`, `p95`, `p99` or `cv`")
    value: float | None = Field(description="The figure; null where there is not enough data for it")
    low: float | None = Field(description="Lower end of its 95 % interval; null where it has none")
    high: float | None = Field(description="Upper end")
    unit: str = Field(description="Unit of the figure")
    grade: str = Field(description="Name of the grade, or `unsure`, or `not enough data`")
    simulated: bool = Field(description="Whether the agent is simulated")
    thresholds: dict[str, float] = Field(
        description="Upper end of each grade but the last, which has none, in ascending order"
    )


class TeamGrade(BaseModel):
    """A figure compared with a target."""

    figure: str = Field(description="Which figure")
    target: str = Field(description="What it should be")
    verdict: str = Field(
        description="met, missed, problematic, or unsure where the interval holds the target"
    )


class TeamRound(BaseModel):
    """One pair of legs."""

    number: int = Field(description="Number of the pair")
    sequential_seconds: float = Field(description="Wall time, one agent after the other")
    concurrent_seconds: float = Field(description="Wall time, all at once")
    speedup: float = Field(description="Sequential ÷ concurrent")
    skew_seconds: float = Field(
        description="Between the first and the last agent to begin the concurrent leg"
    )


class Team(BaseModel):
    """Agents that worked at the same time, at one point."""

    team: str = Field(description="Name")
    label: str = Field(description="Name with the point of the sweep")
    axes: Plain = Field(description="The point of the sweep")
    at_once: int = Field(description="How many work at the same time")
    pairs: int = Field(description="Complete pairs of legs")
    simulated: bool = Field(description="Whether the agents are simulated")
    verdict: str = Field(description="The gain from working concurrently, as a sentence")
    speedup_verdict: Literal["better", "worse", "same", "unsure"] | None = Field(
        None, description="Concurrent against sequential; null if no pair is complete"
    )
    tolerance: float | None = Field(
        None, description="Speedups this close to 1 count as no difference: a share"
    )
    figures: dict[str, TeamFigure] = Field(
        description="`speedup`, `efficiency`, `slowdown`, `sequential_seconds`, `concurrent_seconds`, `throughput_…`, `skew_seconds`, "
        "`balance_ratio`; `seed_speedup` and `seed_efficiency` are the naive figures: concurrent durations added up ÷ wall time"
    )
    contention: TeamContention | None = Field(description="Of all agents together")
    skew_seconds_max: float | None = Field(description="The largest skew of all concurrent legs")
    delta_sign: str = Field(description="The sign of every delta: which side is subtracted")
    agents: list[TeamAgent] = Field(description="In the order of the file")
    grades: list[TeamGrade] = Field(description="Targets, and whether they were met")
    rounds: list[TeamRound] = Field(description="One entry per pair")
    warnings: list[str] = Field(description="Warnings about the team")


class Result(BaseModel):
    """One run with its findings."""

    schema_: Literal["assay.result/1"] = Field(alias="schema", description="Name and version of this format")
    run_id: str = Field(description="Id of the run")
    name: str = Field(description="Name of the run")
    status: Literal["running", "completed", "interrupted", "failed", "incomplete", "over_budget"] = Field(
        description="State of the run"
    )
    started: str = Field(description="ISO 8601 date and time")
    ended: str | None = Field(description="ISO 8601 date and time; null while it runs")
    seed: int = Field(description="Seed of all randomness in the run")
    tags: list[str] = Field(description="Tags")
    notes: str = Field(description="Notes")
    label: str = Field("", description="What the user called the run (`--label`); empty without one")
    order: str = Field(description="`interleaved` or `sequential`")
    parallelism: int = Field(description="Concurrent worker processes")
    executor: str = Field(description="Executor that ran the workers")
    suite: SuiteDocument | None = Field(
        None, description="The suite that was run; absent for code experiments"
    )
    budget: BudgetDocument | None = Field(None, description="Budget of the run, where it had one")
    question: QuestionDocument | None = Field(
        None, description="What ended the run, where it was to end once decided"
    )
    spec: Plain = Field(description="The spec as it was read")
    environment: Plain = Field(description="Facts of machine, versions, clock, load and noise")
    vcs: Plain = Field(description="`commit`, `branch`, `dirty`; empty outside a repository")
    nodes: list[NodeDocument] | None = Field(
        None,
        description="The nodes of a cluster that executed the run; their facts are in `environment.nodes`",
    )
    instrument_costs: dict[str, float | None] = Field(description="Seconds that one start and stop takes")
    unmeasured: dict[str, str] = Field(description="Instruments that had nothing to measure here, and why")
    warnings: list[DoubtDocument] = Field(description="Warnings about the run and its trials")
    axes: list[AxisEffectDocument] = Field(description="Effects of the sweep's axes")
    best: list[BestPointDocument] = Field([], description="Of a sweep, the best trial by each metric")
    leads: list[LeadDocument] = Field(
        [], description="Of agents on a suite: who leads on each benchmark and on all"
    )
    loads: list[Plain] | None = Field(
        None,
        description="Of load tests: `verdict`, `slo`, `valid`, `errors`, `warnings` and the figures of each, as `assay load --json` "
        "writes them but for what only charts need; see docs/load.md",
    )
    teams: list[Team] | None = Field(None, description="Of teams: both legs compared, one entry per point")
    stress: Plain | None = Field(
        None,
        description="Of a stress test: `resilience`, `scaling_limits`, `recommendations`, `correctness` (whether a suite "
        "told right from wrong, and the score at the base rate), and `scenarios` with score, breaking point, recovery, `quality` under "
        "pressure and at the base rate, judgements and resources of each; see docs/stress.md",
    )
    profiles: list[Plain] | None = Field(
        None,
        description="Of trials with the instrument `profile`: `agent_id`, `profile_data` and `optimization_opportunities`, as "
        "`assay profile --json` writes them; see docs/profile.md",
    )
    workflow: Plain | None = Field(
        None,
        description="Of workflows: `models` with the figures of each model over all its runs, and `comparison`, who has the best value "
        "of each figure; see docs/workflow.md",
    )
    grades: list[GradeDocument] | None = Field(
        None,
        description="Of experiments that declare thresholds: figures with their grades; see docs/components.md",
    )
    trials: list[TrialDocument] = Field(description="One entry per trial, in the order of the plan")


class FlatExecution(BaseModel):
    """An execution of a flat result."""

    index: int = 0
    duration_s: float | None = None
    metrics: Plain = Field(default_factory=dict)
    process: int = 0
    status: str = "success"


class Flat(BaseModel):
    """One trial on its own: what earlier tools wrote, and what `seed_result` writes."""

    name: str
    run_id: str = ""
    parameters: Plain = Field(default_factory=dict)
    iterations: IterationsDocument | None = None
    metrics: Plain
    iteration_metrics: list[FlatExecution]
    environment: Plain = Field(default_factory=dict)
    vcs: Plain = Field(default_factory=dict)
    tags: list[str] = Field(default_factory=list)
    notes: Any = ""
    label: str = ""
    status: str = "success"
    started: str | None = None
