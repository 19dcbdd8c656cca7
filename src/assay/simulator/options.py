"""The options of the simulated server, as `assay sim-llm` and `SimServer` take them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SimOptions:
    """The truth that a client of the simulated server is to find.

    A benchmark of benchmarks needs a server whose figures are known: what a load test, an agent or `serving` measures is held
    against these. The names are those of the command's options.
    """

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""
    ttft: float = 0.050
    """Seconds from the start of service to the first token."""
    itl: float = 0.005
    """Seconds from one token to the next."""
    tokens: int = 20
    """Length of an answer that nothing else decides."""
    jitter: float = 0.0
    """Each delay is stretched by a factor between 1 − jitter and 1 + jitter, even over that range."""
    slots: int | None = None
    """Requests served at a time; the others queue. None: any number."""
    error_rate: float = 0.0
    rate_limit: float | None = None
    """Requests a second; a tenth of a second's worth may come at once."""
    disconnect_rate: float = 0.0
    skill: float = 0.8
    """Share of questions with a known answer that are answered right."""
    seed: int = 1
    load_time: float = 0.0
    """Seconds that a model takes to load; only Ollama's endpoints load and unload."""
    max_context: int = 131_072
    """The context that models were trained for: where more is asked for, Ollama's endpoints give this much."""
    prefill: float = 0.0
    """Seconds that each input token adds to the time to the first token, unless it is in the prompt cache."""
    prompt_cache: bool = False
    """Whether the beginnings of prompts are kept, so that those that begin alike are read in less time."""
    models: str | None = None
    """Names, separated by commas, of the only models that there are. None: any name will do."""
