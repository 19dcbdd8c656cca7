"""The options of the simulated server, as `assay sim-llm` and `SimServer` take them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def _option(default: Any, help: str, metavar: str = "N", limits: tuple[int, ...] = ()) -> Any:
    """A field with its help on the command line. Times are in seconds, and people write them as in 50ms."""
    return field(default=default, metadata={"help": help, "metavar": metavar, "limits": limits})


@dataclass(frozen=True, slots=True)
class SimOptions:
    """The truth that a client of the simulated server is to find.

    A benchmark of benchmarks needs a server whose figures are known: what a load test, an agent or `serving` measures is held
    against these. The names are those of the command's options.
    """

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""
    ttft: float = _option(0.050, "Time to first token.", "TIME")
    itl: float = _option(0.005, "Time between tokens.", "TIME")
    tokens: int = _option(
        20,
        "Tokens of an answer, unless max_tokens or a known answer makes it shorter.",
        limits=(1, 1_000_000),
    )
    jitter: float = _option(0.0, "How much each delay varies; 0.2 is ±20 %.", "SHARE")
    """Each delay is stretched by a factor between 1 − jitter and 1 + jitter, even over that range."""
    slots: int | None = _option(
        None, "Requests served concurrently; others queue. Default: unlimited.", limits=(1,)
    )
    error_rate: float = _option(0.0, "Share of requests that get a 500.", "SHARE")
    rate_limit: float | None = _option(None, "Requests above this rate get a 429 with Retry-After.", "R/s")
    """Requests a second; a tenth of a second's worth may come at once."""
    disconnect_rate: float = _option(0.0, "Share of requests whose connection is closed halfway.", "SHARE")
    skill: float = _option(
        0.8,
        "Share of correct answers to prompts with a sum such as 12 + 7, or with [[expected: X]].",
        "SHARE",
    )
    seed: int = _option(1, "Seed for faults and answers.")
    load_time: float = _option(0.0, "Time that Ollama's endpoints take to load a model.", "TIME")
    """Only Ollama's endpoints load and unload models."""
    max_context: int = _option(
        131_072,
        "Largest context in tokens: Ollama's endpoints silently reduce a larger num_ctx to it.",
        limits=(4,),
    )
    prefill: float = _option(
        0.0,
        "Time that each input token adds to the time to first token, unless it is cached.",
        "TIME",
    )
    prompt_cache: bool = _option(False, "Cache prompt prefixes: input tokens of a known prefix take no time.")
    models: str | None = _option(None, "Models to serve. Default: any name is accepted.", "A,B")
