"""Params of `serving`: a server, a model, a question, and the options to ask it with.

Params are stored with the run, so keys, headers and URLs hold secrets only as ${NAME}, which is filled in when the agent is
made. Only servers of this machine, or those that the user names, are asked. A profile fills in the options that are not
given themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from assay.dialects import openai
from assay.dialects.ollama import LOCAL_URL, local_url
from assay.errors import PlanError
from assay.http.request import is_loopback
from assay.model import AgentUse
from assay.model.secret import NAMED, is_secret, plain_secrets
from assay.plugin.agent import BadAgent
from assay.plugin.agent_pool import expand_variables

OPTIONS = ("num_gpu", "num_ctx", "temperature", "top_p", "top_k", "repeat_penalty")
"""Settings of a model that can be swept; the server is asked whether it applied them."""

_COMMON = {"num_gpu": 80, "temperature": 0.8, "top_p": 0.9, "top_k": 40, "repeat_penalty": 1.1}
PROFILES: Mapping[str, Mapping[str, float]] = {
    "server": {},
    "baseline": {**_COMMON, "num_ctx": 1024},
    **{name: {**_COMMON, "num_ctx": 512} for name in ("tuned", "chimera")},
}
PROMPT = (
    "You read the figures of a benchmark: throughput 76.6 and 78.4 tokens a second, time to the first token 97 and "
    "128 ms. Name what they have in common, what sets them apart, and three things to try next."
)
_OF_THE_CLIENT = ("url", "api", "prompt", "system", "same_prompt", "keep_alive")
_FROM_ENVIRONMENT = re.compile(r"\$\{\w+(:-[^}]*)?\}")


Profile = Annotated[
    Literal["server", "baseline", "tuned", "chimera"],
    WithJsonSchema({"type": "string", "enum": ["server", "baseline", "tuned"]}),
]
"""`chimera` is another name for `tuned`, which older specs and their files use."""


class ServingParams(BaseModel):
    """All options of a model default to None, which leaves them to the server; `options_of` has those that are sent."""

    url: str | None = Field(
        default=None,
        description="URL of the server: http://127.0.0.1:11434 (Ollama) or …/v1 (OpenAI-compatible).",
    )
    api: Literal["ollama", "openai"] | None = Field(
        default=None, description="Default: openai for a URL that ends in /v1, else ollama."
    )
    model: str = Field(min_length=1, description="Name of the model, as the server knows it.")
    prompt: str = Field(default=PROMPT, min_length=1, description="The question.")
    system: str | None = Field(default=None, description="Instructions before the question.")
    max_tokens: int = Field(default=128, ge=1, description="Maximum tokens per answer.")
    start: Literal["warm", "cold"] = Field(
        default="warm", description="cold: the model is unloaded before each execution (Ollama only)."
    )
    profile: Profile = Field(
        default="server", description="A set of options by name; server: none, the server decides."
    )
    num_gpu: int | None = Field(default=None, ge=-1, description="Layers of the model on the GPU; -1: all.")
    num_ctx: int | None = Field(default=None, ge=1, description="Size of the context, in tokens.")
    temperature: float | None = Field(default=None, ge=0, description="Randomness of the answer.")
    top_p: float | None = Field(
        default=None, ge=0, le=1, description="Sample from the likeliest tokens that make up this share."
    )
    top_k: int | None = Field(default=None, ge=0, description="Sample from this many likeliest tokens.")
    repeat_penalty: float | None = Field(
        default=None, ge=0, description="Penalty for repeated tokens; 1 is none."
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Further options, sent as they are.")
    keep_alive: str | float | None = Field(
        default=None, description="How long Ollama keeps the model loaded."
    )
    same_prompt: bool = Field(
        default=False, description="The same text each time, so that the server may answer from its cache."
    )
    api_key: str | None = Field(default=None, description="As ${NAME}, read from the environment.")
    headers: dict[str, str] = Field(default_factory=dict, description="Further HTTP headers.")
    allow_host: Annotated[
        list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
    ] = Field(default_factory=list, description="Hosts other than this machine that may be asked.")

    @field_validator("api_key")
    @classmethod
    def _is_no_secret(cls, value: str | None) -> str | None:
        if value is not None and not NAMED.fullmatch(value):
            raise ValueError("a key is never stored: write ${NAME}, the environment variable that holds it")
        return value

    @field_validator("headers")
    @classmethod
    def _hold_no_secret(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if is_secret(name, is_sent=True) and not NAMED.search(text):
                raise ValueError(f"the header '{name}' would be stored: write its value as ${{NAME}}")
        return value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Fill in the server, its API and the options of the profile, in this order: each depends on the one before."""
        # The server of this machine's own variable is one that the user named, wherever it is.
        if self.url is None:
            self.url = (
                openai.PROVIDER.public_url
                if self.api == "openai"
                else local_url(os.environ.get("OLLAMA_HOST"))
            )
            if self.api != "openai":
                self.allow_host = [*self.allow_host, self.url]
        self.url = self.url.rstrip("/")
        if self.api is None:
            self.api = "openai" if self.url.endswith("/v1") else "ollama"
        for name, value in PROFILES[self.profile].items():
            if getattr(self, name) is None:
                setattr(self, name, value)
        self._check()
        return self

    def _check(self) -> None:
        if self.start == "cold" and self.api == "openai":
            raise ValueError(
                "start: cold needs Ollama, which can unload a model on request; this URL is OpenAI-compatible"
            )
        assert self.url is not None
        # Before the host is judged: that message would repeat the URL.
        if plain_secrets({"url": self.url}):
            raise ValueError("the url would be stored with a secret in it: write that as ${NAME}")
        if not _FROM_ENVIRONMENT.search(self.url) and (problem := self.refusal(self.url)):
            raise ValueError(problem)

    def refusal(self, url: str) -> str:
        """Why this server is not asked; empty where it is on this machine, or was named."""
        place = urlsplit(url)
        if place.scheme not in ("http", "https") or not place.hostname:
            return f"'{url}' is not a URL; write http://HOST:PORT or http://HOST:PORT/v1"
        if is_loopback(place.hostname) or {place.hostname, place.netloc, self.url} & set(self.allow_host):
            return ""
        return (
            f"'{place.hostname}' is another machine. If you are authorized to test it: allow_host={place.hostname} "
            f"(on the command line: --set allow_host={place.hostname})"
        )

    def of_the_client(self) -> dict[str, Any]:
        """What the client itself does with each request, and so is as it was asked for."""
        return {name: getattr(self, name) for name in _OF_THE_CLIENT}


def params_of(use: AgentUse) -> dict[str, Any]:
    """The params that the definition of an agent behind a server stands for; BadAgent for one that cannot be timed.

    This is how `assay run serving --agent NAME` works: the agent's options become params, its `params` become the options
    of the model, and what `serving` has no name for is sent as it is.
    """
    if use.type not in ("ollama", "openai"):
        raise BadAgent(
            f"Agent '{use.name}' is of type '{use.type}', but 'serving' measures servers: it takes agents of type "
            "ollama and openai."
        )
    given = dict(use.options)
    if given.get("stream") is False or "cassette" in given:
        what = "a cassette" if "cassette" in given else "stream: false"
        raise BadAgent(
            f"Agent '{use.name}' has {what}, so 'serving' cannot time a server and its first token."
        )
    # Limits go to `max_tokens`, which both APIs share; known options get params of their own, so that they can be swept.
    params = given.get("params")
    inner: dict[str, Any] = dict(params) if isinstance(params, Mapping) else {}
    most = next((inner.pop(name) for name in ("num_predict", "max_tokens") if name in inner), None)
    if isinstance(most, int) and most < 1:
        raise BadAgent(
            f"Agent '{use.name}' asks for {most} tokens, but 'serving' needs a limit of at least one token, "
            "such as num_predict: 256."
        )
    public = f"${{OPENAI_BASE_URL:-{openai.PROVIDER.public_url}}}" if use.type == "openai" else None
    url = given.get("base_url") or public
    found: dict[str, Any] = {
        "api": use.type,
        "url": url,
        # The definition of an agent names its server.
        "allow_host": [url.rstrip("/")] if isinstance(url, str) else [],
        "max_tokens": most,
        **{name: given.get(name) for name in ("model", "system", "keep_alive", "api_key", "headers")},
        **{name: inner.pop(name) for name in OPTIONS if name in inner},
        "options": inner,
    }
    return {name: value for name, value in found.items() if value not in (None, {}, [])}


def agent_use(params: ServingParams) -> AgentUse:
    """The agent that asks with these params: once, because a second try would be measured as part of the first."""
    url = str(expand_variables(params.url or LOCAL_URL, os.environ, params.model))
    # Judged once more: what a variable holds is known only now, and may name any host.
    if problem := params.refusal(url):
        raise PlanError(problem)
    options: dict[str, object] = {
        "model": params.model,
        "base_url": url,
        "system": params.system,
        "params": {**params.options, **options_of(params)},
        "headers": dict(params.headers),
        "retries": 0,
    }
    if params.api == "ollama":
        options["keep_alive"] = params.keep_alive
    elif params.api_key is not None:
        options["api_key"] = params.api_key
    return AgentUse(params.model, str(params.api), options)


def with_model(params: ServingParams) -> ServingParams:
    """Replace the variable that holds the model by the name of the model."""
    return params.model_copy(update={"model": expand_variables(params.model, os.environ, params.model)})


def options_of(params: ServingParams) -> dict[str, Any]:
    """The options to send: what was not asked for is left to the server."""
    options = {name: getattr(params, name) for name in OPTIONS}
    return {name: value for name, value in options.items() if value is not None}
