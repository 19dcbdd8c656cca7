"""What a model server keeps in memory: models, as an Ollama server loads them, and the beginnings of prompts.

Models are loaded when asked for and unloaded after their keep-alive. Sizes are made up, but follow the rules of real ones: weights plus a cache that grows with the context, of which the layers on
the GPU are a share. Times are seconds of the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_MAX_MODELS = 1_000
_LAYERS = 32
_WEIGHTS = 2**30
_BYTES_A_TOKEN = 2**15
_CONTEXT = 4096
_LEAST_CONTEXT = 4
_MOST_KEPT = 2_000_000
"""Beginnings; beyond that, all are forgotten."""


@dataclass(slots=True)
class LoadedModel:
    """One model in memory: usable from `ready` on, gone at `expires`."""

    name: str
    ready: float
    expires: float
    context: int
    layers: int
    """On the GPU."""

    @property
    def size(self) -> int:
        return _WEIGHTS + self.context * _BYTES_A_TOKEN

    @property
    def size_vram(self) -> int:
        return self.size * self.layers // _LAYERS


class ModelMemory:
    """A model that is asked for with another context, or with other layers on the GPU, is loaded again."""

    def __init__(self, load_time: float, max_context: int) -> None:
        self._load_time = load_time
        self._max_context = max_context
        self._models: dict[str, LoadedModel] = {}

    def load(self, name: str, now: float, num_ctx: int | None = None, num_gpu: int | None = None) -> float:
        """Seconds until the model can be used."""
        model = self._models.get(name)
        # What is out of range is clamped without a word, as real servers do: `serving` has to find that out.
        context = min(max(num_ctx or _CONTEXT, _LEAST_CONTEXT), self._max_context)
        is_automatic = num_gpu is None or num_gpu < 0
        layers = _LAYERS if is_automatic else min(num_gpu or 0, _LAYERS)
        if model is not None and is_automatic:
            layers = model.layers
        is_there = model is not None and model.expires > now
        if model is None or not is_there or (model.context, model.layers) != (context, layers):
            # Names come from clients: those that have expired are forgotten, and of the rest the oldest beyond a bound.
            self._models = {known: m for known, m in self._models.items() if m.expires > now}
            while len(self._models) >= _MAX_MODELS:
                self._models.pop(next(iter(self._models)))
            ready = now + self._load_time
            model = self._models[name] = LoadedModel(name, ready, float("inf"), context, layers)
        return max(0.0, model.ready - now)

    def unload(self, name: str) -> None:
        self._models.pop(name, None)

    def keep(self, name: str, until: float) -> None:
        self._models[name].expires = until

    def find_loaded_models(self, now: float) -> list[LoadedModel]:
        return [model for model in self._models.values() if model.ready <= now < model.expires]


class PromptCache:
    """A cache of prompts as inference servers have it: what begins like an earlier prompt need not be read again.

    It keeps the hash of every beginning of every prompt, token by token; a word is a token.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def read(self, texts: Iterable[str]) -> int:
        """How many tokens at the beginning were known; all are from now on. The last one is read in any case.

        >>> cache = PromptCache()
        >>> cache.read(["a b c d"]), cache.read(["a b", "x"]), cache.read(["a b c d"])
        (0, 2, 3)
        """
        # Texts are joined as a server's template does it: where one message ends and the next begins makes no difference.
        tokens = [token for text in texts for token in text.split()]
        if len(self._seen) > _MOST_KEPT:
            self._seen.clear()
        # The hash of a beginning is made of that of the one before, so a token costs the same wherever it stands.
        beginning, known, is_known = 0, 0, True
        for token in tokens:
            beginning = hash((beginning, token))
            is_known = is_known and beginning in self._seen
            known += is_known
            self._seen.add(beginning)
        return min(known, max(0, len(tokens) - 1))
