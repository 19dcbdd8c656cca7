"""The finding of `workflow`: how often each model's workflows succeed, what they take, how they resume, and what their plans are like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.builtin.findings.workflow_summary import (
    ModelSummary,
    compare_with_first,
    describe_lead,
    find_best,
    summarise_models,
)
from assay.model import Comparison, Doubt, Status, TrialReport
from assay.model.page import Cell, Charts, ListItem, PageSection, Points, Table, Tile
from assay.plugin import Column, Finding, build_table, to_json_data
from assay.plugin.figures import NOTHING, format_known, ratio_text, with_interval
from assay.units import format_count, percent, significant, size, usd

_MOST_FAILURES = 8
_MOST_USES = 8


@dataclass(frozen=True, slots=True)
class WorkflowResults(Finding):
    """The models of a run, each with all its executions.

    A workflow that failed has no duration in the figures, because one that fails early would look quick.
    """

    is_swept: ClassVar[bool] = False
    is_listed_in_terminal: ClassVar[bool] = False
    independent_unit: ClassVar[str] = "workflow"

    models: tuple[ModelSummary, ...]
    comparisons: tuple[tuple[str, Comparison], ...]

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        models = tuple(model for model in summarise_models(trials) if model.executions)
        return cls(models, tuple(compare_with_first(models))) if models else None

    @classmethod
    def compared_params(cls, params: Mapping[str, object]) -> Mapping[str, object]:
        """Compare the agent's model only, beside the params of the workflow.

        Agents are told apart by their names, as everywhere else, so their other options would only split
        what belongs together.
        """
        agent = params.get("agent")
        options = agent.get("options") if isinstance(agent, Mapping) else None
        model = {"model": options["model"]} if isinstance(options, Mapping) and "model" in options else {}
        return {**{name: value for name, value in params.items() if name != "agent"}, **model}

    @classmethod
    def asked_settings(cls, params: Mapping[str, object]) -> Mapping[str, object]:
        """The model, where the definition of the agent names one: the answers say which one it really was."""
        return {"model": params.get("model")}

    def document(self) -> Mapping[str, Any]:
        return {
            "workflow": {
                "models": {model.label: to_json_data(model.document()) for model in self.models},
                "comparison": to_json_data(find_best(self.models)),
            }
        }

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        charts: list[Charts] = []
        if with_charts:
            from assay.builtin.findings.workflow_charts import build_charts

            charts = [Charts([chart]) for chart in build_charts(self.models)]
        sentence, tone = describe_lead(self.models)
        first = PageSection(
            "Models",
            [_overview(self.models), *charts[:2]],
            finding=sentence,
            tone=tone,
            notes=self._comparison_notes(),
            is_simulated=all(model.is_simulated for model in self.models),
            anchor="workflow-models",
        )
        resume = PageSection(
            "Smart resume and resources", [_resume(self.models), *charts[2:4]], anchor="workflow-resume",
            finding=_resume_sentence(self.models),
        )  # fmt: skip
        plans = PageSection("Plans and commands", [_plans(self.models), *charts[4:]], anchor="workflow-plans")
        failures = [item for model in self.models for item in _failures(model)]
        left = len(failures) - _MOST_FAILURES
        more = [f"{format_count(left, 'more kind')} of failure: assay show RUN --json"] if left > 0 else []
        last = PageSection(
            "What failed", [Points(failures[:_MOST_FAILURES])], notes=more, anchor="workflow-failures"
        )
        return [first, resume, plans, *([last] if failures else [])]

    def tiles(self) -> Sequence[Tile]:
        best = max(self.models, key=lambda model: model.success_rate)
        mark = " (simulated)" if best.is_simulated else ""
        tiles = [Tile("success rate", percent(best.success_rate), best.label + mark)]
        if estimate := _duration(best):
            tiles.append(Tile("plan and run", with_interval(estimate), best.label + mark))
        if (share := best.mean("resume_detected_share")) is not None:
            tiles.append(Tile("resume finds", percent(share), "of the steps that were complete"))
        return tiles

    def doubts(self) -> Sequence[Doubt]:
        """A model that answered in the place of another is found by the treatment check; here, one that does not tell."""
        untold = [model.label for model in self.models if model.model is None and not model.is_simulated]
        message = f"{', '.join(untold)} did not report which model answered, so it cannot be verified."
        unproved = [Doubt("model_unknown", message)] if untold else []
        return [*unproved, *(_attempt_doubt(model) for model in self.models if model.attempts())]

    def _comparison_notes(self) -> list[str]:
        notes = []
        for label, comparison in self.comparisons:
            reason = f" ({comparison.reason.rstrip('.')})" if comparison.reason else ""
            ratio, first = ratio_text(comparison), self.models[0].label
            notes.append(f"{label} takes {ratio} times as long as {first}: {comparison.verdict}{reason}.")
        return notes


def _attempt_doubt(model: ModelSummary) -> Doubt:
    numbers = model.attempts()
    words = {"network": "use the network", "outside": "write outside of the working folder"}
    attempts = " and ".join(
        f"{format_count(n, 'step')} tried to {words[kind]}" for kind, n in numbers.items()
    )
    return Doubt("refused_attempt", f"{model.label}: {attempts}, which the sandbox refused.")


def _duration(model: ModelSummary) -> Any:
    return next((e for e in model.trial.estimates if e.metric.name == "seconds"), None)


def _overview(models: Sequence[ModelSummary]) -> Table:
    def name(model: ModelSummary) -> Cell:
        is_plain = model.model is None or str(model.model) in model.label
        return Cell(
            model.label, note="simulated" if model.is_simulated else "" if is_plain else str(model.model)
        )

    def succeeded(model: ModelSummary) -> Cell:
        low, high = model.success_interval
        text = f"{model.succeeded} of {len(model.executions)} [{100 * low:.0f}, {100 * high:.0f} %]"
        tone = "good" if model.success_rate == 1 else "bad" if not model.succeeded else "warn"
        return Cell(text, tone=tone)

    def cost(model: ModelSummary) -> str:
        value = model.mean("usd")
        return "unknown" if value is None else usd(value)

    return build_table(
        models,
        Column("Model", name),
        Column("Succeeded [95 %]", succeeded),
        Column("Plan and run", lambda model: format_known(_duration(model), with_interval)),
        Column("Steps done", lambda model: _pair(model, "steps_done", "total_steps")),
        Column("Results right", lambda model: _share(model, "right_results")),
        Column("Tokens", lambda model: _number(model, "tokens"), is_minor=True),
        Column("Cost a run", cost, is_minor=True),
        caption=Cell(
            "Plan and run: median of the runs that succeeded, with its interval. Other figures: means over all runs that have them."
        ),
    )


def _resume(models: Sequence[ModelSummary]) -> Table:
    def wasted(metric: str, tone: str) -> Callable[[ModelSummary], Cell]:
        return lambda model: Cell(_number(model, metric), tone=tone if model.mean(metric) else "")

    def peak(model: ModelSummary) -> str:
        return format_known(max(model.values("steps_peak_bytes"), default=None), size)

    return build_table(
        models,
        Column("Model", lambda model: model.label),
        Column("Detected", lambda model: _share(model, "completed_steps_detected_ratio"), is_minor=True),
        Column("Skipped", lambda model: _share(model, "steps_skipped_ratio"), is_minor=True),
        Column("Found", lambda model: _share(model, "resume_detected_share")),
        Column("Wasted", wasted("steps_wasted", "warn")),
        Column("Wrongly skipped", wasted("steps_wrongly_skipped", "bad")),
        Column("Peak memory", peak),
        Column(
            "CPU",
            lambda model: format_known(model.mean("steps_cpu_percent"), lambda n: f"{significant(n)} %"),
        ),
        caption=Cell(
            "Detected and skipped: of all steps. Found: detected of the steps that were complete. Wasted: complete steps that were done again."
        ),
    )


def _resume_sentence(models: Sequence[ModelSummary]) -> str:
    counted = [model for model in models if model.values("steps_wasted")]
    if not counted:
        return ""
    wasted, wrong = (
        sum(sum(model.values(name)) for model in counted)
        for name in ("steps_wasted", "steps_wrongly_skipped")
    )
    runs = sum(len(model.values("steps_wasted")) for model in counted)
    return (
        f"In {format_count(runs, 'interrupted run')}, complete steps done again: {wasted:g}; "
        f"incomplete steps skipped: {wrong:g}."
    )


def _plans(models: Sequence[ModelSummary]) -> Table:
    def tools(model: ModelSummary) -> Cell:
        names = [name for name, _ in model.uses("tools_used").most_common(_MOST_USES)]
        return Cell(", ".join(names) or NOTHING, tone="quiet")

    return build_table(
        models,
        Column("Model", lambda model: model.label),
        Column("Plan valid", lambda model: _share(model, "plan_valid")),
        Column("Token F1", lambda model: _share(model, "plan_f1")),
        Column("Required tools", lambda model: _share(model, "required_tools_share"), is_minor=True),
        Column("Commands", lambda model: _number(model, "command_count")),
        Column("Length", lambda model: _number(model, "avg_command_length"), is_minor=True),
        Column("Failed", lambda model: _number(model, "failed_commands")),
        Column("Forbidden", lambda model: _number(model, "forbidden_commands"), is_minor=True),
        Column("Errors", lambda model: _number(model, "error_indicators")),
        Column("Tools", tools, is_words=True, is_minor=True),
        caption=Cell(
            "Token F1: words of the commands against the reference plan. Errors: commands that failed or reported an error."
        ),
    )


def _failures(model: ModelSummary) -> list[ListItem]:
    """List each kind of failure once, with its count and the first message."""
    first: dict[str, str] = {}
    counts: dict[str, int] = {}
    for execution in model.executions:
        if execution.status is not Status.OK and execution.error:
            kind = execution.error.partition(":")[0]
            first.setdefault(kind, execution.error)
            counts[kind] = counts.get(kind, 0) + 1
    return [
        ListItem(
            f"{text} ({counts[kind]} of {format_count(len(model.executions), 'run')})", "bad", model.label
        )
        for kind, text in first.items()
    ]


def _share(model: ModelSummary, metric: str) -> str:
    return format_known(model.mean(metric), percent)


def _number(model: ModelSummary, metric: str) -> str:
    return format_known(model.mean(metric), significant)


def _pair(model: ModelSummary, metric: str, of: str) -> str:
    achieved, total = model.mean(metric), model.mean(of)
    return (
        NOTHING if achieved is None or total is None else f"{significant(achieved)} of {significant(total)}"
    )
