"""Finds the dialect that is spoken at an address, and lists the providers."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import SplitResult

from assay.dialects import anthropic, ollama, openai

PROVIDERS = {provider.name: provider for provider in (openai.PROVIDER, anthropic.PROVIDER, ollama.PROVIDER)}


class Endpoint(NamedTuple):
    url: str
    dialect: str
    can_stream: bool = True


def endpoint_at(parts: SplitResult) -> Endpoint:
    """Find the API of a server by the end of its address.

    `…/v1` and OpenAI's endpoints, Ollama's endpoints and Anthropic's `…/messages` have a dialect of their
    own; everything else is plain HTTP.
    """
    path, url = parts.path.rstrip("/"), parts.geturl()
    if path.endswith("/v1"):
        return Endpoint(parts._replace(path=path + openai.CHAT_PATH).geturl(), "openai")
    if path.endswith((openai.CHAT_PATH, openai.COMPLETIONS_PATH, openai.RESPONSES_PATH)):
        return Endpoint(url, "openai")
    if path.endswith(openai.EMBEDDINGS_PATH):
        return Endpoint(url, "openai", can_stream=False)
    if path.endswith("/messages"):
        return Endpoint(url, "anthropic")
    if path.endswith((ollama.GENERATE_PATH, ollama.CHAT_PATH)):
        return Endpoint(url, "ollama")
    if parts.port == ollama.PORT and not path:
        return Endpoint(parts._replace(path=ollama.GENERATE_PATH).geturl(), "ollama")
    return Endpoint(url, "http", can_stream=False)


def takes_messages(endpoint: str, dialect: str) -> bool:
    """Whether a request to this path has room for a whole conversation."""
    return dialect == "anthropic" or endpoint.endswith(
        (openai.CHAT_PATH, openai.RESPONSES_PATH, ollama.CHAT_PATH)
    )
