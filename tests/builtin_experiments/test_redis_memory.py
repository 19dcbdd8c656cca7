from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.builtin_experiments.redis_server import redis_server
from tests.command import AssayInline

from assay.builtin.experiments import redis_memory

SMALL = ["--set", "num_agents=2", "--set", "memory_entries=40", "--set", "batch_size=7"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with redis_server() as url:
        yield url


@pytest.fixture
def client(server: str) -> Iterator[Any]:
    with redis_memory.connect(server) as client:
        client.flushall()
        yield client


def run(assay: AssayInline, url: str, *words: str) -> Any:
    return assay.run_inline("redis_memory", "--set", f"url={url}", *SMALL, *words, "--json").json


def test_every_agent_writes_reads_searches_and_forgets(
    assay_inline: AssayInline, server: str, client: Any
) -> None:
    [trial] = run(assay_inline, server, "--repetitions", "2")["trials"]

    metrics = {name: figure["median"] for name, figure in trial["metrics"].items()}
    assert trial["counts"] == {"ok": 2}
    assert (metrics["entries_removed"], metrics["entries_remaining"]) == (40, 40)
    assert metrics["bytes_per_entry"] > 300
    assert all(metrics[f"{what}_per_second"] > 0 for what in ("writes", "reads", "searches", "batch_writes"))
    assert "write_p50_seconds" in metrics
    assert "write_p95_seconds" not in metrics  # of 80 writes, four are beyond it


def test_the_server_is_read_back_and_left_as_it_was(
    assay_inline: AssayInline, server: str, client: Any
) -> None:
    client.set("somebody else's", "value")

    [trial] = run(assay_inline, server)["trials"]

    applied = trial["applied"]
    assert applied["redis_version"] == client.info("server")["redis_version"]
    assert (applied["ttl"], applied["memory_entries"]) == (3600, 40)
    assert client.keys("*") == ["somebody else's"]


def test_an_agent_keeps_no_more_than_its_limit(assay_inline: AssayInline, server: str, client: Any) -> None:
    words = ("--set", "memory_limit=10", "--set", "cleanup_interval=20")

    [trial] = run(assay_inline, server, *words)["trials"]

    assert trial["counts"] == {"ok": 1}
    assert trial["metrics"]["entries_remaining"]["median"] == 10


def test_the_bytes_of_an_entry_are_divided_by_the_entries_that_are_there(
    assay_inline: AssayInline, server: str, client: Any
) -> None:
    """With a limit that is never looked at, all are kept."""
    words = ("--set", "cleanup_interval=1000", "--set")
    limited, free = (
        run(assay_inline, server, *words, f"memory_limit={limit}")["trials"][0]["metrics"]["bytes_per_entry"]
        for limit in (10, 5000)
    )
    assert limited["median"] == pytest.approx(free["median"], rel=0.1)


def test_an_entry_that_has_expired_is_forgotten_without_it(client: Any) -> None:
    agent = redis_memory.AgentMemory(client, "test:", 10, 100)
    agent.remember([redis_memory.draw_entry(number, random.Random(1)) for number in range(3)])
    client.delete("test:entry:0")
    assert agent.forget(1) == 2
    assert client.zcard(agent.timeline) == 1


def test_the_largest_batch_is_read_back_and_makes_arms_that_differ(
    assay_inline: AssayInline, server: str, client: Any
) -> None:
    done = run(assay_inline, server, "--sweep", "batch_size=5,10,100")

    assert [trial["applied"]["batch_size"] for trial in done["trials"]] == [5, 10, 40]
    told = [warning["code"] for warning in done["warnings"]]
    assert (told.count("setting-not-taken"), told.count("identical-arms")) == (1, 0)


def test_an_axis_that_redis_does_not_tell_of_makes_no_arms_identical(
    assay_inline: AssayInline, server: str, client: Any
) -> None:
    done = run(assay_inline, server, "--sweep", "cleanup_interval=10,20")
    assert "identical-arms" not in {warning["code"] for warning in done["warnings"]}


def test_entries_that_expire_are_counted_and_are_no_failure(
    assay_inline: AssayInline, server: str, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every entry of the first agent is gone when it is read, as if the others had taken long to write."""
    write = redis_memory.RedisMemory._write

    def expire_before_the_second(self: Any, agent: Any) -> Iterator[float]:
        if ":1:" in agent.timeline:
            client.delete(*client.keys("*one:0:*"))
            agents[0]._began -= 60
        agents.append(agent)
        yield from write(self, agent)

    agents: list[Any] = []
    monkeypatch.setattr(redis_memory.RedisMemory, "_write", expire_before_the_second)
    done = run(assay_inline, server, "--set", "ttl=60")

    [trial] = done["trials"]
    assert trial["counts"] == {"ok": 1}
    assert trial["metrics"]["entries_expired"]["median"] == 40
    assert trial["applied"]["ttl"] == 60
    assert [warning["code"] for warning in done["warnings"]].count("remark") == 1


def test_an_entry_that_is_gone_before_its_time_fails_the_execution(
    assay_inline: AssayInline, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_memory.AgentMemory, "recall", lambda *_: None)

    done = assay_inline.run_inline("redis_memory", "--set", f"url={server}", *SMALL, "--json")

    assert done.code == 1
    assert "WrongMemory" in done.out


@pytest.mark.parametrize("address", ["desk:h/u@sh@127.0.0.1:1/0", "127.0.0.1:1/0?password=h/u@sh"])
def test_no_message_has_a_password(address: str) -> None:
    with pytest.raises(redis_memory.RedisUnavailable) as away:
        redis_memory.connect(f"redis://{address}")
    assert "127.0.0.1:1" in str(away.value)
    assert "u@sh" not in str(away.value)


def test_a_server_that_answers_something_else_fails_the_execution(
    server: str, client: Any, monkeypatch: pytest.MonkeyPatch, assay_inline: AssayInline
) -> None:
    monkeypatch.setattr(redis_memory.AgentMemory, "search", lambda *_: [])

    done = assay_inline.run_inline("redis_memory", "--set", f"url={server}", *SMALL, "--json")

    assert done.code == 1
    assert '"failed": 1' in done.out
    assert "WrongMemory" in done.out


def test_without_a_server_the_other_experiments_go_on(assay_inline: AssayInline) -> None:
    assay_inline.write(
        "both.yaml",
        "experiments: [{experiment: redis_memory, params: {url: 'redis://127.0.0.1:1/0'}}, {experiment: noop}]\n",
    )

    done = assay_inline.run_inline("both.yaml")

    assert done.code == 1
    assert "apt-get install redis-server" in " ".join((done.out + done.err).split())
    trials = assay_inline("show", "last", "--json").json["trials"]
    assert [trial["counts"] for trial in trials] == [{"failed": 1}, {"ok": 1}]


def test_without_the_package_the_extra_is_named(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "redis", None)

    done = assay_inline.run_inline("redis_memory")

    assert done.code == 1
    assert "pip install 'assay-bench[redis]'" in " ".join((done.out + done.err).split())


def test_an_address_of_something_else_is_refused(assay_inline: AssayInline) -> None:
    refusal = assay_inline("run", "redis_memory", "--set", "url=http://127.0.0.1").refusal
    assert "--set: url:" in refusal


def test_a_radius_without_end_is_refused(assay_inline: AssayInline) -> None:
    refusal = assay_inline("run", "redis_memory", "--set", "search_radius=.inf").refusal
    assert "search_radius" in refusal
