"""Everything that a plug-in needs beyond the nouns of `assay.model`: the contracts, and the tools that our own plug-ins use.

Import from here: `from assay.plugin import Judged, Judgement`. The modules below may change; these names stay. Each is
imported when it is first used, because a worker needs a few of them and is started again and again.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.plugin.agent import LOG_ENDS, Agent, AgentError, AgentHooks, BadAgent, InvalidAnswer
    from assay.plugin.agent_pool import AgentPool, expand_variables, make_agent
    from assay.plugin.case_limit import seconds_left
    from assay.plugin.components import (
        AgentComponents,
        AnswerEvaluator,
        ConfigValidator,
        ConversationMemory,
        InputValidator,
        RewardFunction,
        StructuredParser,
        ToolCaller,
    )
    from assay.plugin.executor import (
        Attempt,
        BoundedExecutor,
        CheckedExecutor,
        ConfiguredExecutor,
        Executor,
        GeneratorSite,
        SiteLost,
        SpreadsGenerators,
    )
    from assay.plugin.experiment import (
        Experiment,
        ExperimentContext,
        ExperimentHooks,
        MeasuredFunction,
        find_trait,
    )
    from assay.plugin.finding import Finding
    from assay.plugin.grades import GradeBand, GradeScale
    from assay.plugin.import_check import ImportEnded, check_module
    from assay.plugin.instrument import File, Instrument, InstrumentHooks, NotMeasurable, Reading
    from assay.plugin.json_path import value_at
    from assay.plugin.judge_retries import is_judging, report_judge_retry
    from assay.plugin.judge_usage import add_judge_usage, compute_judge_usage
    from assay.plugin.lookup import find, known, register, register_experiment
    from assay.plugin.node_queues import NodeQueues
    from assay.plugin.options import option_problems
    from assay.plugin.outcome import Outcome, split_result
    from assay.plugin.output import printing_to_stderr
    from assay.plugin.prices import Cost, Price
    from assay.plugin.private_files import make_folder, write_private
    from assay.plugin.reporter import Reporter
    from assay.plugin.sandbox import UNCONFINED, Ceilings, Program, Sandbox, find_sandbox, python_path
    from assay.plugin.scenario import Bench, Scenario, ScenarioSubject
    from assay.plugin.scenario_baseline import calm_load, find_recovery_time
    from assay.plugin.scenario_outcome import (
        HandledLoad,
        Pressure,
        Recovery,
        build_finding,
        build_load_point,
        build_step_bands,
        compute_begins,
        compute_completion_rate,
        compute_correctness,
        compute_delivered_rate,
        compute_scenario_time,
        fails_as_in_calm,
        find_calm_breach,
        find_frequent_error,
        find_late_breach,
        is_answered,
        judge_quality,
        make_text,
        plan_pressure,
        watch_recovery,
    )
    from assay.plugin.scorer import Judged, Judgement, Scorer, ScorerHooks
    from assay.plugin.scorers import compute_weighted_score, example_of, make_scorer
    from assay.plugin.spans import SpanCollector, usage_of_spans
    from assay.plugin.steady_clock import SteadyClock

__all__ = [
    "LOG_ENDS",
    "UNCONFINED",
    "Agent",
    "AgentComponents",
    "AgentError",
    "AgentHooks",
    "AgentPool",
    "AnswerEvaluator",
    "Attempt",
    "BadAgent",
    "Bench",
    "BoundedExecutor",
    "Ceilings",
    "CheckedExecutor",
    "ConfigValidator",
    "ConfiguredExecutor",
    "ConversationMemory",
    "Cost",
    "Executor",
    "Experiment",
    "ExperimentContext",
    "ExperimentHooks",
    "File",
    "Finding",
    "GeneratorSite",
    "GradeBand",
    "GradeScale",
    "HandledLoad",
    "ImportEnded",
    "InputValidator",
    "Instrument",
    "InstrumentHooks",
    "InvalidAnswer",
    "Judged",
    "Judgement",
    "MeasuredFunction",
    "NodeQueues",
    "NotMeasurable",
    "Outcome",
    "Pressure",
    "Price",
    "Program",
    "Reading",
    "Recovery",
    "Reporter",
    "RewardFunction",
    "Sandbox",
    "Scenario",
    "ScenarioSubject",
    "Scorer",
    "ScorerHooks",
    "SiteLost",
    "SpanCollector",
    "SpreadsGenerators",
    "SteadyClock",
    "StructuredParser",
    "ToolCaller",
    "add_judge_usage",
    "build_finding",
    "build_load_point",
    "build_step_bands",
    "calm_load",
    "check_module",
    "compute_begins",
    "compute_completion_rate",
    "compute_correctness",
    "compute_delivered_rate",
    "compute_judge_usage",
    "compute_scenario_time",
    "compute_weighted_score",
    "example_of",
    "expand_variables",
    "fails_as_in_calm",
    "find",
    "find_calm_breach",
    "find_frequent_error",
    "find_late_breach",
    "find_recovery_time",
    "find_sandbox",
    "find_trait",
    "is_answered",
    "is_judging",
    "judge_quality",
    "known",
    "make_agent",
    "make_folder",
    "make_scorer",
    "make_text",
    "option_problems",
    "plan_pressure",
    "printing_to_stderr",
    "python_path",
    "register",
    "register_experiment",
    "report_judge_retry",
    "seconds_left",
    "split_result",
    "usage_of_spans",
    "value_at",
    "watch_recovery",
    "write_private",
]

_NAMES = {
    "agent": "Agent AgentError AgentHooks BadAgent InvalidAnswer LOG_ENDS",
    "agent_pool": "AgentPool expand_variables make_agent",
    "case_limit": "seconds_left",
    "components": "AgentComponents AnswerEvaluator ConfigValidator ConversationMemory InputValidator RewardFunction "
    "StructuredParser ToolCaller",
    "executor": "Attempt BoundedExecutor CheckedExecutor ConfiguredExecutor Executor GeneratorSite SiteLost SpreadsGenerators",
    "experiment": "Experiment ExperimentContext ExperimentHooks MeasuredFunction find_trait",
    "finding": "Finding",
    "grades": "GradeBand GradeScale",
    "import_check": "ImportEnded check_module",
    "instrument": "File Instrument InstrumentHooks NotMeasurable Reading",
    "json_path": "value_at",
    "judge_retries": "is_judging report_judge_retry",
    "judge_usage": "add_judge_usage compute_judge_usage",
    "lookup": "find known register register_experiment",
    "node_queues": "NodeQueues",
    "options": "option_problems",
    "outcome": "Outcome split_result",
    "output": "printing_to_stderr",
    "prices": "Cost Price",
    "private_files": "make_folder write_private",
    "reporter": "Reporter",
    "sandbox": "Ceilings Program Sandbox find_sandbox UNCONFINED python_path",
    "scenario": "Bench Scenario ScenarioSubject",
    "scenario_baseline": "calm_load find_recovery_time",
    "scenario_outcome": "HandledLoad Pressure Recovery build_finding build_load_point build_step_bands compute_begins "
    "compute_completion_rate compute_correctness compute_delivered_rate compute_scenario_time fails_as_in_calm "
    "find_calm_breach find_frequent_error find_late_breach is_answered judge_quality make_text plan_pressure "
    "watch_recovery",
    "scorer": "Judged Judgement Scorer ScorerHooks",
    "scorers": "compute_weighted_score example_of make_scorer",
    "spans": "SpanCollector usage_of_spans",
    "steady_clock": "SteadyClock",
}

_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # a type checker that saw this would take any misspelt name for known

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module 'assay.plugin' has no attribute '{name}'")
        member = getattr(import_module(f"assay.plugin.{_PLACES[name]}"), name)
        globals()[name] = member
        return member


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
