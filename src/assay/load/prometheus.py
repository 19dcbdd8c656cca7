"""Metrics in Prometheus' text format: those of a server that we know by name, and how to read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{[^\n]*\})?[ \t]+(\S+)")


@dataclass(frozen=True, slots=True)
class KnownMetric:
    name: str
    software: str
    """Empty for what any server may expose."""
    title: str
    unit: str
    is_counter: bool = False
    is_highest: bool = False
    """Whether the highest of several samples counts (of engines or models) instead of their sum."""


def _known() -> Iterator[KnownMetric]:
    for software, running, waiting, cache, prompt, output in (
        # docs.vllm.ai, "Production Metrics"; up to 0.9 the cache is gpu_cache_usage_perc.
        ("vLLM", "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
         "vllm:prompt_tokens_total", "vllm:generation_tokens_total"),
        # llama.cpp, tools/server/README.md, "GET /metrics".
        ("llama.cpp", "llamacpp:requests_processing", "llamacpp:requests_deferred", "llamacpp:kv_cache_usage_ratio",
         "llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total"),
        # docs.sglang.io, "Production Metrics".
        ("SGLang", "sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage",
         "sglang:prompt_tokens_total", "sglang:generation_tokens_total"),
    ):  # fmt: skip
        yield KnownMetric(running, software, "running at the server", "requests")
        yield KnownMetric(waiting, software, "waiting at the server", "requests")
        yield KnownMetric(cache, software, "KV cache", "share", is_highest=True)
        yield KnownMetric(prompt, software, "prompt tokens", "tokens", is_counter=True)
        yield KnownMetric(output, software, "output tokens", "tokens", is_counter=True)
    yield KnownMetric("vllm:gpu_cache_usage_perc", "vLLM", "KV cache", "share", is_highest=True)
    # huggingface.co/docs/text-generation-inference, "Metrics".
    yield KnownMetric("tgi_batch_current_size", "TGI", "running at the server", "requests")
    yield KnownMetric("tgi_queue_size", "TGI", "waiting at the server", "requests")
    # What Prometheus' own client libraries expose of the process.
    yield KnownMetric("process_resident_memory_bytes", "", "resident memory", "bytes")
    yield KnownMetric("process_cpu_seconds_total", "", "processor time", "cores", is_counter=True)


KNOWN = {metric.name: metric for metric in _known()}


def read_samples(text: str) -> dict[str, float]:
    """The known metrics in a server's answer; of several samples their sum or, of shares, the highest.

    >>> read_samples('vllm:num_requests_running{engine="0"} 3.0\\nvllm:num_requests_running{engine="1"} 2.0')
    {'vllm:num_requests_running': 5.0}
    """
    found: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith(_PREFIXES) or (sample := _SAMPLE.match(line)) is None:
            continue
        name = sample[1]
        metric = KNOWN.get(name)
        try:
            value = float(sample[2])
        except ValueError:
            continue
        if metric is None or not math.isfinite(value):
            continue
        if name in found:
            value = max(found[name], value) if metric.is_highest else found[name] + value
        found[name] = value
    return found


_PREFIXES = tuple({re.split("[:_]", name)[0] for name in KNOWN})
