"""Load generators as commands: ours and its peers, each on one core, judged by what reached the server."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arms import ASSAY, PYTHON, CommandFailed, Ended, ended, fresh_folder, peer, tell

from load.server import Server, Truth, pinned

CLIENTS = Path(__file__).parent / "clients"
PEERS = Path(__file__).parent / "peers"
AT_ONCE = 64
_LONGEST = 120
"""Seconds that a peer may take in all; some need half a minute to begin."""
_PROMPTS = 20_000

Words = Callable[[str, int, Path], Sequence[str]]
"""The command for a URL, so many seconds, and a folder of its own."""


LABELS = {"aiohttp": "aiohttp + uvloop", "vllm": "a client in vLLM's manner"}


def label(name: str) -> str:
    """As the page calls it."""
    return LABELS.get(name, name)


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    words: Words
    variables: Mapping[str, str] = field(default_factory=dict)
    is_heavy: bool = False
    """Whether its packages take gigabytes, or it takes long to begin."""


@dataclass(frozen=True, slots=True)
class Ran:
    end: Ended
    truth: Truth
    first: float
    """Seconds from the start of the command to its first request."""


@dataclass(frozen=True, slots=True)
class Tools:
    tools: Sequence[Tool]
    left_out: Mapping[str, str]
    """The others, and why."""


def ran(server: Server, words: Sequence[str], folder: Path, **variables: str) -> Ran:
    """The whole command on its core; what the server saw before is forgotten."""
    server.truth()
    started = time.monotonic()
    end = ended(pinned(words, 1), folder, variables)
    truth = server.truth()
    if not truth.requests:
        raise CommandFailed(f"'{' '.join(words)}' sent nothing.")
    return Ran(end, truth, truth.arrivals[0] - started)


def put_to(server: Server, tool: Tool, seconds: int) -> Ran | None:
    """None when the tool failed, which is told."""
    limit = [shutil.which("timeout") or "", "-k", "5", str(_LONGEST)]
    with fresh_folder() as folder:
        words = [*(limit if limit[0] else []), *tool.words(server.url, seconds, folder)]
        try:
            return ran(server, words, folder, **tool.variables)
        except CommandFailed as error:
            tell(f"  {tool.name} failed: {error}")
            return None


def assay_words(url: str, *options: str) -> list[str]:
    return [ASSAY, "load", f"{url}/v1", "--model", "m", *options, "--json", "-q"]


def assay(server: Server, *options: str) -> Ran:
    with fresh_folder() as folder:
        return ran(server, assay_words(server.url, *options), folder)


ASSAY_TOOL = Tool(
    "assay",
    lambda url, seconds, _: assay_words(url, "--concurrency", str(AT_ONCE), "--duration", f"{seconds}s"),
)


def client(script: str, url: str, seconds: int, *options: str) -> list[str]:
    """One of the clients beside this file, in the environment that has aiohttp."""
    path = f"{url}/v1/chat/completions"
    return [str(peer("aiohttp", PEERS)), str(CLIENTS / script), path, "--seconds", str(seconds), *options]


def _of_client(script: str) -> Words:
    return lambda url, seconds, _: client(script, url, seconds, "--concurrency", str(AT_ONCE))


def peers(with_heavy: bool) -> Tools:
    """Every peer that there is, or that can be installed here."""
    tools: list[Tool] = []
    left_out: dict[str, str] = {}
    for name, make in {**_LIGHT, **(_HEAVY if with_heavy else {})}.items():
        try:
            tools.append(make())
        except (CommandFailed, OSError, subprocess.CalledProcessError) as error:
            left_out[name] = _why(error)
            tell(f"  {name} is left out: {left_out[name]}")
    return Tools(tools, left_out)


def _why(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return "it could not be installed"
    return str(error).splitlines()[0]


def _wrk() -> Tool:
    program = shutil.which("wrk")
    if program is None:
        raise CommandFailed("there is no program of that name (on Debian: apt-get install wrk)")
    options = ("-t1", f"-c{AT_ONCE}", "-s", str(CLIENTS / "wrk_post.lua"))
    return Tool(
        "wrk",
        lambda url, seconds, _: [program, *options, f"-d{seconds}s", f"{url}/v1/chat/completions"],
    )


def _aiohttp() -> Tool:
    peer("aiohttp", PEERS)
    return Tool("aiohttp", _of_client("plain_aiohttp.py"))


def _as_vllm() -> Tool:
    peer("aiohttp", PEERS)
    return Tool("vllm", _of_client("as_vllm.py"))


def _locust() -> Tool:
    program = str(peer("locust", PEERS).with_name("locust"))
    options = ("--headless", "--only-summary", "-u", str(AT_ONCE), "-r", "1000", "--exit-code-on-error", "0")
    script = str(CLIENTS / "locust_stream.py")
    return Tool(
        "locust",
        lambda url, seconds, _: [program, "-f", script, *options, "-t", f"{seconds}s", "--host", url],
    )


def _inference_perf() -> Tool:
    program = str(peer("inference-perf", PEERS, _python_of_at_least(12)).with_name("inference-perf"))

    def words(url: str, seconds: int, folder: Path) -> list[str]:
        """It is told a number of requests, not a time: as many as it gets done in about that time."""
        stage = {"num_requests": 500 * seconds, "concurrency_level": AT_ONCE}
        order = {
            "api": {"type": "chat", "streaming": True},
            "data": {"type": "mock"},
            "load": {"type": "concurrent", "interval": 0, "num_workers": 1, "stages": [stage]},
            "server": {"type": "vllm", "model_name": "m", "base_url": url},
            "tokenizer": {"pretrained_model_name_or_path": _tokenizer(folder)},
            "report": {"prometheus": None, "request_lifecycle": {"use_server_output_tokens": True}},
            "storage": {"local_storage": {"path": str(folder / "out")}},
        }
        (folder / "order.yaml").write_text(json.dumps(order), encoding="utf-8")
        return [program, "--config_file", "order.yaml"]

    return Tool("inference-perf", words, is_heavy=True)


def _aiperf() -> Tool:
    program = str(peer("aiperf", PEERS).with_name("aiperf"))
    options = (
        "--endpoint-type", "chat", "--streaming", "--use-server-token-count", "--ui", "none",
        "--custom-dataset-type", "single_turn", "--concurrency", str(AT_ONCE), "--benchmark-grace-period", "1",
    )  # fmt: skip

    def words(url: str, seconds: int, folder: Path) -> list[str]:
        prompts = _prompts(folder, "text", 1)
        asked = ["--input-file", prompts, "--tokenizer", _tokenizer(folder), "--artifact-dir", "out"]
        length = ["--benchmark-duration", str(seconds)]
        return [program, "profile", "--model", "m", "--url", url, *options, *asked, *length]

    return Tool("aiperf", words, is_heavy=True)


def _guidellm() -> Tool:
    program = str(peer("guidellm", PEERS).with_name("guidellm"))

    def words(url: str, seconds: int, folder: Path) -> list[str]:
        prompts = _prompts(folder, "prompt", _PROMPTS)
        return [
            program, "run", "--disable-console",
            "--backend", f"kind=openai_http,target={url},model=m",
            "--profile", f"kind=concurrent,streams={AT_ONCE}",
            "--constraint", f"kind=max_duration,seconds={seconds}",
            "--data", f"kind=json_file,path={prompts}",
            "--tokenizer", f"kind=hf_auto,model={_tokenizer(folder)}",
            "--output", "kind=json,path=out.json",
        ]  # fmt: skip

    # Its ten processes would only be in each other's way on one core.
    return Tool("guidellm", words, {"GUIDELLM__MAX_WORKER_PROCESSES": "1"}, is_heavy=True)


_LIGHT: dict[str, Callable[[], Tool]] = {
    "wrk": _wrk,
    "aiohttp": _aiohttp,
    "locust": _locust,
    "vllm": _as_vllm,
}
_HEAVY: dict[str, Callable[[], Tool]] = {
    "inference-perf": _inference_perf,
    "aiperf": _aiperf,
    "guidellm": _guidellm,
}


def _prompts(folder: Path, key: str, number: int) -> str:
    path = folder / "prompts.jsonl"
    path.write_text(f'{{"{key}": "Say in one sentence what a benchmark is."}}\n' * number, encoding="utf-8")
    return str(path)


def _tokenizer(folder: Path) -> str:
    """Some tools want one even where the server counts the tokens: words, of which it knows a few."""
    place = folder / "tokenizer"
    place.mkdir()
    vocabulary = {word: number for number, word in enumerate(("<unk>", "Say", "one", "sentence", "word"))}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    parts = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    whole = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}
    (place / "tokenizer.json").write_text(json.dumps({**parts, **whole}), encoding="utf-8")
    (place / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    return str(place)


def _python_of_at_least(minor: int) -> str:
    """Ours if it is new enough, else one on the path or among those of pyenv."""
    versions = range(minor, minor + 4)
    named = (shutil.which(f"python3.{one}") for one in versions)
    kept = (path for one in versions for path in Path.home().glob(f".pyenv/versions/3.{one}.*/bin/python"))
    for python in (PYTHON, *filter(None, named), *map(str, kept)):
        asked = [python, "-c", f"import sys; sys.exit(sys.version_info < (3, {minor}))"]
        if subprocess.run(asked, capture_output=True).returncode == 0:
            return python
    raise CommandFailed(f"it needs Python 3.{minor} or later, and there is none here")
