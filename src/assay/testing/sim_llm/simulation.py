"""The simulated server: who is let in, who waits, what goes wrong, and when each token is due."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from time import monotonic

from assay.execute.http.deadlines import Deadlines
from assay.testing.sim_llm.chance import chance
from assay.testing.sim_llm.dialects import anthropic, ollama, openai, plain, responses
from assay.testing.sim_llm.dialects.dialect import Dialect
from assay.testing.sim_llm.exposition import EXPOSITION_TYPE, exposition
from assay.testing.sim_llm.loading import ModelMemory
from assay.testing.sim_llm.options import SimOptions
from assay.testing.sim_llm.prompt_cache import PromptCache
from assay.testing.sim_llm.protocol import Guest, HttpRequest
from assay.testing.sim_llm.service import Service
from assay.testing.sim_llm.turn import BadAsk, SimQuestion, SimTurn
from assay.testing.sim_llm.writer import Writer

_BURST_SECONDS = 0.1
_MAX_KNOWN_ASKS = 256
_MAX_KNOWN_BODY = 4096


class Bucket:
    """Lets `rate` requests a second through, and a few at once."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._size = max(1.0, rate * _BURST_SECONDS)
        self._level = self._size
        self._since = now

    def wait(self, now: float) -> float:
        """0 if this one may pass, else the seconds until one may."""
        self._level = min(self._size, self._level + max(0.0, now - self._since) * self._rate)
        self._since = max(now, self._since)
        if self._level < 1:
            return (1 - self._level) / self._rate
        self._level -= 1
        return 0.0


class Simulation:
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
        self._under_way: dict[Guest, Service] = {}
        self._serving = 0
        self._is_admitting = False
        self._freed: list[float] = []
        """While requests are let in: since when each slot that is free has been."""
        self._known_asks: dict[tuple[str, bytes], SimQuestion] = {}
        self._guests: set[Guest] = set()
        self._asks: dict[str, Dialect] = {
            "/v1/chat/completions": openai.OpenAIChat(),
            "/v1/completions": openai.Completions(),
            "/v1/responses": responses.Responses(),
            "/v1/embeddings": responses.Embeddings(),
            "/v1/messages": anthropic.Messages(),
            "/api/generate": ollama.Generate(),
            "/api/chat": ollama.OllamaChat(),
            "/ask": plain.Plain(),
        }
        self._pages: dict[str, Callable[[], object]] = {
            "/v1/models": lambda: openai.models(time.time()),
            "/api/tags": lambda: ollama.tags(time.time()),
            "/api/ps": lambda: ollama.running(self.memory.loaded(monotonic()), monotonic(), time.time()),
            "/api/version": lambda: {"version": "0.0.0-simulated"},
            "/stats": self.stats,
        }

    def guest(self) -> Guest:
        guest = Guest(self._on_request, self._on_gone)
        self._guests.add(guest)
        return guest

    def close(self) -> None:
        self._queue.clear()
        self._under_way.clear()
        for guest in list(self._guests):
            guest.close()
        self.deadlines.close()

    def stats(self) -> dict[str, object]:
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

    def _on_request(self, guest: Guest, request: HttpRequest) -> None:
        dialect = self._asks.get(request.path)
        if dialect is not None and request.method == "POST":
            self._on_ask(guest, request, dialect)
        elif (page := self._pages.get(request.path)) is not None and request.method == "GET":
            guest.answer(200, page())
        elif request.path == "/metrics" and request.method == "GET":
            guest.send(guest.whole(200, self._exposition(), content_type=EXPOSITION_TYPE))
            guest.finish()
        elif dialect is not None or page is not None:
            allowed = "POST" if dialect else "GET"
            message = f"{request.path} takes {allowed}, not {request.method}."
            guest.answer(405, openai.error(405, message), {"allow": allowed})
        else:
            guest.answer(404, openai.error(404, f"There is no {request.path[:200]} here."))

    def _on_ask(self, guest: Guest, request: HttpRequest, dialect: Dialect) -> None:
        self.counts["requests"] += 1
        number = self.counts["requests"]
        if (wait := self._bucket.wait(request.arrived) if self._bucket else 0.0) > 0:
            self.counts["rate_limited"] += 1
            message = "The simulated rate limit is reached."
            guest.answer(429, dialect.error(429, message), {"retry-after": str(math.ceil(wait))})
        elif self.happens("error", self.options.error_rate, number):
            self.counts["injected_errors"] += 1
            guest.answer(500, dialect.error(500, "A simulated error, as was asked for."))
        else:
            self._put(guest, request, dialect, number)

    def _put(self, guest: Guest, request: HttpRequest, dialect: Dialect, number: int) -> None:
        try:
            ask = self._understood(request, dialect)
        except BadAsk as error:
            self.counts["bad_requests"] += 1
            guest.answer(400, dialect.error(400, str(error)))
            return
        if self._models is not None and ask.model not in self._models:
            self.counts["bad_requests"] += 1
            guest.answer(404, dialect.error(404, f"model '{ask.model}' not found"))
            return
        self.counts["prompt_tokens"] += ask.input_tokens
        turn = SimTurn(ask, self._writer.reply(ask), number, time.time())
        service = Service(self, guest, dialect, turn, request.arrived)
        self._under_way[guest] = service
        self._queue.append(service)
        self._admit(request.arrived)

    def _understood(self, request: HttpRequest, dialect: Dialect) -> SimQuestion:
        """A load of many equal questions is read once."""
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
        """Begin what there are slots for, each when its slot was free; a loop, because an answer whose time is over already,
        where this process is late or there are no delays, ends within its beginning."""
        if self._is_admitting:
            return
        self._is_admitting = True
        slots = self.options.slots
        self._freed = [] if slots is None else [now] * (slots - self._serving)
        while self._queue and (slots is None or self._freed):
            service = self._queue.popleft()
            self._serving += 1
            service.begin(max(now if slots is None else heappop(self._freed), service.arrived))
        self._is_admitting = False

    def done(self, guest: Guest, at: float, outcome: str, output_tokens: int = 0) -> None:
        """The slot is free since `at`, when the last token was due, so lateness of this process does not add up."""
        self.counts[outcome] += 1
        self.counts["output_tokens"] += output_tokens
        self._under_way.pop(guest, None)
        self._serving -= 1
        if self._is_admitting:
            heappush(self._freed, at)
        self._admit(at)

    def _on_gone(self, guest: Guest) -> None:
        self._guests.discard(guest)
        service = self._under_way.pop(guest, None)
        if service is None:
            return
        if service in self._queue:
            self._queue.remove(service)
            self.counts["abandoned"] += 1
        elif not service.is_over:
            service.is_over = True
            self.done(guest, monotonic(), "abandoned")

    def happens(self, what: str, rate: float, number: int) -> bool:
        return rate > 0 and self.luck(what, number) < rate

    def luck(self, *about: object) -> float:
        return chance(self.options.seed, *about)


def _document(body: bytes) -> Mapping[str, object]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadAsk("The body is not JSON.") from error
    if not isinstance(document, dict):
        raise BadAsk("The body is not a JSON mapping.")
    return document
