"""`assay run serving` against a simulated server, which has known times and may be made to fail."""

from __future__ import annotations

import re
import socket
from typing import Any

import pytest
from tests.agents.scripted import ScriptedServer
from tests.command import AssayInline
from tests.serving.serving import codes, executions, only, run, told
from tests.sim_llm.asking import get, quick
from tests.wording import Wording

from assay.builtin.experiments.serving import compute_answer_metrics
from assay.builtin.experiments.serving_params import PROFILES, ServingParams
from assay.model import Answer, Usage
from assay.simulator import SimOptions, SimServer


def test_the_client_times_the_first_token_the_gaps_and_the_whole(assay_inline: AssayInline) -> None:
    with quick(ttft=0.02, itl=0.2, tokens=6) as server:
        run(assay_inline, server.url)
    seen = only(assay_inline).measurements

    assert seen["output_tokens"] == 6
    assert seen["input_tokens"] > 10
    assert 0.02 <= seen["ttft"] < seen["seconds"]
    assert seen["seconds"] >= 1.02
    assert seen["itl"] <= seen["itl_max"]
    assert seen["tpot"] == pytest.approx((seen["seconds"] - seen["ttft"]) / 5)
    assert seen["tokens_per_second"] == pytest.approx(6 / seen["seconds"])


def test_ollama_tells_its_own_durations(assay_inline: AssayInline) -> None:
    with quick(ttft=0.02, itl=0.01, tokens=6, load_time=0.03) as server:
        run(assay_inline, server.url, "--set", "start=cold")
    seen = only(assay_inline).measurements

    assert seen["load_seconds"] == pytest.approx(0.03)
    assert seen["prompt_eval_seconds"] == pytest.approx(0.02)
    assert seen["eval_seconds"] == pytest.approx(0.05)
    assert seen["total_seconds"] == pytest.approx(0.1)
    assert seen["eval_tokens_per_second"] == pytest.approx(6 / 0.05)


def test_an_openai_compatible_server_is_measured_by_the_client_alone(assay_inline: AssayInline) -> None:
    with quick(tokens=6) as server:
        document = run(assay_inline, f"{server.url}/v1").json
    seen = only(assay_inline).measurements

    assert {"ttft", "itl", "tpot", "tokens_per_second", "output_tokens"} <= seen.keys()
    assert not seen.keys() & {"load_seconds", "eval_seconds", "model_bytes"}
    assert document["trials"][0]["parameters"]["api"] == "openai"
    assert document["trials"][0]["agent"]["name"] == "m"


def test_a_cold_start_loads_each_time_and_a_warm_one_never(assay_inline: AssayInline) -> None:
    with quick(load_time=0.03) as server:
        run(assay_inline, server.url, "--sweep", "start=warm,cold", "--repetitions", "3")

    loads: dict[Any, list[float]] = {"warm": [], "cold": []}
    for one in executions(assay_inline):
        assert one.applied is not None
        loads[one.applied["start"]].append(one.measurements["load_seconds"])
    assert loads["warm"] == [0, 0, 0]
    assert [load > 0.02 for load in loads["cold"]] == [True, True, True]


def test_preparing_is_no_part_of_the_time(assay_inline: AssayInline) -> None:
    with quick(load_time=3.0) as server:
        run(assay_inline, server.url)
    assert only(assay_inline).measurements["seconds"] < 3.0


def test_a_model_that_stays_loaded_is_no_cold_start(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setattr("assay.builtin.experiments.model_server._UNLOAD_SECONDS", 0.0)
    listed = document('{"models": [{"model": "m:latest", "context_length": 5}]}')
    with ScriptedServer(listed) as server:
        run(assay_inline, server.url, "--set", "start=cold", "--isolation", "inline")
        asked = [(heard.line.split(" ")[1], heard.body) for heard in server.requests]
    found = only(assay_inline)

    assert found.status == "failed"
    wording(found.error)
    assert ("/api/generate", b'{"model":"m","stream":false,"keep_alive":0}') in asked
    assert "/api/chat" not in [path for path, _ in asked]


def document(text: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
    return (head + text).encode()


def test_the_server_holds_the_model_with_the_context_that_was_asked_for(assay_inline: AssayInline) -> None:
    with quick() as server:
        done = run(assay_inline, server.url, "--sweep", "num_ctx=512,1024").json
        (loaded,) = get(server, "/api/ps")["models"]
        assert loaded["context_length"] in (512, 1024)

    assert [trial["applied"]["num_ctx"] for trial in done["trials"]] == [512, 1024]
    assert codes(done) & {"setting-not-taken", "identical-arms", "setting-not-told"} == set()


def test_an_option_that_the_server_ignored_is_reported(assay_inline: AssayInline, wording: Wording) -> None:
    with quick(max_context=2048) as server:
        done = run(assay_inline, server.url, "--sweep", "num_ctx=1024,4096").json

    (message,) = told(done, "setting-not-taken")
    assert re.findall("'(.*?)'", message) == ["num_ctx", "4096", "2048"]
    wording(message)


def test_layers_that_did_not_go_to_the_gpu_are_reported() -> None:
    """On a machine without a GPU Ollama loads into ordinary memory, whatever num_gpu says."""
    from assay.builtin.experiments.model_server import OllamaServer

    class Agent:
        def __init__(self, vram: int) -> None:
            self._vram = vram

        async def look_up(self, path: str, document: object = None) -> Any:
            return {"models": [{"model": "m:latest", "size": 9, "size_vram": self._vram}]}

    def layers(asked: int, vram: int) -> object:
        import asyncio

        server = OllamaServer(Agent(vram), ServingParams(model="m", num_gpu=asked), "")  # type: ignore[arg-type]
        return asyncio.run(server.report()).settings.get("num_gpu")

    assert layers(80, vram=0) == 0
    assert layers(0, vram=0) == 0
    assert layers(0, vram=5) == "some"
    assert layers(80, vram=5) is None


def test_options_that_the_server_does_not_report_are_named(assay_inline: AssayInline) -> None:
    with quick() as server:
        done = run(assay_inline, server.url, "--sweep", "temperature=0.1,0.9", "--set", "top_k=7").json

    (message,) = told(done, "setting-not-told")
    assert "'temperature'" in message
    assert "'top_k'" in message
    assert "identical-arms" not in codes(done)


def test_options_are_sent_as_they_were_asked_for_and_nothing_else(assay_inline: AssayInline) -> None:
    empty = document('{"models": []}')
    with ScriptedServer(empty) as server:
        run(assay_inline, server.url, "--set", "num_ctx=64", "--set", "top_p=0.5", "--isolation", "inline")
        (load,) = [heard.json for heard in server.requests if heard.line.startswith("POST /api/generate")]
        (chat,) = [heard.json for heard in server.requests if heard.line.startswith("POST /api/chat")]

    assert load["options"] == {"num_ctx": 64, "top_p": 0.5}
    assert chat["options"] == {"num_ctx": 64, "top_p": 0.5, "num_predict": 128}
    assert chat["stream"] is True


def test_the_profiles_are_those_of_the_seed() -> None:
    baseline, chimera = (ServingParams(model="m", profile=name) for name in ("baseline", "chimera"))

    assert {name: getattr(chimera, name) for name in PROFILES["chimera"]} == {
        "num_gpu": 80,
        "num_ctx": 512,
        "temperature": 0.8,
        "top_p": 0.9,
        "top_k": 40,
        "repeat_penalty": 1.1,
    }
    assert baseline.num_ctx == 1024
    assert ServingParams(model="m", profile="chimera", num_ctx=99).num_ctx == 99


def test_no_two_prompts_are_the_same_unless_that_is_asked_for(assay_inline: AssayInline) -> None:
    def prompts(*more: str) -> list[str]:
        with ScriptedServer(document('{"models": []}')) as server:
            run(assay_inline, server.url, "--repetitions", "3", "--isolation", "inline", *more)
            chats = [heard.json for heard in server.requests if heard.line.startswith("POST /api/chat")]
        return [chat["messages"][-1]["content"] for chat in chats]

    assert len(set(prompts())) == 3
    assert len(set(prompts("--set", "same_prompt=true", "--set", "prompt=Hello"))) == 1


def test_figures_of_a_simulated_server_are_marked(assay_inline: AssayInline) -> None:
    with quick() as server:
        done = run(assay_inline, server.url).json
    kinds = {metric["kind"] for metric in done["trials"][0]["metrics"].values()}

    assert kinds == {"simulated"}


def test_cpu_and_memory_of_the_process_that_listens_are_measured(assay_inline: AssayInline) -> None:
    with SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=2000)) as server:
        run(assay_inline, server.url, "--set", "max_tokens=2000")
    seen = only(assay_inline).measurements

    assert seen["server_memory_bytes"] > 5 * 2**20
    assert seen["server_cpu_seconds"] >= 0
    assert seen["server_cpu_percent"] >= 0


def test_estimates_have_intervals_spread_and_outliers(assay_inline: AssayInline) -> None:
    with quick() as server:
        done = run(assay_inline, server.url, "--repetitions", "8").json
    ttft = done["trials"][0]["metrics"]["ttft"]

    assert ttft["n"] == 8
    assert ttft["interval"][0] <= ttft["median"] <= ttft["interval"][1]
    assert ttft["cv"] >= 0
    assert ttft["outliers"] >= 0


# Faults


def test_a_server_that_refuses_is_a_failure_that_says_so(assay_inline: AssayInline) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for url in (f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port}/v1"):
        assert run(assay_inline, url).code == 1
        found = only(assay_inline)
        assert found.status == "failed"
        assert "refused" in (found.error or "")
        assert "Traceback" not in (found.error or "")


@pytest.mark.parametrize(("api", "start"), [("", "cold"), ("/v1", "warm")])
def test_a_server_that_hangs_up_half_way_is_a_failure(
    assay_inline: AssayInline, api: str, start: str, wording: Wording
) -> None:
    with quick(disconnect_rate=1.0, tokens=8) as server:
        assert run(assay_inline, server.url + api, "--set", f"start={start}").code == 1

    found = only(assay_inline)
    assert found.status == "failed"
    assert "ttft" not in found.measurements
    wording(found.error, numbers=False)


@pytest.mark.parametrize("api", ["", "/v1"])
def test_a_model_that_is_not_there_is_a_failure(
    assay_inline: AssayInline, api: str, wording: Wording
) -> None:
    with quick(models="other") as server:
        assert run(assay_inline, server.url + api).code == 1

    found = only(assay_inline)
    assert found.status == "failed"
    assert "HTTP 404" in (found.error or "")
    assert "'m'" in (found.error or "")
    wording(found.error)


def test_errors_of_the_server_are_not_tried_again(assay_inline: AssayInline) -> None:
    with quick(error_rate=1.0) as server:
        run(assay_inline, f"{server.url}/v1")
        assert get(server, "/stats")["errors"]["injected_errors"] == 1

    assert "HTTP 500" in (only(assay_inline).error or "")


def test_an_answer_that_is_none_is_an_invalid_output(assay_inline: AssayInline) -> None:
    with ScriptedServer(document("[1]")) as server:
        run(assay_inline, f"{server.url}/v1")

    assert only(assay_inline).status == "invalid_output"


def test_something_else_than_ollama_is_reported(assay_inline: AssayInline, wording: Wording) -> None:
    with ScriptedServer(document("{}")) as server:
        run(assay_inline, server.url)

    error = only(assay_inline).error or ""
    assert "Ollama" in error
    wording(error, numbers=False)


def test_more_tokens_than_were_asked_for_are_an_option_not_taken(
    assay_inline: AssayInline, wording: Wording
) -> None:
    line = '{"model": "m", "message": {"content": "hello"}, "done": true, "eval_count": 9}'
    with ScriptedServer(document('{"models": []}'), document("{}"), document('{"models": []}'),
                        document(line), document('{"models": []}')) as server:  # fmt: skip
        done = run(assay_inline, server.url, "--set", "max_tokens=4").json

    found = told(done, "setting-not-taken")
    quoted = [re.findall("'(.*?)'", message) for message in found]
    assert ["max_tokens", "4", "9"] in quoted
    assert ["start", "warm", "cold"] in quoted
    wording("\n".join(found), near="'max_tokens'")


def test_another_model_than_was_asked_for_is_a_setting_not_taken(
    assay_inline: AssayInline, wording: Wording
) -> None:
    chat = '{"model": "other", "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}'
    with ScriptedServer(document(chat)) as server:
        done = run(assay_inline, f"{server.url}/v1").json

    taken = told(done, "setting-not-taken")[0]
    assert re.findall("'(.*?)'", taken) == ["model", "m", "other"]
    wording(taken)
    wording("\n".join(told(done, "remark")))


# What is refused before anything runs


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["url=http://gpu.example:11434"], "allow_host=gpu.example"),
        (["url=http://127.0.0.1.example/v1"], "'127.0.0.1.example'"),
        (["url=ftp://127.0.0.1"], "'ftp://127.0.0.1'"),
        (["url=http://127.0.0.1:1/v1", "start=cold"], "start: "),
        (["api_key=sk-12345"], "api_key: "),
        (["api_key=${KEY:-sk-12345}"], "api_key: "),
        (["headers={Authorization: Bearer sk-12345}"], "headers: "),
        (["headers={X-Goog-Credential: sk-12345}"], "headers: "),
        (["headers={Set-Cookie: sk-12345}"], "headers: "),
        (["url=http://127.0.0.1:1/v1?api_key=sk-12345"], "url: "),
        (["url=http://me:sk-12345@127.0.0.1:1/v1"], "url: "),
        (["numctx=4"], "'num_ctx'"),
        (["num_ctx=0"], "num_ctx"),
        (["profile=turbo"], "profile"),
    ],
)
def test_what_makes_no_sense_is_refused(
    assay_inline: AssayInline, wrong: list[str], message: str, wording: Wording
) -> None:
    options = [word for text in wrong for word in ("--set", text)]

    refusal = assay_inline("run", "serving", "--set", "model=m", *options).refusal
    assert message in refusal
    assert "sk-12345" not in refusal
    wording(refusal)


def test_a_model_must_be_named(assay_inline: AssayInline, wording: Wording) -> None:
    refusal = assay_inline("run", "serving").refusal
    assert "model: " in refusal
    wording(refusal)


def test_a_host_that_was_named_may_be_asked() -> None:
    for named in ("gpu.example", "gpu.example:11434", "http://gpu.example:11434"):
        assert ServingParams(model="m", url="http://gpu.example:11434/", allow_host=[named]).api == "ollama"


# Figures of an answer


def test_figures_that_nobody_can_know_are_left_out() -> None:
    one_piece = compute_answer_metrics(Answer("hello", seconds=2.0, usage=Usage(output_tokens=4)))
    assert one_piece == {"tokens_per_second": 2.0, "output_tokens": 4}

    one_token = compute_answer_metrics(
        Answer("a", seconds=2.0, first_token_seconds=1.5, content_seconds=(1.5,))
    )
    assert one_token == {"tokens_per_second": 0.5, "output_tokens": 1, "ttft": 1.5}


def test_the_gap_in_the_middle_and_the_longest_are_reported() -> None:
    answer = Answer("abcd", seconds=2.0, first_token_seconds=0.5, content_seconds=(0.5, 0.6, 1.6, 1.8))
    seen = compute_answer_metrics(answer)

    assert seen["itl"] == pytest.approx(0.2)
    assert seen["itl_max"] == pytest.approx(1.0)
    assert seen["tpot"] == pytest.approx(0.5)
