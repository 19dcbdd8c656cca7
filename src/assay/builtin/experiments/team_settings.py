"""Whether the options of a team's agents took: each server is asked, as in `serving`, after an agent's work."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from assay.builtin.experiments.model_server import ModelServer, Told, answered_by, is_asked, server_of
from assay.builtin.experiments.serving_params import OPTIONS, ServingParams, agent_use, params_of
from assay.errors import AssayError
from assay.execute.agents import Stable, filled_in
from assay.execute.team.member import Answered
from assay.model import AgentUse
from assay.model.team import client_options, model_options
from assay.plugin import lookup
from assay.plugin.agent import AgentError, BadAgent

_MOST_TOKENS = ("max_tokens", "num_predict")


class TeamSettings:
    """Of all agents of a team; an option that no server tells of is read back as None."""

    def __init__(self, definitions: Sequence[Mapping[str, Any]], stable: Stable) -> None:
        self._stable = stable
        self._readers = {str(one["name"]): _Reader(one, stable) for one in definitions}

    def after(self, stints: Sequence[Answered]) -> dict[str, Any]:
        """Once those agents are done who worked together."""
        found: dict[str, Any] = {}
        names = {stint.agent for stint in stints}
        for name in sorted(names):
            reader = self._readers[name]
            own = [stint for stint in stints if stint.agent == name]
            told = self._stable.settled(reader.told())
            found |= {f"{name}.{option}": value for option, value in reader.of_the_client.items()}
            for option in reader.asked:
                others = {other for other in names - {name} if self._contradicts(reader, other, option)}
                value = None if others else told.settings.get(option)
                found[f"{name}.{option}"] = reader.as_written(option, reader.shown(option, own) or value)
        return found

    def _contradicts(self, reader: _Reader, other: str, option: str) -> bool:
        """A server tells what it had last, and not for whom: where another asked it for something else, it tells nothing."""
        there = self._readers[other]
        return reader.place == there.place and reader.asked[option] != there.asked.get(option)


class _Reader:
    """One agent; of one that has no server, or one that cannot be asked, nothing is told."""

    def __init__(self, definition: Mapping[str, Any], stable: Stable) -> None:
        name = str(definition["name"])
        self.of_the_client = client_options(definition)
        """What it does by itself, and so is as it was asked for."""
        model = {"model": self.of_the_client.pop("model")} if "model" in self.of_the_client else {}
        asked = {**model, **model_options(definition)}
        self.asked = {option: value for option, value in asked.items() if is_asked(value)}
        """As written."""
        self._meant = self.asked
        self.place: tuple[str, ...] = (name,)
        self._turns = {case["id"]: max(1, len(case.get("turns", ()))) for case in definition["cases"]}
        self._server: ModelServer | None = None
        use = AgentUse(**{key: value for key, value in definition.items() if key != "cases"})
        with suppress(AssayError, BadAgent, ValueError):
            self._meant = filled_in(self.asked, os.environ, name)
            if "model" in self._meant:
                self._meant = {**self._meant, "model": _model_name(use, str(self._meant["model"]))}
            self._params = _params(use)
            asker = agent_use(self._params)
            url = str(asker.options["base_url"])
            self._server = server_of(stable.opened(asker), self._params, url)  # type: ignore[arg-type]
            # Ollama holds models apart, others have but one.
            self.place = (url, self._params.model) if self._params.api == "ollama" else (url,)

    def shown(self, option: str, stints: Iterable[Answered]) -> object:
        """What the answers themselves show of it; None where nothing."""
        asked = self._meant[option]
        if option == "model":
            said = [(stint.execution.applied or {}).get("model") for stint in stints]
            named = [answered_by(str(one or ""), str(asked)) for one in said]
            return next((name for name in named if name != asked), asked)
        if option in _MOST_TOKENS and isinstance(asked, int):
            return max([asked, *map(self._tokens_of_an_answer, stints)])
        return None

    def _tokens_of_an_answer(self, stint: Answered) -> int:
        """On average: a case of several turns, or of several prompts at once, has so many answers."""
        made = stint.execution.measurements
        answers = max(self._turns[stint.case], made.get("api_calls", 1))
        return math.ceil(made.get("output_tokens", 0) / answers)

    def as_written(self, option: str, value: object) -> object:
        """What a variable holds is not stored: where the value is the one that was meant, it is as it was asked for."""
        return self.asked[option] if str(value) == str(self._meant[option]) else value

    async def told(self) -> Told:
        if self._server is None:
            return Told()
        try:
            return await self._server.told()
        except AgentError:
            return Told()


def _model_name(use: AgentUse, model: str) -> str:
    """As the agent's answers call it: a model that is asked for by the name of a package is a file in it."""
    found = getattr(lookup.find("agents", use.type), "model_name", None)
    return str(found(model, use.folder)) if found else model


def _params(use: AgentUse) -> ServingParams:
    """As if `serving` measured it; whether it streams makes no difference to what the server tells."""
    options = {name: value for name, value in use.options.items() if name not in ("stream", "params")}
    params = {name: value for name, value in model_options(asdict(use)).items() if name in OPTIONS}
    given = params_of(AgentUse(use.name, use.type, {**options, "params": params}))
    held = {name: given[name] for name in ("url", "model", *OPTIONS) if name in given}
    given |= filled_in(held, os.environ, use.name)
    if "url" in given:
        given["allow_host"] = [given["url"].rstrip("/")]
    return ServingParams(**given)
