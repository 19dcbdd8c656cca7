"""The experiment behind `assay team`: each agent of a team file works in a process of its own.

An execution is one leg, sequential or concurrent. Both legs ask the same cases with the same seed, so that the difference
between them shows what the agents do to each other.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from assay.builtin.experiments.team_settings import TeamSettings
from assay.execute.team.leg import After, LegResult, most_at_once, outcome_of, run_leg
from assay.execute.team.member import Member, find_failure, permits
from assay.model import AgentUse, Case, Turn
from assay.model.team import Leg
from assay.plugin import find
from assay.plugin.agent_pool import AgentPool
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.plugin.outcome import Outcome


class TeamParams(BaseModel):
    """A leg of a team, as plain data: what a worker needs is all here, and no team file has to be found again."""

    leg: Leg = Field(description="sequential or concurrent")
    agents: list[dict[str, Any]] = Field(
        min_length=1, description="Definitions of agents, each with its cases"
    )
    permits: int = Field(ge=1, description="How many may work at once")


class TeamExperiment(Experiment):
    """Agents that work at the same time, or in the other leg one after the other: one execution is one leg.

    A team file makes the params; `assay team` runs it.
    """

    Params = TeamParams
    paired_axis = "leg"

    @staticmethod
    def agents_in(params: Mapping[str, Any]) -> list[AgentUse]:
        return [_agent_use(definition) for definition in params["agents"]]

    def setup(self, context: ExperimentContext) -> None:
        sem = permits(self.params.permits, len(self.params.agents))
        self._members: list[Member] = []
        for definition in self.params.agents:
            use = _agent_use(definition)
            use = replace(use, options=asking_once(use.type, use.options))
            cases = [_case(case) for case in definition["cases"]]
            self._members.append(Member(use, cases, context.seed - context.process, None, sem))
        # All are started before the first is waited for, so that agents with a model to read do so at the same time.
        for member in self._members:
            member.await_ready()
        # Only now: members are forks, and must not inherit a connection.
        self._pool = AgentPool()
        self._settings = TeamSettings(self.params.agents, self._pool)

    def execute_once(self, context: ExperimentContext) -> LegResult:
        """A warm-up asks each agent its first case; chance is the same in both legs of a pair."""
        how_many = 1 if context.phase == "warmup" else None
        if how_many is not None:
            return self._walk_leg(context, how_many)
        walked = self._walk_leg(
            context, None, lambda stints: context.read_back(**self._settings.after(stints))
        )
        if find_failure(walked.stints) is None:
            leg = walked.leg.value
            # With one permit, no more than one agent is meant to work at a time.
            if walked.leg is Leg.CONCURRENT and self.params.permits > 1 and most_at_once(walked.stints) == 1:
                leg = f"{Leg.SEQUENTIAL.value}, because no two agents were at work at the same time"
            context.read_back(leg=leg)
        return walked

    def _walk_leg(
        self, context: ExperimentContext, how_many: int | None, after: After = lambda stints: None
    ) -> LegResult:
        leg, at_once = self.params.leg, self.params.permits
        return run_leg(leg, self._members, at_once, context.seed, context.process, how_many, after)

    def read(self, walked: LegResult) -> Outcome:
        return outcome_of(walked)

    def teardown(self, context: ExperimentContext) -> None:
        # A setup that failed half way may have made neither.
        for member in getattr(self, "_members", ()):
            member.close()
        if hasattr(self, "_pool"):
            self._pool.close()


def _agent_use(definition: Mapping[str, Any]) -> AgentUse:
    return AgentUse(**{key: value for key, value in definition.items() if key != "cases"})


def asking_once(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Without retries, unless the team file gives them: a request that is refused and put again would hide what agents do to
    each other, and its first token would be timed from the last try.
    """
    if "retries" not in inspect.signature(find("agents", kind)).parameters:
        return dict(options)
    return {"retries": 0, **options}


def _case(fields: Mapping[str, Any]) -> Case:
    turns = tuple(Turn(turn["input"], turn.get("expected")) for turn in fields.get("turns", ()))
    whole = {
        **fields,
        "turns": turns,
        "tools": tuple(fields.get("tools", ())),
        "tags": tuple(fields.get("tags", ())),
    }
    return Case(**whole)
