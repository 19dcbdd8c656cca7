"""Chooses how an agent is put under load.

Behind most agents there is a server (a model provider's API, or plain HTTP): the engine then sends its requests itself, and
this module says to which address and with which headers. Any other agent runs its own code in `agent_worker`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from assay.dialects.lookup import PROVIDERS
from assay.load.build import Data, LoadOptions, PreparedLoad, build_prepared_agent_load, build_prepared_load
from assay.load.request import Target
from assay.model import AgentUse
from assay.plugin.agent_pool import expand_variables, make_agent

KINDS = (*PROVIDERS, "http")
"""Types of agents that the engine can speak to by itself."""


def build_prepared_load_for(
    options: LoadOptions, use: AgentUse | None, files: Sequence[str], data: Data | None
) -> PreparedLoad:
    """A load of a URL (`use` is None), of an agent behind a server, or of one that is asked through its own code."""
    if use is None:
        return build_prepared_load(options, data=data)
    if use.type in KINDS:
        return build_prepared_load(options, target_of_agent(use, options, os.environ), data)
    make_agent(use)
    return build_prepared_agent_load(options, use, files, data)


def target_of_agent(use: AgentUse, options: LoadOptions, environment: Mapping[str, str]) -> Target:
    """Where the agent's server is and how `assay run` would speak to it; headers may hold secrets from the environment."""
    given: dict[str, Any] = expand_variables(dict(use.options), environment, use.name)
    headers = {str(name): str(value) for name, value in (given.get("headers") or {}).items()}
    if use.type == "http":
        url, streams = str(given["url"]), False
    else:
        provider = PROVIDERS[use.type]
        named = given.get("base_url") or given.get("url")
        url = provider.base_url(str(named) if named else None, environment) + provider.chat_path
        headers = {**provider.headers(provider.key(given.get("api_key"), environment)), **headers}
        streams = options.stream and bool(given.get("stream", True))
    return Target(
        url=url,
        dialect=use.type,
        model=options.model or given.get("model"),
        headers=headers,
        params=given.get("params") or given.get("options") or {},
        system=given.get("system"),
        streams=streams,
        is_agent=True,
        output=given.get("output") if use.type == "http" else None,
    )
