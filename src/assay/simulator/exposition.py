"""The simulated server's metrics under the names that vLLM gives them, in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Mapping

EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(values: Mapping[str, float]) -> bytes:
    """
    >>> print(exposition({"num_requests_running": 3}).decode(), end="")
    # TYPE vllm:num_requests_running gauge
    vllm:num_requests_running{model_name="sim-llm"} 3.0
    """
    lines = []
    for name, value in values.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines.append(f"# TYPE vllm:{name} {kind}")
        lines.append(f'vllm:{name}{{model_name="sim-llm"}} {float(value)!r}')
    return ("\n".join(lines) + "\n").encode()
