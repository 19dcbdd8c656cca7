"""Broken servers, over http and https, through `run`, `load` and `record`: an answer is right or counted as a failure."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from tests.http.tls_provider import answer_to, make_certificate, question
from tests.load.faulty import Guest, faulty

from faults.campaign import Fault, Outcome, Part, Size
from faults.project import Project
from faults.server_kinds import KINDS, Must, answer, names

_QUESTIONS = 3
_IN_A_RUN = 12
_SECONDS = 1.5
_FAILURES = ("failed", "timeout", "invalid_output", "over_limit")
_PROGRAM = """
import json, os, sys, urllib.request
for kind in json.load(open("kinds.json")):
    for number in range(3):
        is_streamed = number % 2 == 1
        asked = f"Question {number}?"
        body = {"model": kind, "messages": [{"role": "user", "content": asked}], "stream": is_streamed}
        request = urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        told = {"kind": kind, "question": asked, "answer": None, "error": ""}
        try:
            with urllib.request.urlopen(request, timeout=1.5) as answer:
                text = answer.read().decode()
            if is_streamed:
                events = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
                if "[DONE]" not in events:
                    raise ValueError("the stream has no end")
                choices = [choice for event in events if event != "[DONE]" for choice in json.loads(event)["choices"]]
                told["answer"] = "".join(choice["delta"].get("content", "") for choice in choices)
                if not choices: raise ValueError("no choices")
            else:
                told["answer"] = json.loads(text)["choices"][0]["message"]["content"]
        except Exception as error:
            told["answer"], told["error"] = None, repr(error)[:200]
        print(json.dumps(told), flush=True)
"""


@contextmanager
def prepare(seed: int, size: Size) -> Iterator[Sequence[Fault]]:
    """The model that is asked for says how the server breaks."""
    chance = random.Random(f"{seed} servers")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-tls-")))
        certificate = make_certificate(folder)
        trust = {"SSL_CERT_FILE": str(certificate.file), "OPENAI_API_KEY": "sk-none"}
        plain = stack.enter_context(faulty(_talk))
        secure = stack.enter_context(faulty(_talk, certificate.server_context()))
        urls = {"http": plain.url, "https": secure.url}
        kinds = list(names())
        chance.shuffle(kinds)
        if size is Size.SMALLEST:
            kinds = [
                "head and body apart",
                "cut in the body",
                "another answer behind",
                "wrong chunk sizes",
                "two lengths",
            ]
            urls = {"https": secure.url}
        yield [
            *_runs(kinds, urls, trust, size),
            *_records(kinds, urls, trust),
            *_loads(kinds, urls, trust, size, chance),
        ]


def _talk(guest: Guest) -> bool | None:
    asked = json.loads(guest.request.partition(b"\r\n\r\n")[2])
    return answer(asked["model"], guest)


def _runs(
    kinds: Sequence[str], urls: Mapping[str, str], trust: Mapping[str, str], size: Size
) -> Iterator[Fault]:
    rounds = size.choose(1, 1, 4)
    for n, scheme, stream in product(range(rounds), urls, (True, False)):
        for start in range(0, len(kinds), _IN_A_RUN):
            batch = kinds[start : start + _IN_A_RUN]
            name = f"run over {scheme}, {'streamed' if stream else 'whole'}, {start // _IN_A_RUN} round {n}"
            yield Fault(name, partial(_run, batch, scheme, urls[scheme], stream, trust))


def _records(kinds: Sequence[str], urls: Mapping[str, str], trust: Mapping[str, str]) -> Iterator[Fault]:
    for scheme, url in urls.items():
        for start in range(0, len(kinds), _IN_A_RUN):
            batch = kinds[start : start + _IN_A_RUN]
            yield Fault(
                f"record over {scheme}, {start // _IN_A_RUN}", partial(_record, batch, scheme, url, trust)
            )


def _loads(
    kinds: Sequence[str], urls: Mapping[str, str], trust: Mapping[str, str], size: Size, chance: random.Random
) -> Iterator[Fault]:
    for kind in kinds:
        every = list(product(urls, (True, False)))
        if size is not Size.FULL:
            every = [chance.choice(every)]
        for scheme, stream in every if size is not Size.SMALLEST else every[:1]:
            name = f"load over {scheme}, {'streamed' if stream else 'whole'}, {kind}"
            yield Fault(name, partial(_load, kind, scheme, urls[scheme], stream, trust))
        if size is Size.SMALLEST and kind == "cut in the body":
            return


def _suite(agents: Sequence[Mapping[str, Any]]) -> str:
    asked = [question(number) for number in range(_QUESTIONS)]
    cases = [{"id": f"c{n}", "input": text, "expected": answer_to(text)} for n, text in enumerate(asked)]
    benchmark = {
        "id": "b", "name": "b", "cases": cases, "scorer": "exact",
        "iterations": {"warmup": 0, "measured": 1}, "limits": {"seconds": _SECONDS},
    }  # fmt: skip
    return json.dumps({"suite": "s", "version": "1", "agents": list(agents), "benchmarks": [benchmark]})


def _run(
    batch: Sequence[str], scheme: str, url: str, stream: bool, trust: Mapping[str, str], folder: Path
) -> Outcome:
    project = Project(folder, trust, db=f"sqlite:///{folder / 'assay.db'}")
    agents = [
        {"name": f"agent-{n}", "type": "openai", "model": kind, "base_url": url, "stream": stream, "retries": n % 2, "backoff": 0.01}
        for n, kind in enumerate(batch)
    ]  # fmt: skip
    project.write("suite.json", _suite(agents))
    done = project("run", "suite.json", "--json", "--quiet")
    reported = project("report", "last", "--format", "json", "--out", "out")
    if problem := done.problem(0, 1) or reported.problem(0):
        return Outcome(len(batch), tuple((f"run over {scheme}: {kind}", problem) for kind in batch))
    document = json.loads((folder / "out" / "result.json").read_text())
    wrongs = []
    for trial in document["trials"]:
        kind = batch[int(trial["agent"]["name"].removeprefix("agent-"))]
        for problem in _judge_trial(KINDS[kind][1], trial):
            wrongs.append((f"run over {scheme}, {'streamed' if stream else 'whole'}: {kind}", problem))
    return Outcome(len(batch), tuple(wrongs))


def _judge_trial(must: Must, trial: Mapping[str, Any]) -> Iterator[str]:
    rows = trial["iteration_metrics"]
    if len(rows) != _QUESTIONS:
        yield f"{len(rows)} executions instead of {_QUESTIONS}: {trial['stopped']}"
    for row in rows:
        is_right = row["status"] == "ok" and row.get("score") == 1.0
        if not is_right and row["status"] not in _FAILURES:
            yield f"{row['case']} is {row['status']} with score {row.get('score')}: {str(row.get('output') or row.get('error'))[:150]}"
        elif (is_right and must is Must.FAIL) or (not is_right and must is Must.BE_RIGHT):
            yield f"{row['case']} must {must}, but is {row['status']}: {str(row.get('error'))[:200]}"


def _load(kind: str, scheme: str, url: str, stream: bool, trust: Mapping[str, str], folder: Path) -> Outcome:
    project = Project(folder, trust, db=f"sqlite:///{folder / 'assay.db'}")
    project.write("suite.json", _suite([]))
    options = [
        "--requests",
        "4",
        "--concurrency",
        "2",
        "--timeout",
        f"{_SECONDS}s",
        "--warmup",
        "0",
        "--json",
        "--model",
        kind,
    ]
    secure = ["--ca-file", trust["SSL_CERT_FILE"]] if scheme == "https" else []
    way = "--stream" if stream else "--no-stream"
    done = project("load", url, "--dataset", "suite.json", *options, *secure, way)
    name = f"load over {scheme}, {'streamed' if stream else 'whole'}: {kind}"
    if problem := done.problem(0, 1):
        return Outcome(wrongs=((name, problem),))
    problems = list(_judge_load(KINDS[kind][1], json.loads(done.out)))
    return Outcome(wrongs=tuple((name, problem) for problem in problems))


def _judge_load(must: Must, found: Mapping[str, Any]) -> Iterator[str]:
    sent, completed, failed = (
        found["requests_sent"],
        found["requests_completed"],
        sum(found["errors"].values()),
    )
    if sent != 4 or completed + failed != 4:
        yield f"{sent} sent, {completed} completed, {failed} failed of 4"
    quality = found.get("quality") or {}
    if completed and quality.get("score") != 1.0:
        yield f"{completed} completed with a score of {quality.get('score')}"
    if (must is Must.FAIL and completed) or (must is Must.BE_RIGHT and failed):
        yield f"must {must}, but {completed} completed and {failed} failed: {found['errors']}"


def _record(batch: Sequence[str], scheme: str, url: str, trust: Mapping[str, str], folder: Path) -> Outcome:
    project = Project(folder, trust)
    project.write("program.py", _PROGRAM)
    project.write("kinds.json", json.dumps(list(batch)))
    words = ("--", sys.executable, "-S", "-E", "program.py")
    recorded = project("record", "--upstream", url, *words)
    replayed = project("replay", *words)
    if problem := recorded.problem(0) or replayed.problem(0, 1):
        return Outcome(len(batch), tuple((f"record over {scheme}: {kind}", problem) for kind in batch))
    wrongs = []
    for way, done in (("record", recorded), ("replay", replayed)):
        told = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
        if len(told) != len(batch) * _QUESTIONS:
            wrongs.append((f"{way} over {scheme}", f"{len(told)} answers of {len(batch) * _QUESTIONS}"))
        for one in told:
            must, is_right = KINDS[one["kind"]][1], one["answer"] == answer_to(one["question"])
            if one["answer"] is not None and not is_right:
                wrongs.append(
                    (f"{way} over {scheme}: {one['kind']}", f"a wrong answer counts: {one['answer'][:100]!r}")
                )
            elif must is not Must.BE_EITHER and is_right != (must is Must.BE_RIGHT):
                wrongs.append(
                    (f"{way} over {scheme}: {one['kind']}", f"must {must}: {one['error'] or 'is right'}")
                )
    return Outcome(len(batch), tuple(wrongs))


PART = Part(
    "servers",
    "Through `run`, `load`, `record` and `replay`, an answer of a broken server is right or counted as a failure.",
    prepare,
    at_a_time=4,  # most of the time is spent waiting for limits
)
