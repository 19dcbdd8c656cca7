"""What a model server says about itself: which model it holds, and with which settings.

A request that asks for an option proves nothing: servers ignore options, clamp them, or keep those of the model that is
already loaded. `serving` and `team` therefore ask the server after an answer. What it does not report is recorded as
unknown, never as confirmed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from assay.builtin.agents.chat_agent import ChatAgent
from assay.builtin.experiments.serving_params import OPTIONS, ServingParams, options_of
from assay.dialects import ollama
from assay.plugin.agent import AgentError

_UNLOAD_SECONDS = 60.0
_PAUSE = 0.02
_EDITION = re.compile(r"([:@].*|-(\d{4}.*|latest))?", re.DOTALL)
"""What may come after a model's name: a tag or a date."""
_DIGITS = 6
"""That a 32-bit float tells: servers keep 0.8 as 0.800000011920929."""


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What a server reports about its model after an answer."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """As the server has them; it does not report a name that is missing."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    """`model_bytes` and `model_vram_bytes`, where the server knows them."""

    def of(self, params: ServingParams) -> dict[str, Any]:
        """The effective values of the requested options; None if the server does not report them."""
        return {name: self.settings.get(name) for name in OPTIONS if is_asked(getattr(params, name))}


def is_asked(value: object) -> bool:
    """A number below zero, as Ollama's -1 for layers or tokens, leaves it to the server.

    >>> is_asked(0), is_asked(-1), is_asked(None)
    (True, False, False)
    """
    return value is not None and not (isinstance(value, (int, float)) and value < 0)


def server_of(agent: ChatAgent, params: ServingParams, url: str) -> ModelServer:
    """The URL without variables, which those of the params may have."""
    root = urlsplit(url).path.rstrip("/")
    return OllamaServer(agent, params, root) if params.api == "ollama" else OpenAIServer(agent, root)


def resolve_answering_model(reported: str | None, requested: str) -> str:
    """Dated names and tags of one and the same model, as in gpt-4o-2024-08-06 for gpt-4o, are no other model.

    Nor is the path of a model's file, which llama.cpp answers with.

    >>> resolve_answering_model("gpt-4o-2024-08-06", "gpt-4o"), resolve_answering_model("gpt-4o-mini", "gpt-4o")
    ('gpt-4o', 'gpt-4o-mini')
    >>> resolve_answering_model("/models/tiny.Q4_1.gguf", "tiny.Q4_1"), resolve_answering_model("/models/tiny.Q4_1.gguf", "tiny.Q8_0")
    ('tiny.Q4_1', '/models/tiny.Q4_1.gguf')
    """
    if not reported or (reported.startswith(requested) and _EDITION.fullmatch(reported[len(requested) :])):
        return requested
    return requested if _without_path(reported) == _without_path(requested) else reported


def _without_path(model: str) -> str:
    """Strip the folder of a model file, but not the slash of a name such as org/model."""
    return re.split(r"[/\\]", model)[-1].removesuffix(".gguf") if model.endswith(".gguf") else model


class OllamaServer:
    """Tells by /api/ps which models are loaded, with which context, and how much of each is on the GPU."""

    def __init__(self, agent: ChatAgent, params: ServingParams, root: str) -> None:
        self._agent, self._params, self._root = agent, params, root

    async def load(self) -> None:
        """Have the model ready, with the options that it will be asked with."""
        entry = await self._entry()
        # The server does not say how many layers are on the GPU, so a request for a number of them is repeated.
        is_known = entry is not None and self._params.num_gpu is None
        if is_known and self._params.num_ctx in (None, (entry or {}).get("context_length")):
            return
        await self._ask({"options": {**self._params.options, **options_of(self._params)}})

    async def unload(self) -> None:
        """Request it, then wait until the model is unloaded: the server answers before that."""
        # Asking for a model that is not loaded would load it first.
        if await self._entry() is None:
            return
        await self._ask({"keep_alive": 0})
        until = monotonic() + _UNLOAD_SECONDS
        while await self._entry() is not None:
            if monotonic() > until:
                raise AgentError(
                    f"the server was asked to unload the model '{self._params.model}', but /api/ps still lists it after "
                    f"{_UNLOAD_SECONDS:g} s: this would not be a cold start"
                )
            await asyncio.sleep(_PAUSE)

    async def is_loaded(self) -> bool:
        return await self._entry() is not None

    async def report(self) -> ServerReport:
        """After an answer: the settings that it was given with."""
        entry = await self._entry()
        if entry is None:
            return ServerReport()
        settings = {"num_ctx": entry.get("context_length"), "num_gpu": self._layers(entry)}
        sizes = {"model_bytes": entry.get("size"), "model_vram_bytes": entry.get("size_vram")}
        return ServerReport(
            {name: value for name, value in settings.items() if value is not None},
            {name: float(value) for name, value in sizes.items() if isinstance(value, (int, float))},
        )

    def _layers(self, entry: Mapping[str, Any]) -> object:
        """How many are on the GPU is told only where it is none; "some" where none was asked for."""
        requested, vram = self._params.num_gpu, entry.get("size_vram")
        if not is_asked(requested) or vram is None:
            return None
        if vram == 0:
            return 0
        return "some" if requested == 0 else None

    async def _ask(self, more: Mapping[str, object]) -> None:
        """A request without a prompt loads the model, or unloads it; a stream would be several documents."""
        body = {"model": self._params.model, "stream": False, **more}
        if self._params.keep_alive is not None:
            body = {"keep_alive": self._params.keep_alive, **body}
        await self._agent.look_up(self._root + ollama.GENERATE_PATH, body)

    async def _entry(self) -> Mapping[str, Any] | None:
        """What /api/ps says about the model; None where it is not loaded."""
        document = await self._agent.look_up(self._root + ollama.RUNNING_PATH)
        models = document.get("models") if isinstance(document, Mapping) else None
        if not isinstance(models, list):
            raise AgentError("/api/ps does not list models: this is not Ollama's API")
        name = _add_default_tag(self._params.model)
        return next(
            (
                entry
                for entry in models
                if _add_default_tag(str(entry.get("model") or entry.get("name"))) == name
            ),
            None,
        )


def _add_default_tag(model: str) -> str:
    """
    >>> _add_default_tag("gemma3"), _add_default_tag("gemma3:1b")
    ('gemma3:latest', 'gemma3:1b')
    """
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


class OpenAIServer:
    """The protocol does not report settings, but llama.cpp's server shows those of its last task at /slots."""

    def __init__(self, agent: ChatAgent, root: str) -> None:
        self._agent = agent
        self._root = root.removesuffix("/v1")
        self._has_slots: bool | None = None

    async def load(self) -> None:
        pass

    async def unload(self) -> None:
        raise AgentError("an OpenAI-compatible server cannot unload its model on request")

    async def is_loaded(self) -> None:
        """The server does not say."""

    async def report(self) -> ServerReport:
        slot = await self._last_slot() if self._has_slots is not False else None
        if slot is None:
            return ServerReport()
        params = slot.get("params")
        # Settings are called as in Ollama's API by all but the context, which belongs to the slot and not to its task.
        settings = {"num_ctx": slot.get("n_ctx"), **(params if isinstance(params, Mapping) else {})}
        for name, value in settings.items():
            if isinstance(value, float):
                settings[name] = float(f"{value:.{_DIGITS}g}")
        return ServerReport({name: value for name, value in settings.items() if value is not None})

    async def _last_slot(self) -> Mapping[str, Any] | None:
        """The slot that did the latest task; a server without /slots is not asked for it again."""
        try:
            document = await self._agent.look_up(f"{self._root}/slots")
        except AgentError:
            self._has_slots = False
            return None
        slots = [slot for slot in document if isinstance(slot, Mapping)] if isinstance(document, list) else []
        self._has_slots = bool(slots)
        # Tasks are numbered as they come, and one that is idle keeps the number of its last: the highest was ours.
        tasks = [task if isinstance(task := slot.get("id_task"), int) else -1 for slot in slots]
        return slots[tasks.index(max(tasks))] if slots else None


ModelServer = OllamaServer | OpenAIServer
"""One model on one server, as `serving` handles it.

Before an execution it is loaded or unloaded and asked whether it is there, untimed; afterwards `report` is read. All
methods raise AgentError where the server cannot be reached or cannot do it.
"""
