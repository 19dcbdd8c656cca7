"""Benchmarks of agent components find what was planted: a latency, a leak, a weak parser, a slow search, faults of agents."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline

from assay.builtin.assistant.agent import Assistant
from assay.builtin.experiments.components.subject import AgentBenchmark, run_concurrently
from assay.model import ToolCall
from assay.spec.files import builtin_specs
from assay.spec.read import load_spec

SPEC = builtin_specs()["agent_components"]
QUICK = ("--isolation", "inline", "--json", "--quiet")

AGENTS = '''
import json
from time import perf_counter, sleep

chain = None

def slow(question):
    end = perf_counter() + 0.02
    while perf_counter() < end:
        pass
    return "here"

def leaky(request):
    global chain
    if not request.history:
        chain = (chain, bytes(4000))
    return "kept"

def clean(request):
    return f"turn {len(request.history)}"

def broken(question):
    raise RuntimeError("out of order")

def stuck(question):
    sleep(60)

def garbage(question):
    return object()

def silent(question):
    yield ""

def boastful(question):
    yield "two "
    yield "words"
    yield {"usage": {"input_tokens": 1, "output_tokens": 5000}}

def streamed(question):
    for word in ("one ", "two ", "three "):
        end = perf_counter() + 0.005
        while perf_counter() < end:
            pass
        yield word

async def waiting(question):
    import asyncio
    await asyncio.sleep(0.01)
    return "done"

class StrictParser:
    """Takes whole JSON only."""
    def parse(self, text, schema):
        return json.loads(text[text.index("{"):text.rindex("}") + 1])

class LinearMemory:
    def __init__(self):
        self.messages = []
    def append(self, role, content):
        self.messages.append({"role": role, "content": content})
    def window(self, count):
        return self.messages[-count:]
    def summarise(self, sentences):
        return self.messages[-1]["content"]
    def search(self, query, count):
        rarest = query.split()[-1]
        return [message for message in self.messages if rarest in message["content"]][:count]

class Credulous:
    def validate(self, text):
        return text
'''


@pytest.fixture
def project(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("agents.py", AGENTS)
    return assay_inline


def measure(project: AssayInline, *words: str) -> dict[str, Any]:
    """Median, low and high of each metric of the only trial."""
    (trial,) = project("run", *words, *QUICK).json["trials"]
    metrics: dict[str, Any] = trial["metrics"]
    return metrics


def grades(document: dict[str, Any]) -> dict[str, str]:
    return {graded["label"]: graded["grade"] for graded in document["grades"]}


def test_every_benchmark_of_the_spec_runs_and_belongs_to_a_group(assay_inline: AssayInline) -> None:
    entries = load_spec(SPEC).entries
    assert len({located.entry.experiment for located in entries}) == 17
    assert {located.entry.group for located in entries} == {
        "latency",
        "throughput",
        "memory",
        "cpu",
        "system",
    }
    sizes = (
        "--set",
        "conversation_memory.sizes=[10, 50, 200]",
        "--set",
        "memory_growth.conversations=40",
        "--set",
        "memory_growth.blocks=10",
        "--set",
        "computational_engine.steps=100",
        "--warmup",
        "0",
    )
    done = assay_inline("run", "agent_components", "--repetitions", "2", *sizes, *QUICK)
    assert done.code == 0, done.err
    assert {tuple(trial["counts"].items()) for trial in done.json["trials"]} == {(("ok", 2),)}
    assert {trial["agent"]["name"] for trial in done.json["trials"]} >= {"assistant"}


def test_a_group_selects_its_experiments_and_an_unknown_one_names_those_there_are(
    assay_inline: AssayInline,
) -> None:
    chosen = assay_inline("run", "agent_components", "--group", "memory", "--dry-run", "--json").json
    assert [trial["name"] for trial in chosen["trials"]] == ["conversation_memory", "memory_growth"]
    every = assay_inline("run", "agent_components", "--group", "all", "--dry-run", "--json").json
    assert len(every["trials"]) == 19
    unknown = assay_inline("run", "agent_components", "--group", "latencies")
    assert (unknown.code, "latency" in unknown.err, "throughput" in unknown.err) == (2, True, True)
    old = assay_inline("run", "noop", "--group", "nightly")
    assert (old.code, "--label nightly" in old.err) == (2, True)


def test_an_agent_of_known_latency_is_found_and_graded(project: AssayInline) -> None:
    done = project(
        "run", "agent_latency", "--load", "agents.py", "--agent", "slow", "--repetitions", "30", *QUICK
    )
    (trial,) = done.json["trials"]
    assert 0.02 <= trial["metrics"]["seconds"]["median"] < 0.06
    assert grades(done.json)["P95 latency"] == "not enough data"
    assert grades(done.json)["P99 latency"] == "not enough data"


def test_a_stream_of_known_gaps_is_found(project: AssayInline) -> None:
    found = measure(
        project, "agent_streaming", "--load", "agents.py", "--agent", "streamed", "--repetitions", "8"
    )
    # Sleeps never end early; on a busy machine they end late.
    assert 0.005 <= found["ttft"]["median"] < 0.03
    assert 0.005 <= found["itl"]["median"] < 0.03
    assert 20 < found["tokens_per_second"]["median"] <= 200


@pytest.mark.parametrize("agent", ["leaky", "clean"])
def test_the_interval_of_a_leak_holds_what_each_conversation_leaves_behind(
    project: AssayInline, agent: str
) -> None:
    words = ("memory_growth", "--load", "agents.py", "--agent", agent, "--repetitions", "6", "--warmup", "1")
    done = project("run", *words, "--set", "conversations=100", "--set", "blocks=10", *QUICK)
    # A tuple that the garbage collector tracks has a header of 16 bytes more than it says.
    planted = sys.getsizeof(bytes(4000)) + sys.getsizeof((1, 2)) if agent == "leaky" else 0
    (leak,) = [graded for graded in done.json["grades"] if graded["metric"] == "leak_bytes"]
    assert leak["low"] <= planted <= leak["high"]
    assert leak["high"] - leak["low"] < 50
    assert leak["grade"] == ("leak" if agent == "leaky" else "no leak")


def test_a_parser_that_cannot_complete_json_fails_on_truncated_texts_only(project: AssayInline) -> None:
    weak = measure(
        project, "structured_output", "--set", "target=agents.py:StrictParser", "--repetitions", "20"
    )
    good = measure(project, "structured_output", "--repetitions", "20")
    kinds = ("plain_right", "fenced_right", "truncated_right")
    assert [weak[kind]["mean"] for kind in kinds[:2]] == [1.0, 1.0]
    assert weak["truncated_right"]["mean"] < 0.2
    assert [good[kind]["mean"] for kind in kinds] == [1.0, 1.0, 1.0]


def test_a_memory_whose_search_is_linear_shows_its_growth(project: AssayInline) -> None:
    words = ("conversation_memory", "--set", "sizes=[100, 1000, 10000, 30000]", "--repetitions", "3")
    linear = measure(project, *words, "--set", "target=agents.py:LinearMemory")
    indexed = measure(project, *words)
    assert 0.6 < linear["search_growth"]["median"] < 1.6
    assert indexed["search_growth"]["median"] < 0.5
    assert (linear["found_share"]["mean"], indexed["found_share"]["mean"]) == (1.0, 1.0)


def test_a_validator_that_accepts_everything_catches_nothing(project: AssayInline) -> None:
    weak = measure(project, "input_validation", "--set", "target=agents.py:Credulous", "--repetitions", "2")
    good = measure(project, "input_validation", "--repetitions", "2")
    assert (weak["caught_share"]["mean"], weak["false_alarm_share"]["mean"]) == (0.0, 0.0)
    assert (good["caught_share"]["mean"], good["false_alarm_share"]["mean"]) == (1.0, 0.0)


def test_a_wider_batch_of_an_agent_that_waits_is_faster_in_proportion(project: AssayInline) -> None:
    words = (
        "batch_processing",
        "--load",
        "agents.py",
        "--agent",
        "waiting",
        "--set",
        "items=8",
        "--repetitions",
        "6",
    )
    rates = [
        measure(project, *words, "--set", f"width={width}")["items_per_second"]["median"] for width in (1, 4)
    ]
    assert 1.5 < rates[1] / rates[0] < 6


def test_a_width_that_the_agent_cannot_have_is_told(project: AssayInline) -> None:
    done = project(
        "run", "batch_processing", "--agent", "stub", "--set", "width=4", "--repetitions", "2", *QUICK
    )
    assert [warning["code"] for warning in done.json["warnings"]].count("setting-not-taken") == 1
    assert done.json["trials"][0]["metrics"]["seconds"]["kind"] == "simulated"


@pytest.mark.parametrize("count", [3, 50])
def test_jobs_in_threads_are_counted_while_they_run(count: int) -> None:
    benchmark = AgentBenchmark()
    benchmark.agent = Assistant()
    done = run_concurrently(benchmark, lambda number: number, count, 8)
    assert (done.results, done.width) == (list(range(count)), min(count, 8))


def test_the_threads_of_tools_end_with_their_agent() -> None:
    agent, other = Assistant(), Assistant()
    calls = [ToolCall("find_order", {"order": "12345"})] * 20
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(agent.tools.call, [calls] * 4))
    assert {len(each) for each in found} == {20}
    assert agent.tools is not other.tools
    agent.close()
    assert agent.tools._threads is None


@pytest.mark.parametrize(
    ("experiment", "setting", "named"),
    [
        ("memory_growth", "blocks=300", "200 conversations do not fill 300 blocks"),
        ("conversation_memory", "sizes=[3, 10, 100]", "each must be at least 4, not 3"),
        ("conversation_memory", "sizes=[10, 10, 100]", "once only"),
    ],
)
def test_sizes_that_measure_nothing_are_refused(
    assay_inline: AssayInline, experiment: str, setting: str, named: str
) -> None:
    assert named in assay_inline("run", experiment, "--set", setting).refusal


FAULTS = {
    "broken": "failed",
    "garbage": "invalid_output",
    "silent": "invalid_output",
    "boastful": "invalid_output",
}


@pytest.mark.parametrize("agent", FAULTS)
def test_an_agent_with_a_fault_has_its_status_and_the_other_goes_on(project: AssayInline, agent: str) -> None:
    words = ("--load", "agents.py", "--agent", agent, "--agent", "streamed", "--repetitions", "2")
    done = project("run", "agent_streaming", *words, *QUICK)
    faulty, fine = json.loads(done.out)["trials"]
    assert (done.code, faulty["counts"], fine["counts"]) == (1, {FAULTS[agent]: 2}, {"ok": 2})


def test_an_agent_that_hangs_is_stopped_and_the_next_benchmark_goes_on(project: AssayInline) -> None:
    entry = "{experiment: agent_latency, params: {agent: {type: python, target: 'agents.py:stuck'}}, limits: {seconds: 0.5}}"
    project.write("spec.yaml", f"experiments: [{entry}, {{experiment: config_validation}}]\n")
    trials = json.loads(project("run", "spec.yaml", "--json", "--quiet").out)["trials"]
    assert [trial["counts"] for trial in trials] == [{"timeout": 1}, {"ok": 1}]


def test_an_agent_without_a_part_leaves_that_benchmark_to_the_reference(assay_inline: AssayInline) -> None:
    words = ("run", "agent_components", "--agent", "stub", "--dry-run", "--json")
    names = {trial["name"] for trial in assay_inline(*words).json["trials"]}
    assert {"structured_output", "computational_engine", "multi_turn · stub"} <= names
    assert "structured_output · stub" not in names


@pytest.mark.parametrize(
    ("setting", "told"),
    [("target=agents.py:nothing", "nothing"), ("target=agents.py:slow", "StructuredParser")],
)
def test_a_target_that_is_no_part_fails_with_its_reason(
    project: AssayInline, setting: str, told: str
) -> None:
    done = project("run", "structured_output", "--set", setting, *QUICK)
    document = json.loads(done.out)
    assert (done.code, document["trials"][0]["counts"]) == (1, {"failed": 1})
    assert told in str(document["warnings"])


def test_a_target_that_is_not_there_is_refused_before_the_run(project: AssayInline) -> None:
    for setting in ("target=missing.py:Parser", "target=Parser", "items=0", "sise=3"):
        assert project("run", "structured_output", "--set", setting).code == 2


def test_the_reporter_writes_the_files_of_the_original_with_right_values(assay_inline: AssayInline) -> None:
    words = (
        "--group",
        "throughput",
        "--repetitions",
        "3",
        "--warmup",
        "0",
        "--report",
        "components",
        "--out",
        "out",
    )
    assert assay_inline("run", "agent_components", *words, *QUICK).code == 0
    folder = Path(assay_inline.folder, "out", "benchmark_results")
    (stamped,) = folder.glob("grpo_benchmark_results_*.json")
    document = json.loads((folder / "benchmark_results.json").read_text())
    assert json.loads(stamped.read_text()) == document
    assert "batch_processing" in (folder / "benchmark_results.html").read_text()
    results = {result["name"]: result for result in document["results"]}
    parsing = results["structured_output"]
    assert (parsing["iterations"], parsing["p95_ms"], parsing["metadata"]["group"]) == (3, None, "throughput")
    assert parsing["min_time_ms"] <= parsing["p50_ms"] <= parsing["max_time_ms"]
    assert parsing["avg_time_ms"] * 3 == pytest.approx(parsing["total_time_ms"])
    assert parsing["throughput"] == pytest.approx(3000 / parsing["total_time_ms"])
    assert parsing["memory_mb"] > 0
