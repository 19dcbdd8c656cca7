"""Finds what could be saved, by rules on the data: each claim has its evidence and its arithmetic.

A rule claims only what the data show. Calls count as independent only where inputs and outputs are known and no input has anything of
an earlier output; a sleep only where no call of a model or a tool is open; parsing only where the same documents were counted several
times. A saving below `LEAST_SHARE` of the execution is none.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from assay.analysis.profile import samples as causes
from assay.analysis.profile.samples import Call, SampledExecution, StackSample
from assay.analysis.profile.tokens import find_repeated_calls, prefix_tokens, with_prefixes
from assay.analysis.profile.usage import chain_of, is_before, needs
from assay.model.profile import Opportunity
from assay.stats.intervals import Interval, intersect, length, union
from assay.units import count, format_count, percent, seconds

LEAST_SHARE = 0.05
LEAST_TOKENS = 200
"""Fewer wasted tokens than this are not worth a change; of prompts that only begin alike, in each of them."""
LEAST_QUERIES = 8
LEAST_ALIKE = 4
"""So many calls in a row that are alike count as a loop, where inputs or outputs are not known."""
_SHORT_SECONDS = 0.1
_LEAST_PARSED = 3

Rule = Callable[[SampledExecution], Iterator[Opportunity]]


def find_opportunities(executions: Sequence[SampledExecution]) -> tuple[Opportunity, ...]:
    """What at least half of the executions show, with the mean of what each would save, the largest first."""
    found: dict[tuple[str, str], list[Opportunity]] = {}
    for execution in executions:
        for rule in RULES:
            for opportunity in rule(execution):
                found.setdefault((opportunity.category, opportunity.location), []).append(opportunity)
    lasting = [group for group in found.values() if 2 * len(group) >= len(executions)]
    typical = [sorted(group, key=lambda o: o.impact)[len(group) // 2] for group in lasting]
    return tuple(sorted(typical, key=lambda opportunity: -opportunity.impact))


def find_independent_calls(execution: SampledExecution) -> Iterator[Opportunity]:
    """Sequential calls that are independent: run concurrently, they take as long as the longest chain.

    Two calls are independent if no input of the later one contains anything from an output of the earlier
    one. The saving is the time of all calls in a row less that of the longest chain of dependent calls.
    If inputs and outputs were not recorded, only a loop of several similar calls counts, and the reader
    is told to check it.
    """
    skipped = {c.place for group in find_repeated_calls(execution.work) for c in group.again}
    skipped |= {call.place for group in _similar_queries(execution) for call in group}
    for calls in _siblings([call for call in execution.work if call.place not in skipped]):
        waited = [
            (call, other)
            for number, call in enumerate(calls)
            for other in calls[number + 1 :]
            if is_before(call, other) and not needs(other, call)
        ]
        chain = chain_of(calls)
        saved = chain.wall - chain.longest
        if not waited or saved < LEAST_SHARE * execution.seconds:
            continue
        is_known = all({"input_hash", "output_hash"} <= call.attributes.keys() for call in calls[:-1])
        if not is_known and len(calls) < LEAST_ALIKE:
            continue
        names = ", ".join(dict.fromkeys(f"'{call.name}'" for call in calls))
        reason = (
            "no input contains anything from an earlier output"
            if is_known
            else "they differ only in values, as in a loop over items; their outputs are not known, so check it"
        )
        yield Opportunity(
            "parallelization",
            f"{seconds(saved)} of {seconds(execution.seconds)}: run independent calls at the same time",
            saved / execution.seconds,
            "medium",
            f"Start the {len(calls)} calls {names} together (asyncio.gather, or a thread pool) and wait for all of them.",
            _name_group(calls),
            (
                f"{len(calls)} calls {names} ran one after the other",
                f"{count(len(waited))} pairs of them are independent: {reason}",
            ),
            f"{seconds(chain.wall)} in a row − {seconds(chain.longest)} for the longest chain = {seconds(saved)}",
            saved,
        )


def _siblings(calls: Sequence[Call]) -> list[list[Call]]:
    groups: dict[int | None, list[Call]] = {}
    for call in sorted(calls, key=lambda call: call.start):
        groups.setdefault(call.parent, []).append(call)
    return list(groups.values())


def _name_group(calls: Sequence[Call]) -> str:
    return " + ".join(dict.fromkeys(f"span '{call.name}'" for call in calls))


def find_repeated_inputs(execution: SampledExecution) -> Iterator[Opportunity]:
    """Find calls that were repeated with the same input and gave the same output."""
    for group in find_repeated_calls(execution.work):
        saved = length(union(call.interval for call in group.again))
        tokens = group.tokens if group.first.kind == "llm" else 0
        used = execution.measurements.get("tokens") or 0.0
        impact = max(saved / execution.seconds, tokens / used if used else 0.0)
        if not group.has_same_output or impact < LEAST_SHARE:
            continue
        again = len(group.again)
        outputs = ", and gave the same output" if "output_hash" in group.first.attributes else ""
        what = f" and {count(tokens)} tokens" if tokens else ""
        yield Opportunity(
            "caching",
            f"{seconds(saved)} of {seconds(execution.seconds)}{what}: make the same call only once",
            impact,
            "low",
            f"Keep the answer of '{group.first.name}' by its input, for example with functools.cache.",
            f"span '{group.first.name}'",
            (f"'{group.first.name}' was called {again + 1} times with the same input{outputs}",),
            f"{again} repeated calls took {seconds(saved)}"
            + (f" and {count(tokens)} tokens" if tokens else ""),
            saved,
            tokens,
        )


def find_many_queries(execution: SampledExecution) -> Iterator[Opportunity]:
    """Many short calls that differ only in a value: one call with all values takes about as long as one of them."""
    for calls in _similar_queries(execution):
        total, longest = length(union(c.interval for c in calls)), max(c.seconds for c in calls)
        saved = total - longest
        if saved < LEAST_SHARE * execution.seconds:
            continue
        name = calls[0].name
        yield Opportunity(
            "batching",
            f"{seconds(saved)} of {seconds(execution.seconds)}: one query instead of {len(calls)}",
            saved / execution.seconds,
            "medium",
            f"Ask for all values in one '{name}' (a join, IN (…), or a batch request) instead of one call for each (N+1).",
            f"span '{name}'",
            (
                f"'{name}' was called {len(calls)} times with inputs that differ only in their values",
                f"each took {seconds(median(call.seconds for call in calls))}, one after the other",
            ),
            f"{seconds(total)} for {len(calls)} calls − {seconds(longest)} for one = {seconds(saved)}",
            saved,
        )


def _similar_queries(execution: SampledExecution) -> list[list[Call]]:
    """Short calls of a tool in a row, of one shape, each with a different value, none needing another."""
    groups: dict[tuple[object, ...], list[Call]] = {}
    for call in execution.work:
        if call.kind == "tool":
            shape = call.attributes.get("input_shape")
            groups.setdefault((call.parent, call.name, shape), []).append(call)
    return [
        calls
        for calls in groups.values()
        if len(calls) >= LEAST_QUERIES
        and len({call.attributes.get("input_hash", call.place) for call in calls}) == len(calls)
        and median(call.seconds for call in calls) <= _SHORT_SECONDS
        and not any(needs(next_call, other) for other, next_call in itertools.pairwise(calls))
        and length(union(call.interval for call in calls)) > 0.8 * sum(call.seconds for call in calls)
    ]


def find_contended_locks(execution: SampledExecution) -> Iterator[Opportunity]:
    """Threads that wait for one lock, outside of the places where threads wait by design."""
    waits: dict[str, list[tuple[int, StackSample]]] = {}
    for number, thread in enumerate(execution.threads):
        for sample in thread:
            if sample.cause == causes.LOCKED:
                waits.setdefault(sample.lock or str(sample.place), []).append((number, sample))
    for found in waits.values():
        threads = {number for number, _ in found}
        saved = length(union(sample.interval for _, sample in found))
        if len(threads) < 2 or saved < LEAST_SHARE * execution.seconds:
            continue
        places: dict[str, float] = {}
        for _, sample in found:
            places[str(sample.place)] = places.get(str(sample.place), 0.0) + sample.end - sample.start
        total = sum(places.values())
        worst = sorted((place for place in places if places[place] >= 0.1 * total), key=lambda p: -places[p])
        yield Opportunity(
            "lock contention",
            f"{seconds(saved)} of {seconds(execution.seconds)}: threads wait for one lock",
            saved / execution.seconds,
            "high",
            "Do slow work outside of the lock, protect less with it, or give each thread data of its own.",
            worst[0],
            (
                f"{len(threads)} threads waited for the same lock, {seconds(total)} in all",
                f"they waited at {', '.join(worst)}",
            ),
            f"at least one thread waited for {seconds(saved)}, which is the most that can be saved",
            saved,
        )


def find_repeated_context(execution: SampledExecution) -> Iterator[Opportunity]:
    """Prompts that begin with what was sent before, and are paid for again.

    A prompt's repeated prefix is counted in tokens, less those that the provider served from its cache.
    It is a growing context if most prompts continue the one before, and a shared beginning otherwise.
    Calls that repeat an earlier one entirely are left to the rule about them.
    """
    calls = with_prefixes([call for call in execution.work if call.kind == "llm"])
    again = {call.place for group in find_repeated_calls(calls) for call in group.again}
    fresh = sorted((c for c in calls if c.place not in again), key=lambda call: call.start)
    wasted, used = sum(map(prefix_tokens, fresh)), execution.measurements.get("tokens") or 0.0
    if len(fresh) < 2 or wasted < LEAST_TOKENS or wasted < LEAST_SHARE * used or not used:
        return
    sent = sum(call.count("input_tokens") or 0 for call in fresh)
    pairs = list(itertools.pairwise(fresh))
    is_growing = 2 * sum(_continues(later, earlier) for earlier, later in pairs) > len(pairs)
    if not is_growing and wasted < LEAST_TOKENS * len(pairs):
        return
    is_told = all(call.count("cached_tokens") is not None for call in fresh)
    yield Opportunity(
        "growing context" if is_growing else "prompt caching",
        f"{count(wasted)} of {count(round(used))} tokens: "
        + (
            "each prompt repeats the conversation so far"
            if is_growing
            else "prompts begin with the same text"
        ),
        wasted / used,
        "medium" if is_growing else "low",
        "Cache the prefix at the provider (prompt caching), and summarise or drop old turns."
        if is_growing
        else "Put what all prompts share first, and cache it at the provider (prompt caching).",
        _name_group(fresh),
        (
            f"{len(fresh)} prompts with {count(sent)} input tokens; {count(wasted)} of them were sent before and came from no cache",
            *(() if is_told else ("the agent does not report cached tokens, so none are counted",)),
        ),
        f"sum over the prompts of input tokens × repeated prefix ÷ length of the prompt − cached tokens = {count(wasted)}",
        tokens=wasted,
    )


def _continues(later: Call, earlier: Call) -> bool:
    """Whether a prompt begins with nearly all of another and continues."""
    before, prefix = earlier.count("input_characters") or 0, later.count("prefix_characters") or 0
    return prefix >= 0.8 * before and (later.count("input_characters") or 0) > 1.02 * before


def find_repeated_parsing(execution: SampledExecution) -> Iterator[Opportunity]:
    """Find JSON documents that the same caller parsed again."""
    for caller in execution.parsing:
        characters, again = caller.get("characters", 0), caller.get("repeated_characters", 0)
        if not characters or caller.get("calls", 0) < _LEAST_PARSED:
            continue
        place = f"{caller['file']}:{caller['line']} {caller['function']}"
        spent = union(
            interval
            for sample, intervals in execution.during({causes.COMPUTING})
            if _is_parsing(sample, caller["file"], caller["line"])
            for interval in intervals
        )
        saved = length(spent) * again / characters
        if saved < LEAST_SHARE * execution.seconds:
            continue
        yield Opportunity(
            "repeated parsing",
            f"{seconds(saved)} of {seconds(execution.seconds)}: parse each document once",
            saved / execution.seconds,
            "low",
            "Parse the document once and keep the result, for example in a variable outside of the loop or with functools.cache.",
            place,
            (
                f"{count(caller['calls'])} calls of json parsed {format_count(caller['documents'], 'different document')}",
                f"{percent(length(spent) / execution.seconds)} of the time went into it",
            ),
            f"{seconds(length(spent))} of parsing × {percent(again / characters)} that was parsed before = {seconds(saved)}",
            saved,
        )


def find_queries_in_loops(execution: SampledExecution) -> Iterator[Opportunity]:
    """One line that sends the same query to a database again and again, each time with a different value."""
    for caller in execution.queries:
        calls, shapes = caller.get("calls", 0), caller.get("documents", 0)
        if calls < LEAST_QUERIES * max(1, shapes):
            continue
        spent = union(
            interval
            for sample, intervals in execution.during({causes.COMPUTING, causes.IO})
            if (sample.place.file, sample.place.line) == (caller["file"], caller["line"])
            for interval in intervals
        )
        saved = length(spent) * (1 - shapes / calls)
        if saved < LEAST_SHARE * execution.seconds:
            continue
        yield Opportunity(
            "batching",
            f"{seconds(saved)} of {seconds(execution.seconds)}: one query instead of {count(calls)}",
            saved / execution.seconds,
            "medium",
            "Ask for all values in one query (a join, or IN (…)) instead of one query for each (N+1).",
            f"{caller['file']}:{caller['line']} {caller['function']}",
            (f"this line sent {count(calls)} queries that differ only in their values",),
            f"{seconds(length(spent))} in that line × (1 − {count(shapes)} ÷ {count(calls)}) = {seconds(saved)}, at most",
            saved,
        )


def _is_parsing(sample: StackSample, file: str, line: int) -> bool:
    """Whether a sample is in the JSON parser, called from that line."""
    for outer, inner in zip(sample.stack, sample.stack[1:], strict=False):
        if (outer.file, outer.line) == (file, line):
            return inner.file.startswith("json/")
    return False


def find_idle_sleep(execution: SampledExecution) -> Iterator[Opportunity]:
    """Time in which the execution slept, off the CPU and without any input or output."""
    called = union(c.interval for c in execution.calls if c.kind in ("llm", "tool", "queue"))
    # Who sleeps while others wait for a lock holds them up: that is what the rule for locks is about.
    locked = union(s.interval for thread in execution.threads for s in thread if s.cause == causes.LOCKED)
    excused = union([*called, *locked])
    places: dict[str, list[Interval]] = {}
    for sample, intervals in execution.during({causes.SLEEPING}):
        places.setdefault(str(sample.place), []).extend(intervals)
    for place, intervals in places.items():
        slept = union(intervals)
        saved = length(slept) - length(intersect(slept, excused))
        if saved < LEAST_SHARE * execution.seconds:
            continue
        yield Opportunity(
            "sleep",
            f"{seconds(saved)} of {seconds(execution.seconds)}: remove the sleep",
            saved / execution.seconds,
            "low",
            "Wait for the event itself (a condition, a future, a response) instead of a fixed time, or remove the wait.",
            place,
            (f"the process slept there for {seconds(saved)}, on no CPU and waiting for no input or output",),
            f"the time that it slept outside of calls = {seconds(saved)}",
            saved,
        )


def find_retried_calls(execution: SampledExecution) -> Iterator[Opportunity]:
    """Find requests that failed and were sent again."""
    attempt_seconds = [a.get("seconds") for a in execution.attempts]
    waited = [a.get("waited") for a in execution.attempts]
    saved = sum(value for value in (*attempt_seconds, *waited) if isinstance(value, (int, float)))
    if not attempt_seconds or saved < LEAST_SHARE * execution.seconds:
        return
    yield Opportunity(
        "retries",
        f"{seconds(saved)} of {seconds(execution.seconds)}: avoid requests that are refused",
        min(1.0, saved / execution.seconds),
        "medium",
        "Stay below the rate limit of the server, and find out why requests fail.",
        "requests of the agent",
        (f"{len(attempt_seconds)} attempts failed: {execution.attempts[0].get('error')}",),
        f"time of failed attempts and the pauses after them = {seconds(saved)}",
        saved,
    )


RULES: tuple[Rule, ...] = (
    find_independent_calls,
    find_repeated_inputs,
    find_many_queries,
    find_contended_locks,
    find_repeated_context,
    find_repeated_parsing,
    find_queries_in_loops,
    find_idle_sleep,
    find_retried_calls,
)
