"""What is measured of the server: the requests and pages that people send all day. A new page or list gets a line here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """A request; POST where it has a body."""

    path: str
    body: Mapping[str, object] | None = None

    @property
    def name(self) -> str:
        kind = f" {self.body['comparison_type']}" if self.body else ""
        return f"{'POST' if self.body else 'GET'} {self.path}{kind}"


LEADERBOARD = "/benchmarks/leaderboard"
AGENT, SUITE, LARGE_SUITE = "agent-003", "suite-00", "long-documents"


def _compare(kind: str, agents: Sequence[str], suite: str = SUITE) -> Route:
    return Route(
        "/benchmarks/compare", {"agent_ids": list(agents), "suite_id": suite, "comparison_type": kind}
    )


def find_routes(runs: Sequence[str]) -> list[Route]:
    """`runs` are an ordinary run and a large one."""
    return [
        Route(LEADERBOARD),
        Route("/agents"),
        Route("/suites"),
        Route(f"/suites/{SUITE}"),
        Route("/runs"),
        Route("/runs?limit=200"),
        Route(f"/runs?name={SUITE}"),
        Route(f"/runs?agent_id={AGENT}&state=completed"),
        Route("/findings/load"),
        *(Route(f"/runs/{run}") for run in runs),
        *(Route(f"/runs/{run}/result") for run in runs),
        Route("/trials"),
        Route(f"/trials?agent_id={AGENT}"),
        Route(f"/trials?suite_id={SUITE}"),
        Route("/trials/20000"),
        Route("/trials/20000/executions"),
        Route(f"/benchmarks/agents/{AGENT}/results"),
        Route(f"/benchmarks/agents/{AGENT}/results?timeframe=all"),
        Route(f"/benchmarks/agents/{AGENT}/regressions"),
        Route(f"/cost?suite_id={LARGE_SUITE}"),
        Route("/metrics"),
        _compare("head_to_head", ["agent-003", "agent-004"]),
        _compare("multi_agent", [f"agent-{n:03}" for n in range(5)]),
        _compare("time_series", ["agent-003@1.19", "agent-003@1.20", "agent-003@1.21"]),
        *map(Route, PAGES),
    ]


PAGES: tuple[str, ...] = (
    f"/?suite={SUITE}",
    f"/ui/leaderboard?suite={SUITE}",
    f"/ui/radar?suite={SUITE}",
    f"/ui/cost?suite={SUITE}",
    f"/ui/compare?a=agent-003&b=agent-004&suite={SUITE}",
    f"/ui/timeline?agent={AGENT}&suite={SUITE}",
    "/ui/runs",
    "/ui/agents",
    f"/ui/agents/{AGENT}",
    f"/ui/suites/{SUITE}",
    "/ui/coverage",
    "/ui/alerts",
)
"""Paths of the dashboard, of which first paint and weight are measured in a browser."""
