"""Benchmarks of agent components find what was planted: a latency, a leak, a weak parser, a slow search, faults of agents."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.command import AssayInline
from tests.wording import Wording

from assay.builtin.agents.fixed import Stub
from assay.builtin.assistant.agent import Assistant
from assay.builtin.experiments.components.answers import AgentLatency, AgentStreaming, ResponseGeneration
from assay.builtin.experiments.components.conversations import MultiTurn, SystemLevel
from assay.builtin.experiments.components.subject import AgentBenchmark, run_concurrently
from assay.model import AgentUse, Answer, ToolCall
from assay.plugin import lookup
from assay.plugin.agent_pool import AgentPool
from assay.plugin.experiment import ExperimentContext, find_trait
from assay.simulator import SimOptions, SimServer
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

asked = 0

def moody(question):
    global asked
    asked += 1
    return "fine" if asked % 2 else ""

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

class UnsteadyParser:
    """Loses the order number of four in ten truncated texts."""
    count = 0
    def parse(self, text, schema):
        from assay.builtin.assistant.parsing import JsonParser
        value = JsonParser().parse(text, schema)
        if "note" not in value:
            self.count += 1
            value["order"] = value["order"] if self.count % 5 > 1 else 0
        return value

class Forgetful(LinearMemory):
    """Keeps the last fifty messages."""
    def append(self, role, content):
        super().append(role, content)
        del self.messages[:-50]

class Summarised(LinearMemory):
    """Says that much was said, and gives the first messages as the latest ones."""
    def window(self, count):
        return self.messages[:count]
    def summarise(self, sentences):
        return "" if len(self.messages) < 100 else "Much was said."

class Lengthy(LinearMemory):
    """Its summary is all that was said."""
    def summarise(self, sentences):
        return " ".join(message["content"] for message in self.messages)

def make_tools():
    from assay.builtin.assistant.tools import ToolRegistry
    return ToolRegistry()

class LastToolsFirst:
    """Gives the results of parallel calls in another order, and describes one tool of two."""
    def __init__(self):
        self.tools = make_tools()
    def schemas(self):
        return [each for each in self.tools.schemas() if each["name"] != "check_receipt"]
    def function_of(self, name):
        return self.tools.function_of(name)
    def call(self, calls):
        return list(self.tools.call(calls))[::-1]

class IdleTools(LastToolsFirst):
    """Checks the arguments and does nothing."""
    def call(self, calls):
        for call in calls:
            if call.name not in ("find_order", "check_receipt") or not all(
                isinstance(value, str) for value in call.arguments.values()
            ) or not call.arguments:
                raise ValueError(call.name)
        return [None] * len(calls)

class LossyTools(LastToolsFirst):
    """Gives no result where there are several calls."""
    def call(self, calls):
        return self.tools.call(calls) if len(calls) == 1 else None

class Credulous:
    def validate(self, text):
        return text

class Blanking:
    """Refuses what it must, and empties the rest."""
    def validate(self, text):
        from assay.builtin.assistant.validation import MessageValidator
        MessageValidator().validate(text)
        return ""

class Nothing(Blanking):
    def validate(self, text):
        super().validate(text)

class Talkative(LinearMemory):
    """Finds everything, and says so."""
    def search(self, query, count):
        return self.messages

class Texts(LinearMemory):
    def search(self, query, count):
        return [message["content"] for message in super().search(query, count)]

class Silent(LinearMemory):
    def window(self, count):
        return None
    def summarise(self, sentences):
        return None
    def search(self, query, count):
        return None

class Counting:
    """Each mark is lower than the one before."""
    count = 0
    def evaluate(self, question, answer):
        self.count += 1
        return dict.fromkeys(("relevance", "coherence", "helpfulness"), 1 / self.count)

class Boundless:
    def evaluate(self, question, answer):
        from assay.builtin.assistant.evaluation import WordEvaluator
        return {**WordEvaluator().evaluate(question, answer), "coherence": 5}

class Speechless:
    def evaluate(self, question, answer):
        return {"relevance": "high", "coherence": 1, "helpfulness": 1}

class OneNumber:
    def evaluate(self, question, answer):
        return 0.5

class ItemsInt:
    def parse(self, text, schema):
        from assay.builtin.assistant.parsing import JsonParser
        return {**JsonParser().parse(text, schema), "items": 5}

class TextParser:
    def parse(self, text, schema):
        return text

class NoSchemas(LastToolsFirst):
    def schemas(self):
        return 5
    def call(self, calls):
        return self.tools.call(calls)

class NoFunctions(LastToolsFirst):
    def function_of(self, name):
        return 5

class Alternating:
    """Rewards every second conversation."""
    count = 0
    def reward(self, turns):
        self.count += 1
        return float(self.count % 2)

class Praise:
    def reward(self, turns):
        return "high"

class Unsettled:
    def check(self, config):
        return None

def wordy_usage(request):
    from assay.model import Answer, Usage
    return Answer("hello", usage=Usage(input_tokens="a", output_tokens="b"))

def negative_usage(request):
    from assay.model import Answer, Usage
    return Answer("hello", usage=Usage(output_tokens=-3))

def no_usage(request):
    from assay.model import Answer
    return Answer("hello", usage="five")
'''


class OneAtATime(Assistant):
    """Says nothing of threads, nor that it works in this process, as agents of other programs and machines do."""

    is_local: ClassVar[bool] = False
    is_thread_safe: ClassVar[bool] = False


ELSEWHERE = f"{{type: '{__name__}:OneAtATime'}}"


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
    several = ("--group", "memory", "--group", "system", "--dry-run", "--json")
    both = assay_inline("run", "agent_components", *several).json
    assert [trial["name"] for trial in both["trials"]] == [
        "conversation_memory",
        "memory_growth",
        "system_level",
    ]
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
    sizes = ("--set", "sizes=[100, 1000, 10000, 30000]", "--set", "repeats=25")
    words = ("conversation_memory", *sizes, "--repetitions", "3")
    linear = measure(project, *words, "--set", "target=agents.py:LinearMemory")
    indexed = measure(project, *words)
    assert 0.6 < linear["search_growth"]["median"] < 1.6
    assert indexed["search_growth"]["median"] + 0.2 < linear["search_growth"]["median"]
    assert (linear["found_share"]["mean"], indexed["found_share"]["mean"]) == (1.0, 1.0)


def test_a_validator_that_accepts_everything_catches_nothing(project: AssayInline) -> None:
    weak = measure(project, "input_validation", "--set", "target=agents.py:Credulous", "--repetitions", "2")
    good = measure(project, "input_validation", "--repetitions", "2")
    assert (weak["caught_share"]["mean"], weak["false_alarm_share"]["mean"]) == (0.0, 0.0)
    assert (good["caught_share"]["mean"], good["false_alarm_share"]["mean"]) == (1.0, 0.0)


WRONG = {
    "structured_output": ("StrictParser", "truncated_right", 0.0),
    "input_validation": ("Credulous", "caught_share", 0.0),
    "conversation_memory": ("Forgetful", "found_share", 1 / 3),
}


@pytest.mark.parametrize("experiment", WRONG)
def test_a_part_that_is_wrong_is_warned_about_beside_its_figures(
    project: AssayInline, experiment: str, wording: Wording
) -> None:
    target, metric, planted = WRONG[experiment]
    sizes = ("--set", "sizes=[10, 100, 1000]") if experiment == "conversation_memory" else ()
    words = ("run", experiment, *sizes, "--repetitions", "6", *QUICK)
    wrong = project(*words, "--set", f"target=agents.py:{target}", "--report", "html", "--out", ".").json
    right = project(*words).json
    (trial,) = wrong["trials"]
    assert trial["metrics"][metric]["mean"] == pytest.approx(planted)
    (warning,) = [each for each in wrong["warnings"] if each["code"] == "wrong-results"]
    assert (warning["trial"], f"'{metric}'" in warning["message"]) == (trial["name"], True)
    assert "wrong-results" not in {each["code"] for each in right["warnings"]}
    assert f"{metric}' is" in (project.folder / "report.html").read_text("utf-8").replace("&#39;", "'")
    wording(warning["message"])


WRONG_USES = {
    "LastToolsFirst": (
        "function_calling",
        {"results_right": 6 / 10, "schemas_right": 0.5, "refused_share": 1.0},
    ),
    "IdleTools": ("function_calling", {"results_right": 0.0, "schemas_right": 0.5, "refused_share": 1.0}),
    "LossyTools": ("function_calling", {"results_right": 6 / 10, "schemas_right": 0.5, "refused_share": 1.0}),
    "Summarised": (
        "conversation_memory",
        {"window_right": 1 / 3, "summary_right": 0.0, "found_share": 1.0},
    ),
    "Lengthy": ("conversation_memory", {"window_right": 1.0, "summary_right": 0.0, "found_share": 1.0}),
    "LinearMemory": (
        "conversation_memory",
        {"window_right": 1.0, "summary_right": 1.0, "found_share": 1.0},
    ),
}


@pytest.mark.parametrize("target", WRONG_USES)
def test_each_use_of_a_part_has_its_share_of_right_results(project: AssayInline, target: str) -> None:
    experiment, planted = WRONG_USES[target]
    sizes = {
        "function_calling": ("repeats=2", "calls=4", "kilobytes=1"),
        "conversation_memory": ("sizes=[10, 100, 200]", "repeats=2"),
    }[experiment]
    words = [word for size in (*sizes, f"target=agents.py:{target}") for word in ("--set", size)]
    done = project("run", experiment, *words, "--repetitions", "1", *QUICK).json
    (trial,) = done["trials"]
    assert {metric: trial["metrics"][metric]["mean"] for metric in planted} == pytest.approx(planted)
    warned = [each["message"] for each in done["warnings"] if each["code"] == "wrong-results"]
    wrong = [metric for metric, share in planted.items() if share < 1]
    assert (len(warned), all(f"'{metric}'" in str(warned) for metric in wrong)) == (len(wrong), True)


NOT_RIGHT: dict[str, tuple[str, dict[str, float]]] = {
    "Blanking": ("input_validation", {"caught_share": 1, "false_alarm_share": 1}),
    "Nothing": ("input_validation", {"caught_share": 1, "false_alarm_share": 1}),
    "Unsettled": ("config_validation", {"caught_share": 0, "false_alarm_share": 1}),
    "Talkative": ("conversation_memory", {"window_right": 1, "found_share": 0}),
    "Texts": ("conversation_memory", {"window_right": 1, "found_share": 0}),
    "Silent": ("conversation_memory", {"window_right": 0, "summary_right": 0, "found_share": 0}),
    "Boundless": ("evaluation_metrics", {"relevance_right": 0, "helpfulness_right": 0}),
    "Speechless": ("evaluation_metrics", {"relevance_right": 0, "helpfulness_right": 0}),
    "OneNumber": ("evaluation_metrics", {"relevance_right": 0, "helpfulness_right": 0}),
    "ItemsInt": ("structured_output", {"plain_right": 0, "fenced_right": 0, "truncated_right": 0}),
    "TextParser": ("structured_output", {"plain_right": 0, "fenced_right": 0, "truncated_right": 0}),
    "NoSchemas": ("function_calling", {"results_right": 1, "schemas_right": 0}),
    "Praise": ("reward_computation", {"ranked_right": 0}),
}


@pytest.mark.parametrize("target", NOT_RIGHT)
def test_a_part_that_gives_what_nobody_could_use_is_wrong_and_has_not_failed(
    project: AssayInline, target: str, wording: Wording
) -> None:
    experiment, planted = NOT_RIGHT[target]
    sizes = {"function_calling": "repeats=2", "conversation_memory": "sizes=[10, 20, 40]"}
    own = ("--set", sizes[experiment]) if experiment in sizes else ()
    words = ("run", experiment, *own, "--set", f"target=agents.py:{target}", "--repetitions", "4")
    done = project(*words, *QUICK)
    (trial,) = done.json["trials"]
    assert (done.code, trial["counts"]) == (0, {"ok": 4})
    assert {metric: trial["metrics"][metric]["mean"] for metric in planted} == planted
    warnings = done.json["warnings"]
    assert "wrong-results" in {each["code"] for each in warnings}
    wording("\n".join(sorted(each["message"] for each in warnings if each["code"] == "remark")))


def test_tools_without_functions_cannot_be_measured(project: AssayInline, wording: Wording) -> None:
    done = project("run", "function_calling", "--set", "target=agents.py:NoFunctions", *QUICK)
    (warning,) = [each for each in json.loads(done.out)["warnings"] if each["code"] == "failures"]
    wording(warning["message"])


@pytest.mark.parametrize(
    ("experiment", "target", "metric"),
    [
        ("evaluation_metrics", "Counting", "relevance_right"),
        ("reward_computation", "Alternating", "ranked_right"),
    ],
)
def test_a_part_that_only_counts_its_calls_ranks_half_of_them_right(
    project: AssayInline, experiment: str, target: str, metric: str
) -> None:
    found = measure(project, experiment, "--set", f"target=agents.py:{target}", "--repetitions", "60")
    assert 0.3 < found[metric]["mean"] < 0.7


@pytest.mark.parametrize("agent", ["wordy_usage", "negative_usage", "no_usage"])
def test_usage_that_cannot_be_is_an_invalid_output(
    project: AssayInline, agent: str, wording: Wording
) -> None:
    words = ("agent_latency", "--load", "agents.py", "--agent", agent, "--repetitions", "2")
    done = project("run", *words, *QUICK)
    document = json.loads(done.out)
    assert (done.code, document["trials"][0]["counts"]) == (1, {"invalid_output": 2})
    (warning,) = [each for each in document["warnings"] if each["code"] == "failures"]
    wording(warning["message"])


@pytest.mark.parametrize(
    "experiment",
    [
        "function_calling",
        "conversation_memory",
        "evaluation_metrics",
        "reward_computation",
        "input_validation",
        "config_validation",
        "structured_output",
    ],
)
def test_the_parts_of_the_reference_raise_no_warning_of_wrong_results(
    project: AssayInline, experiment: str
) -> None:
    size = ("--set", "sizes=[4, 30, 300]") if experiment == "conversation_memory" else ()
    done = project("run", experiment, *size, "--repetitions", "3", *QUICK).json
    assert {"wrong-results", "remark"}.isdisjoint({each["code"] for each in done["warnings"]})


@pytest.mark.parametrize("experiment", ["function_calling", "conversation_memory"])
def test_the_parts_of_the_reference_are_right(project: AssayInline, experiment: str) -> None:
    size = "calls=20" if experiment == "function_calling" else "sizes=[4, 30, 300]"
    done = project("run", experiment, "--set", size, "--set", "repeats=2", "--repetitions", "1", *QUICK).json
    figures = done["trials"][0]["metrics"]
    shares = {name: figures[name]["mean"] for name in figures if name.endswith(("_right", "_share"))}
    assert (len(shares), set(shares.values())) == (3, {1.0})


def test_the_share_of_right_results_is_no_matter_of_all_or_nothing(project: AssayInline) -> None:
    found = measure(
        project, "structured_output", "--set", "target=agents.py:UnsteadyParser", "--repetitions", "20"
    )["truncated_right"]
    low, high = found["interval"]
    assert low <= 0.6 <= high
    assert high - low <= 0.11


def test_an_agent_of_a_loaded_file_is_a_point_of_a_sweep(project: AssayInline) -> None:
    words = ("--load", "agents.py", "--sweep", "agent=clean,stub", "--repetitions", "2", "--json", "-q")
    done = project("run", "agent_latency", *words).json
    found = [(trial["name"], trial["agent"]["name"], trial["counts"]) for trial in done["trials"]]
    assert found == [
        ("agent_latency[agent=clean]", "clean", {"ok": 2}),
        ("agent_latency[agent=stub]", "stub", {"ok": 2}),
    ]


@pytest.mark.parametrize(
    "agent", ["desk", "http", "5", "[clean]", "{name: desk}", "{type: stub, colour: red}"]
)
def test_an_agent_that_cannot_be_made_is_refused_before_the_run(
    project: AssayInline, agent: str, wording: Wording
) -> None:
    wording(project("run", "agent_latency", "--set", f"agent={agent}").refusal)


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


def test_a_width_that_the_agent_cannot_have_is_reported(project: AssayInline) -> None:
    done = project(
        "run",
        "batch_processing",
        "--set",
        f"agent={ELSEWHERE}",
        "--set",
        "width=4",
        "--repetitions",
        "2",
        *QUICK,
    )
    assert [warning["code"] for warning in done.json["warnings"]].count("setting-not-taken") == 1


@pytest.mark.parametrize("experiment", ["agent_streaming", "multi_turn", "batch_processing"])
def test_answers_of_a_simulated_server_are_marked(assay_inline: AssayInline, experiment: str) -> None:
    with SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=2), in_thread=True) as server:
        agent = {"name": "web", "type": "openai", "model": "sim", "base_url": f"{server.url}/v1"}
        done = assay_inline("run", experiment, "--set", f"agent={json.dumps(agent)}", *QUICK).json
    (trial,) = done["trials"]
    assert (trial["counts"], trial["metrics"]["seconds"]["kind"]) == ({"ok": 1}, "simulated")
    assert {grade["simulated"] for grade in done["grades"]} == {True}


def test_the_stub_agent_takes_every_width_of_the_pack(assay_inline: AssayInline) -> None:
    words = ("--agent", "stub", "--repetitions", "2", "--warmup", "0", *QUICK)
    batches = assay_inline("run", "batch_processing", "--sweep", "width=1,2,4", *words).json
    talks = assay_inline("run", "concurrent_conversations", *words).json
    trials = [*batches["trials"], *talks["trials"]]
    assert [set(trial["counts"]) for trial in trials] == [{"ok"}] * 4
    assert {trial["metrics"]["seconds"]["kind"] for trial in trials} == {"simulated"}
    assert "setting-not-taken" not in {each["code"] for each in (*batches["warnings"], *talks["warnings"])}
    assert talks["trials"][0]["metrics"]["turn_p99_seconds"]["median"] > 0


@pytest.mark.parametrize("experiment", ["system_level", "memory_growth"])
def test_memory_is_graded_where_the_agent_works_in_this_process_only(
    project: AssayInline, experiment: str, wording: Wording
) -> None:
    sizes = ("turns=1", *(("conversations=40", "blocks=10") if experiment == "memory_growth" else ()))
    words = ["run", experiment, *(word for size in sizes for word in ("--set", size))]
    away = project(*words, "--set", f"agent={ELSEWHERE}", "--repetitions", "1", *QUICK).json
    here = project(*words, "--repetitions", "1", *QUICK).json
    assert "memory" in grades(here)
    assert not {"memory", "memory growth"} & set(grades(away))
    assert away["trials"][0]["counts"] == {"ok": 1}
    assert away["trials"][0]["metrics"]["asking.rss_bytes"]["unit"] == "bytes"
    (remark,) = [each["message"] for each in away["warnings"] if "is_local" in each["message"]]
    assert "is_local" not in str(here["warnings"])
    wording(remark)


@pytest.mark.parametrize(
    "experiment", [AgentLatency, AgentStreaming, ResponseGeneration, MultiTurn, SystemLevel]
)
def test_executions_as_far_apart_as_there_are_inputs_ask_the_same(
    experiment: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(_: object, text: str, *rest: object) -> Answer:
        asked.append(text)
        return Answer("fine", content_seconds=(0.001,))

    monkeypatch.setattr(AgentBenchmark, "ask", ask)
    made = experiment()
    made.params, made.use, made.agent = experiment.Params(), AgentUse("stub", "stub"), Stub()
    made.pool = AgentPool()
    count = made.inputs_in_turn
    said = []
    for number in range(2 * count):
        asked.clear()
        made.measure(ExperimentContext("run", tmp_path, 1, execution=number))
        said.append(tuple(asked))
    assert said[:count] == said[count:]
    assert len(set(said)) == count > 1


def test_the_graded_turn_of_a_conversation_is_another_one_in_turn() -> None:
    found = [MultiTurn().read_figures((number, [1.0, 2.0, 4.0]))["turn_seconds"] for number in range(6)]
    assert found == [1.0, 2.0, 4.0, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("count", [3, 50])
def test_jobs_in_threads_are_counted_while_they_run(count: int) -> None:
    experiment = AgentBenchmark()
    experiment.agent = Assistant()
    done = run_concurrently(experiment, lambda number: number, count, 8)
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


CHOICES = {"agent", "target", "width", "concurrency", "workers"}
"""Params that are settings of the subject; every other one says how much work a benchmark is."""


@pytest.mark.parametrize("slug", dict.fromkeys(each.entry.experiment for each in load_spec(SPEC).entries))
def test_every_param_that_is_no_choice_says_how_much_work_there_is(slug: str) -> None:
    experiment = lookup.find("experiments", slug)
    own = set(experiment.Params.model_fields)
    assert own & set(find_trait(slug, "workload_params", ())) == own - CHOICES


def test_shorter_conversations_are_no_better_point_of_a_sweep(project: AssayInline) -> None:
    words = ("--sweep", "turns=1,2", "--repetitions", "2", "--warmup", "0")
    done = project("run", "multi_turn", *words, *QUICK).json
    assert [len(done[key]) > 0 for key in ("axes", "best")] == [True, False]


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


def test_a_grade_tells_of_the_failures_that_its_figure_leaves_out(project: AssayInline) -> None:
    words = (
        "--load",
        "agents.py",
        "--agent",
        "moody",
        "--repetitions",
        "8",
        "--warmup",
        "0",
        "--isolation",
        "inline",
    )
    project("run", "multi_turn", *words, "--set", "turns=1")
    (conversations,) = [
        graded
        for graded in project("show", "last", "--json").json["grades"]
        if graded["label"] == "conversations"
    ]
    assert (conversations["grade"], conversations["failed"]) == ("not enough data", 4)
    assert "failed: 4" in project("show", "last").out


def test_the_head_of_a_report_does_not_rank_benchmarks_that_do_different_work(
    assay_inline: AssayInline,
) -> None:
    def read_tiles(*words: str) -> str:
        assay_inline("run", *words, "--isolation", "inline", "--report", "html", "--out", ".")
        return (assay_inline.folder / "report.html").read_text("utf-8")

    several = read_tiles("agent_components", "--group", "cpu", "--repetitions", "2")
    one = read_tiles("batch_processing", "--sweep", "width=1,2", "--repetitions", "2")
    assert ("spread of the trials" in several, "spread of the trials" in one) == (False, True)


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


def test_a_target_that_is_no_part_fails_with_its_reason(project: AssayInline) -> None:
    done = project("run", "structured_output", "--set", "target=agents.py:slow", *QUICK)
    document = json.loads(done.out)
    assert (done.code, document["trials"][0]["counts"]) == (1, {"failed": 1})
    assert "StructuredParser" in str(document["warnings"])


@pytest.mark.parametrize(
    "target", ["missing.py:Parser", "Parser", "agents.py:nothing", "broken.py:Parser", "nowhere:Parser"]
)
def test_a_target_that_is_not_there_is_refused_before_the_run(project: AssayInline, target: str) -> None:
    (project.folder / "broken.py").write_text("raise KeyError('no parser here')\n")
    refused = project("run", "structured_output", "--set", f"target={target}")
    assert refused.code == 2
    assert "--set: target: " in refused.err


@pytest.mark.parametrize("setting", ["items=0", "sise=3"])
def test_sizes_that_make_no_sense_are_refused_before_the_run(project: AssayInline, setting: str) -> None:
    assert project("run", "structured_output", "--set", setting).code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("agent_latency",),
        ("workflow",),
        ("load", "--set", "rate=5", "--set", "duration=1s"),
    ],
)
def test_a_python_agent_without_its_function_is_refused_before_the_run(
    project: AssayInline, words: tuple[str, ...]
) -> None:
    (project.folder / "ghosts.yaml").write_text(
        "agents:\n  - {name: ghost, type: python, target: 'ghosts.py:answer'}\n"
    )
    (project.folder / "assay.toml").write_text("[assay]\nagents = ['ghosts.yaml']\n")
    refused = project("run", *words, "--agent", "ghost")
    assert refused.code == 2
    assert "ghosts.py" in refused.err


def test_an_agent_that_a_load_names_in_a_spec_is_made_before_the_run(project: AssayInline) -> None:
    project.write("ghosts.yaml", "agents:\n  - {name: ghost, type: python, target: 'ghosts.py:answer'}\n")
    project.write("assay.toml", "[assay]\nagents = ['ghosts.yaml']\n")
    spec = "name: loads\nexperiments:\n  - {experiment: load, params: {target: ghost, rate: '5', duration: 1s}}\n"
    project.write("loads.yaml", spec)
    refused = project("run", "loads.yaml")
    assert refused.code == 2
    assert "ghosts.py" in refused.err


@pytest.mark.parametrize(
    "words",
    [
        ("agent_latency",),
        ("workflow",),
        ("load", "--set", "target=x", "--set", "rate=5", "--set", "duration=1s"),
    ],
)
@pytest.mark.parametrize(
    "definition", ["{name: desk}", "{options: {}}", "{type: stub, colour: red}", "{type: nosuch}"]
)
def test_what_defines_no_agent_is_refused_before_the_run(
    project: AssayInline, words: tuple[str, ...], definition: str
) -> None:
    refused = project("run", *words, "--set", f"agent={definition}")
    assert refused.code == 2
    assert "--set: agent: " in refused.err
    assert "Traceback" not in refused.err


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


@pytest.mark.parametrize("axis", ["agent=stub,assistant", "turns=1,2"])
def test_agents_and_lengths_of_conversations_are_no_identical_arms(project: AssayInline, axis: str) -> None:
    few = ("--set", "conversations=2", "--set", "concurrency=1", "--repetitions", "1", "--warmup", "0")
    done = project("run", "concurrent_conversations", *few, "--sweep", axis, *QUICK).json
    assert "identical-arms" not in {warning["code"] for warning in done["warnings"]}
