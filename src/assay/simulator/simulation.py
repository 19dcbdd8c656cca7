"""The simulated server: decides who is let in, who waits, and what goes wrong.

A question passes the rate limit, then the simulated errors, and then waits in a queue for one of the slots. A `Service` answers it
and reports back, and the slot goes to the next. The same server speaks all dialects, each at its own paths.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from time import monotonic

from assay.dialects import anthropic as anthropic_api
from assay.dialects import ollama as ollama_api
from assay.dialects import openai as openai_api
from assay.http.deadlines import Deadlines
from assay.http.server import HttpRequest, HttpServer, ServerConnection
from assay.simulator.chance import chance
from assay.simulator.dialects import anthropic, ollama, openai, plain, responses
from assay.simulator.dialects.dialect import Dialect
from assay.simulator.memory import ModelMemory, PromptCache
from assay.simulator.options import SimOptions
from assay.simulator.service import Service
from assay.simulator.turn import BadAsk, SimQuestion, SimTurn
from assay.simulator.writer import Writer

EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BURST_SECONDS = 0.1
_MAX_KNOWN_ASKS = 256
_MAX_KNOWN_BODY = 4096


class Bucket:
    """A token bucket: lets `rate` requests a second through, and as many at once as come in `_BURST_SECONDS`."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._size = max(1.0, rate * _BURST_SECONDS)
        self._level = self._size
        self._since = now

    def wait(self, now: float) -> float:
        """0 if this one may pass, else the seconds until one may."""
        # Requests may be shown out of order by some microseconds: time never goes backwards here.
        self._level = min(self._size, self._level + max(0.0, now - self._since) * self._rate)
        self._since = max(now, self._since)
        if self._level < 1:
            return (1 - self._level) / self._rate
        self._level -= 1
        return 0.0


class Simulation:
    """One simulated server on one event loop.

    `counts` has what happened so far, for `/stats`, `/metrics` and the figures at the end. `_serving` is the number of slots in use.
    """

    def __init__(self, options: SimOptions, loop: asyncio.AbstractEventLoop) -> None:
        self.options = options
        self.deadlines = Deadlines(loop)
        self.memory = ModelMemory(options.load_time, options.max_context)
        self.prompt_cache = PromptCache() if options.prompt_cache else None
        self._models = frozenset(options.models.split(",")) if options.models else None
        self.counts: Counter[str] = Counter()
        self._writer = Writer(options.seed, options.skill, options.tokens)
        self._bucket = Bucket(options.rate_limit, monotonic()) if options.rate_limit else None
        self._queue: deque[Service] = deque()
        self._under_way: dict[ServerConnection, Service] = {}
        self._serving = 0
        self._is_admitting = False
        self._freed: list[float] = []
        """A heap, used while requests are let in: since when each free slot has been free."""
        self._known_asks: dict[tuple[str, bytes], SimQuestion] = {}
        """Questions by path and body, parsed once: see `_understood`."""
        self.server = HttpServer(self._on_request, self._on_gone, common="x-assay-simulated: 1\r\n")
        self._asks: dict[str, Dialect] = {
            f"/v1{openai_api.CHAT_PATH}": openai.OpenAIChat(),
            f"/v1{openai_api.COMPLETIONS_PATH}": openai.Completions(),
            f"/v1{openai_api.RESPONSES_PATH}": responses.Responses(),
            f"/v1{openai_api.EMBEDDINGS_PATH}": responses.Embeddings(),
            anthropic_api.MESSAGES_PATH: anthropic.Messages(),
            ollama_api.GENERATE_PATH: ollama.Generate(),
            ollama_api.CHAT_PATH: ollama.OllamaChat(),
            "/ask": plain.Plain(),
        }
        self._pages: dict[str, Callable[[], object]] = {
            f"/v1{openai_api.MODELS_PATH}": lambda: openai.models(time.time()),
            ollama_api.TAGS_PATH: lambda: ollama.tags(time.time()),
            ollama_api.RUNNING_PATH: lambda: ollama.running(
                self.memory.find_loaded_models(monotonic()), monotonic(), time.time()
            ),
            ollama_api.VERSION_PATH: lambda: {"version": "0.0.0-simulated"},
            "/stats": self.stats,
        }

    def close(self) -> None:
        self._queue.clear()
        self._under_way.clear()
        self.server.close()
        self.deadlines.close()

    def stats(self) -> dict[str, object]:
        """What happened so far: the truth that a client's own counts are held against."""
        kinds = ("bad_requests", "rate_limited", "injected_errors", "disconnects", "abandoned")
        return {
            "requests": self.counts["requests"],
            "completed": self.counts["completed"],
            "input_tokens": self.counts["input_tokens"],
            "cached_tokens": self.counts["cached_tokens"],
            "output_tokens": self.counts["output_tokens"],
            "in_flight": self._serving,
            "queued": len(self._queue),
            "errors": {kind: self.counts[kind] for kind in kinds},
        }

    def _exposition(self) -> bytes:
        # The share of slots in use stands for that of the cache: a simulated server has no other memory.
        slots = self.options.slots
        return exposition(
            {
                "num_requests_running": self._serving,
                "num_requests_waiting": len(self._queue),
                "kv_cache_usage_perc": self._serving / slots if slots else 0.0,
                "prompt_tokens_total": self.counts["prompt_tokens"],
                "generation_tokens_total": self.counts["output_tokens"],
                "request_success_total": self.counts["completed"],
            }
        )

    def _on_request(self, client: ServerConnection, request: HttpRequest) -> None:
        """Route a request by its path; only questions pass the rate limit and the simulated faults."""
        path = request.path
        dialect = self._asks.get(path)
        if dialect is not None and request.method == "POST":
            self._on_ask(client, request, dialect)
        elif (page := self._pages.get(path)) is not None and request.method == "GET":
            client.answer(200, page())
        elif path == "/metrics" and request.method == "GET":
            client.send(client.whole(200, self._exposition(), content_type=EXPOSITION_TYPE))
            client.finish()
        elif dialect is not None or page is not None:
            # The path is known and the method is not: a client is told which one is, as HTTP demands of a 405.
            allowed = "POST" if dialect else "GET"
            message = f"{path} takes {allowed}, not {request.method}."
            client.answer(405, openai.error(405, message), {"allow": allowed})
        else:
            client.answer(404, openai.error(404, f"There is no {path[:200]} here."))

    def _on_ask(self, client: ServerConnection, request: HttpRequest, dialect: Dialect) -> None:
        """Let a question in or refuse it, in the order of a real server: the limit before anything is parsed, then faults.

        The number of the request decides what goes wrong with it, so that a run with the same seed has the same faults.
        """
        self.counts["requests"] += 1
        number = self.counts["requests"]
        if (wait := self._bucket.wait(request.arrived) if self._bucket else 0.0) > 0:
            self.counts["rate_limited"] += 1
            message = "The simulated rate limit is reached."
            client.answer(429, dialect.error(429, message), {"retry-after": str(math.ceil(wait))})
        elif self.happens("error", self.options.error_rate, number):
            self.counts["injected_errors"] += 1
            client.answer(500, dialect.error(500, "Simulated error (--error-rate)."))
        else:
            self._enqueue(client, request, dialect, number)

    def _enqueue(self, client: ServerConnection, request: HttpRequest, dialect: Dialect, number: int) -> None:
        try:
            ask = self._understood(request, dialect)
        except BadAsk as error:
            self.counts["bad_requests"] += 1
            client.answer(400, dialect.error(400, str(error)))
            return
        if self._models is not None and ask.model not in self._models:
            self.counts["bad_requests"] += 1
            client.answer(404, dialect.error(404, f"model '{ask.model}' not found"))
            return
        self.counts["prompt_tokens"] += ask.input_tokens
        # What is said is decided now and not when a slot is free, so that it depends on the order of arrival alone.
        turn = SimTurn(ask, self._writer.reply(ask), number, time.time())
        service = Service(self, client, dialect, turn, request.arrived)
        self._under_way[client] = service
        self._queue.append(service)
        self._admit(request.arrived)

    def _understood(self, request: HttpRequest, dialect: Dialect) -> SimQuestion:
        """The question of a request. Small ones are cached, as a load test asks the same thing again and again."""
        key = (request.path, request.body)
        ask = self._known_asks.get(key)
        if ask is None:
            ask = dialect.ask(_document(request.body))
            if len(request.body) <= _MAX_KNOWN_BODY:
                if len(self._known_asks) >= _MAX_KNOWN_ASKS:
                    self._known_asks.clear()
                self._known_asks[key] = ask
        return ask

    def _admit(self, now: float) -> None:
        """Begin what there are slots for, each from the moment its slot was free.

        An answer whose time is already over, because this process is late or there are no delays, ends within `begin` and
        calls `done`. So this is a loop that `done` does not enter again, but feeds with the slot that has become free.
        """
        if self._is_admitting:
            return
        self._is_admitting = True
        # A heap, because answers that end within this loop free their slots at moments that are in no order.
        slots = self.options.slots
        self._freed = [] if slots is None else [now] * (slots - self._serving)
        while self._queue and (slots is None or self._freed):
            service = self._queue.popleft()
            self._serving += 1
            service.begin(max(now if slots is None else heappop(self._freed), service.arrived))
        self._is_admitting = False

    def finish_service(
        self, client: ServerConnection, at: float, outcome: str, output_tokens: int = 0
    ) -> None:
        """A service has ended. Its slot is free since `at`, when the last token was due, so lateness does not add up."""
        # Within `_admit` the slot joins those that it hands out; else `_admit` counts all that are free by itself.
        self.counts[outcome] += 1
        self.counts["output_tokens"] += output_tokens
        self._under_way.pop(client, None)
        self._serving -= 1
        if self._is_admitting:
            heappush(self._freed, at)
        self._admit(at)

    def _on_gone(self, client: ServerConnection) -> None:
        """A client has left: what waited is taken out of the queue, and what was being served frees its slot at once."""
        service = self._under_way.pop(client, None)
        if service is None:
            return
        if service in self._queue:
            self._queue.remove(service)
            self.counts["abandoned"] += 1
        elif not service.is_over:
            service.is_over = True
            self.finish_service(client, monotonic(), "abandoned")

    def happens(self, what: str, rate: float, number: int) -> bool:
        """Whether to inject a fault with probability `rate` into request `number`, reproducibly for the seed."""
        return rate > 0 and self.luck(what, number) < rate

    def luck(self, *about: object) -> float:
        """A number from 0 up to 1 for one decision; the same for the same seed."""
        return chance(self.options.seed, *about)


def _document(body: bytes) -> Mapping[str, object]:
    # Bodies come from outside: one nested too deeply must not end the server.
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadAsk("The body is not JSON.") from error
    if not isinstance(document, dict):
        raise BadAsk("The body is not a JSON mapping.")
    return document


def exposition(values: Mapping[str, float]) -> bytes:
    """The server's metrics under the names that vLLM gives them, in Prometheus' text format.

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
