"""Secrets in every field of every protocol: none of them is stored, reported, exported, logged or shown."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.agents.scripted import Heard, ScriptedServer, response
from tests.command import Assay, Done
from tests.suites.project import python_agent, suite

BY_NAME = 'n4med/like+a "secret" é'
BY_USE = "used-in-the-spec-0815"
IN_COMMAND = "given-to-a-command-4711"
BY_SHAPE = ["sk-ant-api03-4fJ7dK2mQ9xW1zR8tt", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"]
VALUES = [BY_NAME, BY_USE, IN_COMMAND]
VARIABLES: dict[str, Any] = {"PROVIDER_TOKEN": BY_NAME, "WEB_LOGIN": BY_USE, "COMMAND_ARGUMENT": IN_COMMAND}


def forms(secret: str) -> list[str]:
    raw = secret.encode()
    escaped = json.dumps(secret)[1:-1]
    return [
        secret,
        escaped,
        json.dumps(escaped)[1:-1],
        quote(secret, safe=""),
        base64.b64encode(raw).decode().rstrip("="),
    ]


EVERYTHING = " | ".join([form for secret in VALUES for form in forms(secret)] + BY_SHAPE)
FIELDS: dict[str, Any] = {
    "output": {EVERYTHING: [EVERYTHING, {"deep": EVERYTHING}]},
    "model": EVERYTHING,
    "usage": {"input_tokens": 3, "output_tokens": 4},
    "tool_calls": [{"name": EVERYTHING, "arguments": {EVERYTHING: EVERYTHING}}],
    "spans": [{"name": EVERYTHING, "kind": "llm", "start": 0, "seconds": 0.1}],
    "durations": {EVERYTHING: 0.5},
    "log": EVERYTHING,
}
PROGRAM = """
import json, sys
fields = json.load(open("fields.json"))
for line in sys.stdin:
    request = json.loads(line)
    print(fields["log"], sys.argv, file=sys.stderr, flush=True)
    said = {"error": fields["log"]} if request["input"] == "fail" else {k: v for k, v in fields.items() if k != "log"}
    print(json.dumps({"id": request["id"], **said}), flush=True)
"""
AGENTS = """
import json, os, sys
fields = json.load(open("fields.json"))
def told(text):
    print(fields["log"])
    print(dict(os.environ), file=sys.stderr)
    if text == "fail":
        raise ValueError(fields["log"])
    return {k: v for k, v in fields.items() if k != "log"}
"""


def chat(heard: Heard) -> bytes:
    """Any of the protocols over HTTP, by the path that is asked; a question `fail` is refused."""
    path = heard.line.split()[1]
    headers: Any = {"x-request-id": BY_SHAPE[0]}
    if path.startswith("/api/tags"):
        return response({"models": [{"name": "m", "digest": EVERYTHING}]}, **headers)
    if b'"fail"' in heard.body:
        return response({"error": {"message": EVERYTHING, "heard": heard.raw_headers}}, 400, **headers)
    call = {"name": EVERYTHING, "arguments": json.dumps({EVERYTHING: EVERYTHING})}
    if "chat/completions" in path:
        message = {"content": EVERYTHING, "tool_calls": [{"id": "1", "type": "function", "function": call}]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, EVERYTHING: 3}
        document: Any = {"model": EVERYTHING, "choices": [{"message": message}], "usage": usage}
    elif "messages" in path:
        tool = {"type": "tool_use", "name": EVERYTHING, "input": {EVERYTHING: EVERYTHING}}
        usage = {"input_tokens": 1, "output_tokens": 1, EVERYTHING: 3}
        document = {
            "model": EVERYTHING,
            "content": [{"type": "text", "text": EVERYTHING}, tool],
            "usage": usage,
        }
    elif path.startswith("/api/"):
        calls = [{"function": {"name": EVERYTHING, "arguments": {EVERYTHING: EVERYTHING}}}]
        message = {"content": EVERYTHING, "tool_calls": calls}
        document = {
            "model": EVERYTHING,
            "message": message,
            "done": True,
            "prompt_eval_count": 1,
            "eval_count": 1,
        }
    else:
        document = {"id": json.loads(heard.body)["id"], **FIELDS}
    return response(document, **headers)


@pytest.fixture
def project(assay: Assay) -> Iterator[Assay]:
    with ScriptedServer(chat) as server:
        recorded = [{"id": "c1", **{k: v for k, v in FIELDS.items() if k in ("output", "usage")}}]
        recorded.append({"id": "c2", "error": EVERYTHING})
        assay.write("answers.jsonl", "\n".join(map(json.dumps, recorded)))
        assay.write("fields.json", json.dumps(FIELDS))
        assay.write("program.py", PROGRAM)
        assay.write("agents.py", AGENTS)
        key = {"api_key": "${WEB_LOGIN}", "stream": False}
        agents = [
            python_agent("told", "agents.py"),
            {
                "name": "program",
                "type": "command",
                "command": ["python3", "program.py", "${COMMAND_ARGUMENT}"],
            },
            {
                "name": "web",
                "type": "http",
                "url": server.url,
                "headers": {"Authorization": "Bearer ${WEB_LOGIN}"},
            },
            {"name": "gpt", "type": "openai", "model": "m", "base_url": f"{server.url}/v1", **key},
            {"name": "claude", "type": "anthropic", "model": "m", "base_url": server.url, **key},
            {"name": "gemma", "type": "ollama", "model": "m", "base_url": server.url, "stream": False},
            {"name": "past", "type": "recorded", "answers": "answers.jsonl"},
            {"name": "made-up", "type": "simulated", "quality": 0.5},
        ]
        cases = [
            {"id": "c1", "input": "say it", "expected": "x"},
            {"id": "c2", "input": "fail", "expected": "x"},
        ]
        assay.write("s.yaml", suite(cases, agents, notes=f"why {BY_SHAPE[0]}", tags=[BY_SHAPE[1]]))
        yield assay


def planted(assay: Assay, *arguments: str) -> Done:
    return assay(*arguments, **VARIABLES)


def leaks_in(name: str, content: bytes) -> list[str]:
    """Secrets in a text, in any encoding; base64 and compressed parts of a page are unpacked."""
    texts = [content.decode("utf-8", "replace"), *unpacked(content)]
    found = [secret for secret in VALUES for form in forms(secret) if any(form in text for text in texts)]
    return [
        f"{name}: {secret}" for secret in [*found, *(s for s in BY_SHAPE if any(s in text for text in texts))]
    ]


def unpacked(content: bytes) -> Iterator[str]:
    for packed in re.findall(rb"[A-Za-z0-9+/]{80,}={0,2}", content):
        try:
            inner = base64.b64decode(packed + b"=" * (-len(packed) % 4))
            yield inner.decode("utf-8", "replace")
            yield (gzip.decompress(inner) if inner[:2] == b"\x1f\x8b" else zlib.decompress(inner)).decode(
                "utf-8", "replace"
            )
        except Exception:
            continue


def artifacts(database: Path) -> bytes:
    with sqlite3.connect(database) as connection:
        rows = connection.execute("SELECT content FROM artifacts").fetchall()
    return b"\n".join(zlib.decompress(content) for (content,) in rows)


def test_no_secret_leaves_a_run_in_any_way(project: Assay) -> None:
    formats = "html,md,json,csv,png,junit"
    done = planted(project, "run", "s.yaml", "--verbose", "--report", formats, "--out", "out")
    assert done.code == 0, done.err
    shown = [done, planted(project, "show", "last", "--verbose"), planted(project, "show", "last", "--json")]
    shown += [
        planted(project, "show", "last", "--case", "c1"),
        planted(project, "show", "last", "--case", "c2"),
    ]
    shown += [planted(project, command, "--json") for command in ("leaderboard", "matrix")]
    for file in ("all.csv", "all.jsonl", "all.db"):
        shown.append(planted(project, "db", "export", file))
    folder = project.folder
    inputs = {"answers.jsonl", "fields.json", "s.yaml"}
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in inputs]
    assert {"report.html", "report.md", "result.json", "executions.csv", "all.jsonl", "all.db"} <= {
        f.name for f in files
    }
    leaks = [leak for path in files for leak in leaks_in(path.name, path.read_bytes())]
    leaks += [
        leak for n, one in enumerate(shown) for leak in leaks_in(f"console {n}", (one.out + one.err).encode())
    ]
    leaks += leaks_in("artifacts", artifacts(folder / ".assay" / "assay.db"))
    assert sorted(set(leaks)) == []
    # The planted truth: each agent said it, in an answer and in an error, and its place was kept.
    document = json.loads((folder / "out" / "result.json").read_text())
    assert len(document["trials"]) == 8
    assert (folder / ".assay" / "assay.db").read_bytes().count(b"[redacted]") > 50
    readable = [path.name for path in files if path.stat().st_mode & 0o077 and path.parent != folder]
    assert [name for name in readable if not name.endswith(".pyc")] == []
    assert (folder / "all.db").stat().st_mode & 0o077 == 0
