"""Teams for tests: files of them, and legs whose times are made up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.analysis.estimates.trial import add_estimates
from assay.model import (
    AgentVersion,
    Execution,
    Iterations,
    Phase,
    Series,
    Status,
    StoredTrial,
    Trial,
    TrialReport,
)

Request = tuple[str, str, float, float, float | None]
"""Agent, case, start, end, TTFT."""
LOCAL = """\
import time

def answer(request):
    time.sleep(0.05)
    return {"output": f"{request.input}!", "usage": {"input_tokens": 1, "output_tokens": 10}}
"""


def local_team(**keys: Any) -> str:
    """A team of two functions in `agents.py`."""
    agents = [{"name": name, "type": "python", "target": "agents.py:answer"} for name in ("first", "second")]
    cases = [{"id": "a", "input": "A"}, {"id": "b", "input": "B"}]
    iterations = {"warmup": 0, "measured": 3}
    return json.dumps(
        {"team": "pair", "agents": agents, "cases": cases, "iterations": iterations, "seed": 1} | keys
    )


def server_team(url: str, agents: int = 2, **keys: Any) -> str:
    """A team that shares one OpenAI-compatible server."""
    members = [
        {"name": f"agent{number}", "type": "openai", "model": "m", "base_url": f"{url}/v1"}
        for number in range(agents)
    ]
    cases = [{"id": "a", "input": "Say something."}]
    return json.dumps({"team": "shared", "agents": members, "cases": cases, "seed": 1} | keys)


@dataclass
class Legs:
    """Both legs of a team as if they had been executed; a row of `stints` is (agent, case, start, end, ttft)."""

    permits: int = 2
    agents: Sequence[str] = ("first", "second")
    sequential: list[Execution] = field(default_factory=list)
    concurrent: list[Execution] = field(default_factory=list)

    def add(
        self,
        sequential: Sequence[Request],
        concurrent: Sequence[Request],
        skew: float = 0.0,
        tokens: tuple[float, float] = (100.0, 100.0),
        status: Status = Status.OK,
    ) -> Legs:
        for made, stints, tokens_made in (
            (self.sequential, sequential, tokens[0]),
            (self.concurrent, concurrent, tokens[1]),
        ):
            wall = max(end for *_, end, _ in stints)
            measurements = {
                "seconds": wall,
                "output_tokens": tokens_made,
                "tokens_per_second": tokens_made / wall,
            }
            if made is self.concurrent:
                measurements["skew_seconds"] = skew
            for name in self.agents:
                own = [stint for stint in stints if stint[0] == name]
                busy = sum(end - start for _, _, start, end, _ in own)
                measurements |= {f"{name}.seconds": busy, f"{name}.tokens_per_second": tokens_made / 2 / busy}
                if own and own[0][4] is not None:
                    measurements[f"{name}.ttft_seconds"] = sum(row[4] or 0.0 for row in own) / len(own)
            made.append(
                _execution(len(made), measurements, stints, status if made is self.concurrent else Status.OK)
            )
        return self

    def reports(self) -> list[TrialReport]:
        return [
            _report(0, "sequential", self.sequential, self.permits, self.agents),
            _report(1, "concurrent", self.concurrent, self.permits, self.agents),
        ]


def _execution(
    number: int,
    measurements: Mapping[str, float],
    stints: Sequence[Request],
    status: Status,
) -> Execution:
    rows = [
        {"agent": agent, "case": case, "start": start, "end": end} | ({} if ttft is None else {"ttft": ttft})
        for agent, case, start, end, ttft in stints
    ]
    output = {"stints": rows, "answers": {}, "models": {}}
    return Execution(0, number, Phase.MEASURED, 0, status, 0.0, measurements, output=output)


def _report(
    index: int, leg: str, executions: Sequence[Execution], permits: int, agents: Sequence[str]
) -> TrialReport:
    trial = Trial(
        index=index,
        name=f"pair[leg={leg}]",
        agent=AgentVersion(" + ".join(agents)),
        benchmark="pair",
        experiment="team",
        params={
            "leg": leg,
            "permits": permits,
            "agents": [
                {"name": name, "type": "openai", "options": {"model": "m"}, "cases": []} for name in agents
            ],
        },
        iterations=Iterations(0, 1),
        axes={"leg": leg},
        processes=len(executions),
    )
    numbers = [one.process for one in executions]
    series = {
        "seconds": Series(numbers, [0] * len(numbers), [one.measurements["seconds"] for one in executions])
    }
    report = TrialReport(
        StoredTrial(index, trial), (), {"ok": len(executions)}, series, executions=tuple(executions)
    )
    return add_estimates(report, {})
