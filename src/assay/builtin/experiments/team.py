from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from assay.builtin.experiments.team_settings import TeamSettings
from assay.execute.agents import Stable
from assay.execute.outcome import Outcome
from assay.execute.team.leg import After, Walked, most_at_once, outcome_of, walk
from assay.execute.team.member import Member, permits, went_wrong
from assay.model import AgentUse, Case, Turn
from assay.model.team import Leg
from assay.plugin import lookup
from assay.plugin.experiment import Experiment, ExperimentContext


class TeamExperiment(Experiment):
    """Agents that work at the same time, or in the other leg one after the other: one execution is one leg.

    A team file makes the params; `assay team` runs it.
    """

    class Params(BaseModel):
        leg: Leg = Field(description="sequential or concurrent")
        agents: list[dict[str, Any]] = Field(
            min_length=1, description="Definitions of agents, each with its cases"
        )
        permits: int = Field(ge=1, description="How many may work at once")

    def setup(self, context: ExperimentContext) -> None:
        sem = permits(self.params.permits, len(self.params.agents))
        self._members: list[Member] = []
        for definition in self.params.agents:
            fields = {key: value for key, value in definition.items() if key != "cases"}
            fields["options"] = asking_once(str(fields["type"]), fields.get("options", {}))
            cases = [_case(case) for case in definition["cases"]]
            self._members.append(Member(AgentUse(**fields), cases, context.seed - context.process, None, sem))
        for member in self._members:
            member.await_ready()
        # Only now: members are forks, and must not inherit a connection.
        self._stable = Stable()
        self._settings = TeamSettings(self.params.agents, self._stable)

    def execute_once(self, context: ExperimentContext) -> Walked:
        """A warm-up asks each agent its first case; chance is the same in both legs of a pair."""
        how_many = 1 if context.phase == "warmup" else None
        if how_many is not None:
            return self._walked(context, how_many)
        walked = self._walked(context, None, lambda stints: context.read_back(**self._settings.after(stints)))
        if went_wrong(walked.stints) is None:
            context.read_back(leg=self._taken(walked))
        return walked

    def _walked(
        self, context: ExperimentContext, how_many: int | None, after: After = lambda stints: None
    ) -> Walked:
        leg, at_once = self.params.leg, self.params.permits
        return walk(leg, self._members, at_once, context.seed, context.process, how_many, after)

    def read(self, walked: Walked) -> Outcome:
        return outcome_of(walked)

    def _taken(self, walked: Walked) -> str:
        """Which leg it really was: with permits for one, no more than one is to work at a time."""
        if walked.leg is Leg.CONCURRENT and self.params.permits > 1 and most_at_once(walked.stints) == 1:
            return f"{Leg.SEQUENTIAL.value}, because no two agents were at work at the same time"
        return walked.leg.value

    def teardown(self, context: ExperimentContext) -> None:
        for member in getattr(self, "_members", ()):
            member.close()
        if hasattr(self, "_stable"):
            self._stable.close()


def asking_once(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Without retries, unless the team file gives them: a request that is refused and put again would hide what agents do to
    each other, and its first token would be timed from the last try.
    """
    if "retries" not in inspect.signature(lookup.find("agents", kind)).parameters:
        return dict(options)
    return {"retries": 0, **options}


def _case(fields: Mapping[str, Any]) -> Case:
    turns = tuple(Turn(one["input"], one.get("expected")) for one in fields.get("turns", ()))
    whole = {
        **fields,
        "turns": turns,
        "tools": tuple(fields.get("tools", ())),
        "tags": tuple(fields.get("tags", ())),
    }
    return Case(**whole)
