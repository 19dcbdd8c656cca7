"""Agents behind a server can be loaded by the engine itself: where they are, and how they want to be asked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from assay.execute.agents import filled_in, make_agent
from assay.execute.load.asking import Data, LoadOptions, PreparedLoad, prepared, prepared_agent
from assay.execute.load.request import Target
from assay.execute.ollama import local_url
from assay.model import AgentUse

KINDS = ("openai", "ollama", "anthropic", "http")
"""Types of agents that the engine can speak to by itself."""


def prepared_for(
    options: LoadOptions, use: AgentUse | None, files: Sequence[str], data: Data | None
) -> PreparedLoad:
    """A load of a URL (`use` is None), of an agent behind a server, or of one that is asked through its own code."""
    if use is None:
        return prepared(options, data=data)
    if use.type in KINDS:
        return prepared(options, target_of_agent(use, options, os.environ), data)
    make_agent(use)
    return prepared_agent(options, use, files, data)


def target_of_agent(use: AgentUse, options: LoadOptions, environment: Mapping[str, str]) -> Target:
    given: dict[str, Any] = filled_in(dict(use.options), environment, use.name)
    streams = options.stream and bool(given.get("stream", True))
    return Target(
        url=_address(use.type, given, environment),
        dialect=use.type,
        model=options.model or given.get("model"),
        headers=_headers(use.type, given, environment),
        params=given.get("params") or given.get("options") or {},
        system=given.get("system"),
        streams=streams if use.type != "http" else False,
        is_agent=True,
        output=given.get("output") if use.type == "http" else None,
    )


def _address(kind: str, given: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    if kind == "http":
        return str(given["url"])
    base, path = {
        "openai": (environment.get("OPENAI_BASE_URL") or "https://api.openai.com/v1", "/chat/completions"),
        "ollama": (local_url(environment.get("OLLAMA_HOST")), "/api/chat"),
        "anthropic": (environment.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com", "/v1/messages"),
    }[kind]
    place = str(given.get("base_url") or given.get("url") or base).rstrip("/")
    return (place.removesuffix("/v1") if kind == "anthropic" else place) + path


def _headers(kind: str, given: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    headers = {str(name): str(value) for name, value in (given.get("headers") or {}).items()}
    key = given.get("api_key")
    if kind == "openai" and (key := key or environment.get("OPENAI_API_KEY")):
        return {"authorization": f"Bearer {key}", **headers}
    if kind == "anthropic":
        key = key or environment.get("ANTHROPIC_API_KEY")
        return {**({"x-api-key": str(key)} if key else {}), "anthropic-version": "2023-06-01", **headers}
    return headers
