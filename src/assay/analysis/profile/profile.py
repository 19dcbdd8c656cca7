"""The profile of a trial, from its sampled executions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.analysis.profile.flame import flame_graph
from assay.analysis.profile.opportunities import find_opportunities
from assay.analysis.profile.overhead import sampling_overhead
from assay.analysis.profile.samples import SampledExecution, read_sampled
from assay.analysis.profile.tokens import analyse_tokens
from assay.analysis.profile.usage import bottlenecks, share_of_cpu, span_usage, utilization
from assay.model import TrialReport
from assay.model.profile import Profile, TokenAnalysis
from assay.units import percent, seconds

_INSTALL = "Install it: pip install 'assay-bench[profile]'"
_ALLOW = "Allow it: run as the same user, set kernel.yama.ptrace_scope to 0, or give a container the capability SYS_PTRACE."
_BUSY = 0.6
"""With a smaller share of a CPU while it computes, a profile says so."""


def profile_of(trial: TrialReport) -> Profile | None:
    """None where no sampled execution came to an end."""
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
                f"The execution ended after {seconds(execution.seconds)}, before it could be sampled: there are no "
                "bottlenecks and no flame graph. Profile a longer case."
            )
    if (share := share_of_cpu(typical)) is not None and share < _BUSY:
        yield (
            f"While it computed, it had a CPU for only {percent(share)} of the time: other programs used the machine, so its "
            "computing looks longer than it is. Profile on an idle machine."
        )
    if not any(call.kind != "harness" for call in typical.calls):
        yield 'There are no spans, so its phases and calls are unknown. Add them: with assay.span("search", kind="tool"): …'
    if tokens.input is not None and tokens.wasted is None:
        yield 'No span has the input of a model call, so wasted tokens are unknown. Add it: assay.span(…, kind="llm", input=prompt)'


def explain_problem(problem: str) -> str:
    """A reason why py-spy cannot sample, with the way out of it."""
    text = problem.lower()
    nothing = "there are no bottlenecks and no flame graph"
    if "not installed" in text:
        return f"py-spy is not installed, so {nothing}. {_INSTALL}"
    if "permission" in text or "operation not permitted" in text or "os error 13" in text:
        return f"py-spy may not read the process, so {nothing}. {_ALLOW}"
    if "find python" in text or "python version" in text:
        return f"The agent's process is no Python program, so {nothing}."
    return f"py-spy could not sample, so {nothing}: {problem.splitlines()[0][:200]}"
