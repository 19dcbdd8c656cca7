"""What agents cost to ask: cases of a suite beside Inspect AI, programs over pipes, servers over HTTP, many at a time."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from arms import ASSAY, PYTHON, SUBJECTS, Ended, elsewhere, ended, fresh_folder, interleaved, peer
from record import Bound, Figure, Promise, Result, figure

from assay.units import count, seconds

EXAMPLES = Path(__file__).parent.parent / "examples" / "agents"

CASES = Promise(
    "cases",
    "Marginal rate of trivial cases of a suite, each stored",
    Bound.AT_LEAST,
    100,
    "times",
    "Inspect AI's rate",
)
CASES_MEMORY = Promise(
    "cases-memory", "Peak memory with 10,000 cases", Bound.BELOW, 0.5, "times", "Inspect AI's"
)
COMMAND = Promise("command", "Round trips with a program over pipes", Bound.AT_LEAST, 10_000, "1/s")
OPENAI = Promise("openai", "`openai` agent, 64 at a time, each stored", Bound.AT_LEAST, 3_000, "1/s")
HTTP = Promise("http", "`http` agent, 64 at a time, each stored", Bound.AT_LEAST, 3_000, "1/s")
WAITING = Promise("waiting", "1,000 answers that take 1 s, 1,000 at a time", Bound.BELOW, 1.5, "s")
RECORDED = Promise("recorded", "1,319 recorded answers judged by their last number", Bound.BELOW, 2.0, "s")
SERVED = Promise("sim-llm-answers", "Short answers of the simulated server", Bound.AT_LEAST, 10_000, "1/s")
LATE = Promise(
    "sim-llm-punctuality", "Error of its token times at P99, 500 streams a second", Bound.BELOW, 1.5e-3, "s"
)


def measure(quick: bool) -> list[Result]:
    return [
        *_beside_inspect(quick),
        _command(quick),
        *_servers(quick),
        _waiting(quick),
        _recorded(quick),
        *_simulated_server(quick),
    ]


def _beside_inspect(quick: bool) -> list[Result]:
    small, large = (200, 1_000) if quick else (1_000, 10_000)
    inspect = peer("inspect")
    arms = {
        f"assay, {count(small)} cases": partial(_suite, small),
        f"assay, {count(large)} cases": partial(_suite, large),
        f"inspect, {count(small)} samples": partial(_inspect, inspect, small),
        f"inspect, {count(large)} samples": partial(_inspect, inspect, large),
    }
    found = list(interleaved(arms, 1 if quick else 3).values())
    ours, theirs = (
        [(large - small) / (b.seconds - a.seconds) for a, b in zip(few, many, strict=True)]
        for few, many in (found[:2], found[2:])
    )
    return [_rate(ours, theirs, found), _memory(found[1], found[3])]


def _rate(ours: list[float], theirs: list[float], found: list[list[Ended]]) -> Result:
    """The rates are medians over the rounds; few rounds fit in, so the ratio's bounds are the extremes."""
    own, other = figure(ours), figure(theirs)
    judged = Figure(own.value / other.value, own.low / other.high, own.high / other.low, own.n)
    whole = [figure([end.seconds for end in ends]).value for ends in (found[1], found[3])]
    detail = (
        f"One case costs {seconds(1 / own.value)}, one sample {seconds(1 / other.value)}; the larger commands as a whole "
        f"took {seconds(whole[0])} and {seconds(whole[1])}."
    )
    values = {"cases a second": ours, "samples a second": theirs}
    return Result(CASES, "1/s", own, judged, {"Inspect AI": other}, detail, values)


def _memory(ours: list[Ended], theirs: list[Ended]) -> Result:
    own, other = (figure([float(end.peak_rss) for end in ends]) for ends in (ours, theirs))
    judged = Figure(own.value / other.value, own.low / other.high, own.high / other.low, own.n)
    detail = "For Assay, the runner or its worker, whichever is larger; for Inspect AI, its single process."
    return Result(CASES_MEMORY, "bytes", own, judged, {"Inspect AI": other}, detail)


def _suite(cases: int) -> Ended:
    agent = {"name": "echo", "type": "python", "target": f"{SUBJECTS / 'trivial_agents.py'}:echo"}
    return _run(cases, agent)


def _inspect(program: Path, samples: int) -> Ended:
    with fresh_folder() as folder:
        task = SUBJECTS / "inspect_trivial.py"
        words = (str(program.with_name("inspect")), "eval", task.name, "-T", f"n={samples}")
        return ended((*words, "--display", "none", "--log-dir", str(folder)), task.parent)


def _run(cases: int, agent: dict[str, object], *options: str) -> Ended:
    """A whole command: the suite is read, every case asked, judged and stored, the result shown."""
    with fresh_folder() as folder:
        return ended((ASSAY, "run", _written(folder, cases, agent), *options, "--json", "-q"), folder)


def _written(folder: Path, cases: int, agent: dict[str, object], scorer: str = "exact") -> str:
    lines = (json.dumps({"id": str(n), "input": str(n), "expected": str(n)}) for n in range(cases))
    (folder / "cases.jsonl").write_text("\n".join(lines), encoding="utf-8")
    benchmark = {
        "id": "trivial",
        "cases": "cases.jsonl",
        "scorer": scorer,
        "iterations": {"warmup": 0, "measured": 1},
    }
    suite = {"suite": "trivial", "agents": [agent], "benchmarks": [benchmark]}
    path = folder / "suite.json"
    path.write_text(json.dumps(suite), encoding="utf-8")
    return str(path)


def _command(quick: bool) -> Result:
    number = 5_000 if quick else 30_000
    subprocess.run(["sh", str(EXAMPLES / "build.sh")], check=True, stdout=subprocess.DEVNULL)
    programs = {
        "C": [str(EXAMPLES / "build" / "adder-c")],
        "Python": [PYTHON, str(EXAMPLES / "adder_lines.py")],
    }
    script = str(SUBJECTS / "with_command.py")
    arms = {name: partial(elsewhere, PYTHON, script, str(number), *words) for name, words in programs.items()}
    found = interleaved(arms, 2 if quick else 6)
    rates = {name: [float(end.stdout) for end in ends] for name, ends in found.items()}
    own, slow = figure(rates["C"]), figure(rates["Python"])
    detail = (
        f"With the program in C; the same program in Python: {slow.shown('1/s')}. Nothing is stored here."
    )
    return Result(COMMAND, "1/s", own, own, detail=detail, values=rates)


def _servers(quick: bool) -> list[Result]:
    """What 64 at a time get done against `assay sim-llm`, at the margin; server and runner share the machine."""
    small, large = (500, 2_000) if quick else (1_000, 20_000)
    with _sim_llm() as url:
        openai = {"type": "openai", "model": "sim", "base_url": f"{url}/v1", "api_key": "none"}
        agents: dict[str, dict[str, object]] = {
            "openai": {"name": "gpt", "stream": False, **openai},
            "openai, streamed": {"name": "gpt", "stream": True, **openai},
            "http": {"name": "web", "type": "http", "url": f"{url}/ask"},
        }
        arms = {
            f"{name}, {count(size)} cases": partial(_run, size, agent, "--concurrency", "64")
            for name, agent in agents.items()
            for size in (small, large)
        }
        found = list(interleaved(arms, 2 if quick else 6).values())
    rates = {
        name: [(large - small) / (b.seconds - a.seconds) for a, b in zip(few, many, strict=True)]
        for name, few, many in zip(agents, found[::2], found[1::2], strict=True)
    }
    streamed = figure(rates["openai, streamed"]).shown("1/s")
    detail = f"Whole answers; streamed, with an event a token: {streamed}."
    return [
        Result(OPENAI, "1/s", figure(rates["openai"]), figure(rates["openai"]), detail=detail, values=rates),
        Result(HTTP, "1/s", figure(rates["http"]), figure(rates["http"])),
    ]


@contextmanager
def _sim_llm() -> Iterator[str]:
    from assay.simulator import SimOptions, SimServer

    with SimServer(SimOptions(ttft=0, itl=0, tokens=5)) as server:
        yield server.url


def _waiting(quick: bool) -> Result:
    agent = {"name": "slow", "type": "python", "target": f"{SUBJECTS / 'trivial_agents.py'}:slow"}
    spans = [_span(agent) for _ in range(2 if quick else 6)]
    detail = "From the start of the first to the end of the last execution, by the stored times."
    return Result(WAITING, "s", figure(spans), figure(spans), detail=detail, values={"seconds": spans})


def _span(agent: dict[str, object]) -> float:
    with fresh_folder() as folder:
        words = (ASSAY, "run", _written(folder, 1_000, agent), "--concurrency", "1000", "--json", "-q")
        ended(words, folder)
        ended((ASSAY, "report", "last", "--format", "json", "--out", ".", "-q"), folder)
        document = json.loads(next(folder.glob("*result*.json")).read_text(encoding="utf-8"))
    times = [
        (one["started"], one["duration_s"])
        for trial in document["trials"]
        for one in trial["iteration_metrics"]
    ]
    return max(start + taken for start, taken in times) - min(start for start, _ in times)


def _recorded(quick: bool) -> Result:
    """As many questions as the usual set of word problems has, answered in prose that ends in a number."""
    with fresh_folder() as folder:
        draw = random.Random(1)
        numbers = [draw.randint(-9_999, 99_999) for _ in range(1_319)]
        answers = (
            json.dumps(
                {"id": str(n), "output": f"First {n} and 3 more, so {number:,} in all.\n#### {number:,}"}
            )
            for n, number in enumerate(numbers)
        )
        (folder / "answers.jsonl").write_text("\n".join(answers), encoding="utf-8")
        suite = _written(
            folder, 1_319, {"name": "past", "type": "recorded", "answers": "answers.jsonl"}, "numeric"
        )
        cases = (json.dumps({"id": str(n), "input": "?", "expected": str(x)}) for n, x in enumerate(numbers))
        (folder / "cases.jsonl").write_text("\n".join(cases), encoding="utf-8")
        times = [
            ended((ASSAY, "run", suite, "--json", "-q"), folder).seconds for _ in range(2 if quick else 6)
        ]
    detail = "The whole command, from the shell and back, every answer stored."
    return Result(RECORDED, "s", figure(times), figure(times), detail=detail, values={"seconds": times})


def _simulated_server(quick: bool) -> list[Result]:
    """As a bare client sees it: what it serves without delays, and how late it is at 500 streams a second."""
    from simulated_server import measure_throughput, punctuality

    from assay.simulator import SimOptions, SimServer

    rounds = 2 if quick else 6
    with SimServer(SimOptions(ttft=0, itl=0, tokens=5)) as server:
        served = [measure_throughput(server.url) for _ in range(rounds)]
    with SimServer(SimOptions(ttft=0.05, itl=0.005, tokens=20)) as server:
        # No divisor of the delays: streams would otherwise fall due at the same instants.
        seen = [punctuality(server.url, ttft=0.05, itl=0.005, rate=487) for _ in range(rounds)]
    late, usual = [one.itl_p99 for one in seen], [one.itl_p50 for one in seen]
    firsts = figure([one.ttft_p99 for one in seen])
    detail = (
        f"Gaps between tokens; half of them are off by less than {seconds(figure(usual).value)}. The first token is late by "
        f"{seconds(firsts.value)} at P99. {figure([one.streams_per_second for one in seen]).value:.0f} streams a second were driven."
    )
    return [
        Result(SERVED, "1/s", figure(served), figure(served), values={"answers a second": served}),
        Result(LATE, "s", figure(late), figure(late), detail=detail, values={"P99": late, "P50": usual}),
    ]
