"""The memory of agents in Redis: how quickly they remember, recall, search and forget, and what an entry takes.

It talks to a real server. All keys have a prefix of their own and are removed again; nothing else in the database is touched, and what
a killed process leaves behind expires.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from math import floor, hypot
from time import perf_counter
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from assay.errors import AssayError, MissingExtra
from assay.model import Better, Metric
from assay.plugin.agent_pool import expand_variables
from assay.plugin.experiment import Experiment, ExperimentContext

_WORLD = 100.0
_SEARCHES = 100
"""At most, for each agent."""
_CONNECT_SECONDS = 5
_COMMANDS = 4
"""That store one entry."""
_PERCENTILES = (50, 95, 99)
_CLIENT = "redis client"
_GET_ONE = "apt-get install redis-server, or: docker run -p 6379:6379 redis"


class RedisUnavailable(AssayError):
    """There is no Redis server at the address, or it does not answer as one."""


class WrongMemory(Exception):
    """Redis returned something other than what was stored."""


class RedisMemoryParams(BaseModel):
    """How many agents remember how much."""

    model_config = ConfigDict(allow_inf_nan=False)

    url: str = Field(
        default="redis://127.0.0.1:6379/0",
        description="URL of the server; write a password as ${NAME}, an environment variable.",
    )
    num_agents: int = Field(
        default=10, ge=1, le=100_000, description="Agents, each with a memory of its own."
    )
    memory_entries: int = Field(default=1000, ge=1, description="Entries that each agent remembers.")
    batch_size: int = Field(default=100, ge=1, description="Entries in one pipeline.")
    search_radius: float = Field(
        default=10, gt=0, description="Radius of a search by position, in a world of 100 × 100."
    )
    memory_limit: int = Field(
        default=5000, ge=1, description="Entries above which an agent forgets the oldest."
    )
    ttl: int = Field(default=3600, ge=1, description="Seconds after which Redis forgets an entry by itself.")
    cleanup_interval: int = Field(
        default=100, ge=1, description="Entries after which an agent checks the limit."
    )

    @field_validator("url")
    @classmethod
    def _check_scheme(cls, url: str) -> str:
        if not url.startswith(("redis://", "rediss://", "unix://", "${")):
            raise ValueError("must be the address of a Redis server: redis://HOST:PORT/0")
        return url


class AgentMemory:
    """What one agent remembers: an entry for each moment, a timeline, and cells by which entries are found by position."""

    def __init__(self, client: Any, prefix: str, cell_size: float, ttl: int) -> None:
        self._client, self._prefix, self._cell_size, self._ttl = client, prefix, cell_size, ttl
        self._began: float | None = None

    def remember(self, entries: Sequence[Mapping[str, Any]]) -> int:
        """Write entries in one round trip; return how many of them Redis confirmed."""
        if self._began is None:
            self._began = perf_counter()
        with self._client.pipeline(transaction=False) as pipeline:
            for entry in entries:
                number, text = entry["id"], json.dumps(entry)
                pipeline.set(self._entry(number), text, ex=self._ttl)
                pipeline.zadd(self.timeline, {number: number})
                cell = self._cell(*_position(entry))
                pipeline.sadd(cell, number)
                pipeline.expire(cell, self._ttl)
            pipeline.expire(self.timeline, self._ttl)
            replies = pipeline.execute()
        return sum(stored is True for stored in replies[: _COMMANDS * len(entries) : _COMMANDS])

    def recall(self, number: int) -> Any:
        text = self._client.get(self._entry(number))
        return None if text is None else json.loads(text)

    def search(self, x: float, y: float, radius: float) -> list[int]:
        """The entries within a distance, by the cells around: one round trip for their numbers, one for the entries."""
        with self._client.pipeline(transaction=False) as pipeline:
            for column in self._range(x, radius):
                for row in self._range(y, radius):
                    pipeline.smembers(f"{self._prefix}cell:{column}:{row}")
            numbers = [int(number) for found in pipeline.execute() for number in found]
        if not numbers:
            return []
        texts = self._client.mget([self._entry(number) for number in numbers])
        entries = [json.loads(text) for text in texts if text is not None]
        return [entry["id"] for entry in entries if _distance(entry, x, y) <= radius]

    def forget(self, limit: int) -> int:
        """Remove the oldest entries above the limit; how many there were."""
        oldest = [int(number) for number in self._client.zrange(self.timeline, 0, -limit - 1)]
        if not oldest:
            return 0
        # An entry that has expired is gone already, and its cell expires by itself.
        texts = self._client.mget([self._entry(number) for number in oldest])
        entries = [json.loads(text) for text in texts if text is not None]
        with self._client.pipeline(transaction=False) as pipeline:
            pipeline.zrem(self.timeline, *oldest)
            pipeline.unlink(*(self._entry(number) for number in oldest))
            for entry in entries:
                pipeline.srem(self._cell(*_position(entry)), entry["id"])
            pipeline.execute()
        return len(oldest)

    @property
    def timeline(self) -> str:
        return f"{self._prefix}timeline"

    def may_have_expired(self) -> bool:
        """Whether its first entry is old enough; before that, whatever is missing is lost."""
        # The clocks of client and server may differ in speed.
        return self._began is not None and perf_counter() - self._began >= 0.99 * self._ttl

    def seconds_to_live(self, number: int) -> float:
        """-2 for an entry that is gone, -1 for one that never expires, as Redis has it."""
        left = int(self._client.pttl(self._entry(number)))
        return left / 1000 if left >= 0 else left

    def _entry(self, number: int) -> str:
        return f"{self._prefix}entry:{number}"

    def _cell(self, x: float, y: float) -> str:
        return f"{self._prefix}cell:{floor(x / self._cell_size)}:{floor(y / self._cell_size)}"

    def _range(self, at: float, radius: float) -> range:
        return range(floor((at - radius) / self._cell_size), floor((at + radius) / self._cell_size) + 1)


class RedisMemory(Experiment):
    """The memory of several agents in a Redis server: write, read, search by position, write in batches, forget.

    Every agent does everything. Answers are checked: what is recalled must be what was remembered, and a search must find what brute
    force finds. `bytes_per_entry` is what Redis says of this experiment's own keys; what other clients do does not count.
    """

    Params = RedisMemoryParams
    workload_params: ClassVar[Sequence[str]] = ("num_agents", "memory_entries", "search_radius")
    facts: ClassVar[Sequence[str]] = ("redis_version", "redis_mode")
    metrics: ClassVar[Mapping[str, Metric]] = {
        **{
            f"{phase}s_per_second": Metric(f"{phase}s_per_second", "1/s", Better.HIGHER)
            for phase in ("write", "read", "batch_write")
        },
        "searches_per_second": Metric("searches_per_second", "1/s", Better.HIGHER),
        **{
            f"{phase}_p{q}_seconds": Metric(f"{phase}_p{q}_seconds", "s", Better.LOWER)
            for phase in ("write", "read", "search")
            for q in _PERCENTILES
        },
        "bytes_per_entry": Metric("bytes_per_entry", "bytes", Better.LOWER),
        "cleanup_seconds": Metric("cleanup_seconds", "s", Better.LOWER),
        "entries_removed": Metric("entries_removed"),
        "entries_remaining": Metric("entries_remaining"),
        "entries_expired": Metric("entries_expired"),
    }

    params: RedisMemoryParams
    _client: Any = None
    _entries: list[dict[str, Any]]
    _points: list[tuple[float, float]]

    def setup(self, context: ExperimentContext) -> None:
        chance = random.Random((context.seed - context.process) % 2**32)
        self._entries = [draw_entry(number, chance) for number in range(self.params.memory_entries)]
        searches = min(_SEARCHES, self.params.memory_entries)
        self._points = [(chance.uniform(0, _WORLD), chance.uniform(0, _WORLD)) for _ in range(searches)]
        context.extras[_CLIENT] = self._client = connect(self.params.url)
        server = self._client.info("server")
        context.read_back(redis_version=server["redis_version"], redis_mode=server.get("redis_mode"))

    def prepare_once(self, context: ExperimentContext) -> None:
        with _explain_redis_errors(self.params.url):
            remove_keys(self._client, _prefix(context))

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        with _explain_redis_errors(self.params.url):
            agents = self._memories(context, "one")
            writes: list[float] = []
            for agent in agents:
                writes += self._write(agent)
                if agent is agents[0]:  # at once, as a short life may be over when the others have written
                    self._read_back(agent, context)
            reads, expired = self._read_all(agents, context)
            searches = [seconds for agent in agents for seconds in self._search(agent)]
            return {
                **_summarise("write", "writes", writes),
                **_summarise("read", "reads", reads),
                **_summarise("search", "searches", searches),
                **self._measure_entry(context),
                "batch_writes_per_second": self._write_batches(self._memories(context, "batch"), context),
                **self._forget(agents),
                "entries_expired": expired,
            }

    @staticmethod
    def teardown(context: ExperimentContext) -> None:
        """Static, so that a new process removes the keys of one that was killed; that one's client ended with it."""
        if (opened := context.extras.pop(_CLIENT, None)) is not None:
            opened.close()
        with suppress(RedisUnavailable, MissingExtra):
            url = str(context.params["url"])
            with connect(url) as client, _explain_redis_errors(url):
                remove_keys(client, _prefix(context))

    def _memories(self, context: ExperimentContext, part: str) -> list[AgentMemory]:
        return [
            AgentMemory(
                self._client, f"{_prefix(context)}{part}:{agent}:", self.params.search_radius, self.params.ttl
            )
            for agent in range(self.params.num_agents)
        ]

    def _write(self, agent: AgentMemory) -> Iterator[float]:
        """Seconds of each write, with the look at the limit that some of them cause."""
        for number, entry in enumerate(self._entries, start=1):
            begin = perf_counter()
            agent.remember([entry])
            if number % self.params.cleanup_interval == 0:
                agent.forget(self.params.memory_limit)
            yield perf_counter() - begin

    def _known(self) -> list[dict[str, Any]]:
        """The entries that an agent has not forgotten while it wrote."""
        whole = len(self._entries) - len(self._entries) % self.params.cleanup_interval
        return self._entries[max(0, whole - self.params.memory_limit) :]

    def _read_all(self, agents: Sequence[AgentMemory], context: ExperimentContext) -> tuple[list[float], int]:
        """Seconds of each read, and how many of them came after the life of their entry."""
        seconds: list[float] = []
        expired = 0
        for agent in agents:
            for taken, is_there in self._read(agent, context.seed):
                seconds.append(taken)
                expired += not is_there
        if expired:
            context.remark(
                f"Entries had expired before they were read: a ttl of {self.params.ttl} s is shorter than an execution, so reads and "
                "searches found less. Use a longer ttl or fewer entries."
            )
        return seconds, expired

    def _read(self, agent: AgentMemory, seed: int) -> Iterator[tuple[float, bool]]:
        """Read entries in random order and compare each with what was written; return the time and whether it still existed."""
        known = self._known()
        for entry in random.Random(seed).sample(known, len(known)):
            begin = perf_counter()
            recalled = agent.recall(entry["id"])
            yield perf_counter() - begin, recalled is not None
            if recalled is None and agent.may_have_expired():
                continue
            if recalled is None:
                raise WrongMemory(f"Entry {entry['id']} is gone, before its ttl of {self.params.ttl} s.")
            if recalled != entry:
                raise WrongMemory(f"Entry {entry['id']} came back different from what was stored.")

    def _search(self, agent: AgentMemory) -> Iterator[float]:
        """Search by position and compare each result with brute force; expired entries need not be found."""
        known, radius = self._known(), self.params.search_radius
        for x, y in self._points:
            begin = perf_counter()
            found = agent.search(x, y, radius)
            yield perf_counter() - begin
            right = [entry["id"] for entry in known if _distance(entry, x, y) <= radius]
            is_expired = agent.may_have_expired() and set(found) <= set(right)
            if sorted(found) != right and not is_expired:
                raise WrongMemory(
                    f"A search around {x:.4g}, {y:.4g} found {len(found)} entries; there are {len(right)}."
                )

    def _write_batches(self, agents: Sequence[AgentMemory], context: ExperimentContext) -> float:
        """Entries a second, each batch in one pipeline."""
        size, largest = self.params.batch_size, 0
        begin = perf_counter()
        for agent in agents:
            for start in range(0, len(self._entries), size):
                largest = max(largest, agent.remember(self._entries[start : start + size]))
        seconds = perf_counter() - begin
        context.read_back(batch_size=largest)
        return len(agents) * len(self._entries) / seconds

    def _read_back(self, agent: AgentMemory, context: ExperimentContext) -> None:
        held = int(self._client.zcard(agent.timeline))
        lives = agent.seconds_to_live(self._entries[-1]["id"])
        is_gone = agent.may_have_expired()
        context.read_back(
            memory_entries=len(self._entries)
            if held == len(self._known()) or (is_gone and not held)
            else held,
            # It counts down from the moment of writing.
            ttl=self.params.ttl if 0 <= lives <= self.params.ttl or (is_gone and lives == -2) else lives,
        )

    def _measure_entry(self, context: ExperimentContext) -> dict[str, float]:
        """Bytes of one agent's keys, timeline and cells included, by the entries that the server has; none where all have expired."""
        agent = f"{_prefix(context)}one:0:"
        keys = set(self._client.scan_iter(f"{agent}*", count=1000))
        kept = sum(key.startswith(f"{agent}entry:") for key in keys)
        with self._client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.memory_usage(key)
            total = float(sum(filter(None, pipeline.execute())))
        return {"bytes_per_entry": total / kept} if kept else {}

    def _forget(self, agents: Sequence[AgentMemory]) -> dict[str, float]:
        """Forget half of what each agent may keep, so that there is something to forget even with few entries."""
        limit = max(1, min(self.params.memory_limit, len(self._known())) // 2)
        begin = perf_counter()
        removed = sum(agent.forget(limit) for agent in agents)
        seconds = perf_counter() - begin
        left = sum(int(self._client.zcard(agent.timeline)) for agent in agents)
        return {"cleanup_seconds": seconds, "entries_removed": removed, "entries_remaining": left}


def connect(url: str) -> Any:
    """A client whose server has answered; MissingExtra without the package, RedisUnavailable without a server."""
    try:
        import redis
    except ModuleNotFoundError:
        raise MissingExtra(
            "'redis_memory' needs the package 'redis': pip install 'assay-bench[redis]'"
        ) from None
    with _explain_redis_errors(url):
        client = redis.Redis.from_url(
            expand_variables(url, os.environ, "redis_memory"),
            socket_connect_timeout=_CONNECT_SECONDS,
            decode_responses=True,
        )
        client.ping()
        return client


def remove_keys(client: Any, prefix: str) -> None:
    keys = list(client.scan_iter(f"{prefix}*", count=1000))
    for start in range(0, len(keys), 1000):
        client.unlink(*keys[start : start + 1000])


def _prefix(context: ExperimentContext) -> str:
    """Return the prefix of the keys of this trial and process, without characters that have a meaning in a pattern."""
    trial = sha256(str(context.run_dir).encode()).hexdigest()[:12]
    return f"assay:{context.run_id}:{trial}:{context.process}:"


def draw_entry(number: int, chance: random.Random) -> dict[str, Any]:
    """A moment of an agent: its state, what it did, what it got for it, and what it saw."""
    return {
        "id": number,
        "state": {
            "position": [chance.uniform(0, _WORLD), chance.uniform(0, _WORLD), 0.0],
            "resource_level": chance.uniform(0, 10),
            "health": chance.random(),
            "is_defending": chance.random() < 0.2,
            "total_reward": chance.uniform(-10, 10),
            "age": number,
        },
        "action": chance.randrange(8),
        "reward": chance.uniform(-1, 1),
        "perception": [[chance.randrange(4) for _ in range(11)] for _ in range(11)],
        "metadata": {"importance": chance.random()},
        "priority": chance.random(),
    }


def _position(entry: Mapping[str, Any]) -> tuple[float, float]:
    x, y, _ = entry["state"]["position"]
    return x, y


def _distance(entry: Mapping[str, Any], x: float, y: float) -> float:
    at = _position(entry)
    return hypot(at[0] - x, at[1] - y)


def _summarise(phase: str, plural: str, seconds: Sequence[float]) -> dict[str, float]:
    """Operations a second, and percentiles as far as there are operations beyond them."""
    from assay.stats.summary import percentile
    from assay.stats.tails import is_enough

    percentiles = [q for q in _PERCENTILES if is_enough(len(seconds), q)]
    tails = {f"{phase}_p{q}_seconds": percentile(seconds, q) for q in percentiles}
    return {f"{plural}_per_second": len(seconds) / sum(seconds), **tails}


def hide_password(url: str) -> str:
    """An address that may be shown; a password may have any character but for the last '@'.

    >>> hide_password("redis://desk:secret@host:6379/0"), hide_password("unix:///redis.sock?password=secret&db=1")
    ('redis://desk@host:6379/0', 'unix:///redis.sock?password=…&db=1')
    """
    without_userinfo = re.sub(
        r"://([^:@/]*):.*@", lambda found: f"://{found[1]}@" if found[1] else "://", url
    )
    return re.sub(r"([?&]password=)[^&]*", r"\1…", without_userinfo)


@contextmanager
def _explain_redis_errors(url: str) -> Iterator[None]:
    """What the client raises, in a line that says what to do; the address without a password."""
    from redis import exceptions

    try:
        yield
    except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
        raise RedisUnavailable(
            f"No Redis server responds at '{hide_password(url)}' ({error}). Start one: {_GET_ONE}. Another address: "
            "--set redis_memory.url=redis://HOST:PORT/0"
        ) from error
    except (exceptions.RedisError, ValueError) as error:
        raise RedisUnavailable(f"Redis at '{hide_password(url)}' reports an error: {error}") from error
