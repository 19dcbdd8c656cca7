"""Each part of an agent by itself: validation, parsing, tools, memory, evaluation, rewards."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from numbers import Real
from random import Random
from statistics import fmean, median
from typing import Any, ClassVar, TypeVar

from pydantic import Field, field_validator

from assay.builtin.assistant.evaluation import compute_advantages
from assay.builtin.assistant.memory import find_words
from assay.builtin.experiments.components import prompts
from assay.builtin.experiments.components.subject import (
    PartBenchmark,
    PartParams,
    time_call,
)
from assay.model import Better, Metric, ToolCall, describe_metrics
from assay.plugin.agent import BadAgent
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

T = TypeVar("T")


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

    def measure(self, context: ExperimentContext) -> tuple[float, list[Any], list[Any]]:
        seconds, (broken, fine) = time_call(
            lambda: (list(map(self.judge, self.broken)), list(map(self.judge, self.fine)))
        )
        return seconds, broken, fine

    def judge(self, text: Any) -> Any:
        """What the validator made of the text; the error where it was refused."""
        try:
            return self.subject.validate(text)
        except ValueError as error:
            return error

    def is_caught(self, result: Any) -> bool:
        return isinstance(result, ValueError)

    def is_let_through(self, text: Any, result: Any) -> bool:
        """Whether most of its words arrived: a validator may tidy a text up, but unreadable text is as good as refused."""
        if self.is_caught(result) or not self.is_instance(result, str, "validate", "text"):
            return False
        words = _find_words(text)
        is_kept = 2 * len(words & _find_words(result)) >= len(words)
        return is_kept or self.refuse("validate", "harmless text without most of its words")

    def read_figures(self, result: tuple[float, list[Any], list[Any]]) -> Mapping[str, Any]:
        seconds, broken, fine = result
        alarms = [not self.is_let_through(text, result) for text, result in zip(self.fine, fine, strict=True)]
        return {
            "inputs_per_second": (len(fine) + len(broken)) / seconds,
            "caught_share": fmean(map(self.is_caught, broken)),
            "false_alarm_share": fmean(alarms),
        }


def _find_words(text: str) -> set[str]:
    return set(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


_WORD = re.compile(r"\w+")


class ConfigValidation(InputValidation):
    """All configurations of the corpus once, four right ones and eight with a mistake."""

    part: ClassVar[str] = "config_validator"
    protocol: ClassVar[Any] = ConfigValidator
    fine: ClassVar[Sequence[Any]] = prompts.FINE_CONFIGS
    broken: ClassVar[Sequence[Any]] = prompts.BROKEN_CONFIGS

    def judge(self, config: Mapping[str, Any]) -> Any:
        return self.subject.check(config)

    def is_caught(self, mistakes: Any) -> bool:
        return self.is_list(mistakes, "check", _MISTAKES) and len(mistakes) > 0

    def is_let_through(self, config: Any, mistakes: Any) -> bool:
        return self.is_list(mistakes, "check", _MISTAKES) and len(mistakes) == 0


_MISTAKES = "a list of mistakes"


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
    workload_params: ClassVar[Sequence[str]] = ("items",)
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
                self._holds(value, expected)
                for (_, value), (_, expected) in zip(each, self._texts[kind], strict=True)
            )
            for kind, each in parsed.items()
        }
        return {
            "texts_per_second": len(parsed) / sum(seconds.values()),
            **{f"{kind}_seconds": value for kind, value in seconds.items()},
            **{f"{kind}_right": float(value) for kind, value in right.items()},
        }

    def _holds(self, value: Any, expected: Mapping[str, Any]) -> bool:
        """Whether all complete values are there; of an item that was cut, a part may be."""
        if isinstance(value, ValueError) or not self.is_instance(value, Mapping, "parse", "an object"):
            return False
        items, wanted = value.get("items"), expected["items"]
        if items is None:
            items = []
        if not self.is_list(items, "parse", "a list as 'items'"):
            return False
        same = all(value.get(key) == expected[key] for key in expected if key != "items")
        return same and list(items)[: len(wanted)] == wanted and len(items) <= len(wanted) + 1


class ToolParams(PartParams):
    """How much the called tools have to do."""

    calls: int = Field(default=8, ge=2, le=1000, description="Calls at the same time.")
    kilobytes: int = Field(
        default=256, ge=1, le=100_000, description="Size of the data that each parallel call works on."
    )
    repeats: int = Field(default=50, ge=1, le=100_000, description="Single calls that are timed together.")


_NUMBER = 4
"""Characters by which the contents of parallel calls differ, so that results in a different order are found out."""


class FunctionCalling(PartBenchmark):
    """What tools cost beside their work: their schemas, a call against calling the function itself, calls at the same time."""

    Params: ClassVar[Any] = ToolParams
    workload_params: ClassVar[Sequence[str]] = ("calls", "kilobytes", "repeats")
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
        self._function = self._find_function("find_order")
        content = "x" * (self.params.kilobytes * 1024 - _NUMBER)
        self._large = [
            ToolCall("check_receipt", {"content": f"{number:{_NUMBER}}{content}"})
            for number in range(self.params.calls)
        ]
        check_receipt = self._find_function("check_receipt")
        self._expected = [check_receipt(**call.arguments) for call in self._large]
        self._wrong = (
            ToolCall("find_order", {"order": []}),
            ToolCall("find_order", {}),
            ToolCall("nothing", {}),
        )

    def _find_function(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = self.subject.function_of(name)
        if not callable(function):
            raise BadAgent(
                f"'function_of' returned a value of type {type(function).__name__} for '{name}', not a function."
            )
        return function

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
        names = [each.get("name") for each in self._list(described, "schemas") if isinstance(each, Mapping)]
        found = [
            *(self._list(each, "call") for each in (*dispatched, *alone)),
            *([each] for each in self._list(together, "call")),
        ]
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

    def _list(self, results: Any, use: str) -> list[Any]:
        return list(results) if self.is_list(results, use, "a list") else []


_PLANTED = 4
"""The message that is searched for: from so many on, a memory can find it."""
_WINDOW = 10
_FOUND = 3
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
    workload_params: ClassVar[Sequence[str]] = ("sizes", "repeats")
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
                "search": lambda: memory.search("reference zx4711", _FOUND),
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
                check(self, value, size)
                for size, each in zip(sizes, timed[use], strict=True)
                for _, value in each
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


def _is_found(benchmark: PartBenchmark, messages: Any, size: int) -> bool:
    """Whether the planted message is there, among as many as were asked for."""
    if not _are_messages(benchmark, messages, "search"):
        return False
    if len(messages) > _FOUND:
        return benchmark.refuse("search", f"more messages than the {_FOUND} that were asked for")
    return any("zx4711" in str(message.get("content", "")) for message in messages)


def _is_window(benchmark: PartBenchmark, messages: Any, size: int) -> bool:
    """Whether these are the latest messages, the oldest of them first."""
    if not _are_messages(benchmark, messages, "window"):
        return False
    found = [(message.get("role"), message.get("content")) for message in messages]
    return found == [_build_message(number) for number in range(max(0, size - _WINDOW), size)]


def _are_messages(benchmark: PartBenchmark, messages: Any, use: str) -> bool:
    return benchmark.is_list(messages, use, "a list of messages") and all(
        benchmark.is_instance(message, Mapping, use, "a message with 'role' and 'content'")
        for message in messages
    )


def _is_summary(benchmark: PartBenchmark, text: Any, size: int) -> bool:
    """Whether it mentions what was said, in few enough sentences; how well it does is not judged."""
    if not benchmark.is_instance(text, str, "summarise", "text"):
        return False
    return len(_SENTENCE_END.findall(text)) <= _SENTENCES and not _SAID.isdisjoint(find_words(text))


_TURNS = [text for scenario in prompts.SCENARIOS.values() for text in scenario]
_SAID = {word for text in _TURNS for word in find_words(text) if len(word) > 4}
_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)")
_MEMORY_CHECKS: Sequence[tuple[str, str, Callable[[PartBenchmark, Any, int], bool]]] = (
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

    def prepare_once(self, context: ExperimentContext) -> None:
        """In a different order each time, so that marks which rise or fall with every call rank nothing right for long."""
        places = [(pair, which) for pair in range(len(prompts.JUDGED)) for which in (1, 2)]
        self._order = shuffle(places, context)

    def measure(self, context: ExperimentContext) -> tuple[float, list[Any]]:
        evaluate, judged = self.subject.evaluate, prompts.JUDGED
        return time_call(
            lambda: [evaluate(judged[pair][0], judged[pair][which]) for pair, which in self._order]
        )

    def read_figures(self, result: tuple[float, list[Any]]) -> Mapping[str, Any]:
        seconds, marks = result
        by_place = dict(zip(self._order, map(self._read_marks, marks), strict=True))
        pairs = [(by_place[pair, 1], by_place[pair, 2]) for pair in range(len(prompts.JUDGED))]
        share = {
            name: fmean(bool(fit) and bool(unfit) and fit[name] > unfit[name] for fit, unfit in pairs)
            for name in ("relevance", "helpfulness")
        }
        fits = [fit for fit, _ in pairs if fit]
        common = [name for name in fits[0] if all(name in fit for fit in fits)] if fits else []
        return {
            "evaluations_per_second": len(marks) / seconds,
            **{f"{name}_right": value for name, value in share.items()},
            **{f"mean_{name}": fmean(fit[name] for fit in fits) for name in common},
        }

    def _read_marks(self, marks: Any) -> Mapping[str, float]:
        """All marks that are numbers; none where one of the three is not what it must be."""
        if not self.is_instance(marks, Mapping, "evaluate", "a mapping of marks"):
            return {}
        for name in _MARKS:
            mark = marks.get(name)
            if not self.is_instance(mark, Real, "evaluate", f"a number as the mark '{name}'"):
                return {}
            if not 0 <= mark <= 1:
                self.refuse("evaluate", f"a mark '{name}' outside 0 to 1")
                return {}
        return {name: float(mark) for name, mark in marks.items() if isinstance(mark, Real)}


_MARKS = ("relevance", "coherence", "helpfulness")


class RewardParams(PartParams):
    """How many conversations are rewarded together."""

    group_size: int = Field(
        default=8, ge=2, le=10_000, description="Conversations that are compared with each other."
    )


class RewardComputation(PartBenchmark):
    """Rewards of a group of conversations and their advantages, as group-relative policy optimisation (GRPO) takes them."""

    Params: ClassVar[Any] = RewardParams
    workload_params: ClassVar[Sequence[str]] = ("group_size",)
    part: ClassVar[str] = "reward_function"
    protocol: ClassVar[Any] = RewardFunction
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(ranked_right="higher")
    right: ClassVar[Mapping[str, float]] = {"ranked_right": 1.0}

    def setup(self, context: ExperimentContext) -> None:
        """Every second conversation of a group answers its questions; the others say something else."""
        super().setup(context)
        self._conversations = [
            (
                number % 2 == 0,
                [
                    message
                    for question, fit, unfit in prompts.JUDGED
                    for message in (
                        {"role": "user", "content": question},
                        {"role": "assistant", "content": unfit if number % 2 else fit},
                    )
                ],
            )
            for number in range(self.params.group_size)
        ]

    def prepare_once(self, context: ExperimentContext) -> None:
        self._group = shuffle(self._conversations, context)

    def measure(self, context: ExperimentContext) -> tuple[float, list[float]]:
        """The time of all rewards and advantages; no advantages where a reward is no number."""
        seconds, rewards = time_call(lambda: [self.subject.reward(turns) for _, turns in self._group])
        if not all(self.is_instance(reward, Real, "reward", "a number") for reward in rewards):
            return seconds, []
        more, advantages = time_call(compute_advantages, rewards)
        return seconds + more, advantages

    def read_figures(self, result: tuple[float, list[float]]) -> Mapping[str, Any]:
        seconds, advantages = result
        right = [
            isfinite(advantage) and (advantage > 0) == is_fit
            for advantage, (is_fit, _) in zip(advantages, self._group, strict=False)
        ]
        return {
            "rewards_per_second": len(self._group) / seconds,
            "ranked_right": sum(right) / len(self._group),
        }


def shuffle(items: Sequence[T], context: ExperimentContext) -> list[T]:
    """In an order that a part cannot know beforehand, but that is the same for all that are compared."""
    return Random(f"{context.seed}/{context.phase}/{context.execution}").sample(items, len(items))
