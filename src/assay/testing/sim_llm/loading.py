"""Which models are in memory, as an Ollama server keeps them."""

from __future__ import annotations

from dataclasses import dataclass

_MAX_MODELS = 1_000


@dataclass(slots=True)
class Loaded:
    name: str
    ready: float
    expires: float


class Memory:
    def __init__(self, load_time: float) -> None:
        self._load_time = load_time
        self._models: dict[str, Loaded] = {}

    def load(self, name: str, now: float) -> float:
        """Seconds until the model can be used."""
        model = self._models.get(name)
        if model is None or model.expires <= now:
            self._forget_expired(now)
            model = self._models[name] = Loaded(name, now + self._load_time, float("inf"))
        return max(0.0, model.ready - now)

    def unload(self, name: str) -> None:
        self._models.pop(name, None)

    def keep(self, name: str, until: float) -> None:
        self._models[name].expires = until

    def loaded(self, now: float) -> list[Loaded]:
        return [model for model in self._models.values() if model.ready <= now < model.expires]

    def _forget_expired(self, now: float) -> None:
        self._models = {name: model for name, model in self._models.items() if model.expires > now}
        while len(self._models) >= _MAX_MODELS:
            self._models.pop(next(iter(self._models)))
