"""Load generators as commands: ours and its peers, each on one core, judged by what reached the server."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from arms import ASSAY, PYTHON, CommandFailed, Ended, ended, fresh_folder, peer, tell

from load.server import Server, Truth, pinned

CLIENTS = Path(__file__).parent / "clients"
PEERS = Path(__file__).parent / "peers"
AT_ONCE = 64
_LONGEST = 120
"""Seconds that a peer may take in all; some need half a minute to begin."""
_PROMPTS = 20_000


@dataclass(frozen=True, slots=True)
class Put:
    """How requests are put: so many at a time, or so many a second."""

    at_once: int | None = AT_ONCE
    rate: int | None = None
    answer_seconds: float = 0.002
    """What an answer takes about, for tools that are told a number of requests instead of a time."""

    def options(self, at_once: str = "--concurrency", rate: str = "--rate") -> list[str]:
        return [at_once, str(self.at_once)] if self.rate is None else [rate, str(self.rate)]


Words = Callable[[str, int, Path, Put], Sequence[str]]
"""The command for a URL, so many seconds, a folder of its own, and how requests are put."""
Told = Callable[[Ended, Path], Mapping[str, float]]
"""What a tool reports of its own when it has ended, in seconds: ttft_p50, ttft_p99 and, if it tells, itl_p99."""


LABELS = {"aiohttp": "aiohttp + uvloop", "vllm": "vLLM's request function"}


def label(name: str) -> str:
    """As the page calls it."""
    return LABELS.get(name, name)


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    words: Words
    told: Told | None = None
    """None where it reports no time to the first token."""
    variables: Mapping[str, str] = field(default_factory=dict)
    is_heavy: bool = False
    """Whether its packages take gigabytes, or it takes long to begin."""


@dataclass(frozen=True, slots=True)
class Ran:
    end: Ended
    truth: Truth
    first: float
    """Seconds from the start of the command to its first request."""
    told: Mapping[str, float] = field(default_factory=dict)
    """By the tool itself."""


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


def put_to(
    server: Server,
    tool: Tool,
    seconds: int,
    put: Put = Put(),  # noqa: B008  (frozen)
    reads: bool = False,
) -> Ran | None:
    """None when the tool failed, which is told; with `reads`, also what it reports itself."""
    limit = [shutil.which("timeout") or "", "-k", "5", str(_LONGEST)]
    with fresh_folder() as folder:
        words = [*(limit if limit[0] else []), *tool.words(server.url, seconds, folder, put)]
        try:
            done = ran(server, words, folder, **tool.variables)
            return replace(done, told=_read(tool, done.end, folder)) if reads else done
        except CommandFailed as error:
            tell(f"  {tool.name} failed: {error}")
            return None


def _read(tool: Tool, end: Ended, folder: Path) -> Mapping[str, float]:
    try:
        return tool.told(end, folder) if tool.told else {}
    except (OSError, LookupError, ValueError, TypeError) as error:
        raise CommandFailed(f"it did not report what it should: {error!r}") from error


def assay_words(url: str, *options: str) -> list[str]:
    return [ASSAY, "load", f"{url}/v1", "--model", "m", *options, "--json", "-q"]


def assay(server: Server, *options: str) -> Ran:
    with fresh_folder() as folder:
        return ran(server, assay_words(server.url, *options), folder)


ASSAY_TOOL = Tool(
    "assay",
    lambda url, seconds, _, put: assay_words(url, *put.options(), "--duration", f"{seconds}s"),
)


def _of_client(name: str, script: str, is_complete: bool = False) -> Tool:
    """One of the clients beside this file, in an environment that has what it needs."""
    words = (str(peer(name, PEERS, is_complete=is_complete)), str(CLIENTS / script))
    return Tool(
        name,
        lambda url, seconds, _, put: [
            *words, f"{url}/v1/chat/completions", "--seconds", str(seconds), *put.options(),
        ],
        lambda end, _: json.loads(end.stdout),
    )  # fmt: skip


def peers(with_heavy: bool) -> Tools:
    """Every peer that there is, or that can be installed here."""
    tools: list[Tool] = []
    left_out: dict[str, str] = {} if with_heavy else dict.fromkeys(_HEAVY, "not run this time")
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
    program = shutil.which("wrk") or _installed_wrk()
    options = ("-t1", "-s", str(CLIENTS / "wrk_post.lua"))
    return Tool(
        "wrk",
        lambda url, seconds, _, put: [
            program, *options, f"-c{put.at_once}", f"-d{seconds}s", f"{url}/v1/chat/completions",
        ],
    )  # fmt: skip


def _installed_wrk() -> str:
    """It is a system's package, not Python's: installed here where we may."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise CommandFailed(
            "there is no program of that name. To have it: sudo apt-get install wrk, or brew install wrk"
        )
    tell("  installing wrk")
    for words in ((apt, "update", "-q"), (apt, "install", "-y", "-q", "--no-install-recommends", "wrk")):
        # Without fresh lists, old ones may do.
        subprocess.run(
            words,
            capture_output=True,
            timeout=_LONGEST,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
    program = shutil.which("wrk")
    if program is None:
        raise CommandFailed("there is no program of that name, and `apt-get install wrk` failed")
    return program


def _locust() -> Tool:
    program = str(peer("locust", PEERS).with_name("locust"))
    options = ("--headless", "--only-summary", "-r", "1000", "--exit-code-on-error", "0", "--csv", "out")
    script = str(CLIENTS / "locust_stream.py")

    def words(url: str, seconds: int, _: Path, put: Put) -> list[str]:
        """At a rate, each of so many users keeps to its share of it: locust has no timetable."""
        users = ["-u", str(put.at_once or AT_ONCE), *(["--rate", str(put.rate)] if put.rate else [])]
        return [program, "-f", script, *options, *users, "-t", f"{seconds}s", "--host", url]

    return Tool("locust", words, _told_by_locust)


def _told_by_locust(_: Ended, folder: Path) -> dict[str, float]:
    with (folder / "out_stats.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["Name"]: row for row in csv.DictReader(file)}
    first = rows["first token"]
    return {"ttft_p50": float(first["50%"]) / 1e3, "ttft_p99": float(first["99%"]) / 1e3}


def _inference_perf() -> Tool:
    program = str(peer("inference-perf", PEERS, _python_of_at_least(12)).with_name("inference-perf"))

    def words(url: str, seconds: int, folder: Path, put: Put) -> list[str]:
        """In a closed loop it is told a number of requests, not a time: as many as it gets done in about that time."""
        most = 500 * seconds
        done = min(most, int((put.at_once or 1) * seconds / put.answer_seconds))
        closed = {"num_requests": done, "concurrency_level": put.at_once}
        stage = closed if put.rate is None else {"rate": put.rate, "duration": seconds}
        kind = "concurrent" if put.rate is None else "constant"
        order = {
            "api": {"type": "chat", "streaming": True},
            "data": {"type": "mock"},
            "load": {"type": kind, "interval": 0, "num_workers": 1, "stages": [stage]},
            "server": {"type": "vllm", "model_name": "m", "base_url": url},
            "tokenizer": {"pretrained_model_name_or_path": _tokenizer(folder)},
            "report": {"prometheus": None, "request_lifecycle": {"use_server_output_tokens": True}},
            "storage": {"local_storage": {"path": str(folder / "out")}},
        }
        (folder / "order.yaml").write_text(json.dumps(order), encoding="utf-8")
        return [program, "--config_file", "order.yaml"]

    return Tool("inference-perf", words, _told_by_inference_perf, is_heavy=True)


def _told_by_inference_perf(_: Ended, folder: Path) -> dict[str, float]:
    told = _json(folder / "out" / "summary_lifecycle_metrics.json")["successes"]["latency"]
    first, gaps = told["time_to_first_token"], told["inter_token_latency"]
    return {"ttft_p50": first["median"], "ttft_p99": first["p99"], "itl_p99": gaps["p99"]}


def _aiperf() -> Tool:
    program = str(peer("aiperf", PEERS).with_name("aiperf"))
    options = (
        "--endpoint-type", "chat", "--streaming", "--use-server-token-count", "--ui", "none",
        "--custom-dataset-type", "single_turn", "--benchmark-grace-period", "1",
    )  # fmt: skip

    def words(url: str, seconds: int, folder: Path, put: Put) -> list[str]:
        prompts = _prompts(folder, "text", 1)
        asked = ["--input-file", prompts, "--tokenizer", _tokenizer(folder), "--artifact-dir", "out"]
        how = [*put.options(rate="--request-rate"), "--benchmark-duration", str(seconds)]
        even = ["--arrival-pattern", "constant"] if put.rate else []
        return [program, "profile", "--model", "m", "--url", url, *options, *asked, *how, *even]

    return Tool("aiperf", words, _told_by_aiperf, is_heavy=True)


def _told_by_aiperf(_: Ended, folder: Path) -> dict[str, float]:
    """Its time between tokens is the mean of each answer, which has no percentile of single gaps."""
    first = _json(folder / "out" / "profile_export_aiperf.json")["time_to_first_token"]
    return {"ttft_p50": first["p50"] / 1e3, "ttft_p99": first["p99"] / 1e3}


def _guidellm() -> Tool:
    program = str(peer("guidellm", PEERS).with_name("guidellm"))

    def words(url: str, seconds: int, folder: Path, put: Put) -> list[str]:
        prompts = _prompts(folder, "prompt", _PROMPTS)
        how = f"concurrent,streams={put.at_once}" if put.rate is None else f"constant,rate={put.rate}"
        return [
            program, "run", "--disable-console",
            "--backend", f"kind=openai_http,target={url},model=m",
            "--profile", f"kind={how}",
            "--constraint", f"kind=max_duration,seconds={seconds}",
            "--data", f"kind=json_file,path={prompts}",
            "--tokenizer", f"kind=hf_auto,model={_tokenizer(folder)}",
            "--output", "kind=json,path=out.json",
        ]  # fmt: skip

    # Its ten processes would only be in each other's way on one core.
    one = {"GUIDELLM__MAX_WORKER_PROCESSES": "1"}
    return Tool("guidellm", words, _told_by_guidellm, one, is_heavy=True)


def _told_by_guidellm(_: Ended, folder: Path) -> dict[str, float]:
    """Its time between tokens is the mean of each answer, too."""
    told = _json(folder / "out.json")["benchmarks"][0]["metrics"]["time_to_first_token_ms"]
    first = told["successful"]["percentiles"]
    return {"ttft_p50": first["p50"] / 1e3, "ttft_p99": first["p99"] / 1e3}


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


_LIGHT: dict[str, Callable[[], Tool]] = {
    "wrk": _wrk,
    "aiohttp": partial(_of_client, "aiohttp", "plain_aiohttp.py"),
    "locust": _locust,
    "vllm": partial(_of_client, "vllm", "vllm_function.py", is_complete=True),
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
