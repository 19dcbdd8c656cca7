"""The agent type `assistant`, which the component benchmarks measure where no other agent is named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import ClassVar

from assay.builtin.assistant.evaluation import ConversationReward, WordEvaluator
from assay.builtin.assistant.memory import IndexedMemory, find_words
from assay.builtin.assistant.parsing import JsonParser
from assay.builtin.assistant.tools import ToolRegistry
from assay.builtin.assistant.validation import MessageValidator, SettingsValidator
from assay.model import Answer, Request, ToolCall, Usage

_ORDER = re.compile(r"\b(\d{5})\b")
_PRICE = re.compile(r"\b(\d+(?:\.\d\d)?) (?:euros?|dollars?)\b", re.IGNORECASE)
_DAYS = re.compile(r"\b(\d+) days?\b", re.IGNORECASE)
_REFUSAL = "I cannot work with that message. Please write it in other words."


class Assistant:
    """A service desk without a model: checks each message, remembers the conversation, calls tools and answers by rule.

    It does everything an agent does except call a model, so its timings show the framework's overhead. Its answers are
    streamed word by word and are the same for the same conversation.

    Example:
        - {name: desk, type: assistant}
    """

    is_simulated: ClassVar[bool] = False
    is_free: ClassVar[bool] = True
    is_local: ClassVar[bool] = True
    is_thread_safe: ClassVar[bool] = True

    validator: ClassVar[MessageValidator] = MessageValidator()
    config_validator: ClassVar[SettingsValidator] = SettingsValidator()
    parser: ClassVar[JsonParser] = JsonParser()
    tools: ToolRegistry = ToolRegistry()
    """Each agent has one of its own, whose threads end with it; this one shows that there are some."""
    memory: ClassVar[type[IndexedMemory]] = IndexedMemory
    evaluator: ClassVar[WordEvaluator] = WordEvaluator()
    reward_function: ClassVar[ConversationReward] = ConversationReward()

    def __init__(self) -> None:
        self.tools = ToolRegistry()

    def open(self) -> None:
        return None

    def close(self) -> None:
        self.tools.close()

    def found_version(self) -> str:
        return "1"

    def answer(self, request: Request) -> Answer:
        began = perf_counter()
        try:
            text = self.validator.validate(str(request.input))
        except ValueError:
            return self._stream([_REFUSAL], (), str(request.input), began)
        memory = self.memory()
        for message in request.history:
            memory.append(str(message["role"]), str(message["content"]))
        calls = tuple(_choose_calls(text, memory))
        results = self.tools.call(calls) if calls else ()
        return self._stream(list(_compose(text, calls, results)), calls, text, began)

    def _stream(self, sentences: list[str], calls: tuple[ToolCall, ...], text: str, began: float) -> Answer:
        """The answer with the time of each word, as a client that reads a stream would have it."""
        words, times = [], []
        for sentence in sentences:
            for word in sentence.split():
                words.append(word)
                times.append(perf_counter() - began)
        usage = Usage(len(find_words(text)), len(words), api_calls=0)
        return Answer(
            " ".join(words),
            calls,
            usage,
            first_token_seconds=times[0],
            content_seconds=tuple(times),
            model="assistant",
        )


def _choose_calls(text: str, memory: IndexedMemory) -> Iterator[ToolCall]:
    """Choose the tools to call by what the message mentions.

    If it speaks of an order without naming it, the order is the one that the conversation was about.
    """
    named = _ORDER.search(text)
    if named is None and "order" in text.lower():
        earlier = (_ORDER.search(message["content"]) for message in memory.search("order number", 3))
        named = next((match for match in earlier if match), None)
    if named is not None:
        yield ToolCall("find_order", {"order": named[1]})
    price, days = _PRICE.search(text), _DAYS.search(text)
    if price is not None:
        used = int(days[1]) if days is not None else 0
        yield ToolCall("compute_refund", {"price": float(price[1]), "days_used": min(used, 10_000)})


def _compose(text: str, calls: Sequence[ToolCall], results: Sequence[object]) -> Iterator[str]:
    yield f"Thank you for your message about {' '.join(find_words(text)[:6])}."
    for call, result in zip(calls, results, strict=True):
        if call.name == "find_order":
            yield f"Your order {call.arguments['order']} is {result}."
        else:
            yield f"We can refund {result} of your payment."
    yield "Please reply if you need anything else, and we will take the next step for you."
