"""What a user of locust would write for a stream: FastHttpUser, the events read as they come and parsed."""

from __future__ import annotations

import json
from time import perf_counter

from locust import FastHttpUser, task

BODY = {
    "model": "m",
    "messages": [{"role": "user", "content": "Say in one sentence what a benchmark is."}],
    "stream": True,
    "stream_options": {"include_usage": True},
}


class Streaming(FastHttpUser):
    @task
    def ask(self) -> None:
        start = perf_counter()
        first = None
        with self.client.post(
            "/v1/chat/completions", json=BODY, stream=True, catch_response=True
        ) as response:
            while event := response.stream.readline(b"\n\n"):
                if event.startswith(b"data: {") and json.loads(event[6:])["choices"] and first is None:
                    first = perf_counter() - start
            if first is None:
                response.failure("no token came")
        if first is not None:
            self.environment.events.request.fire(
                request_type="SSE", name="first token", response_time=first * 1e3, response_length=0
            )
