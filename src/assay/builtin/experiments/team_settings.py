"""Whether the servers applied the options of a team's agents: each server is asked, as in `serving`, after an agent's work.

Options of the client are as they were asked for. Those of the model are read from the answers where they show (the model's
name, the most tokens), else from the server's own report. A report says what the server did last and not for whom, so it is
ignored where another agent of the same leg asked the same server for something else.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from assay.builtin.experiments.model_server import (
    ModelServer,
    ServerReport,
    is_asked,
    resolve_answering_model,
    server_of,
)
from assay.builtin.experiments.serving_params import OPTIONS, ServingParams, agent_use, params_of
from assay.errors import AssayError
from assay.execute.team.member import Answered
from assay.model import AgentUse
from assay.model.team import client_options, model_options
from assay.plugin import find
from assay.plugin.agent import AgentError, BadAgent
from assay.plugin.agent_pool import AgentPool, expand_variables

_MOST_TOKENS = ("max_tokens", "num_predict")


class TeamSettings:
    """Reads back the settings of all agents of a team; an option that no server reports is None."""

    def __init__(self, definitions: Sequence[Mapping[str, Any]], pool: AgentPool) -> None:
        self._pool = pool
        self._readers = {str(definition["name"]): _Reader(definition, pool) for definition in definitions}

    def after(self, stints: Sequence[Answered]) -> dict[str, Any]:
        """Read the settings after the agents that worked together are done."""
        settings: dict[str, Any] = {}
        names = {stint.agent for stint in stints}
        for name in sorted(names):
            reader = self._readers[name]
            own = [stint for stint in stints if stint.agent == name]
            report = self._pool.wait(reader.report())
            # Another client of the model on the same server may have changed its settings after this agent's last answer.
            neighbours = [self._readers[other] for other in names - {name}]
            neighbours = [other for other in neighbours if other.place == reader.place]
            settings |= {f"{name}.{option}": value for option, value in reader.of_the_client.items()}
            for option, requested in reader.requested.items():
                is_disputed = any(other.requested.get(option) != requested for other in neighbours)
                value = None if is_disputed else report.settings.get(option)
                settings[f"{name}.{option}"] = reader.as_written(
                    option, reader.read_from_answers(option, own) or value
                )
        return settings


class _Reader:
    """Reads the settings of one agent; its report is empty where it has no server, or one that cannot be asked."""

    def __init__(self, definition: Mapping[str, Any], pool: AgentPool) -> None:
        name = str(definition["name"])
        self.of_the_client = client_options(definition)
        """What it does by itself, and so is as it was asked for."""
        model = {"model": self.of_the_client.pop("model")} if "model" in self.of_the_client else {}
        requested = {**model, **model_options(definition)}
        self.requested = {option: value for option, value in requested.items() if is_asked(value)}
        """As written."""
        self._resolved = self.requested
        self.place: tuple[str, ...] = (name,)
        self._turns = {case["id"]: max(1, len(case.get("turns", ()))) for case in definition["cases"]}
        self._server: ModelServer | None = None
        # Whatever goes wrong here makes the settings unknown and nothing else: the agent itself has its own way to say it.
        use = AgentUse(**{key: value for key, value in definition.items() if key != "cases"})
        with suppress(AssayError, BadAgent, ValueError):
            self._resolved = expand_variables(self.requested, os.environ, name)
            kind = find("agents", use.type) if "model" in self._resolved else None
            if resolve_name := getattr(kind, "model_name", None):
                # As the agent's answers call it: a model that is asked for by the name of a package is a file in it.
                name_in_answers = str(resolve_name(str(self._resolved["model"]), use.folder))
                self._resolved = {**self._resolved, "model": name_in_answers}
            self._params = _params(use)
            case_runner = agent_use(self._params)
            url = str(case_runner.options["base_url"])
            self._server = server_of(pool.open(case_runner), self._params, url)  # type: ignore[arg-type]
            # Ollama holds models apart, others have but one.
            self.place = (url, self._params.model) if self._params.api == "ollama" else (url,)

    def read_from_answers(self, option: str, stints: Iterable[Answered]) -> object:
        """Read the value of an option from the answers themselves; None if they do not show it."""
        requested = self._resolved[option]
        if option == "model":
            reported = [(stint.execution.applied or {}).get("model") for stint in stints]
            models = [resolve_answering_model(str(model or ""), str(requested)) for model in reported]
            return next((model for model in models if model != requested), requested)
        if option in _MOST_TOKENS and isinstance(requested, int):
            most = requested
            for stint in stints:
                figures = stint.execution.measurements
                # On average: a case of several turns, or of several prompts at once, has so many answers.
                answers = max(self._turns[stint.case], figures.get("api_calls", 1))
                most = max(most, math.ceil(figures.get("output_tokens", 0) / answers))
            return most
        return None

    def as_written(self, option: str, value: object) -> object:
        """What a variable holds is not stored: where the value is the one that was meant, it is as it was asked for."""
        return self.requested[option] if str(value) == str(self._resolved[option]) else value

    async def report(self) -> ServerReport:
        """What the server says of its settings; nothing where it cannot be asked, which spoils no result."""
        if self._server is None:
            return ServerReport()
        try:
            return await self._server.report()
        except AgentError:
            return ServerReport()


def _params(use: AgentUse) -> ServingParams:
    """Build the params as if `serving` measured the agent; streaming makes no difference to what the server reports."""
    options = {name: value for name, value in use.options.items() if name not in ("stream", "params")}
    params = {name: value for name, value in model_options(asdict(use)).items() if name in OPTIONS}
    given = params_of(AgentUse(use.name, use.type, {**options, "params": params}))
    held = {name: given[name] for name in ("url", "model", *OPTIONS) if name in given}
    given |= expand_variables(held, os.environ, use.name)
    if "url" in given:
        given["allow_host"] = [given["url"].rstrip("/")]
    return ServingParams(**given)
