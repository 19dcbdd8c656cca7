"""Planted secrets: agents and servers repeat them in every field; then everything that Assay wrote is searched for them."""

from __future__ import annotations

import base64
import html
import json
import random
import re
import string
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.load.faulty import CHUNKED, END, JSON, SSE, Guest, chunk, delta, event, faulty, head, with_length

from faults.campaign import Fault, Outcome, Part, Size
from faults.project import Done, Project

_SHAPES: dict[str, str] = {
    "sk-proj-": string.ascii_letters + string.digits, "sk-ant-api03-": string.ascii_letters + string.digits,
    "ghp_": string.ascii_letters + string.digits, "AKIA": string.ascii_uppercase + string.digits, "xoxb-": string.digits,
    "glpat-": string.ascii_letters + string.digits, "hf_": string.ascii_letters + string.digits, "AIza": string.ascii_letters + string.digits,
}  # fmt: skip
"""Well-known beginnings of keys, and what follows."""


def secrets_of(chance: random.Random) -> dict[str, str]:
    """Name of the place that each comes from, and its value."""
    letters = string.ascii_letters + string.digits

    def word(alphabet: str, length: int) -> str:
        return "".join(chance.choice(alphabet) for _ in range(length))

    planted = {
        "WEB_TOKEN": f"w7{word(letters, 24)}",
        "TOOL_KEY": f"t{word(letters + '+/=', 20)}9&<x",
        "OPENAI_API_KEY": f"k3{word(letters, 30)}",
        "GITHUB_TOKEN": f"5{word('0123456789abcdef', 39)}",
        "DB_PASSWORD": f'pä"{word(letters, 14)}1',
    }
    for beginning, alphabet in _SHAPES.items():
        length = 16 if beginning == "AKIA" else 36
        planted[beginning] = beginning + "7" + word(alphabet, length - 1)
    return planted


FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "output": lambda text: {"output": text},
    "output structure": lambda text: {"output": {"a": [{"b": text}]}},
    "output key": lambda text: {"output": {text: 1}},
    "model": lambda text: {"output": "x", "model": text},
    "log": lambda text: {"output": "x", "log": text},
    "error": lambda text: {"output": "x", "error": text},
    "span name": lambda text: {
        "output": "x",
        "spans": [{"name": text, "kind": "llm", "start": 0, "seconds": 0}],
    },
    "tool name": lambda text: {"output": "x", "tool_calls": [{"name": text, "arguments": {}}]},
    "tool argument": lambda text: {
        "output": "x",
        "tool_calls": [{"name": "f", "arguments": {"a": {"b": [text]}}}],
    },
    "tool argument key": lambda text: {"output": "x", "tool_calls": [{"name": "f", "arguments": {text: 1}}]},
    "duration name": lambda text: {"output": "x", "durations": {text: 0.1}},
    "invalid answer": lambda text: {"output": "x", "usage": text},
    "unknown key": lambda text: {"output": "x", text: 1},
}
"""Where an agent can put text; each gives an answer with the text there."""
_MODULE = """
import json, os, sys
ANSWERS = json.loads({answers!r})

def agent(request):
    return ANSWERS[request.params["field"]]

def raises(request):
    raise ValueError(ANSWERS["output"]["output"])

def prints(request):
    print(ANSWERS["output"]["output"])
    print(ANSWERS["output"]["output"], file=sys.stderr)
    return "x"

def streams(request):
    text = ANSWERS["output"]["output"]
    for at in range(0, len(text), 5):
        yield text[at:at + 5]
"""
_PROGRAM = """
import json, os, sys
ANSWERS = json.loads({answers!r})
for line in sys.stdin:
    request = json.loads(line)
    field = request["params"]["field"]
    if field == "stderr":
        print(ANSWERS["output"]["output"], file=sys.stderr, flush=True)
    if field == "garbage":
        print("garbage " + ANSWERS["output"]["output"], flush=True)
        continue
    if field == "exit":
        print(ANSWERS["output"]["output"], file=sys.stderr, flush=True)
        sys.exit(3)
    if field == "delta":
        text = ANSWERS["output"]["output"]
        for at in range(0, len(text), 5):
            print(json.dumps({{"id": request["id"], "delta": text[at:at + 5]}}))
        print(json.dumps({{"id": request["id"], "output": text}}), flush=True)
        continue
    print(json.dumps({{"id": request["id"], **ANSWERS.get(field, {{"output": "x"}})}}), flush=True)
"""
_PROVIDER_FIELDS = (
    "content",
    "split content",
    "model",
    "fingerprint",
    "error 400",
    "error 500 text",
    "error midway",
    "tool arguments",
    "reason",
    "header",
    "garbage",
)
_RECORDED = """
import json, os, sys, urllib.request
for field in json.load(open("fields.json")):
    for stream in (False, True):
        body = {"model": field, "messages": [{"role": "user", "content": "hello"}], "stream": stream,
                "user": os.environ["WEB_TOKEN"], "api_key": os.environ["TOOL_KEY"],
                "tools": [{"type": "mcp", "server_url": "https://x.invalid", "headers": {"Authorization": "Bearer " + os.environ["GITHUB_TOKEN"]}}]}
        headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "cookie": "session=" + os.environ["WEB_TOKEN"]}
        request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), headers)
        try:
            urllib.request.urlopen(request, timeout=20).read()
        except Exception as error:
            pass
"""


@contextmanager
def prepare(seed: int, size: Size) -> Iterator[Sequence[Fault]]:
    scenes: dict[str, Callable[..., Outcome]] = {
        "python": _python,
        "command": _command,
        "http": _http,
        "openai": _openai,
        "record": _record,
    }
    if size is Size.SMALLEST:
        scenes = {"command": partial(_command, fields=_WORST_FIELDS), "record": _record}
    rounds = size.choose(1, 1, 12)
    planted = [secrets_of(random.Random(f"{seed} secrets {n}")) for n in range(rounds)]
    yield [
        Fault(f"{n} {name}", partial(check, one))
        for n, one in enumerate(planted)
        for name, check in scenes.items()
    ]


def _text(field: str, planted: Mapping[str, str]) -> str:
    """What is repeated: the secrets behind a mark that says in which field, so that a find can be put down to it."""
    words = (f"<{name}> {value}" for name, value in planted.items())
    return f"FIELD({field}) {' '.join(words)} END"


def _answers(planted: Mapping[str, str]) -> dict[str, Any]:
    return {name: make(_text(name, planted)) for name, make in FIELDS.items()}


def _project(folder: Path, planted: Mapping[str, str]) -> Project:
    """Only what stands in the environment is known by value; the rest must be found by its shape."""
    known = {name: value for name, value in planted.items() if name not in _SHAPES}
    return Project(folder, known, db=f"sqlite:///{folder / 'assay.db'}")


def _suite(agents: Sequence[Mapping[str, Any]]) -> str:
    benchmark = {
        "id": "b", "name": "b", "cases": [{"id": "c", "input": "1", "expected": "1"}], "scorer": "exact",
        "iterations": {"warmup": 0, "measured": 1}, "limits": {"seconds": 20},
    }  # fmt: skip
    return json.dumps({"suite": "s", "version": "1", "agents": list(agents), "benchmarks": [benchmark]})


def _python(planted: Mapping[str, str], folder: Path) -> Outcome:
    project = _project(folder, planted)
    project.write("agents.py", _MODULE.format(answers=json.dumps(_answers(planted))))
    agents = [
        {"name": f"a{n}", "type": "python", "target": "agents.py:agent", "params": {"field": field}} for n, field in enumerate(FIELDS)
    ]  # fmt: skip
    agents += [
        {"name": name, "type": "python", "target": f"agents.py:{name}"}
        for name in ("raises", "prints", "streams")
    ]
    return _run(project, agents, planted, "python")


_PROGRAM_FIELDS = (*FIELDS, "stderr", "garbage", "exit", "delta")
_WORST_FIELDS = ("output key", "model", "error", "span name", "tool argument key", "stderr")


def _command(planted: Mapping[str, str], folder: Path, fields: Sequence[str] = _PROGRAM_FIELDS) -> Outcome:
    project = _project(folder, planted)
    project.write("program.py", _PROGRAM.format(answers=json.dumps(_answers(planted))))
    words = [sys.executable, "-S", "-E", "program.py", "--api-key", "${TOOL_KEY}"]
    agents = [
        {"name": f"a{n}", "type": "command", "command": words, "params": {"field": field}} for n, field in enumerate(fields)
    ]  # fmt: skip
    return _run(project, agents, planted, "command")


def _http(planted: Mapping[str, str], folder: Path) -> Outcome:
    answers = _answers(planted)

    def talk(guest: Guest) -> None:
        field = json.loads(guest.request.partition(b"\r\n\r\n")[2])["params"]["field"]
        if field in answers:
            guest.say(with_length(json.dumps(answers[field]).encode(), JSON))
        else:
            guest.say(
                with_length(
                    _text(field, planted).encode(), b"content-type: text/plain\r\n", status=field.encode()
                )
            )

    with faulty(talk, path="/") as server:
        headers = {"Authorization": "Bearer ${WEB_TOKEN}", "X-Key": "${TOOL_KEY}"}
        agents = [
            {"name": f"a{n}", "type": "http", "url": server.url, "headers": headers, "params": {"field": field}, "retries": 0}
            for n, field in enumerate([*FIELDS, "400 Bad", "500 Broken", "200 Text"])
        ]  # fmt: skip
        return _run(_project(folder, planted), agents, planted, "http")


def _provider(planted: Mapping[str, str], guest: Guest) -> bool | None:
    """An OpenAI server that repeats the secrets in the field that the model is named after."""
    asked = json.loads(guest.request.partition(b"\r\n\r\n")[2])
    field = asked["model"]
    text = _text(field, planted)
    document: dict[str, Any] = {
        "id": "1",
        "model": "m",
        "choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}],
    }
    chosen = document["choices"][0]
    match field:
        case "error 400" | "error 500 text":
            status = b"400 Bad" if field == "error 400" else b"500 Broken"
            body = (
                json.dumps({"error": {"message": text}}).encode() if field == "error 400" else text.encode()
            )
            guest.say(with_length(body, JSON, status=status))
            return None
        case "garbage":
            guest.say(with_length(text.encode(), JSON))
            return None
        case "model":
            document["model"] = text
        case "fingerprint":
            document["system_fingerprint"] = text
        case "tool arguments":
            call = {
                "index": 0,
                "id": "1",
                "type": "function",
                "function": {"name": "f", "arguments": json.dumps({"a": text})},
            }
            chosen["message"]["tool_calls"] = [call]
        case "reason":
            chosen["finish_reason"] = text
        case "content" | "split content":
            chosen["message"]["content"] = text
    extra = b"x-echo: " + quote(text).encode() + b"\r\n" if field == "header" else b"x-none: 1\r\n"
    if asked.get("stream"):
        guest.say(head(SSE, CHUNKED, extra), *map(chunk, _events(field, text, document)), END)
    else:
        guest.say(with_length(json.dumps(document).encode(), JSON, extra))
    return None


def _events(field: str, text: str, document: dict[str, Any]) -> Iterator[bytes]:
    chosen = document["choices"][0]
    common = {name: value for name, value in document.items() if name != "choices"}
    if field == "error midway":
        yield delta(content="x")
        yield event({"error": {"message": text}})
        return
    pieces = (
        [text[at : at + 7] for at in range(0, len(text), 7)]
        if field == "split content"
        else [chosen["message"]["content"]]
    )
    for piece in pieces:
        yield event({**common, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
    if calls := chosen["message"].get("tool_calls"):
        yield event(
            {**common, "choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": None}]}
        )
    yield event({**common, "choices": [{"index": 0, "delta": {}, "finish_reason": chosen["finish_reason"]}]})
    yield b"data: [DONE]\n\n"


def _openai(planted: Mapping[str, str], folder: Path) -> Outcome:
    with faulty(partial(_provider, planted)) as server:
        number = count()
        agents = [
            {"name": f"a{next(number)}", "type": "openai", "model": field, "base_url": server.url, "stream": stream, "retries": 0}
            for field in _PROVIDER_FIELDS for stream in (True, False)
        ]  # fmt: skip
        return _run(_project(folder, planted), agents, planted, "openai")


def _record(planted: Mapping[str, str], folder: Path) -> Outcome:
    project = _project(folder, planted)
    project.write("program.py", _RECORDED)
    project.write("fields.json", json.dumps(_PROVIDER_FIELDS))
    words = ("--", sys.executable, "-S", "-E", "program.py")
    with faulty(partial(_provider, planted)) as server:
        done = [project("record", "--upstream", server.url, "--verbose", *words)]
    done.append(project("replay", *words))
    tried = 2 * len(_PROVIDER_FIELDS) * len(planted)
    sources = {"fields.json", "program.py"}
    return _searched(project, done, planted, "record", tried, sources)


def _run(
    project: Project, agents: Sequence[Mapping[str, Any]], planted: Mapping[str, str], protocol: str
) -> Outcome:
    project.write("suite.json", _suite(agents))
    done = [
        project("run", "suite.json", "--verbose", "--report", "html", "--out", "results"),
        project("show", "last"),
        project("show", "last", "--case", "c"),
        project("show", "last", "--json"),
        project("report", "last", "--format", "html,md,json,csv,junit", "--out", "out"),
        project("leaderboard", "--json"),
    ]
    for one in done:
        if problem := one.problem(0, 1):
            return Outcome(1, ((protocol, problem),))
    return _searched(
        project,
        done,
        planted,
        protocol,
        len(agents) * len(planted),
        {"agents.py", "program.py", "suite.json"},
    )


def _searched(
    project: Project, done: Sequence[Done], planted: Mapping[str, str], protocol: str, tried: int, sources: set[str]
) -> Outcome:  # fmt: skip
    written = {
        path: path.read_bytes()
        for path in project.folder.rglob("*")
        if path.is_file() and path.name not in sources and path.suffix != ".pyc"
    }
    places = {str(path.relative_to(project.folder)): content for path, content in written.items()}
    places |= {
        f"{place}, pieces joined": _joined(content)
        for place, content in places.items()
        if place.endswith(".jsonl")
    }
    places |= {f"console {n}": (one.out + one.err).encode() for n, one in enumerate(done)}
    wrongs: dict[tuple[str, str], str] = {}
    for place, content in places.items():
        for name, value in planted.items():
            for form in _forms(value):
                for found in re.finditer(re.escape(form), content):
                    before = content[max(0, found.start() - 2500) : found.start()].decode("utf-8", "replace")
                    fields = re.findall(r"FIELD\(([^)]*)\)", before)
                    field = fields[-1] if fields else "unknown field"
                    near = before[-40:]
                    wrongs.setdefault(
                        (f"{protocol}, {field}: {name}", place), f"the secret {name} is in {place}: …{near!r}"
                    )
    kinds = {kind: text for (kind, _), text in reversed(wrongs.items())}
    modes = {
        str(path.relative_to(project.folder))
        for path in written
        if path.suffix in (".db", ".jsonl") and path.stat().st_mode & 0o077
    }
    kinds |= {f"{protocol}: mode of {name}": "others may read the file" for name in modes}
    marked = sum(content.count(b"FIELD(") for content in places.values())
    if not marked:
        kinds[protocol] = "nothing of what was repeated is stored, so nothing was searched"
    return Outcome(tried, tuple(kinds.items()), {"places searched": len(places)})


def _joined(content: bytes) -> bytes:
    """The pieces of streamed texts put together, as a reader of a cassette would."""
    return b"".join(re.findall(rb'content\\*": ?\\*"((?:[^"\\])*)', content))


def _forms(value: str) -> set[bytes]:
    """A secret as it is, and in the encodings in which files and pages hold text."""
    texts = {
        value, quote(value), quote(value, safe=""), html.escape(value), json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1], base64.b64encode(value.encode()).decode().rstrip("="),
    }  # fmt: skip
    return {text.encode() for text in texts}


PART = Part(
    "secrets",
    "No planted secret is in a database, a report, a cassette or on the console, and only their owner can read these files.",
    prepare,
)
