"""Each part of an agent by itself: validation, parsing, tools, memory, evaluation, rewards."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Any, ClassVar

from pydantic import Field, field_validator

from assay.builtin.assistant.evaluation import compute_advantages
from assay.builtin.assistant.memory import find_words
from assay.builtin.experiments.components import prompts
from assay.builtin.experiments.components.subject import (
    PartBenchmark,
    PartParams,
    describe_metrics,
    time_call,
)
from assay.model import Better, Metric, ToolCall
from assay.plugin.components import (
    AnswerEvaluator,
    ConfigValidator,
    ConversationMemory,
    InputValidator,
    RewardFunction,
    StructuredParser,
    ToolCaller,
)
from assay.plugin.experiment import ExperimentContext


class InputValidation(PartBenchmark):
    """All inputs of the corpus once, ten harmless ones and fourteen attacks."""

    part: ClassVar[str] = "validator"
    protocol: ClassVar[Any] = InputValidator
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        caught_share="higher", false_alarm_share="lower"
    )
    right: ClassVar[Mapping[str, float]] = {"caught_share": 1.0, "false_alarm_share": 0.0}
    fine: ClassVar[Sequence[Any]] = prompts.FINE_INPUTS
    broken: ClassVar[Sequence[Any]] = prompts.HOSTILE_INPUTS

    def measure(self, context: ExperimentContext) -> tuple[float, int, int]:
        def refuse_all() -> tuple[int, int]:
            return sum(map(self.refuses, self.broken)), sum(map(self.refuses, self.fine))

        seconds, (caught, alarms) = time_call(refuse_all)
        return seconds, caught, alarms

    def refuses(self, text: str) -> bool:
        try:
            self.subject.validate(text)
        except ValueError:
            return True
        return False

    def read_figures(self, result: tuple[float, int, int]) -> Mapping[str, Any]:
        seconds, caught, alarms = result
        return {
            "inputs_per_second": (len(self.fine) + len(self.broken)) / seconds,
            "caught_share": caught / len(self.broken),
            "false_alarm_share": alarms / len(self.fine),
        }


class ConfigValidation(InputValidation):
    """All configurations of the corpus once, four right ones and eight with a mistake."""

    part: ClassVar[str] = "config_validator"
    protocol: ClassVar[Any] = ConfigValidator
    fine: ClassVar[Sequence[Any]] = prompts.FINE_CONFIGS
    broken: ClassVar[Sequence[Any]] = prompts.BROKEN_CONFIGS

    def refuses(self, config: Mapping[str, Any]) -> bool:  # type: ignore[override]
        return bool(self.subject.check(config))


_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["order", "state"],
    "properties": {
        "order": {"type": "integer"},
        "state": {"enum": ["open", "shipped", "delivered"]},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "price": {"type": "number"}},
            },
        },
        "note": {"type": "string"},
    },
}


_CUTS = 10
"""Places at which one execution cuts its answer off, so that the share of right ones is not all or nothing."""


class ParsingParams(PartParams):
    """How large the parsed answers are."""

    items: int = Field(default=20, ge=1, le=100_000, description="Items in the list of each answer.")


class StructuredOutput(PartBenchmark):
    """The same answer as plain JSON, in a code block within text, and cut off; each must give the value that it holds."""

    Params: ClassVar[Any] = ParsingParams
    part: ClassVar[str] = "parser"
    protocol: ClassVar[Any] = StructuredParser
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        plain_right="higher", fenced_right="higher", truncated_right="higher"
    )
    right: ClassVar[Mapping[str, float]] = dict.fromkeys(metrics, 1.0)

    def prepare_once(self, context: ExperimentContext) -> None:
        """Cut at other places each time, but never within the keys that the schema requires."""
        items = [{"name": f"item {n}", "price": n + 0.5} for n in range(self.params.items)]
        whole = {"order": 12345, "state": "shipped", "items": items, "note": 'with "quotes" and {braces}'}
        text = json.dumps(whole)
        shortest = text.index('"items"') + 10
        numbers = range(context.execution * _CUTS, (context.execution + 1) * _CUTS)
        cuts = [text[: shortest + number * 7919 % (len(text) - shortest)] for number in numbers]
        known = {"order": 12345, "state": "shipped"}
        self._texts: dict[str, list[tuple[str, Mapping[str, Any]]]] = {
            "plain": [(text, whole)],
            "fenced": [(f"Here it is:\n\n```json\n{text}\n```\nAnything else?", whole)],
            "truncated": [(cut, {**known, "items": items[: cut.count("}")]}) for cut in cuts],
        }

    def measure(self, context: ExperimentContext) -> Mapping[str, list[tuple[float, Any]]]:
        return {
            kind: [time_call(self._parse, text) for text, _ in texts] for kind, texts in self._texts.items()
        }

    def _parse(self, text: str) -> Any:
        try:
            return self.subject.parse(text, _SCHEMA)
        except ValueError as error:
            return error

    def read_figures(self, parsed: Mapping[str, list[tuple[float, Any]]]) -> Mapping[str, Any]:
        seconds = {kind: fmean(seconds for seconds, _ in each) for kind, each in parsed.items()}
        right = {
            kind: fmean(
                _holds(value, expected)
                for (_, value), (_, expected) in zip(each, self._texts[kind], strict=True)
            )
            for kind, each in parsed.items()
        }
        return {
            "texts_per_second": len(parsed) / sum(seconds.values()),
            **{f"{kind}_seconds": value for kind, value in seconds.items()},
            **{f"{kind}_right": float(value) for kind, value in right.items()},
        }


def _holds(value: Any, expected: Mapping[str, Any]) -> bool:
    """Whether all complete values are there; of an item that was cut, a part may be."""
    if not isinstance(value, Mapping):
        return False
    items, wanted = value.get("items") or [], expected["items"]
    same = all(value.get(key) == expected[key] for key in expected if key != "items")
    return same and list(items[: len(wanted)]) == wanted and len(items) <= len(wanted) + 1


class ToolParams(PartParams):
    """How much the called tools have to do."""

    calls: int = Field(default=8, ge=2, le=1000, description="Calls at the same time.")
    kilobytes: int = Field(
        default=256, ge=1, le=100_000, description="Size of the data that each parallel call works on."
    )
    repeats: int = Field(default=50, ge=1, le=100_000, description="Single calls that are timed together.")


_NUMBER = 4
"""Characters by which the contents of parallel calls differ, so that results in another order are found out."""


class FunctionCalling(PartBenchmark):
    """What tools cost beside their work: their schemas, a call against calling the function itself, calls at the same time."""

    Params: ClassVar[Any] = ToolParams
    part: ClassVar[str] = "tools"
    protocol: ClassVar[Any] = ToolCaller
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        Metric("parallel_speedup", "", Better.HIGHER),
        refused_share="higher",
        results_right="higher",
        schemas_right="higher",
    )
    right: ClassVar[Mapping[str, float]] = dict.fromkeys(
        ("refused_share", "results_right", "schemas_right"), 1.0
    )

    def setup(self, context: ExperimentContext) -> None:
        super().setup(context)
        self._single = ToolCall("find_order", {"order": "12345"})
        self._function = self.subject.function_of("find_order")
        content = "x" * (self.params.kilobytes * 1024 - _NUMBER)
        self._large = [
            ToolCall("check_receipt", {"content": f"{number:{_NUMBER}}{content}"})
            for number in range(self.params.calls)
        ]
        check_receipt = self.subject.function_of("check_receipt")
        self._expected = [check_receipt(**call.arguments) for call in self._large]
        self._wrong = (
            ToolCall("find_order", {"order": []}),
            ToolCall("find_order", {}),
            ToolCall("nothing", {}),
        )

    def measure(self, context: ExperimentContext) -> Mapping[str, Any]:
        repeats = range(self.params.repeats)
        call = self.subject.call
        return {
            "schemas": time_call(self.subject.schemas),
            "direct": time_call(lambda: [self._function("12345") for _ in repeats]),
            "through": time_call(lambda: [call([self._single]) for _ in repeats]),
            "serial": time_call(lambda: [call([large]) for large in self._large]),
            "parallel": time_call(call, self._large),
            "refused": sum(map(self._refuses, self._wrong)),
        }

    def read_figures(self, timed: Mapping[str, Any]) -> Mapping[str, Any]:
        """Results are right where they are those of the functions themselves, in the order of the calls."""
        schema, described = timed["schemas"]
        direct, results = timed["direct"]
        through, dispatched = timed["through"]
        serial, alone = timed["serial"]
        parallel, together = timed["parallel"]
        names = [each.get("name") for each in described]
        found = [*map(_list, (*dispatched, *alone)), *([each] for each in _list(together))]
        wanted = [[each] for each in (*results, *self._expected, *self._expected)]
        right = sum(each == expected for each, expected in zip(found, wanted, strict=False))
        return {
            "schema_seconds": schema,
            "dispatch_seconds": through / len(results),
            "overhead_seconds": (through - direct) / len(results),
            "parallel_seconds": parallel,
            "parallel_speedup": serial / parallel,
            "refused_share": timed["refused"] / len(self._wrong),
            "results_right": right / max(len(found), len(wanted)),
            "schemas_right": sum(names.count(call.name) == 1 for call in (self._single, self._large[0])) / 2,
        }

    def _refuses(self, call: ToolCall) -> bool:
        try:
            self.subject.call([call])
        except ValueError:
            return True
        return False


def _list(results: object) -> list[object]:
    return list(results) if isinstance(results, Sequence) else []


_PLANTED = 4
"""The message that is searched for: from so many on, a memory can find it."""
_WINDOW = 10
_SENTENCES = 3


class MemoryParams(PartParams):
    """How long the conversation gets."""

    sizes: list[int] = Field(
        default=[10, 100, 1_000, 10_000, 100_000],
        min_length=3,
        description="Numbers of messages at which the memory is used: three or more, all different, each at least 4.",
    )
    repeats: int = Field(
        default=5, ge=1, le=10_000, description="Uses at each size, of which the median counts."
    )

    @field_validator("sizes")
    @classmethod
    def _check_sizes(cls, sizes: list[int]) -> list[int]:
        if min(sizes) < _PLANTED:
            raise ValueError(f"each must be at least {_PLANTED}, not {min(sizes)}")
        if len(set(sizes)) < len(sizes):
            raise ValueError("each number of messages may be given once only")
        return sizes


class MemoryUse(PartBenchmark):
    """One conversation that grows: appending, and at each size the window, a summary and a search for one early message."""

    Params: ClassVar[Any] = MemoryParams
    part: ClassVar[str] = "memory"
    protocol: ClassVar[Any] = ConversationMemory
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        *(Metric(f"{use}_growth", "", Better.LOWER) for use in ("window", "summarise", "search")),
        found_share="higher",
        window_right="higher",
        summary_right="higher",
    )
    right: ClassVar[Mapping[str, float]] = dict.fromkeys(
        ("found_share", "window_right", "summary_right"), 1.0
    )

    def measure(self, context: ExperimentContext) -> Mapping[str, Any]:
        memory, size = self.subject(), 0
        append = 0.0
        timed: dict[str, list[list[tuple[float, Any]]]] = {"window": [], "summarise": [], "search": []}
        for wanted in sorted(self.params.sizes):
            append += time_call(_fill, memory, size, wanted)[0]
            size = wanted
            uses = {
                "window": lambda: memory.window(_WINDOW),
                "summarise": lambda: memory.summarise(_SENTENCES),
                "search": lambda: memory.search("reference zx4711", 3),
            }
            for name, use in uses.items():
                timed[name].append([time_call(use) for _ in range(self.params.repeats)])
        return {"append": append / size, "timed": timed}

    def read_figures(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        from assay.stats.line import growth_exponent

        sizes, timed = sorted(self.params.sizes), result["timed"]
        times = {name: [[seconds for seconds, _ in each] for each in calls] for name, calls in timed.items()}
        right = {
            name: fmean(
                check(value, size) for size, each in zip(sizes, timed[use], strict=True) for _, value in each
            )
            for name, use, check in _MEMORY_CHECKS
        }
        # Other programs only ever add time, so how a use grows with the size shows best in its fastest calls.
        growth = {
            name: growth_exponent(sizes, [min(each) for each in calls]) for name, calls in times.items()
        }
        return {
            "append_seconds": result["append"],
            **right,
            **{f"{name}_growth": line.slope for name, line in growth.items() if line is not None},
            **{
                f"at_{size}": {f"{name}_seconds": median(times[name][place]) for name in times}
                for place, size in enumerate(sizes)
            },
        }


def _fill(memory: Any, first: int, last: int) -> None:
    for number in range(first, last):
        memory.append(*_build_message(number))


def _build_message(number: int) -> tuple[str, str]:
    """Role and text of a message of a long service conversation; the fourth one has a reference that no other has."""
    text = (
        "My reference is zx4711." if number == _PLANTED - 1 else f"{_TURNS[number % len(_TURNS)]} ({number})"
    )
    return "assistant" if number % 2 else "user", text


def _is_found(messages: Sequence[Mapping[str, Any]], size: int) -> bool:
    return any("zx4711" in str(message.get("content", "")) for message in messages)


def _is_window(messages: Sequence[Mapping[str, Any]], size: int) -> bool:
    """Whether these are the latest messages, the oldest of them first."""
    found = [(message.get("role"), message.get("content")) for message in messages]
    return found == [_build_message(number) for number in range(max(0, size - _WINDOW), size)]


def _is_summary(text: Any, size: int) -> bool:
    """Whether it mentions what was said, in few enough sentences; how well it does is not judged."""
    if not isinstance(text, str) or len(_SENTENCE_END.findall(text)) > _SENTENCES:
        return False
    return not _SAID.isdisjoint(find_words(text))


_TURNS = [text for scenario in prompts.SCENARIOS.values() for text in scenario]
_SAID = {word for text in _TURNS for word in find_words(text) if len(word) > 4}
_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)")
_MEMORY_CHECKS: Sequence[tuple[str, str, Callable[[Any, int], bool]]] = (
    ("found_share", "search", _is_found),
    ("window_right", "window", _is_window),
    ("summary_right", "summarise", _is_summary),
)
"""A metric, the use that it is of, and what tells at so many messages whether a result of it is right."""


class EvaluationMetrics(PartBenchmark):
    """Relevance, coherence and helpfulness of answers to questions, and of answers to something else."""

    part: ClassVar[str] = "evaluator"
    protocol: ClassVar[Any] = AnswerEvaluator
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        relevance_right="higher", helpfulness_right="higher"
    )
    right: ClassVar[Mapping[str, float]] = dict.fromkeys(metrics, 1.0)

    def measure(self, context: ExperimentContext) -> tuple[float, list[tuple[Any, Any]]]:
        evaluate = self.subject.evaluate
        return time_call(
            lambda: [(evaluate(asked, fit), evaluate(asked, unfit)) for asked, fit, unfit in prompts.JUDGED]
        )

    def read_figures(self, result: tuple[float, list[tuple[Any, Any]]]) -> Mapping[str, Any]:
        seconds, pairs = result
        share = {
            name: sum(fit[name] > unfit[name] for fit, unfit in pairs) / len(pairs)
            for name in ("relevance", "helpfulness")
        }
        return {
            "evaluations_per_second": 2 * len(pairs) / seconds,
            **{f"{name}_right": value for name, value in share.items()},
            **{f"mean_{name}": sum(fit[name] for fit, _ in pairs) / len(pairs) for name in pairs[0][0]},
        }


class RewardParams(PartParams):
    """How many conversations are rewarded together."""

    group_size: int = Field(
        default=8, ge=2, le=10_000, description="Conversations that are compared with each other."
    )


class RewardComputation(PartBenchmark):
    """Rewards of a group of conversations and their advantages, as group-relative policy optimisation (GRPO) takes them."""

    Params: ClassVar[Any] = RewardParams
    part: ClassVar[str] = "reward_function"
    protocol: ClassVar[Any] = RewardFunction
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(ranked_right="higher")
    right: ClassVar[Mapping[str, float]] = {"ranked_right": 1.0}

    def setup(self, context: ExperimentContext) -> None:
        """Every second conversation of a group answers its questions; the others say something else."""
        super().setup(context)
        self._group = [
            [
                message
                for asked, fit, unfit in prompts.JUDGED
                for message in (
                    {"role": "user", "content": asked},
                    {"role": "assistant", "content": unfit if number % 2 else fit},
                )
            ]
            for number in range(self.params.group_size)
        ]

    def measure(self, context: ExperimentContext) -> tuple[float, list[float]]:
        return time_call(lambda: compute_advantages([self.subject.reward(turns) for turns in self._group]))

    def read_figures(self, result: tuple[float, list[float]]) -> Mapping[str, Any]:
        seconds, advantages = result
        right = [(advantage > 0) == (number % 2 == 0) for number, advantage in enumerate(advantages)]
        return {"rewards_per_second": len(advantages) / seconds, "ranked_right": sum(right) / len(right)}
