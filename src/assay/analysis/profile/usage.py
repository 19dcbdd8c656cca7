"""What the parts of an execution used, how well it used the machine, and where it spent its time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from assay.analysis.profile import samples as causes
from assay.analysis.profile.samples import Call, SampledExecution
from assay.model.profile import Bottleneck, SpanUsage, Utilization
from assay.stats.intervals import Interval, intersect, length, union

OTHER_CODE = "agent code without a span"
_MOST_BOTTLENECKS = 10
_LEAST_SHARE = 0.03
SUGGESTIONS = {
    causes.COMPUTING: "Do less here: cache the result, use a better algorithm, or move it to compiled code.",
    causes.SLEEPING: "Wait for the event itself instead of a fixed time.",
    causes.LOCKED: "Hold the lock for less time, or give each thread data of its own.",
    causes.INTERPRETER: "Threads take turns at Python code: use processes for computing.",
    causes.IO: "Avoid the call, start it earlier, or do other work meanwhile.",
    causes.CHILD: "Start the program once and keep it, or do other work meanwhile.",
}


def span_usage(execution: SampledExecution) -> tuple[SpanUsage, ...]:
    """Spans by name and place, parents before their parts; then code without a span, then the harness."""
    harness = [call for call in execution.calls if call.kind == "harness"]
    harness_seconds, own = (
        sum(call.seconds for call in harness),
        [c for c in execution.calls if c.kind != "harness"],
    )
    agent = _agent_seconds(execution)
    whole = max(agent + harness_seconds, 1e-9)
    found = list(_group_calls(own, None, 0, execution))
    if own:
        gaps = _gaps(union(call.interval for call in own if call.parent is None), agent)
        found.append(_usage(OTHER_CODE, "agent", 0, gaps, execution))
    else:
        found.append(_usage("agent", "agent", 0, [(0.0, agent)], execution))
    found.append(SpanUsage("harness", "harness", 0, 1, harness_seconds, harness_seconds / whole))
    return tuple(found)


def _agent_seconds(execution: SampledExecution) -> float:
    """The sampled time without the harness; it ends with the call of the agent, so little of the harness lies within."""
    harness = [call for call in execution.calls if call.kind == "harness"]
    within = sum(max(0.0, min(call.end, execution.seconds) - call.start) for call in harness)
    return max(execution.seconds - within, 0.0)


def _gaps(covered: Sequence[Interval], end: float) -> list[Interval]:
    edges = [0.0, *(edge for interval in covered for edge in interval), end]
    return [(edges[n], edges[n + 1]) for n in range(0, len(edges) - 1, 2) if edges[n + 1] > edges[n]]


def _group_calls(
    calls: Sequence[Call], parent: int | None, depth: int, execution: SampledExecution
) -> Iterator[SpanUsage]:
    groups: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        if call.parent == parent:
            groups.setdefault((call.name, call.kind), []).append(call)
    for (name, kind), members in groups.items():
        yield _usage(name, kind, depth, [call.interval for call in members], execution)
        for member in members:
            yield from _group_calls(calls, member.place, depth + 1, execution)


def _usage(
    name: str, kind: str, depth: int, intervals: Sequence[Interval], execution: SampledExecution
) -> SpanUsage:
    """What the process used while at least one of the intervals lasted."""
    parts, rows = union(intervals), execution.rows
    seconds = length(parts)
    harness = sum(call.seconds for call in execution.calls if call.kind == "harness")
    share = seconds / max(_agent_seconds(execution) + harness, 1e-9)
    usage = SpanUsage(name, kind, depth, len(intervals), seconds, share, tuple(intervals))
    if len(rows) < 2:
        return usage
    held = [row[2] for row in rows if any(start <= row[0] <= end for start, end in parts)]
    between = [_interpolate(rows, start, 2) for start, _ in parts]
    io = sum(_interpolate(rows, end, 3) - _interpolate(rows, start, 3) for start, end in parts)
    return replace(
        usage,
        cpu_seconds=sum(_interpolate(rows, end, 1) - _interpolate(rows, start, 1) for start, end in parts),
        memory_bytes=int(max([*held, *between], default=0)),
        io_operations=round(io),
    )


def _interpolate(rows: Sequence[Sequence[float]], at: float, column: int) -> float:
    """The value of a counter at a time between two looks at it."""
    place = bisect_right(rows, at, key=lambda row: row[0])
    if place == 0 or place == len(rows):
        return rows[min(place, len(rows) - 1)][column]
    before, after = rows[place - 1], rows[place]
    share = (at - before[0]) / max(after[0] - before[0], 1e-9)
    return before[column] + share * (after[column] - before[column])


def utilization(executions: Sequence[SampledExecution]) -> Utilization:
    """The mean over all sampled executions of each figure that is known."""
    found = [_utilization(execution) for execution in executions]

    def mean(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    return Utilization(
        mean([usage.cpu for usage in found]),
        mean([usage.memory for usage in found]),
        mean([usage.io for usage in found]),
        mean([usage.parallelization for usage in found]),
    )


def _utilization(execution: SampledExecution) -> Utilization:
    rows, wall = execution.rows, execution.seconds
    within = [row for row in rows if 0 <= row[0] <= wall]
    held = [row[2] for row in within if row[2] > 0]
    cpu = None
    if len(rows) > 1 and wall > 0:
        spent = _interpolate(rows, wall, 1) - _interpolate(rows, 0.0, 1)
        cpu = min(1.0, max(0.0, spent) / (wall * execution.cores))
    io = None
    if execution.threads and wall > 0:
        waiting = union(i for _, intervals in execution.during({causes.IO}) for i in intervals)
        computing = union(
            s.interval for thread in execution.threads for s in thread if s.cause == causes.COMPUTING
        )
        idle = length(waiting) - length(intersect(waiting, computing))
        io = min(1.0, max(0.0, 1 - idle / wall))
    memory = sum(held) / len(held) / max(held) if held else None
    return Utilization(cpu, memory, io, parallelization(execution.work))


def share_of_cpu(execution: SampledExecution) -> float | None:
    """CPU time ÷ the time that threads were computing or ready to; None where little was computed."""
    computing = sum(
        s.end - s.start for thread in execution.threads for s in thread if s.cause == causes.COMPUTING
    )
    if computing < 0.3 * execution.seconds or len(execution.rows) < 2:
        return None
    rows = execution.rows
    return (_interpolate(rows, execution.seconds, 1) - _interpolate(rows, 0.0, 1)) / computing


@dataclass(frozen=True, slots=True)
class CallChain:
    """Calls with what they cost one after the other, and what they would cost if none waited without need."""

    total: float
    wall: float
    longest: float


def chain_of(calls: Sequence[Call]) -> CallChain:
    """The longest chain of calls that need each other.

    A call needs the earlier calls whose output it uses. Where an input or an output is not known, it needs all that ended before it,
    except calls that are alike.
    """
    ends: dict[int, float] = {}
    for call in sorted(calls, key=lambda call: call.start):
        needed = [ends[other.place] for other in calls if other.place in ends and needs(call, other)]
        ends[call.place] = max(needed, default=0.0) + call.seconds
    return CallChain(
        sum(call.seconds for call in calls),
        length(union(call.interval for call in calls)),
        max(ends.values(), default=0.0),
    )


def needs(call: Call, other: Call) -> bool:
    """Whether a call may need the output of one that ended before it."""
    uses = call.attributes.get("uses")
    if isinstance(uses, list) and other.place in uses:
        return True
    is_known = "input_hash" in call.attributes and "output_hash" in other.attributes
    return not is_known and is_before(other, call) and not is_alike(call, other)


def is_alike(call: Call, other: Call) -> bool:
    """Whether two calls are the same call for another value, as in a loop over items, which seldom need each other.

    Calls of a tool without known inputs are alike if they have the same name; models are often asked in turns that build on each other.
    """
    if (call.name, call.kind) != (other.name, other.kind):
        return False
    shapes = call.attributes.get("input_shape"), other.attributes.get("input_shape")
    return shapes[0] == shapes[1] and (shapes[0] is not None or call.kind == "tool")


def is_before(call: Call, other: Call) -> bool:
    """Whether a call had ended when another began; a microsecond is within the precision of the clock."""
    return call.end <= other.start + 1e-6


def parallelization(calls: Sequence[Call]) -> float | None:
    """(sum of calls − wall) ÷ (sum − longest chain), from 0 for all in a row to 1 for as short as the chain allows."""
    chain = chain_of(calls)
    if chain.total - chain.longest < 1e-6 * max(chain.total, 1e-9) or chain.total == 0:
        return None
    return min(1.0, max(0.0, (chain.total - chain.wall) / (chain.total - chain.longest)))


def bottlenecks(executions: Sequence[SampledExecution]) -> tuple[Bottleneck, ...]:
    """Places by the wall time that an execution spent at them, the worst first."""
    wall = sum(execution.seconds for execution in executions)
    total: dict[tuple[str, str], float] = {}
    for execution in executions:
        places: dict[tuple[str, str], list[Interval]] = {}
        for sample, intervals in execution.during(SUGGESTIONS):
            places.setdefault((str(sample.place), sample.cause), []).extend(intervals)
        for key, stretches in places.items():
            total[key] = total.get(key, 0.0) + length(union(stretches))
    worst = sorted(total.items(), key=lambda item: -item[1])[:_MOST_BOTTLENECKS]
    return tuple(
        Bottleneck(location, cause, seconds / len(executions), seconds / wall, SUGGESTIONS[cause])
        for (location, cause), seconds in worst
        if wall > 0 and seconds / wall >= _LEAST_SHARE
    )
