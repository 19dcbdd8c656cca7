"""The answers of the API as OpenAPI describes them.

Answers are the documents of `report/documents`, and these models say what is in them; a test holds every answer to its model.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Score = float | None
"""From 0 to 100; null where it is not known."""


class ResultRow(BaseModel):
    """One trial, an agent on a benchmark, under the column names of the specification's `benchmark_executions`."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 7,
                "suite_id": "support-desk",
                "benchmark_id": "refunds",
                "agent_id": "careful",
                "agent_version": "3",
                "workspace_id": "default",
                "run_id": "9b2f51c07a",
                "overall_score": 71.4,
                "accuracy_score": 92.5,
                "status": "success",
            }
        }
    )

    id: int
    suite_id: str | None
    benchmark_id: str
    agent_id: str
    agent_version: str | None
    workspace_id: str
    execution_environment: dict[str, Any] | None
    model_configuration: dict[str, Any] | None
    start_time: datetime | None
    end_time: datetime | None
    total_duration_ms: int | None
    accuracy_score: Score
    speed_score: Score
    efficiency_score: Score
    cost_score: Score
    reliability_score: Score
    tokens_used: int | None
    api_calls_made: int | None
    memory_peak_mb: float | None
    cpu_usage_percent: float | None
    output_correctness: Score
    output_completeness: Score
    output_relevance: Score
    percentile_rank: Score
    deviation_from_baseline: float | None
    status: str
    error_details: str | None
    created_at: datetime
    run_id: str
    overall_score: Score
    simulated: bool | None


class ResultPage(BaseModel):
    """Trials, the newest first."""

    results: list[ResultRow]
    next_cursor: int | None = Field(description="`cursor` of the next page; null on the last one.")


class RunAnswer(BaseModel):
    """A run that has ended, with the results of its trials."""

    run_id: str
    status: str
    agent_id: str
    suite_id: str
    error: str
    results: list[ResultRow]


class AgentResults(ResultPage):
    """The results of one agent."""

    agent_id: str
    suite_id: str | None
    timeframe: str


class DimensionScore(BaseModel):
    """An agent on one dimension."""

    score: Score
    rank: int | None = Field(description="The best rank that the evidence leaves open.")


class StandingRow(BaseModel):
    """An agent on a leaderboard. Agents in one tier are tied."""

    agent_id: str
    agent_name: str
    agent_version: str
    rank: tuple[int, int] = Field(description="Best and worst rank that the evidence leaves open.")
    tier: int
    score: Score
    interval: list[float | None]
    scores_and_ranks: dict[str, DimensionScore]
    best_ranking: int | None
    benchmarks_completed: int
    benchmarks_total: int
    last_benchmark_date: datetime | None
    is_pareto: bool
    dominated_by: list[str]
    partial: dict[str, str]
    stale: dict[str, str]


class UnrankedRow(BaseModel):
    """A result without a rank, and why."""

    agent_id: str
    agent_version: str
    benchmark_id: str
    run_id: str
    score: Score
    reason: str


class SuiteBoard(BaseModel):
    """Agents ranked within a suite, simulated ones apart."""

    suite_id: str
    benchmark_category: str
    benchmarks: list[str]
    standings: list[StandingRow]
    simulated: list[StandingRow]
    unranked: list[UnrankedRow]
    warnings: list[str]


class LeaderboardAnswer(BaseModel):
    """A board for each suite of the category, the suite that ran last first."""

    category: str
    metric: str
    leaderboards: list[SuiteBoard]
    across_suites: dict[str, Any] | None = Field(
        description="Agents over all benchmarks; null with fewer than three."
    )
    computed_at: datetime | None = Field(description="When the oldest part of this was computed.")
    is_current: bool = Field(
        description="Whether it has every stored result; if not, newer ones are being worked in."
    )
    outdated_suites: list[str] = Field(description="Suites whose newest results are still to be worked in.")


class MetricComparison(BaseModel):
    """Two agents on one dimension; positive differences favour `agent_a`."""

    metric: str
    agent_a: str
    agent_b: str
    agent_a_score: Score
    agent_b_score: Score
    difference: float | None
    percentage_difference: float | None = Field(description="Of `agent_b_score`; null where that is 0.")
    winner: str | None = Field(description="Null where neither is proved to be better.")


class ComparisonAnswer(BaseModel):
    """Agents compared on one suite."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "comparison_type": "head_to_head",
                "suite_id": "support-desk",
                "agent_ids": ["careful", "fast"],
                "overall_winner": "careful",
                "category_winners": {"accuracy": "careful", "speed": None},
                "detailed_metrics": [
                    {
                        "metric": "accuracy",
                        "agent_a": "careful",
                        "agent_b": "fast",
                        "agent_a_score": 92.5,
                        "agent_b_score": 60.0,
                        "difference": 32.5,
                        "percentage_difference": 54.2,
                        "winner": "careful",
                    }
                ],
                "statistical_significance": {"accuracy": 0.0004, "speed": 0.41},
                "recommendations": ["Prefer 'careful': better in score, and overall (0.814 against 0.702)."],
                "warnings": [],
            }
        }
    )

    comparison_type: Literal["head_to_head", "multi_agent", "time_series"]
    suite_id: str
    agent_ids: list[str]
    overall_winner: str | None = Field(
        description="Null if no agent is significantly better than all others."
    )
    category_winners: dict[str, str | None]
    detailed_metrics: list[MetricComparison]
    statistical_significance: dict[str, float | None] = Field(
        description="The corrected p of each difference; with several agents by 'A · B · dimension'."
    )
    recommendations: list[str]
    warnings: list[dict[str, Any]]


class RegressionRow(BaseModel):
    """Something that got worse, with the state that somebody gave it."""

    id: str
    benchmark_id: str
    metric: str
    baseline_value: float | None
    current_value: float | None
    regression_percentage: float | None
    severity: str
    impact_analysis: dict[str, Any] | None
    state: str
    note: str


class RegressionsAnswer(BaseModel):
    """What got worse with the latest version of an agent: the document of `assay regressions --json`."""

    agent_id: str
    version: str
    suite: str
    baseline: str | None
    has_regressions: bool
    regressions: list[RegressionRow]
    overall_health: float
    recommended_action: str
    reason: str
    warnings: list[dict[str, Any]]
