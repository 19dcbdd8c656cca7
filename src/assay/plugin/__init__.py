"""Everything that a plug-in needs beyond the nouns of `assay.model`: the contracts, and the tools that our own plug-ins use.

Import from here: `from assay.plugin import Judged, Judgement`. The modules below may change; these names stay. Each is
imported when it is first used, because a worker needs a few of them and is started again and again.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `as` tells a type checker that the name is public
    from assay.plugin.agent import LOG_ENDS as LOG_ENDS
    from assay.plugin.agent import Agent as Agent
    from assay.plugin.agent import AgentError as AgentError
    from assay.plugin.agent import AgentHooks as AgentHooks
    from assay.plugin.agent import BadAgent as BadAgent
    from assay.plugin.agent import InvalidAnswer as InvalidAnswer
    from assay.plugin.agent_pool import AgentPool as AgentPool
    from assay.plugin.agent_pool import expand_variables as expand_variables
    from assay.plugin.agent_pool import make_agent as make_agent
    from assay.plugin.case_limit import seconds_left as seconds_left
    from assay.plugin.components import AgentComponents as AgentComponents
    from assay.plugin.components import AnswerEvaluator as AnswerEvaluator
    from assay.plugin.components import ConfigValidator as ConfigValidator
    from assay.plugin.components import ConversationMemory as ConversationMemory
    from assay.plugin.components import InputValidator as InputValidator
    from assay.plugin.components import RewardFunction as RewardFunction
    from assay.plugin.components import StructuredParser as StructuredParser
    from assay.plugin.components import ToolCaller as ToolCaller
    from assay.plugin.executor import Attempt as Attempt
    from assay.plugin.executor import BoundedExecutor as BoundedExecutor
    from assay.plugin.executor import CheckedExecutor as CheckedExecutor
    from assay.plugin.executor import ConfiguredExecutor as ConfiguredExecutor
    from assay.plugin.executor import Executor as Executor
    from assay.plugin.executor import GeneratorSite as GeneratorSite
    from assay.plugin.executor import SiteLost as SiteLost
    from assay.plugin.executor import SpreadsGenerators as SpreadsGenerators
    from assay.plugin.experiment import Experiment as Experiment
    from assay.plugin.experiment import ExperimentContext as ExperimentContext
    from assay.plugin.experiment import ExperimentHooks as ExperimentHooks
    from assay.plugin.experiment import MeasuredFunction as MeasuredFunction
    from assay.plugin.experiment import find_trait as find_trait
    from assay.plugin.file_names import distinct_names as distinct_names
    from assay.plugin.file_names import safe_name as safe_name
    from assay.plugin.finding import Finding as Finding
    from assay.plugin.git import ask_git as ask_git
    from assay.plugin.grades import GradeBand as GradeBand
    from assay.plugin.grades import GradeScale as GradeScale
    from assay.plugin.import_check import ImportEnded as ImportEnded
    from assay.plugin.import_check import check_module as check_module
    from assay.plugin.instrument import File as File
    from assay.plugin.instrument import Instrument as Instrument
    from assay.plugin.instrument import InstrumentHooks as InstrumentHooks
    from assay.plugin.instrument import NotMeasurable as NotMeasurable
    from assay.plugin.instrument import Reading as Reading
    from assay.plugin.json_data import format_strict_json as format_strict_json
    from assay.plugin.json_data import to_json_data as to_json_data
    from assay.plugin.json_path import value_at as value_at
    from assay.plugin.judge_retries import is_judging as is_judging
    from assay.plugin.judge_retries import report_judge_retry as report_judge_retry
    from assay.plugin.judge_usage import add_judge_usage as add_judge_usage
    from assay.plugin.judge_usage import compute_judge_usage as compute_judge_usage
    from assay.plugin.lookup import find as find
    from assay.plugin.lookup import find_file_of_function as find_file_of_function
    from assay.plugin.lookup import importing as importing
    from assay.plugin.lookup import is_known as is_known
    from assay.plugin.lookup import known as known
    from assay.plugin.lookup import load_file as load_file
    from assay.plugin.lookup import register as register
    from assay.plugin.lookup import register_experiment as register_experiment
    from assay.plugin.node_queues import NodeQueues as NodeQueues
    from assay.plugin.options import option_problems as option_problems
    from assay.plugin.outcome import Outcome as Outcome
    from assay.plugin.outcome import split_result as split_result
    from assay.plugin.output import printing_to_stderr as printing_to_stderr
    from assay.plugin.prices import Cost as Cost
    from assay.plugin.prices import Price as Price
    from assay.plugin.private_files import make_folder as make_folder
    from assay.plugin.private_files import write_private as write_private
    from assay.plugin.process_memory import peak_memory as peak_memory
    from assay.plugin.radar import Corner as Corner
    from assay.plugin.radar import draw_radar as draw_radar
    from assay.plugin.reporter import Reporter as Reporter
    from assay.plugin.sandbox import SANDBOX_VARIABLE as SANDBOX_VARIABLE
    from assay.plugin.sandbox import UNCONFINED as UNCONFINED
    from assay.plugin.sandbox import Ceilings as Ceilings
    from assay.plugin.sandbox import Program as Program
    from assay.plugin.sandbox import Sandbox as Sandbox
    from assay.plugin.sandbox import find_sandbox as find_sandbox
    from assay.plugin.sandbox import python_path as python_path
    from assay.plugin.scenario import Bench as Bench
    from assay.plugin.scenario import Scenario as Scenario
    from assay.plugin.scenario import ScenarioHooks as ScenarioHooks
    from assay.plugin.scenario import ScenarioSubject as ScenarioSubject
    from assay.plugin.scenario_baseline import NOISE_SECONDS as NOISE_SECONDS
    from assay.plugin.scenario_baseline import calm_load as calm_load
    from assay.plugin.scenario_baseline import find_recovery_time as find_recovery_time
    from assay.plugin.scenario_outcome import HandledLoad as HandledLoad
    from assay.plugin.scenario_outcome import Pressure as Pressure
    from assay.plugin.scenario_outcome import Recovery as Recovery
    from assay.plugin.scenario_outcome import build_finding as build_finding
    from assay.plugin.scenario_outcome import build_load_point as build_load_point
    from assay.plugin.scenario_outcome import build_step_bands as build_step_bands
    from assay.plugin.scenario_outcome import compute_begins as compute_begins
    from assay.plugin.scenario_outcome import compute_completion_rate as compute_completion_rate
    from assay.plugin.scenario_outcome import compute_correctness as compute_correctness
    from assay.plugin.scenario_outcome import compute_delivered_rate as compute_delivered_rate
    from assay.plugin.scenario_outcome import compute_scenario_time as compute_scenario_time
    from assay.plugin.scenario_outcome import fails_as_in_calm as fails_as_in_calm
    from assay.plugin.scenario_outcome import find_calm_breach as find_calm_breach
    from assay.plugin.scenario_outcome import find_frequent_error as find_frequent_error
    from assay.plugin.scenario_outcome import find_late_breach as find_late_breach
    from assay.plugin.scenario_outcome import is_answered as is_answered
    from assay.plugin.scenario_outcome import judge_quality as judge_quality
    from assay.plugin.scenario_outcome import make_text as make_text
    from assay.plugin.scenario_outcome import plan_pressure as plan_pressure
    from assay.plugin.scenario_outcome import watch_recovery as watch_recovery
    from assay.plugin.scorer import Judged as Judged
    from assay.plugin.scorer import Judgement as Judgement
    from assay.plugin.scorer import Scorer as Scorer
    from assay.plugin.scorer import ScorerHooks as ScorerHooks
    from assay.plugin.scorers import compute_weighted_score as compute_weighted_score
    from assay.plugin.scorers import example_of as example_of
    from assay.plugin.scorers import make_scorer as make_scorer
    from assay.plugin.session import SESSION as SESSION
    from assay.plugin.session import find_session_function as find_session_function
    from assay.plugin.spans import SpanCollector as SpanCollector
    from assay.plugin.spans import usage_of_spans as usage_of_spans
    from assay.plugin.steady_clock import SteadyClock as SteadyClock
    from assay.plugin.tables import Column as Column
    from assay.plugin.tables import build_table as build_table

_NAMES = {
    "agent": "Agent AgentError AgentHooks BadAgent InvalidAnswer LOG_ENDS",
    "agent_pool": "AgentPool expand_variables make_agent",
    "case_limit": "seconds_left",
    "components": "AgentComponents AnswerEvaluator ConfigValidator ConversationMemory InputValidator RewardFunction "
    "StructuredParser ToolCaller",
    "executor": "Attempt BoundedExecutor CheckedExecutor ConfiguredExecutor Executor GeneratorSite SiteLost "
    "SpreadsGenerators",
    "experiment": "Experiment ExperimentContext ExperimentHooks MeasuredFunction find_trait",
    "file_names": "safe_name distinct_names",
    "finding": "Finding",
    "git": "ask_git",
    "grades": "GradeBand GradeScale",
    "import_check": "ImportEnded check_module",
    "instrument": "File Instrument InstrumentHooks NotMeasurable Reading",
    "json_data": "to_json_data format_strict_json",
    "json_path": "value_at",
    "judge_retries": "is_judging report_judge_retry",
    "judge_usage": "add_judge_usage compute_judge_usage",
    "lookup": "find known register register_experiment load_file importing is_known find_file_of_function",
    "node_queues": "NodeQueues",
    "options": "option_problems",
    "outcome": "Outcome split_result",
    "output": "printing_to_stderr",
    "prices": "Cost Price",
    "private_files": "make_folder write_private",
    "process_memory": "peak_memory",
    "radar": "Corner draw_radar",
    "reporter": "Reporter",
    "sandbox": "Ceilings Program Sandbox find_sandbox UNCONFINED python_path SANDBOX_VARIABLE",
    "scenario": "Bench Scenario ScenarioSubject ScenarioHooks",
    "scenario_baseline": "calm_load find_recovery_time NOISE_SECONDS",
    "scenario_outcome": "HandledLoad Pressure Recovery build_finding build_load_point build_step_bands compute_begins "
    "compute_completion_rate compute_correctness compute_delivered_rate compute_scenario_time "
    "fails_as_in_calm find_calm_breach find_frequent_error find_late_breach is_answered judge_quality "
    "make_text plan_pressure watch_recovery",
    "scorer": "Judged Judgement Scorer ScorerHooks",
    "scorers": "compute_weighted_score example_of make_scorer",
    "session": "SESSION find_session_function",
    "spans": "SpanCollector usage_of_spans",
    "steady_clock": "SteadyClock",
    "tables": "Column build_table",
}

_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # a type checker that saw this would take any misspelt name for known
    __all__ = list(_PLACES)

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module 'assay.plugin' has no attribute '{name}'")
        member = getattr(import_module(f"assay.plugin.{_PLACES[name]}"), name)
        globals()[name] = member
        return member


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
