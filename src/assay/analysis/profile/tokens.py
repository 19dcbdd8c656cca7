"""Tokens of an execution: used, answered from a cache, and wasted.

Wasted are the tokens of calls that were made before with the same input, and input tokens that an earlier prompt of the same execution
began with and that no cache answered. A prefix is known in characters; its share of the prompt is taken as its share of the tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay.analysis.profile.samples import Call, SampledExecution
from assay.model.profile import TokenAnalysis


@dataclass(frozen=True, slots=True)
class RepeatedCalls:
    """Calls with one and the same input."""

    first: Call
    again: tuple[Call, ...]

    @property
    def tokens(self) -> int:
        return sum(tokens_of(call) for call in self.again)

    @property
    def has_same_output(self) -> bool:
        """False where outputs differ, as they do if an agent asks several times on purpose and takes a vote."""
        outputs = {call.attributes.get("output_hash") for call in (self.first, *self.again)}
        return len(outputs) == 1


def tokens_of(call: Call) -> int:
    return (call.count("input_tokens") or 0) + (call.count("output_tokens") or 0)


def find_repeated_calls(calls: Sequence[Call]) -> list[RepeatedCalls]:
    groups: dict[tuple[str, str, object], list[Call]] = {}
    for call in sorted(calls, key=lambda call: call.start):
        if digest := call.attributes.get("input_hash"):
            groups.setdefault((call.kind, call.name, digest), []).append(call)
    return [RepeatedCalls(group[0], tuple(group[1:])) for group in groups.values() if len(group) > 1]


def prefix_tokens(call: Call) -> int:
    """Input tokens that an earlier prompt began with, less those that a cache answered."""
    characters, prefix = call.count("input_characters"), call.count("prefix_characters")
    tokens = call.count("input_tokens")
    if not characters or not prefix or not tokens:
        return 0
    return max(0, round(tokens * prefix / characters) - (call.count("cached_tokens") or 0))


def with_prefixes(calls: Sequence[Call]) -> list[Call]:
    """Calls in order, where their inputs are unknown with the prefixes that their tokens suggest.

    If each prompt of a row is at least as long as the prompt and the answer before it, it is taken to begin with them.
    """
    ordered = sorted(calls, key=lambda call: call.start)
    tokens = [(call.count("input_tokens"), call.count("output_tokens")) for call in ordered]
    is_told = len(ordered) > 2 and not any(None in pair for pair in tokens)
    if not is_told or any("input_hash" in call.attributes for call in ordered):
        return ordered
    sums = [sum(value or 0 for value in pair) for pair in tokens]
    if any((later[0] or 0) < before for before, later in zip(sums, tokens[1:], strict=False)):
        return ordered
    found = ordered[:1]
    for before, call in zip(sums, ordered[1:], strict=False):
        known = {"input_characters": call.count("input_tokens"), "prefix_characters": before}
        found.append(replace(call, attributes={**call.attributes, **known}))
    return found


def analyse_tokens(execution: SampledExecution) -> TokenAnalysis:
    """The totals that the agent reported, or else those of its spans; what is wasted follows from spans with inputs alone."""

    def total(name: str) -> int | None:
        value = execution.measurements.get(name)
        return None if value is None else round(value)

    calls = with_prefixes([call for call in execution.work if call.kind == "llm"])
    with_input = [call for call in calls if call.count("input_characters") is not None]
    again = {call.place for group in find_repeated_calls(calls) for call in group.again}
    usage = TokenAnalysis(
        total("input_tokens"),
        total("output_tokens"),
        total("cached_tokens"),
        usd=execution.measurements.get("usd"),
    )
    if not with_input and not (execution.attempts or len(calls) == 1):
        return usage
    return TokenAnalysis(
        usage.input,
        usage.output,
        usage.cache_hits,
        sum(prefix_tokens(call) for call in calls if call.place not in again),
        sum(tokens_of(call) for call in calls if call.place in again),
        usage.usd,
    )
