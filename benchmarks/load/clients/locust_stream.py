"""What a user of locust would write for a stream: FastHttpUser, the events read as they come and parsed."""

from __future__ import annotations

import json
from time import perf_counter
from typing import Any

from locust import FastHttpUser, constant_throughput, events, task

BODY = {
    "model": "m",
    "messages": [{"role": "user", "content": "Say in one sentence what a benchmark is."}],
    "stream": True,
    "stream_options": {"include_usage": True},
}


@events.init_command_line_parser.add_listener
def _take_a_rate(parser: Any) -> None:
    parser.add_argument("--rate", type=float, default=0.0, help="Requests a second of all users together")


class Streaming(FastHttpUser):
    def wait_time(self) -> float:
        options = self.environment.parsed_options
        return constant_throughput(options.rate / options.num_users)(self) if options.rate else 0.0

    @task
    def ask(self) -> None:
        start = perf_counter()
        first = None
        with self.client.post(
            "/v1/chat/completions", json=BODY, stream=True, catch_response=True
        ) as response:
            while event := response.stream.readline(b"\n\n"):
                told = json.loads(event[6:]) if event.startswith(b"data: {") else None
                if first is None and told and _has_content(told):
                    first = perf_counter() - start
            if first is None:
                response.failure("no token came")
        if first is not None:
            self.environment.events.request.fire(
                request_type="SSE", name="first token", response_time=first * 1e3, response_length=0
            )


def _has_content(told: dict[str, Any]) -> bool:
    return any(choice["delta"].get("content") for choice in told["choices"])
