"""The profile of a trial, from its sampled executions, with its flame graph and what sampling cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from assay.analysis.profile.opportunities import find_opportunities
from assay.analysis.profile.samples import (
    COMPUTING,
    IDLE,
    THREADS,
    SampledExecution,
    StackSample,
    read_sampled,
)
from assay.analysis.profile.tokens import analyse_tokens
from assay.analysis.profile.usage import SUGGESTIONS, bottlenecks, share_of_cpu, span_usage, utilization
from assay.model import Execution, Phase, Status, TrialReport
from assay.model.profile import FlameFrame, Overhead, Profile, TokenAnalysis
from assay.stats.intervals import length
from assay.units import percent, seconds

_INSTALL = "Install it: pip install 'assay-bench[profile]'"
_ALLOW = "Allow it: run as the same user, set kernel.yama.ptrace_scope to 0, or give a container the capability SYS_PTRACE."
_BUSY = 0.6
"""With a smaller share of a CPU while it computes, a profile says so."""
MOST_DEPTH = 60
"""Maximum depth of the flame graph."""
LEAST_SHARE = 0.001
"""Frames that are narrower cannot be seen, and would make the file long."""
LEAST_SECONDS = 0.01
"""Minimum CPU seconds in each execution; the clock is too coarse to compare less."""


def profile_of(trial: TrialReport) -> Profile | None:
    """Build the profile of a trial; None if no sampled execution came to an end."""
    executions = read_sampled(trial)
    if not executions:
        return None
    typical = sorted(executions, key=lambda execution: execution.seconds)[len(executions) // 2]
    phases = span_usage(typical)
    sampled = [execution.repetition for execution in executions if execution.threads]
    tokens = analyse_tokens(typical)
    return Profile(
        agent=trial.stored.trial.agent.name,
        trial=trial.name,
        seconds=sum(phase.seconds for phase in phases if phase.kind == "harness") + typical.seconds,
        executions=len(executions),
        samples=sum(sum(map(len, execution.threads)) for execution in executions),
        phases=phases,
        bottlenecks=bottlenecks(executions),
        utilization=utilization(executions),
        tokens=tokens,
        opportunities=find_opportunities(executions),
        flame=flame_graph(executions),
        overhead=sampling_overhead(trial.executions, sampled),
        cpu_overhead=sampling_overhead(trial.executions, sampled, "cpu_seconds"),
        problems=tuple(dict.fromkeys(_find_problems(executions, typical, tokens))),
        is_simulated=trial.is_simulated,
    )


def _find_problems(
    executions: Sequence[SampledExecution], typical: SampledExecution, tokens: TokenAnalysis
) -> Iterator[str]:
    """What is missing in the profile, why, and what to do about it."""
    for execution in executions:
        if execution.problem:
            yield explain_problem(execution.problem)
        elif not execution.threads:
            yield (
                f"The execution ended after {seconds(execution.seconds)}, before it could be sampled: "
                "bottlenecks and the flame graph are missing. Profile a longer case."
            )
    if (share := share_of_cpu(typical)) is not None and share < _BUSY:
        yield (
            f"While computing, it had a CPU only {percent(share)} of the time, because other programs used the machine: its compute "
            "time looks longer than it is. Profile on an idle machine."
        )
    if not any(call.kind != "harness" for call in typical.calls):
        yield 'There are no spans, so its phases and calls are unknown. Add them: with assay.span("search", kind="tool"): …'
    if tokens.input is not None and tokens.wasted is None:
        yield 'No span has the input of a model call, so wasted tokens are unknown. Add it: assay.span(…, kind="llm", input=prompt)'


def explain_problem(problem: str) -> str:
    """A reason why py-spy cannot sample, with the way out of it."""
    text = problem.lower()
    nothing = "bottlenecks and the flame graph are missing"
    if "not installed" in text:
        return f"py-spy is not installed, so {nothing}. {_INSTALL}"
    if "permission" in text or "operation not permitted" in text or "os error 13" in text:
        return f"py-spy may not read the process, so {nothing}. {_ALLOW}"
    if "find python" in text or "python version" in text:
        return f"The agent's process is not a Python program, so {nothing}."
    return f"py-spy could not sample, so {nothing}: {problem.splitlines()[0][:200]}"


@dataclass(slots=True)
class _Node:
    kind: str = ""
    seconds: float = 0.0
    children: dict[str, _Node] = field(default_factory=dict)


def flame_graph(executions: Sequence[SampledExecution]) -> tuple[FlameFrame, ...]:
    """The frames of all sampled executions, with the mean of their times.

    While the main thread waits for others, their frames stand in its place; several at a time make the graph wider than the
    execution was long.
    """
    root, number = _Node(), max(1, len(executions))
    for execution in executions:
        for sample, intervals in execution.during({*SUGGESTIONS, THREADS, IDLE}):
            if sample.cause == THREADS and len(execution.threads) > 1:
                continue
            _add_sample(root, sample, length(intervals) / number)
    root.seconds = sum(child.seconds for child in root.children.values())
    return tuple(_list_frames(root, 0, 0.0, root.seconds))


def _add_sample(node: _Node, sample: StackSample, seconds: float) -> None:
    frames = [
        (f"{frame.function} ({frame.file})", "library" if frame.is_library else "computing")
        for frame in sample.stack
    ]
    if sample.cause != COMPUTING:
        frames.append((sample.cause, "waiting"))
    for name, kind in frames[:MOST_DEPTH]:
        node = node.children.setdefault(name, _Node(kind))
        node.seconds += seconds


def _list_frames(node: _Node, depth: int, start: float, total: float) -> Iterator[FlameFrame]:
    for name, child in sorted(node.children.items(), key=lambda item: -item[1].seconds):
        if child.seconds >= LEAST_SHARE * total:
            yield FlameFrame(name, depth, start, child.seconds, child.kind)
            yield from _list_frames(child, depth + 1, start, total)
        start += child.seconds


def sampling_overhead(
    executions: Iterable[Execution], sampled: Sequence[int], metric: str = "seconds"
) -> Overhead | None:
    """The geometric mean of time with ÷ time without, − 1, with a 95 % interval from Student's t over the pairs.

    Each sampled execution ran right after a measured one of the same case, so a drift of the machine meets both alike. Ratios are
    compared by their logarithms, because times of a slow moment are longer by a factor.
    """
    timed: dict[Phase, dict[int, float]] = {Phase.MEASURED: {}, Phase.PROFILED: {}}
    case = None
    for execution in executions:
        if execution.status is not Status.OK or execution.phase is Phase.WARMUP:
            continue
        if execution.phase is Phase.PROFILED:
            case = execution.case if case is None else case
        if (seconds := execution.measurements.get(metric)) is not None and (
            case is None or execution.case == case
        ):
            timed[execution.phase].setdefault(execution.repetition, seconds)
    pairs = [
        math.log(timed[Phase.PROFILED][number] / timed[Phase.MEASURED][number])
        for number in sampled
        if timed[Phase.PROFILED].get(number, 0) > 0 and timed[Phase.MEASURED].get(number, 0) > 0
    ]
    if not pairs or (
        metric != "seconds" and min(map(min, (t.values() for t in timed.values()))) < LEAST_SECONDS
    ):
        return None
    mean = sum(pairs) / len(pairs)
    if len(pairs) < 2:
        return Overhead(math.expm1(mean), None, None, 1)
    from assay.stats.means import mean_half_width

    half = mean_half_width(pairs)
    return Overhead(math.expm1(mean), math.expm1(mean - half), math.expm1(mean + half), len(pairs))
